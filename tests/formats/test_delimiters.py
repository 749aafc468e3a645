"""Delimiters of several characters, and blanks around values: line by line and whole columns at a time."""

import numpy as np
import pyarrow as pa
import pytest

from transom.formats.rejections import Rejections
from transom.formats.separated import MARKED, Separated


@pytest.mark.parametrize(
    ("delimiter", "trim", "line", "values"),
    [
        (" | ", True, "a | b | c", ["a", "b", "c"]),
        # Neighbouring delimiters share a blank, and the ends of a line count as blanks.
        (" | ", True, "a | | | b", ["a", "", "", "b"]),
        (" | ", True, "| a |", ["", "a", ""]),
        (" | ", True, "a|b |  c  ", ["a|b", "c"]),
        (" | ", True, 'a |  "b | ""c" d | e', ["a", 'b | "c d', "e"]),
        (" | ", False, "a  | b|  | ", ["a ", "b| ", ""]),
        (" : ", True, "10:00 : a:b", ["10:00", "a:b"]),
        ("|", True, "a |b|  ", ["a", "b", ""]),
        ("::", False, "a:::b::", ["a", ":b", ""]),
        ("::", False, '"a::b":: c', ["a::b", " c"]),
        (" \t ", True, "a\tb \t c", ["a\tb", "c"]),
        ("::", False, f"a::b{MARKED}c", ["a", f"b{MARKED}c"]),
        ("::", False, "a::b\rc", ["a", "b\rc"]),
    ],
)
def test_values_of_a_line(delimiter: str, trim: bool, line: str, values: list[str]) -> None:
    rule = Separated(delimiter, '"', trim=trim)
    assert rule.split_line(line) == values
    refused = Rejections.none(3)
    names = [f"{number}" for number in range(len(values))]
    columns = rule.columns(pa.array([line, "", delimiter.join("x" * len(values))]), names, None, "", refused)
    assert [columns[name][0].as_py() for name in names] == [value or None for value in values]
    assert [columns[name][2].as_py() for name in names] == ["x"] * len(values)
    assert not np.any(refused.any)


@pytest.mark.parametrize("trim", [False, True])
def test_lines_with_an_open_quote_or_another_number_of_values_are_refused(trim: bool) -> None:
    refused = Rejections.none(4)
    lines = pa.array(['a | "b', "a | b | c", "a", "a | b"])
    columns = Separated(" | ", '"', trim=trim).columns(lines, ["x", "y"], None, "", refused)
    assert refused.any.tolist() == [True, True, True, False]
    assert columns["y"].to_pylist() == [None, None, None, "b"]
