"""Every single check fails on data that is bad for it, and on nothing else.

Checks of what files say fail on real files. Those that guard against faults of transom itself fail on
rows tampered with between the computation and its audit.
"""

import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from house import House, hour, line
from tampering import one_more_where, overcounted, tampered
from transom.formats.layout import Span
from transom.formats.reading import Summary
from transom.intervals import NO_HOUR, Interval
from transom.lake.book import Node, Verdict
from transom.lake.gate import judge
from transom.lake.parts import written
from transom.lake.refresh import refresh
from transom.lake.stage import Stage
from transom.lake.store import Store
from transom.lake.tables import ARROW_TYPES
from transom.stages import aggregate as aggregate_stage
from transom.stages import fill as fill_stage
from transom.stages import frame as frame_stage
from transom.stages import sketch as sketch_stage
from transom.stages import widen as widen_stage
from transom.stages.contents import contents
from transom.stages.files import Listed
from transom.stages.parsing import Read, Reading
from transom.stages.read_rows import ReadRows
from transom.stream.checks import BUILT_IN

Make = Callable[..., House]

CHECKED = """
name: web
preset: apache/combined
source: {path: "landing/web/%Y-%m-%d/access.%H*.log.gz", expect: 1}
key: [client]
aggregate:
  site:
    {key: [], measures: {n: count, most: max(bytes)}, levels: "RANGES 2 HOURS, 1 HOUR SLIDES 1 HOUR, 1 HOUR",
     fit: 1 hour}
checks:
  no_errors: {stage: ingest, every: "status < 500", share: 0.9}
  enough: {stage: ingest, rows: {at_least: 2}, severity: incomplete}
  calm: {stage: aggregate, every: "n <= 100"}
  few_rows: {stage: aggregate, rows: {at_most: 2}}
"""
GOOD = [line(3600 * 2 + i) for i in range(10)]
PATH = "landing/web/2015-05-17/access.02.log.gz"


SEEN: set[str] = set()
"""Every check that has failed in this module so far."""


def failed(house: House, stage: str) -> dict[str, Verdict]:
    """The checks that failed, by name."""
    hours = {node.hour for node in house.book()}
    found = {v.check: v for v in house.ledger.checks(house.book(), stage, hours) if not v.success}
    SEEN.update(found)
    # What a stream accepts is looked up by it.
    assert {BUILT_IN[name].stage for name in found if name in BUILT_IN} <= {stage}
    return found


def test_good_data_fails_nothing(house: Make) -> None:
    day = house(CHECKED)
    day.land(2, GOOD)
    day.run(2, 3)
    assert failed(day, "ingest") == failed(day, "aggregate") == {}
    assert {entry.status for entry in day.book().values()} == {"published"}


@pytest.mark.parametrize(
    ("check", "lines", "observed", "status", "sample"),
    [
        (
            "rejected_share",
            [*GOOD, "junk" * 10**5],
            1 / 11,
            "quarantined",
            [r"line 11: no_match: (junk){50}… \(400000 characters\)$"],
        ),
        (
            "no_errors",
            [*GOOD, *(line(7200 + i, status=503) for i in range(2))],
            10 / 12,
            "quarantined",
            ["line 11: .*status 503", "line 12: .*status 503"],
        ),
        ("enough", GOOD[:1], 1, "published", []),
    ],
)
def test_a_file_fails_its_check(
    house: Make, check: str, lines: list[str], observed: float, status: str, sample: list[str]
) -> None:
    day = house(CHECKED)
    day.land(2, lines)
    day.ingest(2, 3)
    (verdict,) = failed(day, "ingest").values()
    assert (verdict.check, verdict.observed) == (check, pytest.approx(observed))
    assert len(verdict.sample) == len(sample)
    assert all(re.match(words, row) for words, row in zip(sample, verdict.sample, strict=True))
    entry = day.book()[Node("ingest", "events", "events", hour(2))]
    assert (entry.status, entry.complete) == (status, False)
    assert check in (entry.cause or "")


