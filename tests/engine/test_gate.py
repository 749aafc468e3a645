"""The gate's verdict on a ledger, without Spark: errors, warnings, and their texts."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from transom.core.intervals import UNKNOWN_HOUR, Interval
from transom.core.partitions import CheckResult, PartitionKey, PartitionState
from transom.core.reasons import Reason
from transom.engine.gate import evaluate_gate
from transom.engine.gate_text import wrapped
from transom.features.registry import BUILT_IN
from transom.findings.store import sync_ledger_findings
from transom.ledger.ledger import Ledger
from transom.ledger.waivers import Waiver, accept, near_misses

HOUR = timedelta(hours=1)
DAY = datetime(2015, 5, 17, tzinfo=UTC)


def node(number: int) -> PartitionKey:
    return PartitionKey("ingest", "events", "events", DAY + number * HOUR)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(str(tmp_path))


def published(run: str) -> PartitionState:
    return PartitionState("published", run, digest="1:5", input_hashes={"specification": "s"}, rows=1)


def test_gate_fails_for_hours_not_run_and_for_hours_being_written(ledger: Ledger) -> None:
    interval = Interval(DAY, DAY + 2 * HOUR)
    ledger.claim("ingest", [node(0)], "a")
    failures = evaluate_gate(ledger, "ingest", "web", interval, "run --from {from} --to {to}").failures
    assert [text.split(":")[0] for text in failures] == [
        "writing",
        "ingest has not run for 2015-05-17T01",
    ]
    assert "run --from 2015-05-17T01:00 --to 2015-05-17T02:00" in failures[1]


def test_gate_of_any_interval_fails_for_files_without_hour(ledger: Ledger) -> None:
    for of, entry in (
        (node(0), published("a")),
        (replace(node(0), hour=UNKNOWN_HOUR), replace(published("a"), status="quarantined", reason="junk")),
    ):
        ledger.claim("ingest", [of], "a")
        ledger.publish("ingest", {of: entry}, "a")
    evaluated = evaluate_gate(
        ledger, "ingest", "web", Interval(DAY, DAY + HOUR), "run --from {from} --to {to}"
    )
    assert [text.splitlines()[0] for text in evaluated.failures] == [
        "quarantined: ingest events, files without an hour: junk"
    ]


def test_gate_of_a_later_stage_fails_for_missing_and_omitted_hours(
    ledger: Ledger,
) -> None:
    """State that other hours read is not all of an hour, and neither is one of two results."""
    tables = ("granules", "aggregates", "recurring")
    claimed = {node(n): published("a") for n in range(3)}
    ledger.claim("ingest", claimed, "a")
    ledger.publish("ingest", claimed, "a")
    computed = {
        PartitionKey("aggregates", "site", table, DAY + n * HOUR): published("b")
        for table, n in (("granules", 0), ("recurring", 0), *((table, 1) for table in tables))
    }
    ledger.claim("aggregates", computed, "b")
    ledger.publish("aggregates", computed, "b")
    evaluated = evaluate_gate(
        ledger, "aggregates", "web", Interval(DAY, DAY + 4 * HOUR), "run --from {from} --to {to}"
    )
    assert evaluated.failures == (
        "aggregates skips 2015-05-17T03:00, which were not requested from ingest; jobs/run.py over "
        "these hours runs them all",
        "aggregates has not run for 2015-05-17T00:00, 2015-05-17T02:00; "
        "run --from 2015-05-17T00:00 --to 2015-05-17T03:00",
    )
    assert "1 of 4 hours published, 0 warnings" in evaluated.summary


def test_stage_with_state_alone_counts_as_not_run(ledger: Ledger) -> None:
    for of in (node(0), PartitionKey("aggregates", "site", "granules", DAY)):
        ledger.claim(of.stage, [of], "a")
        ledger.publish(of.stage, {of: published("a")}, "a")
    hour = Interval(DAY, DAY + HOUR)
    evaluated = evaluate_gate(ledger, "aggregates", "web", hour, "run it", outlets=["aggregates"])
    assert evaluated.failures == ("aggregates has not run for 2015-05-17T00:00; run it",)


def test_gate_shortens_warning_of_many_intervals(ledger: Ledger) -> None:
    remaining = {PartitionKey("aggregates", "site", "aggregates", DAY + 2 * n * HOUR): None for n in range(7)}
    sync_ledger_findings(ledger, "web", "aggregates", remaining)
    warnings = evaluate_gate(ledger, "aggregates", "web", Interval(DAY, DAY + HOUR), "").warnings
    assert warnings[4:] == (
        "stale since 2015-05-17T08:00: ",
        "stale in 2 more intervals; `transom status` lists all",
    )


def test_gate_warns_of_each_interval_that_its_stage_left_stale(ledger: Ledger) -> None:
    claimed = {node(n): published("a") for n in range(9)}
    ledger.claim("ingest", claimed, "a")
    ledger.publish("ingest", claimed, "a")
    for stage, hours in (("ingest", (8,)), ("aggregates", (1, 2, 5))):
        remaining = {PartitionKey(stage, "site", "aggregates", DAY + n * HOUR): None for n in hours}
        sync_ledger_findings(ledger, "web", stage, remaining)
    warnings = evaluate_gate(
        ledger, "aggregates", "web", Interval(DAY, DAY + HOUR), "--from {from} --to {to}"
    ).warnings
    assert warnings == (
        "stale since 2015-05-17T01:00: --from 2015-05-17T01:00 --to 2015-05-17T03:00",
        "stale since 2015-05-17T05:00: --from 2015-05-17T05:00 --to 2015-05-17T06:00",
    )


def test_gate_counts_incomplete_hours(ledger: Ledger) -> None:
    results = {node(0): published("a"), node(1): replace(published("a"), complete=False, reason="f: cut")}
    ledger.claim("ingest", results, "a")
    ledger.publish("ingest", results, "a")
    interval = Interval(DAY, DAY + 2 * HOUR)
    assert evaluate_gate(ledger, "ingest", "web", interval, "").summary == (
        f"ingest web {interval}: 2 of 2 hours published (1 of them incomplete), 1 warning"
    )


@pytest.mark.parametrize(
    ("column", "texts"),
    [
        (None, "keys_not_null: observed 2, expected 0"),
        ("user", "keys_not_null, column user: observed 2, expected 0"),
        ("site, user", "keys_not_null, columns site, user: observed 2, expected 0"),
    ],
)
def test_gate_names_the_column(ledger: Ledger, column: str | None, texts: str) -> None:
    ledger.claim("ingest", [node(0)], "a")
    ledger.record_checks(
        "ingest", [CheckResult(node(0), "keys_not_null", "error", 2, "0", False, column)], "a"
    )
    ledger.publish("ingest", {node(0): replace(published("a"), status="quarantined")}, "a")
    (failure,) = evaluate_gate(ledger, "ingest", "web", Interval(DAY, DAY + HOUR), "").failures
    assert f"2015-05-17T00:00 events: {texts}" in failure


def test_gate_advises_to_fix_a_detector_that_raised(ledger: Ledger) -> None:
    for check, mend in (
        ("rejected_share", "fix the data (or accept the value)"),
        ("detector_ran", "fix the detector"),
    ):
        ledger.claim("ingest", [node(0)], check)
        ledger.record_checks("ingest", [CheckResult(node(0), check, "error", 2, "0", False)], check)
        ledger.publish("ingest", {node(0): replace(published(check), status="quarantined")}, check)
        evaluated = evaluate_gate(ledger, "ingest", "web", Interval(DAY, DAY + HOUR), "run", rules=BUILT_IN)
        (failure,) = evaluated.failures
        assert f"\n  what was published before stays; {mend}, then:\n  run" in failure


def test_gate_escapes_control_characters_of_log_lines(ledger: Ledger) -> None:
    cause = "in/a\x1bb.log: rejected_share"
    verdict = CheckResult(
        node(0),
        "rejected_share",
        "error",
        1,
        "0",
        False,
        file="in/a\x1bb.log",
        failing_rows=("line 1: \x1b[31mRED\x07",),
    )
    ledger.claim("ingest", [node(0), node(1)], "a")
    ledger.record_checks("ingest", [verdict], "a")
    wrong = replace(published("a"), status="quarantined", reason=cause)
    ledger.publish(
        "ingest", {node(0): wrong, node(1): replace(published("a"), complete=False, reason=cause)}, "a"
    )
    evaluated = evaluate_gate(ledger, "ingest", "web", Interval(DAY, DAY + 2 * HOUR), "")
    output = "\n".join([*evaluated.failures, *evaluated.warnings])
    assert "    line 1: \\x1b[31mRED\\x07" in output
    assert output.count("in/a\\x1bb.log") == 3
    assert output.replace("\n", "").isprintable()


@pytest.mark.parametrize("separate", [1, 3 * 24, -3 * 24])
def test_gate_warns_of_hours_repaired_outside_the_interval(ledger: Ledger, separate: int) -> None:
    ledger.claim("ingest", [node(0), node(separate)], "a")
    bad = PartitionState("quarantined", "a", complete=False, reason="f: rejected_share")
    ledger.publish("ingest", {node(0): bad, node(separate): published("a")}, "a")
    interval = Interval(DAY + separate * HOUR, DAY + (separate + 1) * HOUR)
    judgement = evaluate_gate(ledger, "ingest", "web", interval, "", repair_window=abs(separate) * HOUR)
    assert judgement.passed
    assert "quarantined: ingest events, 2015-05-17T00:00: f: rejected_share" in judgement.warnings[0]
    assert (
        evaluate_gate(
            ledger, "ingest", "web", interval, "", repair_window=(abs(separate) - 1) * HOUR
        ).warnings
        == ()
    )


ACCEPTED = Waiver(DAY, "ingest", "few_errors", 0.3164, "ops", "a bad release")


def failing(ledger: Ledger, verdicts: list[CheckResult], run: str = "a") -> None:
    """Record a run of ingest that quarantines the hours of some failed checks."""
    hours = {verdict.partition for verdict in verdicts}
    ledger.claim("ingest", hours, run)
    ledger.record_checks("ingest", verdicts, run)
    wrong = {
        v.partition: replace(published(run), status="quarantined", reason=f"{v.check} {v.partition.hour}")
        for v in verdicts
    }
    good = {v.partition: published(run) for v in verdicts if v.success}
    ledger.publish("ingest", wrong | good, run)


def few_errors(number: int, observed: float = 0.31645) -> CheckResult:
    return CheckResult(
        node(number), "few_errors", "error", observed, "at least 0.99", False, failing_rows=("line 1: x",)
    )


def test_gate_prints_advice_first_with_waiver_and_near_miss(ledger: Ledger) -> None:
    failing(ledger, [few_errors(0)])
    interval = Interval(DAY, DAY + HOUR)
    (failure,) = evaluate_gate(ledger, "ingest", "web", interval, "run it", accepted=[ACCEPTED]).failures
    assert failure.splitlines() == [
        "quarantined: ingest events, 2015-05-17T00:00: few_errors 2015-05-17 00:00:00+00:00",
        "  what was published before stays; fix the data (or accept the value), then:",
        "  run it",
        "  your file has 0.3164 for few_errors of 2015-05-17T00:00, and the check observed 0.31645: "
        "`observed` must",
        "      have every digit",
        "  to accept it, put this into the stream file, with your name and the reason:",
        "    waivers:",
        "      - {hour: 2015-05-17T00:00, stage: ingest, check: few_errors, observed: 0.31645, who: NAME, "
        "why: REASON}",
        "  2015-05-17T00:00 events: few_errors: observed 0.31645, expected at least 0.99",
        "    line 1: x",
    ]
    # A waiver of another hour, check or stage is no near miss.
    for other in (
        replace(ACCEPTED, hour=DAY + HOUR),
        replace(ACCEPTED, check="x"),
        replace(ACCEPTED, stage="patterns"),
    ):
        (failure,) = evaluate_gate(ledger, "ingest", "web", interval, "run it", accepted=[other]).failures
        assert "your file has" not in failure


def test_gate_advises_to_run_if_the_stream_file_accepts_the_value(ledger: Ledger) -> None:
    failing(ledger, [few_errors(0, ACCEPTED.observed)])
    evaluated = evaluate_gate(ledger, "ingest", "web", Interval(DAY, DAY + HOUR), "run", accepted=[ACCEPTED])
    accepts = "the stream file accepts it (few_errors, by ops: a bad release)"
    assert f"\n  what was published before stays; {accepts}; run:\n  run\n" in evaluated.failures[0]
    assert "to accept it" not in evaluated.failures[0]


@pytest.mark.parametrize(
    ("subject", "observed", "others", "output"),
    [
        ("b.log", 0.31645, (), True),
        ("b.log", 0.3163, (), False),  # another value: the entry may be for another file
        (None, 0.5, (), True),
        (None, 0.5, (0.3164,), False),
        ("b.log", 0.31645, (0.3164,), False),
    ],
)
def test_waiver_of_one_file_is_no_near_miss_of_another(
    subject: str | None, observed: float, others: tuple[float, ...], output: bool
) -> None:
    verdict = replace(few_errors(0, observed), file=subject)
    beside = [replace(few_errors(0, other), file="a.log") for other in others]
    assert bool(near_misses(verdict, [ACCEPTED], [verdict, *beside])) is output


def test_accepted_failure_stays_visible(ledger: Ledger) -> None:
    passed = accept(few_errors(0), [replace(ACCEPTED, observed=0.31645)])
    assert (passed.success, passed.accepted) == (True, "ops: a bad release")
    failing(ledger, [passed])
    evaluated = evaluate_gate(ledger, "ingest", "web", Interval(DAY, DAY + HOUR), "run it")
    assert evaluated.passed
    assert evaluated.accepted == (
        "accepted: ingest events, 2015-05-17T00:00: few_errors: observed 0.31645, expected at least 0.99, "
        "by ops: a bad release",
    )
    assert evaluated.summary.endswith(": 1 of 1 hour published, 0 warnings, 1 accepted")
    assert ledger.accepted(ledger.snapshot(), "ingest") == [passed]


def test_hours_of_one_cause_are_one_paragraph_for_any_values(ledger: Ledger) -> None:
    verdicts = [few_errors(n, 0.25 + n / 8) for n in range(6)]
    output = {
        v.partition: replace(
            published("a"), status="quarantined", reason=f"few_errors: {v.observed}",
            reasons=(Reason("check", f"few_errors: {v.observed}", "few_errors"),),
        )
        for v in verdicts
    }  # fmt: skip
    ledger.claim("ingest", output, "a")
    ledger.record_checks("ingest", verdicts, "a")
    ledger.publish("ingest", output, "a")
    (failure,) = evaluate_gate(ledger, "ingest", "web", Interval(DAY, DAY + 8 * HOUR), "run it").failures[:-1]
    lines = failure.splitlines()
    assert lines[0] == "quarantined: ingest events, 2015-05-17T00:00 to 2015-05-17T06:00: few_errors"
    assert "  2015-05-17T04:00 events: few_errors: observed 0.75, expected at least 0.99" in lines
    assert lines[-1] == "  and 1 more; `transom explain` lists them"


def test_many_causes_are_shortened(ledger: Ledger) -> None:
    failing(ledger, [few_errors(n, 0.1 + n / 100) for n in range(8)])
    evaluated = evaluate_gate(ledger, "ingest", "web", Interval(DAY, DAY + 8 * HOUR), "run it")
    assert len(evaluated.failures) == 6
    assert evaluated.failures[5] == (
        "and for 3 more causes, 2015-05-17T05:00 to 2015-05-17T08:00; `transom explain` shows why"
    )


def test_gate_prints_one_line_for_each_kind_of_file_remark(ledger: Ledger) -> None:
    """A thousand files, with four remarks each."""
    verdicts = [
        CheckResult(
            node(n % 3),
            check,
            "warning",
            n,
            "at most 0",
            False,
            file=f"in/{n}.log",
            failing_rows=(f"line {n}",),
        )
        for check in ("late_lines", "odd_fields", "few_columns", "long_lines")
        for n in range(1, 1001)
    ]
    one = CheckResult(node(1), "alone", "warning", 1, "at most 0", False, file="in/1.log")
    nodes = {node(n): published("a") for n in range(3)}
    ledger.claim("ingest", nodes, "a")
    ledger.record_checks("ingest", [*verdicts, one], "a")
    ledger.publish("ingest", nodes, "a")
    warnings = evaluate_gate(ledger, "ingest", "web", Interval(DAY, DAY + 3 * HOUR), "").warnings
    assert len(warnings) == 5
    assert "2015-05-17T01:00 events: alone in in/1.log: observed 1, expected at most 0" in warnings
    (late,) = [line for line in warnings if "late_lines" in line]
    assert late.splitlines() == [
        "2015-05-17T00:00 to 2015-05-17T03:00 events: late_lines: 1000 files: observed 1 to 1000, expected "
        "at most 0: in/102.log, in/105.log, in/108.log and 997 more",
        "    line 102",
        "    line 105",
        "    line 108",
    ]


def test_gate_names_incomplete_stage_block_and_tables(ledger: Ledger) -> None:
    lacking = {
        PartitionKey("aggregates", "traffic", table, DAY + n * HOUR): replace(
            published("b"),
            complete=False,
            reasons=(Reason("inputs", f"{n + 1} incomplete hours, first 2015-05-16T2{n}:00"),),
        )
        for table in ("granules", "aggregates")
        for n in range(3)
    }
    files = {
        node(n): replace(
            published("a"),
            complete=False,
            reasons=(
                Reason("file", f"in/{n}.log: cut", f"in/{n}.log"),
                Reason("file", f"in/{n}.b.log: cut", f"in/{n}.b.log"),
                Reason("check", "files_expected: observed 1, expected at least 2", "files_expected"),
            ),
        )
        for n in range(3)
    }  # fmt: skip
    for stage, nodes in (("ingest", files), ("aggregates", lacking)):
        ledger.claim(stage, nodes, "a")
        ledger.publish(stage, nodes, "a")
    hours = Interval(DAY, DAY + 3 * HOUR)
    when = "2015-05-17T00:00 to 2015-05-17T03:00"
    assert evaluate_gate(ledger, "ingest", "web", hours, "").warnings == (
        f"incomplete: ingest events, {when}: cut: 6 files: in/0.log, in/0.b.log, in/1.log and 3 more",
        f"incomplete: ingest events, {when}: files_expected: observed 1, expected at least 2",
    )
    assert evaluate_gate(ledger, "aggregates", "web", hours, "").warnings == (
        f"incomplete: aggregates traffic (aggregates, granules), {when}: hours that it is computed from are "
        "incomplete",
    )


def test_observed_value_of_a_check_stays_on_one_line() -> None:
    text = f"{'x' * 95} observed 0.25 of 1, expected at most 0.05 of it"
    (first, second) = wrapped(text, whole=["observed 0.25 of 1, expected at most 0.05"])
    assert (first, second) == ("x" * 95, "    observed 0.25 of 1, expected at most 0.05 of it")
    assert wrapped(text)[0].endswith("observed 0.25")
