"""Stretches of hours of a chain: each goes on from what the last hour before it has left, if that is near
enough to count."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from transom.core.intervals import HOUR, merge_hours, number_of
from transom.ledger.stage import StepRequest

T = TypeVar("T")


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

    def state(self, last: tuple[int, T] | None, stored: Mapping[int, T], nothing: T) -> T:
        """What stands before them.

        Args:
            last: the hour that was computed last, and its state.
            stored: states of hours that were not.
            nothing: where there is none.
        """
        if self.ahead is not None and last is not None and last[0] == self.ahead:
            return last[1]
        return nothing if self.ahead is None else stored.get(self.ahead, nothing)


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
