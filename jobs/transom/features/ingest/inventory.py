"""What is known of all files, and what lies in the landing folder: a run takes out what it has to do with.

A year of hours is thousands of files, of which a run changes one. They stay in Arrow, and whole columns are
compared with the landing folder. Objects are made of those alone that

- touch an hour near the run, or whose names say one, or that have no hour,
- lie there and are not as they are known, or are known as something else than ingested,
- are gone, where a file holds their content whose name says no time: every run looks at that one,
- hold the content of one of these, under whatever name and in whatever hour.

What a run decides on these depends on no other file: of an hour on the files that touch it, of a content on
those that hold it. For what it touches beyond, it asks.
"""

import inspect
from collections.abc import Collection, Iterable
from datetime import datetime
from functools import cache, cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from transom.core import file_names
from transom.core import path_pattern as paths
from transom.core.hour_sets import HourSet
from transom.core.intervals import UNKNOWN_HOUR, number_of
from transom.features.ingest import file_records as files
from transom.features.ingest import landing
from transom.features.ingest.file_records import (
    OWNS_ROWS,
    FileContent,
    FileRecord,
    ListedFile,
    metadata_changed,
)
from transom.features.ingest.landing import FileNames, Landing
from transom.ledger.staleness import fingerprint
from transom.spec.stream import Stream
from transom.storage.data_files import hours_of

Bools = npt.NDArray[np.bool_]
Int64s = npt.NDArray[np.int64]
RULES, SAYS, UNTIL = "__rules", "__says", "__until"
BESIDE = pa.schema([(RULES, pa.string()), (SAYS, pa.string()), (UNTIL, pa.timestamp("us", "UTC"))])
"""What is kept beside the rows of `files`: what a name says of a file, by which rules, and when the stretch
that it declares ends."""
AS_KNOWN, OTHERWISE, NOT_OURS = "as known", "otherwise", "not the stream's"


