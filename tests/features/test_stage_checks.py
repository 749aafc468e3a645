"""Every check of a stage fails on rows and counts that are bad for it, and no other check does.

The rows come from real runs over small logs, computed once. Each case puts one fault into one hour of one
block. Then the step's own metrics and checks evaluate it, without a run of its own.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from functools import cache
from typing import NamedTuple

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.support.failing_checks import noted
from tests.support.stream_harness import StreamHarness, hour, line
from tests.support.tampering import Audit, audits, one_more_where

GOOD = [line(3600 * 2 + i) for i in range(10)]
SOURCE = """
name: web
preset: apache/combined
source: {path: "landing/web/%Y-%m-%d/access.%H*.log.gz", expected_files: 1}
"""


class Lake(NamedTuple):
    """A small log, and the stages that run over it."""

    text: str
    files: Mapping[int, list[str]]
    stages: tuple[str, ...]


LAKES = {
    "aggregates": Lake(
        SOURCE
        + """
key: [client]
aggregates:
  site:
    key: []
    measures: {n: count, most: max(bytes), sent: mean(bytes)}
    levels: RANGES 2 HOURS, 1 HOUR SLIDES 1 HOUR, 1 HOUR
    fit: 1 hour
    recurring: [status]
checks:
  calm: {stage: aggregates, every: "n <= 100"}
  few_rows: {stage: aggregates, rows: {at_most: 2}}
""",
        {1: [line(3600)], 2: GOOD},
        ("aggregates",),
    ),
    "patterns": Lake(
        SOURCE
        + """
key: [client]
patterns:
  two_of_client: {within: 1 minute, steps: [{id: two, where: status = 200, times: 2}]}
  two_of_all: {key: [], within: 1 minute, steps: [{id: two, where: status = 200, times: 2}]}
  bounded: {within: 3 hours, max_records: 5, steps: [{id: two, where: status = 404, times: 2}]}
""",
        {2: [*GOOD, line(2 * 3600 + 60, status=404)]},
        ("patterns",),
    ),
    "frames": Lake(
        SOURCE
        + """
key: [client]
frames:
  fine: {kind: threshold, where: status = 200, value: bytes, on_duplicate_time: last, min_records: 5}
  other: {kind: threshold, where: status = 404, on_duplicate_time: last}
fills:
  around: {frame: fine}
""",
        {2: GOOD},
        ("frames", "fills"),
    ),
    "persistence": Lake(
        SOURCE
        + """
key: [client]
persistence:
  clients: {item: [client], slot: 1 hour, window: 4 hours, alpha: 1, epsilon: 0.9}
""",
        {2: [line(7200 + number, f"10.0.0.{number}") for number in range(9)]},
        ("persistence",),
    ),
    "frequency": Lake(
        SOURCE
        + """
key: [client]
frequency:
  answers: {item: [client, status], window: 2 hours, tick: 15 minutes, epsilon: 0.5, delta: 0.5,
            variant: splitter}
