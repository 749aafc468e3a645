"""Readings of many keys at once, and what an open frame of each comes down to.

All that a frame's future depends on is a few figures: so what earlier readings have left of a key is one row
in front of its own, which stands for the open frame as if that were one reading. Whatever is cut between two
runs is no different from what is cut between two readings.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from transom.arrays.column_batch import FAR_FUTURE, MISSING, ColumnBatch
from transom.arrays.sorted_index import SortedIndex
from transom.core.exact_sums import Bools, Int64s


@dataclass(frozen=True)
class Readings(ColumnBatch):
    """As `transom.features.frames.algorithm.reference.Reading` has it, by key and then by time.

    Attributes:
        key: codes, ascending.
        value: `MISSING` where there is none.
    """

    key: Int64s
    time: Int64s
    value: Int64s
    missing: Bools
    holds: Bools
    starts: Bools
    ends: Bools


@dataclass(frozen=True)
class OpenFrameState(ColumnBatch):
    """What the readings of keys have left: a row a key, or one for each hour of a key.

    Attributes:
        hour: the last one with a reading, by where it begins.
        last, value, held: time and value of the last reading that is not missing, and whether it satisfied a
            predicate.
        first: the time of the open frame's first reading; `MISSING` where none is open.
        before: the time of its neighbour to which a liberal extent reaches, or `MISSING`.
        records, missing, values, total, low, high, peak: of the open frame: its readings, what is missing
            between them, the values that there are, their sum, the least and the largest of them, and when
            the largest was first read.
        fragments: how many partial frames have been told of it.
        nulls, first_null, last_null: how many null readings have come since, and when.
    """

    key: Int64s
    hour: Int64s
    last: Int64s
    value: Int64s
    held: Bools
    first: Int64s
    before: Int64s
    records: Int64s
    missing: Int64s
    values: Int64s
    total: Int64s
    low: Int64s
    high: Int64s
    peak: Int64s
    fragments: Int64s
    nulls: Int64s
    first_null: Int64s
    last_null: Int64s


@dataclass(frozen=True)
class Nulls:
    """Null readings that lie between two moments: how many, and when the first and the last of them came."""

    count: Int64s
    first: Int64s
    last: Int64s

    @classmethod
    def of(cls, nulls: SortedIndex, key: Int64s, after: Int64s, before: Int64s) -> "Nulls":
        """Of each key and two moments."""
        if not len(nulls.time):
            none = np.full(len(key), MISSING)
            return cls(np.zeros(len(key), dtype=np.int64), none, none)
        start, stop = nulls.first_after(key, after), nulls.first_after(key, before - 1)
        there = start < stop
        first, last = (nulls.time[np.where(there, at, 0)] for at in (start, stop - 1))
        return cls(stop - start, np.where(there, first, MISSING), np.where(there, last, MISSING))

    def after(self, earlier: "Nulls") -> "Nulls":
        """With others that came before them."""
        first = np.where(earlier.count > 0, earlier.first, self.first)
        return Nulls(earlier.count + self.count, first, np.where(self.count > 0, self.last, earlier.last))


@dataclass(frozen=True)
class ReadingRows(ColumnBatch):
    """Readings, each key's behind what was left of it, which is one row. None is missing, unless missing ones
    may begin a frame.

    Attributes:
        own: whether a row is a reading.
        key, time, value: as of readings; of what was left, of the last one.
        heard: when the last reading was that is not missing.
        holds, ends: what the conditions say.
        opens: whether a frame begins with the row, if none is open.
        starts: whether a frame would, by the condition of a start alone.
        first, before, records, missing, values, total, low, high, peak, fragments: as of an open frame; of a
            reading, as of a frame that has nothing else.
        nulls, first_null, last_null: of what was left.
    """

    own: Bools
    key: Int64s
    time: Int64s
    heard: Int64s
    value: Int64s
    holds: Bools
    opens: Bools
    starts: Bools
    ends: Bools
    first: Int64s
    before: Int64s
    records: Int64s
    missing: Int64s
    values: Int64s
    total: Int64s
    low: Int64s
    high: Int64s
    peak: Int64s
    fragments: Int64s
    nulls: Int64s
    first_null: Int64s
    last_null: Int64s

    @classmethod
    def of(cls, left: OpenFrameState, latest: Int64s, readings: Readings, opens: Bools) -> "ReadingRows":
        """What was left of keys, and their readings behind it.

        Args:
            left: at most one row a key, before all its readings.
            latest: the last turn of what was left of each.
            opens: whether a frame may begin with a reading.
        """
        at, many = np.searchsorted(readings.key, left.key), len(readings.key)
        zeros, none = (np.full(many, value, dtype=np.int64) for value in (0, MISSING))
        missing = readings.missing.astype(np.int64)
        valued, no = readings.value != MISSING, np.zeros(len(left.key), dtype=bool)

        def both(of_left: Any, of_readings: Any) -> Any:
            return np.insert(of_readings, at, of_left) if len(at) else of_readings

        # Nothing of a key is missing before its first reading.
        there = both(~no, ~readings.missing)
        last = np.maximum.accumulate(np.where(there, np.arange(len(there)), 0))
        return cls(
            own=both(no, np.ones(many, dtype=bool)),
            key=both(left.key, readings.key),
            time=both(latest, readings.time),
            heard=both(left.last, readings.time)[last],
            value=both(left.value, readings.value),
            holds=both(left.held, readings.holds),
            opens=both(left.first != MISSING, opens & readings.starts),
            starts=both(no, readings.starts),
            ends=both(no, readings.ends),
            first=both(left.first, readings.time),
            before=both(left.before, none),
            records=both(left.records, 1 - missing),
            missing=both(left.missing, missing),
            values=both(left.values, valued.astype(np.int64)),
            total=both(left.total, np.where(valued, readings.value, 0)),
            low=both(left.low, np.where(valued, readings.value, FAR_FUTURE)),
            high=both(left.high, readings.value),
            peak=both(left.peak, np.where(valued, readings.time, MISSING)),
            fragments=both(left.fragments, zeros),
            nulls=both(left.nulls, zeros),
            first_null=both(left.first_null, none),
            last_null=both(left.last_null, none),
        )

    @property
    def open_state(self) -> Nulls:
        """The null readings that had come before these."""
        return Nulls(self.nulls, self.first_null, self.last_null)
