"""Files with any names as a landing folder: the meaning of their names, their hours, how they land."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from transom.cli.adhoc_files import (
    first_remarks,
    hours_cut_to,
    interval_of,
    link_into_landing,
    named,
    other_hours,
    scan_file,
)
from transom.cli.arguments import NoEventsError, UsageError
from transom.core.intervals import HOUR, Interval
from transom.core.path_pattern import PathPattern
from transom.features.ingest.hour_states import Periods
from transom.features.ingest.landing import list_files
from transom.stream import parse

STREAM = """
name: web
preset: apache/combined
source: {path: "landing/{site}/%Y-%m-%d/access.%H.log", expected_files: 1,
         event_time_range: {before: 1 hour, after: 1 hour}}
"""
DATA = yaml.safe_load(STREAM)


def day(hour: int) -> datetime:
    return datetime(2015, 5, 17, hour, tzinfo=UTC)


def log(file: Path, *hours: int) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    line = '10.0.0.1 - - [{:%d/%b/%Y:%H:%M:%S} +0000] "GET / HTTP/1.1" 200 1 "-" "agent"\n'
    file.write_text("".join(line.format(day(0) + timedelta(hours=hour)) for hour in hours))
    return file


@pytest.fixture(autouse=True)
def _landing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRANSOM_LANDING", str(tmp_path / "try"))


def test_file_matching_the_pattern_must_follow_its_name(tmp_path: Path) -> None:
    stream = parse(DATA)
    file = scan_file(stream, log(tmp_path / "north/2015-05-17/access.10.log", 10, 11, 20))
    assert (file.lines, file.events, dict(file.reasons)) == (3, 2, {"outside_holds": 1})
    assert file.hours == {day(10): (1, 1), day(11): (1, 2)}
    interval = interval_of([file])
    assert interval == Interval(day(10), day(12))
    landed = link_into_landing(DATA, stream, [file], tmp_path / "try", interval, interval.end)
    assert (landed.notes, landed.stream.source.expected_files, landed.stream.chunk) == (
        (),
        1,
        timedelta(hours=2),
    )
    (result,) = list_files(landed.stream.source.pattern).values()
    assert (result.path, result.hour, result.captures) == (
        "landing/2015-05-17T10/north/1-access.10.log",
        day(10),
        {"site": "north"},
    )


@pytest.mark.parametrize(("hours", "first", "end"), [((9,), 9, 11), ((11,), 10, 12), ((10,), 10, 11)])
def test_hour_in_a_file_name_is_tried(tmp_path: Path, hours: tuple[int, ...], first: int, end: int) -> None:
    file = scan_file(parse(DATA), log(tmp_path / "north/2015-05-17/access.10.log", *hours))
    assert interval_of([file]) == Interval(day(first), day(end))


def test_rejected_value_is_shown_with_its_column(tmp_path: Path) -> None:
    lines = ['{"at": "2015-05-17T10:00:00Z", "n": 1.5}', "junk"]
    file = tmp_path / "any.log"
    file.write_text("\n".join(lines))
    counted = yaml.safe_load("""
