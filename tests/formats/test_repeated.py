"""The repeated local hour: which lines are in the second one, and how many are ambiguous."""

import io
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transom.formats.event_time import Order, repeats
from transom.formats.read_file import Chunk, FileSummary, read_file
from transom.formats.record_format import EventTime, Field, RecordFormat, Span

FIRST = datetime(2024, 10, 27, 0, tzinfo=UTC)
"""In Berlin 02:00, for the first time; an hour later it is 02:00 again."""
HOUR = 3_600_000_000


def read(
    texts: list[str],
    span: Span | None = None,
    form: str = "iso",
    zone: str = "Europe/Berlin",
    block: int = 60,
) -> tuple[list[str], FileSummary]:
    """Return the UTC times of some local ones, in a file of one line each."""
    layout = RecordFormat("csv", (Field("at", ("at",)),), EventTime(("at",), (), form, zone), {})
    source = io.BytesIO("".join(f"{text}\n" for text in ["at", *texts]).encode())
    times: list[str] = []
    for part in read_file(source, "x.csv", layout, span, block=block, threads=1):
        if isinstance(part, Chunk):
            times += [time.strftime("%d %H:%M") for time in part.events["event_time"].to_pylist()]
        else:
            summary = part
    return times, summary


def night(*clock: str) -> list[str]:
    return [f"2024-10-27 {time}:00" for time in clock]


@pytest.mark.parametrize("block", [1, 25, 60, 1000])
def test_order_of_lines_distinguishes_the_two_hours(block: int) -> None:
    clock = [f"{hour:02}:{minute:02}" for hour in (1, 2, 2, 3) for minute in range(0, 60, 10)]
    times, summary = read(night(*clock), block=block)
    assert times == [
        f"{26 + (hour > -1):02} {hour % 24:02}:{minute:02}"
        for hour in (-1, 0, 1, 2)
        for minute in range(0, 60, 10)
    ]
    assert (summary.ambiguous, summary.ambiguous_line) == (0, None)


@pytest.mark.parametrize(
    ("clock", "times", "ambiguous", "line"),
    [
        # A line an hour: equal times may be two events of one moment.
        (["01:30", "02:30", "02:30", "03:30"], ["26 23:30", "27 00:30", "27 00:30", "27 02:30"], 2, 3),
        # One hour alone may be either.
        (["01:50", "02:10", "02:40", "03:10"], ["26 23:50", "27 00:10", "27 00:40", "27 02:10"], 2, 3),
        (["02:10", "02:40"], ["27 00:10", "27 00:40"], 2, 2),
        # A step back by less than half an hour may be two lines in the wrong order.
        (["02:20", "02:10", "03:00"], ["27 00:20", "27 00:10", "27 02:00"], 2, 2),
        (
            ["02:20", "02:50", "02:20", "02:19", "02:50"],
            ["27 00:20", "27 00:50", "27 01:20", "27 01:19", "27 01:50"],
            0,
            None,
        ),
        # Several devices, one after the other: each has its own night.
        (
            ["02:00", "02:30", "02:00", "02:30", "03:00", "01:30", "02:00", "02:30", "02:00", "02:30"],
            [
                "27 00:00",
                "27 00:30",
                "27 01:00",
                "27 01:30",
                "27 02:00",
                "26 23:30",
                "27 00:00",
                "27 00:30",
                "27 01:00",
                "27 01:30",
            ],
            0,
            None,
        ),
        # Without a line in between it is unknown where one ends.
        (
            ["02:00", "02:30", "02:00", "02:30", "02:00", "02:30"],
            ["27 00:00", "27 00:30", "27 01:00", "27 01:30", "27 00:00", "27 00:30"],
            2,
            6,
        ),
        (["02:00", "02:00"], ["27 00:00", "27 00:00"], 2, 2),
    ],
)
@pytest.mark.parametrize("block", [1, 30, 1000])
def test_times_ambiguous_by_order_are_counted(
    clock: list[str], times: list[str], ambiguous: int, line: int | None, block: int
) -> None:
    result, summary = read(night(*clock), block=block)
    assert result == times
    assert (summary.ambiguous, summary.ambiguous_line) == (ambiguous, line)


def test_time_range_of_a_file_distinguishes_the_hours_too() -> None:
    late = Span(FIRST + timedelta(hours=1), FIRST + timedelta(hours=3))
    assert read(night("02:10", "02:40"), late)[0] == ["27 01:10", "27 01:40"]
    early = Span(FIRST, FIRST + timedelta(hours=1))
    for span in (late, early):
        assert read(night("02:10", "02:40"), span)[1].ambiguous == 0
    assert read(night("02:10", "02:40"), early)[0] == ["27 00:10", "27 00:40"]


