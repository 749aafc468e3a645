"""The quality of a stream, compared with the tables."""

import re
import shutil
from collections import Counter
from dataclasses import replace

import pytest

from tests.support.viewed_lake import ROWS, ViewedLake, at, between, quality_of
from transom.charts.section import MAX_ROWS, Section
from transom.charts.specs import millis
from transom.core.partitions import CheckResult, PartitionKey, PartitionState, Status
from transom.features.ingest.expected_inputs import partition_of
from transom.ledger.check import Check, bounds_of
from transom.views import check_history
from transom.views.open_stream import OpenStream
from transom.views.render import svg


def section(lake: ViewedLake, subject: str, page: int = 1) -> Section:
    parts = quality_of(OpenStream(lake.uri, lake.stream), between(0, 6), page)
    (found,) = (part for part in parts if part.subject == subject)
    return found


def column(part: Section, name: str) -> list[object]:
    return [] if part.table is None else [row[part.table.columns.index(name)] for row in part.table.rows]


def heights(part: Section) -> dict[str, int]:
    assert part.chart is not None
    sums: dict[str, int] = {}
    for row in part.chart["layer"][0]["data"]["values"]:
        sums[row["series"]] = sums.get(row["series"], 0) + row["value"]
    return sums


def test_failed_checks_are_counted_and_paged(lake: ViewedLake) -> None:
    results = [
        CheckResult(partition_of("events", at(n % 6)), f"check{n:03}", "warning", 1.0, "0", False)
        for n in range(MAX_ROWS + 30)
    ]
    lake.ledger.record_checks("ingest", results, "a")
    lake.ledger.record_checks("ingest", results, "another run")
    pages = [section(lake, "checks", page) for page in (1, 2, 3)]
    shown = [check for part in pages for check in column(part, "check")]
    assert shown == [f"check{n:03}" for n in sorted(range(MAX_ROWS + 30), key=lambda n: (-(n % 6), n))]
    assert {part.table.total for part in pages if part.table} == {MAX_ROWS + 30}
    assert pages[0].note.startswith("230 failed checks")
    assert sum(heights(pages[0]).values()) == MAX_ROWS + 30
    assert pages[0].table is not None
    place = pages[0].table.columns.index("check")
    assert [row[place] for row in pages[0].table.all_rows] == shown


def test_failure_of_an_earlier_run_is_solved_if_its_check_does_not_fail_now(lake: ViewedLake) -> None:
    of = {"severity": "error", "observed": 1.0, "expected": "0", "success": False}
    solved, again, accepted, of_file = (
        CheckResult(partition_of("events", at(hour)), name, **of, file=file)  # type: ignore[arg-type]
        for hour, name, file in (
            (2, "solved", None),
            (2, "again", None),
            (3, "accepted", None),
            (4, "f", "p"),
        )
    )
    passed = replace(accepted, success=True, accepted="ann: fine")
    lake.ledger.record_checks("ingest", [solved, again, accepted, of_file], "ran ingest 1 aaaabbbbcccc")
    now = [replace(solved, success=True), again, passed, replace(of_file, file="q")]
    lake.ledger.record_checks("ingest", now, "a")
    # A run that has not ended has found it.
    claimed = partition_of("events", at(5))
    lake.ledger.record_checks("ingest", [replace(solved, partition=claimed)], "active")
    lake.ledger.claim("ingest", {claimed: PartitionState("published", "active")}, "active")
    part = section(lake, "solved")
    rows = zip(*(column(part, name) for name in ("hour", "check", "file", "run")), strict=True)
    assert [*rows] == [("2015-05-17T04:00", "f", "p", "ran"), ("2015-05-17T02:00", "solved", None, "ran")]
    assert part.note.startswith("2 failures of earlier runs")
    checks = section(lake, "checks")
    assert column(checks, "check") == ["f", "accepted", "again"]
    assert "2 failures of earlier runs are solved: see below." in checks.note


def test_page_without_a_failure_now_says_so_and_counts_the_solved_ones(lake: ViewedLake) -> None:
    failed = CheckResult(partition_of("events", at(1)), "c", "error", 1.0, "0", False)
    lake.ledger.record_checks("ingest", [failed], "earlier")
    answer = "No check of these hours fails now. 1 failure of earlier runs is solved: see below. All 6"
    assert section(lake, "checks").note.startswith(answer)
    parts = quality_of(OpenStream(lake.uri, lake.stream), between(0, 6), 1, "c")
    (part,) = (part for part in parts if part.subject == "outcomes")
    assert part.note.startswith("The runs that wrote these hours have no result of c.")
    assert [part.subject for part in parts][:3] == ["checks", "solved", "rejected"]
    lake.publish(range(6), run="b")
    parts = quality_of(OpenStream(lake.uri, lake.stream), between(2, 6))
    assert "solved" not in [part.subject for part in parts]