class Inventory:
    """The rows of `files`, and the landing folder.

    Attributes:
        known: the rows that have been taken out, by path.
        there: the files of these that are there, and those that are not known, by path.

    Args:
        rows: of `files`, with the columns of `BESIDE`; null where nobody has looked at the name yet.
        shape: what files are read under, but for those of the hours `unlike`.
        rules: of the names, as `names_rules` gives them.
    """

    def __init__(
        self, rows: pa.Table, found: Landing, shape: str, rules: str, unlike: Collection[datetime] = ()
    ) -> None:
        self._rows = rows.combine_chunks()
        self._found = found
        self._taken = np.zeros(rows.num_rows, dtype=bool)
        self.known: dict[str, FileRecord] = {}
        self.there: dict[str, ListedFile] = {}
        self._there, differing = self._compared(shape, rules, unlike)
        self._take(differing)
        ours = set(self._column("path").to_pylist())
        for path in found.files:
            if path not in ours and (file := found.listed(path)) is not None:
                self.there[path] = file

    def near(self, hours: HourSet) -> None:
        """Takes out the files that touch some hours or whose names say one, and those without an hour."""
        first, end = hours.intervals[0].start, hours.intervals[-1].end
        named = pc.and_(pc.less(self._column("hour"), end), pc.greater(self._column(UNTIL), first))
        self._take(self._touching(hours) | (self._hours == number_of(UNKNOWN_HOUR)) | _bools(named))
        timeless = self._there & _bools(self._column(UNTIL).is_null())
        held = self._column("source_id").filter(pa.array(timeless)).drop_null()
        self._take(~self._there & _bools(pc.is_in(self._column("source_id"), held)))

    def alike(self, contents: Iterable[FileContent]) -> None:
        """Takes out the files that hold some contents."""
        contents = list(contents)
        self._take(self._holding({c.source_id for c in contents}, {c.digest for c in contents}))

    def touching(self, hours: Collection[datetime]) -> None:
        """Takes out the files that touch some hours."""
        self._take(self._touching(hours))

    def of_hours(self, hours: Collection[datetime]) -> None:
        """Takes out the files that belong to some hours."""
        self._take(np.isin(self._hours, [number_of(hour) for hour in hours]))

    @property
    def listed(self) -> int:
        """How many files are there."""
        return len(self.there) + int((self._there & ~self._taken).sum())

    @property
    def waiting(self) -> int:
        """How many files wait that have not been taken out."""
        waiting = _bools(pc.equal(self._column("status"), "waiting"))
        return int((waiting & ~self._taken).sum())

    def _compared(self, shape: str, rules: str, unlike: Collection[datetime]) -> tuple[Bools, Bools]:
        """Which files are there, and which of these may be something else than they are known as."""
        names, facts = list(self._found.files), list(self._found.files.values())
        at = pc.index_in(self._column("path"), pa.array(names, pa.string()))
        sizes, modified = (pa.array([fact[n] for fact in facts], pa.int64()) for n in (0, 1))
        same = pc.and_(
            pc.equal(sizes.take(at), self._column("size")),
            pc.equal(modified.take(at), self._column("modified").cast(pa.int64())),
        )
        looked = _bools(pc.equal(self._column(RULES), rules))
        there = _bools(at.is_valid()) & ~(looked & _bools(pc.equal(self._column(SAYS), NOT_OURS)))
        as_known = (
            looked
            & _bools(same)
            & _bools(pc.equal(self._column(SAYS), AS_KNOWN))
            & _bools(pc.equal(self._column("spec_hash"), shape))
            & _bools(pc.is_in(self._column("status"), pa.array(OWNS_ROWS)))
            & ~np.isin(self._hours, [number_of(hour) for hour in unlike])
        )
        return there, there & ~as_known

    def _take(self, wanted: Bools) -> None:
        new = wanted & ~self._taken
        while new.any():
            self._taken |= new
            rows = self._rows.filter(pa.array(new)).drop_columns(BESIDE.names)
            taken = list(map(FileRecord.of_row, rows.to_pylist()))
            for file in taken:
                self.known[file.path] = file
                if (found := self._found.listed(file.path)) is not None:
                    self.there[file.path] = found
            alike = self._holding({file.source_id for file in taken}, {file.content_sha256 for file in taken})
            new = alike & ~self._taken

    def _holding(self, sources: Collection[str | None], contents: Collection[str | None]) -> Bools:
        wanted = (pa.array(filter(None, ids), pa.string()) for ids in (sources, contents))
        of_source, of_content = (
            _bools(pc.is_in(self._column(name), ids))
            for name, ids in zip(("source_id", "content_sha256"), wanted, strict=True)
        )
        return of_source | of_content

    def _touching(self, hours: Iterable[datetime]) -> Bools:
        found = np.zeros(len(self._taken), dtype=bool)
        rows, touched = self._touched
        found[rows[np.isin(touched, [number_of(hour) for hour in hours])]] = True
        return found

    @cached_property
    def _touched(self) -> tuple[Int64s, Int64s]:
        """Rows, and for each an hour that it touches."""
        rows, touched = [np.arange(len(self._taken))], [self._hours]
        for name in ("hours", "pending_hours"):
            lists = self._column(name)
            rows.append(pc.list_parent_indices(lists).to_numpy())
            touched.append(hours_of(lists.flatten()))
        return np.concatenate(rows), np.concatenate(touched)

    @cached_property
    def _hours(self) -> Int64s:
        return hours_of(self._column("hour"))

    def _column(self, name: str) -> pa.Array:
        return self._rows[name].combine_chunks()


def _bools(values: pa.Array) -> Bools:
    """Truth values; what nobody knows is not true."""
    found: Bools = values.fill_null(False).to_numpy(zero_copy_only=False)
    return found


def names_rules(stream: Stream) -> str:
    """A hash of what decides what the names of files say: the stream's file, and the code."""
    by_name = stream.time is not None and stream.time.by_name
    return fingerprint([stream.source.model_dump(mode="json"), by_name, _code()])


@cache
def _code() -> list[str]:
    return [inspect.getsource(module) for module in (paths, file_names, files, landing)]


def with_names(rows: pa.Table, names: FileNames, rules: str) -> pa.Table:
    """Rows of `files` with the columns of `BESIDE`, whether they had any or not."""
    known = rows.drop_columns(BESIDE.names) if RULES in rows.column_names else rows
    beside = [_of_name(FileRecord.of_row(row), names, rules) for row in known.to_pylist()]
    return pa.Table.from_arrays(
        [*known.columns, *pa.Table.from_pylist(beside, schema=BESIDE).columns],
        schema=pa.schema([*known.schema, *BESIDE]),
    )


def _of_name(file: FileRecord, names: FileNames, rules: str) -> dict[str, object]:
    found = names.read(file.path)
    if found is None:
        return {RULES: rules, SAYS: NOT_OURS}
    says = OTHERWISE if metadata_changed(found, file) else AS_KNOWN
    return {RULES: rules, SAYS: says, UNTIL: found.end}
