"""Runs of consecutive hours of a chain.

Each continues from the state of the last required hour before it, if that hour is near enough.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa

from transom.arrays.arrow import concat_batches
from transom.core.intervals import HOUR, merge_hours, number_of
from transom.ledger.stage import StepRequest
from transom.ledger.task_counters import TaskCounters


@dataclass(frozen=True)
class HourRun:
    """Consecutive hours, by their numbers since the epoch.

    Attributes:
        ahead: the earlier hour whose state they continue from; None if there is none.
        begin: the first hour.
        until: the end, exclusive.
    """

    ahead: int | None
    begin: int
    until: int

    @property
    def hours(self) -> range:
        """The numbers of all hours."""
        return range(self.begin, self.until)

    @property
    def previous_hour(self) -> int:
        """The hour whose state they continue from, or else the hour before the first."""
        return self.begin - 1 if self.ahead is None else self.ahead


def hour_runs(
    request: StepRequest, block: str, table: str, targets: Collection[datetime], back: int
) -> tuple[list[HourRun], set[datetime]]:
    """Return the runs of a block's target hours, and the other hours whose state they read.

    Args:
        request: the request of the step.
        block: the block.
        table: the table of the chain.
        targets: the hours to compute.
        back: how many hours back state is read.
    """
    required = {*request.rows.get((block, table), {}), *targets}
    runs, stored = [], set()
    for interval in merge_hours(targets):
        near = (hour for hour in required if interval.start - back * HOUR <= hour < interval.start)
        ahead = max(near, default=None)
        if ahead is not None and ahead not in targets:
            stored.add(ahead)
        number = None if ahead is None else number_of(ahead)
        runs.append(HourRun(number, number_of(interval.start), number_of(interval.end)))
    return runs, stored


@dataclass(frozen=True)
class ChainTask(ABC):
    """Computes the target hours of a block in order, as a task.

    Attributes:
        block: the block, resolved.
        runs: the target hours.
        schema: the schema of the rows that it yields.
    """

    block: Any
    runs: Sequence[HourRun]
    schema: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch], tally: TaskCounters) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the target hours; none if the task has no input."""
        table = concat_batches(batches)
        if table is not None:
            yield from self.rows(table, tally)

    @abstractmethod
    def rows(self, table: pa.Table, tally: TaskCounters) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the target hours.

        Args:
            table: all input of the task, stored state included.
            tally: the counters of the task.
        """
