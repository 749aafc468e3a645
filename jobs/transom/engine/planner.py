"""Plan which hours a run computes, from the ledger."""

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
from transom.ledger.input_hashes import incomplete_hours, partitions_read
from transom.ledger.scope import Scope
from transom.ledger.snapshot import LedgerSnapshot
from transom.ledger.stage import Stage, TableStep
from transom.ledger.waivers import Waiver

Waivers = Sequence[Waiver]


def left_stale(
    stale: Iterable[PartitionKey], snapshot: LedgerSnapshot, scope: Scope
) -> dict[PartitionKey, PartitionState | None]:
    """Return the stale partitions out of reach of every chunk of a run, with their states.

    Args:
        stale: the stale partitions.
        snapshot: the ledger after the run published, which may have made hours stale.
        scope: the hours that the run covers.
    """
    return {partition: snapshot.get(partition) for partition in stale if scope.out_of_reach(partition.hour)}


def stale_partitions(stage: Stage, snapshot: LedgerSnapshot, waivers: Waivers) -> Iterator[PartitionKey]:
    """Yield the partitions of a stage that a run must compute."""
    outdated = Freshness(snapshot, [stage], waivers)
    for step in stage.steps:
        for block in step.outputs:
            for hour in outdated.outdated_hours(stage.name, block, step.table.name):
                yield PartitionKey(stage.name, block, step.table.name, hour)


@dataclass(frozen=True)
class Plan:
    """The work of a run on the partitions of one table.

    Attributes:
        targets: the hours to compute, by block.
        inputs: the expected input hashes of each target; None if unknown. For a chain they lack the hash of
            its earlier hours, which the pass computes.
        reasons: why other tables block partitions.
        hours: all outdated hours in order, by block: targets, blocked ones, and those that wait for them in
            the same chain.
        incomplete: the incomplete hours of other tables that the targets read, by block.
        wrong: further reasons why a target is quarantined.
        missing: further reasons why a target is incomplete.
        repaired: the number of targets outside the requested hours.
        needed: the outdated or expired state of the stage that the targets read. It is computed first, at any
            age, so that no row mixes two specifications.
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
    snapshot: LedgerSnapshot,
    scope: Scope,
    waivers: Waivers,
    again: Collection[PartitionKey] = (),
) -> Plan:
    """Decide for each partition of a step whether it is computed.

    Every block has every required hour; in a new block all are stale. In a chain, earlier hours that a target
    reads are targets if they are stale or expired, at any age.

    Args:
        stage: the stage.
        step: the step of the table.
        snapshot: the ledger of the stage and its inputs.
        scope: the hours that the run covers.
        waivers: the failed checks that the stream file accepts.
        again: the partitions to compute even if they are fresh.
    """
    result = Plan()
    repaired = 0
    needed: set[PartitionKey] = set()
    outdated = Freshness(snapshot, [stage], waivers)
    for block in step.outputs:
        back, others = step.back(block), step.external_inputs(block)
        key = partial(PartitionKey, stage.name, block, step.table.name)
        hours = _hours_to_compute(outdated, key, back, scope, again)
        earlier = PredecessorScan(snapshot, stage.name, block, step.table.name, back, hours)
        result.hours[block] = hours
        for hour in hours:
            partition = key(hour)
            needed.update(outdated.state_to_compute(partition))
            reads = (read for table in others for read in partitions_read(table, hour))
            waits = next(filter(None, (_blocking(read, stage.name, snapshot) for read in reads)), None)
            if waits is not None:
                result.reasons[partition] = waits
            reason = waits or earlier.reason(hour)
            if reason is not None:
                earlier.record(hour, PartitionState("blocked", "", reason=reason.text, reasons=(reason,)))
                continue
            earlier.record(hour, PartitionState("published", ""))
            repaired += hour not in scope.requested
            result.inputs[partition] = outdated.inputs(partition)
            result.targets.setdefault(block, []).append(hour)
            result.incomplete.setdefault(block, set()).update(incomplete_hours(others, hour, snapshot))
    return replace(result, repaired=repaired, needed=frozenset(needed))


def _hours_to_compute(
    outdated: Freshness,
    key: Callable[[datetime], PartitionKey],
    back: int,
    scope: Scope,
    again: Collection[PartitionKey],
) -> list[datetime]:
    """Return the hours of a block's table to compute, in order.

    Args:
        outdated: the freshness of the stage.
        key: returns the table's partition of an hour.
        back: how many earlier hours of the table an hour reads.
        scope: the hours that the run covers.
        again: the partitions to compute even if they are fresh.
    """
    stale = {*outdated.outdated_hours(*key(UNKNOWN_HOUR).series)}
    stale.update(partition.hour for partition in again if partition == key(partition.hour))
    if not stale:
        return []
    first, stop = min(stale), bisect_right(outdated.required_hours, max(stale))
    result: list[datetime] = []
    for hour in reversed(outdated.required_hours[:stop]):
        is_read = bool(back and result) and result[-1] - back * HOUR <= hour
        if hour < first and not is_read:
            break
        in_reach = is_read or scope.covers_last_chunk(hour)
        if in_reach and (hour in stale or (is_read and outdated.is_expired(key(hour)))):
            result.append(hour)
    return result[::-1]


def _blocking(read: PartitionKey, stage: str, snapshot: LedgerSnapshot) -> Reason | None:
    """Return why an input blocks a stage; None if it does not."""
    if read.hour not in snapshot.required_hours_of(*read.series):
        return None  # not requested: it counts as empty
    state = snapshot.get(read)
    if state is None:
        return waiting_reason(read, "has not been computed") if read.stage != stage else None
    if state.status == "expired" and read.stage != stage:
        return waiting_reason(read, f"has expired: run {read.stage} over that hour again")
    return blocking_reason(read, state)
