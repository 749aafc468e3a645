"""All recorded files and the landing folder; a run selects the files that concern it.

A year has thousands of files, and a run may change one. They stay in Arrow, and whole columns are compared
with the landing folder. Only these become objects:

- files that touch an hour near the run, or have such an hour in their names, and files without an hour;
- listed files that changed, or whose status is neither ingested nor duplicate;
- missing files, if a file whose name has no time has the same content: every run checks that one;
- all files with the same content as one of the above.

The decisions of a run depend on no other file. If a run changes hours further away, it selects their files.
"""

import inspect
from collections.abc import Collection, Iterable, Mapping
from copy import copy
from datetime import datetime
from functools import cache, cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transom.core import file_names
from transom.core import path_pattern as paths
from transom.core.exact_sums import Bools, Int64s
from transom.core.hour_sets import HourSet
from transom.core.intervals import UNKNOWN_HOUR, number_of
from transom.features.ingest import file_records as files
from transom.features.ingest import landing
from transom.features.ingest.file_records import OWNS_ROWS, FileContent, FileRecord, ListedFile
from transom.features.ingest.file_selection import metadata_changed
from transom.features.ingest.landing import FileNames, Landing
from transom.ledger.input_hashes import fingerprint
from transom.spec.stream import Stream
from transom.storage.data_files import hours_of

RULES, NAME_STATUS, UNTIL = "__rules", "__says", "__until"
BESIDE = pa.schema([(RULES, pa.string()), (NAME_STATUS, pa.string()), (UNTIL, pa.timestamp("us", "UTC"))])
"""Columns in addition to those of `files`: the hash of the rules for names, whether the name by these rules
agrees with the row, and the end of the interval in the name."""
AS_KNOWN, DIFFERS, NO_MATCH = "as known", "otherwise", "not the stream's"


