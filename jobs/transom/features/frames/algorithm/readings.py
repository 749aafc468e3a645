"""Readings of many keys at once, and the state of each key's open frame.

The end of an open frame depends on a few aggregates of its readings. So the state of a key becomes one row
before its readings, as if the open frame were one reading.
"""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from transom.arrays.column_batch import FAR_FUTURE, MISSING, ColumnBatch
from transom.arrays.range_queries import expand_ranges
from transom.arrays.sorted_index import SortedIndex, sort_by_key_and_time
from transom.core.exact_sums import Bools, Int64s
from transom.core.intervals import HOUR_LENGTH
from transom.features.frames.algorithm.params import FrameSpec


@dataclass(frozen=True)
class Readings(ColumnBatch):
    """Columns of `transom.features.frames.algorithm.reference.Reading`, ordered by key and then by time.

    Attributes:
        key: codes, ascending.
        time: in microseconds, ascending for each key.
        value: in whole units; `MISSING` for no value.
        missing: whether the reading has nothing that the kind can use.
        holds: whether a threshold's predicate holds.
        starts: whether the condition of a start holds.
        ends: whether the condition of an end holds.
    """

    key: Int64s
    time: Int64s
    value: Int64s
    missing: Bools
    holds: Bools
    starts: Bools
    ends: Bools


@dataclass(frozen=True)
class FrameFigures(ColumnBatch):
    """Aggregates of the readings of frames, or of parts of them.

    Attributes:
        records: the number of readings that are not missing.
        missing: the number of missing readings between them.
        values: the number of values.
        total: the sum of the values.
        low: the smallest value; `FAR_FUTURE` if there is none.
        high: the largest value; `MISSING` if there is none.
        peak: the time of the first largest value, or `MISSING`.
    """

    records: Int64s
    missing: Int64s
    values: Int64s
    total: Int64s
    low: Int64s
    high: Int64s
    peak: Int64s

    @property
    def figures(self) -> dict[str, Int64s]:
        """The aggregates by name."""
        return {field.name: getattr(self, field.name) for field in fields(FrameFigures)}


@dataclass(frozen=True)
class Nulls(ColumnBatch):
    """Null readings between two moments.

    Attributes:
        nulls: their number.
        first_null: the time of the first one, or `MISSING`.
        last_null: the time of the last one, or `MISSING`.
    """

    nulls: Int64s
    first_null: Int64s
    last_null: Int64s

    @classmethod
    def between(cls, index: SortedIndex, key: Int64s, after: Int64s, before: Int64s) -> "Nulls":
        """Return the null readings of each key between two moments, both exclusive."""
        start, stop = index.first_after(key, after), index.first_after(key, before - 1)
        nonempty, time = start < stop, np.append(index.time, MISSING)
        return cls(stop - start, *(time[np.where(nonempty, at, -1)] for at in (start, stop - 1)))

    def after(self, earlier: "Nulls") -> "Nulls":
        """Return these together with earlier ones."""
        first = np.where(earlier.nulls > 0, earlier.first_null, self.first_null)
        last = np.where(self.nulls > 0, self.last_null, earlier.last_null)
        return Nulls(earlier.nulls + self.nulls, first, last)


@dataclass(frozen=True)
class OpenFrameState(Nulls, FrameFigures):
    """The state of keys after their readings: a row per key, or one for each hour of a key.

    The aggregates are those of the open frame; the null readings are those since its last reading.

    Attributes:
        key: codes.
        hour: the start of the last hour with a reading.
        last: the time of the last reading that is not missing.
        value: its value.
        held: whether it satisfied the predicate.
        first: the time of the open frame's first reading; `MISSING` if none is open.
        before: the time of the earlier neighbour to which a liberal extent reaches, or `MISSING`.
        fragments: the number of partial frames reported so far.
    """

    key: Int64s
    hour: Int64s
    last: Int64s
    value: Int64s
    held: Bools
    first: Int64s
    before: Int64s
    fragments: Int64s


