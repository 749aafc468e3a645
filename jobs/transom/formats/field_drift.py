"""Which names a file's records show: what nothing takes, and what is declared and never there."""

from collections.abc import Iterable
from threading import Lock

from transom.formats.record_format import RecordFormat

MAX_NAMES = 100
"""Unknown names of a file that are kept: the first ones in their order."""
LONGEST_NAME = 200
"""Characters of an unknown name that are kept."""


class FieldDrift:
    """The names that a file's records have shown so far, in whatever order and by whichever thread."""

    def __init__(self, layout: RecordFormat, nested: bool = False) -> None:
        """Nothing yet; `nested` where a path may lead down through objects, whose names are known then."""
        self._columns = {field.name: field.paths for field in layout.fields}
        self.wanted = layout.paths
        parts = {path[:at] for path in self.wanted for at, letter in enumerate(path) if letter == "."}
        self._known = self.wanted | parts if nested else self.wanted
        # Zeek's clusters, and what ships its logs, add fields of their own: _path, _write_ts, _system_name.
        self._added = "_" if layout.format == "zeek" else None
        self._shown: set[str] = set()
        self._unknown: set[str] = set()
        self._records = False
        self._lock = Lock()

    def show(self, names: Iterable[str], declared: bool = False) -> None:
        """Notes the names that some records show.

        Args:
            names: of the fields; of wanted paths also, as far as records have something there.
            declared: whether the specification names them, so that none of them can be unknown.
        """
        with self._lock:
            self._records = True
            for name in names:
                if name in self.wanted:
                    self._shown.add(name)
                elif self._added is not None and name.startswith(self._added):
                    continue
                elif not declared and name not in self._known:
                    self._unknown.add(name[:LONGEST_NAME])
            if len(self._unknown) > 10 * MAX_NAMES:
                self._unknown = set(self.unknown)

    def lacking(self, paths: Iterable[str]) -> list[str]:
        """Those of some paths that no record has shown yet."""
        return [path for path in paths if path not in self._shown]

    @property
    def any_record(self) -> bool:
        """Whether a record has shown its names."""
        return self._records

    @property
    def unknown(self) -> tuple[str, ...]:
        """Names that no column and no time takes, in their order, at most `MAX_NAMES`."""
        return tuple(sorted(self._unknown)[:MAX_NAMES])

    @property
    def absent(self) -> tuple[str, ...]:
        """Declared columns of which no record shows any path; none where there is no record."""
        if not self._records:
            return ()
        return tuple(name for name, paths in self._columns.items() if not self._shown.intersection(paths))
