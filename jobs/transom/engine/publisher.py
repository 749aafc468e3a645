"""Publish computed rows: measure, check, resolve, claim, write, record. Every stage publishes this way.

Every write has the token of the claim (`storage.fencing`). The ledger replaces `writing` by the outcome only
if this run still has every claim. So neither a crash between two tables nor a concurrent run makes wrong rows
fresh.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from transom.core.partitions import EMPTY_DIGEST, CheckResult, PartitionKey, PartitionState
from transom.engine.measurement import RunRows, evaluate, measure, with_failing_rows
from transom.engine.outcomes import resolve_outcomes
from transom.engine.planner import Plan
from transom.ledger.input_hashes import checks_fingerprint
from transom.ledger.ledger import Ledger
from transom.ledger.snapshot import LedgerSnapshot
from transom.ledger.stage import StepResult, TableStep
from transom.ledger.task_counters import TaskCounters
from transom.ledger.waivers import Waiver
from transom.storage.store import Store
from transom.storage.write import Write

Metrics = Mapping[PartitionKey, Mapping[str, Any]]
States = Mapping[PartitionKey, PartitionState | None]
"""The new state of each partition; None deletes it."""


@dataclass(frozen=True, kw_only=True)
class ComputedStep:
    """The result of a stage for a plan.

    Attributes:
        stage: the name of the stage.
        step: the step that writes the table.
        plan: the plan, derived from `snapshot`.
        snapshot: the ledger that the run was planned with.
        waivers: the failed checks that the stream file accepts.
        run_id: the run.
        rows: the rows; None if there are none.
        partitions: all computed partitions, with and without rows.
        writes: returns the writes, from all new states and the sizes in bytes of the partitions to write.
        computed: as of `measure`.
        counted: as of `measure`.
        by: as of `measure`.
        all_states: returns the states of all partitions, from those of the plan and the metrics.
        forced: the partitions that are written even if the table has the same rows.
        results: the results of checks of the inputs of the rows.
        pinned: as of `publish_partitions`.
        still_valid: as of `publish_partitions`.
    """

    stage: str
    step: TableStep
    plan: Plan
    snapshot: LedgerSnapshot
    waivers: Sequence[Waiver]
    run_id: str
    rows: RunRows | None
    partitions: Iterable[PartitionKey]
    writes: Callable[[States, Mapping[PartitionKey, int]], Sequence[Write]] = lambda states, sizes: ()
    computed: StepResult = field(default_factory=lambda: StepResult(()))
    counted: Mapping[str, TaskCounters] = field(default_factory=dict)
    by: Literal["block", "table"] = "block"
    all_states: Callable[[States, Metrics], States] = lambda states, metrics: states
    forced: Collection[PartitionKey] = ()
    results: Sequence[CheckResult] = ()
    pinned: Mapping[str, int] | None = None
    still_valid: Callable[[LedgerSnapshot], bool] = lambda snapshot: True

    def resolve(self, is_plan: bool = False) -> tuple[Metrics, States, list[CheckResult]]:
        """Measure and check the rows, and return the metrics, the new states and the check results.

        Args:
            is_plan: whether only a plan depends on them, and nothing is published.
        """
        step, rows, counted = self.step, self.rows, self.counted
        metrics = measure(step, rows, self.computed, self.partitions, counted, self.by)
        results = evaluate(step, metrics, self.waivers, is_plan)
        rules, run_id = checks_fingerprint(step.checks, self.waivers), self.run_id
        states = resolve_outcomes(self.stage, step, self.plan, self.snapshot, metrics, results, rules, run_id)
        results = [
            result if result.success else with_failing_rows(step, rows, result, counted)
            for result in results
            # A blocked target has no outcome: an earlier hour of its chain failed.
            if result.partition in states and states[result.partition].status != "blocked"
        ]
        return metrics, self.all_states(states, metrics), results

    def publish(self, store: Store, ledger: Ledger) -> States:
        """Publish the new states and rows, and return the states; raise as `publish_partitions`."""
        metrics, states, results = self.resolve()
        sizes = {
            key: metric["bytes"]
            for key, metric in metrics.items()
            if key in states
            and (not self.step.withholds or ((new := states[key]) and new.status == "published"))
            and (key in self.forced or not is_published(self.snapshot, key, metric["digest"]))
        }
        publish_partitions(
            store, ledger, self.stage, self.run_id, self.writes(states, sizes), states, self.snapshot,
            [*self.results, *results], self.pinned, self.still_valid,
        )  # fmt: skip
        return states


def publish_partitions(
    store: Store,
    ledger: Ledger,
    stage: str,
    run_id: str,
    writes: Sequence[Write],
    states: States,
    seen: LedgerSnapshot,
    results: Sequence[CheckResult] = (),
    pinned: Mapping[str, int] | None = None,
    still_valid: Callable[[LedgerSnapshot], bool] = lambda snapshot: True,
) -> None:
    """Publish new states of partitions, and the rows of some.

    Args:
        store: writes the rows.
        ledger: records the states.
        stage: the stage of all partitions.
        run_id: the run.
        writes: the rows, one write for each table; each replaces all rows of its targets.
        states: the new state of every partition concerned, quarantined and blocked ones, too; None deletes
            it.
        seen: the ledger when the run was planned.
        results: the results of the checks.
        pinned: the versions of the tables when `seen` was read. Default: the latest versions.
        still_valid: as `holds` of `Ledger.claim`.

    Raises:
        RunSuperseded: another run has claimed or written some of the partitions; nothing of this run becomes
            fresh.
    """
    if not states:
        return
    # If another run has written these partitions since `seen`, the claim is refused.
    versions = store.pin({key.table for key in states}).versions if pinned is None else pinned
    # If this run is killed, a deletion must not count as a request for the hour.
    unrequested = {key for key, state in states.items() if state is None or not state.requested}
    claim = ledger.claim(stage, states, run_id, seen, versions, unrequested, still_valid)
    hours = set().union(*(write.hours for write in writes))
    known = None
    if writes:
        # The claim has changed the state of its partitions, but no rows.
        known = [
            key
            for key in partitions_with_rows(ledger.snapshot([stage]), hours)
            if key not in states or not is_published(seen, key, EMPTY_DIGEST)
        ]
    for write in writes:
        store.write(write, claim, known)
    ledger.record_checks(stage, results, run_id)
    ledger.publish(stage, states, run_id)


def partitions_with_rows(snapshot: LedgerSnapshot, hours: Collection[datetime]) -> list[PartitionKey]:
    """Return the partitions of some hours whose rows a write must keep: all but empty and damaged ones."""
    keys = (PartitionKey(*table, hour) for table in snapshot.names for hour in hours)
    return [
        key
        for key in keys
        if key in snapshot and not snapshot[key].damaged and not is_published(snapshot, key, EMPTY_DIGEST)
    ]


def is_published(seen: LedgerSnapshot, partition: PartitionKey, digest: str) -> bool:
    """Return whether the table already has a partition's rows, so that they need not be written.

    The claim is refused if the partition has changed since `seen`. A partition without a state has no rows.
    """
    state = seen.get(partition)
    if state is None:
        return digest == EMPTY_DIGEST
    return state.status == "published" and state.digest == digest
