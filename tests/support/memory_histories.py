"""Drawn histories of a lake in memory: events, runs, kills, and what happens during a run."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from hypothesis import strategies as st

from tests.support.event_lake import EventLake
from tests.support.memory_lake import Killed, at
from transom.core.intervals import HOUR, Interval
from transom.ledger.scope import Scope
from transom.storage.fencing import RunSuperseded


@dataclass(frozen=True)
class EventChange:
    """What ingest computes for an hour, or how an external hour changes."""

    hour: int
    values: Sequence[int]
    complete: bool
    quarantined: bool
    requested: bool
    outside: str | None

    def happen(self, lake: EventLake) -> None:
        if self.outside is None:
            lake.set_events(self.hour, self.values, self.complete, self.quarantined, self.requested)
        else:
            lake.outside.setdefault(self.outside, {})[at(self.hour)] = sum(self.values)


@dataclass(frozen=True)
class HistoryRun:
    """The arguments of a run.

    Attributes:
        alone: whether a stage runs without the stages that it reads.
    """

    start: int
    hours: int
    repair_window: int
    chunk: int
    retention: int | None
    alone: bool = False

    @property
    def arguments(self) -> tuple[int, int, int, int, int | None]:
        return self.start, self.start + self.hours, self.repair_window, self.chunk, self.retention

    def out_of_reach(self, hour: datetime) -> bool:
        period = Interval(at(self.start), at(self.start + self.hours))
        return Scope.within(period, period, self.repair_window * HOUR).out_of_reach(hour)


@dataclass(frozen=True)
class Strike:
    """An event at one commit of a run: a kill, or something else that happens meanwhile."""

    by: Literal["kill", "others"]
    commit: int
    side: str
    meanwhile: Sequence[EventChange | HistoryRun]

    @contextmanager
    def during(self, lake: EventLake, happen: Callable[[EventChange | HistoryRun], object]) -> Iterator[None]:
        """Let it happen at a commit of the run inside, which may end there."""

        def befall() -> None:
            for what in self.meanwhile:
                happen(what)
            if self.by == "kill":
                raise Killed

        with suppress(Killed, RunSuperseded), lake.commits.struck(self.commit, self.side, befall):
            yield


mostly = st.sampled_from([True] * 6 + [False])
seldom = mostly.map(lambda fine: not fine)
NEVER = st.just(False)


def event_changes(hours: int, outside: Sequence[str] = ()) -> st.SearchStrategy[EventChange]:
    """Draw changes of some hours; with three external sources, one in two is of one of these."""
    values = st.lists(st.integers(0, 12), max_size=2)
    of = st.sampled_from([None, None, None, *outside])
    return st.builds(EventChange, st.integers(0, hours - 1), values, mostly, seldom, mostly, of)


def runs(
    hours: int,
    chunks: Sequence[int],
    retentions: Sequence[int],
    alone: st.SearchStrategy[bool] = NEVER,
) -> st.SearchStrategy[HistoryRun]:
    """Draw runs over some hours; half of them drop no state."""
    retention = st.sampled_from([None, None, *retentions])
    first, length, window = st.integers(0, hours - 1), st.integers(1, hours), st.integers(0, 3)
    return st.builds(HistoryRun, first, length, window, st.sampled_from(chunks), retention, alone)


def strikes(
    commits: int, meanwhile: st.SearchStrategy[EventChange | HistoryRun]
) -> st.SearchStrategy[Strike | None]:
    """Draw strikes at one of the first commits, or none."""
    by, side = st.sampled_from(["kill", "others"]), st.sampled_from(["before", "after"])
    return st.none() | st.builds(Strike, by, st.integers(1, commits), side, st.lists(meanwhile, max_size=3))