def test_accepted_check_does_not_withhold_the_hour(lake: ViewedLake) -> None:
    result = CheckResult(partition_of("events", at(1)), "c", "error", 1.0, "0", True, accepted="ann: fine")
    lake.ledger.record_checks("ingest", [result], "a")
    part = section(lake, "checks")
    assert column(part, "accepted") == ["ann: fine"]
    assert heights(part) == {"accepted: c": 1}
    assert part.note.startswith("1 failed check of the rows as they are, 1 of them accepted")


def test_runs_have_their_work_with_its_bound(lake: ViewedLake) -> None:
    lake.ran("patterns", 0, 3, comparisons=1_000)
    lake.ran("patterns", 50, 60)
    part = section(lake, "runs")
    assert [column(part, name) for name in ("requested", "seconds", "rows_read")] == [
        ["2015-05-17T00:00 to 2015-05-17T03:00"], [7.5], [12],
    ]  # fmt: skip
    assert part.note.startswith("1 run, the last first")


def test_missing_tables_of_quality_are_empty(lake: ViewedLake) -> None:
    for name in ("checks", "runs"):
        shutil.rmtree(f"{lake.root}/{name}")
    parts = quality_of(OpenStream(lake.uri, lake.stream), between(0, 6))
    tables = {part.subject: part.table for part in parts}
    assert [name for name, table in tables.items() if table] == ["lines"]


HISTORY = {
    # By hour: the observed value, whether the check passed, and who accepts it.
    "share": [
        (0.01, True, None), (0.02, True, None), (0.5, False, None), (0.6, True, "ann: fine"),
        (0.7, False, None),
    ],
    "rows": [(5.0, True, None), (7.0, True, None), (9.0, True, None), (11.0, True, None)],
    "same": [(0.0, True, None)] * 6,
    "few": [(1.0, False, None), (1.0, True, "ann: fine"), (1.0, True, "ann: fine")],
}  # fmt: skip
EXPECTED = {
    "share": "at most 0.05 (at least look at it)",
    "rows": "at least 5 and at most 100",
    "same": "0",
    "few": "0",
}


def record(lake: ViewedLake) -> None:
    """Record results of checks by the run of the lake, and of another run."""
    results = [
        CheckResult(
            partition_of("events", at(hour)), name, "error", value, EXPECTED[name], passed, accepted=accepted
        )
        for name, values in HISTORY.items()
        for hour, (value, passed, accepted) in enumerate(values)
    ]
    lake.ledger.record_checks("ingest", results, "a")
    lake.ledger.record_checks("ingest", [replace(result, observed=999.0) for result in results], "another")


def test_each_check_has_its_hours_and_its_values_over_time(lake: ViewedLake) -> None:
    record(lake)
    part = section(lake, "outcomes")
    names = ("check", "passed", "accepted", "failed", "least", "greatest", "last_hour")
    assert [*zip(*(column(part, name) for name in names), strict=True)] == [
        ("share", 2, 1, 2, 0.01, 0.7, at(4)),
        ("few", 0, 2, 1, 1.0, 1.0, at(2)),
        ("rows", 4, 0, 0, 5.0, 11.0, at(3)),
        ("same", 6, 0, 0, 0.0, 0.0, at(5)),
    ]  # fmt: skip
    assert part.chart is not None
    bars = part.chart["layer"][0]["data"]["values"]
    assert [(bar["label"].partition(",")[0], bar["start"], bar["end"], bar["state"]) for bar in bars] == [
        (name, millis(at(start)), millis(at(end)), state)
        for name, start, end, state in (
            ("share", 0, 2, "passed"),
            ("share", 2, 3, "failed"),
            ("share", 3, 4, "accepted"),
            ("share", 4, 5, "failed"),
            ("few", 0, 1, "failed"),
            ("few", 1, 3, "accepted"),
            ("rows", 0, 4, "passed"),
            ("same", 0, 6, "passed"),
        )
    ]


