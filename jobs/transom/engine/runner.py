"""Run a stage over an interval, table by table: plan, pin, compute, check, publish.

A step of a stage writes one table. Fresh hours stay, stale hours are computed, and each hour is checked.
Failed hours do not keep good ones from being published.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cache, partial, reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from transom.core.intervals import HOUR, Interval
from transom.core.partitions import EXTERNAL_STAGE, READABLE, PartitionKey, TableKey
from transom.engine.external import ExternalSources
from transom.engine.measurement import RunRows
from transom.engine.planner import Plan, left_stale, plan, stale_partitions
from transom.engine.publisher import ComputedStep, States, partitions_with_rows, publish_partitions
from transom.engine.retention import Series, expire
from transom.engine.run_outcome import Outcome
from transom.engine.staging import StagedOutput
from transom.ledger.ledger import Ledger
from transom.ledger.scope import Scope
from transom.ledger.snapshot import LedgerSnapshot
from transom.ledger.stage import Stage, StepRequest, StepResult, TableStep
from transom.ledger.task_counters import TaskCounters
from transom.ledger.waivers import Waiver
from transom.storage.fencing import RunSuperseded
from transom.storage.session import FEW_ROWS, suited_to
from transom.storage.store import PinnedTables, Store, in_hours
from transom.storage.write import Write


def run_steps(
    store: Store,
    ledger: Ledger,
    stage: Stage,
    interval: Interval,
    repair_window: timedelta,
    run_id: str,
    waivers: Sequence[Waiver] = (),
    run_interval: Interval | None = None,
    retention: timedelta | None = None,
    shared: Collection[Series] = (),
    recompute: bool = False,
) -> Outcome:
    """Bring a stage up to date over an interval.

    Args:
        store: reads and writes the tables.
        ledger: the ledger of the stream.
        stage: the stage.
        interval: the chunk to compute.
        repair_window: how far before and after the run's interval stale hours are computed, too.
        run_id: the run.
        waivers: the failed checks that the stream file accepts.
        run_interval: the run's interval, which contains `interval`. Default: `interval`.
        retention: how long before the stage's last hour state is retained. Default: forever.
        shared: block and table of the state that other stages read. It does not expire; expired hours of it
            are computed again.
        recompute: whether fresh hours of the interval are computed and written, too.

    Raises:
        RunSuperseded: another run claimed, wrote or expired the same partitions.
        LakeError: a table cannot be read or written.
    """
    forced = frozenset(interval.hours()) if recompute else frozenset()
    external = ExternalSources(ledger.root, stage.fillers)
    run = _StageRun(store, ledger, stage, run_id, waivers, forced, external)
    scope = Scope.within(interval, run_interval or interval, repair_window)
    for number, step in enumerate(stage.steps):
        _drop_blocks(store, ledger, stage, step, run_id)
        if step.outputs:
            run.bring_up_to_date(number, scope, run.forced_partitions(step, shared))
    if retention is not None:
        run.outcome.counters["expired"] = expire(store, ledger, stage, retention, run_id, shared)
    snapshot = run.snapshot()
    run.outcome.stale = left_stale(stale_partitions(stage, snapshot, waivers), snapshot, scope)
    return run.outcome


@dataclass
class _StageRun:
    """A run of a stage over a chunk.

    Attributes:
        forced: the hours to compute even if they are fresh.
    """

    store: Store
    ledger: Ledger
    stage: Stage
    run_id: str
    waivers: Sequence[Waiver]
    forced: Collection[datetime]
    external: ExternalSources
    outcome: Outcome = field(default_factory=Outcome)

    def snapshot(self) -> LedgerSnapshot:
        """Return the ledger of the stage and its inputs, with external tables."""
        return self.external.beside(self.ledger.snapshot(self.stage.ledger_stages))

    def forced_partitions(self, step: TableStep, shared: Collection[Series]) -> set[PartitionKey]:
        """Return what a step computes even if it is fresh: forced hours, and expired shared state.

        Other expired state is computed when a target needs it.
        """
        states, table = self.ledger.snapshot([self.stage.name]), step.table.name
        hours = (
            PartitionKey(self.stage.name, block, table, hour)
            for block in step.outputs
            for hour in self.forced
        )
        forced = {key for key in hours if key not in states or states[key].status != "expired"}
        blocks = {block for block, name in shared if name == table}
        expired = states.having(["expired"], [table]) if blocks else ()
        return forced.union(key for key, _ in expired if key.block in blocks)

    def prepare(
        self, step: TableStep, scope: Scope, again: Collection[PartitionKey]
    ) -> tuple[Plan, LedgerSnapshot, PinnedTables]:
        """Return the plan of a step, with the ledger and the table versions that it reads."""
        reads = _inputs_of(step)
        tables = {table for stage, _, table in reads if stage != EXTERNAL_STAGE}
        snapshot, pins = pin_consistently(
            self.snapshot, lambda _: self.store.pin(tables, fillers=self.external.pinned()), reads
        )
        return plan(self.stage, step, snapshot, scope, self.waivers, again), snapshot, pins

    def bring_up_to_date(self, number: int, scope: Scope, again: Collection[PartitionKey]) -> None:
        """Compute the stale hours of a step, after the state of earlier steps that they need."""
        step = self.stage.steps[number]
        todo, snapshot, pins = self.prepare(step, scope, again)
        computed: set[PartitionKey] = set()
        # State that cannot be computed blocks its readers; state that changes makes them stale.
        while missing := todo.needed - computed:
            for earlier, state in enumerate(self.stage.steps[:number]):
                of_table = {key for key in missing if key.table == state.table.name}
                if of_table:
                    hours = frozenset(key.hour for key in of_table)
                    self.bring_up_to_date(earlier, replace(scope, requested=hours), of_table)
            computed |= missing
            todo, snapshot, pins = self.prepare(step, scope, again)
        if any(key in snapshot and snapshot[key].status == "expired" for key in todo.needed):
            # Its digest is in the ledger, but it would be read as empty.
            raise RunSuperseded(
                f"{self.stage.name}: another run expired state that run {self.run_id} needs; run the "
                "interval again"
            )
        self.outcome.add(self.run_step(step, todo, snapshot, pins))

    def run_step(self, step: TableStep, todo: Plan, snapshot: LedgerSnapshot, pins: PinnedTables) -> Outcome:
        """Compute and publish the targets of a plan."""
        if not todo.targets:
            return self._run_step(step, todo, snapshot, pins)
        with suited_to(self.store.spark, _input_rows(step, todo, snapshot)):
            return self._run_step(step, todo, snapshot, pins)

    def _run_step(self, step: TableStep, todo: Plan, snapshot: LedgerSnapshot, pins: PinnedTables) -> Outcome:
        computed, counted = StepResult(()), dict[str, TaskCounters]()
        staged: StagedOutput | None = None
        rows: RunRows | None = None
        try:
            if todo.targets:
                request = StepRequest(pins, todo.targets, todo.incomplete, _row_counts(step, snapshot))
                computed = step.compute(request)
                hours = set().union(*todo.targets.values())
                staged = StagedOutput(self.store, step, computed.tasks, len(hours), pins.are_few)
                counted = staged.counted
                rows = RunRows(cache(staged.rows), staged.aggregates, unmeasured=staged.unmeasured)
            states = ComputedStep(
                stage=self.stage.name, step=step, plan=todo, snapshot=snapshot, waivers=self.waivers,
                run_id=self.run_id, rows=rows, partitions=todo.inputs, computed=computed, counted=counted,
                writes=partial(_writes, self.store, step, staged, rows, snapshot),
                forced={key for key in todo.inputs if key.hour in self.forced},
            ).publish(self.store, self.ledger)  # fmt: skip
        finally:
            if staged is not None:
                staged.discard()
        outcome = Outcome.of(states, todo.repaired, snapshot)
        sums = Counter[str]()
        for counters in counted.values():
            for (_, name), amount in counters.sums.items():
                sums[name] += amount
        outcome.counters = {name: n for name, n in sums.items() if name not in step.bounds.values()}
        outcome.limits = {name: sums[limit] for name, limit in step.bounds.items() if sums}
        return outcome


def drop_removed_blocks(store: Store, ledger: Ledger, stage: Stage, run_id: str) -> None:
    """Delete the rows of a stage's blocks that are no longer in the specification.

    Args:
        stage: the stage by the current specification; it may have no blocks.
    """
    for step in stage.steps:
        _drop_blocks(store, ledger, stage, step, run_id)


def _drop_blocks(store: Store, ledger: Ledger, stage: Stage, step: TableStep, run_id: str) -> None:
    """Delete the rows of removed blocks, and of hours that are not required."""
    snapshot = ledger.snapshot(stage.ledger_stages)
    targets: dict[str | None, Collection[datetime]] = {}
    for of_stage, block, table in snapshot.names:
        if (of_stage, table) == (stage.name, step.table.name):
            hours = snapshot.hours_of(of_stage, block, table)
            surplus = hours.minus(snapshot.required_hours) if block in step.outputs else hours
            if surplus:
                targets[block] = surplus
    if targets:
        name = step.table.name
        keys = [
            PartitionKey(stage.name, str(block), name, hour) for block in targets for hour in targets[block]
        ]
        no_rows = Write(step.table, step.table.arrow_schema().empty_table(), targets)
        publish_partitions(store, ledger, stage.name, run_id, [no_rows], dict.fromkeys(keys), snapshot)


def pin_consistently(
    snapshot: Callable[[], LedgerSnapshot],
    pin: Callable[[LedgerSnapshot], PinnedTables],
    reads: Collection[TableKey],
) -> tuple[LedgerSnapshot, PinnedTables]:
    """Return a ledger and the table versions that belong to it.

    The versions are pinned between two snapshots that agree on `reads`. Rows change only between a claim and
    a publication, and one of them would change the ledger. So the rows are those of the digests in the
    ledger, even if they are changed and changed back.

    Args:
        snapshot: returns the current ledger.
        pin: returns the current versions of the tables.
        reads: the tables that must not change.
    """
    while True:
        before = snapshot()
        pins, after = pin(before), snapshot()
        if all(before.series(*table) == after.series(*table) for table in reads):
            return after, pins


def _inputs_of(step: TableStep) -> set[TableKey]:
    return {reads.series for output in step.outputs.values() for reads in output.reads}


class _RowCounts(Mapping[datetime, int]):
    """The number of rows in each required hour of a block's table."""

    def __init__(self, snapshot: LedgerSnapshot, table: TableKey) -> None:
        self._states, self._required = snapshot.series(*table), snapshot.required_hours_of(*table)

    def __getitem__(self, hour: datetime) -> int:
        if hour not in self._required:
            raise KeyError(hour)
        return self._states[hour].rows

    def __iter__(self) -> Iterator[datetime]:
        return (hour for hour in self._states if hour in self._required)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _input_rows(step: TableStep, todo: Plan, snapshot: LedgerSnapshot) -> int | None:
    """Return the number of rows that the targets of a plan read; None if above `FEW_ROWS` or unknown."""
    total = 0
    for block, targets in todo.targets.items():
        for reads in step.outputs[block].reads:
            if reads.stage == EXTERNAL_STAGE:
                return None
            spans = [(first, last) for first, last in map(reads.span, targets) if first <= last]
            if not spans:
                continue
            counts = _RowCounts(snapshot, reads.series)
            read = Interval(min(first for first, _ in spans), max(last for _, last in spans) + HOUR)
            for hour in read.hours():
                total += counts.get(hour, 0)
                if total > FEW_ROWS:
                    return None
    return total