""",
        {2: [line(7200 + number, f"10.0.0.{number}") for number in range(9)]},
        ("frequency",),
    ),
}


Fault = Callable[[DataFrame], DataFrame] | Mapping[str, int]
"""A change of rows, or the number that task counters are too large by."""


class Case(NamedTuple):
    """A fault in the rows or counts of a block's hour 2, and the observed value of each check that it makes
    fail.
    """

    lake: str
    table: str
    block: str
    fault: Fault
    observed: Mapping[str, float]


def set_to(**columns: str) -> Callable[[DataFrame], DataFrame]:
    """Give columns another value in every row, or a null of their type."""

    def change(rows: DataFrame) -> DataFrame:
        return rows.withColumns(
            {name: F.expr(to).cast(rows.schema[name].dataType) for name, to in columns.items()}
        )

    return change


def twice(**columns: str) -> Callable[[DataFrame], DataFrame]:
    """Add each row a second time, with other values in some columns."""
    return lambda rows: rows.unionByName(set_to(**columns)(rows))


CASES = [
    Case("aggregates", "granules", "site", one_more_where("true"), {"granules_add_up": -1}),
    Case(
        "aggregates",
        "aggregates",
        "site",
        {"wide_short_of_narrow": 1},
        {"wide_covers_narrow": 1},
    ),
    Case(
        "aggregates",
        "aggregates",
        "site",
        {"narrow_beyond_wide": 1},
        {"wide_holds_extremes": 1},
    ),
    Case(
        "aggregates",
        "aggregates",
        "site",
        set_to(window_end="window_end + INTERVAL 1 MICROSECOND"),
        {"ends_inside_hour": 2},
    ),
    Case("aggregates", "granules", "site", set_to(sum_bytes="null"), {"sums_exact": 1}),
    Case("aggregates", "aggregates", "site", set_to(sum_sent="null"), {"sums_exact": 2}),
    Case("aggregates", "aggregates", "site", set_to(slope_n="1.0"), {"lines_of_two": 1}),
    Case("aggregates", "aggregates", "site", set_to(slope_n="null"), {"lines_exact": 1}),
    Case("aggregates", "aggregates", "site", one_more_where("false"), {}),
    Case("aggregates", "aggregates", "site", twice(), {"few_rows": 4}),
    Case("aggregates", "aggregates", "site", set_to(n="101"), {"calm": 0}),
    Case(
        "aggregates",
        "recurring",
        "site",
        set_to(counts="array(counts[0], 0L)"),
        {"recurring_in_every_ring": 1},
    ),
    Case(
        "patterns",
        "episodes",
        "two_of_client",
        set_to(last_time="hour + INTERVAL 1 HOUR"),
        {"episodes_inside_hour": 1},
    ),
    Case("patterns", "episodes", "two_of_all", set_to(new_matches="8"), {"matches_in_episodes": 1}),
    # An hour has parts of a batch, each of at most 2L records.
    Case("patterns", "batches", "bounded", {"longest_batch": 12}, {"batches_within_bound": 2}),
    # Of one key 12, 6, 3, 1, 1, 1 and 0 windows end in the hour, at levels of 5 minutes to 5 hours.
    Case(
        "patterns",
        "matches",
        "bounded",
        {"longest_batch": 11, "longest_window": 21, "records_shown": 482, "detector_failures": 1},
        {"batches_within_bound": 1, "windows_within_bound": 1, "work_within_bound": 2, "detector_ran": 1},
    ),
    Case("frames", "open_frames", "fine", set_to(records="4"), {"frames_keep_rules": 1}),
    Case("frames", "open_frames", "fine", {"frames_miscounted": 1}, {"frames_counted": 1}),
    Case("frames", "frames", "fine", twice(fragment="2"), {"frames_apart": 1}),
    Case("frames", "frames", "fine", set_to(mean="null"), {"frames_exact": 1}),
    Case("frames", "fills", "around", set_to(rows_matched="9"), {"fills_counted": 1}),
    Case(
        "persistence", "tuples", "clients", set_to(start="start - INTERVAL 4 HOURS"), {"tuples_in_window": 8}
    ),
    Case(
        "persistence", "tuples", "clients", {"pairs": 5000}, {"tuples_expected": pytest.approx(5253, abs=1)}
    ),
    Case(
        "persistence",
        "tuples",
        "clients",
        {"tuples_started": 40},
        {"tuples_expected": pytest.approx(19, abs=1)},
    ),
    Case("persistence", "tuples", "clients", {"tuples_miscounted": 1}, {"slots_counted": 1}),
    Case("persistence", "persistent_items", "clients", set_to(high="5"), {"persistence_bounded": 6}),
    Case("persistence", "persistent_items", "clients", set_to(slots="'?0?0'"), {"persistence_bounded": 6}),
    Case("frequency", "tick_matrices", "answers", {"matrices_miscounted": 1}, {"rows_counted": 1}),
    Case(
        "frequency",
        "cells",
        "answers",
        {"sub_cells": 5000},
        {"sub_cells_bounded": pytest.approx(4610, abs=1)},
    ),
    Case("frequency", "frequencies", "answers", set_to(low="high + 1"), {"frequency_bounded": 9}),
    Case("frequency", "frequencies", "answers", set_to(high="99"), {"frequency_bounded": 9}),
    Case("frequency", "frequencies", "answers", {"totals_off": 1}, {"totals_kept": 1}),
]


@pytest.fixture(scope="module")
def audited(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterable[Callable[[str], Mapping[str, Audit]]]:
    """Return the input of a lake's step checks, by table; each lake is built once."""
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())

        @cache
        def of(name: str) -> Mapping[str, Audit]:
            lake, folder = LAKES[name], tmp_path_factory.mktemp(name)
            patch.setenv("TRANSOM_HOME", str(folder))
            harness = StreamHarness(spark, folder, lake.text)
            for number, lines in lake.files.items():
                harness.land(number, lines)
            first, end = min(lake.files), max(lake.files) + 1
            harness.stage("ingest", first, end)
            with audits() as noticed:
                for stage in lake.stages:
                    harness.stage(stage, first, end)
            assert {entry.status for entry in harness.snapshot().values()} == {"published"}
            return noticed

        yield of


def as_param(case: Case) -> object:
    """Return a case that runs on the worker that has built its lake."""
    name = f"{case.table}-{'-'.join(case.observed) or 'nothing'}"
    return pytest.param(case, id=name, marks=pytest.mark.xdist_group(f"checks of {case.lake}"))


@pytest.mark.parametrize("case", [as_param(case) for case in CASES])
def test_fault_between_computing_and_publishing_fails_its_check_alone(
    audited: Callable[[str], Mapping[str, Audit]], case: Case
) -> None:
    audit = audited(case.lake)[case.table]
    node = audit.node(case.block, hour(2))
    if isinstance(case.fault, Mapping):
        changed = audit.with_counts(node, case.fault)
    else:
        changed = audit.with_rows(node, case.fault)
    failures = noted(changed.failures(), node.stage)
    assert {verdict.partition for verdict in failures} <= {node}
    assert {verdict.check: verdict.observed for verdict in failures} == dict(case.observed)


@pytest.mark.parametrize(
    "lake", [pytest.param(name, marks=pytest.mark.xdist_group(f"checks of {name}")) for name in LAKES]
)
def test_good_rows_fail_no_check(audited: Callable[[str], Mapping[str, Audit]], lake: str) -> None:
    assert {table: audit.failures() for table, audit in audited(lake).items() if audit.failures()} == {}
