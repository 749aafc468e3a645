"""Checks on whole lakes: failed rows are quarantined, good rows are published, and every check has a test."""

import shutil
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.features import test_stage_checks
from tests.ingest import test_equal_file_tables as test_equal_files
from tests.ingest import test_ingest_checks
from tests.support.failing_checks import declared_in, failed, makes_fail
from tests.support.stream_harness import StreamHarness, hour, line
from tests.support.tampering import overcounted, tampered
from transom.app.definitions import definition
from transom.core.intervals import Interval
from transom.core.partitions import PartitionKey
from transom.engine.gate import evaluate_gate
from transom.engine.runner import run_steps
from transom.features.aggregates import stage as aggregate_stage
from transom.features.fills import stage as fill_stage
from transom.features.frames import stage as frame_stage
from transom.features.patterns import stage as widen_stage
from transom.features.registry import BUILT_IN
from transom.ledger.stage import Stage

Make = Callable[..., StreamHarness]

EVERY_STAGE = """
name: web
preset: apache/combined
source: {path: "landing/web/%Y-%m-%d/access.%H*.log.gz", expected_files: 1}
key: [client]
aggregates:
  site:
    {key: [], measures: {n: count}, levels: "RANGES 2 HOURS, 1 HOUR SLIDES 1 HOUR, 1 HOUR",
     recurring: [status]}
patterns:
  of_client: {key: [client], within: 1 minute, steps: [{id: two, where: status = 200, times: 2}]}
  of_all: {key: [], within: 1 minute, steps: [{id: two, where: status = 200, times: 2}]}
  sound: {key: [status], within: 1 minute, steps: [{id: two, where: status = 200, times: 2}]}
frames:
  fine: {kind: threshold, where: status = 200, value: bytes, on_duplicate_time: last, min_records: 5}
fills:
  around: {frame: fine}
persistence:
  clients: {item: [client], slot: 1 hour, window: 4 hours, alpha: 1, epsilon: 0.9}
frequency:
  answers: {item: [client, status], window: 2 hours, tick: 15 minutes, epsilon: 0.5, delta: 0.5,
            variant: splitter}
checks:
  calm: {stage: aggregates, every: "n <= 100"}
"""
GOOD = [line(3600 * 2 + i) for i in range(10)]


@pytest.fixture(scope="module")
def ingested_lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a lake with two hours of events; tests work on copies."""
    folder = tmp_path_factory.mktemp("ingested")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRANSOM_HOME", str(folder))
        harness = StreamHarness(spark, folder, EVERY_STAGE)
        harness.land(1, [line(3600)])
        harness.land(2, GOOD)
        harness.stage("ingest", 1, 3)
    return folder


@pytest.fixture
def day(make_stream: Make, ingested_lake: Path, tmp_path: Path) -> StreamHarness:
    """Return a copy of that lake."""
    shutil.copytree(ingested_lake, tmp_path, dirs_exist_ok=True)
    return make_stream(EVERY_STAGE)


def run(day: StreamHarness, stage: Stage) -> None:
    """Run a stage over both hours, optionally with faults."""
    day.store.create(*(step.table for step in stage.steps))
    interval = Interval(hour(1), hour(3))
    run_steps(day.store, day.ledger, stage, interval, day.stream.repair_window, "run x")


def rows_of_hour(day: StreamHarness, table: str, block: str) -> int:
    """Return the number of rows of a block's hour 2 in a table."""
    return sum((row["block"], row["hour"]) == (block, hour(2)) for row in day.rows_of(table))


@pytest.mark.xdist_group("checks of a lake")
def gate_words(day: StreamHarness, start: int, end: int) -> str:
    """Return the text of the aggregates' gate for an interval that it rejects, in one line."""
    failures = evaluate_gate(day.ledger, "aggregates", "web", Interval(hour(start), hour(end)), "").failures
    return " ".join(" ".join(failures).split())


def test_good_data_fails_no_check(day: StreamHarness) -> None:
    day.stage("aggregates", 1, 3)
    assert failed(day, "ingest") == failed(day, "aggregates") == {}
    assert {entry.status for entry in day.snapshot().values()} == {"published"}


