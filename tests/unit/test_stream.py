"""A stream's file: what it gives, and the exact text of everything that it refuses."""

# ruff: noqa: E501 - in the table of refusals, a case a line can be read down; wrapped, it cannot

import json
import pickle
import re
import subprocess
import sys
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from transom.formats.layout import ByLines, EventTime, Field, Layout, Span
from transom.paths import Match
from transom.stream import BUILT_IN, Level, SpecificationError, Stream, Unique, load, parse
from transom.stream.windows import check_levels, common_granule

STREAMS = Path(__file__).parents[2] / "schemas" / "streams"
HOUR = timedelta(hours=1)
TEN = datetime(2015, 5, 17, 10, tzinfo=UTC)


def base() -> dict[str, Any]:
    """A small stream without a preset."""
    return {
        "name": "app",
        "source": {"path": "in/{host}/%Y-%m-%d.%H.json", "format": "json"},
        "columns": {
            "user": "who.name | user",
            "status": {"type": "integer"},
            "took": {"from": "ms", "type": "number", "resolution": 0.001, "unit": "ms"},
            "ok": {"type": "boolean"},
        },
        "time": {"column": "at"},
        "key": ["user"],
        "aggregate": {
            "load": {
                "measures": {"n": "count", "slow": "max(took)"},
                "levels": "RANGES 1 HOUR SLIDES 5 MINUTES",
            }
        },
    }


def changed(**changes: Any) -> dict[str, Any]:
    """The stream with values set, or taken out where they are `...`: `source__path=...`."""
    data = deepcopy(base())
    for path, value in changes.items():
        *folders, last = path.split("__")
        place = data
        for folder in folders:
            place = place.setdefault(folder, {})
        if value is ...:
            del place[last]
        else:
            place[last] = value
    return data


def refusal(data: dict[str, Any]) -> str:
    with pytest.raises(SpecificationError) as error:
        parse(data, "app.yaml")
    return str(error.value)


def exactly(text: str) -> str:
    return rf"\A{re.escape(text)}\Z"


def test_a_stream_has_its_defaults() -> None:
    stream = parse(base())
    assert stream.heal == timedelta(days=2)
    assert stream.chunk == timedelta(days=7)
    assert stream.schedule
    assert not stream.catchup
    assert stream.source.settle == timedelta(minutes=10)
    assert stream.source.holds.before == timedelta(days=1)
    assert stream.source.holds.after == HOUR
    assert stream.source.on_change == "hold"
    assert stream.source.expect is None
    assert stream.stages == ("ingest", "aggregate")
    assert parse(changed(aggregate=...)).stages == ("ingest",)


def test_a_stream_does_not_change() -> None:
    stream = parse(base())
    with pytest.raises(ValidationError, match="frozen"):
        stream.name = "other"


def test_columns_are_the_declared_ones_then_the_captures() -> None:
    stream = parse(base())
    assert stream.captures == ("host",)
    assert stream.event_columns == {
        "user": Field("user", ("who.name", "user")),
        "status": Field("status", ("status",), "integer"),
        "took": Field("took", ("ms",), "number", "0.001"),
        "ok": Field("ok", ("ok",), "boolean"),
        "host": Field("host", ("host",)),
    }
    assert list(stream.event_columns) == ["user", "status", "took", "ok", "host"]


def test_the_layout_is_what_a_parser_is_told() -> None:
    data = changed(
        time={"column": "took | at", "plus": "took", "format": "%d/%m/%Y %H:%M", "zone": "Europe/Berlin"},
        columns__seen={"type": "timestamp", "zone": "UTC", "missing": ["-"]},
        columns__since={"type": "timestamp", "format": "epoch_ms"},
    )
    layout = parse(data).layout()
    assert isinstance(layout, Layout)
    assert layout.format == "json"
    assert [field.name for field in layout.fields] == ["user", "status", "took", "ok", "seen", "since"]
    # `took` names a declared column, whose value stands in `ms`; `took | at` is a path of its own.
    assert layout.time == EventTime(("took", "at"), ("ms",), "%d/%m/%Y %H:%M", "Europe/Berlin")
    assert layout.fields[4] == Field(
        "seen", ("seen",), "timestamp", missing=("-",), time_format="iso", zone="UTC"
    )
    assert layout.fields[5] == Field("since", ("since",), "timestamp", time_format="epoch_ms")
    assert not layout.keep_rest


@pytest.mark.parametrize(
    ("time", "told"),
    [
        ({"column": ["took | d", "at", "ok"]}, EventTime(("took", "d"), more=(("at",), ("ok",)))),
        ({"lines": "1 second", "from": "name"}, EventTime((), by_lines=ByLines(1_000_000))),
        (
            {"lines": "5 ms", "from": "1970-01-02T01:00+01:00"},
            EventTime((), by_lines=ByLines(5_000, 86_400_000_000)),
        ),
        ({"lines": "5 ms", "from": "1970-01-02"}, EventTime((), by_lines=ByLines(5_000, 86_400_000_000))),
    ],
)
def test_a_time_is_joined_of_fields_or_counted_by_lines(time: dict[str, Any], told: EventTime) -> None:
    assert parse(changed(time=time)).layout().time == told


def test_what_is_kept_has_a_column_after_the_declared_ones() -> None:
    stream = parse(changed(rest="keep"))
    assert stream.layout().keep_rest
    assert list(stream.event_columns) == ["user", "status", "took", "ok", "rest", "host"]
    assert stream.event_types["rest"] == "string"


@pytest.mark.parametrize(
    ("written", "text"), [(0.001, "0.001"), ("0.0010", "0.001"), (1e-6, "0.000001"), (5, "5"), (100, "100")]
)
def test_a_resolution_is_plain_decimal_text(written: object, text: str) -> None:
    stream = parse(changed(columns__took={"type": "number", "resolution": written}))
    assert stream.event_columns["took"].resolution == text


def test_levels_are_read_from_text_or_a_list() -> None:
    text = parse(changed(aggregate__load__levels="ranges 6 hours, 1 h slides 1 HOUR, 90 s")).aggregate["load"]
    listed = parse(
        changed(
            aggregate__load__levels=[
                {"range": "6 hours", "slide": "1 hour"},
                {"range": "1 hour", "slide": "90 seconds"},
            ]
        )
    ).aggregate["load"]
    assert text == listed
    assert text.levels[0] == Level(range=6 * HOUR, slide=HOUR)
    assert text.levels[-1].slide == timedelta(seconds=90)
    assert text.base == timedelta(seconds=90)


@pytest.mark.parametrize(
    ("slides", "granule"),
    [([3600], 3600), ([7200], 3600), ([5400], 1800), ([900, 600], 300), ([7], 1), ([86400, 3600, 60], 60)],
)
def test_the_base_granule_divides_every_slide_and_the_hour(slides: list[int], granule: int) -> None:
    found = common_granule([timedelta(seconds=slide) for slide in slides])
    assert found == timedelta(seconds=granule)


