"""Which hours a run covers."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

from transom.core.hour_sets import HourSet
from transom.core.intervals import HOUR, Interval
from transom.ledger.snapshot import LedgerSnapshot


@dataclass(frozen=True)
class Scope:
    """Which hours a run covers.

    Attributes:
        requested: the requested hours: those of the chunk and, for the first stage, of a gap next to it.
        chunk: the part of the run's interval that is computed now.
        run_interval: the whole interval of the run.
        repair_window: how far around the run's interval stale hours are computed, too.
    """

    requested: frozenset[datetime]
    chunk: Interval
    run_interval: Interval
    repair_window: timedelta

    @classmethod
    def within(cls, chunk: Interval, run_interval: Interval, repair_window: timedelta) -> "Scope":
        """Return the scope of a chunk of a later stage; for it, hours of gaps are stale like others."""
        return cls(frozenset(chunk.hours()), chunk, run_interval, repair_window)

    @classmethod
    def of(
        cls, chunk: Interval, run_interval: Interval, repair_window: timedelta, known: Iterable[datetime]
    ) -> "Scope":
        """Return the scope of a chunk of the first stage.

        A gap is the time between the run's interval and the next known hour on either side. If it is shorter
        than `repair_window`, it is requested, too: perhaps a scheduler was down. A longer gap is intended. So
        for any order of runs, the requested hours are their intervals and the short gaps between them.

        Args:
            chunk: the chunk.
            run_interval: the whole interval of the run.
            repair_window: the repair window.
            known: the requested hours of the stage.
        """
        known = HourSet.of(known)
        previous, following = known.last_before(chunk.start), None
        start = chunk.start if previous is None else previous + HOUR
        if chunk.end == run_interval.end:
            following = known.first_from(chunk.end)
        end = chunk.end if following is None else following
        start = start if chunk.start - start < repair_window else chunk.start
        end = end if end - chunk.end < repair_window else chunk.end
        return cls(frozenset(Interval(start, end).hours()), chunk, run_interval, repair_window)

    def still_valid(self, snapshot: LedgerSnapshot, stage: str) -> bool:
        """Return whether no gap has appeared next to the run since it was planned.

        Without this check, two concurrent runs could each leave the gap to the other.
        """
        now = Scope.of(self.chunk, self.run_interval, self.repair_window, snapshot.hours(stage))
        return now.requested <= self.requested

    def covers(self, hour: datetime) -> bool:
        """Return whether a stale hour is computed with this chunk.

        An hour of the run's interval is computed with its own chunk.
        """
        return hour in self.requested or (hour not in self.run_interval and hour in self._around_chunk)

    def covers_last_chunk(self, hour: datetime) -> bool:
        """Return the same for stages whose inputs may come from later chunks.

        Hours after the chunk are computed only with the last chunk of the run.
        """
        ahead = hour < self.chunk.end or self.chunk.end == self.run_interval.end
        return hour in self.requested or (ahead and self.covers(hour))

    def out_of_reach(self, hour: datetime) -> bool:
        """Return whether a stale hour is out of reach of every chunk of the run."""
        return hour not in self.requested and hour not in self._around_run

    def lists_files_of(self, hour: datetime, known: bool, waiting: bool = False) -> bool:
        """Return whether the run checks the files of an hour.

        Args:
            hour: the hour.
            known: whether the hour was requested before, or the files are recorded.
            waiting: whether the files wait; an earlier chunk may have left them to this one.
        """
        covered = self.may_publish(hour, known) if waiting else self.covers(hour)
        return hour in self.requested or (known and covered)

    def may_publish(self, hour: datetime, known: bool) -> bool:
        """Return whether rows of a file may be published in an hour.

        They may not in hours that a later chunk covers or that are out of reach, nor in hours after the run's
        interval that were never requested.

        Args:
            hour: the hour.
            known: whether the hour was requested before.
        """
        if hour in self.run_interval:
            return hour < self.chunk.end
        near = hour in self._around_run and (known or hour < self.run_interval.start)
        return hour in self.requested or near

    @property
    def around(self) -> HourSet:
        """Every hour that the run may compute."""
        return HourSet.of([*self.requested, *self._around_run.hours()])

    @cached_property
    def _around_chunk(self) -> Interval:
        return self.chunk.widen(before=self.repair_window, after=self.repair_window)

    @cached_property
    def _around_run(self) -> Interval:
        return self.run_interval.widen(before=self.repair_window, after=self.repair_window)
