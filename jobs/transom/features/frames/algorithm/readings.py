"""Readings of many keys at once, and the state of each key's open frame.

The future of an open frame depends on a few figures only. So the state of a key becomes one row in front of
its readings, as if the open frame were one reading. A cut between two runs is then the same as a cut between
two readings.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from transom.arrays.column_batch import FAR_FUTURE, MISSING, ColumnBatch
from transom.arrays.sorted_index import SortedIndex
from transom.core.exact_sums import Bools, Int64s


@dataclass(frozen=True)
class Readings(ColumnBatch):
    """Columns of `transom.features.frames.algorithm.reference.Reading`, ordered by key and then by time.

    Attributes:
        key: codes, ascending.
        value: `MISSING` for no value.
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
    """The state of keys after their readings: a row per key, or one for each hour of a key.

    Attributes:
        hour: the start of the last hour with a reading.
        last, value, held: time and value of the last reading that is not missing, and whether it satisfied a
            predicate.
        first: the time of the open frame's first reading; `MISSING` if none is open.
        before: the time of the earlier neighbour to which a liberal extent reaches, or `MISSING`.
        records, missing, values, total, low, high, peak: of the open frame: the numbers of its readings, of
            missing ones between them and of values; the values' sum, minimum and maximum; and the time of the
            first maximum.
        fragments: the number of partial frames reported so far.
        nulls, first_null, last_null: the number of null readings since then, and the times of the first and
            the last.
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
    """Null readings between two moments: their number, and the times of the first and the last."""

    count: Int64s
    first: Int64s
    last: Int64s

    @classmethod
    def of(cls, nulls: SortedIndex, key: Int64s, after: Int64s, before: Int64s) -> "Nulls":
        """Return those of each key between two moments, both exclusive."""
        if not len(nulls.time):
            none = np.full(len(key), MISSING)
            return cls(np.zeros(len(key), dtype=np.int64), none, none)
        start, stop = nulls.first_after(key, after), nulls.first_after(key, before - 1)
        nonempty = start < stop
        first, last = (nulls.time[np.where(nonempty, at, 0)] for at in (start, stop - 1))
        return cls(stop - start, np.where(nonempty, first, MISSING), np.where(nonempty, last, MISSING))

    def after(self, earlier: "Nulls") -> "Nulls":
        """Return these together with earlier ones."""
        first = np.where(earlier.count > 0, earlier.first, self.first)
        return Nulls(earlier.count + self.count, first, np.where(self.count > 0, self.last, earlier.last))


@dataclass(frozen=True)
class ReadingRows(ColumnBatch):
    """The readings of each key after one row for its state. None is missing, unless missing ones may begin a
    frame.

    Attributes:
        own: whether a row is a reading.
        key, time, value: of the reading; in a state's row, of the last one.
        heard: the time of the last reading that is not missing.
        holds, ends: whether the conditions hold.
        opens: whether the row begins a frame if none is open.
        starts: the same by the condition of a start alone.
        first, before, records, missing, values, total, low, high, peak, fragments: of the open frame; in a
            reading's row, of a frame with this reading alone.
        nulls, first_null, last_null: of the state.
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
    def of(cls, state: OpenFrameState, latest: Int64s, readings: Readings, opens: Bools) -> "ReadingRows":
        """Return the states of keys, each followed by the key's readings.

        Args:
            state: at most one row per key, earlier than its readings.
            latest: the last turn of each state.
            opens: whether a frame may begin with a reading.
        """
        at, count = np.searchsorted(readings.key, state.key), len(readings.key)
        zeros, none = (np.full(count, value, dtype=np.int64) for value in (0, MISSING))
        missing = readings.missing.astype(np.int64)
        valued, all_false = readings.value != MISSING, np.zeros(len(state.key), dtype=bool)

        def both(of_state: Any, of_readings: Any) -> Any:
            return np.insert(of_readings, at, of_state) if len(at) else of_readings

        # Before its first reading a key misses nothing.
        present = both(~all_false, ~readings.missing)
        last = np.maximum.accumulate(np.where(present, np.arange(len(present)), 0))
        return cls(
            own=both(all_false, np.ones(count, dtype=bool)),
            key=both(state.key, readings.key),
            time=both(latest, readings.time),
            heard=both(state.last, readings.time)[last],
            value=both(state.value, readings.value),
            holds=both(state.held, readings.holds),
            opens=both(state.first != MISSING, opens & readings.starts),
            starts=both(all_false, readings.starts),
            ends=both(all_false, readings.ends),
            first=both(state.first, readings.time),
            before=both(state.before, none),
            records=both(state.records, 1 - missing),
            missing=both(state.missing, missing),
            values=both(state.values, valued.astype(np.int64)),
            total=both(state.total, np.where(valued, readings.value, 0)),
            low=both(state.low, np.where(valued, readings.value, FAR_FUTURE)),
            high=both(state.high, readings.value),
            peak=both(state.peak, np.where(valued, readings.time, MISSING)),
            fragments=both(state.fragments, zeros),
            nulls=both(state.nulls, zeros),
            first_null=both(state.first_null, none),
            last_null=both(state.last_null, none),
        )

    @property
    def open_state(self) -> Nulls:
        """The null readings of the state."""
        return Nulls(self.nulls, self.first_null, self.last_null)