def set_to(column: str, value: object) -> Callable[[DataFrame], DataFrame]:
    """Give a column another value in every row."""
    return lambda rows: rows.withColumn(column, F.lit(value).cast(rows.schema[column].dataType))


@pytest.mark.xdist_group("checks of a lake")
@pytest.mark.parametrize(
    ("make", "block", "table", "fault", "check", "samples", "good"),
    [
        (
            aggregate_stage.definition,
            "site",
            "aggregates",
            set_to("n", 101),
            "calm",
            2,
            ("site", "granules"),
        ),
        pytest.param(
            frame_stage.definition,
            "fine",
            "frames",
            set_to("mean", None),
            "frames_exact",
            1,
            ("fine", "open_frames"),
            marks=pytest.mark.full,
        ),
        pytest.param(
            fill_stage.definition,
            "around",
            "fills",
            set_to("rows_matched", 9),
            "fills_counted",
            0,
            None,
            marks=pytest.mark.full,
        ),
        (
            partial(definition, name="frequency"),
            "answers",
            "tick_matrices",
            {"matrices_miscounted": 1},
            "rows_counted",
            0,
            None,
        ),
    ],
    ids=["aggregates", "frames", "fills", "frequency"],
)
def test_faulty_table_is_quarantined_and_others_are_published(
    day: StreamHarness,
    make: Callable[..., Stage],
    block: str,
    table: str,
    fault: Callable[[DataFrame], DataFrame] | Mapping[str, int],
    check: str,
    samples: int,
    good: tuple[str, str] | None,
) -> None:
    """Two stages in the quick tier: every stage is published in the same way."""
    stage = make(day.stream)
    if stage.name == "fills":
        run(day, frame_stage.definition(day.stream))
    changed = (
        overcounted(stage, table, fault) if isinstance(fault, Mapping) else tampered(stage, table, fault)
    )
    run(day, changed)
    failures = [v for v in day.ledger.failures(day.snapshot(), stage.name) if v.partition.hour == hour(2)]
    assert [(verdict.check, len(verdict.failing_rows)) for verdict in failures] == [(check, samples)]
    assert day.snapshot()[PartitionKey(stage.name, block, table, hour(2))].status == "quarantined"
    assert rows_of_hour(day, table, block) == 0
    if good is not None:
        good_block, good_table = good
        assert day.snapshot()[PartitionKey(stage.name, good_block, good_table, hour(2))].status == "published"
        assert rows_of_hour(day, good_table, good_block) > 0


@pytest.mark.xdist_group("checks of a lake")
def test_faulty_block_is_quarantined_and_others_are_published(day: StreamHarness) -> None:
    def at_fault(rows: DataFrame) -> DataFrame:
        if "client" in rows.columns:
            return rows.withColumn("last_time", F.expr("hour + INTERVAL 1 HOUR"))
        return rows if "status" in rows.columns else rows.withColumn("new_matches", F.lit(8))

    run(day, tampered(widen_stage.definition(day.stream), "episodes", at_fault))
    result = {name: (of.partition.block, of.observed) for name, of in failed(day, "patterns").items()}
    assert result == {"episodes_inside_hour": ("of_client", 1), "matches_in_episodes": ("of_all", 1)}
    statuses = {
        block: day.snapshot()[PartitionKey("patterns", block, "episodes", hour(2))].status
        for block in day.stream.patterns
    }
    assert statuses == {"of_client": "quarantined", "of_all": "quarantined", "sound": "published"}
    (row,) = day.rows_of("episodes")
    assert (row["block"], row["matches"], row["new_matches"], row["state"]) == ("sound", 9, 9, "final")