def test_a_block_has_the_streams_key_and_condition_unless_it_says_otherwise() -> None:
    levels = "RANGES 1 HOUR SLIDES 1 HOUR"
    data = changed(
        where="status = 1",
        aggregate__all={"key": [], "where": "ok", "measures": {"n": "count"}, "levels": levels},
    )
    stream = parse(data)
    assert (stream.aggregate["load"].key, stream.aggregate["load"].where) == (("user",), "status = 1")
    assert (stream.aggregate["all"].key, stream.aggregate["all"].where) == ((), "ok")
    found = stream.condition("all")
    assert found is not None
    assert found.sql == "`ok`"
    assert parse(base()).condition("load") is None


def test_a_key_may_be_a_capture() -> None:
    assert parse(changed(key=["host", "user"])).aggregate["load"].key == ("host", "user")


@pytest.mark.parametrize(
    ("start", "end", "unit", "expected"),
    [
        (TEN, TEN + HOUR, "hour", (TEN - 24 * HOUR, TEN + 2 * HOUR)),
        (TEN - 10 * HOUR, TEN + 14 * HOUR, "day", (TEN - 34 * HOUR, TEN + 15 * HOUR)),
        (
            TEN + timedelta(minutes=55),
            TEN + timedelta(minutes=56),
            "minute",
            (TEN - 24 * HOUR, TEN + 2 * HOUR),
        ),
        (
            TEN + timedelta(minutes=30),
            TEN + timedelta(minutes=90),
            "hour",
            (TEN - timedelta(hours=23.5), TEN + timedelta(hours=2.5)),
        ),
    ],
)
def test_what_a_file_may_hold(
    start: datetime, end: datetime, unit: Any, expected: tuple[datetime, datetime]
) -> None:
    #          before        the name's stretch        after
    #   [----------------|------------------------|-----------[
    assert parse(base()).span(Match({}, start, end, unit)) == Span(*expected)


def test_a_file_without_a_time_in_its_name_may_hold_anything() -> None:
    assert parse(base()).span(Match({})) is None


def test_the_built_in_checks_are_there_unasked() -> None:
    stream = parse(base())
    assert [gate.name for gate in stream.gates] == list(BUILT_IN)
    assert all(gate.built_in for gate in stream.gates)
    rejected = next(gate for gate in stream.gates if gate.name == "rejected_share")
    assert (rejected.stage, rejected.severity, rejected.at_most) == ("ingest", "error", 0.05)
    severities = {gate.name: gate.severity for gate in stream.gates}
    assert severities["files_expected"] == severities["file_readable"] == "incomplete"


def test_checks_are_changed_turned_off_and_added() -> None:
    data = changed(
        checks={
            "rejected_share": {"at_most": 0, "severity": "warning"},
            "times_inside_hour": {"off": True},
            "enough": {"stage": "ingest", "rows": {"at_least": 10}, "severity": "incomplete"},
            "answered": {"stage": "ingest", "every": "status > 0", "share": 0.9},
            "few": {"stage": "aggregate", "block": "load", "every": "n < 100 and user is not null"},
        }
    )
    stream = parse(data)
    gates = {gate.name: gate for gate in stream.gates}
    assert "times_inside_hour" not in gates
    assert (gates["rejected_share"].at_most, gates["rejected_share"].severity) == (0.0, "warning")
    assert gates["enough"].rows is not None
    assert (gates["enough"].rows.at_least, gates["enough"].rows.at_most) == (10, None)
    assert (gates["answered"].every, gates["answered"].share) == ("status > 0", 0.9)
    assert gates["answered"].severity == "error"
    assert (gates["few"].stage, gates["few"].block) == ("aggregate", "load")
    assert gates["granules_add_up"].block is None


def test_acceptances_are_read() -> None:
    item = {
        "hour": "2015-05-17T10:00",
        "stage": "ingest",
        "check": "rejected_share",
        "observed": 0.25,
        "who": "ann",
        "why": "a test of the format",
    }
    (accepted,) = parse(changed(accept=[item])).accept
    assert (accepted.hour, accepted.observed) == (TEN, 0.25)


BLOCK = {"key": [], "measures": {"n": "count"}, "levels": "RANGES 1 HOUR SLIDES 1 HOUR"}
ACCEPT = {
    "hour": "2015-05-17T10:00",
    "stage": "ingest",
    "check": "rejected_share",
    "observed": 1,
    "who": "a",
    "why": "b",
}


def pattern(text: str) -> dict[str, Any]:
    return {"source__format": "regex", "source__options": {"pattern": text}}