def test_failed_checks_are_red_with_an_outline_and_passed_ones_grey(lake: ViewedLake) -> None:
    record(lake)
    part = section(lake, "outcomes")
    assert part.chart is not None
    bars = Counter(bar["state"] for bar in part.chart["layer"][0]["data"]["values"])
    wide = svg(part.chart).partition("</svg>")[0]
    drawn = Counter(re.findall(r'<path[^>]*fill="var\(--(gap|odd|bad)\)"', wide))
    # The legend has one more of each.
    assert drawn == {
        colour: bars[state] + 1
        for colour, state in (("gap", "passed"), ("odd", "accepted"), ("bad", "failed"))
    }
    outlined = re.findall(r'<path[^>]*fill="var\(--(\w+)\)"[^>]*stroke="currentColor"', wide)
    assert outlined == ["bad"] * bars["failed"]


def test_observed_values_are_next_to_their_limits(lake: ViewedLake) -> None:
    record(lake)
    part = section(lake, "observed")
    names = ("check", "hour", "observed", "at_least", "at_most", "outcome")
    shown = zip(*(column(part, name) for name in names), strict=True)
    limits = {"share": (None, 0.05), "rows": (5.0, 100.0), "same": (0.0, 0.0), "few": (0.0, 0.0)}
    outcomes = {(True, None): "passed", (False, None): "failed", (True, "ann: fine"): "accepted"}
    assert [*shown] == [
        (name, at(hour), HISTORY[name][hour][0], *limits[name], outcomes[HISTORY[name][hour][1:]])
        for hour in reversed(range(6))
        for name in sorted(HISTORY)
        if hour < len(HISTORY[name])
    ]
    assert part.chart is not None
    points = {
        (row["panel"].partition(",")[0], row["series"], row["time"]): row["value"]
        for row in part.chart["data"]["values"]
    }
    assert points == {
        (name, series, millis(at(hour))): value
        for name, values in HISTORY.items()
        if name != "same"
        for hour, (observed, *_) in enumerate(values)
        for series, value in zip(("observed", "at least", "at most"), (observed, *limits[name]), strict=True)
        if value is not None
    }
    assert "1 check passed each time with the same value: no line is drawn. " in part.note


def test_checks_that_all_passed_with_one_value_have_no_lines_unless_selected(lake: ViewedLake) -> None:
    results = [CheckResult(partition_of("events", at(n)), "same", "error", 2.0, "2", True) for n in range(3)]
    lake.ledger.record_checks("ingest", results, "a")
    part = section(lake, "observed")
    assert (part.chart, column(part, "observed")) == (None, [2.0] * 3)
    parts = quality_of(OpenStream(lake.uri, lake.stream), between(0, 6), 1, "same")
    (part,) = (part for part in parts if part.subject == "observed")
    assert part.chart is not None


def test_observed_values_of_one_check(lake: ViewedLake, monkeypatch: pytest.MonkeyPatch) -> None:
    record(lake)
    monkeypatch.setattr(check_history, "LINES", 1)
    of_column = CheckResult(partition_of("events", at(0)), "rows", "error", 3.0, "0", False, column="client")
    lake.ledger.record_checks("ingest", [of_column], "a")
    worst = section(lake, "observed")
    assert set(column(worst, "check")) == {"share"}
    assert "5 results of 1 of 5 checks" in worst.note
    parts = quality_of(OpenStream(lake.uri, lake.stream), between(0, 6), 1, "rows")
    (part,) = (part for part in parts if part.subject == "observed")
    assert column(part, "observed") == [11.0, 9.0, 7.0, 3.0, 5.0]
    assert column(part, "column") == [None, None, None, "client", None]
    assert "5 results of 2 checks" in part.note
    assert "The chart has 1 of them" in part.note


def test_tables_of_a_block_with_the_same_check_have_lines_of_their_own(lake: ViewedLake) -> None:
    values = {"batches": [3.0, 1.0], "matches": [40.0, 50.0]}
    of_hours = {
        PartitionKey("patterns", "back", table, at(hour)): value
        for table, observed in values.items()
        for hour, value in enumerate(observed)
    }
    lake.enter("patterns", dict.fromkeys(of_hours, PartitionState("published", "p")), "p")
    results = [
        CheckResult(key, "batches_within_bound", "error", value, "0", False)
        for key, value in of_hours.items()
    ]
    lake.ledger.record_checks("patterns", results, "p")
    part = section(lake, "observed")
    assert part.chart is not None
    lines: dict[str, list[float]] = {}
    for row in part.chart["data"]["values"]:
        if row["series"] == "observed":
            lines.setdefault(row["panel"], []).append(row["value"])
    assert lines == {f"batches_within_bound, {table} of back": observed for table, observed in values.items()}


