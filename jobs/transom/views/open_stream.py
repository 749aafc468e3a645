"""A stream that is open for views: one ledger and one set of tables for all of them. No Spark."""

import threading
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from os import PathLike
from typing import Any, TypeVar

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from transom.api import Results, read
from transom.app.definitions import definitions_of
from transom.app.freshness import freshness_of
from transom.core.intervals import HOUR, UNKNOWN_HOUR, Interval
from transom.core.terminal import counted
from transom.engine.external import ExternalSources
from transom.engine.selection import Selection, value_of
from transom.ledger.freshness import Freshness
from transom.ledger.ledger import Ledger
from transom.ledger.snapshot import LedgerSnapshot
from transom.spec.errors import did_you_mean
from transom.storage.latest_table import Revision
from transom.storage.open_tables import OpenTables
from transom.storage.tables import LakeError, Table, one_line_message
from transom.stream import Stream

T = TypeVar("T")
LATEST = timedelta(days=31)
"""The length of the interval if none is given: the last requested hours."""
LONGEST = timedelta(days=3660)
"""The length of an interval above which a view shows only the requested hours."""
ATTEMPTS = 3
"""How often a view is read again if a run publishes meanwhile."""


class NothingToView(LookupError):
    """No run of the stream is in the lake."""


@dataclass(frozen=True)
class _Ledger:
    """The ledger at one time.

    Attributes:
        own: its states; the same object until a run changes them.
        snapshot: the states, with the hours of external tables.
        changed_at: when its newest entry was made; None if this is not known.
        notices: what a reader should know about it.
    """

    own: LedgerSnapshot
    snapshot: LedgerSnapshot
    changed_at: datetime | None
    notices: tuple[str, ...] = ()


@dataclass(frozen=True)
class _OpenResults(Results):
    """Results that share the ledger and the freshness of an open stream."""

    opened: "OpenStream"

    def ledger_snapshot(self) -> LedgerSnapshot:
        return self.opened.snapshot()

    def freshness(self, snapshot: LedgerSnapshot) -> Freshness:
        return self.opened.freshness(snapshot)


