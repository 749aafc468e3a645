"""Values separated by any number of blanks, as in aligned columns."""

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.formats.agreement import agree
from tests.formats.some_formats import read
from transom.formats.record_format import EventTime, Field, RecordFormat

LAYOUT = RecordFormat(
    "csv",
    (Field("a", ("a",)), Field("b", ("b",), missing=("-",))),
    EventTime(("ts",), (), "epoch"),
    {"delimiter": "blanks"},
    keep_rest=True,
)


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("1 x y", ("x", "y")),
        ("1   x\t \ty", ("x", "y")),
        ("   1 x  y  \t", ("x", "y")),
        ('1  "two  words"  y', ("two  words", "y")),
        ('1  "a ""b""  c"d  y', ('a "b"  cd', "y")),
        ('1  ""  -', (None, None)),
        ('1 a"b  c"', ('a"b', 'c"')),
        # Other blanks are letters.
        ("1 x\u00a0y\u2003z w", ("x\u00a0y\u2003z", "w")),
    ],
)
def test_any_number_of_blanks_separates_values(line: str, values: tuple[str | None, ...]) -> None:
    events, rejected, _ = read(f"  ts  a \t b\n{line}\n".encode(), LAYOUT)
    assert ([(event["a"], event["b"]) for event in events], rejected) == ([values], [])


@pytest.mark.parametrize(
    ("line", "reason", "detail"),
    [
        ("1 x", "field_count", "field count: 2; expected 3"),
        ("1 x y z", "field_count", "field count: 4; expected 3"),
        (" \t ", "field_count", "field count: 0; expected 3"),
        ('1 "x  y', "unterminated_quote", None),
    ],
)
def test_other_lines_are_rejected_unchanged(line: str, reason: str, detail: str | None) -> None:
    events, rejected, _ = read(f"ts a b\n{line}\n1 x y\n".encode(), LAYOUT)
    assert len(events) == 1
    assert [(row["reason"], row["detail"], row["raw"]) for row in rejected] == [(reason, detail, line)]


@given(
    lines=st.lists(st.text('ab" \t\r\0ö', max_size=12), max_size=6),
    head=st.sampled_from(["ts a b", " ts  b"]),
)
@example(lines=['"a""" b  "', ' "a"" b'], head="ts a b")
def test_lines_of_blanks_and_quotes_agree_with_the_reference(lines: list[str], head: str) -> None:
    agree("\n".join([head, *(f"1 {line}" for line in lines), *lines, ""]).encode(), LAYOUT)


def test_header_of_blanks_alone_has_no_names() -> None:
    data = b"  \n1 x y\n"
    events, rejected, _ = read(data, LAYOUT)
    assert (events, [row["detail"] for row in rejected]) == ([], ["field count: 3; expected 0"])
    agree(data, LAYOUT)


def as_w3c(**options: Any) -> RecordFormat:
    return RecordFormat(LAYOUT.format, LAYOUT.fields, LAYOUT.time, {"delimiter": "blanks", **options})


def test_other_header_lines_may_have_blanks_too() -> None:
    for head, options in (
        ("#Fields: ts a b\n", {"header": "w3c"}),
        ("# ts  a  b\n", {"header": 1, "comment": "#"}),
        ("", {"header": False, "names": ["ts", "a", "b"]}),
    ):
        events, rejected, _ = read(f"{head} 1  x  y\n".encode(), as_w3c(**options))
        assert ([event["a"] for event in events], rejected) == (["x"], [])
