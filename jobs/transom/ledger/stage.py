"""The declaration of a stage: what the engine needs to run it.

A stage consists of functions from DataFrames to rows and of this declaration. It lists the tables that the
stage writes, what each block reads, how far a change reaches, and the part of the specification that shapes
the rows. From it the engine (`transom.engine.runner`) derives staleness, repair, pinning, claims, digests,
checks and publication.

A definition loads no Spark: metrics and filters are SQL texts, and the functions that compute are imported
when a run calls them.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from transom.core.exact_sums import Int64s
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
    """Return the metric that counts the rows that meet a condition; null if the condition is null for all."""
    return f"sum(cast(({condition}) AS bigint))"


@dataclass(frozen=True)
class InputRange:
    """A table that a block reads, from `back` hours before an hour to `forward` hours after it.

    A block may read earlier hours of its own table (`forward` is -1). These hours form a chain: a stale hour
    makes its readers stale, and a quarantined one blocks them.

    Attributes:
        stage: the stage of the table.
        block: the block of the table.
        table: the name of the table.
        back: the number of hours back.
        forward: the number of hours forward.
        back_of: returns the number of hours back for an hour, instead of `back`; -1 if it reads none.
        requested: whether the rows depend on which hours were requested, not only on the rows that are read.
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
        """The stage, block and table."""
        return self.stage, self.block, self.table

    def span(self, hour: datetime) -> tuple[datetime, datetime]:
        """Return the first and the last hour that an hour reads, both inclusive; first > last if none."""
        back = self.back if self.back_of is None else self.back_of(hour)
        return hour - back * HOUR, hour + self.forward * HOUR

    def spans(self, hours: Sequence[datetime], numbers: Int64s) -> tuple[Int64s, Int64s]:
        """Return the `span` of each of some hours, in hours since the epoch.

        Args:
            hours: the hours.
            numbers: the same since the epoch.
        """
        back: int | Int64s = self.back
        if self.back_of is not None:
            back = np.array(list(map(self.back_of, hours)), dtype=np.int64)
        return numbers - back, numbers + self.forward


@dataclass(frozen=True)
class BlockOutput:
    """A block's share of a table.

    Attributes:
        reads: the tables that the block reads.
        spec_fingerprint: canonical JSON of the part of the specification that shapes the rows. A change of
            anything else, such as a title or a check, makes no hour stale.
        columns: the columns that the block fills, which its digests cover.
        before_ends: for entries of the stream file that end, the ends, ascending, with the `spec_fingerprint`
            of the hours before each. So an end that is added or moved makes only hours between stale.
    """

    reads: tuple[InputRange, ...]
    spec_fingerprint: str
    columns: tuple[str, ...]
    before_ends: tuple[tuple[datetime, str], ...] = ()

    def fingerprint_of(self, hour: datetime) -> str:
        """Return the `spec_fingerprint` of an hour."""
        return next((text for end, text in self.before_ends if hour < end), self.spec_fingerprint)


@dataclass(frozen=True)
class StepRequest:
    """The targets and inputs of a step.

    Attributes:
        pins: the input tables at fixed versions.
        targets: the hours to compute, by block.
        incomplete: the incomplete hours of other tables that a block reads, by block. Its own table is
            omitted, as the completeness of a target is known only after its checks.
        rows: the number of rows in each required hour of an input, by block and table. Other hours count as
            empty, and are not read.
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
    """The computation of a block's rows by tasks.

    Attributes:
        block: the name of the block.
        frame: the input; on the driver, an Arrow table, if it is small and needs no Spark.
        compute: computes the block's columns from the input; None if the frame already has the rows.
        compute_counting: used instead of `compute`, if given.
        by: the columns whose equal values must be in one partition, in any order; without columns, all rows
            are in one. None: any partition may have any row.
        isolated: whether it must not run on the driver, as it runs code of a stream file.
    """

    block: str
    frame: "DataFrame | pa.Table"
    compute: PartitionFunction | None = None
    compute_counting: CountingPartitionFunction | None = None
    by: Sequence[str] | None = None
    isolated: bool = False


@dataclass(frozen=True)
class StepResult:
    """The result of a step.

    Attributes:
        tasks: the tasks that compute the rows of the targets, with the column `hour`.
        metrics: returns further metrics of the rows to publish, as frames of block, hour and metrics; its
            argument reads the rows. None if there are none.
        least_rows: the number of rows of a block and hour below which `metrics` has no values.
        precomputed_metrics: metrics that need no frame, by block and hour.
    """

    tasks: Sequence[BlockTask]
    metrics: "Callable[[Callable[[], DataFrame]], Sequence[DataFrame]] | None" = None
    least_rows: int = 0
    precomputed_metrics: Mapping[tuple[str, datetime], Mapping[str, float]] = field(default_factory=dict)


@dataclass(frozen=True)
class TableStep:
    """One table that a stage writes, for all its blocks.

    Attributes:
        table: the table.
        outputs: the share of each block.
        compute: computes all targets at once. A chain is computed in order, from those of its own hours in
            reach that are no targets. Default: the rows come from elsewhere.
        checks: the checks of a partition.
        metrics: Spark SQL aggregates over the rows of a block and hour, by name.
        counters: the metrics that its tasks count; 0 for an hour that they do not mention.
        bounds: for some counters, the counter with the theoretical limit. `runs` has both.
        derived: metrics computed from the other metrics of a partition, by name.
        failing_row_filters: a Spark SQL condition that the failing rows meet, by check. A failed check
            records at most 20 such rows, or the notes of tasks if there are any.
        withholds: whether a failed check of severity error keeps the rows out of the table. Otherwise the
            rows are written, and the hour is quarantined.
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
        """Return how many earlier hours of its own table a block reads; 0 if the table is no chain."""
        reads = self.outputs[block].reads if block in self.outputs else ()
        return next((read.back for read in reads if read.table == self.table.name), 0)

    def external_inputs(self, block: str) -> tuple[InputRange, ...]:
        """Return the ranges of other tables that a block reads."""
        return tuple(reads for reads in self.outputs[block].reads if reads.table != self.table.name)


@dataclass(frozen=True)
class Stage:
    """A stage.

    Attributes:
        name: its name.
        version: the version of its code. Raise it if the code computes other rows: every hour becomes stale.
        steps: its steps, in order.
        fillers: the external tables that its blocks read.

    Raises:
        ValueError: a block reads its own table in a way that is no chain.
    """

    name: str
    version: int
    steps: tuple[TableStep, ...]
    fillers: tuple[ExternalSource, ...] = ()

    @property
    def ledger_stages(self) -> tuple[str, ...]:
        """The stages whose partitions decide which hours of this one are stale: it and its inputs."""
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
