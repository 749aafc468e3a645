"""Running a stage over an interval: plan, pin, compute, audit, publish; table by table.

A stage's step writes one table. Its fresh hours are left alone, its stale ones computed, its checks
judged hour by hour, and the good hours published beside the failed ones.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial, reduce
from typing import Any, Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from transom.core.intervals import Interval, moment_of, number_of
from transom.core.partitions import (
    EXTERNAL_STAGE,
    READABLE,
    CheckResult,
    PartitionKey,
    PartitionState,
    TableKey,
)
from transom.engine.checks import evaluate_checks
from transom.engine.external import ExternalSources
from transom.engine.failing_rows import format_row, sample_failing_rows
from transom.engine.outcomes import NO_ROWS, resolve_outcomes
from transom.engine.planner import Plan, left_stale, plan, stale_nodes
from transom.engine.publisher import is_published, publish, readable
from transom.engine.retention import Series, expire
from transom.engine.staging import StagedOutput
from transom.ledger.ledger import Ledger
from transom.ledger.snapshot import LedgerSnapshot
from transom.ledger.stage import Stage, StepRequest, StepResult, TableStep
from transom.ledger.staleness import Scope, checks_fingerprint
from transom.ledger.task_counters import TaskCounters
from transom.ledger.waivers import Waiver, check_result_of
from transom.storage import digest as digests
from transom.storage import driver_io as small
from transom.storage.digest import HASH
from transom.storage.store import PinnedTables, Store, Write, cast_to_table, in_hours
from transom.storage.tables import RunSuperseded

SIZE = "__bytes"
"""The column that holds about how many bytes a row takes."""


@dataclass
class Outcome:
    """What a run did, for the ledger's `runs` and for the person who asked.

    Attributes:
        stale: nodes that are stale and lie too far from the run, as the ledger has them after it;
            of chunks the last one says it.
        incomplete: how many of the published ones lack something.
        counters: what was done, counted; over chunks it adds up.
        limits: what theory allows for some of that.
        gauges: what there is after it, counted; of chunks the last one says it.
    """

    rows_out: int = 0
    partitions_repaired: int = 0
    published: int = 0
    incomplete: int = 0
    quarantined: int = 0
    blocked: int = 0
    stale: dict[PartitionKey, PartitionState | None] = field(default_factory=dict)
    counters: dict[str, int] = field(default_factory=dict)
    limits: dict[str, int] = field(default_factory=dict)
    gauges: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, entries: Iterable[PartitionState], repaired: int) -> "Outcome":
        """Return what has come of some nodes, counted."""
        entries = list(entries)
        published = [entry for entry in entries if entry.status == "published"]
        statuses = [entry.status for entry in entries]
        return cls(
            rows_out=sum(entry.rows for entry in published),
            partitions_repaired=repaired,
            published=len(published),
            incomplete=sum(not entry.complete for entry in published),
            quarantined=statuses.count("quarantined"),
            blocked=statuses.count("blocked"),
        )

    @property
    def stale_since(self) -> datetime | None:
        """The first hour that is stale and too far."""
        return min((node.hour for node in self.stale), default=None)

    def add(self, other: "Outcome") -> None:
        """Adds another chunk's figures."""
        self.rows_out += other.rows_out
        self.partitions_repaired += other.partitions_repaired
        self.published += other.published
        self.incomplete += other.incomplete
        self.quarantined += other.quarantined
        self.blocked += other.blocked
        self.stale = other.stale
        for mine, others in ((self.counters, other.counters), (self.limits, other.limits)):
            for name, amount in others.items():
                mine[name] = mine.get(name, 0) + amount
        self.gauges = other.gauges or self.gauges