def refused(rule: str, text: str, place: int) -> str:
    return f"source.options.pattern: {rule}\n    {text}\n    {' ' * place}^"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        # one field
        ({"name": "Web"}, "name: must be lower-case letters, digits and underscores, a letter first, at most 63; got 'Web'"),
        ({"name": "web\n"}, "name: must be lower-case letters, digits and underscores, a letter first, at most 63; got 'web\\n'"),
        ({"name": ...}, "name: is required"),
        ({"name": 5}, "name: must be text (in quotes, if it looks like something else); got 5"),
        ({"title": ""}, "title: must not be empty; got ''"),
        ({"tags": "web"}, "tags: must be a list; got 'web'"),
        ({"aggregat": {}}, "unknown field 'aggregat'; nearest: aggregate"),
        ({"patterns": {}}, "unknown field 'patterns'; known: name, title, description, owner, tags, preset, source, columns, time, rest, unique, key, where, aggregate, checks, accept, heal, retention, start, until, schedule, catchup, submit, chunk"),
        ({"source__pth": "x"}, "source: unknown field 'pth'; nearest: path"),
        ({"source__holds": {"befor": "1 day"}}, "source.holds: unknown field 'befor'; nearest: before"),
        ({"columns__user": {"frm": "x"}}, "columns.user: unknown field 'frm'; nearest: from"),
        ({"columns__user": {"iz": "x"}}, "columns.user: unknown field 'iz'; known: from, is, type, unit, resolution, missing, format, zone"),
        ({"aggregate__load__measure": {}}, "aggregate.load: unknown field 'measure'; nearest: measures"),
        ({"accept": [{**ACCEPT, "whi": "x"}]}, "accept[0]: unknown field 'whi'; nearest: why"),
        ({"schedule": "yes"}, "schedule: must be true or false; got 'yes'"),
        ({"submit": "all"}, "submit: must be one of 'each', 'together'; got 'all'"),
        ({"heal": 2}, "heal: must be a whole number and a unit, such as 5 minutes; got 2"),
        ({"heal": "90 minutes"}, "heal: must be whole hours; got 90 minutes"),
        ({"retention": "48 hours"}, "retention: must be whole hours, and no less than heal and the widest range together, 49 hours; got 2 days"),
        ({"chunk": "0 hours"}, "chunk: must be whole hours, at least one; got 0 seconds"),
        ({"chunk": "90 minutes"}, "chunk: must be whole hours, at least one; got 90 minutes"),
        ({"start": "2015-05-17T10:30"}, "start: must be on the hour, in UTC; got '2015-05-17T10:30'"),
        ({"start": "monday"}, "start: must be a time such as 2015-05-17T10:00; got 'monday'"),
        ({"start": 2015}, "start: must be a time such as 2015-05-17T10:00; got 2015"),
        ({"start": "2015-05-17T10:00", "until": "2015-05-17T10:00"}, "until: must be after start; got start 2015-05-17T10:00, until 2015-05-17T10:00"),
        ({"catchup": True}, "catchup: needs start, the first hour to catch up with"),
        ({"catchup": True, "schedule": False, "start": "2015-05-17T10:00"}, "catchup: needs schedule, which is false"),
        # source
        ({"source": "x"}, "source: must be a mapping; got 'x'"),
        ({"source__path": "a/../b"}, "source.path: must not climb with `..`; got 'a/../b'"),
        ({"source__path": "a/%H"}, "source.path: a time with its hour must also have its year; got 'a/%H'"),
        ({"source__path": 5}, "source.path: must be text (in quotes, if it looks like something else); got 5"),
        ({"source__zone": "Europe/Berln"}, "source.zone: must be an IANA time zone; got 'Europe/Berln'; nearest: Europe/Berlin"),
        ({"source__zone": "../etc"}, "source.zone: must be an IANA time zone; got '../etc'"),
        ({"source__format": "xml"}, "source.format: must be one of 'apache', 'zeek', 'csv', 'json', 'regex', 'kv', 'syscalls'; got 'xml'"),
        ({"source__format": ...}, "source.format: is required where no preset gives it"),
        ({"source__on_change": "drop"}, "source.on_change: must be one of 'hold', 'replace'; got 'drop'"),
        ({"source__connection": "s3"}, "source: unknown field 'connection'; known: path, zone, format, options, holds, settle, expect, on_change"),
        ({"source__expect": 0}, "source.expect: must be at least 1; got 0"),
        ({"source__expect": "1"}, "source.expect: must be a whole number; got '1'"),
        ({"source__options": {"a": 1}}, "source.options: unknown option 'a' of json; known: records"),
        ({"source__format": "csv", "source__options": {"delimeter": ","}}, "source.options: unknown option 'delimeter' of csv; nearest: delimiter"),
        ({"source__format": "csv", "source__options": {"delimiter": ",,"}}, "source.options.delimiter: must be one character; got ',,'"),
        ({"source__format": "csv", "source__options": {"header": "no"}}, "source.options.header: must be true or false; got 'no'"),
        ({"source__format": "csv", "source__options": {"header": False}}, "source.options.names: is required where header is false"),
        ({"source__format": "csv", "source__options": {"names": ["a", "a"]}}, "source.options.names: must be a list of different names; got ['a', 'a']"),
        ({"source__format": "zeek", "source__options": {"variant": "xml"}}, "source.options.variant: must be one of auto, tsv, json; got 'xml'"),
        ({"source__options": {"records": "Records"}}, "source.options.records: must be the path of a list, such as Records[]; got 'Records'"),
        ({"source__options": {"records": "a..b[]"}}, "source.options.records: must be the path of a list, such as Records[]; got 'a..b[]'"),
        ({"source__format": "kv", "source__options": {"assign": "=="}}, "source.options.assign: must be one ASCII character, and no backslash; got '=='"),
        ({"source__format": "kv", "source__options": {"quote": "\\"}}, "source.options.quote: must be one ASCII character, and no backslash; got '\\\\'"),
        ({"source__format": "kv", "source__options": {"separator": "="}}, "source.options: must be three different characters; got separator '=', assign '=', quote '\"'"),
        ({"source__format": "syscalls", "source__options": {"lead": ["time", "time"]}}, "source.options.lead: must be a list of different names; got ['time', 'time']"),
        ({"source__format": "syscalls", "source__options": {"lead": ["call"]}}, "source.options.lead: call is a field that every line has; choose another"),
        # regular expressions
        ({"source__format": "regex"}, "source.options.pattern: is required by regex: a regular expression with named groups"),
        ({"source__format": "regex", "source__options": {"pattern": 5}}, "source.options.pattern: must be a regular expression with named groups; got 5"),
        (pattern(r"(\S+) (?:\S+)"), refused("must name its fields by groups, as (?P<client>[^ ]+) does; it has none", r"(\S+) (?:\S+)", 0)),
        (pattern("(?P<a>.) (?P<a>.)"), refused("the group 'a' is there twice", "(?P<a>.) (?P<a>.)", 13)),
        (pattern("(?P<a>x"), refused("no regular expression: missing ), unterminated subpattern", "(?P<a>x", 0)),
        (pattern("(?P<a>x)[z-a]"), refused("no regular expression: bad character range z-a", "(?P<a>x)[z-a]", 9)),
        (pattern("(?P<a>(a+)+)"), refused("(a+)+ repeats what itself repeats without bound", "(?P<a>(a+)+)", 6)),
        (pattern(r"(?P<a>x) (?:\w+\s?)*"), refused(r"(?:\w+\s?)* repeats what itself repeats without bound", r"(?P<a>x) (?:\w+\s?)*", 9)),
        (pattern("(?P<a>x)(?:b*c?){11}"), refused("(?:b*c?){11} repeats what itself repeats without bound", "(?P<a>x)(?:b*c?){11}", 8)),
        (pattern("(?P<a>x)(?=y)"), refused("a look ahead is not known here", "(?P<a>x)(?=y)", 8)),
        (pattern("(?<!y)(?P<a>x)"), refused("a look behind is not known here", "(?<!y)(?P<a>x)", 0)),
        (pattern(r"(?P<a>x)\1"), refused("a back reference is not known here", r"(?P<a>x)\1", 8)),
        (pattern("(?P<a>x)(?P=a)"), refused("a back reference is not known here", "(?P<a>x)(?P=a)", 8)),
        (pattern("(?P<a>x)(?>y)"), refused("an atomic group is not known here", "(?P<a>x)(?>y)", 8)),
        (pattern("(?P<a>x)y++"), refused("a possessive repeat is not known here", "(?P<a>x)y++", 10)),
        (pattern("(?P<a>x)?(?(a)y|z)"), refused("a conditional is not known here", "(?P<a>x)?(?(a)y|z)", 9)),
        (pattern("(?P<a>x)y{1001}"), refused("repeats a part at most 1000 times; got 1001", "(?P<a>x)y{1001}", 9)),
        (pattern("(?P<a>(?:y{40}){40})"), refused("repeats a part at most 1000 times; got 1600", "(?P<a>(?:y{40}){40})", 15)),
        (pattern(r"(?P<a>x)\Z"), refused(r"\Z is not known here", r"(?P<a>x)\Z", 8)),
        (pattern("(?P<a>x)(?x: y)"), refused("of the flags, i, m and s are known here; got x", "(?P<a>x)(?x: y)", 8)),
        ({**pattern("(?P<user>.) (?P<status>.)"), "columns": {"usr": "usr | name", "status": {"type": "integer"}}, "key": [], "aggregate": ...}, "2 problems\n  columns.usr.from: regex records have no field 'usr | name'; known: user, status\n  time.column: regex records have no field 'at'; known: user, status"),
        ({**pattern("(?P<date>.) (?P<user>.)"), "columns": {}, "key": [], "aggregate": ..., "time": {"column": ["date", "tiem"]}}, "time.column[1]: regex records have no field 'tiem'; known: date, user"),
        # columns
        ({"columns__Bad": "x"}, "columns.Bad: must be lower-case letters, digits and underscores, a letter first, at most 63; got 'Bad'"),
        ({"columns__hour": "x"}, "columns.hour: is a column that every stream has; choose another name"),
        ({"columns__host": "x"}, "source.path: {host} is also a declared column; choose another name"),
        ({"source__path": "{hour}.log"}, "source.path: {hour} is a column that every stream has; choose another name"),
        ({"columns__x": None}, "columns.x: must be a path or a mapping; null leaves out a preset's column, and there is none"),
        ({"columns__x": 5}, "columns.x: must be a mapping; got 5"),
        ({"columns__x": "a | "}, "columns.x.from: must be a field's path, or several with | between them; got 'a | '"),
        ({"columns__x": {"type": "float"}}, "columns.x.type: must be one of 'string', 'integer', 'number', 'boolean', 'timestamp'; got 'float'"),
        ({"columns__x": {"type": "number"}}, "columns.x.resolution: is required for a number, such as 0.001"),
        ({"columns__x": {"type": "integer", "resolution": 1}}, "columns.x.resolution: only a number has one; got 1 for type integer"),
        ({"columns__x": {"type": "number", "resolution": 0}}, "columns.x.resolution: must be a decimal from 1e-12 to 1e12, such as 0.001; got 0"),
        ({"columns__x": {"type": "number", "resolution": "fine"}}, "columns.x.resolution: must be a decimal from 1e-12 to 1e12, such as 0.001; got 'fine'"),
        ({"columns__x": {"type": "number", "resolution": "1e99"}}, "columns.x.resolution: must be a decimal from 1e-12 to 1e12, such as 0.001; got '1e99'"),
        ({"columns__x": {"type": "number", "resolution": True}}, "columns.x.resolution: must be a decimal from 1e-12 to 1e12, such as 0.001; got True"),
        ({"columns__x": {"missing": [-1]}}, "columns.x.missing[0]: must be text (in quotes, if it looks like something else); got -1"),
        ({"columns__x": {"format": "epoch"}}, "columns.x.format: only a timestamp has one; got 'epoch' for type string"),
        ({"columns__x": {"zone": "UTC"}}, "columns.x.zone: only a timestamp has one; got 'UTC' for type string"),
        ({"columns__x": {"type": "timestamp", "format": "epoch", "zone": "UTC"}}, "columns.x.zone: times since the epoch have none; got 'UTC'"),
        ({"source__format": "apache", "columns": {"a": "agnt", "user": "user", "took": {"from": "bytes", "type": "integer"}}, "time": {"column": "time"}}, "columns.a.from: apache records have no field 'agnt'; nearest: agent"),
        ({"source__format": "csv", "source__options": {"names": ["user", "status", "ms", "ok", "when"]}}, "time.column: csv records have no field 'at'; known: user, status, ms, ok, when"),
        # time
        ({"time": ...}, "time: is required where no preset gives it"),
        ({"time": {}}, "time: must have either column or lines; it has neither"),
        ({"time": {"column": "at", "lines": "1 s"}}, "time: must have either column or lines; it has both"),
        ({"time": {"column": []}}, "time.column: must be a field's path, or a list of them; got []"),
        ({"time": {"column": 5}}, "time.column: must be a field's path, or a list of them; got 5"),
        ({"time": {"column": ["date", "a | "]}}, "time.column: must be a field's path, or several with | between them; got 'a | '"),
        ({"time": {"column": "at", "from": "name"}}, "time.from: goes with lines, which is missing"),
        ({"time": {"lines": "1 s"}}, "time.from: is required with lines: a time such as 2024-01-01T00:00, or name"),
        ({"time": {"lines": "0 s", "from": "name"}}, "time.lines: must not be nothing; got 0 seconds"),
        ({"time": {"lines": "1 s", "from": "noon"}}, "time.from: must be name, or a time from 1970 to 2261 such as 2024-01-01T00:00; got 'noon'"),
        ({"time": {"lines": "1 s", "from": "1969-12-31T23:59"}}, "time.from: must be name, or a time from 1970 to 2261 such as 2024-01-01T00:00; got '1969-12-31T23:59'"),
        ({"time": {"lines": "1 s", "from": "name", "zone": "UTC"}}, "time.zone: goes with column; times by lines have none"),
        ({"time": {"lines": "1 s", "from": "name", "format": "iso"}}, "time.format: goes with column; times by lines have none"),
        ({"time": {"lines": "1 s", "from": "name"}, "source__path": "{host}.json"}, "time.from: name needs a time in source.path, such as %Y-%m-%d/%H; got '{host}.json'"),
        ({"time": {"column": "at", "ties": "first"}}, "time.ties: goes with every, which is missing"),
        ({"time": {"column": "at", "every": "5 minutes"}}, "time.ties: is required with every, one of first, last, keep"),
        ({"time": {"column": "at", "every": "7 minutes", "ties": "last"}}, "time.every: must divide one hour, as 5 minutes does; got 7 minutes"),
        ({"time": {"column": "at", "every": "0 s", "ties": "last"}}, "time.every: must divide one hour, as 5 minutes does; got 0 seconds"),
        ({"time": {"column": "at", "every": "5 minutes", "ties": "mean"}}, "time.ties: must be one of 'first', 'last', 'keep'; got 'mean'"),
        ({"rest": "maybe"}, "rest: must be one of 'keep', 'drop'; got 'maybe'"),
        ({"rest": "keep", "columns__rest": "x"}, "columns.rest: is the column of what `rest: keep` keeps; choose another name"),
        ({"rest": "keep", "source__path": "{rest}.log"}, "source.path: {rest} is the column of what `rest: keep` keeps; choose another name"),
        ({"time": {"column": "at", "format": "unix"}}, "time.format: must be iso, epoch, epoch_ms, epoch_us, or a strptime format; got 'unix'"),
        ({"time": {"column": "at", "format": "%Y-%Q"}}, "time.format: unknown part %Q in the time format; got '%Y-%Q'"),
        ({"time": {"column": "at", "format": "%H:%M"}}, "time.format: must hold the year, else the time is not known; got '%H:%M'"),
        ({"time": {"column": "at", "format": "epoch", "zone": "UTC"}}, "time.zone: times since the epoch have none; got 'UTC'"),
        # derived columns
        ({"columns__x": {"is": "sttus + 1"}}, "columns.x.is: no column 'sttus'; nearest: status\n    sttus + 1\n    ^"),
        ({"columns__x": {"is": "status + user"}}, "columns.x.is: + takes an integer or a number; got a string\n    status + user\n             ^"),
        ({"columns__x": {"is": "status"}, "columns__y": {"is": "1 + x"}}, "columns.y.is: x is derived, too; a derived column is made of others\n    1 + x\n        ^"),
        ({"columns__x": {"is": "x + 1"}}, "columns.x.is: x is derived, too; a derived column is made of others\n    x + 1\n    ^"),
        ({"columns__x": {"is": "status", "from": "a", "missing": []}}, "2 problems\n  columns.x.from: goes with what is read from a record; the column is derived (`is`)\n  columns.x.missing: goes with what is read from a record; the column is derived (`is`)"),
        ({"columns__x": {"is": "took", "type": "integer"}}, "columns.x.type: must be number, which `is` gives; got integer"),
        ({"columns__x": {"is": "took * 2"}}, "columns.x.resolution: is required for a number, such as 0.001"),
        ({"columns__x": {"is": "status", "type": "number"}}, "columns.x.resolution: is required for a number, such as 0.001"),
        ({"columns__x": {"is": "status", "resolution": 0.1}}, "columns.x.resolution: only a number has one; got 0.1 for type integer"),
        ({"columns__x": {"is": "user"}, "time": {"column": ["x", "at"]}}, "time.column: x is derived; a time is made of a record's own fields"),
        ({"columns__x": {"is": "status"}, "time": {"column": "at", "plus": "x"}}, "time.plus: x is derived; a time is made of a record's own fields"),
        # unique
        ({"unique": "user"}, "unique: must be a mapping; got 'user'"),
        ({"unique": []}, "unique.columns: must have at least 1; got []"),
        ({"unique": ["usr", "user"]}, "unique: no column 'usr'; nearest: user"),
        ({"unique": ["user", "user"]}, "unique: names 'user' more than once"),
        ({"unique": {"columns": ["user"], "kep": "first"}}, "unique: unknown field 'kep'; nearest: keep"),
        ({"unique": {"columns": ["user"], "keep": "last"}}, "unique.keep: must be first, or longest and a column, as longest duration; got 'last'"),
        ({"unique": {"columns": ["user"], "keep": "longest"}}, "unique.keep: must be first, or longest and a column, as longest duration; got 'longest'"),
        ({"unique": {"columns": ["user"], "keep": "longest tok"}}, "unique.keep: no column 'tok'; nearest: took"),
        ({"unique": {"columns": ["user"], "keep": "longest ok"}}, "unique.keep: longest takes an integer or a number; ok is a boolean"),
        # key and where
        ({"key": "user"}, "key: must be a list; got 'user'"),
        ({"key": ["usr"]}, "key[0]: no column 'usr'; nearest: user"),
        ({"key": ["user", "user"]}, "key: names 'user' 2 times"),
        ({"columns__level": "x", "key": ["level"]}, "key[0]: level is a column that every report has; name the column otherwise"),
        ({"where": "status"}, "where: a condition must be a boolean; got an integer\n    status\n    ^"),
        ({"aggregate__load__where": "stats = 1"}, "aggregate.load.where: no column 'stats'; nearest: status\n    stats = 1\n    ^"),
        ({"aggregate__load__key": ["usr"]}, "aggregate.load.key[0]: no column 'usr'; nearest: user"),
        # measures
        ({"aggregate__load__measures": {}}, "aggregate.load.measures: must have at least 1; got {}"),
        ({"aggregate__load__measures": ...}, "aggregate.load.measures: is required"),
        ({"aggregate__load__measures__n": "sum took"}, "aggregate.load.measures.n: must be count, or sum, mean, min or max of a column, as sum(bytes); got 'sum took'"),
        ({"aggregate__load__measures__n": 5}, "aggregate.load.measures.n: must be count, or sum, mean, min or max of a column, as sum(bytes); got 5"),
        ({"aggregate__load__measures__n": "summ(took)"}, "aggregate.load.measures.n: unknown function 'summ' in 'summ(took)'; nearest: sum"),
        ({"aggregate__load__measures__n": "count(took)"}, "aggregate.load.measures.n: count counts records and takes no column; got 'count(took)'"),
        ({"aggregate__load__measures__n": "sum"}, "aggregate.load.measures.n: sum needs a column, as sum(bytes); got 'sum'"),
        ({"aggregate__load__measures__n": "sum(tok)"}, "aggregate.load.measures.n: no column 'tok' in 'sum(tok)'; nearest: took"),
        ({"aggregate__load__measures__n": "max(user)"}, "aggregate.load.measures.n: max takes an integer or a number; user is a string"),
        ({"aggregate__load__measures__n": "sum(ok)"}, "aggregate.load.measures.n: sum takes an integer or a number; ok is a boolean"),
        ({"aggregate__load__measures__level": "count"}, "aggregate.load.measures.level: level is a column that every report has; choose another name"),
        ({"aggregate__load__measures__user": "count"}, "aggregate.load.measures.user: user is a column of the key; choose another name"),
        ({"aggregate__load__measures__max_slow": "count"}, "aggregate.load.measures.max_slow: max_slow is a figure of slow; choose another name"),
        ({"aggregate__load__measures": {"sum_slow": "count", "slow": "max(took)"}}, "aggregate.load.measures.sum_slow: sum_slow is a figure of slow; choose another name"),
        ({"columns__sum_slow": "x", "key": ["sum_slow"]}, "aggregate.load.key: sum_slow is a figure of slow; choose another name"),
        ({"columns__sum_took": {"type": "integer"}, "key": ["sum_took"]}, "aggregate.load.key: sum_took is a column of the granules for took; choose another name"),
        ({"columns__granule": "x", "key": ["granule"]}, "key[0]: granule is a column that every granule has; name the column otherwise"),
        # between blocks
        ({"aggregate__all": {**BLOCK, "measures": {"user": "count"}}}, "aggregate.all.measures.user: user is a column of the key of block load; choose another name"),
        ({"columns__sum_slow": "x", "aggregate__all": {**BLOCK, "key": ["sum_slow"]}}, "aggregate.all.key: sum_slow is a figure of slow of block load; choose another name"),
        ({"columns__min_took": "x", "aggregate__all": {**BLOCK, "key": ["min_took"]}}, "aggregate.all.key: min_took is a column of the granules for took of block load; choose another name"),
        ({"aggregate__all": {**BLOCK, "measures": {"n": "mean(status)"}}}, "aggregate.all.measures.n: n would be a number here and an integer in block load; choose another name"),
        ({"aggregate__all": {**BLOCK, "measures": {"slow": "max(status)"}}}, "aggregate.all.measures.slow: slow would be an integer here and a number in block load; choose another name"),
        ({"aggregate__all": {**BLOCK, "measures": {"sum_slow": "max(status)"}}}, "aggregate.all.measures.sum_slow: sum_slow would be an integer here and a number in block load; choose another name"),
        # levels
        ({"aggregate__load__levels": ...}, "aggregate.load.levels: is required"),
        ({"aggregate__load__levels": []}, "aggregate.load.levels: must have at least 1; got []"),
        ({"aggregate__load__levels": "1 hour"}, "aggregate.load.levels: must read like RANGES 6 HOURS, 1 HOUR SLIDES 1 HOUR, 5 MINUTES, or be a list; got '1 hour'"),
        ({"aggregate__load__levels": "RANGES 2 HOURS, 1 HOUR SLIDES 1 HOUR"}, "aggregate.load.levels: must have as many slides as ranges; got 2 ranges, 1 slides"),
        ({"aggregate__load__levels": "RANGES 2 HOURS, 1 HUOR SLIDES 1 HOUR, 1 HOUR"}, "aggregate.load.levels[1]: unknown unit 'HUOR' in '1 HUOR'; nearest: hour"),
        ({"aggregate__load__levels": "RANGES 1 HOUR SLIDES 0 SECONDS"}, "aggregate.load.levels[0]: level 0 (range 1 hour, slide 0 seconds): the slide must be whole seconds, at least one"),
        ({"aggregate__load__levels": "RANGES 1 HOUR SLIDES 1500 MS"}, "aggregate.load.levels[0]: level 0 (range 1 hour, slide 1500 milliseconds): the slide must be whole seconds, at least one"),
        ({"aggregate__load__levels": "RANGES 6 HOURS, 1 HOUR SLIDES 4 HOURS, 1 HOUR"}, "aggregate.load.levels[0]: level 1 (range 6 hours, slide 4 hours): the range must be a whole multiple of the slide"),
        ({"aggregate__load__levels": "RANGES 0 HOURS SLIDES 1 HOUR"}, "aggregate.load.levels[0]: level 0 (range 0 seconds, slide 1 hour): the range must be a whole multiple of the slide"),
        ({"aggregate__load__levels": "RANGES 1 HOUR, 6 HOURS SLIDES 1 HOUR, 1 HOUR"}, "aggregate.load.levels[0]: level 1 (range 1 hour, slide 1 hour): the range must be longer than level 0's (range 6 hours, slide 1 hour)"),
        ({"aggregate__load__levels": "RANGES 1 HOUR, 1 HOUR SLIDES 1 HOUR, 1 HOUR"}, "aggregate.load.levels[0]: level 1 (range 1 hour, slide 1 hour): the range must be longer than level 0's (range 1 hour, slide 1 hour)"),
        ({"aggregate__load__levels": "RANGES 6 HOURS, 2 HOURS SLIDES 1 HOUR, 2 HOURS"}, "aggregate.load.levels[0]: level 1 (range 6 hours, slide 1 hour): the slide must not be shorter than level 0's (range 2 hours, slide 2 hours)"),
        # checks
        ({"checks": {"rejected_shar": {"at_most": 0.1}}}, "3 problems\n  checks.rejected_shar.at_most: only built-in checks have it; nearest: rejected_share\n  checks.rejected_shar.stage: is required, one of ingest, aggregate (or is it a built-in check; nearest: rejected_share)\n  checks.rejected_shar: must have either every or rows; it has neither"),
        ({"checks": {"rejected_share": {"at_most": 5}}}, "checks.rejected_share.at_most: must be at most 1; got 5"),
        ({"checks": {"rejected_share": {"at_most": "5%"}}}, "checks.rejected_share.at_most: must be a number; got '5%'"),
        ({"checks": {"rejected_share": {"rows": {"at_least": 1}}}}, "checks.rejected_share.rows: rejected_share is built in, only at_most, off, severity may be set"),
        ({"checks": {"hours_bounded": {"at_most": 0.1}}}, "checks.hours_bounded.at_most: hours_bounded is built in, only hours, off, severity may be set"),
        ({"checks": {"hours_bounded": {"hours": 0}}}, "checks.hours_bounded.hours: must be at least 1; got 0"),
        ({"checks": {"file_readable": {"at_most": 0.1}}}, "checks.file_readable.at_most: file_readable is built in, only off, severity may be set"),
        ({"checks": {"x": {"stage": "ingest", "every": "ok", "rows": {"at_least": 1}}}}, "checks.x: must have either every or rows; it has both"),
        ({"checks": {"x": {"stage": "ingest", "rows": {}}}}, "checks.x.rows: must have at_least, at_most or both"),
        ({"checks": {"x": {"stage": "ingest", "rows": {"at_least": 2, "at_most": 1}}}}, "checks.x.rows: at_least must not be above at_most; got at_least 2, at_most 1"),
        ({"checks": {"x": {"stage": "ingest", "rows": {"at_least": 1}, "share": 0.5}}}, "checks.x.share: goes with every, which is missing"),
        ({"checks": {"x": {"stage": "ingest", "every": "stats > 1"}}}, "checks.x.every: no column 'stats'; nearest: status\n    stats > 1\n    ^"),
        ({"checks": {"x": {"stage": "aggregate", "every": "status > 1"}}}, "checks.x.every: no column 'status'; known: level, window_start, window_end, count, user, n, slow\n    status > 1\n    ^"),
        ({"checks": {"x": {"stage": "ingest", "block": "load", "every": "ok"}}}, "checks.x.block: ingest has no blocks; got 'load'"),
        ({"checks": {"x": {"stage": "aggregate", "block": "laod", "every": "ok"}}}, "checks.x.block: no block 'laod'; nearest: load"),
        ({"checks": {"x": {"stage": "ingest", "every": "ok", "severity": "fatal"}}}, "checks.x.severity: must be one of 'error', 'incomplete', 'warning'; got 'fatal'"),
        ({"aggregate": ..., "checks": {"x": {"stage": "aggregate", "every": "true"}}}, "checks.x.stage: the stream has no block of aggregate"),
        # accept
        ({"accept": [{**ACCEPT, "check": "rejected"}]}, "accept[0].check: no check 'rejected'; nearest: rejected_share"),
        ({"accept": [{**ACCEPT, "stage": "aggregate"}]}, "accept[0].stage: rejected_share is a check of ingest; got aggregate"),
        ({"accept": [{**ACCEPT, "observed": "1"}]}, "accept[0].observed: must be a number; got '1'"),
        ({"accept": [{**ACCEPT, "observed": True}]}, "accept[0].observed: must be a number; got True"),
        ({"accept": [{**ACCEPT, "who": ""}]}, "accept[0].who: must not be empty; got ''"),
        ({"accept": [{**ACCEPT, "hour": "2015-05-17T10:05"}]}, "accept[0].hour: must be on the hour, in UTC; got '2015-05-17T10:05'"),
        # preset
        ({"preset": "apache/combned"}, "preset: no preset 'apache/combned'; nearest: apache/combined"),
        ({"preset": "../streams/web"}, "preset: no preset '../streams/web'; known: apache/combined, syscalls/trace, zeek/conn"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_path_rule_and_value(changes: dict[str, Any], message: str) -> None:
    assert refusal(changed(**changes)) == f"app.yaml: {message}"


def test_everything_that_is_wrong_is_said_at_once_in_the_order_of_the_fields() -> None:
    data = changed(
        chunk="90 minutes",
        heal="soon",
        colour="red",
        aggregate__load__levels="RANGES 1 HOUR, 6 HOURS SLIDES 1 HOUR, 4 HOURS",
        aggregate__other={"measures": {"n": "sum(tok)"}, "levels": "RANGES 1 HOUR SLIDES 1 HOUR"},
        key=["usr"],
    )
    assert refusal(data) == (
        "app.yaml: 8 problems\n"
        "  unknown field 'colour'; nearest: columns\n"
        "  key[0]: no column 'usr'; nearest: user\n"
        "  aggregate.load.levels[0]: level 1 (range 1 hour, slide 1 hour): the range must be longer than "
        "level 0's (range 6 hours, slide 4 hours)\n"
        "  aggregate.load.levels[0]: level 1 (range 1 hour, slide 1 hour): the slide must not be shorter "
        "than level 0's (range 6 hours, slide 4 hours)\n"
        "  aggregate.load.levels[1]: level 0 (range 6 hours, slide 4 hours): the range must be a whole "
        "multiple of the slide\n"
        "  aggregate.other.measures.n: no column 'tok' in 'sum(tok)'; nearest: took\n"
        "  heal: must be a whole number and a unit, such as 5 minutes; got 'soon'\n"
        "  chunk: must be whole hours, at least one; got 90 minutes"
    )


def test_a_broken_column_is_not_also_reported_as_missing() -> None:
    assert refusal(changed(columns__took={"type": "number"})) == (
        "app.yaml: columns.took.resolution: is required for a number, such as 0.001"
    )


def test_a_block_with_a_wrong_key_does_not_hide_what_is_wrong_with_its_checks() -> None:
    data = changed(
        aggregate__load__key=["usr"], checks={"x": {"stage": "aggregate", "every": "n > 1", "share": 2}}
    )
    assert refusal(data) == (
        "app.yaml: 2 problems\n"
        "  aggregate.load.key[0]: no column 'usr'; nearest: user\n"
        "  checks.x.share: must be at most 1; got 2"
    )
    data["checks"]["x"]["share"] = 1
    assert refusal(data) == "app.yaml: aggregate.load.key[0]: no column 'usr'; nearest: user"


def test_a_stream_survives_pickling() -> None:
    stream = parse(base())
    assert stream.path_pattern.match("in/h/2015-05-17.10.json") is not None
    copy = pickle.loads(pickle.dumps(stream))
    assert copy == stream
    assert copy.path_pattern.match("in/h/2015-05-17.10.json").hour == TEN
    assert copy.ingest_shape() == stream.ingest_shape()


def test_an_error_survives_pickling() -> None:
    with pytest.raises(SpecificationError) as error:
        parse(changed(name="X"), "app.yaml")
    assert str(pickle.loads(pickle.dumps(error.value))) == str(error.value)


def test_several_blocks_need_the_block_of_a_check() -> None:
    data = changed(
        aggregate__other={"measures": {"n": "count"}, "levels": "RANGES 1 HOUR SLIDES 1 HOUR"},
        checks={"x": {"stage": "aggregate", "every": "n > 1"}},
    )
    assert refusal(data) == (
        "app.yaml: checks.x.block: is required where there are several; known: load, other"
    )


# presets


def test_a_preset_gives_defaults_and_the_stream_goes_before_them() -> None:
    data = {
        "name": "web",
        "preset": "apache/combined",
        "source": {"path": "access.log"},
        "columns": {"agent": None, "bytes": {"type": "integer", "missing": ["-", "?"]}, "page": "path"},
    }
    stream = parse(data)
    assert stream.source.format == "apache"
    assert stream.source.options == {"variant": "combined"}
    assert list(stream.columns) == [
        "client", "ident", "user", "request", "method", "path", "protocol", "status", "bytes", "referer",
        "page",
    ]  # fmt: skip
    assert stream.event_columns["bytes"] == Field("bytes", ("bytes",), "integer", missing=("-", "?"))
    assert stream.event_columns["page"] == Field("page", ("path",))
    assert stream.layout().time == EventTime(("time",), (), "%d/%b/%Y:%H:%M:%S %z")


def test_a_presets_options_go_with_its_format() -> None:
    data = {
        "name": "c",
        "preset": "zeek/conn",
        "source": {"path": "c.csv", "format": "csv", "options": {"delimiter": ";"}},
    }
    assert parse(data).source.options == {"delimiter": ";"}
    data["source"] = {"path": "c.log", "options": {}}
    assert parse(data).source.options == {"variant": "auto"}
    assert refusal({**data, "source": {"path": "c.log", "options": {"variant": "xml"}}}) == (
        "app.yaml: source.options.variant: must be one of auto, tsv, json; got 'xml'"
    )


def test_presets_are_found_where_the_environment_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRANSOM_PRESETS", str(tmp_path))
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "app.yaml").write_text("format: json\ntime: {column: at}\ncolumns: {a: x}\n")
    stream = parse({"name": "app", "preset": "own/app", "source": {"path": "a.json"}})
    assert stream.layout() == Layout("json", (Field("a", ("x",)),), EventTime(("at",)))
    data = {"name": "app", "preset": "own/ap", "source": {"path": "a.json"}}
    assert refusal(data) == "app.yaml: preset: no preset 'own/ap'; nearest: own/app"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("formt: json", "own: unknown field 'formt'; nearest: format"),
        (
            "columns: {a: {type: number}}",
            "own: columns.a.resolution: is required for a number, such as 0.001",
        ),
    ],
)
def test_a_wrong_preset_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, message: str
) -> None:
    monkeypatch.setenv("TRANSOM_PRESETS", str(tmp_path))
    (tmp_path / "own.yaml").write_text(text)
    assert refusal(changed(preset="own")) == f"app.yaml: preset: {message}"


