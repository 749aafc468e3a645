"""Delimited values that Arrow reads as numbers at once: the same rows and messages as from texts."""

from io import BytesIO

import pyarrow as pa
import pytest

from transom.formats.delimited import Csv
from transom.formats.read_file import Chunk, read_file
from transom.formats.record_format import EventTime, Field, RecordFormat
from transom.formats.rejections import Rejections

FIELDS = (
    Field("size", ("size",), "integer"),
    Field("share", ("share",), "number", "0.001"),
    Field("ok", ("ok",), "boolean"),
)
LAYOUT = RecordFormat(
    "csv",
    FIELDS,
    EventTime(("t",), time_format="epoch"),
    {"header": False, "names": ["t", "size", "share", "ok"]},
)


def rows(lines: str) -> tuple[list[dict[str, object]], list[tuple[str, str]]]:
    parts = read_file(BytesIO(lines.encode()), "a.csv", LAYOUT, None)
    chunks = [part for part in parts if isinstance(part, Chunk)]
    events = [row for chunk in chunks for row in chunk.events.to_pylist()]
    refused = [row for chunk in chunks for row in chunk.rejected.to_pylist()]
    return events, [(row["column"], row["detail"]) for row in refused]


def test_plain_values_are_read_as_their_types() -> None:
    text = pa.array(["1,2,0.5,true", "2,-3,1e3,F", "3,,,"])
    refused = Rejections.none(3)
    fields = Csv(LAYOUT).parse(text, refused).fields
    assert [fields[name].type for name in ("t", "size", "share", "ok")] == [
        pa.float64(), pa.int64(), pa.float64(), pa.bool_(),
    ]  # fmt: skip
    assert fields["size"].to_pylist() == [2, -3, None]
    assert fields["ok"].to_pylist() == [True, False, None]
    assert not refused.any.any()


@pytest.mark.parametrize("value", [" 12", "12 ", "\t12", "12\t", '" 12"', "0x1F", "0X1F", "-0x1F"])
def test_forms_that_only_arrow_reads_are_refused(value: str) -> None:
    events, refused = rows(f"1,7,0.5,T\n2,{value},0.5,T\n")
    shown = value.strip('"')
    assert [row["size"] for row in events] == [7]
    assert refused == [("size", f"bad type: {shown}; expected a whole number")]


@pytest.mark.parametrize("value", ["nan", "inf", "-Infinity"])
def test_words_are_no_numbers(value: str) -> None:
    events, refused = rows(f"1,7,0.5,T\n2,8,{value},T\n")
    assert [row["share"] for row in events] == [0.5]
    assert refused == [("share", f"bad type: {value}; expected a number")]


def test_message_has_the_text_of_a_number_that_is_too_large() -> None:
    events, refused = rows("1,7,0.5,T\n2,009007199254740993,0.5,T\n")
    assert [row["size"] for row in events] == [7]
    assert [detail.partition(";")[0] for _, detail in refused] == ["out of range: 009007199254740993"]


def test_blank_at_the_start_and_at_the_end_of_a_block() -> None:
    layout = RecordFormat("csv", FIELDS[:1], EventTime(("t",), time_format="epoch"),
                          {"header": False, "names": ["size", "t"]})  # fmt: skip
    for line in (" 1,2", "0x1,2"):
        [chunk, _] = read_file(BytesIO(line.encode()), "a.csv", layout, None)
        assert isinstance(chunk, Chunk)
        assert (chunk.events.num_rows, chunk.rejected.num_rows) == (0, 1)