def test_a_truncated_file_is_not_readable(house: Make) -> None:
    day = house(CHECKED)
    path = day.land(2, [line(7200 + i, f"10.0.{i % 200}.{i % 7}") for i in range(2000)])
    path.write_bytes(path.read_bytes()[:-400])
    day.ingest(2, 3)
    assert failed(day, "ingest").keys() == {"file_readable"}
    entry = day.book()[Node("ingest", "events", "events", hour(2))]
    assert (entry.status, entry.complete) == ("published", False)
    assert day.table("rejected").where("reason = 'truncated'").count() == 1


SCATTERING = """
name: web
preset: apache/combined
source: {path: "landing/*.log"}
checks: {hours_bounded: {hours: 3}, rejected_share: {at_most: 0.5}}
"""


def test_a_file_of_too_many_hours_touches_none(house: Make, tmp_path: Path) -> None:
    (tmp_path / "landing").mkdir()
    for name, hours in (("good", 3), ("random", 4)):
        lines = [*(line(7200 * number, f"10.0.0.{number}") for number in range(hours)), "junk"]
        (tmp_path / f"landing/{name}.log").write_text("".join(text + "\n" for text in lines))
    day = house(SCATTERING)
    day.ingest(0, 10)
    found = failed(day, "ingest")
    assert found.keys() == {"hours_bounded"}
    verdict = found["hours_bounded"]
    assert (verdict.subject, verdict.node.hour, verdict.observed) == ("landing/random.log", NO_HOUR, 4)
    assert verdict.sample[0] == "line 1: event_time 2015-05-17T00:00:00"
    assert {node.hour for node, entry in day.book().items() if entry.status == "quarantined"} == {NO_HOUR}
    assert day.table("events").count() == 3
    passed = "hour: 1970-01-01T00:00, stage: ingest, check: hours_bounded, observed: 4, who: a, why: b"
    accepting = f"{SCATTERING}accept: [{{{passed}}}]"
    for number, text in enumerate((SCATTERING.replace("hours: 3", "hours: 4"), accepting)):
        lenient = house(text, f"lake-{number}")
        lenient.ingest(0, 10)
        assert not failed(lenient, "ingest")
        assert lenient.table("events").count() == 7
        lenient.assert_ledger_true()


DRIFTING = """
name: app
source: {path: "landing/%Y-%m-%d-%H.json", format: json}
columns:
  user: user
  note: note
  sent: {type: integer}
  kib: {is: sent / 1024, resolution: 0.1}
  mib: {is: kept / 1048576, resolution: 0.1}
  kept: {type: integer}
time: {column: at}
aggregate: {all: {key: [user], measures: {n: count, kib: max(kib)}, levels: RANGES 1 HOUR SLIDES 1 HOUR}}
"""


def test_fields_that_come_and_go_are_told(house: Make, tmp_path: Path) -> None:
    def observed(text: str = DRIFTING) -> dict[str, tuple[float | None, str, tuple[str, ...]]]:
        day = house(text)
        day.ingest(2, 3)
        return {v.check: (v.observed, v.severity, v.sample) for v in failed(day, "ingest").values()}

    path = tmp_path / "landing/2015-05-17-02.json"
    path.parent.mkdir(parents=True)
    record = {"at": "2015-05-17T02:00:00Z", "user": "ann", "sent": 2000, "more": 1, "and": {"more": 2}}
    path.write_text(json.dumps(record) + "\n")
    unknown = (2, "warning", ("and", "more"))
    absent = (2, "warning", ("note", "kept"))
    assert observed() == {"fields_known": unknown, "fields_present": absent}
    assert observed(DRIFTING + "rest: keep\n") == {"fields_present": absent}
    (row,) = house(DRIFTING).table("events").collect()
    assert (row.kib, row.mib, row.note, row.rest) == (2.0, None, None, '{"and":{"more":2},"more":1}')
    used = DRIFTING + 'checks: {noted: {stage: ingest, every: "mib is null"}, fields_known: {"off": true}}\n'
    assert observed(used) == {"fields_present": absent, "used_fields_present": (1, "error", ("kept",))}
    entry = house(used).book()[Node("ingest", "events", "events", hour(2))]
    assert (entry.status, entry.cause) == (
        "quarantined",
        "landing/2015-05-17-02.json: used_fields_present: observed 1, expected at most 0 "
        f"({BUILT_IN['used_fields_present'].advice})",
    )