# shapes


@pytest.mark.parametrize(
    "changes",
    [
        {"title": "x"},
        {"owner": "x"},
        {"source__path": "elsewhere/{host}/%Y-%m-%d.%H.json"},
        {"source__settle": "1 hour"},
        {"source__expect": 3},
        {"checks": {"x": {"stage": "ingest", "every": "ok"}}},
        {"accept": [ACCEPT]},
        {"heal": "9 days"},
        {"chunk": "9 days"},
        {"schedule": False},
        {"columns__took": {"from": "ms", "type": "number", "resolution": "0.0010", "unit": "s"}},
        {"aggregate__load__title": "x"},
        {"where": "true", "aggregate__load__where": None},
    ],
)
def test_what_shapes_no_table_changes_no_shape(changes: dict[str, Any]) -> None:
    before, after = parse(base()), parse(changed(**changes))
    assert before.ingest_shape() == after.ingest_shape()
    assert before.granules_shape("load") == after.granules_shape("load")
    assert before.reports_shape("load") == after.reports_shape("load")


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        ({"source__path": "in/{site}/%Y-%m-%d.%H.json"}, {"ingest"}),
        ({"source__path": "in/{host}/%Y-%m-%d.*.json"}, {"ingest"}),
        ({"source__zone": "Europe/Berlin"}, {"ingest"}),
        ({"source__holds": {"before": "2 days"}}, {"ingest"}),
        ({"source__format": "csv"}, {"ingest"}),
        ({"columns__more": "x"}, {"ingest"}),
        ({"columns__user": "user"}, {"ingest"}),
        ({"time__format": "epoch"}, {"ingest"}),
        ({"time__column": ["day", "at"]}, {"ingest"}),
        ({"time": {"lines": "1 s", "from": "name"}}, {"ingest"}),
        ({"rest": "keep"}, {"ingest"}),
        ({"columns__x": {"is": "status"}}, {"ingest"}),
        ({"unique": ["user"]}, {"ingest"}),
        ({"time": {"column": "at", "every": "5 minutes", "ties": "last"}}, {"ingest"}),
        (
            {"columns__took": {"from": "ms", "type": "number", "resolution": 0.01}},
            {"ingest", "granules", "reports"},
        ),
        ({"aggregate__load__where": "ok"}, {"granules"}),
        ({"key": ["host"]}, {"granules", "reports"}),
        ({"aggregate__load__measures__n": "sum(took)"}, {"granules", "reports"}),
        ({"aggregate__load__levels": "RANGES 2 HOURS SLIDES 5 MINUTES"}, {"reports"}),
        ({"aggregate__load__levels": "RANGES 1 HOUR SLIDES 1 MINUTE"}, {"granules", "reports"}),
    ],
)
def test_what_shapes_a_table_changes_its_shape_alone(changes: dict[str, Any], parts: set[str]) -> None:
    def shapes(stream: Stream) -> dict[str, str]:
        return {
            "ingest": stream.ingest_shape(),
            "granules": stream.granules_shape("load"),
            "reports": stream.reports_shape("load"),
        }

    before, after = shapes(parse(base())), shapes(parse(changed(**changes)))
    assert {part for part in before if before[part] != after[part]} == parts