def run_steps(
    store: Store,
    ledger: Ledger,
    stage: Stage,
    interval: Interval,
    repair_window: timedelta,
    run_id: str,
    accepted: Sequence[Waiver] = (),
    stretch: Interval | None = None,
    retention: timedelta | None = None,
    shared: Collection[Series] = (),
    recompute: bool = False,
) -> Outcome:
    """Brings a stage up to date over an interval.

    Args:
        repair_window: how far before and after the interval stale hours are recomputed as well.
        accepted: failed checks that a person lets pass.
        stretch: the whole of which the interval is a chunk; None is the interval itself.
        retention: how long state is kept before the stage's last hour; None is for ever.
        shared: block and table of the stage's state that other stages read. It does not expire; what has
            expired before others read it is made again.
        recompute: whether the hours of the interval are computed and written even where they are fresh.
    """
    outcome = Outcome()
    forced = frozenset(interval.hours()) if recompute else frozenset()
    scope = Scope.within(interval, stretch or interval, repair_window)
    fillers = ExternalSources(ledger.root, stage.fillers)

    def run(step: TableStep, todo: Plan, book: LedgerSnapshot, pins: PinnedTables) -> None:
        outcome.add(_run_step(store, ledger, stage.name, step, todo, book, pins, run_id, accepted, forced))

    def prepared(
        step: TableStep, of: Scope, again: Collection[PartitionKey]
    ) -> tuple[Plan, LedgerSnapshot, PinnedTables]:
        reads = _read_by(step)
        tables = {table for stage, _, table in reads if stage != EXTERNAL_STAGE}
        book, pins = pin_consistently(
            lambda: fillers.beside(ledger.snapshot(stage.ledger_stages)),
            lambda book: store.pin(tables, fillers=fillers.pinned()),
            reads,
        )
        return plan(stage, step, book, of, accepted, again), book, pins

    def bring(number: int, of: Scope, again: Collection[PartitionKey] = ()) -> None:
        """Brings a step up to date, and first the state that it needs."""
        step = stage.steps[number]
        todo, book, pins = prepared(step, of, again)
        made: set[PartitionKey] = set()
        # What cannot be made blocks what reads it; what changes again makes what reads it stale.
        while missing := todo.needed - made:
            for before, state in enumerate(stage.steps[:number]):
                of_table = {node for node in missing if node.table == state.table.name}
                if of_table:
                    bring(before, replace(of, requested=frozenset(node.hour for node in of_table)), of_table)
            made |= missing
            todo, book, pins = prepared(step, of, again)
        if any(node in book and book[node].status == "expired" for node in todo.needed):
            # What has expired stands by its digest, and would be read as nothing.
            raise RunSuperseded(
                f"{stage.name}: another run has let state expire that run {run_id} needs; run the interval "
                "again"
            )
        run(step, todo, book, pins)

    for number, step in enumerate(stage.steps):
        _drop_blocks(store, ledger, stage, step, run_id)
        if step.parts:
            again = _expired(ledger, stage.name, step, shared)
            bring(number, scope, again | _forced(ledger.snapshot([stage.name]), stage.name, step, forced))
    if retention is not None:
        outcome.counters["expired"] = expire(store, ledger, stage, retention, run_id, shared)
    book = fillers.beside(ledger.snapshot(stage.ledger_stages))
    outcome.stale = left_stale(stale_nodes(stage, book, accepted), book, scope)
    return outcome


def _expired(ledger: Ledger, stage: str, step: TableStep, shared: Collection[Series]) -> set[PartitionKey]:
    """Nodes of a step that have expired, though other stages read them."""
    blocks = {block for block, table in shared if table == step.table.name}
    expired = ledger.snapshot([stage]).having(["expired"], [step.table.name]) if blocks else ()
    return {node for node, _ in expired if node.block in blocks}


def _forced(
    book: LedgerSnapshot, stage: str, step: TableStep, hours: Collection[datetime]
) -> set[PartitionKey]:
    """Nodes of a step in some hours; without state that has expired, which is made where it is needed."""
    nodes = {PartitionKey(stage, block, step.table.name, hour) for block in step.parts for hour in hours}
    return {node for node in nodes if node not in book or book[node].status != "expired"}


def drop_removed_blocks(store: Store, ledger: Ledger, stage: Stage, run_id: str) -> None:
    """Takes away all that a stage has left of blocks that the specification has no longer.

    Args:
        stage: as the specification has it now, without blocks perhaps.
    """
    for step in stage.steps:
        _drop_blocks(store, ledger, stage, step, run_id)


def _drop_blocks(store: Store, ledger: Ledger, stage: Stage, step: TableStep, run_id: str) -> None:
    """Takes away the rows of blocks that the specification has no longer, and of hours that are not due."""
    book = ledger.snapshot(stage.ledger_stages)
    nodes = []
    for of_stage, block, table in book.names:
        if (of_stage, table) == (stage.name, step.table.name):
            held = book.hours_of(of_stage, block, table)
            left = held.minus(book.required_hours) if block in step.parts else held
            nodes += [PartitionKey(of_stage, block, table, hour) for hour in left]
    if nodes:
        hours: dict[str | None, list[datetime]] = {}
        for node in nodes:
            hours.setdefault(node.block, []).append(node.hour)
        nothing = Write(step.table, step.table.arrow_schema().empty_table(), hours)
        publish(store, ledger, stage.name, run_id, [nothing], dict.fromkeys(nodes), book)


def pin_consistently(
    snapshot: Callable[[], LedgerSnapshot],
    pin: Callable[[LedgerSnapshot], PinnedTables],
    reads: Collection[TableKey],
) -> tuple[LedgerSnapshot, PinnedTables]:
    """Return a ledger and table versions that belong together.

    The tables are pinned between two readings of the ledger that agree: a change of the rows lies
    between a claim and a publication, and both would show. So not even rows that were changed and
    changed back in the meantime can be taken for those whose digest the ledger gives.

    Args:
        reads: the tables in which the readings have to agree.
    """
    while True:
        before = snapshot()
        pins, after = pin(before), snapshot()
        if all(before.series(*read) == after.series(*read) for read in reads):
            return after, pins


