"""What a stage declares of itself, so that the lake can run it.

A stage is functions from DataFrames to rows and this declaration: which tables it writes, block
by block, what each block reads and how far a change there reaches, and which part of the specification
shapes the rows. Staleness, healing, pinning, claims, digests, checks and publication follow from it
(`transom.lake.refresh`); a stage does not have to know about them.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame

from transom.lake.quality import Check
from transom.lake.store import Pins
from transom.lake.tables import Table


@dataclass(frozen=True)
class Reads:
    """A table that a block reads, from `back` hours before an hour to `forward` hours after it."""

    stage: str
    block: str
    table: str
    back: int = 0
    forward: int = 0


@dataclass(frozen=True)
class Part:
    """One block's share of a table.

    Attributes:
        shape: canonical JSON of the part of the specification that shapes the rows, and nothing more:
            a changed title or check makes no hour stale.
        columns: the columns that this block fills; the digest is over these.
    """

    reads: tuple[Reads, ...]
    shape: str
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Request:
    """What a step is asked to compute.

    Attributes:
        targets: the hours to compute, by block.
        incomplete: hours of what a block reads in which something is missing, by block.
        rows: how many rows stand in each hour of what is read, by its block and table.
    """

    pins: Pins
    targets: Mapping[str, Sequence[datetime]]
    incomplete: Mapping[str, Collection[datetime]]
    rows: Mapping[tuple[str, str], Mapping[datetime, int]] = field(default_factory=dict)


Made = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""What a task makes of the rows of its partition."""


@dataclass(frozen=True)
class Share:
    """The rows of one block, as tasks come by them.

    Attributes:
        frame: what tasks are given.
        made: what they make of it, with the columns of the block's part; None where that is the frame.
    """

    block: str
    frame: DataFrame
    made: Made | None = None


@dataclass(frozen=True)
class Computed:
    """What a step computed.

    Attributes:
        shares: the rows of the targets, with `hour`.
        metrics: further numbers to check, as frames of block, hour and metrics, made of the rows as they
            will be published.
        known: those that need no frame, by block and hour.
    """

    shares: Sequence[Share]
    metrics: Callable[[DataFrame], Sequence[DataFrame]] = lambda rows: ()
    known: Mapping[tuple[str, datetime], Mapping[str, float]] = field(default_factory=dict)


@dataclass(frozen=True)
class Step:
    """One table that a stage writes, for all its blocks.

    Attributes:
        figures: aggregate expressions over the rows of one block and hour, by metric name.
        derived: metrics that follow from a node's other ones.
        faults: for a check, which rows are at fault; up to 20 of them are kept with a failure.
    """

    table: Table
    parts: Mapping[str, Part]
    compute: Callable[[Request], Computed]
    checks: tuple[Check, ...] = ()
    figures: Mapping[str, Column] = field(default_factory=dict)
    derived: Mapping[str, Callable[[Mapping[str, Any]], float | None]] = field(default_factory=dict)
    faults: Mapping[str, Column] = field(default_factory=dict)


@dataclass(frozen=True)
class Stage:
    """A stage: its name, the version of its code, and its steps in order.

    The version is raised when the code changes what comes out; every hour is stale then.
    """

    name: str
    version: int
    steps: tuple[Step, ...]
