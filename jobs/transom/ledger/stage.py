"""What a stage declares of itself, so that the lake can run it.

A stage is functions from DataFrames to rows and this declaration: which tables it writes, block
by block, what each block reads and how far a change there reaches, and which part of the specification
shapes the rows. Staleness, repair, pinning, claims, digests, checks and publication follow from it
(`transom.engine.runner`); a stage does not have to know about them.

A definition needs no session and loads no Spark: metrics and filters are SQL texts, and the functions that
compute are imported when a run calls them.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from transom.core.intervals import HOUR
from transom.core.partitions import EXTERNAL_STAGE, SOURCE_STAGE, TableKey
from transom.ledger.check import Check
from transom.ledger.task_counters import TaskCounters
from transom.storage.external_source import ExternalSource
from transom.storage.tables import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from transom.storage.store import PinnedTables


def rows_where(condition: str) -> str:
    """Return the metric that counts the rows which meet a condition; null where all are null for it."""
    return f"sum(cast(({condition}) AS bigint))"


@dataclass(frozen=True)
class InputRange:
    """A table that a block reads, from `back` hours before an hour to `forward` hours after it.

    A block may read its own table: of earlier hours alone, so `forward` is -1. Its hours are a chain then:
    one is out of date with any that it reads, and what is withheld blocks what comes after it.

    Attributes:
        back_of: instead of `back`, how many hours back one reads, where that depends on which it is; -1 where
            it reads none, not even its own.
        requested: whether the rows depend on which of the hours were requested, and not on their rows alone.
    """

    stage: str
    block: str
    table: str
    back: int = 0
    forward: int = 0
    back_of: Callable[[datetime], int] | None = None
    requested: bool = False

    @property
    def series(self) -> TableKey:
        """The table of a block that is read."""
        return self.stage, self.block, self.table

    def span(self, hour: datetime) -> tuple[datetime, datetime]:
        """The first and the last of the hours that one reads; the first is the later one where there is
        none."""
        back = self.back if self.back_of is None else self.back_of(hour)
        return hour - back * HOUR, hour + self.forward * HOUR


@dataclass(frozen=True)
class BlockOutput:
    """One block's share of a table.

    Attributes:
        spec_fingerprint: canonical JSON of the part of the specification that shapes the rows, and nothing
            more: a changed title or check makes no hour stale.
        columns: the columns that this block fills; the digest is over these.
    """

    reads: tuple[InputRange, ...]
    spec_fingerprint: str
    columns: tuple[str, ...]


@dataclass(frozen=True)
class StepRequest:
    """What a step is asked to compute.

    Attributes:
        targets: the hours to compute, by block.
        incomplete: hours of what a block reads of other tables in which something is missing, by block. Of
            its own table none is told: whether a target is complete is known when its checks have been
            judged. Rows that are to say it carry it from hour to hour.
        rows: how many rows stand in each hour of what is read, by its block and table. Of an hour that is
            not among these nothing is read: nobody asked for it, and it counts as empty.
    """

    pins: "PinnedTables"
    targets: Mapping[str, Sequence[datetime]]
    incomplete: Mapping[str, Collection[datetime]]
    rows: Mapping[tuple[str, str], Mapping[datetime, int]] = field(default_factory=dict)


PartitionFunction = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""What a task makes of the rows of its partition."""
CountingPartitionFunction = Callable[[Iterable[pa.RecordBatch], TaskCounters], Iterator[pa.RecordBatch]]
"""The same, of a task that counts what it does."""


@dataclass(frozen=True)
class BlockTask:
    """The rows of one block, as tasks come by them.

    Attributes:
        frame: what tasks are given.
        compute: what they make of it, with the columns of the block's part; None where that is the frame.
        compute_counting: instead of that, what counts as well.
    """

    block: str
    frame: "DataFrame"
    compute: PartitionFunction | None = None
    compute_counting: CountingPartitionFunction | None = None