def test_a_file_that_is_expected_and_has_not_come_is_missed(house: Make) -> None:
    day = house(CHECKED)
    day.land(1, [])
    day.ingest(2, 3)
    assert failed(day, "ingest").keys() == {"files_expected"}


def test_a_file_that_differs_from_what_stands_is_told(house: Make) -> None:
    day = house(CHECKED)
    day.land(2, GOOD)
    day.ingest(2, 3)
    assert failed(day, "ingest") == {}
    day.land(2, GOOD[5:])
    day.ingest(2, 3)
    (verdict,) = failed(day, "ingest").values()
    assert (verdict.check, verdict.severity, verdict.observed) == ("files_unchanged", "warning", 1)
    (row,) = verdict.sample
    assert row.startswith(f"{PATH}: ")
    entry = day.book()[Node("ingest", "events", "events", hour(2))]
    assert (entry.status, entry.complete) == ("published", True)


GAMES = """
name: web
source: {path: "landing/web/%Y-%m-%d/access.%H*.log.gz", format: json}
columns:
  kind: kind
  currency: currency
  map: map
  os: {from: os, type: integer}
time: {column: at}
aggregate:
  sales:
    {key: [currency], where: "kind = 'purchase'", measures: {n: count}, levels: RANGES 1 HOUR SLIDES 1 HOUR}
  play: {key: [map, os], where: "kind = 'end'", measures: {n: count}, levels: RANGES 1 HOUR SLIDES 1 HOUR}
  kinds: {key: [kind], measures: {n: count}, levels: RANGES 1 HOUR SLIDES 1 HOUR}
"""


def test_an_event_is_held_against_the_keys_of_the_blocks_that_take_it(house: Make) -> None:
    day = house(GAMES)
    purchase, login = {"kind": "purchase", "currency": "EUR"}, {"kind": "login"}
    end = {"kind": "end", "map": "a", "os": 1}

    def land(number: int, *events: dict[str, Any]) -> None:
        at = {"at": f"2015-05-17T{number:02}:00:01Z"}
        day.land(number, [json.dumps(at | event) for event in events])

    land(1, purchase, end, login)
    # Columns that a whole file lacks, and that none of its events needs.
    land(2, login, login)
    land(3, purchase, {"kind": "purchase"}, end | {"map": None}, end | {"os": None}, end | {"os": None})
    # One that the file lacks altogether, and that its events need.
    land(4, login, {"kind": "purchase"})
    # No condition holds for an event without a kind; the block that takes every event needs one.
    land(5, purchase, end, {"currency": "EUR"})
    ingested = day.ingest(1, 6)
    assert (ingested.published, ingested.quarantined) == (2, 3)
    seen = [v for v in day.ledger.failures(day.book(), "ingest") if v.severity == "error"]
    assert [(v.node.hour, v.check, v.column, v.observed, v.sample) for v in seen] == [
        (hour(3), "keys_not_null", "currency", 1, ("line 2: kind purchase",)),
        (hour(3), "keys_not_null", "map", 1, ("line 3: kind end, os 1",)),
        (hour(3), "keys_not_null", "os", 2, ("line 4: kind end, map a", "line 5: kind end, map a")),
        (hour(4), "keys_not_null", "currency", 1, ("line 2: kind purchase",)),
        (hour(4), "used_fields_present", None, 1, ("currency",)),
        (hour(5), "keys_not_null", "kind", 1, ("line 3: currency EUR",)),
    ]
    assert seen[0].expected == (
        "at most 0 (lines of sales that lack currency: put the data right, or leave them out, `where: "
        "\"currency is not null\"`, or key by a derived column, `is: coalesce(currency, '-')`, or give the "
        "check another severity)"
    )
    SEEN.update(v.check for v in seen)


