import re
from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transom.core.intervals import (
    HOUR,
    UNKNOWN_HOUR,
    Interval,
    format_hour,
    format_hours,
    hour_of,
    merge_hours,
    parse,
)

TEN = datetime(2015, 5, 17, 10, tzinfo=UTC)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TICK = timedelta(microseconds=1)


def exactly(text: str) -> str:
    return rf"\A{re.escape(text)}\Z"


def hours(start: int, end: int) -> Interval:
    return Interval(TEN + start * HOUR, TEN + end * HOUR)


@pytest.mark.parametrize(
    "text",
    [
        "2015-05-17T10:00",
        "2015-05-17T10:00:00",
        "2015-05-17 10:00",
        "2015-05-17T10",
        "2015-05-17T10:00Z",
        "2015-05-17T10:00+00:00",
        "2015-05-17T15:30+05:30",
        " 2015-05-17T10:00 ",
    ],
)
def test_hour_without_a_zone_is_utc(text: str) -> None:
    assert parse(text) == TEN
    assert parse(text).tzinfo is UTC


def test_date_alone_is_its_first_hour() -> None:
    assert parse("2015-05-17") == TEN - 10 * HOUR


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("yesterday", "from: must be a time such as 2015-05-17T10:00; got 'yesterday'"),
        ("", "from: must be a time such as 2015-05-17T10:00; got ''"),
        ("2015-05-17T10:30", "from: must be on the hour, in UTC; got '2015-05-17T10:30'"),
        ("2015-05-17T10:00:00.000001", "from: must be on the hour, in UTC; got '2015-05-17T10:00:00.000001'"),
        ("2015-05-17T10:00+05:30", "from: must be on the hour, in UTC; got '2015-05-17T10:00+05:30'"),
        (
            "0001-01-01T00:00+01:00",
            "from: must be a time such as 2015-05-17T10:00; got '0001-01-01T00:00+01:00'",
        ),
    ],
)
def test_invalid_hour_is_refused_with_place_rule_and_value(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=exactly(message)):
        parse(text, "from")


@pytest.mark.parametrize(
    ("start", "end", "message"),
    [
        ("2015-05-17T10:00", "2015-05-17T10:00", "from 2015-05-17T10:00 to 2015-05-17T10:00"),
        ("2015-05-17T11:00", "2015-05-17T10:00", "from 2015-05-17T11:00 to 2015-05-17T10:00"),
    ],
)
def test_empty_interval_is_refused(start: str, end: str, message: str) -> None:
    with pytest.raises(
        ValueError, match=exactly(f"from: must be before to, which is exclusive; got {message}")
    ):
        Interval.parse(start, end)


def test_invalid_interval_names_the_wrong_end() -> None:
    with pytest.raises(ValueError, match=r"^to: must be on the hour, in UTC; got '2015-05-17T10:01'$"):
        Interval.parse("2015-05-17T10:00", "2015-05-17T10:01")
    with pytest.raises(ValueError, match=r"^from: must have a zone, such as UTC; got 2015-05-17T10:00:00$"):
        Interval(TEN.replace(tzinfo=None), TEN)
    with pytest.raises(
        ValueError, match=r"^to: must be on the hour, in UTC; got 2015-05-17T11:00:00\+00:30$"
    ):
        Interval(TEN, datetime(2015, 5, 17, 11, tzinfo=timezone(timedelta(minutes=30))))


def test_equal_instants_of_different_zones_are_equal_intervals() -> None:
    kolkata = timezone(timedelta(hours=5, minutes=30))
    local = Interval(TEN.astimezone(kolkata), (TEN + HOUR).astimezone(kolkata))
    assert local == hours(0, 1)
    assert str(local) == "[2015-05-17T10:00, 2015-05-17T11:00)"
    assert format_hour(TEN.astimezone(kolkata)) == "2015-05-17T10:00"


def test_instant_belongs_to_the_hour_that_contains_it() -> None:
    #   10        11        12
    #   [---------[---------[
    #   x        x x
    assert hour_of(TEN) == TEN
    assert hour_of(TEN + HOUR - TICK) == TEN
    assert hour_of(TEN + HOUR) == TEN + HOUR


def test_time_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^instant: must have a zone"):
        hour_of(TEN.replace(tzinfo=None))