def test_how_a_rule_is_written_shapes_nothing() -> None:
    def shape(**changes: Any) -> str:
        return parse(changed(**changes)).ingest_shape()

    assert shape(unique=["user", "host"]) == shape(unique={"columns": ["host", "user"], "keep": "first"})
    assert shape(time={"column": "at", "every": "5 minutes", "ties": "keep"}) == shape()
    assert shape(columns__x={"is": "status+1"}) == shape(columns__x={"is": "(status + 1)", "unit": "B"})
    assert shape(unique=["user"]) != shape(unique={"columns": ["user"], "keep": "longest status"})
    assert shape(columns__x={"is": "status+1"}) != shape(columns__x={"is": "status+2"})


def test_a_derived_column_is_a_column_that_no_parser_is_told_of() -> None:
    stream = parse(
        changed(
            columns__slow={"is": "took > 1 and event_time is not null and host <> ''"},
            columns__seconds={"is": "took / 1000", "resolution": 0.1, "unit": "s"},
            columns__whole={"is": "status", "type": "number", "resolution": 10},
            columns__last="end",
            aggregate__load__where="slow",
            aggregate__load__measures__n="sum(seconds)",
        )
    )
    assert [field.name for field in stream.layout().fields] == ["user", "status", "took", "ok", "last"]
    assert list(stream.event_columns) == [
        "user", "status", "took", "ok", "slow", "seconds", "whole", "last", "host"
    ]  # fmt: skip
    assert stream.event_columns["slow"] == Field("slow", (), "boolean")
    assert stream.event_columns["seconds"] == Field("seconds", (), "number", "0.1")
    assert stream.event_columns["whole"] == Field("whole", (), "number", "10")
    assert {name: derived.columns for name, derived in stream.derived.items()} == {
        "slow": ("event_time", "host", "took"), "seconds": ("took",), "whole": ("status",)
    }  # fmt: skip


