import re
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transom.core.path_pattern import Match, PathPattern


def exactly(text: str) -> str:
    return rf"\A{re.escape(text)}\Z"


def at(*parts: int) -> datetime:
    year, month, day, *clock = parts
    hour, minute, second = [*clock, 0, 0, 0][:3]
    return datetime(year, month, day, hour, minute, second, tzinfo=UTC)


def test_hourly_file_is_matched() -> None:
    pattern = PathPattern("landing/web/%Y-%m-%d/access.%H*.log.gz")
    assert pattern.base == "landing/web"
    assert pattern.unit == "hour"
    match = pattern.match("landing/web/2015-05-17/access.10.log.gz")
    assert match == Match({}, at(2015, 5, 17, 10), at(2015, 5, 17, 11), "hour")
    assert match.hour == at(2015, 5, 17, 10)
    assert pattern.match("landing/web/2015-05-17/access.10-part2.log.gz") == match


@pytest.mark.parametrize(
    "path",
    [
        "landing/web/2015-05-17/access.10.log",
        "landing/web/2015-05-17/access.1.log.gz",
        "landing/web/2015-05-17/access.10/x.log.gz",
        "landing/web/2015-05-17/access.10xlogxgz",
        "x/landing/web/2015-05-17/access.10.log.gz",
        "landing/web/2015-05-17/access.10.log.gz\n",
        "landing/web/2015-13-17/access.10.log.gz",
        "landing/web/2015-02-29/access.10.log.gz",
        "landing/web/2015-05-17/access.24.log.gz",
        "landing/web/0000-05-17/access.10.log.gz",
        "landing/web/٢٠١٥-05-17/access.10.log.gz",
    ],
)
def test_other_names_and_nonexistent_times_do_not_match(path: str) -> None:
    assert PathPattern("landing/web/%Y-%m-%d/access.%H*.log.gz").match(path) is None


@pytest.mark.parametrize(
    ("text", "path", "start", "end", "unit"),
    [
        ("%Y/x", "2016/x", at(2016, 1, 1), at(2017, 1, 1), "year"),
        ("%Y-%m.log", "2015-12.log", at(2015, 12, 1), at(2016, 1, 1), "month"),
        ("%Y-%b.log", "2015-FEB.log", at(2015, 2, 1), at(2015, 3, 1), "month"),
        ("%Y%m%d.log", "20150517.log", at(2015, 5, 17), at(2015, 5, 18), "day"),
        ("%y%m%d.log", "690517.log", at(1969, 5, 17), at(1969, 5, 18), "day"),
        ("%y%m%d.log", "150517.log", at(2015, 5, 17), at(2015, 5, 18), "day"),
        ("%Y.%j.log", "2016.366.log", at(2016, 12, 31), at(2017, 1, 1), "day"),
        ("%Y%m%d%H%M", "201505171059", at(2015, 5, 17, 10, 59), at(2015, 5, 17, 11), "minute"),
        (
            "%Y%m%dT%H%M%S",
            "20150517T105958",
            at(2015, 5, 17, 10, 59, 58),
            at(2015, 5, 17, 10, 59, 59),
            "second",
        ),
    ],
)
def test_span_is_the_declared_one(text: str, path: str, start: datetime, end: datetime, unit: str) -> None:
    match = PathPattern(text).match(path)
    assert match is not None
    assert (match.start, match.end, match.unit) == (start, end, unit)


def test_pattern_without_a_time_is_matched() -> None:
    match = PathPattern("logs/app*.log").match("logs/app-1.log")
    assert match == Match({})
    assert match.hour is None


def test_repeated_parts_must_agree() -> None:
    pattern = PathPattern("%Y/%m/%Y-%m-%d.log")
    assert pattern.match("2015/05/2015-05-17.log") is not None
    assert pattern.match("2015/05/2015-06-17.log") is None
    both = PathPattern("%Y-%m-%d/%j.log")
    assert both.match("2015-02-01/032.log") is not None
    assert both.match("2015-02-01/033.log") is None
    years = PathPattern("%Y/%y%m.log")
    assert years.match("2015/1505.log") is not None
    assert years.match("2015/1605.log") is None
    months = PathPattern("%Y-%m/%b.log")
    assert months.match("2015-05/May.log") is not None
    assert months.match("2015-05/Jun.log") is None
    assert PathPattern("%Y/%j.log").match("2015/366.log") is None


