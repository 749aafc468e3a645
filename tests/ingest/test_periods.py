"""Names with the end of the period that a file covers, and the missing files of an hour."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from transom.core.intervals import HOUR
from transom.core.path_pattern import PathPattern
from transom.features.ingest.checks import hour_checks
from transom.features.ingest.expected_inputs import ExpectedInputs
from transom.features.ingest.hour_states import Periods
from transom.stream import SpecificationError, Stream, parse

FIVE = timedelta(minutes=5)
PATH = "%Y/%m/%d/lb_%Y%m%dT%H%MZ_*.log.gz"


def stream(path: str = PATH, **source: Any) -> Stream:
    source = {"path": path, "covers": "5 minutes", "name_time": "end"} | source
    return parse({"name": "lb", "preset": "apache/combined", "source": source})


def at(hour: int, minute: int = 0) -> datetime:
    return datetime(2024, 5, 28, hour, minute, tzinfo=UTC)


def name(hour: int, minute: int, more: str = "a") -> str:
    return f"2024/05/28/lb_20240528T{hour:02}{minute:02}Z_{more}.log.gz"


def test_file_named_after_its_end_belongs_to_the_hour_of_its_period() -> None:
    match = stream().source.pattern.match(name(7, 0))
    assert match is not None
    assert (match.start, match.end, match.hour) == (at(6, 55), at(7), at(6))
    assert stream().source.pattern.match(name(7, 5)).hour == at(7)  # type: ignore[union-attr]
    # A name with the start of a period longer than its minute.
    match = stream(name_time="start").source.pattern.match(name(7, 0))
    assert match is not None
    assert (match.start, match.end) == (at(7), at(7, 5))


def test_time_range_of_a_file_depends_on_its_period() -> None:
    of = stream(event_time_range={"before": "1 minute", "after": "0 seconds"})
    match = of.source.pattern.match(name(7, 0))
    assert match is not None
    span = of.span(match)
    assert span is not None
    assert (span.start, span.end) == (at(5, 59), at(7))


@pytest.mark.parametrize(
    ("text", "zone", "covers", "path", "start", "end"),
    [
        # A day whose name has the date of the next day, in a zone where it has 23 hours.
        (
            "%Y-%m-%d",
            "Europe/Berlin",
            timedelta(days=1),
            "2024-04-01",
            "2024-03-30T23:00",
            "2024-03-31T22:00",
        ),
        ("%Y-%m-%dT%H", "UTC", HOUR, "2024-05-28T07", "2024-05-28T06:00", "2024-05-28T07:00"),
        ("%Y-%m-%dT%H", "UTC", 6 * HOUR, "2024-05-28T06", "2024-05-28T00:00", "2024-05-28T06:00"),
        # Elapsed time, where the clock has jumped.
        ("%Y-%m-%dT%H", "Europe/Berlin", HOUR, "2024-03-31T03", "2024-03-31T00:00", "2024-03-31T01:00"),
    ],
)
def test_periods_of_hours_and_days_have_the_expected_bounds(
    text: str, zone: str, covers: timedelta, path: str, start: str, end: str
) -> None:
    pattern = PathPattern(text, zone, covers, ends=True)
    match = pattern.match(path)
    assert match is not None
    assert match.start == datetime.fromisoformat(f"{start}+00:00")
    assert match.end == datetime.fromisoformat(f"{end}+00:00")
    assert pattern.format_hour_path(match.start) == path


def test_hour_lacks_files_of_its_periods_including_one_named_after_the_next_hour() -> None:
    periods = Periods.of(stream())
    assert periods is not None
    there = [name(6, minute) for minute in range(5, 60, 5)]
    assert periods.uncovered(there, at(6)) == (at(6, 55),)
    assert periods.words(at(6, 55)) == (
        "no file of 2024-05-28T06:55:00 to 07:00:00: 2024/05/28/lb_20240528T0700Z_*.log.gz"
    )
    assert periods.uncovered([*there, name(7, 0)], at(6)) == ()
    assert periods.uncovered([], at(6)) == tuple(at(6, minute) for minute in range(0, 60, 5))
    # Several files of one period do not count for another.
    assert periods.uncovered([*there, name(6, 55, "b")], at(6)) == (at(6, 55),)


def test_files_with_other_start_and_end_minutes_cover_the_time_between() -> None:
    periods = Periods.of(stream())
    assert periods is not None
    there = [name(6, minute) for minute in range(3, 60, 5)]
    assert periods.uncovered([*there, name(7, 3)], at(6)) == ()
    assert periods.uncovered(there, at(6)) == (at(6, 55),)


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ({"covers": None}, "source.name_time: end requires covers"),
        ({"covers": "7 minutes"}, "source.covers: must divide one hour"),
        ({"covers": "90 minutes"}, "or be whole hours; got 90 minutes"),
        ({"covers": "0 minutes"}, "source.covers: must divide one hour"),
        (
            {"covers": "30 seconds"},
            "must not be shorter than the finest part of the time in the path, a minute",
        ),
        ({"path": "lb_*.log"}, "source.covers: requires a time in the path; got 5 minutes for lb_*.log"),
    ],
)
def test_impossible_periods_are_refused(source: dict[str, Any], problem: str) -> None:
    with pytest.raises(SpecificationError) as error:
        stream(**source)
    assert problem in str(error.value)


def test_check_of_missing_files_applies_to_streams_with_periods() -> None:
    checks = [check.name for check in hour_checks(stream())]
    assert "periods_covered" in checks
    plain = stream(covers=None, name_time="start")
    assert "periods_covered" not in [check.name for check in hour_checks(plain)]
    daily = stream("%Y-%m-%d.log", covers="1 day")
    assert "periods_covered" not in [check.name for check in hour_checks(daily)]
    # The meaning of a name is part of the rows: hours computed before are stale.
    assert ExpectedInputs(stream()).expected(at(6)) != ExpectedInputs(stream(name_time="start")).expected(
        at(6)
    )
