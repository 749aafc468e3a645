"""The printed output of a try: complete where it matters, with printable characters only."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
import yaml
from deltalake import write_deltalake
from rich.console import Console

from transom.cli.adhoc_files import ScannedFile
from transom.cli.try_report import print_duplicates, print_rejected
from transom.core import terminal_tables
from transom.core.terminal_tables import plain
from transom.features.ingest.file_records import FileRecord
from transom.storage.tables import Table
from transom.stream import parse

STREAM = """
name: web
source: {path: a.log, format: json}
columns: {id: id}
time: {column: at}
"""


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\tb", "a\\tb"),
        ("\x1b[31m", "\\x1b[31m"),
        ("\u202eabc", "\\u202eabc"),
        ("ä", "ä"),
        ("\ud800", "\\ud800"),
    ],
)
def test_unprintable_characters_are_escaped(text: str, shown: str) -> None:
    assert plain(text) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (249418.54, "249418.54"),
        (1 / 3, "0.333333"),
        (-1234567.891, "-1234567.89"),
        (12.0, "12"),
        (2.0**60, "1.15292e+18"),
        (float("nan"), "nan"),
        (float("inf"), "inf"),
    ],
)
def test_cents_of_a_large_sum_are_shown(value: float, shown: str) -> None:
    assert plain(value) == shown


def _lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return [" ".join(line.split()) for line in capsys.readouterr().out.splitlines() if line.strip(" ─")]


def test_expected_format_is_shown_in_full(capsys: pytest.CaptureFixture[str]) -> None:
    form = "%Y-%m-%d %H:%M:%S.%f %Z, from 1970 to 2261"
    detail = f"bad time: {'x' * 99}; expected {form}"
    stored = ScannedFile(
        Path("a.log"), None, reasons=Counter(bad_time=2), examples={"bad_time": [(7, "a\tb", detail)]}
    )
    print_rejected([stored])
    shown = f"bad time: {'x' * 37}...; expected {form}"
    assert "".join(_lines(capsys)[2:]).replace(" ", "") == f"bad_time21a.log7{shown}a\\tb".replace(" ", "")


def test_rejected_lines_are_grouped_by_reason_over_all_files(capsys: pytest.CaptureFixture[str]) -> None:
    stored = [
        ScannedFile(
            Path(f"{name}.log"),
            None,
            reasons=Counter(no_match=2),
            examples={"no_match": [(1, f"{name}1", "junk"), (7, f"{name}7", "junk")]},
        )
        for name in "abcd"
    ]
    stored.append(ScannedFile(Path("e.log"), None))
    print_rejected(stored)
    assert _lines(capsys) == [
        "rejected lines, the first 3 of each reason",
        "reason lines files file line seen text",
        "no_match 8 4 a.log 1 junk a1",
        "b.log 1 junk b1",
        "c.log 1 junk c1",
    ]


@pytest.mark.parametrize("width", [60, 80, 84, 100, 160])
def test_no_word_of_a_table_is_cut(
    width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terminal_tables, "Console", lambda **options: Console(**options | {"width": width}))
    text = '46.118.127.106 - - [20/May/2015:12:05:17 +0000] "GET /script'
    seen = "no match; expected the common or the combined log form"
    row = ("no_match", 1, 1, "access.log", 8899, seen, text)
    columns = ("reason", "lines", "files", "file", "line", "seen", "text")
    terminal_tables.table("rejected lines", columns, [row])
    words = Counter(capsys.readouterr().out.split())
    assert Counter(" ".join(map(str, row)).split()) <= words


def test_duplicates_are_reported_for_each_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = ["landing/1-a.log", "landing/2-a.log"]
    day = datetime(2015, 5, 17, tzinfo=UTC)
    base = FileRecord(path="", hour=day, status="ingested", spec_hash="", size=0, modified=day)
    counts = zip(paths, (5, 3), (0, 402), strict=True)
    rows = [vars(replace(base, path=path, accepted=n, duplicates=more)) for path, n, more in counts]
    source = pa.Table.from_pylist(rows, schema=Table.load("files").arrow_schema())
    write_deltalake(tmp_path / "files", source, partition_by=["hour"])
    stored = [ScannedFile(tmp_path / "a.log", None, events=5), ScannedFile(Path("b/a.log"), None, events=405)]
    files = dict(zip(paths, stored, strict=True))
    data = yaml.safe_load(STREAM)
    print_duplicates(parse(data), str(tmp_path), files)
    assert capsys.readouterr().out == ""
    print_duplicates(parse({**data, "unique": ["event_time", "id"]}), str(tmp_path), files)
    assert _lines(capsys) == [
        "events that repeat another one of their hour in event_time, id: they go to the table duplicates",
        "file events duplicates rows",
        "b/a.log 405 402 3",
    ]