def test_captures_are_texts_within_one_folder() -> None:
    pattern = PathPattern("in/{site}/{host}-%Y.log")
    assert pattern.captures == ("site", "host")
    match = pattern.match("in/a b/w-1-2015.log")
    assert match is not None
    assert match.captures == {"site": "a b", "host": "w-1"}
    assert pattern.match("in/a/b/w-2015.log") is None
    twice = PathPattern("{host}/{host}.log")
    assert twice.captures == ("host",)
    assert twice.match("a/a.log") is not None
    assert twice.match("a/b.log") is None


@pytest.mark.parametrize(
    ("pattern", "path", "captures", "empty"),
    [
        ("{host}-%Y.log", "-2015.log", {"host": ""}, ("host",)),
        ("{a}-{b}.log", "-.log", {"a": "", "b": ""}, ("a", "b")),
        # A split that leaves none empty counts before one that does.
        ("{a}-{b}.log", "x-y-.log", {"a": "x", "b": "y-"}, ()),
        ("{a}-{b}.log", "-y-.log", {"a": "-y", "b": ""}, ("b",)),
        ("access{a}.log", "access.log", {"a": ""}, ("a",)),
    ],
)
def test_name_with_an_empty_capture_is_distinguished(
    pattern: str, path: str, captures: dict[str, str], empty: tuple[str, ...]
) -> None:
    match = PathPattern(pattern).match(path)
    assert match is not None
    assert (match.captures, match.empty) == (captures, empty)


def test_other_names_do_not_match_even_with_empty_captures() -> None:
    assert PathPattern("{host}-%Y.log").match("-x.log") is None
    assert PathPattern("in/{site}/a.log").match("in//a.log") is not None  # such a path is never listed
    assert PathPattern("in/{site}/a.log").match("in/a.log") is None


def test_other_characters_match_literally() -> None:
    pattern = PathPattern("in/c+.(x) [1]$^|?/conn.%H:00:00-*%%-%Y%m%d.log.gz")
    assert pattern.match("in/c+.(x) [1]$^|?/conn.05:00:00-06:00:00%-20240419.log.gz") is not None
    assert pattern.match("in/cc.(x) [1]$^|?/conn.05:00:00-06:00:00%-20240419.log.gz") is None
    assert pattern.base == "in/c+.(x) [1]$^|?"


@pytest.mark.parametrize(
    ("text", "base"),
    [
        ("a/b/c.log", "a/b"),
        ("a/b*/c.log", "a"),
        ("*.log", ""),
        ("/%Y/c.log", "/"),
        ("/data/{host}/c.log", "/data"),
        ("s3://bucket/a/%Y/c.log", "s3://bucket/a"),
        ("s3://bucket/%Y/c.log", "s3://bucket"),
        ("file:///data/%Y.log", "file:///data"),
        ("file:///%Y.log", "file://"),
        ("a/100%%/%Y.log", "a/100%"),
    ],
)
def test_base_is_the_folder_before_the_first_capture(text: str, base: str) -> None:
    assert PathPattern(text).base == base


def test_times_are_parsed_in_the_zone_of_the_names() -> None:
    pattern = PathPattern("%Y-%m-%d.%H", "Asia/Kolkata")
    match = pattern.match("2015-05-17.10")
    assert match is not None
    assert (match.start, match.end) == (at(2015, 5, 17, 4, 30), at(2015, 5, 17, 5, 30))
    assert match.hour == at(2015, 5, 17, 4)


@pytest.mark.parametrize("text", ["%Y-%m-%d.%H", "{host}/*.%Y%m%dT%H%M.log"])
@pytest.mark.parametrize(
    ("zone", "second", "named"),
    [
        ("Europe/Berlin", at(2015, 10, 25, 1), False),
        # The name 03 means 17:30 UTC, which is in the second hour.
        ("Australia/Adelaide", at(2015, 4, 4, 17), True),
        ("UTC", at(2015, 10, 25, 1), True),
    ],
)
def test_second_of_a_repeated_local_hour_has_no_name(
    text: str, zone: str, second: datetime, named: bool
) -> None:
    pattern = PathPattern(text, zone)
    assert pattern.can_name(second) is named
    assert pattern.can_name(second - timedelta(hours=1))
    assert pattern.can_name(second + timedelta(hours=1))


