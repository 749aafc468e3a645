"""Names in a file's records: unknown ones, and declared ones that never occur."""

from collections.abc import Iterable
from threading import Lock

from transom.formats.record_format import RecordFormat

MAX_NAMES = 100
"""Maximum number of unknown names of a file, the first ones in sorted order."""
LONGEST_NAME = 200
"""Unknown names are cut to this number of characters."""


class FieldDrift:
    """The names in a file's records so far, independent of order and threads."""

    def __init__(self, layout: RecordFormat, nested: bool = False) -> None:
        """Create it empty. With `nested`, paths lead through objects, whose names count as known."""
        self._columns = {field.name: field.paths for field in layout.fields}
        self.paths = layout.paths
        parts = {path[:at] for path in self.paths for at, letter in enumerate(path) if letter == "."}
        self._known = self.paths | parts if nested else self.paths
        # Zeek's clusters and log shippers add fields of their own: _path, _write_ts, _system_name.
        self._added = "_" if layout.format == "zeek" else None
        self._shown: set[str] = set()
        self._unknown: set[str] = set()
        self._records = False
        self._lock = Lock()

    def show(self, names: Iterable[str], declared: bool = False) -> None:
        """Record the names in some records.

        Args:
            names: the names of fields, and declared paths with a value.
            declared: whether the specification names them, so that none can be unknown.
        """
        with self._lock:
            self._records = True
            for name in names:
                if name in self.paths:
                    self._shown.add(name)
                elif self._added is not None and name.startswith(self._added):
                    continue
                elif not declared and name not in self._known:
                    self._unknown.add(name[:LONGEST_NAME])
            if len(self._unknown) > 10 * MAX_NAMES:
                self._unknown = set(self.unknown)

    def lacking(self, paths: Iterable[str]) -> list[str]:
        """Return the paths that no record has shown so far."""
        return [path for path in paths if path not in self._shown]

    @property
    def any_record(self) -> bool:
        """Whether a record has shown its names."""
        return self._records

    @property
    def unknown(self) -> tuple[str, ...]:
        """Names that no column and no time uses, sorted, at most `MAX_NAMES`."""
        return tuple(sorted(self._unknown)[:MAX_NAMES])

    @property
    def absent(self) -> tuple[str, ...]:
        """Declared columns without a path in any record; empty if there is no record."""
        if not self._records:
            return ()
        return tuple(name for name, paths in self._columns.items() if not self._shown.intersection(paths))
