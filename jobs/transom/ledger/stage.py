"""The declaration of a stage: what the engine needs to run it.

A stage consists of functions from DataFrames to rows and of this declaration: the tables that it writes, what
each block reads and how far a change reaches, and the part of the specification that shapes the rows. The
engine derives staleness, repair, pinning, claims, digests, checks and publication from it
(`transom.engine.runner`).

A definition loads no Spark: metrics and filters are SQL texts, and the functions that compute are imported
when a run calls them.
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
    """Return the metric that counts the rows that meet a condition; null if it is null for all."""
    return f"sum(cast(({condition}) AS bigint))"


@dataclass(frozen=True)
class InputRange:
    """A table that a block reads, from `back` hours before an hour to `forward` hours after it.

    A block may read earlier hours of its own table (`forward` is -1). These hours form a chain: a stale hour
    makes its readers stale, and a quarantined one blocks them.

    Attributes:
        back_of: instead of `back`, the number of hours back by hour; -1 if the hour reads none at all.
        requested: whether the rows depend on which hours were requested, and not on their rows alone.
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
        """Return the first and the last hour that an hour reads; the first is later if it reads none."""
        back = self.back if self.back_of is None else self.back_of(hour)
        return hour - back * HOUR, hour + self.forward * HOUR


@dataclass(frozen=True)
class BlockOutput:
    """A block's share of a table.

    Attributes:
        spec_fingerprint: canonical JSON of the part of the specification that shapes the rows. A change of
            anything else, such as a title or a check, makes no hour stale.
        columns: the columns that this block fills; its digests are of these.
    """

    reads: tuple[InputRange, ...]
    spec_fingerprint: str
    columns: tuple[str, ...]


@dataclass(frozen=True)
class StepRequest:
    """What a step has to compute.

    Attributes:
        targets: the hours to compute, by block.
        incomplete: incomplete hours of other tables that a block reads, by block. Its own table is left out:
            completeness of a target is known after its checks. Rows that need it pass it from hour to hour.
        rows: the number of rows in each required hour of an input, by its block and table. Other hours count
            as empty, and are not read.
    """

    pins: "PinnedTables"
    targets: Mapping[str, Sequence[datetime]]
    incomplete: Mapping[str, Collection[datetime]]
    rows: Mapping[tuple[str, str], Mapping[datetime, int]] = field(default_factory=dict)


PartitionFunction = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""Computes the rows of a Spark partition."""
CountingPartitionFunction = Callable[[Iterable[pa.RecordBatch], TaskCounters], Iterator[pa.RecordBatch]]
"""Computes the rows of a Spark partition, and counts."""


@dataclass(frozen=True)
class BlockTask:
    """How tasks compute the rows of a block.

    Attributes:
        frame: the input.
        compute: computes the block's columns from it; None if the frame has the rows.
        compute_counting: used instead of `compute`, if given.
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
        metrics: returns further metrics of the rows as they will be published: frames of block, hour and
            metrics.
        precomputed_metrics: metrics that need no frame, by block and hour.
    """

    tasks: Sequence[BlockTask]
    metrics: "Callable[[DataFrame], Sequence[DataFrame]]" = lambda rows: ()
    precomputed_metrics: Mapping[tuple[str, datetime], Mapping[str, float]] = field(default_factory=dict)


@dataclass(frozen=True)
class TableStep:
    """One table that a stage writes, for all its blocks.

    Attributes:
        outputs: what each block contributes.
        compute: computes all targets at once; a step without it gets its rows elsewhere. A chain is computed
            in order, from its own hours in reach that are no targets.
        metrics: Spark SQL aggregates over the rows of a block and hour, by name.
        counters: metrics that its tasks count; 0 for an hour that they do not mention.
        bounds: for some counters, the counter with the theoretical limit. Both go to `runs`.
        derived: metrics computed from the other metrics of a partition.
        failing_row_filters: by check, a Spark SQL condition that the failing rows meet; up to 20 are recorded
            with a failure. Notes of tasks go first.
        withholds: whether a failed check of severity error keeps the rows out of the table. Otherwise they
            are written, and the hour is quarantined.
    """

    table: Table
    outputs: Mapping[str, BlockOutput]
    compute: Callable[[StepRequest], StepResult] = lambda request: StepResult(())
    checks: tuple[Check, ...] = ()
    metrics: Mapping[str, str] = field(default_factory=dict)
    counters: tuple[str, ...] = ()
    bounds: Mapping[str, str] = field(default_factory=dict)
    derived: Mapping[str, Callable[[Mapping[str, Any]], float | None]] = field(default_factory=dict)
    failing_row_filters: Mapping[str, str] = field(default_factory=dict)
    withholds: bool = True

    def back(self, block: str) -> int:
        """Return how many earlier hours of its own table a block reads; 0 if it is no chain."""
        reads = self.outputs[block].reads if block in self.outputs else ()
        return next((read.back for read in reads if read.table == self.table.name), 0)

    def external_inputs(self, block: str) -> tuple[InputRange, ...]:
        """Return what a block reads of other tables."""
        return tuple(reads for reads in self.outputs[block].reads if reads.table != self.table.name)


@dataclass(frozen=True)
class Stage:
    """A stage: its name, the version of its code, and its steps in order.

    A new version makes every hour stale: increase it if the code computes other rows.

    Attributes:
        fillers: external tables that its blocks read.

    Raises:
        ValueError: a block reads its own table in a way that is no chain.
    """

    name: str
    version: int
    steps: tuple[TableStep, ...]
    fillers: tuple[ExternalSource, ...] = ()

    @property
    def ledger_stages(self) -> tuple[str, ...]:
        """The stages whose partitions decide which hours of this one are stale: its inputs and itself."""
        reads = {reads.stage for step in self.steps for part in step.outputs.values() for reads in part.reads}
        return tuple(sorted({SOURCE_STAGE, self.name, *reads} - {EXTERNAL_STAGE}))

    def __post_init__(self) -> None:
        for step in self.steps:
            for block, part in step.outputs.items():
                own = [reads for reads in part.reads if reads.table == step.table.name]
                for reads in own:
                    chained = reads == InputRange(self.name, block, step.table.name, reads.back, -1)
                    if not chained or reads.back < 1 or len(own) > 1:
                        raise ValueError(
                            f"stage {self.name}: {step.table.name} of {block} may read of itself the hours "
                            "before one, once and of its own block (back at least 1, forward -1), not "
                            f"{reads}"
                        )