@dataclass(frozen=True)
class ReadingRows(OpenFrameState):
    """The readings of each key after one row for its state.

    No reading is missing, unless missing ones may begin a frame. The row of a reading is the state of a frame
    with this reading alone.

    Attributes:
        own: whether a row is a reading.
        time: the time of the reading; in a state's row, its last turn.
        opens: whether the row begins a frame if none is open.
        starts: whether the condition of a start holds.
        ends: whether the row ends a frame.
    """

    own: Bools
    time: Int64s
    opens: Bools
    starts: Bools
    ends: Bools

    @classmethod
    def of(cls, framing: FrameSpec, state: OpenFrameState, readings: Readings, opens: Bools) -> "ReadingRows":
        """Return the states of keys, each followed by the key's readings.

        Args:
            state: at most one row per key, earlier than its readings.
            opens: whether a frame may begin with a reading.
        """
        at, time, value = np.searchsorted(readings.key, state.key), readings.time, readings.value
        zeros, none = np.zeros_like(time), np.full(len(time), MISSING)
        missing, valued = readings.missing.astype(np.int64), value != MISSING
        false = np.zeros(len(state.key), dtype=bool)
        of_readings = {
            "key": readings.key,
            "hour": time - time % HOUR_LENGTH,
            "last": time,
            "value": value,
            "held": readings.holds,
            "first": time,
            "records": 1 - missing,
            "missing": missing,
            "values": valued.astype(np.int64),
            "total": np.where(valued, value, 0),
            "low": np.where(valued, value, FAR_FUTURE),
            "high": value,
            "peak": np.where(valued, time, MISSING),
            **dict.fromkeys(("fragments", "nulls"), zeros),
            **dict.fromkeys(("before", "first_null", "last_null"), none),
        }

        def both(of_states: Any, of_readings: Any) -> Any:
            return np.insert(of_readings, at, of_states) if len(at) else of_readings

        columns = {name: both(column, of_readings[name]) for name, column in state.columns().items()}
        # Before its first reading a key misses nothing.
        present = both(~false, ~readings.missing)
        columns["last"] = columns["last"][
            np.maximum.accumulate(np.where(present, np.arange(len(present)), 0))
        ]
        return cls(
            **columns,
            own=both(false, zeros == 0),
            time=both(_latest_turns(framing, state), time),
            opens=both(state.first != MISSING, opens & readings.starts),
            starts=both(false, readings.starts),
            ends=both(false, readings.ends),
        )


def _latest_turns(framing: FrameSpec, state: OpenFrameState) -> Int64s:
    """Return the last turn of each key in the hour of its state, with or without a reading."""
    if not framing.begins:
        return state.last
    turns: Int64s = state.last + (state.hour + HOUR_LENGTH - 1 - state.last) // framing.every * framing.every
    return turns


def with_missing(framing: FrameSpec, state: OpenFrameState, readings: Readings, until: int) -> Readings:
    """Return the readings with the missing ones, for frames that a missing reading may begin.

    A key is known from its first reading until it was silent for `idle`. Each turn that it misses in this
    time is a missing reading. Missing readings are not stored: they follow from the key's last reading.

    Args:
        state: at most one row per key, earlier than its readings.
        readings: none of them missing.
        until: the end of the hours, in microseconds.
    """
    turn, present = (np.append(of, readings.time) for of in (_latest_turns(framing, state), state.last))
    order, key, turn = sort_by_key_and_time(np.append(state.key, readings.key), turn)
    following = np.where(np.diff(key, append=-1) != 0, until, np.roll(turn, -1))
    known = np.minimum(following, present[order] + framing.idle)
    counts = np.maximum((known - 1 - turn) // framing.every, 0)
    row, place = expand_ranges(np.ones_like(counts), counts + 1)
    true, value = np.ones(len(row), dtype=bool), np.full(len(row), MISSING)
    missing = Readings(key[row], turn[row] + place * framing.every, value, true, true, true, ~true)
    both = readings.and_then(missing)
    return both.take(sort_by_key_and_time(both.key, both.time)[0])
