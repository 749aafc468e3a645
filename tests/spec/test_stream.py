"""The model of a stream's file."""

import json
import pickle
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tests.support import sample_streams
from tests.support.stream_factories import HOUR, TEN, base, changed
from transom.core.path_pattern import Match
from transom.features.aggregates.spec import Level, check_levels, common_granule
from transom.features.registry import BUILT_IN
from transom.formats.record_format import EventTime, Field, RecordFormat, Span, TimeByLineNumber
from transom.stream import SpecificationError, load, parse


def test_stream_has_its_defaults() -> None:
    stream = parse(base())
    assert stream.repair_window == timedelta(days=2)
    assert stream.chunk == timedelta(days=7)
    assert stream.schedule
    assert not stream.catchup
    assert stream.source.arrival_delay == timedelta(minutes=10)
    assert stream.source.event_time_range.before == timedelta(days=1)
    assert stream.source.event_time_range.after == HOUR
    assert stream.source.on_conflict == "hold"
    assert stream.source.expected_files is None
    assert stream.stages == ("ingest", "aggregates")
    assert parse(changed(aggregates=...)).stages == ("ingest",)


def test_stream_is_immutable() -> None:
    stream = parse(base())
    with pytest.raises(ValidationError, match="frozen"):
        stream.name = "other"


def test_time_may_come_from_a_capture() -> None:
    data = base()
    regex = {"format": "regex", "options": {"pattern": "(?P<at>[^ ]+ [^ ]+ [^ ]+) (?P<host>.*)"}}
    data["source"] = {**regex, "path": "in/{year}-*.log"}
    data["columns"] = {"host": "host"}
    data["time"] = {"column": ["year", "at"], "format": "%Y %b %d %H:%M:%S", "zone": "UTC"}
    stream = parse(data | {"key": ["host"], "aggregates": {}})
    assert stream.layout().time.paths == ("year",)
    assert json.loads(stream.ingest_shape())["time_captures"] == ["year"]
    data["time"]["column"] = ["yaer", "at"]
    with pytest.raises(SpecificationError, match=r"time.column\[0\]: regex records have no field 'yaer'"):
        parse(data | {"key": ["host"], "aggregates": {}})
    assert "time_captures" not in json.loads(parse(base()).ingest_shape())


def test_columns_are_the_declared_ones_then_the_captures() -> None:
    stream = parse(base())
    assert stream.source.pattern.captures == ("host",)
    assert stream.event_columns == {
        "user": Field("user", ("who.name", "user")),
        "status": Field("status", ("status",), "integer"),
        "took": Field("took", ("ms",), "number", "0.001"),
        "ok": Field("ok", ("ok",), "boolean"),
        "host": Field("host", ("host",)),
    }
    assert list(stream.event_columns) == ["user", "status", "took", "ok", "host"]


def test_layout_has_the_parameters_of_the_parser() -> None:
    data = changed(
        time={"column": "took | at", "plus": "took", "format": "%d/%m/%Y %H:%M", "zone": "Europe/Berlin"},
        columns__seen={"type": "timestamp", "zone": "UTC", "missing": ["-"]},
        columns__since={"type": "timestamp", "format": "epoch_ms"},
    )
    layout = parse(data).layout()
    assert isinstance(layout, RecordFormat)
    assert layout.format == "json"
    assert [field.name for field in layout.fields] == ["user", "status", "took", "ok", "seen", "since"]
    # `took` names a declared column, whose value is in `ms`; `took | at` is a path of its own.
    assert layout.time == EventTime(("took", "at"), ("ms",), "%d/%m/%Y %H:%M", "Europe/Berlin")
    assert layout.fields[4] == Field(
        "seen", ("seen",), "timestamp", missing=("-",), time_format="iso", zone="UTC"
    )
    assert layout.fields[5] == Field("since", ("since",), "timestamp", time_format="epoch_ms")
    assert not layout.keep_rest


@pytest.mark.parametrize(
    ("time", "reported"),
    [
        ({"column": ["took | d", "at", "ok"]}, EventTime(("took", "d"), more=(("at",), ("ok",)))),
        ({"lines": "1 second", "from": "name"}, EventTime((), by_lines=TimeByLineNumber(1_000_000))),
        (
            {"lines": "5 ms", "from": "1970-01-02T01:00+01:00"},
            EventTime((), by_lines=TimeByLineNumber(5_000, 86_400_000_000)),
        ),
        (
            {"lines": "5 ms", "from": "1970-01-02"},
            EventTime((), by_lines=TimeByLineNumber(5_000, 86_400_000_000)),
        ),
    ],
)
def test_time_is_joined_from_fields_or_counted_by_lines(time: dict[str, Any], reported: EventTime) -> None:
    assert parse(changed(time=time)).layout().time == reported


def test_extra_fields_have_a_column_after_the_declared_ones() -> None:
    stream = parse(changed(extra_fields="keep"))
    assert stream.layout().keep_rest
    assert list(stream.event_columns) == ["user", "status", "took", "ok", "rest", "host"]
    assert stream.event_types["rest"] == "string"


@pytest.mark.parametrize(
    ("written", "text"), [(0.001, "0.001"), ("0.0010", "0.001"), (1e-6, "0.000001"), (5, "5"), (100, "100")]
)
def test_resolution_is_plain_decimal_text(written: object, text: str) -> None:
    stream = parse(changed(columns__took={"type": "number", "resolution": written}))
    assert stream.event_columns["took"].resolution == text