def _row_counts(step: TableStep, snapshot: LedgerSnapshot) -> dict[tuple[str, str], Mapping[datetime, int]]:
    return {table[1:]: _RowCounts(snapshot, table) for table in _inputs_of(step)}


def _writes(
    store: Store,
    step: TableStep,
    staged: StagedOutput | None,
    rows: RunRows | None,
    snapshot: LedgerSnapshot,
    states: States,
    sizes: Mapping[PartitionKey, int],
) -> list[Write]:
    """Return one write of the new rows of the partitions in `sizes`.

    It also restores the previous rows of partitions that are not published and that a killed run had begun to
    replace.
    """
    good: dict[str | None, list[datetime]] = {}
    for key in sizes:
        good.setdefault(key.block, []).append(key.hour)
    targets = {block: list(hours) for block, hours in good.items()}
    previous: dict[int, dict[str | None, list[datetime]]] = {}
    for key, state in states.items():
        version = snapshot[key].previous_version if key in snapshot and not snapshot[key].damaged else None
        if version is not None and state is not None and state.status not in READABLE:
            targets.setdefault(key.block, []).append(key.hour)
            previous.setdefault(version, {}).setdefault(key.block, []).append(key.hour)
    if not targets:
        return []

    def union() -> DataFrame:
        frames = [] if rows is None else [rows.read().where(_in(good))]
        for version, blocks in previous.items():
            # The old rows may have columns that are no longer in the specification.
            old = PinnedTables(store, {step.table.name: version})
            frames.append(old.read(step.table.name, set().union(*blocks.values())).where(_in(blocks)))
        return reduce(partial(DataFrame.unionByName, allowMissingColumns=True), frames)

    write = Write(step.table, union, targets, bytes=None if previous else sum(sizes.values()))
    if staged is None or previous or write.shared(partitions_with_rows(snapshot, write.hours)):
        return [write]
    return [replace(write, data_files=staged.adopt_files(good))]


def _in(targets: Mapping[str | None, Iterable[datetime]]) -> Column:
    condition = F.lit(False)
    for block, hours in targets.items():
        condition = condition | ((F.col("block") == block) & in_hours(hours))
    return condition