@pytest.mark.xdist_group("checks of a lake")
def test_faulty_hour_is_quarantined_until_a_run_without_the_fault(day: StreamHarness) -> None:
    stage = aggregate_stage.definition(day.stream)

    def without_the_last(rows: DataFrame) -> DataFrame:
        return rows.withColumn("counts", F.expr("array(counts[0], 0L)"))

    run(day, tampered(stage, "recurring", without_the_last))
    (verdict,) = failed(day, "aggregates").values()
    assert (verdict.check, verdict.observed) == ("recurring_in_every_ring", 1)
    snapshot = day.snapshot()
    statuses = [snapshot[PartitionKey("aggregates", "site", "recurring", hour(n))].status for n in (1, 2)]
    assert statuses == ["published", "quarantined"]
    assert day.rows_of("recurring") == []
    day.stage("aggregates", 1, 3)
    assert [row["counts"] for row in day.rows_of("recurring")] == [[10, 1]]


SIGNED = """
name: web
source: {path: "landing/web/%Y-%m-%d/access.%H*.log.gz", format: csv}
columns: {at: {type: timestamp}, user: {}, n: {type: integer}}
time: {column: at, format: iso}
key: [user]
frames:
  enough: {kind: aggregate, condition: sum(n) > 10, span: minimal, on_duplicate_time: sum}
"""


@makes_fail("sums_grow")
def test_value_that_moves_away_from_a_sum_is_reported(make_stream: Make) -> None:
    day = make_stream(SIGNED)
    day.land(2, ["at,user,n", "2015-05-17T02:10:00Z,a,5", "2015-05-17T02:20:00Z,b,-7"])
    day.land(3, ["at,user,n", "2015-05-17T03:10:00Z,a,6"])
    day.run(2, 4)
    node = PartitionKey("frames", "enough", "open_frames", hour(2))
    observed = failed(day, "frames")
    assert {name: (check.partition, check.observed) for name, check in observed.items()} == {
        "sums_grow": (node, 1)
    }
    assert observed["sums_grow"].failing_rows == ("2015-05-17T02:20:00.000000 b: -7 steps",)
    assert day.snapshot()[node].status == "published"


LONG_ITEMS = """
name: web
source: {path: "landing/web/%Y-%m-%d/access.%H*.log.gz", format: csv}
columns: {at: {type: timestamp}, user: {}, path: {}}
time: {column: at, format: iso}
key: [user]
persistence: {paths: {item: [user, path], slot: 1 hour, window: 4 hours, alpha: 1, epsilon: 0.9}}
frequency: {often: {item: [user, path], window: 4 hours, tick: 1 hour, epsilon: 0.1, delta: 0.1}}
"""


@makes_fail("tracked_items_short", "counted_items_short")
def test_item_of_nearly_a_megabyte_is_dropped_and_reported(make_stream: Make) -> None:
    day = make_stream(LONG_ITEMS)
    whole, more = "p" * 4095, "p" * 900_000
    day.land(2, ["at,user,path", *(f"2015-05-17T02:10:00Z,{row}" for row in (f"a,{whole}", f"b,{more}"))])
    log = [f"2015-05-17T03:{minute}:00Z,b,{more}" for minute in (10, 11)]
    day.land(3, ["at,user,path", *log, f"2015-05-17T03:20:00Z,a,{whole}"])
    day.run(2, 4)
    assert {row["user"] for row in day.rows_of("persistent_items")} == {"a"}
    assert {row["user"] for row in day.rows_of("tuples")} == {"a"}
    assert {(row["user"], row["estimate"]) for row in day.rows_of("frequencies")} == {("a", 1), ("a", 2)}
    assert list(failed(day, "persistence")) == ["tracked_items_short"]
    assert list(failed(day, "frequency")) == ["counted_items_short"]
    observed = [
        v for stage in ("persistence", "frequency") for v in day.ledger.failures(day.snapshot(), stage)
    ]
    assert {(verdict.partition.block, verdict.partition.hour) for verdict in observed} == {
        (block, hour(number)) for block in ("paths", "often") for number in (2, 3)
    }
    for verdict in observed:
        assert verdict.observed == (1 if verdict.partition.hour == hour(2) else 2)
        assert verdict.failing_rows == (f"b, {'p' * 60}",)
        assert day.snapshot()[verdict.partition].status == "published"


LARGE = """
name: web
preset: apache/combined
source: {path: "landing/web/%Y-%m-%d/access.%H*.log.gz"}
key: []
aggregates:
  sent: {measures: {sent: mean(bytes)}, levels: "RANGES 2 HOURS, 1 HOUR SLIDES 1 HOUR, 1 HOUR"}
  site: {measures: {n: count}, levels: RANGES 1 HOUR SLIDES 1 HOUR}
"""