def test_levels_are_read_from_text_or_a_list() -> None:
    text = parse(changed(aggregates__load__levels="ranges 6 hours, 1 h slides 1 HOUR, 90 s")).aggregates[
        "load"
    ]
    listed = parse(
        changed(
            aggregates__load__levels=[
                {"range": "6 hours", "slide": "1 hour"},
                {"range": "1 hour", "slide": "90 seconds"},
            ]
        )
    ).aggregates["load"]
    assert text == listed
    assert text.levels[0] == Level(range=6 * HOUR, slide=HOUR)
    assert text.levels[-1].slide == timedelta(seconds=90)
    assert text.base == timedelta(seconds=90)


@pytest.mark.parametrize(
    ("slides", "granule"),
    [([3600], 3600), ([7200], 3600), ([5400], 1800), ([900, 600], 300), ([7], 1), ([86400, 3600, 60], 60)],
)
def test_base_granule_divides_every_slide_and_the_hour(slides: list[int], granule: int) -> None:
    result = common_granule([timedelta(seconds=slide) for slide in slides])
    assert result == timedelta(seconds=granule)


def test_block_inherits_key_and_condition_of_the_stream() -> None:
    levels = "RANGES 1 HOUR SLIDES 1 HOUR"
    data = changed(
        where="status = 1",
        aggregates__all={"key": [], "where": "ok", "measures": {"n": "count"}, "levels": levels},
    )
    stream = parse(data)
    assert (stream.aggregates["load"].key, stream.aggregates["load"].where) == (("user",), "status = 1")
    assert (stream.aggregates["all"].key, stream.aggregates["all"].where) == ((), "ok")
    result = stream.where_of(stream.aggregates["all"])
    assert result is not None
    assert result.sql == "`ok`"
    assert parse(base()).where_of(parse(base()).aggregates["load"]) is None


def test_key_may_be_a_capture() -> None:
    assert parse(changed(key=["host", "user"])).aggregates["load"].key == ("host", "user")


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
def test_time_range_of_a_file_follows_from_its_name(
    start: datetime, end: datetime, unit: Any, expected: tuple[datetime, datetime]
) -> None:
    #          before        the name's stretch        after
    #   [----------------|------------------------|-----------[
    assert parse(base()).span(Match({}, start, end, unit)) == Span(*expected)


def test_file_without_a_time_in_its_name_has_no_time_range() -> None:
    assert parse(base()).span(Match({})) is None


def test_built_in_checks_apply_by_default() -> None:
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
            "few": {"stage": "aggregates", "block": "load", "every": "n < 100 and user is not null"},
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
    assert (gates["few"].stage, gates["few"].block) == ("aggregates", "load")
    assert gates["granules_add_up"].block is None


def test_waivers_are_parsed() -> None:
    item = {
        "hour": "2015-05-17T10:00",
        "stage": "ingest",
        "check": "rejected_share",
        "observed": 0.25,
        "who": "ann",
        "why": "a test of the format",
    }
    (accepted,) = parse(changed(waivers=[item])).waivers
    assert (accepted.hour, accepted.observed) == (TEN, 0.25)


def test_stream_survives_pickling() -> None:
    stream = parse(base())
    assert stream.source.pattern.match("in/h/2015-05-17.10.json") is not None
    copy = pickle.loads(pickle.dumps(stream))
    assert copy == stream
    assert copy.source.pattern.match("in/h/2015-05-17.10.json").hour == TEN
    assert copy.ingest_shape() == stream.ingest_shape()


def test_derived_column_is_unknown_to_the_parser() -> None:
    stream = parse(
        changed(
            columns__slow={"is": "took > 1 and event_time is not null and host <> ''"},
            columns__seconds={"is": "took / 1000", "resolution": 0.1, "unit": "s"},
            columns__whole={"is": "status", "type": "number", "resolution": 10},
            columns__last="end",
            aggregates__load__where="slow",
            aggregates__load__measures__n="sum(seconds)",
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


# the streams that come with the project


@pytest.mark.parametrize("path", sample_streams.FILES, ids=lambda path: path.stem)
def test_streams_of_the_project_are_valid(path: Path) -> None:
    stream = load(path)
    assert stream.name == path.stem
    assert not stream.catchup
    # Examples with past data: nothing may run on a schedule.
    assert not stream.schedule or stream.until
    assert stream.title


def test_web_stream_is_the_documented_example() -> None:
    stream = load(sample_streams.FOLDER / "web.yaml")
    assert stream.source.expected_files == 1
    assert (stream.start, stream.until) == (TEN, datetime(2015, 5, 21, tzinfo=UTC))
    assert [str(level) for level in stream.aggregates["traffic"].levels] == [
        "range 1 day, slide 6 hours",
        "range 6 hours, slide 3 hours",
        "range 1 hour, slide 1 hour",
    ]
    assert stream.aggregates["site"].key == ()
    match = stream.source.pattern.match("landing/web/2015-05-17/access.10.log.gz")
    assert match is not None
    assert match.hour == TEN


def test_parsing_a_stream_imports_no_heavy_modules() -> None:
    # A stream without conditions.
    code = (
        "import sys; from transom.stream import load; load('schemas/streams/conn.yaml');"
        "heavy = {'sqlglot', 'pyspark', 'airflow', 'pandas', 'numpy', 'great_expectations'}"
        " & set(sys.modules);"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    root = sample_streams.FOLDER.parents[1]
    subprocess.run([sys.executable, "-c", code], check=True, cwd=root, env={"PYTHONPATH": "jobs"})


seconds = st.integers(1, 10_000).map(lambda n: timedelta(seconds=n))


@given(st.lists(st.tuples(seconds, st.integers(1, 50)), min_size=1, max_size=4))
def test_levels_are_valid_exactly_if_the_papers_rules_are_met(draws: list[tuple[timedelta, int]]) -> None:
    levels = tuple(Level(range=slide * count, slide=slide) for slide, count in draws)
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
