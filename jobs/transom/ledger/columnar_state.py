"""Partitions of the ledger in Arrow arrays. Only a partition that is read becomes a Python object.

A year of hours has a hundred thousand partitions. Arrow reads them in milliseconds; creating an object for
each takes seconds.
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
from transom.core.partitions import (
    EMPTY_DIGEST,
    READABLE,
    PartitionKey,
    PartitionState,
    TableKey,
    input_hashes_text,
)
from transom.core.reasons import read, write
from transom.ledger.hash_sums import DIGITS, Sums, hash_texts
from transom.storage.data_files import hours_of
from transom.storage.tables import Table

NAMES = ("stage", "block", "table")
AT_A_TIME = 64
"""The number of neighbouring states that are created together."""
DELETED = "forgotten"
"""The status of a row that a commit deletes; no table contains it."""


def state_row(partition: PartitionKey, state: PartitionState | None) -> dict[str, Any]:
    """Return a row of the table `ledger`, of status `DELETED` if the state is None."""
    row = {**vars(partition), **vars(state or PartitionState("published", ""))}
    if state is None:
        row["status"] = DELETED
    elif state.input_hashes is not None:
        row["input_hashes"] = input_hashes_text(state.input_hashes)
    return {**row, "reasons": write(row["reasons"])}


class StoredPartitions:
    """Partitions and their states, sorted by table and hour. The index of a partition is its place.

    Attributes:
        places: the places of each block's table.
        hours: the hour at each place, in hours since the epoch.

    Args:
        rows: rows of the table `ledger`.
    """

    def __init__(self, rows: pa.Table) -> None:
        # DataFusion returns text as string views.
        schema = Table.load("ledger").arrow_schema()
        columns = dict(zip(schema.names, rows.select(schema.names).cast(schema).columns, strict=True))
        names = [columns[name].combine_chunks().dictionary_encode() for name in NAMES]
        codes = [name.indices.to_numpy() for name in names]
        hours = hours_of(columns["hour"])
        order = np.lexsort((hours, *codes[::-1]))
        # A copy of years of hours needs a hundred mebibytes: of one column at a time there are two.
        ordered = [columns.pop(name).combine_chunks().take(order) for name in schema.names]
        self._rows = pa.RecordBatch.from_arrays(ordered, schema=schema)
        self.hours: Int64s = hours[order]
        is_first = np.ones(len(hours), dtype=bool)
        is_first[1:] = np.logical_or.reduce([np.diff(code[order]) != 0 for code in codes])
        self._starts: list[int] = np.flatnonzero(is_first).tolist()
        self._tables: list[TableKey] = [
            tuple(name.dictionary[int(code[row])].as_py() for name, code in zip(names, codes, strict=True))
            for row in order[self._starts].tolist()
        ]
        ranges = map(range, self._starts, [*self._starts[1:], len(hours)])
        self.places: dict[TableKey, range] = dict(zip(self._tables, ranges, strict=True))
        self._places_by_hour: dict[TableKey, Mapping[int, int]] = {}
        self._states: dict[int, PartitionState] = {}
        self._having: dict[frozenset[str], Bools] = {}
        self._hashes: dict[TableKey, tuple[Sums, Bools]] = {}

    @classmethod
    def of(cls, states: Mapping[PartitionKey, PartitionState]) -> "StoredPartitions":
        """Return the given partitions; their states are the same objects."""
        rows = [state_row(*item) for item in states.items()]
        result = cls(pa.Table.from_pylist(rows, schema=Table.load("ledger").arrow_schema()))
        result._states = {place: states[result.partition(place)] for place in range(len(states))}
        return result

    def place(self, partition: PartitionKey) -> int | None:
        """Return the place of a partition; None if there is none."""
        table = partition.series
        if table not in self._places_by_hour:
            places = self.places.get(table, range(0))
            hours = self.hours[places.start : places.stop].tolist()
            self._places_by_hour[table] = dict(zip(hours, places, strict=True))
        return self._places_by_hour[table].get(number_of(partition.hour))

    def partition(self, place: int) -> PartitionKey:
        """Return the partition at a place."""
        table = self._tables[bisect_right(self._starts, place) - 1]
        return PartitionKey(*table, moment_of(int(self.hours[place])))

    def state(self, place: int) -> PartitionState:
        """Return the state at a place."""
        if place not in self._states:
            first = place - place % AT_A_TIME
            rows = self._rows.slice(first, AT_A_TIME).to_pylist()
            self._states.update((first + number, _state(row)) for number, row in enumerate(rows))
        return self._states[place]

    def column(self, name: str) -> pa.Array:
        """Return a column, in the order of the places."""
        return self._rows[name]

    def flags(self, name: str) -> Bools:
        """Return a boolean column."""
        return _bools(self.column(name))

    def of_tables(self, condition: Callable[[TableKey], bool]) -> Bools:
        """Return which partitions belong to tables that meet a condition."""
        result = np.zeros(len(self.hours), dtype=bool)
        for table, places in self.places.items():
            result[places.start : places.stop] = condition(table)
        return result

    def having(self, statuses: Collection[str]) -> Bools:
        """Return which partitions have one of the given statuses; the array is read only."""
        known = frozenset(statuses)
        if known not in self._having:
            # A page needs it once for each stage.
            flags = _bools(pc.is_in(self.column("status"), pa.array(known, pa.string())))
            flags.setflags(write=False)
            self._having[known] = flags
        return self._having[known]

    def by_run(self, run_id: str) -> Bools:
        """Return which partitions a run wrote or is writing, in any of its chunks."""
        runs = self.column("run_id")
        return _bools(pc.or_(pc.equal(runs, run_id), pc.starts_with(runs, f"{run_id} ")))

    @cached_property
    def troubled(self) -> Bools:
        """Which partitions are not published, or incomplete."""
        return ~(self.having(["published"]) & self.flags("complete"))

    @cached_property
    def readable(self) -> Bools:
        """Which partitions later stages may read."""
        return self.having(READABLE)

    @cached_property
    def complete(self) -> Bools:
        """Which partitions are readable and complete."""
        return self.readable & self.flags("complete")

    def complete_hashes(self, table: TableKey) -> tuple[Sums, Bools]:
        """Return the `partition_hash` of each place of a table, and which of them have no rows.

        The hashes of places that are not complete are 0. Hashing years of hours takes most of the time of a
        comparison, so the hashes are kept for later snapshots with the same partitions.
        """
        if table not in self._hashes:
            within = slice(self.places[table].start, self.places[table].stop)
            complete = self.complete[within]
            digests = self.column("digest")[within]
            texts = digests.filter(pa.array(complete)).to_pylist()
            hours, prefix = self.hours[within][complete].tolist(), " ".join(table)
            hashes = np.zeros((len(complete), DIGITS), dtype=np.uint64)
            hashes[complete] = hash_texts(
                f"{prefix} {3600 * hour} {digest} True" for hour, digest in zip(hours, texts, strict=True)
            )
            self._hashes[table] = hashes, _bools(pc.equal(digests, EMPTY_DIGEST))
        return self._hashes[table]


def _bools(array: pa.Array) -> Bools:
    result: Bools = array.to_numpy(zero_copy_only=False)
    return result


def _state(row: Mapping[str, Any]) -> PartitionState:
    values = {name: row[name] for name in PartitionState.__dataclass_fields__}
    if values["input_hashes"] is not None:
        values["input_hashes"] = _inputs(values["input_hashes"])
    return PartitionState(**{**values, "reasons": read(values["reasons"])})


@lru_cache(2**12)
def _inputs(text: str) -> Mapping[str, str]:
    """Parse input hashes; most hours of ingest have equal ones."""
    inputs: Mapping[str, str] = json.loads(text)
    return inputs