@pytest.mark.parametrize(
    ("path", "start", "end"),
    [
        # Clocks in Berlin go from 2:00 to 3:00 on 2015-03-29 at 1:00 UTC ...
        ("2015-03-29.01", at(2015, 3, 29, 0), at(2015, 3, 29, 1)),
        ("2015-03-29.02", at(2015, 3, 29, 1), at(2015, 3, 29, 2)),
        ("2015-03-29.03", at(2015, 3, 29, 1), at(2015, 3, 29, 2)),
        # ... and from 3:00 back to 2:00 on 2015-10-25 at 1:00 UTC: the name 02 means both.
        ("2015-10-25.01", at(2015, 10, 24, 23), at(2015, 10, 25, 0)),
        ("2015-10-25.02", at(2015, 10, 25, 0), at(2015, 10, 25, 2)),
        ("2015-10-25.03", at(2015, 10, 25, 2), at(2015, 10, 25, 3)),
    ],
)
def test_hours_around_a_clock_change_have_the_expected_names(
    path: str, start: datetime, end: datetime
) -> None:
    match = PathPattern("%Y-%m-%d.%H", "Europe/Berlin").match(path)
    assert match is not None
    assert (match.start, match.end) == (start, end)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must name files, not a folder; got ''"),
        ("a/b/", "must name files, not a folder; got 'a/b/'"),
        ("a/../b", "must not climb with `..`; got 'a/../b'"),
        ("s3://b/../c", "must not climb with `..`; got 's3://b/../c'"),
        ("a//b", "must not hold an empty folder or `.`; got 'a//b'"),
        ("./b", "must not hold an empty folder or `.`; got './b'"),
        ("a\nb", "must not hold control characters; got 'a\\nb'"),
        ("s3://b/c://d", "must not hold an empty folder or `.`; got 's3://b/c://d'"),
        ("b/c://d", "must not hold an empty folder or `.`; got 'b/c://d'"),
        ("s3://%Y/b", "must not hold a hole in a URI's bucket or host; got 's3://%Y/b'"),
        ("a/%Q", "unknown time part %Q; known: %Y %y %m %b %d %j %H %M %S; got 'a/%Q'"),
        ("a/%", "unknown time part %; known: %Y %y %m %b %d %j %H %M %S; got 'a/%'"),
        ("a/%H", "a time with its hour must also have its year; got 'a/%H'"),
        ("a/%Y%d", "a time with its day must also have its month; got 'a/%Y%d'"),
        ("a/%Y%m%d%M", "a time with its minute must also have its hour; got 'a/%Y%m%d%M'"),
        (
            "a/{Host}",
            "a capture is lower-case letters, digits and underscores, a letter first; got {Host} "
            "in 'a/{Host}'",
        ),
        ("a/{}", "a capture is lower-case letters, digits and underscores, a letter first; got {} in 'a/{}'"),
        ("a/{host", "a brace without its partner; got 'a/{host'"),
        ("a/host}", "a brace without its partner; got 'a/host}'"),
        ("a/**/b", "`**` is not known, `*` stays inside a folder; got 'a/**/b'"),
    ],
)
def test_invalid_pattern_is_refused_with_rule_and_value(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=exactly(message)):
        PathPattern(text)


@given(st.text(max_size=40))
def test_any_text_is_a_valid_pattern_or_a_value_error(text: str) -> None:
    try:
        pattern = PathPattern(text)
    except ValueError:
        return
    pattern.match(text)


@given(st.datetimes(datetime(1970, 1, 1), datetime(2200, 1, 1)))  # noqa: DTZ001 - local times are drawn
def test_written_name_reads_back_unchanged(local: datetime) -> None:
    text = "in/%Y/%j/%m-%d_%H.%M*"
    match = PathPattern(text).match(local.strftime(text.replace("*", "x")))
    assert match is not None
    assert match.start == local.replace(second=0, microsecond=0, tzinfo=UTC)
    assert match.end == match.start + timedelta(minutes=1)
    assert PathPattern(text).format_hour_path(match.start) == local.strftime(text)


@pytest.mark.parametrize(
    ("folder", "may"),
    [
        ("in/2015", True),
        ("in/2015/north", True),
        ("in/2015/north/2015-05", True),
        ("in/2015/north/2016-05", False),
        ("in/lost+found", False),
        ("in/2015/north/2015-05/x", False),
        ("in", True),
        ("out", False),
    ],
)
def test_folder_may_contain_files_if_its_name_fits_the_pattern(folder: str, may: bool) -> None:
    assert PathPattern("in/%Y/{site}/%Y-%m/access.*").can_contain(folder) is may
    assert PathPattern("s3://in/%Y/{site}/%Y-%m/access.*").can_contain(f"s3://{folder}") is may