def _run_step(
    store: Store,
    ledger: Ledger,
    stage: str,
    step: TableStep,
    todo: Plan,
    book: LedgerSnapshot,
    pins: PinnedTables,
    run_id: str,
    accepted: Sequence[Waiver],
    forced: Collection[datetime] = (),
) -> Outcome:
    figures: dict[PartitionKey, dict[str, Any]] = {}
    verdicts: list[CheckResult] = []
    good: dict[str | None, list[datetime]] = {}
    spool: StagedOutput | None = None
    rows: DataFrame | None = None
    size = 0
    try:
        if todo.targets:
            asked = StepRequest(pins, todo.targets, todo.incomplete, _row_counts(step, book))
            computed = step.compute(asked)
            hours = set().union(*todo.targets.values())
            spool = StagedOutput(store, step.table, computed.tasks, len(hours))
            rows = _hashed(step, spool.rows())
            figures = measure(step, rows, computed, todo.inputs, spool.counted)
            verdicts = evaluate(step, figures, accepted)
        rules = checks_fingerprint(step.checks, accepted)
        entries = resolve_outcomes(stage, step, todo, book, figures, verdicts, rules, run_id)
        # Of what is blocked nothing was computed: an hour before it, settled now, is missing.
        verdicts = [v for v in verdicts if v.node in entries and entries[v.node].status != "blocked"]
        if rows is not None and spool is not None:
            counted = spool.counted
            verdicts = [v if v.success else _sampled(step, rows, v, counted) for v in verdicts]
        for node, entry in entries.items():
            rewritten = node.hour in forced or not is_published(book, node, entry.digest)
            if entry.status == "published" and rewritten:
                good.setdefault(node.block, []).append(node.hour)
                size += figures[node]["bytes"]
        writes = _writes(store, step, spool, rows, size, good, _partially_written(book, entries), book)
        publish(store, ledger, stage, run_id, writes, entries, book, verdicts)
    finally:
        if spool is not None:
            spool.discard()
    outcome = Outcome.of(entries.values(), todo.repaired)
    tallies = spool.counted.values() if spool else ()
    sums = [(name, amount) for tally in tallies for (_, name), amount in tally.sums.items()]
    work = {name: sum(n for of, n in sums if of == name) for name in {name for name, _ in sums}}
    outcome.counters = {name: amount for name, amount in work.items() if name not in step.bounds.values()}
    outcome.limits = {name: work.get(most, 0) for name, most in step.bounds.items() if work}
    return outcome


def _read_by(step: TableStep) -> set[tuple[str, str, str]]:
    return {(r.stage, r.block, r.table) for part in step.parts.values() for r in part.reads}


class _RowCounts(Mapping[datetime, int]):
    """How many rows stand in each hour that is due of a block's table."""

    def __init__(self, book: LedgerSnapshot, series: tuple[str, str, str]) -> None:
        self._entries, self._due = book.series(*series), book.required_hours_of(*series)

    def __getitem__(self, hour: datetime) -> int:
        if hour not in self._due:
            raise KeyError(hour)
        return self._entries[hour].rows

    def __iter__(self) -> Iterator[datetime]:
        return (hour for hour in self._entries if hour in self._due)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _row_counts(step: TableStep, book: LedgerSnapshot) -> dict[tuple[str, str], Mapping[datetime, int]]:
    """How many rows stand in each hour that is due of what a step reads."""
    return {(block, table): _RowCounts(book, (stage, block, table)) for stage, block, table in _read_by(step)}


def _hashed(step: TableStep, rows: DataFrame) -> DataFrame:
    """The rows in the table's own form, with a hash over the columns that their block fills."""
    rows = cast_to_table(rows, step.table)
    cases = " ".join(
        f"WHEN '{block}' THEN {digests.row_hash_sql(rows.schema, part.columns)}"
        for block, part in step.parts.items()
    )
    return hashed(rows, f"CASE block {cases} END")


def hashed(rows: DataFrame, row_hash: str) -> DataFrame:
    """Return rows with their hashes, given as Spark SQL, and sizes, as `measure` takes them."""
    return rows.select("*", F.expr(row_hash).alias(HASH), small.bytes_of(rows).alias(SIZE))