@pytest.mark.parametrize(("subject", "check"), [("outcomes", None), ("observed", "rejected_share")])
def test_tables_of_checks_are_paged(lake: ViewedLake, subject: str, check: str | None) -> None:
    names = [f"n{number:03}" for number in range(MAX_ROWS + 30)]
    of_hour = [partition_of("events", at(n % 6)) for n in range(MAX_ROWS + 30)]
    results = [
        CheckResult(partition, check or name, "warning", 1.0, "0", False, file=name)
        for partition, name in zip(of_hour, names, strict=True)
    ]
    lake.ledger.record_checks("ingest", results, "a")
    opened, shown = OpenStream(lake.uri, lake.stream), list[object]()
    for page in (1, 2, 3):
        parts = quality_of(opened, between(0, 6), page, check)
        (part,) = (part for part in parts if part.subject == subject)
        assert part.table is not None
        assert (part.table.total, part.table.first) == (len(names), 1 + (page - 1) * MAX_ROWS)
        assert part.note.startswith(f"{len(names)} ")
        assert len([*part.table.all_rows]) == len(names)
        shown += column(part, "file" if check else "check")
    assert sorted(map(str, shown)) == names


def test_days_have_their_worst_outcome(lake: ViewedLake) -> None:
    partitions = [partition_of("events", at(n)) for n in range(72)]
    lake.enter("ingest", dict.fromkeys(partitions, PartitionState("published", "a")), "a")
    results = [
        CheckResult(partition, "c", "error", 0.0, "0", n not in (30, 50))
        for n, partition in enumerate(partitions)
    ]
    lake.ledger.record_checks("ingest", results, "a")
    parts = quality_of(OpenStream(lake.uri, lake.stream), between(0, 24 * 8))
    (part,) = (part for part in parts if part.subject == "outcomes")
    assert part.chart is not None
    bars = [(bar["start"], bar["end"], bar["state"]) for bar in part.chart["layer"][0]["data"]["values"]]
    assert bars == [(millis(at(0)), millis(at(24)), "passed"), (millis(at(24)), millis(at(72)), "failed")]


def test_lines_of_quarantined_files_are_next_to_published_events(lake: ViewedLake) -> None:
    lake.publish([1, 2], run="b", rows=40)
    state = PartitionState("quarantined", "c", rows=7, reason="share")
    lake.enter("ingest", {partition_of("events", at(3)): state}, "c")
    file = {"hour": at(3), "status": "quarantined", "lines": 12, "status_reason": "too many rejected"}
    lake.add(
        "files", [file | {"path": "p"}, file | {"path": "q"}, file | {"path": "r", "status": "ingested"}]
    )
    part = section(lake, "lines")
    names = ("hour", "state", "events", "earlier_events", "files_quarantined", "lines_quarantined", "reason")
    rows = [*zip(*(column(part, name) for name in names), strict=True)]
    assert rows[0] == (at(3), "quarantined", 0, 7, 2, 24, "too many rejected")
    assert rows[1:] == [
        (at(hour), "published", 40 if hour in (1, 2) else ROWS, None, 0, 0, None) for hour in (5, 4, 2, 1, 0)
    ]
    assert heights(part) == {"published events": 110, "lines of quarantined files": 24}
    assert part.note.startswith("110 published events next to 24 lines of quarantined files")
    assert "without events" not in part.note


def test_unpublished_hours_of_later_stages_are_next_to_published_ones(lake: ViewedLake) -> None:
    states: dict[int, Status] = {1: "quarantined", 2: "blocked", 4: "quarantined"}
    entries = {
        PartitionKey("aggregates", "traffic", "aggregates", at(number)): PartitionState(
            status, "c", reason=f"because of {number}"
        )
        for number, status in states.items()
    }
    # An incomplete hour is published.
    for table in ("aggregates", "granules"):
        state = PartitionState("published", "c", complete=False)
        entries[PartitionKey("aggregates", "traffic", table, at(0))] = state
    lake.enter("aggregates", entries, "c")
    part = section(lake, "unpublished")
    assert part.table is not None
    assert part.table.rows == (
        ("aggregates", "traffic", "aggregates", 2, 1, 2, 1, at(4), "because of 4"),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("check", "bounds"),
    [
        (Check("c", "m", at_least=0.5, advice="at most once"), (0.5, None)),
        (Check("c", "m", at_least=1, at_most=1e22), (1.0, 1e22)),
        (Check("c", "m", at_least=3, at_most=3, advice="so (or so)"), (3.0, 3.0)),
        (Check("c", "m", at_most=-0.1), (None, -0.1)),
        (Check("c", "m"), (None, None)),
    ],
)
def test_bounds_are_parsed_from_their_text(check: Check, bounds: tuple[float | None, float | None]) -> None:
    assert bounds_of(check.expected) == bounds