@dataclass(frozen=True)
class StepResult:
    """What a step computed.

    Attributes:
        tasks: the rows of the targets, with `hour`.
        metrics: further numbers to check, as frames of block, hour and metrics, made of the rows as they
            will be published.
        precomputed_metrics: those that need no frame, by block and hour.
    """

    tasks: Sequence[BlockTask]
    metrics: "Callable[[DataFrame], Sequence[DataFrame]]" = lambda rows: ()
    precomputed_metrics: Mapping[tuple[str, datetime], Mapping[str, float]] = field(default_factory=dict)


@dataclass(frozen=True)
class TableStep:
    """One table that a stage writes, for all its blocks.

    Attributes:
        metrics: aggregate expressions over the rows of one block and hour, as Spark SQL, by metric name.
        counters: metrics that its tasks count; 0 of an hour of which they say nothing.
        bounds: what theory allows for some of the counters: another one, by name. Both go to the ledger.
        derived: metrics that follow from a node's other ones.
        failing_row_filters: for a check, by its name, the condition, as Spark SQL, that the rows at fault
            meet; up to 20 of them are kept with a failure. Of a check that tasks note something for, these
            notes are.
        withholds: whether rows of an hour that fails a check of severity error stay out of the table. Else
            they are published, and the hour is quarantined.
        compute: is asked once for all targets. A step without it is given its rows. Of a chain it goes
            through them in order, and reads of its own table the hours in reach that are no targets; hours
            that are not due have no rows.
    """

    table: Table
    parts: Mapping[str, BlockOutput]
    compute: Callable[[StepRequest], StepResult] = lambda request: StepResult(())
    checks: tuple[Check, ...] = ()
    metrics: Mapping[str, str] = field(default_factory=dict)
    counters: tuple[str, ...] = ()
    bounds: Mapping[str, str] = field(default_factory=dict)
    derived: Mapping[str, Callable[[Mapping[str, Any]], float | None]] = field(default_factory=dict)
    failing_row_filters: Mapping[str, str] = field(default_factory=dict)
    withholds: bool = True

    def back(self, block: str) -> int:
        """How many earlier hours of its own table a block reads; 0 where its hours are no chain."""
        part = self.parts.get(block)
        own = (reads.back for reads in part.reads if reads.table == self.table.name) if part else ()
        return next(iter(own), 0)

    def external_inputs(self, block: str) -> tuple[InputRange, ...]:
        """What a block reads of other tables."""
        return tuple(reads for reads in self.parts[block].reads if reads.table != self.table.name)


@dataclass(frozen=True)
class Stage:
    """A stage: its name, the version of its code, and its steps in order.

    The version is raised when the code changes what comes out; every hour is stale then.

    Attributes:
        fillers: what its blocks read that is not the stream's own.
    """

    name: str
    version: int
    steps: tuple[TableStep, ...]
    fillers: tuple[ExternalSource, ...] = ()

    @property
    def ledger_stages(self) -> tuple[str, ...]:
        """The stages whose nodes say what of this one is out of date: those that it reads, and itself."""
        reads = (reads for step in self.steps for part in step.parts.values() for reads in part.reads)
        read = {reads.stage for reads in reads} - {EXTERNAL_STAGE}
        return tuple(sorted({SOURCE_STAGE, self.name, *read}))

    def __post_init__(self) -> None:
        for step in self.steps:
            for block, part in step.parts.items():
                own = [reads for reads in part.reads if reads.table == step.table.name]
                for reads in own:
                    chained = reads == InputRange(self.name, block, step.table.name, reads.back, -1)
                    if not chained or reads.back < 1 or len(own) > 1:
                        raise ValueError(
                            f"stage {self.name}: {step.table.name} of {block} may read of itself the hours "
                            "before one, once and of its own block (back at least 1, forward -1), not "
                            f"{reads}"
                        )
