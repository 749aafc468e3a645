"""Which hours a run computes, and which it leaves: pure arithmetic on the ledger."""

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial

from transom.core.intervals import HOUR, UNKNOWN_HOUR
from transom.core.partitions import PartitionKey, PartitionState
from transom.core.reasons import Reason
from transom.ledger.chain import PredecessorScan, blocking_reason, waiting_reason
from transom.ledger.freshness import Freshness
from transom.ledger.snapshot import LedgerSnapshot
from transom.ledger.stage import Stage, TableStep
from transom.ledger.staleness import Scope, incomplete_hours, partitions_read
from transom.ledger.waivers import Waiver


def left_stale(
    stale: Iterable[PartitionKey], book: LedgerSnapshot, scope: Scope
) -> dict[PartitionKey, PartitionState | None]:
    """Return the stale nodes that lie too far for every chunk of a run, as the ledger has them.

    Args:
        book: the ledger as it is when the run has published: what it computes may make hours stale that it
            leaves.
    """
    return {node: book.get(node) for node in stale if scope.out_of_reach(node.hour)}


def stale_nodes(stage: Stage, book: LedgerSnapshot, accepted: Sequence[Waiver]) -> Iterator[PartitionKey]:
    """Return the nodes of a stage that are out of date."""
    freshness = Freshness(book, [stage], accepted)
    for step in stage.steps:
        for block in step.parts:
            for hour in freshness.outdated_hours(stage.name, block, step.table.name):
                yield PartitionKey(stage.name, block, step.table.name, hour)


@dataclass(frozen=True)
class Plan:
    """What a run does with the nodes of one table.

    Attributes:
        targets: hours to compute, by block.
        inputs: the expected inputs of every target; of a chain without what stands in its earlier hours,
            which the pass decides. None where nobody can say them.
        reasons: why nodes cannot be computed that wait for other tables.
        hours: the hours of all that is out of date, in order, by block: targets, nodes with a cause, and
            those that wait for them, being of the same chain.
        incomplete: incomplete hours of other tables in the reach of the targets, by block.
        wrong, missing: why a target is quarantined, or incomplete, beside what checks and inputs say.
        repaired: how many of the nodes lie outside the hours that were asked for.
        needed: state of the stage that the targets read and that is not there or not fresh: to be made
            first, however far back, so that no row is computed from state of two specifications.
    """

    targets: dict[str, list[datetime]] = field(default_factory=dict)
    inputs: dict[PartitionKey, Mapping[str, str] | None] = field(default_factory=dict)
    reasons: dict[PartitionKey, Reason] = field(default_factory=dict)
    hours: dict[str, list[datetime]] = field(default_factory=dict)
    incomplete: dict[str, set[datetime]] = field(default_factory=dict)
    wrong: dict[PartitionKey, Sequence[Reason]] = field(default_factory=dict)
    missing: dict[PartitionKey, Sequence[Reason]] = field(default_factory=dict)
    repaired: int = 0
    needed: frozenset[PartitionKey] = frozenset()


def plan(
    stage: Stage,
    step: TableStep,
    book: LedgerSnapshot,
    scope: Scope,
    accepted: Sequence[Waiver],
    again: Collection[PartitionKey] = (),
) -> Plan:
    """Decides, node by node, what is computed.

    Every hour that is due is an hour of each of the stage's blocks, also of one that has come since: there it
    is stale. Of a chain, earlier hours that a target reads and that are stale or gone are targets, too,
    however far back.

    Args:
        accepted: failed checks that a person lets pass.
        again: nodes to compute even where they are fresh.
    """
    result = Plan()
    repaired = 0
    needed: set[PartitionKey] = set()
    freshness = Freshness(book, [stage], accepted)
    for block in step.parts:
        back, others = step.back(block), step.external_inputs(block)
        named = partial(PartitionKey, stage.name, block, step.table.name)
        wanted = _hours_to_compute(freshness, named, back, scope, again)
        earlier = PredecessorScan(book, stage.name, block, step.table.name, back, wanted)
        result.hours[block] = wanted
        for hour in wanted:
            node = named(hour)
            needed.update(freshness.state_to_compute(node))
            reads = (read for of in others for read in partitions_read(of, hour))
            waits = next(filter(None, (_cause(read, stage.name, book) for read in reads)), None)
            cause = waits or earlier.reason(hour)
            if waits is not None:
                result.reasons[node] = waits
            if cause is not None:
                earlier.record(hour, PartitionState("blocked", "", reason=cause.text, reasons=(cause,)))
                continue
            earlier.record(hour, PartitionState("published", ""))
            repaired += hour not in scope.requested
            result.inputs[node] = freshness.inputs(node)
            result.targets.setdefault(block, []).append(hour)
            result.incomplete.setdefault(block, set()).update(incomplete_hours(others, hour, book))
    return replace(result, repaired=repaired, needed=frozenset(needed))


def _hours_to_compute(
    freshness: Freshness,
    named: Callable[[datetime], PartitionKey],
    back: int,
    scope: Scope,
    again: Collection[PartitionKey],
) -> list[datetime]:
    """The hours of a block's table that have to be computed, in order.

    Args:
        named: its node of an hour.
        back: how many of its earlier hours one reads.
    """
    wrong = {*freshness.outdated_hours(*named(UNKNOWN_HOUR).series)}
    wrong.update(node.hour for node in again if node == named(node.hour))
    if not wrong:
        return []
    first, behind = min(wrong), bisect_right(freshness.required_hours, max(wrong))
    wanted: list[datetime] = []
    for hour in reversed(freshness.required_hours[:behind]):
        read = bool(back and wanted) and wanted[-1] - back * HOUR <= hour
        if hour < first and not read:
            break
        if not read and not scope.covers_last_chunk(hour):
            continue
        if hour in wrong or (read and freshness.is_expired(named(hour))):
            wanted.append(hour)
    return wanted[::-1]


def _cause(read: PartitionKey, stage: str, book: LedgerSnapshot) -> Reason | None:
    """Why what a stage reads does not stand, if so."""
    if read.hour not in book.required_hours_of(read.stage, read.block, read.table):
        return None  # it is empty: nobody asked for it
    entry = book.get(read)
    if entry is None:
        return waiting_reason(read, "has not been computed") if read.stage != stage else None
    if entry.status == "expired" and read.stage != stage:
        return waiting_reason(read, f"has expired: run {read.stage} over that hour again")
    return blocking_reason(read, entry)