def test_what_makes_a_record_one_may_come_from_a_preset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRANSOM_PRESETS", str(tmp_path))
    (tmp_path / "p.yaml").write_text("format: json\ntime: {column: at}\ncolumns: {a: x}\nunique: [a]\n")
    data = {"name": "app", "preset": "p", "source": {"path": "a.json"}}
    assert parse(data).unique == Unique(columns=("a",))
    assert parse({**data, "unique": {"columns": ["event_time"]}}).unique == Unique(columns=("event_time",))
    assert parse({**data, "unique": None}).unique is None


def test_a_condition_shapes_by_what_it_says_not_by_its_spaces() -> None:
    one = parse(changed(aggregate__load__where="status=1 and ok")).granules_shape("load")
    assert one == parse(changed(aggregate__load__where="status = 1 AND (ok)")).granules_shape("load")
    assert '"where":"((`status` = 1L) AND `ok`)"' in one


def test_a_preset_of_another_name_with_the_same_content_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRANSOM_PRESETS", str(tmp_path))
    text = "format: json\ntime: {column: at}\ncolumns: {a: x}\n"
    for name in ("old", "new"):
        (tmp_path / f"{name}.yaml").write_text(text)
    old, new = (
        parse({"name": "app", "preset": name, "source": {"path": "a.json"}}) for name in ("old", "new")
    )
    assert old.ingest_shape() == new.ingest_shape()


