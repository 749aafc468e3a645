"""What comes of the nodes of a pass, when their rows are measured and judged: what the ledger is to say.

An hour of a chain is settled when those before it are: its inputs are what these have come to.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from transom.core.partitions import (
    CARRIED_INCOMPLETE,
    EMPTY_DIGEST,
    INHERITED_INCOMPLETE,
    CheckResult,
    PartitionKey,
    PartitionState,
    Status,
)
from transom.core.reasons import Cause, Kind
from transom.core.reasons import format_causes as words_of
from transom.engine.planner import Plan
from transom.ledger.chain import PredecessorScan
from transom.ledger.snapshot import LedgerSnapshot
from transom.ledger.stage import TableStep
from transom.ledger.staleness import format_hash, incomplete_hours, recorded_inputs
from transom.ledger.waivers import format_failure


def resolve_outcomes(
    stage: str,
    step: TableStep,
    todo: Plan,
    book: LedgerSnapshot,
    figures: Mapping[PartitionKey, Mapping[str, Any]],
    verdicts: Iterable[CheckResult],
    rules: str,
    run_id: str,
) -> dict[PartitionKey, PartitionState]:
    """The entries of a plan's nodes, less those that are blocked in the ledger by the same already.

    Args:
        book: the ledger that the pass has read by.
        figures: digest, count and metrics of each target.
        verdicts: what the checks saw of them.
        rules: the hash of the checks, as `checks_fingerprint` gives it.
    """
    failed: dict[PartitionKey, list[CheckResult]] = {}
    for verdict in verdicts:
        if not verdict.success:
            failed.setdefault(verdict.node, []).append(verdict)
    entries: dict[PartitionKey, PartitionState] = {}
    for block, hours in todo.hours.items():
        table, back = step.table.name, step.back(block)
        earlier = PredecessorScan(book, stage, block, table, back, hours)
        for hour in hours:
            node = PartitionKey(stage, block, table, hour)
            cause = todo.causes.get(node) or earlier.cause(hour)
            if cause is not None:
                entry = _is_quarantined("blocked", book.get(node), run_id, None, cause.text, (cause,))
            else:
                inputs = todo.inputs[node]
                if back:
                    inputs = {**inputs, table: format_hash(earlier.contents(hour))}
                missing = _incomplete(
                    incomplete_hours(step.external_inputs(block), hour, book), "inputs", INHERITED_INCOMPLETE
                )
                missing += _incomplete(earlier.incomplete(hour), "earlier", CARRIED_INCOMPLETE)
                held, seen = book.get(node), failed.get(node, [])
                entry = _of_target(held, figures[node], seen, missing, inputs, rules, run_id)
            earlier.record(hour, entry)
            if cause is None or not _is_blocked(book.get(node), cause):
                entries[node] = entry
    return entries


def _is_blocked(entry: PartitionState | None, cause: Cause) -> bool:
    """Whether a node is blocked by something in the ledger already."""
    return entry is not None and (entry.status, entry.causes) == ("blocked", (cause,))


def _of_target(
    held: PartitionState | None,
    figures: Mapping[str, Any],
    failed: Iterable[CheckResult],
    missing: list[Cause],
    inputs: Mapping[str, str],
    rules: str,
    run_id: str,
) -> PartitionState:
    wrong = [verdict for verdict in failed if verdict.severity == "error"]
    if wrong:
        causes = tuple(Cause("check", format_failure(verdict), verdict.check) for verdict in wrong)
        recorded = recorded_inputs("quarantined", inputs, rules)
        return _is_quarantined("quarantined", held, run_id, recorded, words_of(causes), causes)
    lacking = (verdict.check for verdict in failed if verdict.severity == "incomplete")
    missing = [*(Cause("check", check, check) for check in lacking), *missing]
    return PartitionState(
        "published",
        run_id,
        complete=not missing,
        digest=str(figures["digest"]),
        inputs=inputs,
        rows=int(str(figures["count"])),
        cause=words_of(missing),
        causes=tuple(missing),
    )


def _incomplete(hours: Iterable[datetime], kind: Kind, words: str) -> list[Cause]:
    hours = sorted(hours)
    return [Cause(kind, f"{len(hours)} {words} {hours[0]:%Y-%m-%dT%H:%M}")] if hours else []


def _is_quarantined(
    status: Status,
    held: PartitionState | None,
    run_id: str,
    inputs: Mapping[str, str] | None,
    cause: str | None,
    causes: tuple[Cause, ...],
) -> PartitionState:
    """A node that is not published. What it held stands, or comes back, and is what digest and rows are of,
    where it has not expired; the inputs are of what was computed, so that it is looked at again when they
    change."""
    stands = held is not None and held.state_before_claim().status not in ("expired", "damaged")
    return PartitionState(
        status,
        run_id,
        complete=False,
        digest=held.digest if held and stands else EMPTY_DIGEST,
        inputs=inputs,
        rows=held.rows if held and stands else 0,
        cause=cause,
        causes=causes,
    )