def test_hours_and_containment_exclude_the_end() -> None:
    #   10   11   12   13
    #   [---------[
    interval = hours(0, 2)
    assert list(interval.hours()) == [TEN, TEN + HOUR]
    assert len(interval) == 2
    assert TEN in interval
    assert TEN + 2 * HOUR - TICK in interval
    assert TEN + 2 * HOUR not in interval
    assert TEN - TICK not in interval
    assert Interval.of_hour(TEN) == hours(0, 1)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (timedelta(0), timedelta(0), (0, 1)),
        (HOUR, timedelta(0), (-1, 1)),
        (timedelta(0), 2 * HOUR, (0, 3)),
        (TICK, TICK, (-1, 2)),
        (HOUR + TICK, timedelta(minutes=59), (-2, 2)),
    ],
)
def test_widening_rounds_outward(before: timedelta, after: timedelta, expected: tuple[int, int]) -> None:
    assert hours(0, 1).widen(before, after) == hours(*expected)


def test_widening_does_not_narrow() -> None:
    with pytest.raises(ValueError, match=r"^before: must not be negative; got -1 day, 23:00:00$"):
        hours(0, 1).widen(before=-HOUR)
    with pytest.raises(ValueError, match=r"^after: must not be negative"):
        hours(0, 1).widen(after=-TICK)


def test_chunks_are_neighbours_and_the_last_is_shorter() -> None:
    #   0    1    2    3    4    5
    #   [---------[---------[----[
    assert list(hours(0, 5).chunks(2 * HOUR)) == [hours(0, 2), hours(2, 4), hours(4, 5)]
    assert list(hours(0, 5).chunks(9 * HOUR)) == [hours(0, 5)]


@pytest.mark.parametrize("length", [timedelta(0), -HOUR, timedelta(minutes=90), timedelta(minutes=30)])
def test_chunks_are_whole_hours(length: timedelta) -> None:
    with pytest.raises(ValueError, match=r"^length: must be a whole number of hours, at least one; got "):
        list(hours(0, 5).chunks(length))


def test_ranges_join_neighbours_only() -> None:
    #   0    1    2    3    4    5
    #   x    x         x    x         given in any order, some twice
    #   [---------[    [---------[
    given_hours = [TEN + n * HOUR for n in (4, 0, 1, 3, 1)]
    assert merge_hours(given_hours) == [hours(0, 2), hours(3, 5)]
    assert merge_hours([]) == []


def test_ranges_accept_full_hours_only() -> None:
    with pytest.raises(ValueError, match=r"^from: must be on the hour"):
        merge_hours([TEN + timedelta(minutes=1)])


some_hours = st.lists(st.integers(0, 60), max_size=30).map(lambda ns: [EPOCH + n * HOUR for n in ns])


@given(some_hours)
def test_ranges_contain_exactly_the_hours_and_are_not_adjacent(chosen: list[datetime]) -> None:
    result = merge_hours(chosen)
    assert [hour for one in result for hour in one.hours()] == sorted(set(chosen))
    assert all(a.end < b.start for a, b in pairwise(result))


@given(st.integers(1, 100), st.integers(1, 30))
def test_chunks_contain_every_hour_once(length: int, size: int) -> None:
    whole = hours(0, length)
    parts = list(whole.chunks(size * HOUR))
    assert [hour for part in parts for hour in part.hours()] == list(whole.hours())
    assert all(len(part) <= size for part in parts)


# The bounds of the strategy are local times.
@given(st.datetimes(datetime(1971, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)))  # noqa: DTZ001
def test_hour_of_an_instant_matches_its_definition(moment: datetime) -> None:
    assert hour_of(moment) <= moment < hour_of(moment) + HOUR


@given(st.integers(0, 10**6).map(lambda n: EPOCH + n * HOUR))
def test_written_hour_reads_back_unchanged(hour: datetime) -> None:
    assert parse(format_hour(hour)) == hour


def test_described_hours_have_exclusive_ends() -> None:
    day = datetime(2015, 5, 17, tzinfo=UTC)
    hours = [day + number * HOUR for number in (4, 1, 2, 1)]
    assert format_hours(hours) == "2015-05-17T01:00 to 2015-05-17T03:00, 2015-05-17T04:00"
    assert format_hours([UNKNOWN_HOUR, day]) == "files without an hour, 2015-05-17T00:00"
    assert format_hours([]) == ""