class OpenStream:
    """The results of a stream, opened once for many views; safe for several threads.

    Args:
        lake: the folder or address with the tables of streams.
        stream: the stream, or the path of its file.

    Attributes:
        stream: the stream.
        results: its results.
        tables: its tables.
        ledger: its ledger, for all but the states, which `snapshot` returns.

    Raises:
        NothingToView: no run of the stream is in the lake.
        LakeError: the lake cannot be read.
        SpecificationError: the stream file is invalid.
    """

    def __init__(self, lake: str | PathLike[str], stream: str | PathLike[str] | Stream) -> None:
        results = read(lake, stream)
        self.stream, root = results.stream, results.root
        self.results: Results = _OpenResults(root, self.stream, self)
        self.tables = OpenTables(root)
        with self._lake_errors():
            exists = DeltaTable.is_deltatable(f"{root}/ledger")
        if not exists:
            raise self.nothing()
        self.ledger = Ledger(root, create=False)
        self._lock = threading.Lock()
        self._freshness: tuple[LedgerSnapshot, Freshness] | None = None
        stages = definitions_of(self.stream).values()
        steps = (step for stage in stages for step in stage.steps)
        self._declared: dict[str, Table] = {step.table.name: step.table for step in steps}
        self._external = ExternalSources(root, (filler for stage in stages for filler in stage.fillers))
        self._last: tuple[tuple[Revision, ...], _Ledger] | None = None

    def nothing(self) -> NothingToView:
        """Return the error that the lake has no ledger of the stream."""
        return NothingToView(f"no run of {self.stream.name} is in this lake: {self.tables.root}")

    @contextmanager
    def _lake_errors(self) -> Iterator[None]:
        try:
            yield
        except TableNotFoundError:
            raise self.nothing() from None
        except (DeltaError, OSError) as error:
            root = self.tables.root
            raise LakeError(f"lake: {root} cannot be read: {one_line_message(error)}") from error

    def external_revisions(self) -> Hashable:
        """Return what identifies the external tables of now, or the error of one that cannot be read."""
        try:
            return self._external.revisions()
        except LakeError as error:
            return str(error)

    def snapshot(self) -> LedgerSnapshot:
        """Return the latest state of the ledger, with the external tables of the stream.

        Raises:
            LakeError: the lake cannot be read.
        """
        return self._read().snapshot

    def changed_at(self) -> datetime | None:
        """Return when the newest entry of the ledger was made; None if its log no longer has it."""
        return self._read().changed_at

    def notices(self) -> list[str]:
        """Return what a reader should know about every page of the stream now, such as a missing table."""
        return [*self._read().notices]

    def freshness(self, snapshot: LedgerSnapshot) -> Freshness:
        """Return the freshness of the partitions; that of the last snapshot is kept."""
        known = self._freshness
        if known is None or known[0] is not snapshot:
            self._freshness = known = snapshot, freshness_of(self.stream, snapshot)
        return known[1]

    def interval_of(self, start: datetime | None, end: datetime | None) -> tuple[Interval, list[str]]:
        """Return the hours of a view, and notices if they are not those of the arguments.

        Args:
            start: the first hour. Default: 31 days before the end.
            end: the end of the hours, exclusive. Default: the end of the last requested hour.

        Raises:
            NothingToView: no run has requested an hour.
            ValueError: a time is not on the hour, or the start is not before the end.
        """
        unknown = Interval.of_hour(UNKNOWN_HOUR)
        requested = [of for of in self.snapshot().required_hours.intervals if of != unknown]
        if start is not None and end is not None:
            chosen = Interval(start, end)
            if chosen.end - chosen.start <= LONGEST:
                return chosen, []
            within = [of for of in requested if of.start < chosen.end and chosen.start < of.end]
            cut = Interval.of_hour(chosen.start)
            if within:
                cut = Interval(max(within[0].start, chosen.start), min(within[-1].end, chosen.end))
            return cut, [
                f"{chosen} is longer than {counted(LONGEST.days, 'day')}: only {cut} is shown, which has all "
                "its requested hours."
            ]
        if not requested:
            raise NothingToView(f"no run has requested an hour of {self.stream.name}: {self.tables.root}")
        last = requested[-1].end if end is None else end
        if start is not None:
            return self.interval_of(start, last)
        first = max(requested[0].start, last - LATEST)
        chosen = Interval(first if first < last else last - HOUR, last)
        cut_to_latest = first != requested[0].start
        return chosen, ["The last 31 days of the requested hours."] if cut_to_latest and end is None else []

    def key_of(self, key: Mapping[str, str]) -> dict[str, Any]:
        """Return the values of the texts of a key.

        Args:
            key: the text of each column.

        Raises:
            ValueError: the stream has no such column, or the text is no value of it.
        """
        types, values = self.stream.event_types, dict[str, Any]()
        for name, text in key.items():
            if name not in types:
                raise ValueError(
                    f"key: {self.stream.name} has no column {name!r}{did_you_mean(name, sorted(types))}"
                )
            try:
                text.encode()  # no unpaired surrogates, which no table has
                values[name] = None if text == "null" else value_of(types[name], text)
            except (ValueError, LookupError):
                raise ValueError(
                    f"key: {name} must be the text of a value of type {types[name]}; got {text[:100]!r}"
                ) from None
        return values

    def selection(self, interval: Interval, key: Mapping[str, str] | None = None, page: int = 1) -> Selection:
        """Return the rows of some hours and a key, in the present state of the lake.

        Args:
            interval: the hours.
            key: the text of each column of a key. Default: all keys.
            page: the page of each table, from 1.

        Raises:
            ValueError: as of `key_of`.
        """
        return self._selection(self.snapshot(), interval, key or {}, page, {})

    def consistent(
        self,
        interval: Interval,
        key: Mapping[str, str],
        page: int,
        view: Callable[[Selection], T],
        stale: Mapping[str, Collection[datetime]] | None = None,
    ) -> tuple[T, list[str]]:
        """Return a view of one state of the lake; it is read again if a run publishes meanwhile.

        Args:
            interval: the hours.
            key: as of `selection`.
            page: as of `selection`.
            view: reads the view.
            stale: the stale hours of each stage, if they are known.

        Returns:
            The view, and notices, such as that a run writes hours of the interval.

        Raises:
            ValueError: as of `key_of`.
        """
        before = self._read()
        for _ in range(ATTEMPTS):
            result = view(self._selection(before.snapshot, interval, key, page, stale or {}))
            after = self._read()
            if after.own is before.own or _states(before.own, interval) == _states(after.own, interval):
                return result, [*before.notices, *self._writing(after.own, interval)]
            before = after
        note = "A run is publishing hours of this page: its parts may be of different states."
        return result, [*before.notices, note]

    def _writing(self, snapshot: LedgerSnapshot, interval: Interval) -> Iterator[str]:
        """Yield a notice if a run has claimed hours of the interval."""
        writing = {stage: snapshot.hours_having("writing", stage) for stage in self.stream.stages}
        counts = {stage: sum(hour in interval for hour in hours) for stage, hours in writing.items()}
        texts = [f"{counted(count, 'hour')} of {stage}" for stage, count in counts.items() if count]
        if texts:
            what = f"A run is writing {', '.join(texts)}, or was killed"
            yield f"{what}. Results omit these hours until they are published."

    def _selection(
        self,
        snapshot: LedgerSnapshot,
        interval: Interval,
        key: Mapping[str, str],
        page: int,
        stale: Mapping[str, Collection[datetime]],
    ) -> Selection:
        self.key_of(key)
        return Selection(self.tables, self.stream, snapshot, interval, key, page, self._declared, stale)

    def _read(self) -> _Ledger:
        with self._lock:
            with self._lake_errors():
                own = self.ledger.snapshot()
            last = self._last
            is_new = last is None or last[1].own is not own
            changed_at = self.ledger.changed_at() if last is None or is_new else last[1].changed_at
            try:
                revisions = self._external.revisions()
                if last is None or is_new or last[0] != revisions:
                    # Freshness is kept with its snapshot.
                    with_external = self._external.beside(own)
                    self._last = last = revisions, _Ledger(own, with_external, changed_at)
                return last[1]
            except LakeError as error:
                return _Ledger(own, own, changed_at, (f"Waits: {error}.",))


def _states(snapshot: LedgerSnapshot, interval: Interval) -> dict[object, object]:
    """Return what a run changes when it publishes."""
    return {partition: (state.status, state.run_id) for partition, state in snapshot.within(interval)}
