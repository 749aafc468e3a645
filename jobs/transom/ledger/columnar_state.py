"""Nodes of the ledger as Arrow holds them: a Python object is made of those alone that are asked for.

A year of hours is a hundred thousand nodes. Arrow reads them in milliseconds; to make an object of each takes
seconds.
"""

import json
from bisect import bisect_right
from collections.abc import Callable, Collection, Mapping
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transom.core.exact_sums import Bools, Int64s
from transom.core.intervals import moment_of, number_of
from transom.core.partitions import PartitionKey, PartitionState, TableKey
from transom.core.reasons import read
from transom.storage.data_files import hours_of

NAMES = ("stage", "block", "table")
AT_A_TIME = 64
"""Neighbouring hours of a table of which entries are made together."""


class StoredPartitions:
    """The nodes of one version of the ledger.

    Each has a place. Those of a block's table follow each other, in the order of their hours.

    Attributes:
        places: of each block's table.
        hours: the hour at each place, counted from the epoch.

    Args:
        rows: of the table `ledger`.
    """

    def __init__(self, rows: pa.Table) -> None:
        # What reads the files has types of its own for text.
        text = (pa.field(f.name, pa.string() if f.type == pa.string_view() else f.type) for f in rows.schema)
        self._rows = rows = rows.cast(pa.schema(text)).combine_chunks()
        names = [rows[name].combine_chunks().dictionary_encode() for name in NAMES]
        codes = [name.indices.to_numpy() for name in names]
        hours = hours_of(rows["hour"])
        self._order: Int64s = np.lexsort((hours, *codes[::-1]))
        self.hours: Int64s = hours[self._order]
        begins = np.ones(len(hours), dtype=bool)
        begins[1:] = np.logical_or.reduce([np.diff(of[self._order]) != 0 for of in codes])
        self._starts: list[int] = np.flatnonzero(begins).tolist()
        rows_of = self._order[self._starts].tolist()
        self._series: list[TableKey] = [
            tuple(of.dictionary[int(code[row])].as_py() for of, code in zip(names, codes, strict=True))
            for row in rows_of
        ]
        ends = [*self._starts[1:], len(hours)]
        self.places: dict[TableKey, range] = dict(
            zip(self._series, map(range, self._starts, ends), strict=True)
        )
        self._columns: dict[str, pa.Array] = {}
        self._found: dict[TableKey, Mapping[int, int]] = {}
        self._made: dict[int, PartitionState] = {}

    def place(self, node: PartitionKey) -> int | None:
        """Return the place of a node; None where there is no such node."""
        series = (node.stage, node.block, node.table)
        if series not in self._found:
            of = self.places.get(series, range(0))
            self._found[series] = dict(zip(self.hours[of.start : of.stop].tolist(), of, strict=True))
        return self._found[series].get(number_of(node.hour))

    def node(self, place: int) -> PartitionKey:
        """Return the node at a place."""
        return PartitionKey(
            *self._series[bisect_right(self._starts, place) - 1], moment_of(int(self.hours[place]))
        )

    def entry(self, place: int) -> PartitionState:
        """Return the entry at a place."""
        if place not in self._made:
            first = place - place % AT_A_TIME
            rows = self._rows.take(self._order[first : first + AT_A_TIME]).to_pylist()
            self._made.update((first + number, _entry(row)) for number, row in enumerate(rows))
        return self._made[place]

    def column(self, name: str) -> pa.Array:
        """Return a column, in the order of the places."""
        if name not in self._columns:
            self._columns[name] = self._rows[name].combine_chunks().take(self._order)
        return self._columns[name]

    def flags(self, name: str) -> Bools:
        """Return a column of truth values."""
        found: Bools = self.column(name).to_numpy(zero_copy_only=False)
        return found

    def of_tables(self, wanted: Callable[[TableKey], bool]) -> Bools:
        """Return which nodes are of some blocks' tables."""
        found = np.zeros(len(self.hours), dtype=bool)
        for series, of in self.places.items():
            found[of.start : of.stop] = wanted(series)
        return found

    def having(self, statuses: Collection[str]) -> Bools:
        """Return which nodes have one of some statuses."""
        found: Bools = pc.is_in(self.column("status"), pa.array(statuses, pa.string())).to_numpy(
            zero_copy_only=False
        )
        return found

    def by_run(self, run_id: str, chunk: str) -> Bools:
        """Return which nodes are of a run, or of one whose name begins with a text."""
        runs = self.column("run_id")
        of_run = pc.or_(pc.equal(runs, run_id), pc.starts_with(runs, chunk))
        found: Bools = of_run.to_numpy(zero_copy_only=False)
        return found

    @cached_property
    def troubled(self) -> Bools:
        """Which nodes are not published, or lack something."""
        return ~(self.having(["published"]) & self.flags("complete"))

    @cached_property
    def readable(self) -> Bools:
        """Which nodes stand."""
        return self.having(["published", "expired"])

    @cached_property
    def complete(self) -> Bools:
        """Which of these lack nothing."""
        return self.readable & self.flags("complete")


def _entry(row: Mapping[str, Any]) -> PartitionState:
    return PartitionState(
        row["status"],
        row["run_id"],
        row["complete"],
        row["digest"],
        None if row["input_hashes"] is None else _inputs(row["input_hashes"]),
        row["rows"],
        row["reason"],
        row["requested"],
        read(row["reasons"]),
    )


@lru_cache(2**12)
def _inputs(text: str) -> Mapping[str, str]:
    """The inputs of a node; the hours of ingest have the same ones, year after year."""
    inputs: Mapping[str, str] = json.loads(text)
    return inputs
