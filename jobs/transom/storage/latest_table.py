"""A table that stays open at its latest version. No Spark."""

import threading
from contextlib import suppress
from typing import NamedTuple

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from transom.storage.filesystem import resolve_filesystem


class Revision(NamedTuple):
    """A version of a table, which differs from the same version of a table that replaced it.

    Attributes:
        version: the version.
        modified: when its commit was written, in nanoseconds since the epoch; None if this is not known.
        size: the size of its commit, in bytes; None if this is not known.
    """

    version: int
    modified: int | None
    size: int | None


class LatestTable:
    """A table at its latest version, opened once; several threads may use it.

    A recreated table is opened again: versions of both have the same numbers, and an update would mix their
    rows. The commits of their logs differ.

    Args:
        uri: the address of the table.

    Attributes:
        uri: the same.
    """

    def __init__(self, uri: str) -> None:
        self.uri = uri
        self._lock = threading.Lock()
        self._opened: tuple[DeltaTable, Revision] | None = None

    def read(self) -> tuple[DeltaTable, Revision]:
        """Return the latest version; a later call may update the same object.

        Raises:
            TableNotFoundError: the table does not exist.
            DeltaError: its log cannot be read.
            OSError: the same.
        """
        with self._lock:
            opened, self._opened = self._opened, None
            if opened is not None:
                # An update takes a tenth of the time of reading the log, a search for a commit far less.
                self._opened = self._if_latest(*opened) or self._updated(*opened)
            if self._opened is None:
                table = DeltaTable(self.uri)
                self._opened = table, self._revision(table)
            return self._opened

    def put(self, table: DeltaTable) -> None:
        """Use a table that the caller has created at the address."""
        with self._lock:
            self._opened = table, self._revision(table)

    def _if_latest(self, table: DeltaTable, known: Revision) -> tuple[DeltaTable, Revision] | None:
        """Return the opened table if no other commit follows its version, which a commit of its own may have
        raised."""
        if known.size is None:
            return None
        commits = self._commits(known.version, table.version() - known.version + 2)
        *_, latest, following = commits
        if commits[0] != known or latest.size is None or following.size is not None:
            return None
        return table, latest

    def _updated(self, table: DeltaTable, known: Revision) -> tuple[DeltaTable, Revision] | None:
        """Update the opened table; return None if it was recreated or cannot be read."""
        with suppress(DeltaError, OSError):
            table.update_incremental()
            latest = self._revision(table)
            # This is last: until now, the log was that of the opened table.
            if known.size is not None and self._commit(known.version) == known:
                return table, latest
        return None

    def _revision(self, table: DeltaTable) -> Revision:
        return self._commit(table.version())

    def _commit(self, version: int) -> Revision:
        return self._commits(version, 1)[0]

    def _commits(self, first: int, count: int) -> list[Revision]:
        """Return the revisions from a version on; without time and size if a commit does not exist."""
        versions = range(first, first + count)
        # A table in a store that only delta-rs can read is opened each time.
        with suppress(pa.ArrowException, OSError):
            system, root = resolve_filesystem(self.uri.rstrip("/"))
            files = system.get_file_info([f"{root}/_delta_log/{version:020}.json" for version in versions])
            found = zip(versions, files, strict=True)
            return [Revision(version, file.mtime_ns, file.size) for version, file in found]
        return [Revision(version, None, None) for version in versions]