class Inventory:
    """The rows of `files`, and the landing folder.

    An inventory does not change: each `select_` method returns one in which more files are selected.

    Attributes:
        recorded: the selected rows, by path.
        present: the selected files that are in the landing folder, and all files that are not recorded, by
            path.

    Args:
        rows: the rows of `files` with the columns of `BESIDE`, which are null if a name is not parsed yet.
        landing: the landing folder.
        spec_hash: the hash of the specification by which files are read, except those of `waived_hours`.
        rules: the hash of the rules for names, from `names_rules`.
        waived_hours: the hours with waivers.
    """

    def __init__(
        self,
        rows: pa.Table,
        landing: Landing,
        spec_hash: str,
        rules: str,
        waived_hours: Collection[datetime] = (),
    ) -> None:
        self._rows = rows.combine_chunks()
        self._landing = landing
        paths = set(self._column("path").to_pylist())
        new = ((path, landing.listed(path)) for path in landing.files if path not in paths)
        self.recorded: Mapping[str, FileRecord] = {}
        self.present: Mapping[str, ListedFile] = {path: file for path, file in new if file is not None}
        self._selected = np.zeros(rows.num_rows, dtype=bool)
        self._is_present, changed = self._compare(spec_hash, rules, waived_hours)
        self._selected, self.recorded, self.present = self._with_selected(changed)

    def select_near(self, hours: HourSet) -> "Inventory":
        """Select the files that touch hours or have one of them in their names, and files without an hour."""
        first, end = hours.intervals[0].start, hours.intervals[-1].end
        named = pc.and_(pc.less(self._column("hour"), end), pc.greater(self._column(UNTIL), first))
        near = self._touching(hours) | (self._hours == number_of(UNKNOWN_HOUR)) | _bools(named)
        timeless = self._is_present & _bools(self._column(UNTIL).is_null())
        contents = self._column("source_id").filter(pa.array(timeless)).drop_null()
        return self._select(near | (~self._is_present & self._is_in("source_id", contents)))

    def select_same_content(self, contents: Collection[FileContent]) -> "Inventory":
        """Select the files with one of some contents."""
        return self._select(self._with_content({c.source_id for c in contents}, {c.digest for c in contents}))

    def select_touching(self, hours: Collection[datetime]) -> "Inventory":
        """Select the files that touch hours."""
        return self._select(self._touching(hours))

    def select_files_of_hours(self, hours: Collection[datetime]) -> "Inventory":
        """Select the files whose own hour is one of some hours."""
        return self._select(np.isin(self._hours, _numbers(hours)))

    @property
    def listed(self) -> int:
        """The number of files of the stream in the landing folder."""
        return len(self.present) + int((self._is_present & ~self._selected).sum())

    @property
    def waiting(self) -> int:
        """The number of waiting files that are not selected."""
        return int((self._equals("status", "waiting") & ~self._selected).sum())

    def _compare(self, spec_hash: str, rules: str, waived: Collection[datetime]) -> tuple[Bools, Bools]:
        """Return the listed files, and the listed files that may have changed."""
        names, facts = list(self._landing.files), list(self._landing.files.values())
        at = pc.index_in(self._column("path"), pa.array(names, pa.string()))
        sizes, modified = (pa.array([fact[n] for fact in facts], pa.int64()) for n in (0, 1))
        parsed = self._equals(RULES, rules)
        there = _bools(at.is_valid()) & ~(parsed & self._equals(NAME_STATUS, NO_MATCH))
        as_known = (
            parsed
            & self._equals("size", sizes.take(at))
            & _bools(pc.equal(modified.take(at), self._column("modified").cast(pa.int64())))
            & self._equals(NAME_STATUS, AS_KNOWN)
            & self._equals("spec_hash", spec_hash)
            & self._is_in("status", pa.array(OWNS_ROWS))
            & ~np.isin(self._hours, _numbers(waived))
        )
        return there, there & ~as_known

    def _select(self, files: Bools) -> "Inventory":
        result = copy(self)
        result._selected, result.recorded, result.present = self._with_selected(files)
        return result

    def _with_selected(self, files: Bools) -> tuple[Bools, dict[str, FileRecord], dict[str, ListedFile]]:
        """Return selection, recorded and present with more files, and with all files of their contents."""
        selected, recorded, present = self._selected.copy(), dict(self.recorded), dict(self.present)
        while (new := files & ~selected).any():
            selected |= new
            rows = self._rows.filter(pa.array(new)).drop_columns(BESIDE.names)
            records = list(map(FileRecord.of_row, rows.to_pylist()))
            for record in records:
                recorded[record.path] = record
                if (listed := self._landing.listed(record.path)) is not None:
                    present[record.path] = listed
            sources, contents = ({r.source_id for r in records}, {r.content_sha256 for r in records})
            files = self._with_content(sources, contents)
        return selected, recorded, present

    def _with_content(self, sources: Collection[str | None], contents: Collection[str | None]) -> Bools:
        of_source, of_content = (pa.array(filter(None, ids), pa.string()) for ids in (sources, contents))
        return self._is_in("source_id", of_source) | self._is_in("content_sha256", of_content)

    def _touching(self, hours: Iterable[datetime]) -> Bools:
        touching = np.zeros(self._rows.num_rows, dtype=bool)
        rows, touched = self._touched
        touching[rows[np.isin(touched, _numbers(hours))]] = True
        return touching

    @cached_property
    def _touched(self) -> tuple[Int64s, Int64s]:
        """The pairs of a row's number and an hour that the row touches, as two arrays."""
        rows, touched = [np.arange(self._rows.num_rows)], [self._hours]
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

    def _equals(self, name: str, value: str | pa.Array) -> Bools:
        return _bools(pc.equal(self._column(name), value))

    def _is_in(self, name: str, values: pa.Array) -> Bools:
        return _bools(pc.is_in(self._column(name), values))


def _bools(values: pa.Array) -> Bools:
    """Return a mask; nulls are false."""
    mask: Bools = values.fill_null(False).to_numpy(zero_copy_only=False)
    return mask


def _numbers(hours: Iterable[datetime]) -> list[int]:
    return [number_of(hour) for hour in hours]


def names_rules(stream: Stream) -> str:
    """Return a hash of what determines how names are parsed: the stream file and the code."""
    by_name = stream.time is not None and stream.time.by_name
    return fingerprint([stream.source.model_dump(mode="json"), by_name, _code()])


@cache
def _code() -> list[str]:
    return [inspect.getsource(module) for module in (paths, file_names, files, landing)]


def with_names(rows: pa.Table, names: FileNames, rules: str) -> pa.Table:
    """Return rows of `files` with new columns of `BESIDE`."""
    known = rows.drop_columns(BESIDE.names) if RULES in rows.column_names else rows
    beside = [_of_name(FileRecord.of_row(row), names, rules) for row in known.to_pylist()]
    return pa.Table.from_arrays(
        [*known.columns, *pa.Table.from_pylist(beside, schema=BESIDE).columns],
        schema=pa.schema([*known.schema, *BESIDE]),
    )


def _of_name(file: FileRecord, names: FileNames, rules: str) -> dict[str, object]:
    listed = names.read(file.path)
    if listed is None:
        return {RULES: rules, NAME_STATUS: NO_MATCH}
    status = DIFFERS if metadata_changed(listed, file) else AS_KNOWN
    return {RULES: rules, NAME_STATUS: status, UNTIL: listed.end}
