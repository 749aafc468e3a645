"""A stream that is open for views: one read-only ledger for all of them. No Spark."""

import threading
from collections.abc import Callable, Mapping
from datetime import datetime
from os import PathLike
from typing import TypeVar

from transom.api import read
from transom.core.intervals import Interval
from transom.engine.selection import Selection
from transom.ledger.snapshot import LedgerSnapshot
from transom.stream import Stream

T = TypeVar("T")


class NothingToView(LookupError):
    """No run of the stream is in the lake."""


class OpenStream:
    """The results of a stream, opened once for many views; safe for several threads.

    Args:
        lake: the folder or address with the tables of streams.
        stream: the stream, or the path of its file.

    Attributes:
        stream: the stream.
        results: its results.

    Raises:
        NothingToView: no run of the stream is in the lake.
        SpecificationError: the stream file is invalid.
    """

    def __init__(self, lake: str | PathLike[str], stream: str | PathLike[str] | Stream) -> None:
        self.results = read(lake, stream)
        self.stream = self.results.stream
        self._lock = threading.Lock()

    def snapshot(self) -> LedgerSnapshot:
        """Return the latest state of the ledger, with the external tables of the stream."""
        raise NotImplementedError

    def notices(self) -> list[str]:
        """Return what a reader should know about every page of the stream now, such as a missing table."""
        raise NotImplementedError

    def interval_of(self, start: datetime | None, end: datetime | None) -> tuple[Interval, list[str]]:
        """Return the hours of a view, and notices if they are not those that were asked for.

        Args:
            start: the first hour. Default: 31 days before the end.
            end: the end of the hours, exclusive. Default: the end of the last requested hour.

        Raises:
            NothingToView: no run has requested an hour.
            ValueError: a time is not on the hour, or the start is not before the end.
        """
        raise NotImplementedError

    def selection(self, interval: Interval, key: Mapping[str, str] | None = None, page: int = 1) -> Selection:
        """Return the rows of some hours and a key, in the present state of the lake.

        Args:
            interval: the hours.
            key: the text of each column of a key. Default: all keys.
            page: the page of each table, from 1.
        """
        raise NotImplementedError

    def consistent(
        self,
        interval: Interval,
        key: Mapping[str, str],
        page: int,
        view: Callable[[Selection], T],
    ) -> tuple[T, list[str]]:
        """Return a view of one state of the lake; it is read again if a run publishes meanwhile.

        Args:
            interval: the hours.
            key: as of `selection`.
            page: as of `selection`.
            view: reads the view.

        Returns:
            The view, and notices if a run published at every attempt.
        """
        raise NotImplementedError