def of_tampered(
    spark: SparkSession, house: House, times: list[int], claimed: int, span: Span
) -> dict[str, float | None]:
    """What the checks of a file say of events at some seconds, under a summary that claims so many."""
    rows = ReadRows(Store(spark, str(house.root)), house.stream)
    events = [
        {
            "event_time": hour(0) + timedelta(seconds=second),
            "client": "10.0.0.1",
            "status": 200,
            "source_id": "0",
            "source_line": number,
        }
        for number, second in enumerate(times)
    ]
    schema = pa.schema([(name, ARROW_TYPES[kind]) for name, kind in rows.columns.items()])
    batch = pa.RecordBatch.from_pylist(events, schema=schema)
    parts = tuple(written(rows.store.uri("events"), "read", "part", [batch], "event_time"))
    summary = Summary("0", 1, claimed, 0, claimed, 0, (), None, {})
    moments = [event["event_time"] for event in events]
    touched = np.array([hour(2).timestamp() // 3600], dtype=np.int64)
    read = Read(summary, None, touched, min(moments), max(moments), parts)
    listed = Listed(PATH, 1, hour(2), {}, hour(2), hour(2), hour(3))
    reading = Reading(PATH, PATH, 1, {}, span, ())
    node = Node("ingest", "events", "events", hour(2))
    _, verdicts = contents(house.stream, node, {PATH: listed}, [reading], {PATH: read}, rows)
    found = {v.check: v.observed for v in verdicts if not v.success}
    SEEN.update(found)
    return found


def test_lines_that_went_missing_are_seen(spark: SparkSession, house: Make) -> None:
    span = Span(hour(2), hour(3))
    times = [7200, 7201, 10799]
    assert of_tampered(spark, house(CHECKED), times, 3, span) == {}
    assert of_tampered(spark, house(CHECKED), times, 5, span) == {"lines_accounted": 2}


@pytest.mark.parametrize(("second", "outside"), [(7199, 1), (10800, 1e-6)])
def test_events_outside_what_their_file_may_hold_are_seen(
    spark: SparkSession, house: Make, second: int, outside: float
) -> None:
    found = of_tampered(spark, house(CHECKED), [7200, second], 2, Span(hour(2), hour(3)))
    assert found == {"times_inside_hour": pytest.approx(outside)}


@pytest.mark.parametrize(
    ("table", "change", "check", "observed"),
    [
        ("granules", one_more_where("true"), "granules_add_up", -1),
        ("aggregates", one_more_where("level = 0"), "wide_covers_narrow", 1),
        (
            "aggregates",
            lambda rows: rows.withColumn("max_most", F.expr("max_most + if(level = 0, 1, 0)")),
            "wide_holds_extremes",
            1,
        ),
        (
            "aggregates",
            lambda rows: rows.withColumn("window_end", F.expr("window_end + INTERVAL 1 MICROSECOND")),
            "ends_inside_hour",
            2,
        ),
        ("aggregates", lambda rows: rows.withColumn("slope_n", F.lit(1.0)), "lines_of_two", 1),
        ("aggregates", lambda rows: rows.withColumn("slope_n", F.lit(None).cast("double")), "lines_exact", 1),
        ("aggregates", one_more_where("false"), None, None),
        ("aggregates", lambda rows: rows.union(rows), "few_rows", 4),
        ("aggregates", lambda rows: rows.withColumn("n", F.lit(101)), "calm", 0),
    ],
)
def test_a_fault_between_computing_and_publishing_is_seen(
    house: Make,
    table: str,
    change: Callable[[DataFrame], DataFrame],
    check: str | None,
    observed: float | None,
) -> None:
    day = house(CHECKED)
    day.land(2, GOOD)
    day.ingest(2, 3)
    stage = aggregate_stage.stage(day.stream)
    day.store.create(step.table for step in stage.steps)
    context = day.context(2, 3)
    refresh(day.store, day.ledger, tampered(stage, table, change), context.interval, day.stream.heal, "run x")
    found = {name: verdict.observed for name, verdict in failed(day, "aggregate").items()}
    assert found == ({check: observed} if check else {})
    entry = day.book()[Node("aggregate", "site", table, hour(2))]
    assert entry.status == ("quarantined" if check else "published")
    assert day.table(table).count() == (0 if check else {"granules": 1, "aggregates": 2}[table])


TWICE = """
name: web
preset: apache/combined
source: {path: "landing/web/%Y-%m-%d/access.%H*.log.gz", expect: 1}
patterns:
  of_client: {key: [client], within: 1 minute, steps: [{id: two, where: status = 200, times: 2}]}
  of_all: {key: [], within: 1 minute, steps: [{id: two, where: status = 200, times: 2}]}
  sound: {key: [status], within: 1 minute, steps: [{id: two, where: status = 200, times: 2}]}
"""


def test_an_episode_that_takes_other_matches_than_those_of_its_hour_is_seen(house: Make) -> None:
    day = house(TWICE)
    day.land(2, GOOD)
    day.ingest(2, 3)
    stage = widen_stage.stage(day.stream)
    day.store.create(step.table for step in stage.steps)
    context = day.context(2, 3)

    def at_fault(rows: DataFrame) -> DataFrame:
        if "client" in rows.columns:
            return rows.withColumn("end", F.expr("hour + INTERVAL 1 HOUR"))
        return rows if "status" in rows.columns else rows.withColumn("new_matches", F.lit(8))

    changed = tampered(stage, "episodes", at_fault)
    refresh(day.store, day.ledger, changed, context.interval, day.stream.heal, "run x")
    found = {name: (of.node.block, of.observed) for name, of in failed(day, "widen").items()}
    assert found == {"episodes_inside_hour": ("of_client", 1), "matches_in_episodes": ("of_all", 1)}
    (row,) = day.table("episodes").toArrow().to_pylist()
    assert (row["block"], row["matches"], row["new_matches"], row["state"]) == ("sound", 9, 9, "final")


@pytest.mark.parametrize(
    ("table", "more", "observed"),
    [
        # An hour holds parts of a batch, each of 2L records at most.
        ("batches", {"longest_batch": 12}, {"batches_within_bound": 2}),
        (
            "matches",
            {"longest_batch": 11, "longest_window": 21, "records_shown": 482, "detector_failures": 1},
            {
                "batches_within_bound": 1,
                "windows_within_bound": 1,
                "work_within_bound": 2,
                "detector_ran": 1,
            },
        ),
    ],
)
def test_work_beyond_its_bounds_is_seen(
    house: Make, table: str, more: Mapping[str, int], observed: Mapping[str, float]
) -> None:
    """Of one key 12, 6, 3, 1, 1, 1 and 0 windows end in the hour, at levels of 5 minutes to 5 hours."""
    pattern = (
        "  of_client: {within: 3 hours, max_records: 5, steps: [{id: two, where: status = 404, times: 2}]}"
    )
    text = TWICE[: TWICE.index("  of_client")].replace("patterns", "key: [client]\npatterns") + pattern
    day = house(text)
    day.land(2, [line(2 * 3600 + 60, status=404)])
    day.ingest(2, 3)
    stage = widen_stage.stage(day.stream)
    day.store.create(step.table for step in stage.steps)
    context = day.context(2, 3)
    changed = overcounted(stage, table, more)
    refresh(day.store, day.ledger, changed, context.interval, day.stream.heal, "run x")
    assert {name: of.observed for name, of in failed(day, "widen").items()} == observed
    assert day.book()[Node("widen", "of_client", table, hour(2))].status == "quarantined"


def test_an_item_that_is_missing_in_a_ring_is_not_recurring(house: Make) -> None:
    day = house(CHECKED.replace("fit: 1 hour", "recurring: [status]"))
    day.land(1, [line(3600)])
    day.land(2, GOOD)
    day.ingest(1, 3)
    stage = aggregate_stage.stage(day.stream)
    day.store.create(step.table for step in stage.steps)
    context = day.context(1, 3)

    def without_the_last(rows: DataFrame) -> DataFrame:
        return rows.withColumn("counts", F.expr("array(counts[0], 0L)"))

    changed = tampered(stage, "recurring", without_the_last)
    refresh(day.store, day.ledger, changed, context.interval, day.stream.heal, "run x")
    assert {name: verdict.observed for name, verdict in failed(day, "aggregate").items()} == {
        "recurring_in_every_ring": 1
    }
    statuses = [day.book()[Node("aggregate", "site", "recurring", hour(n))].status for n in (1, 2)]
    assert statuses == ["published", "quarantined"]
    assert day.table("recurring").count() == 0
    day.aggregate(1, 3)
    assert [row.counts for row in day.table("recurring").collect()] == [[10, 1]]


FRAMED = """
name: web
preset: apache/combined
source: {path: "landing/web/%Y-%m-%d/access.%H*.log.gz"}
key: [client]
frames:
  fine: {kind: threshold, where: status = 200, of: bytes, ties: last, min_records: 5}
  other: {kind: threshold, where: status = 404, ties: last}
fills:
  around: {frame: fine}
"""


@pytest.mark.parametrize(
    ("table", "change", "check"),
    [
        ("open_frames", lambda rows: rows.withColumn("records", F.lit(4)), "frames_keep_rules"),
        ("frames", lambda rows: rows.union(rows.withColumn("fragment", F.lit(2))), "frames_apart"),
        ("frames", lambda rows: rows.withColumn("mean", F.lit(None).cast("double")), "frames_exact"),
        ("fills", lambda rows: rows.withColumn("rows_matched", F.lit(9)), "fills_counted"),
        ("open_frames", None, "frames_counted"),
    ],
)
def test_a_frame_that_is_not_what_its_readings_make_is_seen(
    house: Make, table: str, change: Callable[[DataFrame], DataFrame] | None, check: str
) -> None:
    day = house(FRAMED)
    day.land(2, GOOD)
    day.ingest(2, 3)
    context = day.context(2, 3)

    def run(stage: Stage) -> None:
        day.store.create(step.table for step in stage.steps)
        refresh(day.store, day.ledger, stage, context.interval, day.stream.heal, "run x")

    frames, fills = frame_stage.stage(day.stream), fill_stage.stage(day.stream)
    if change is None:
        since = (hour(2) - datetime.fromtimestamp(0, UTC)) // timedelta(hours=1)
        run(overcounted(frames, table, {"frames_miscounted": 1}, [since]))
    else:
        run(tampered(frames, table, change))
        run(tampered(fills, table, change))
    stage, block = ("fill", "around") if table == "fills" else ("frame", "fine")
    seen = failed(day, stage)
    assert set(seen) == {check}
    # The counters of tasks are added up, whichever they are.
    assert seen[check].observed == 1 or check == "frames_counted"
    assert day.book()[Node(stage, block, table, hour(2))].status == "quarantined"


def test_values_that_lead_away_from_a_sum_are_told(house: Make) -> None:
    day = house(SIGNED)
    day.land(2, ["at,user,n", "2015-05-17T02:10:00Z,a,5", "2015-05-17T02:20:00Z,b,-7"])
    day.land(3, ["at,user,n", "2015-05-17T03:10:00Z,a,6"])
    day.run(2, 4)
    node = Node("frame", "enough", "open_frames", hour(2))
    seen = failed(day, "frame")
    assert {name: (check.node, check.observed) for name, check in seen.items()} == {"sums_grow": (node, 1)}
    assert seen["sums_grow"].sample == ("2015-05-17T02:20:00.000000 b: -7 steps",)
    assert day.book()[node].status == "published"


LONG_ITEMS = """
name: web
source: {path: "landing/web/%Y-%m-%d/access.%H*.log.gz", format: csv}
columns: {at: {type: timestamp}, user: {}, path: {}}
time: {column: at, format: iso}
key: [user]
persistence: {paths: {item: [user, path], slot: 1 hour, window: 4 hours, alpha: 1, epsilon: 0.9}}
frequency: {often: {item: [user, path], window: 4 hours, tick: 1 hour, epsilon: 0.1, delta: 0.1}}
"""


def test_an_item_of_nearly_a_megabyte_is_passed_over_and_told(house: Make) -> None:
    day = house(LONG_ITEMS)
    whole, more = "p" * 4095, "p" * 900_000
    day.land(2, ["at,user,path", *(f"2015-05-17T02:10:00Z,{row}" for row in (f"a,{whole}", f"b,{more}"))])
    log = [f"2015-05-17T03:{minute}:00Z,b,{more}" for minute in (10, 11)]
    day.land(3, ["at,user,path", *log, f"2015-05-17T03:20:00Z,a,{whole}"])
    day.run(2, 4)
    assert {row["user"] for row in day.rows_of("persistent_items")} == {"a"}
    assert {row["user"] for row in day.rows_of("tuples")} == {"a"}
    assert {(row["user"], row["estimate"]) for row in day.rows_of("frequencies")} == {("a", 1), ("a", 2)}
    assert list(failed(day, "sketch")) == ["items_short"]
    seen = day.ledger.failures(day.book(), "sketch")
    assert {(verdict.node.block, verdict.node.hour) for verdict in seen} == {
        (block, hour(number)) for block in ("paths", "often") for number in (2, 3)
    }
    for verdict in seen:
        assert verdict.observed == (1 if verdict.node.hour == hour(2) else 2)
        assert verdict.sample == (f"b, {'p' * 60}",)
        assert day.book()[verdict.node].status == "published"


REMEMBERED = """
name: web
preset: apache/combined
source: {path: "landing/web/%Y-%m-%d/access.%H*.log.gz"}
key: [client]
persistence:
  clients: {item: [client], slot: 1 hour, window: 4 hours, alpha: 1, epsilon: 0.9}
frequency:
  answers: {item: [client, status], window: 2 hours, tick: 15 minutes, epsilon: 0.5, delta: 0.5,
            variant: splitter}
"""


def earlier(rows: DataFrame) -> DataFrame:
    return rows.withColumn("start", F.expr("start - INTERVAL 4 HOURS"))


@pytest.mark.parametrize(
    ("table", "change", "check"),
    [
        ("tuples", earlier, "tuples_in_window"),
        ("persistent_items", lambda rows: rows.withColumn("high", F.lit(5)), "persistence_bounded"),
        ("persistent_items", lambda rows: rows.withColumn("slots", F.lit("?0?0")), "persistence_bounded"),
        ("tuples", {"pairs": 5000}, "tuples_expected"),
        ("tuples", {"tuples_started": 40}, "tuples_expected"),
        ("tuples", {"tuples_miscounted": 1}, "slots_counted"),
        ("tick_matrices", {"matrices_miscounted": 1}, "rows_counted"),
        ("cells", {"sub_cells": 5000}, "sub_cells_bounded"),
        ("frequencies", lambda rows: rows.withColumn("low", F.col("high") + 1), "frequency_bounded"),
        ("frequencies", lambda rows: rows.withColumn("high", F.lit(99)), "frequency_bounded"),
        ("frequencies", {"totals_off": 1}, "totals_kept"),
    ],
)  # fmt: skip
def test_a_sketch_that_is_not_what_its_hour_makes_is_seen(
    house: Make, table: str, change: Callable[[DataFrame], DataFrame] | Mapping[str, int], check: str
) -> None:
    day = house(REMEMBERED)
    day.land(2, [line(7200 + number, f"10.0.0.{number}") for number in range(9)])
    day.ingest(2, 3)
    context = day.context(2, 3)
    stage = sketch_stage.stage(day.stream)
    day.store.create(step.table for step in stage.steps)
    since = (hour(2) - datetime.fromtimestamp(0, UTC)) // timedelta(hours=1)
    if isinstance(change, Mapping):
        changed = overcounted(stage, table, change, [since])
    else:
        changed = tampered(stage, table, change)
    refresh(day.store, day.ledger, changed, context.interval, day.stream.heal, "run x")
    assert set(failed(day, "sketch")) == {check}
    block = "clients" if table in ("tuples", "persistent_items") else "answers"
    assert day.book()[Node("sketch", block, table, hour(2))].status == "quarantined"


SIGNED = """
name: web
source: {path: "landing/web/%Y-%m-%d/access.%H*.log.gz", format: csv}
columns: {at: {type: timestamp}, user: {}, n: {type: integer}}
time: {column: at, format: iso}
key: [user]
frames:
  enough: {kind: aggregate, condition: sum(n) > 10, span: minimal, ties: sum}
"""

LARGE = """
name: web
preset: apache/combined
source: {path: "landing/web/%Y-%m-%d/access.%H*.log.gz"}
key: []
aggregate:
  sent: {measures: {sent: mean(bytes)}, levels: "RANGES 2 HOURS, 1 HOUR SLIDES 1 HOUR, 1 HOUR"}
  site: {measures: {n: count}, levels: RANGES 1 HOUR SLIDES 1 HOUR}
"""


def test_a_sum_that_might_not_be_exact_is_withheld_or_left_out(house: Make) -> None:
    day = house(LARGE)
    for number, lines in ((2, 300), (3, 300), (4, 512)):
        day.land(number, [line(3600 * number + i, sent=2**53) for i in range(lines)])
    day.run(2, 5)
    statuses = {
        (node.table, node.hour.hour): entry.status
        for node, entry in day.book().items()
        if node.block == "sent"
    }
    assert statuses == {
        ("granules", 2): "published", ("granules", 3): "published", ("granules", 4): "quarantined",
        ("aggregates", 2): "published", ("aggregates", 3): "quarantined", ("aggregates", 4): "blocked",
    }  # fmt: skip
    words = "\n".join(judge(day.ledger, "aggregate", "web", Interval(hour(3), hour(5)), "").failures)
    helps = "expected at most 0 (rows whose largest magnitude times their number of values reaches 2**62 "
    helps += "units: a coarser resolution or unit helps)"
    assert f"2015-05-17T03:00 sent: sums_exact, column sum_sent: observed 1, {helps}" in words
    assert f"values_sent 600, min_sent {2**53}, max_sent {2**53}" in words
    assert f"2015-05-17T04:00 sent: sums_exact, column sum_bytes: observed 1, {helps}" in words
    assert f"values_bytes 512, min_bytes {2**53}" in words
    SEEN.add("sums_exact")
    judged = day.ledger.checks(day.book(), "aggregate", {hour(2)})
    assert {v.node.block for v in judged if v.check == "sums_exact"} == {"sent"}

    let_pass = house(LARGE + "checks: {sums_exact: {severity: warning}}\n")
    let_pass.aggregate(2, 5)
    let_pass.assert_ledger_true()
    rows = let_pass.table("aggregates").where("block = 'sent'").orderBy("level", "hour").collect()
    assert [(row.values_sent, row.sum_sent, row.mean_sent, row.max_sent) for row in rows] == [
        (300, 300 * 2**53, 2.0**53, 2**53), (300, 300 * 2**53, 2.0**53, 2**53), (512, None, None, 2**53),
        (300, 300 * 2**53, 2.0**53, 2**53), (600, None, None, 2**53), (812, None, None, 2**53),
    ]  # fmt: skip


def test_a_line_that_might_not_be_exact_is_withheld(house: Make) -> None:
    """A unit of 2**42 bytes, after two of half as many."""
    day = house(
        LARGE.replace('1 HOUR, 1 HOUR"}', '1 HOUR, 1 HOUR", fit: 1 hour}').replace("2 HOURS, 1", "3 HOURS, 1")
    )
    for number in (2, 3, 4):
        day.land(number, [line(3600 * number, sent=2**42 if number == 4 else 2**41)])
    day.run(2, 5)
    book = day.book()
    statuses = [book[Node("aggregate", "sent", "aggregates", hour(n))].status for n in (2, 3, 4)]
    assert statuses == ["published", "published", "quarantined"]
    words = "\n".join(judge(day.ledger, "aggregate", "web", Interval(hour(4), hour(5)), "").failures)
    helps = "expected at most 0 (windows with a unit whose value reaches 2**42 steps of its column's "
    helps += "resolution: a coarser resolution helps)"
    assert f"2015-05-17T04:00 sent: lines_exact, column slope_sent: observed 1, {helps}" in words


def test_no_check_is_left_out() -> None:
    assert set(BUILT_IN) <= SEEN, "in a run of the whole module, each has failed by now"
