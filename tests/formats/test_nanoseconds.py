"""Times in whole nanoseconds since 1970: texts or numbers, truncated to microseconds, exact to the last
digit.
"""

import json
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from tests.formats.some_formats import read
from transom.cli.init import infer_types as kinds
from transom.formats.json.lines import JsonLines
from transom.formats.record_format import EPOCHS, EventTime, Field, RecordFormat
from transom.formats.times import instants

NANOS = RecordFormat("json", (Field("n", ("n",)),), EventTime(("ts",), (), "epoch_ns"))
SEEN = RecordFormat(
    "json", (Field("seen", ("seen",), "timestamp", missing=("0",), time_format="epoch_ns"),),
    EventTime(("ts",), (), "epoch"),
)  # fmt: skip
LIMITS = "epoch_ns, whole nanoseconds of at most 9223372036854775807, from 1970 to 2261"


@pytest.mark.parametrize("as_written", [str, int])
@pytest.mark.parametrize(
    ("nanos", "moment"),
    [
        (1771691706842064465, datetime(2026, 2, 21, 16, 35, 6, 842064, tzinfo=UTC)),
        # As a double it would be the next microsecond, or the next hour.
        (1771691706842064999, datetime(2026, 2, 21, 16, 35, 6, 842064, tzinfo=UTC)),
        (1771693199999999999, datetime(2026, 2, 21, 16, 59, 59, 999999, tzinfo=UTC)),
        (9214646399999999999, datetime(2261, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)),
        (0, datetime(1970, 1, 1, tzinfo=UTC)),
    ],
)
def test_nanoseconds_are_exact(nanos: int, moment: datetime, as_written: type) -> None:
    events, rejected, _ = read(json.dumps({"ts": as_written(nanos)}).encode() + b"\n", NANOS)
    assert ([event["event_time"] for event in events], rejected) == ([moment], [])


@pytest.mark.parametrize("quotes", ['"', ""])
@pytest.mark.parametrize(
    "text", ["9223372036854775808", "99999999999999999999999", "9214646400000000000", "-1", "1.5", "1e18"]
)
def test_other_numbers_reject_their_line_alone(text: str, quotes: str) -> None:
    data = f'{{"ts": {quotes}{text}{quotes}}}\n{{"ts": "1771691706842064465"}}\n'.encode()
    events, rejected, _ = read(data, NANOS)
    assert [event["source_line"] for event in events] == [2]
    assert [(row["source_line"], row["reason"], row["detail"]) for row in rejected] == [
        (1, "bad_time", f"bad time: {text}; expected {LIMITS}")
    ]


def test_column_of_nanoseconds_is_a_time() -> None:
    values = ("1771691706842064465", "0", "99999999999999999999")
    data = "".join(f'{{"ts": 1, "seen": {value}}}\n' for value in values).encode()
    events, rejected, _ = read(data, SEEN)
    observed = [event["seen"] for event in events]
    assert observed == [datetime(2026, 2, 21, 16, 35, 6, 842064, tzinfo=UTC), None]
    assert [(row["reason"], row["column"]) for row in rejected] == [("bad_type", "seen")]


@pytest.mark.parametrize("value", ["1771691706842064465", 1771691706842064465])
def test_texts_and_numbers_are_both_read_in_blocks(value: object) -> None:
    """Not line by line: a log has one or the other."""
    assert JsonLines(NANOS).read_fast(pa.array([json.dumps({"ts": value})] * 3)) is not None


def test_epochs_are_equal_in_specification_and_draft() -> None:
    """A format that a stream file may name is read, and one that a draft infers may be named."""
    assert kinds.EPOCHS == EPOCHS
    for form, unit in EPOCHS.items():
        result, codes = instants(pa.array([str(1_700_000_000 * unit)]), form, None)
        assert (result.to_pylist(), codes.tolist()) == (
            [datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)],
            [0],
        )