def test_shapes_are_canonical_json() -> None:
    shape = parse(base()).granules_shape("load")
    assert shape == (
        '{"base":300000000,"key":["user"],"measures":{"n":"count","slow":"max(took)"},'
        '"types":{"took":["number","0.001"],"user":["string","1"]},"where":null}'
    )
    assert json.loads(parse(base()).ingest_shape())["name"] == {
        "after": 3600000000,
        "before": 86400000000,
        "unit": "hour",
        "zone": "UTC",
    }


# the streams that come with the project


@pytest.mark.parametrize("path", sorted(STREAMS.glob("*.yaml")), ids=lambda path: path.stem)
def test_the_streams_of_the_project_are_valid(path: Path) -> None:
    stream = load(path)
    assert stream.name == path.stem
    assert not stream.catchup
    # Examples of the past: nothing may run by itself.
    assert not stream.schedule or stream.until
    assert stream.title


def test_the_web_stream_is_the_documented_example() -> None:
    stream = load(STREAMS / "web.yaml")
    assert stream.source.expect == 1
    assert (stream.start, stream.until) == (TEN, datetime(2015, 5, 20, 22, tzinfo=UTC))
    assert [str(level) for level in stream.aggregate["traffic"].levels] == [
        "range 1 day, slide 6 hours",
        "range 6 hours, slide 3 hours",
        "range 1 hour, slide 1 hour",
    ]
    assert stream.aggregate["site"].key == ()
    match = stream.path_pattern.match("landing/web/2015-05-17/access.10.log.gz")
    assert match is not None
    assert match.hour == TEN


