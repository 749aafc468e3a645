"""The JSON Schema of a stream's file: current, named by each file, and no stricter than `load`."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.support import sample_streams
from tests.support.pattern_factories import ALL, log
from transom.spec.yaml_file import parse_mapping, read_mapping
from transom.stream import SpecificationError, StreamFile, parse
from transom.stream_schema import schema_text

ROOT = Path(__file__).parents[2]
SCHEMA = ROOT / "schemas" / "stream.schema.json"


def validator() -> Any:
    schema = json.loads(SCHEMA.read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def test_schema_is_up_to_date() -> None:
    assert SCHEMA.read_text() == schema_text(StreamFile), (
        f"python -m transom.stream_schema {SCHEMA.relative_to(ROOT)}"
    )


def test_module_writes_the_schema(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    command = [sys.executable, "-m", "transom.stream_schema"]
    subprocess.run([*command, str(out)], check=True, cwd=ROOT, env={"PYTHONPATH": "jobs"})
    assert out.read_text() == schema_text(StreamFile)
    without = subprocess.run(
        command, check=False, cwd=ROOT, env={"PYTHONPATH": "jobs"}, capture_output=True, text=True
    )
    assert (without.returncode, without.stderr) == (1, "usage: python -m transom.stream_schema FILE\n")


@pytest.mark.parametrize("path", sample_streams.FILES, ids=lambda path: path.stem)
def test_each_stream_names_the_schema_and_conforms_to_it(path: Path) -> None:
    first = path.read_text().splitlines()[0]
    assert first == "# yaml-language-server: $schema=../stream.schema.json"
    validator().validate(read_mapping(path))


def test_every_field_is_described_and_its_default_may_be_written() -> None:
    schema = json.loads(SCHEMA.read_text())
    models = {"Stream": schema, **schema["$defs"]}
    # These have a short form, too.
    in_short = ("Alert", "Column", "Filler", "FillerColumn", "Fit", "Unique")
    models |= {name: models[name]["anyOf"][1] for name in in_short}
    checked = 0
    for model, fields in models.items():
        for name, field in fields["properties"].items():
            assert field.get("description"), f"{model}.{name}"
            if "default" in field:
                checked += 1
                alone = {**field, "$defs": schema["$defs"]}
                jsonschema.Draft202012Validator(alone).validate(field["default"])
    assert checked > 30


PATTERN: dict[str, Any] = {"within": "1 hour", "steps": [{"id": "one", "where": "a = 'x'"}]}
MINIMAL: dict[str, Any] = {
    "name": "app",
    "source": {"path": "a.json", "format": "json"},
    "time": {"column": "at"},
    "columns": {"a": "x", "b": {"type": "integer"}},
}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"repair_window": "2 days"},
        {"aggregates": {"x": {"measures": {"n": "count"}, "levels": "RANGES 1 HOUR SLIDES 1 HOUR"}}},
        {"aggregates": {"x": {"measures": {"n": "count"}, "levels": [{"range": "1 h", "slide": "1 h"}]}}},
        {"columns": {"a": {"type": "number", "resolution": 0.5}}},
        {"columns": {"a": {"type": "number", "resolution": "0.5"}}},
        {"columns": {"a": "x", "twice": {"is": "a || a"}}},
        {"unique": ["a"]},
        {"unique": {"columns": ["a", "event_time"], "prefer": "longest b"}},
        {"preset": "zeek/conn", "columns": {"uid": None}},
        {**log(), "patterns": {name: parse_mapping(text, name) for name, text in ALL.items()}},
        {
            "patterns": {
                "x": {
                    **PATTERN,
                    "batch": "1 minute",
                    "max_records": 5,
                    "carry": ["a"],
                    "count_records": "all",
                }
            }
        },
        {"time": {"column": ["date", "time"], "interval": "5 minutes", "on_duplicate_time": "first"}},
        {"time": {"lines": "1 second", "from": "2024-01-01T00:00"}, "extra_fields": "keep"},
        {"checks": {"rejected_share": {"at_most": 0.1}, "times_inside_hour": {"off": True}}},
    ],
)
def test_file_accepted_by_load_conforms_to_the_schema(changes: dict[str, Any]) -> None:
    data = {**MINIMAL, **changes}
    parse(data)
    assert [error.message for error in validator().iter_errors(data)] == []


@pytest.mark.parametrize(
    "changes",
    [
        {"fraems": {}},
        {"repair_window": 2},
        {"patterns": {"x": {"steps": [{"id": "one", "where": "a = 'x'"}]}}},
        {"patterns": {"x": {"within": "1 hour", "steps": [{"id": "one", "where": "a = 'x'", "times": 0}]}}},
        {"patterns": {"x": {"within": "1 hour", "steps": [{"any_order": [], "distinct": "a"}]}}},
        {"patterns": {"x": {"within": "1 hour", "steps": [{"id": "one"}]}}},
        {"patterns": {"x": {**PATTERN, "absent": [{"where": "b = 1", "between": ["one"]}]}}},
        {"repair_window": "2 fortnights"},
        {"name": "App"},
        {"source": {"path": "a", "format": "xml"}},
        {"columns": {"a": {"tpye": "integer"}}},
        {"columns": {"a": 5}},
        {"columns": {"a": {"is": 5}}},
        {"unique": []},
        {"unique": {"columns": ["a"], "prefer": "last"}},
        {"time": {"column": []}},
        {"time": {"column": 5}},
        {"aggregates": {"x": {"measures": {"n": "count"}}}},
        {"submit": "all"},
        {"source": {"path": "a.json", "format": "json", "connection": "s3"}},
        {"source": {"path": "a.json", "format": "json", "on_conflict": "drop"}},
        {"schedule": "no"},
        {"checks": {"rejected_share": {"at_most": 1.5}}},
        {"checks": {"mine": {"stage": "ingest", "every": "a is null", "share": -0.1}}},
    ],
)
def test_file_rejected_by_the_schema_is_rejected_by_load(changes: dict[str, Any]) -> None:
    data = {**MINIMAL, **changes}
    assert list(validator().iter_errors(data))
    with pytest.raises(SpecificationError):
        parse(data)
