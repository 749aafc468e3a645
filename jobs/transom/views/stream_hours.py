"""The hours of a stream that stays open: states of now, and stale hours that the page does not wait for.

Reading the states takes a fraction of a second. Which hours are stale takes seconds, so it is computed by one
thread for all streams, and kept as long as nothing changes.
"""

import threading
import time
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as Unfinished
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from transom.app.definitions import definitions_of
from transom.core.intervals import Interval
from transom.engine.external import ExternalSources
from transom.ledger.freshness import Freshness
from transom.ledger.hour_states import COLUMNS, HourStates
from transom.ledger.snapshot import LedgerSnapshot
from transom.spec.stream import Stream
from transom.storage.tables import LakeError, TableFolder, query
from transom.views.hours import HourGrid, Staleness, grid_of, staleness_of

KEEP = 60.0
"""How long stale hours are shown after a change, in seconds: a run commits a dozen times."""
PATIENCE = 0.5
"""How long a page waits for stale hours, in seconds."""
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
        stream: the stream. Of another stream file there is another object.
        root: the folder of the stream in the lake.
        snapshot: returns the state of the ledger now, with the external tables.
        freshness: returns the freshness of its partitions.
    """

    def __init__(
        self,
        stream: Stream,
        root: str,
        snapshot: Callable[[], LedgerSnapshot],
        freshness: Callable[[LedgerSnapshot], Freshness],
    ) -> None:
        self._stream, self._snapshot, self._freshness = stream, snapshot, freshness
        self._tables = TableFolder(root)
        fillers = (filler for stage in definitions_of(stream).values() for filler in stage.fillers)
        self._external = ExternalSources(root, fillers)
        self._lock = threading.Lock()
        self._version = -1
        self._states: HourStates | None = None
        self._computed: _Computed | None = None
        self._computing: Future[None] | None = None

    def grid(self, interval: Interval, patience: float | None = PATIENCE) -> HourGrid:
        """Return the state of each stage by hour.

        Args:
            interval: the hours.
            patience: how long to wait for stale hours, in seconds; None waits for those of now. A page of
                several streams takes 0.

        Raises:
            LakeError: the lake cannot be read.
        """
        with self._lock:
            states, now = self._latest()
        computed = self._stale(now, patience)
        grid = grid_of(self._stream, states, computed.staleness if computed else {}, interval)
        if computed is None:
            return replace(grid, notice="Stale hours are being computed and are not shown yet.")
        if computed.of != now:
            return replace(grid, notice=f"Stale hours are those of {computed.time:%H:%M} UTC.")
        return grid

    def _latest(self) -> tuple[HourStates, Hashable]:
        """Return the states of now, and the versions of all tables that stale hours depend on."""
        table = self._tables.open("ledger")
        if self._states is None or table.version() != self._version:
            names = ", ".join(f'"{name}"' for name in COLUMNS)
            self._states = HourStates(query(table, f"SELECT {names} FROM t"))
            self._version = table.version()
        try:
            return self._states, (self._version, self._external.versions())
        except LakeError as error:
            return self._states, (self._version, str(error))

    def _stale(self, now: Hashable, patience: float | None) -> _Computed | None:
        """Return the stale hours, of now or at most `KEEP` older, or the last ones if these take too long."""
        with self._lock:
            last = self._computed
            kept = patience is not None and last is not None and time.monotonic() - last.at < KEEP
            if last is not None and (last.of == now or kept):
                return last
            if patience is None or self._computing is None or self._computing.done():
                self._computing = _WORKER.submit(self._compute, now)
            computing = self._computing
        try:
            computing.result(patience)
        except Unfinished:
            return last
        return self._computed

    def _compute(self, of: Hashable) -> None:
        snapshot = self._snapshot()
        staleness = staleness_of(self._stream, snapshot, self._freshness(snapshot))
        self._computed = _Computed(of, staleness, datetime.now(UTC), time.monotonic())
