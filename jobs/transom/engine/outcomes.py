"""Resolve the new states of the partitions of a pass, from their metrics and check results.

In a chain, the outcome of an hour depends on those of earlier hours, which are among its inputs.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from operator import attrgetter
from typing import Any

from transom.core.intervals import format_hour
from transom.core.partitions import (
    CARRIED_INCOMPLETE,
    EMPTY_DIGEST,
    INHERITED_INCOMPLETE,
    CheckResult,
    PartitionKey,
    PartitionState,
    Status,
)
from transom.core.reasons import Kind, Reason, format_reasons
from transom.engine.planner import Plan
from transom.ledger.chain import PredecessorScan
from transom.ledger.input_hashes import format_hash, incomplete_hours, recorded_inputs
from transom.ledger.snapshot import LedgerSnapshot
from transom.ledger.stage import TableStep
from transom.ledger.waivers import format_failure

Text = Callable[[CheckResult], str]
NO_ROWS: Mapping[str, Any] = {"count": 0, "digest": EMPTY_DIGEST, "bytes": 0}
"""The metrics of a partition without rows."""


def resolve_outcomes(
    stage: str,
    step: TableStep,
    todo: Plan,
    snapshot: LedgerSnapshot,
    metrics: Mapping[PartitionKey, Mapping[str, Any]],
    results: Iterable[CheckResult],
    rules: str,
    run_id: str,
) -> dict[PartitionKey, PartitionState]:
    """Return the new states of a plan's partitions, without those that stay blocked for the same reason.

    Args:
        stage: the name of the stage.
        step: the step of the table.
        todo: the plan.
        snapshot: the ledger that the pass was planned with.
        metrics: digest, count and metrics of each target.
        results: the check results of the targets.
        rules: the hash of the checks (`checks_fingerprint`).
        run_id: the run.
    """
    failed: dict[PartitionKey, list[CheckResult]] = {}
    for result in results:
        if not result.success:
            failed.setdefault(result.partition, []).append(result)
    # `checks` has the values. A step that publishes failed hours repeats them in the reason.
    text: Text = attrgetter("check") if step.withholds else format_failure
    states: dict[PartitionKey, PartitionState] = {}
    for block, hours in todo.hours.items():
        table, back, others = step.table.name, step.back(block), step.external_inputs(block)
        earlier = PredecessorScan(snapshot, stage, block, table, back, hours)
        for hour in hours:
            key = PartitionKey(stage, block, table, hour)
            previous, blocking = snapshot.get(key), todo.reasons.get(key) or earlier.reason(hour)
            if blocking is not None:
                state = _without_rows("blocked", previous, run_id, None, (blocking,))
            else:
                inputs, failures = todo.inputs[key], failed.get(key, [])
                if back:
                    inputs = {**(inputs or {}), table: format_hash(earlier.contents(hour))}
                wrong = (*todo.wrong.get(key, ()), *_reasons(failures, "error", format_failure))
                missing = (
                    *todo.missing.get(key, ()),
                    *_reasons(failures, "incomplete", text),
                    *_incomplete(incomplete_hours(others, hour, snapshot), "inputs", INHERITED_INCOMPLETE),
                    *_incomplete(earlier.incomplete(hour), "earlier", CARRIED_INCOMPLETE),
                )
                if wrong and step.withholds:
                    recorded = recorded_inputs("quarantined", inputs or {}, rules)
                    state = _without_rows("quarantined", previous, run_id, recorded, wrong)
                else:
                    state = PartitionState(
                        "quarantined" if wrong else "published",
                        run_id,
                        complete=not (wrong or missing),
                        digest=metrics[key]["digest"],
                        input_hashes=inputs,
                        rows=metrics[key]["count"],
                        reason=format_reasons(wrong or missing),
                        reasons=wrong or missing,
                    )
            earlier.record(hour, state)
            status, reasons = (previous.status, previous.reasons) if previous else (None, ())
            if (status, reasons) != ("blocked", (blocking,)):
                states[key] = state
    return states


def _reasons(failures: Iterable[CheckResult], severity: str, text: Text) -> list[Reason]:
    return [
        Reason("check", text(failure), failure.check) for failure in failures if failure.severity == severity
    ]


def _incomplete(hours: Iterable[datetime], kind: Kind, text: str) -> list[Reason]:
    hours = sorted(hours)
    return [Reason(kind, f"{len(hours)} {text} {format_hour(hours[0])}")] if hours else []


def _without_rows(
    status: Status,
    previous: PartitionState | None,
    run_id: str,
    inputs: Mapping[str, str] | None,
    reasons: tuple[Reason, ...],
) -> PartitionState:
    """Return the state of a partition without new rows.

    Digest and number of rows are the previous ones, unless these are expired or damaged. The input hashes are
    those of the computed rows: the partition is stale when they change.
    """
    if previous is not None and previous.state_before_claim().status in ("expired", "damaged"):
        previous = None
    return PartitionState(
        status,
        run_id,
        complete=False,
        digest=previous.digest if previous else EMPTY_DIGEST,
        input_hashes=inputs,
        rows=previous.rows if previous else 0,
        reason=format_reasons(reasons),
        reasons=reasons,
    )