def measure(
    step: TableStep,
    rows: DataFrame,
    computed: StepResult,
    nodes: Iterable[PartitionKey],
    counted: Mapping[str, TaskCounters],
    by: Literal["block", "table"] = "block",
) -> dict[PartitionKey, dict[str, Any]]:
    """Digest, count and every check's number for each node, in one aggregation over the rows.

    Args:
        rows: as `hashed` gives them, and none of other nodes.
        counted: what the tasks have counted, by block; of other hours than these, too.
        by: the column that says, beside `hour`, which node a row is of.
    """
    figures: dict[PartitionKey, dict[str, Any]] = {
        node: {
            "block": node.block,
            **NO_ROWS,
            **dict.fromkeys(step.metrics, None),
            **dict.fromkeys(step.counters, 0),
            **computed.precomputed_metrics.get((node.block, node.hour), {}),
        }
        for node in nodes
    }
    by_key = {(getattr(node, by), node.hour): of_node for node, of_node in figures.items()}
    frames = [
        rows.groupBy(by, "hour").agg(
            F.count("*").alias("count"),
            digests.digest_of(F.count("*"), digests.total_hash(F.col(HASH))).alias("digest"),
            F.sum(SIZE).alias("bytes"),
            *(F.expr(metric).alias(name) for name, metric in step.metrics.items()),
        ),
        *computed.metrics(rows),
    ]
    together = reduce(partial(DataFrame.unionByName, allowMissingColumns=True), frames)
    for row in together.toArrow().to_pylist():
        of_node = by_key[row.pop(by), row.pop("hour")]
        of_node.update({name: value for name, value in row.items() if value is not None})
    for block, tally in counted.items():
        for hour, name, amount in tally.figures():
            if (at := (block, moment_of(hour))) in by_key:
                by_key[at][name] = amount
    for row in figures.values():
        row.update({name: derive(row) for name, derive in step.derived.items()})
    return figures


def evaluate(
    step: TableStep, figures: Mapping[PartitionKey, Mapping[str, Any]], accepted: Sequence[Waiver]
) -> list[CheckResult]:
    """Judges every node."""
    nodes = list(figures)
    findings = evaluate_checks(step.checks, [figures[node] for node in nodes])
    return [check_result_of(nodes[finding.row], finding, accepted) for finding in findings]


def _sampled(
    step: TableStep, rows: DataFrame, verdict: CheckResult, counted: Mapping[str, TaskCounters]
) -> CheckResult:
    """A failed check with some of the rows at fault, or what tasks have noted for it."""
    node, at_fault = verdict.node, step.failing_row_filters.get(verdict.check)
    noted = counted.get(node.block, TaskCounters()).notes.get((number_of(node.hour), verdict.check))
    if noted:
        return verdict.with_failing_rows(noted)
    if at_fault is None:
        return verdict
    of_node = rows.where((F.col("block") == node.block) & (F.col("hour") == F.lit(node.hour)))
    columns = [name for name in step.parts[node.block].columns if name != "hour"]
    return verdict.with_failing_rows(
        map(format_row, sample_failing_rows(of_node.where(F.expr(at_fault)), columns))
    )


def _partially_written(
    book: LedgerSnapshot, entries: Mapping[PartitionKey, PartitionState]
) -> dict[PartitionKey, int]:
    """Withheld nodes that a killed run had begun to replace, with the version in which they stand."""
    held = {node: book[node].previous_version for node in entries if node in book}
    return {
        node: version
        for node, version in held.items()
        if version is not None and entries[node].status not in READABLE and not book[node].damaged
    }


def _writes(
    store: Store,
    step: TableStep,
    spool: StagedOutput | None,
    rows: DataFrame | None,
    size: int,
    good: Mapping[str | None, list[datetime]],
    torn: Mapping[PartitionKey, int],
    book: LedgerSnapshot,
) -> list[Write]:
    """The new rows of good nodes and the old ones of torn nodes, in one write."""
    frames = [] if rows is None else [rows.where(_in(good)).drop(HASH, SIZE)]
    targets = {block: list(hours) for block, hours in good.items()}
    stood: dict[int, dict[str | None, list[datetime]]] = {}
    for node, version in torn.items():
        targets.setdefault(node.block, []).append(node.hour)
        stood.setdefault(version, {}).setdefault(node.block, []).append(node.hour)
    for version, blocks in stood.items():
        hours = {hour for hours in blocks.values() for hour in hours}
        # As they stood, in columns too that the specification has no longer.
        frames.append(
            PinnedTables(store, {step.table.name: version}).read(step.table.name, hours).where(_in(blocks))
        )
    if not targets:
        return []
    together = reduce(partial(DataFrame.unionByName, allowMissingColumns=True), frames)
    write = Write(step.table, together, targets, bytes=None if torn else size)
    if spool is None or torn or write.shared(readable(book, write.hours)):
        return [write]
    return [replace(write, parts=spool.adopt_files(good))]


def _in(targets: Mapping[str | None, Iterable[datetime]]) -> Column:
    kept = F.lit(False)
    for block, hours in targets.items():
        kept = kept | ((F.col("block") == block) & in_hours(hours))
    return kept
