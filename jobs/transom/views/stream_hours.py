"""The hours of a stream that stays open: states of now, and stale hours as soon as they are known.

Reading the states takes a fraction of a second. Which hours are stale takes seconds, so it is computed by one
thread for all streams, and kept as long as nothing changes.
"""

import threading
import time
from collections.abc import Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as Unfinished
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from transom.core.intervals import Interval
from transom.ledger.hour_states import COLUMNS, HourStates
from transom.storage.latest_table import Revision
from transom.views.hours import HourGrid, Staleness, grid_of, staleness_of
from transom.views.open_stream import OpenStream

KEEP = 60.0
"""How long stale hours are shown after a change, in seconds: a run commits a dozen times."""
PATIENCE = 0.5
"""How long a page waits for stale hours, in seconds: those of all its streams."""
_WORKER = ThreadPoolExecutor(1, "transom-stale-hours")


@dataclass(frozen=True)
class _Computed:
    """Stale hours, with what they depend on and when they were computed."""

    of: Hashable
    staleness: Staleness
    time: datetime
    at: float


class StreamHours:
    """The hours of a stream; several threads may use them.

    Args:
        opened: the stream. Of another stream file there is another object.
    """

    def __init__(self, opened: OpenStream) -> None:
        self._opened = opened
        self._lock = threading.Lock()
        self._states: tuple[Revision, HourStates] | None = None
        self._computed: _Computed | None = None
        self._computing: tuple[Hashable, Future[None]] | None = None

    def grid(self, interval: Interval, patience: float | None = PATIENCE) -> HourGrid:
        """Return the state of each stage by hour.

        Args:
            interval: the hours.
            patience: how long to wait for stale hours, in seconds; None waits for those of now.

        Raises:
            LakeError: the lake cannot be read.
        """
        states, staleness, notice = self._now(patience)
        return replace(grid_of(self._opened.stream, states, staleness, interval), notice=notice)

    def stale(
        self, interval: Interval, patience: float | None = PATIENCE
    ) -> tuple[dict[str, list[datetime]], str | None]:
        """Return the stale hours of each stage in an interval; arguments and errors as of `grid`.

        Returns:
            The hours, and what a reader should know about them; None if nothing.
        """
        _, staleness, notice = self._now(patience)
        return {stage: of.within(interval) for stage, of in staleness.items()}, notice

    def _now(self, patience: float | None) -> tuple[HourStates, Staleness, str | None]:
        """Return the states of now, the stale hours, and a notice if these are not those of now."""
        with self._lock:
            states, now = self._latest()
        computed = self._computed_stale(now, patience)
        if computed is None:
            return states, {}, "Which hours are stale is still being looked up: none is shown as stale yet."
        late = f"Stale hours are those of {computed.time:%H:%M} UTC." if computed.of != now else None
        return states, computed.staleness, late

    def _latest(self) -> tuple[HourStates, Hashable]:
        """Return the states of now, and what identifies all that stale hours depend on."""
        table = self._opened.tables.pin("ledger")
        if table is None:
            raise self._opened.nothing()
        if self._states is None or self._states[0] != table.revision:
            names = ", ".join(f'"{name}"' for name in COLUMNS)
            self._states = table.revision, HourStates(table.read(f"SELECT {names} FROM t"))
        return self._states[1], (table.revision, self._opened.external_revisions())

    def _computed_stale(self, now: Hashable, patience: float | None) -> _Computed | None:
        """Return the stale hours, of now or at most `KEEP` older, or the last ones if these take too long."""
        with self._lock:
            last = self._computed
            kept = patience is not None and last is not None and time.monotonic() - last.at < KEEP
            if last is not None and (last.of == now or kept):
                return last
            of, computing = self._computing or (None, None)
            if computing is None or computing.done() or (patience is None and of != now):
                computing = _WORKER.submit(self._compute, now)
                self._computing = now, computing
        try:
            computing.result(patience)
        except Unfinished:
            return last
        return self._computed

    def _compute(self, of: Hashable) -> None:
        snapshot = self._opened.snapshot()
        staleness = staleness_of(self._opened.stream, snapshot, self._opened.freshness(snapshot))
        self._computed = _Computed(of, staleness, datetime.now(UTC), time.monotonic())