@pytest.mark.full
@makes_fail("sums_exact")
def test_possibly_inexact_sum_is_quarantined_or_dropped(make_stream: Make) -> None:
    day = make_stream(LARGE)
    for number, lines in ((2, 300), (3, 300), (4, 512)):
        day.land(number, [line(3600 * number + i, sent=2**53) for i in range(lines)])
    day.run(2, 5)
    statuses = {
        (node.table, node.hour.hour): entry.status
        for node, entry in day.snapshot().items()
        if node.block == "sent"
    }
    assert statuses == {
        ("granules", 2): "published", ("granules", 3): "published", ("granules", 4): "quarantined",
        ("aggregates", 2): "published", ("aggregates", 3): "quarantined", ("aggregates", 4): "blocked",
    }  # fmt: skip
    text = gate_words(day, 3, 5)
    helps = "expected at most 0 (rows whose largest magnitude times their number of values reaches 2**62 "
    helps += "units: a coarser resolution or unit helps)"
    assert f"sums_exact: observed 1, {helps}" in text
    assert f"values_sent 600, min_sent {2**53}, max_sent {2**53}" in text
    assert f"2015-05-17T04:00 sent: sums_exact, column sum_bytes: observed 1, {helps}" in text
    assert f"values_bytes 512, min_bytes {2**53}" in text
    assert set(failed(day, "aggregates")) == {"sums_exact"}
    evaluated = day.ledger.checks(day.snapshot(), "aggregates", {hour(2)})
    assert {v.partition.block for v in evaluated if v.check == "sums_exact"} == {"sent"}

    let_pass = make_stream(LARGE + "checks: {sums_exact: {severity: warning}}\n")
    let_pass.stage("aggregates", 2, 5)
    let_pass.assert_ledger_true()
    rows = let_pass.table("aggregates").where("block = 'sent'").orderBy("level", "hour").collect()
    assert [(row.values_sent, row.sum_sent, row.mean_sent, row.max_sent) for row in rows] == [
        (300, 300 * 2**53, 2.0**53, 2**53), (300, 300 * 2**53, 2.0**53, 2**53), (512, None, None, 2**53),
        (300, 300 * 2**53, 2.0**53, 2**53), (600, None, None, 2**53), (812, None, None, 2**53),
    ]  # fmt: skip


@pytest.mark.full
@makes_fail("lines_exact")
def test_possibly_inexact_line_fit_is_quarantined(make_stream: Make) -> None:
    """A value of 2**42 bytes, after two of half as many."""
    day = make_stream(
        LARGE.replace('1 HOUR, 1 HOUR"}', '1 HOUR, 1 HOUR", fit: 1 hour}').replace("2 HOURS, 1", "3 HOURS, 1")
    )
    for number in (2, 3, 4):
        day.land(number, [line(3600 * number, sent=2**42 if number == 4 else 2**41)])
    day.run(2, 5)
    snapshot = day.snapshot()
    assert set(failed(day, "aggregates")) == {"lines_exact"}
    statuses = [snapshot[PartitionKey("aggregates", "sent", "aggregates", hour(n))].status for n in (2, 3, 4)]
    assert statuses == ["published", "published", "quarantined"]
    text = gate_words(day, 4, 5)
    helps = "expected at most 0 (windows with a unit whose value reaches 2**42 steps of its column's "
    helps += "resolution: a coarser resolution helps)"
    assert f"lines_exact: observed 1, {helps}" in text


def test_every_check_has_a_test_that_makes_it_fail() -> None:
    cases = (*test_ingest_checks.CASES.values(), *test_stage_checks.CASES)
    covered = {check for case in cases for check in case.observed}
    # The tests of this module declare their checks in this module.
    here = {check for item in globals().values() for check in getattr(item, "checks", ())}
    declared = declared_in(test_ingest_checks) | declared_in(test_equal_files)
    assert set(BUILT_IN) - covered - declared - here == set()
