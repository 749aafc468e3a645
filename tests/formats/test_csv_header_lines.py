"""Header lines of a CSV: other than the first line, after others, between comments, with a duplicate name."""

from dataclasses import replace
from typing import Any

import pytest

from tests.formats.some_formats import read
from transom.formats.record_format import EventTime, Field, RecordFormat

TIME = EventTime(("ts",), (), "epoch")
LOGGER = b'"TOA5","CR1"\n"ts","rh"\n"TS","%"\n"","Smp"\n1,2\n3,4\n'


def layout(**options: Any) -> RecordFormat:
    return RecordFormat("csv", (Field("rh", ("rh",), "integer"),), TIME, options)


@pytest.mark.parametrize(
    ("data", "options", "headers"),
    [
        (LOGGER, {"header": 2, "skip": 4}, 4),
        (LOGGER, {"header": False, "skip": 4, "names": ["ts", "rh"]}, 4),
        (b"a log of rh\n\nts,rh\n1,2\n3,4\n", {"skip": 2}, 3),
        (b"a log of rh\n\nts,rh\n1,2\n3,4\n", {"header": 3}, 3),
        (b"# a log of rh\nts,rh\n1,2\n# a break\n# of an hour\n3,4\n", {"comment": "#"}, 4),
        (b"# a log of rh\n# ts,rh\n1,2\n3,4\n", {"comment": "#", "header": 2}, 2),
        (b"1,2\n// x\n3,4\n", {"comment": "//", "header": False, "names": ["ts", "rh"]}, 1),
        (b"ts rh\n1 2\n3 4\n", {"delimiter": " "}, 1),
        (b"\xff\nts,rh\n1,2\n3,4\n", {"skip": 1}, 2),
    ],
)
@pytest.mark.parametrize("block", [1, 1 << 20])
def test_header_lines_are_no_records(data: bytes, options: dict[str, Any], headers: int, block: int) -> None:
    events, rejected, summary = read(data, layout(**options), block=block)
    assert ([event["rh"] for event in events], rejected) == ([2, 4], [])
    assert (summary.header_lines, summary.unknown, summary.absent) == (headers, (), ())


def test_file_shorter_than_its_header_lines_has_no_records() -> None:
    events, rejected, summary = read(b"a\nb\n", layout(header=3, skip=5))
    assert (events, rejected, summary.lines, summary.header_lines) == ([], [], 2, 2)


@pytest.mark.parametrize("header", ["w3c", True])
def test_header_with_a_duplicate_used_field_is_refused_by_name(header: object) -> None:
    first = b"#Fields: ts rh rh x\n" if header == "w3c" else b"ts rh rh x\n"
    of = layout(header=header, delimiter=" ")
    events, rejected, _ = read(first + b"1 2 3 4\n", of)
    assert events == []
    assert [(row["reason"], row["column"], row["raw"]) for row in rejected] == [
        ("ambiguous_header", "rh", "1 2 3 4")
    ]
    assert rejected[0]["detail"] == (
        "ambiguous header: rh; expected a header that has this name once; else name the columns by "
        "`header: false`, `names` and `skip`"
    )
    # Unused names may be duplicates.
    events, rejected, _ = read(first.replace(b"rh rh x", b"rh x x") + b"1 2 3 4\n", of)
    assert ([event["rh"] for event in events], rejected) == ([2], [])


def test_zeek_header_with_a_duplicate_used_field_is_refused_by_name() -> None:
    of = replace(layout(), format="zeek", options={})
    events, rejected, _ = read(b"#fields\tts\trh\trh\n1\t2\t3\n#fields\tts\trh\tx\n1\t2\t3\n", of)
    assert [event["rh"] for event in events] == [2]
    assert [(row["reason"], row["column"]) for row in rejected] == [("ambiguous_header", "rh")]