name: app
source: {path: "in/%Y-%m-%d.log", format: json}
columns: {n: {type: integer}}
time: {column: at}
""")
    result = scan_file(parse(counted), file).examples
    assert result["bad_type"] == [(1, lines[0], "n: bad type: 1.5; expected a whole number")]
    assert result["bad_json"][0][2].startswith("bad json: ")


def test_file_with_another_name_may_have_any_hours(tmp_path: Path) -> None:
    stream = parse(DATA)
    files = [scan_file(stream, log(tmp_path / folder / "other.log", 10, 20)) for folder in ("a", "b")]
    assert [file.events for file in files] == [2, 2]
    covered = interval_of(files)
    longer = Interval(covered.start, covered.end + 5 * HOUR)
    landed = link_into_landing(DATA, stream, files, tmp_path / "try", longer, covered.end)
    # Hours after the files are run as well, and no file is missing there.
    assert (landed.stream.chunk, landed.stream.until) == (len(longer) * HOUR, covered.end)
    assert landed.notes == (
        f"{tmp_path}/a/other.log is not named as in source.path: `event_time_range` and "
        "`expected_files` are not tried",
        "site: not in a file's path, taken as 'try'",
    )
    result = list_files(landed.stream.source.pattern)
    assert {path: (file.hour, file.captures) for path, file in result.items()} == {
        "landing/try/1-other.log": (None, {"site": "try"}),
        "landing/try/2-other.log": (None, {"site": "try"}),
    }
    assert (landed.stream.source.expected_files, landed.stream.source.pattern.unit) == (None, None)


def test_times_far_apart_are_refused_with_the_outliers(tmp_path: Path) -> None:
    file = scan_file(parse(DATA), log(tmp_path / "odd.log", 0, 1, 2, 24 * 400, 3))
    texts = (
        r"must lie within 8784 hours; they cover 9601, .*odd.log, line 4: 2016-06-20T00:00. To continue "
        r"without these hours, add --from 2015-05-17T00:00 --to 2015-05-17T04:00$"
    )
    with pytest.raises(UsageError, match=texts):
        interval_of([file])


def test_file_without_events_is_reported_with_its_line_count(tmp_path: Path) -> None:
    junk = tmp_path / "junk.log"
    junk.write_text("one\ntwo\n")
    file = scan_file(parse(DATA), junk)
    assert file.examples == {
        "no_match": [
            (1, "one", "no match; expected the common or the combined log form"),
            (2, "two", "no match; expected the common or the combined log form"),
        ]
    }
    with pytest.raises(UsageError, match=rf"^{junk}: none of 2 lines is an event$"):
        interval_of([file])


@pytest.mark.parametrize(
    ("pattern", "path", "captures"),
    [
        ("landing/%Y/{site}.%m%d.log", "/x/landing/2015/north.0517.log", {"site": "north"}),
        ("s3://bucket/{a}/{b}/%Y-%m-%d.log", "/x/one/two/2015-05-17.log", {"a": "one", "b": "two"}),
        ("landing/{site}/%Y-%m-%d.log", "2015-05-17.log", {}),
        ("landing/%Y-%m-%d/%H.log", "/x/10.log", None),
        ("landing/web.log", "/y/web.log", {}),
    ],
)
def test_name_is_parsed_with_the_end_of_the_pattern(
    tmp_path: Path, pattern: str, path: str, captures: dict[str, str] | None
) -> None:
    match = named(PathPattern(pattern), Path("/") / path)
    assert (None if match is None else match.captures) == captures


@pytest.mark.parametrize(
    ("zone", "hours", "text"),
    [
        (None, (10, 11), None),
        (
            None,
            (9, 30),
            "2015-05-17T10:00 to 2015-05-17T11:00 UTC, and none of its events is; the first is of "
            "2015-05-17T09:00:00 UTC: if names are in local time, set `source.zone`, such as "
            "Europe/Berlin",
        ),
        (None, (), None),
        (
            None,
            (12, 13),
            "2015-05-17T10:00 to 2015-05-17T11:00 UTC, and none of its events is; the first is of "
            "2015-05-17T12:00:00 UTC: if names are in local time, set `source.zone`, such as "
            "Europe/Berlin",
        ),
        ("America/New_York", (14,), None),
        (
            "America/New_York",
            (10, 13),
            "2015-05-17T14:00 to 2015-05-17T15:00 UTC, and none of its events is; the first is of "
            "2015-05-17T10:00:00 UTC: is `source.zone`, America/New_York, that of the names?",
        ),
    ],
)
def test_name_with_other_hours_than_all_events_is_reported_with_a_cause(
    tmp_path: Path, zone: str | None, hours: tuple[int, ...], text: str | None
) -> None:
    stream = parse({**DATA, "source": {**DATA["source"], **({"zone": zone} if zone else {})}})
    file = log(tmp_path / "north/2015-05-17/access.10.log", *hours)
    texts = None if text is None else f"{file}: by its name it is of {text}"
    assert other_hours(stream, scan_file(stream, file)) == texts


def test_only_the_first_of_many_file_remarks_are_printed() -> None:
    remarks = [f"{name}.log: is late" for name in "abcdefg"]
    assert first_remarks(remarks) == [*remarks[:3], "and the same of 4 more files"]
    assert first_remarks(remarks[:4]) == [*remarks[:3], "and the same of 1 more file"]
    assert first_remarks(remarks[:3]) == remarks[:3]


def test_texts_name_files_as_given(tmp_path: Path) -> None:
    """Not by the names under which they have landed."""
    stream = parse(DATA)
    files = [scan_file(stream, log(tmp_path / folder / "other.log", 10)) for folder in ("a", "b")]
    covered = interval_of(files)
    landed = link_into_landing(DATA, stream, files, tmp_path / "try", covered, covered.end)
    text = "quarantined: landing/try/2-other.log: junk, landing/try/1-other.log: junk"
    assert landed.named(text) == f"quarantined: {tmp_path}/b/other.log: junk, {tmp_path}/a/other.log: junk"


def test_texts_name_missing_files_as_declared(tmp_path: Path) -> None:
    """Not by the pattern of the links."""
    source = {"path": "lb/{zone}/%Y-%m-%d/x_%H%M*.log", "covers": "20 minutes", "name_time": "end"}
    data = {"name": "web", "preset": "apache/combined", "source": source}
    stream = parse(data)
    file = scan_file(stream, log(tmp_path / "lb/a/2015-05-17/x_1020_1.log", 10))
    covered = interval_of([file])
    landed = link_into_landing(data, stream, [file], tmp_path / "try", covered, covered.end)
    periods = Periods.of(landed.stream)
    assert periods is not None
    assert landed.named(periods.words(day(10) + timedelta(minutes=40))) == (
        "no file of 2015-05-17T10:40:00 to 11:00:00: lb/{zone}/2015-05-17/x_1100*.log"
    )
    # Of another form than the links.
    assert landed.named("s3://landing/x*, landing/web/*") == "s3://landing/x*, landing/web/*"


@pytest.mark.parametrize(
    ("path", "name"),
    [("landing/%Y-%m-%d/{host}.%H.log", ".10.log"), ("%Y-%m-%d/access.%H.{host}", "access.10.")],
)
def test_empty_capture_in_a_name_is_refused_by_name(tmp_path: Path, path: str, name: str) -> None:
    stream = parse(DATA | {"source": {"path": path}})
    file = log(tmp_path / "landing/2015-05-17" / name, 10)
    with pytest.raises(UsageError) as error:
        scan_file(stream, file)
    assert str(error.value) == (
        f"{file}: {{host}} of source.path, {path}, must have a text in each name; it is empty in this one, "
        "and a job does not publish such a file"
    )
    # A file with another name is read, with any name.
    assert scan_file(stream, log(tmp_path / "other.log", 10)).events == 1


def test_file_named_after_its_end_is_tried_in_its_period(tmp_path: Path) -> None:
    data = {
        "name": "web",
        "preset": "apache/combined",
        "source": {"path": "%Y-%m-%d/access.%H.log", "covers": "1 hour", "name_time": "end"},
    }
    stream = parse(data)
    file = scan_file(stream, log(tmp_path / "2015-05-17/access.11.log", 10))
    assert (file.match.start, file.match.end) == (day(10), day(11))  # type: ignore[union-attr]
    assert other_hours(stream, file) is None
    interval = interval_of([file])
    assert interval == Interval(day(10), day(11))
    landed = link_into_landing(data, stream, [file], tmp_path / "try", interval, interval.end)
    (result,) = list_files(landed.stream.source.pattern).values()
    assert (result.path, result.hour) == ("landing/2015-05-17T11/1-access.11.log", day(10))


@pytest.mark.parametrize("name", ["odd.log", "north/2015-05-17/access.10.log"])
def test_file_is_cut_to_the_requested_hours(tmp_path: Path, name: str) -> None:
    """Its other events are rejected and reported; the check on rejected lines allows as many more."""
    path = log(tmp_path / name, 10, 10, 10, 11)
    file = scan_file(parse(DATA), path)
    only = Interval(day(10), day(11))
    assert hours_cut_to([file], only) == only
    landed = link_into_landing(DATA, parse(DATA), [file], tmp_path / "try", only, only.end, only)
    assert landed.notes[0] == (
        f"{path}: 1 of 4 events are outside of {only} and omitted: line 4 of 2015-05-17T11:00"
    )
    (result,) = list_files(landed.stream.source.pattern).values()
    match = landed.stream.source.pattern.match(result.path)
    assert match is not None
    span = landed.stream.span(match)
    assert span is not None
    assert (span.start, span.end) == (only.start, only.end)
    (gate,) = [gate for gate in landed.stream.gates if gate.name == "rejected_share"]
    assert gate.at_most == 0.05 + 1 / 4


def test_files_are_cut_only_if_they_have_other_hours(tmp_path: Path) -> None:
    file = scan_file(parse(DATA), log(tmp_path / "odd.log", 10, 11))
    assert hours_cut_to([file], Interval(day(9), day(12))) is None
    with pytest.raises(NoEventsError, match=r"odd.log: no event is in .2015-05-17T12.*; events are of .*T10"):
        hours_cut_to([file], Interval(day(12), day(13)))


def test_files_whose_names_are_times_are_not_cut(tmp_path: Path) -> None:
    data = {
        "name": "k",
        "source": {"path": "%Y-%m-%dT%H.csv", "format": "csv", "options": {"header": True}},
        "columns": {"a": {"type": "integer"}},
        "time": {"lines": "1 minute", "from": "name"},
    }
    stream = parse(data)
    path = tmp_path / "2015-05-17T10.csv"
    path.write_text("a\n1\n")
    only = Interval(day(11), day(12))
    with pytest.raises(UsageError, match="must hold all events of files whose times count from their names"):
        link_into_landing(data, stream, [scan_file(stream, path)], tmp_path / "try", only, only.end, only)
