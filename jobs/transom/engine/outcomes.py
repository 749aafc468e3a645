"""What comes of the nodes of a pass, when their rows are measured and judged: what the ledger is to say.

An hour of a chain is settled when those before it are: its inputs are what these have come to.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from operator import attrgetter
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
from transom.core.reasons import Kind, Reason, format_reasons
from transom.engine.planner import Plan
from transom.ledger.chain import PredecessorScan
from transom.ledger.snapshot import LedgerSnapshot
from transom.ledger.stage import TableStep
from transom.ledger.staleness import format_hash, incomplete_hours, recorded_inputs
from transom.ledger.waivers import format_failure

NO_ROWS: Mapping[str, Any] = {"count": 0, "digest": EMPTY_DIGEST, "bytes": 0}
"""The figures of a node without rows."""


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
    # What a step's own check has seen of an hour is in `checks`, and of one that is incomplete only there.
    words: Callable[[CheckResult], str] = attrgetter("check") if step.withholds else format_failure
    entries: dict[PartitionKey, PartitionState] = {}
    for block, hours in todo.hours.items():
        table, back, others = step.table.name, step.back(block), step.external_inputs(block)
        earlier = PredecessorScan(book, stage, block, table, back, hours)
        for hour in hours:
            node = PartitionKey(stage, block, table, hour)
            cause = todo.reasons.get(node) or earlier.reason(hour)
            if cause is not None:
                entry = _without_rows("blocked", book.get(node), run_id, None, (cause,))
            else:
                inputs, seen = todo.inputs[node], failed.get(node, [])
                if back:
                    inputs = {**(inputs or {}), table: format_hash(earlier.contents(hour))}
                wrong = (*todo.wrong.get(node, ()), *_failures(seen, "error", format_failure))
                missing = (
                    *todo.missing.get(node, ()),
                    *_failures(seen, "incomplete", words),
                    *_incomplete(incomplete_hours(others, hour, book), "inputs", INHERITED_INCOMPLETE),
                    *_incomplete(earlier.incomplete(hour), "earlier", CARRIED_INCOMPLETE),
                )
                if wrong and step.withholds:
                    recorded = recorded_inputs("quarantined", inputs or {}, rules)
                    entry = _without_rows("quarantined", book.get(node), run_id, recorded, wrong)
                else:
                    entry = _with_rows(figures[node], run_id, inputs, wrong, missing)
            earlier.record(hour, entry)
            if cause is None or not _is_blocked(book.get(node), cause):
                entries[node] = entry
    return entries


def _is_blocked(entry: PartitionState | None, cause: Reason) -> bool:
    """Whether a node is blocked by something in the ledger already."""
    return entry is not None and (entry.status, entry.reasons) == ("blocked", (cause,))


def _failures(
    failed: Iterable[CheckResult], severity: str, words: Callable[[CheckResult], str]
) -> list[Reason]:
    return [
        Reason("check", words(verdict), verdict.check) for verdict in failed if verdict.severity == severity
    ]


def _incomplete(hours: Iterable[datetime], kind: Kind, words: str) -> list[Reason]:
    hours = sorted(hours)
    return [Reason(kind, f"{len(hours)} {words} {hours[0]:%Y-%m-%dT%H:%M}")] if hours else []


def _with_rows(
    figures: Mapping[str, Any],
    run_id: str,
    inputs: Mapping[str, str] | None,
    wrong: tuple[Reason, ...],
    missing: tuple[Reason, ...],
) -> PartitionState:
    """A node whose new rows are published, whatever is wrong with them."""
    return PartitionState(
        "quarantined" if wrong else "published",
        run_id,
        complete=not (wrong or missing),
        digest=figures["digest"],
        input_hashes=inputs,
        rows=figures["count"],
        reason=format_reasons(wrong or missing),
        reasons=wrong or missing,
    )


def _without_rows(
    status: Status,
    held: PartitionState | None,
    run_id: str,
    inputs: Mapping[str, str] | None,
    causes: tuple[Reason, ...],
) -> PartitionState:
    """A node of which nothing new is published. Digest and rows are those of what it held, where that has not
    expired. The inputs are those of what was computed: the node is stale when they change."""
    stands = held is not None and held.state_before_claim().status not in ("expired", "damaged")
    return PartitionState(
        status,
        run_id,
        complete=False,
        digest=held.digest if held and stands else EMPTY_DIGEST,
        input_hashes=inputs,
        rows=held.rows if held and stands else 0,
        reason=format_reasons(causes),
        reasons=causes,
    )