def test_reading_a_stream_is_quick_work_without_the_heavy_modules() -> None:
    code = (
        "import sys; from transom.stream import load; load('schemas/streams/web.yaml');"
        "heavy = {'sqlglot', 'pyspark', 'airflow', 'pandas', 'numpy', 'great_expectations'} & set(sys.modules);"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    root = STREAMS.parents[1]
    subprocess.run([sys.executable, "-c", code], check=True, cwd=root, env={"PYTHONPATH": "jobs"})


seconds = st.integers(1, 10_000).map(lambda n: timedelta(seconds=n))


@given(st.lists(st.tuples(seconds, st.integers(1, 50)), min_size=1, max_size=4))
def test_levels_pass_exactly_when_the_papers_rules_hold(drawn: list[tuple[timedelta, int]]) -> None:
    levels = tuple(Level(range=slide * count, slide=slide) for slide, count in drawn)
    finest_first = levels[::-1]
    lawful = all(
        finer.slide <= coarser.slide and finer.range < coarser.range
        for finer, coarser in pairwise(finest_first)
    )
    try:
        assert check_levels(levels) == levels
        assert lawful
    except ValueError:
        assert not lawful


json_like = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=6) | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
places = st.sampled_from(
    ["name", "source", "source__path", "source__format", "source__options", "source__holds", "columns",
     "columns__user", "columns__took", "time", "time__format", "key", "where", "aggregate",
     "aggregate__load", "aggregate__load__levels", "aggregate__load__measures", "aggregate__load__key",
     "unique", "unique__keep", "columns__took__is", "checks", "accept", "heal", "chunk", "preset", "start", "until", "tags"]
)  # fmt: skip


@given(st.dictionaries(places, json_like, max_size=3))
def test_any_file_is_a_stream_or_a_specification_error(changes: dict[str, Any]) -> None:
    data: Any = base()
    for path, value in changes.items():
        *folders, last = path.split("__")
        place = data
        for folder in folders:
            place = place.get(folder) if isinstance(place, dict) else None
        if isinstance(place, dict):
            place[last] = value
    try:
        stream = parse(data, "app.yaml")
    except SpecificationError as error:
        refused = str(error)
    else:
        assert stream.layout()
        return
    assert refused.startswith("app.yaml: ")