def test_times_with_an_offset_are_not_ambiguous() -> None:
    texts = ["2024-10-27T02:10:00+01:00", "2024-10-27 02:10:00+02", "2024-10-27T00:10:00Z"]
    times, summary = read(texts)
    assert times == ["27 01:10", "27 00:10", "27 00:10"]
    assert summary.ambiguous == 0
    assert read(["27.10.2024 02:10 CET"], form="%d.%m.%Y %H:%M %Z")[0] == ["27 01:10"]
    assert read(["2024-10-27"])[1].ambiguous == 0


@pytest.mark.parametrize(
    ("zone", "text", "ambiguous"),
    [
        ("Australia/Lord_Howe", "2024-04-07 01:45:00", 1),  # half an hour is repeated
        ("Australia/Lord_Howe", "2024-04-07 01:15:00", 0),
        ("America/New_York", "2024-11-03 01:30:00", 1),
        ("America/New_York", "2024-03-10 01:30:00", 0),
        ("Asia/Tokyo", "2024-10-27 02:30:00", 0),
        ("UTC", "2024-10-27 02:30:00", 0),
    ],
)
def test_repeated_hour_is_that_of_the_zone(zone: str, text: str, ambiguous: int) -> None:
    assert read([text], zone=zone)[1].ambiguous == ambiguous


def by_line(times: list[int], shifts: list[int]) -> tuple[list[int], int]:
    """Apply the documented rule, line by line."""
    resolved, ambiguous, run, backs = list(times), 0, [], 0
    for index in range(len(times) + 1):
        if index < len(times) and shifts[index]:
            if run and times[index - 1] - times[index] >= shifts[index] // 2:
                backs += 1
            run.append(index)
            if backs == 1:
                resolved[index] += shifts[index]
            ambiguous += backs > 1
            continue
        ambiguous += len(run) if not backs else 0
        run, backs = [], 0
    return resolved, ambiguous


@given(
    st.lists(st.tuples(st.integers(0, 11), st.booleans()), max_size=30),
    st.lists(st.integers(0, 30), max_size=4),
)
def test_result_does_not_depend_on_the_split_of_a_file(rows: list[tuple[int, bool]], cuts: list[int]) -> None:
    times = [place * HOUR // 12 for place, _ in rows]
    shifts = [HOUR if twice else 0 for _, twice in rows]
    order, result = Order(), list[int]()
    bounds = sorted({0, *(min(cut, len(rows)) for cut in cuts), len(rows)})
    for low, high in pairwise(bounds):
        part = [
            np.array(values[low:high], dtype=np.int64) for values in (times, shifts, list(range(len(rows))))
        ]
        result += order.resolve(*part).tolist()
    order.end()
    assert (result, order.ambiguous) == by_line(times, shifts)


def test_only_times_of_the_first_of_two_hours_may_mean_the_second() -> None:
    start = int(FIRST.timestamp()) * 1_000_000
    micros = np.array([start - 1, start, start + HOUR - 1, start + HOUR], dtype=np.int64)
    text = pa.array(["2024-10-27 02:00:00"] * 4)
    assert repeats(text, micros, "iso", "Europe/Berlin").tolist() == [0, HOUR, HOUR, 0]


def test_times_of_other_columns_are_in_the_first_hour_and_not_counted() -> None:
    """The documented rule: only the event's time is resolved."""
    layout = RecordFormat(
        "csv",
        (Field("seen", ("seen",), "timestamp", time_format="iso", zone="Europe/Berlin"),),
        EventTime(("at",), (), "iso", "Europe/Berlin"),
        {},
    )
    rows = [f"{at},{at}" for at in night("02:50", "02:10")]
    parts = list(read_file(io.BytesIO("\n".join(["at,seen", *rows, ""]).encode()), "x.csv", layout, None))
    events = [event for part in parts if isinstance(part, Chunk) for event in part.events.to_pylist()]
    assert [(f"{event['event_time']:%H:%M}", f"{event['seen']:%H:%M}") for event in events] == [
        ("00:50", "00:50"), ("01:10", "00:10"),
    ]  # fmt: skip
    assert [part.ambiguous for part in parts if isinstance(part, FileSummary)] == [0]
