"""Stretches of hours of a chain: each goes on from what the last hour before it has left, if that is near
enough to count."""

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
    """Hours that follow each other, by their numbers.

    Attributes:
        ahead: the hour whose state stands before them; None where none does.
        begin: the first.
        until: the one behind the last.
    """

    ahead: int | None
    begin: int
    until: int

    @property
    def hours(self) -> range:
        """All of them."""
        return range(self.begin, self.until)

    @property
    def previous_hour(self) -> int:
        """The hour as of whose end they begin."""
        return self.begin - 1 if self.ahead is None else self.ahead


def hour_runs(
    request: StepRequest, block: str, table: str, targets: Collection[datetime], back: int
) -> tuple[list[HourRun], set[datetime]]:
    """The stretches of a block's target hours, and the hours whose state they read.

    Args:
        table: the chain.
        back: how many hours back state counts.
    """
    due = {*request.rows.get((block, table), {}), *targets}
    found, stored = [], set()
    for stretch in merge_hours(targets):
        ahead = _previous_required(stretch.start, back, due)
        if ahead is not None and ahead not in targets:
            stored.add(ahead)
        number = None if ahead is None else number_of(ahead)
        found.append(HourRun(number, number_of(stretch.start), number_of(stretch.end)))
    return found, stored


def _previous_required(hour: datetime, back: int, due: Iterable[datetime]) -> datetime | None:
    """The last hour before one that is due, as far back as state counts."""
    return max((one for one in due if hour - back * HOUR <= one < hour), default=None)


@dataclass(frozen=True)
class ChainTask(ABC):
    """Computes the target hours of a block in order, as a task.

    Attributes:
        runs: the target hours.
        schema: of the rows that it yields.
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
        """
