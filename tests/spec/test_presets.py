"""What a stream inherits from its preset, and what it overrides."""

from pathlib import Path

import pytest

from tests.support.stream_factories import changed, refusal
from transom.formats.record_format import EventTime, Field, RecordFormat
from transom.spec.deduplicate import Unique
from transom.stream import parse


def test_preset_gives_defaults_that_the_stream_overrides() -> None:
    data = {
        "name": "web",
        "preset": "apache/combined",
        "source": {"path": "access.log"},
        "columns": {"agent": None, "bytes": {"type": "integer", "missing": ["-", "?"]}, "page": "path"},
    }
    stream = parse(data)
    assert stream.source.format == "apache"
    assert stream.source.options == {"variant": "combined"}
    assert list(stream.columns) == [
        "client", "ident", "user", "request", "method", "path", "protocol", "status", "bytes", "referer",
        "page",
    ]  # fmt: skip
    assert stream.event_columns["bytes"] == Field("bytes", ("bytes",), "integer", missing=("-", "?"))
    assert stream.event_columns["page"] == Field("page", ("path",))
    assert stream.layout().time == EventTime(("time",), (), "%d/%b/%Y:%H:%M:%S %z")


def test_options_of_a_preset_apply_to_its_format_only() -> None:
    data = {
        "name": "c",
        "preset": "zeek/conn",
        "source": {"path": "c.csv", "format": "csv", "options": {"delimiter": ";"}},
    }
    assert parse(data).source.options == {"delimiter": ";"}
    data["source"] = {"path": "c.log", "options": {}}
    assert parse(data).source.options == {"variant": "auto"}
    assert refusal({**data, "source": {"path": "c.log", "options": {"variant": "xml"}}}) == (
        "app.yaml: source.options.variant: must be one of auto, tsv, json; got 'xml'"
    )


def test_presets_are_found_in_the_folder_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRANSOM_PRESETS", str(tmp_path))
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "app.yaml").write_text("format: json\ntime: {column: at}\ncolumns: {a: x}\n")
    stream = parse({"name": "app", "preset": "own/app", "source": {"path": "a.json"}})
    assert stream.layout() == RecordFormat("json", (Field("a", ("x",)),), EventTime(("at",)))
    data = {"name": "app", "preset": "own/ap", "source": {"path": "a.json"}}
    assert refusal(data) == "app.yaml: preset: no preset 'own/ap'; nearest: own/app"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("formt: json", "own: unknown field 'formt'; nearest: format"),
        (
            "columns: {a: {type: number}}",
            "own: columns.a.resolution: is required for a number, such as 0.001",
        ),
    ],
)
def test_invalid_preset_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, message: str
) -> None:
    monkeypatch.setenv("TRANSOM_PRESETS", str(tmp_path))
    (tmp_path / "own.yaml").write_text(text)
    assert refusal(changed(preset="own")) == f"app.yaml: preset: {message}"


def test_unique_rule_may_come_from_a_preset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRANSOM_PRESETS", str(tmp_path))
    (tmp_path / "p.yaml").write_text("format: json\ntime: {column: at}\ncolumns: {a: x}\nunique: [a]\n")
    data = {"name": "app", "preset": "p", "source": {"path": "a.json"}}
    assert parse(data).unique == Unique(columns=("a",))
    assert parse({**data, "unique": {"columns": ["event_time"]}}).unique == Unique(columns=("event_time",))
    assert parse({**data, "unique": None}).unique is None


def test_renamed_preset_with_the_same_content_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRANSOM_PRESETS", str(tmp_path))
    text = "format: json\ntime: {column: at}\ncolumns: {a: x}\n"
    for name in ("old", "new"):
        (tmp_path / f"{name}.yaml").write_text(text)
    old, new = (
        parse({"name": "app", "preset": name, "source": {"path": "a.json"}}) for name in ("old", "new")
    )
    assert old.ingest_shape() == new.ingest_shape()
