"""Turns without a reading, as rows, for frames that a missing reading may begin.

A key is known from its first reading until it was silent for `idle`. Each turn that it misses in this time
becomes a row, and frames are made of these rows as of readings. The rows are not stored: the state of a key
has the time of its last reading, from which the missed turns follow.
"""

import numpy as np

from transom.arrays.column_batch import MISSING
from transom.arrays.sorted_index import sort_by_key_and_time
from transom.core.exact_sums import Int64s
from transom.core.intervals import HOUR_LENGTH
from transom.features.frames.algorithm.readings import OpenFrameState, Readings
from transom.features.frames.algorithm.reference import FrameSpec


def latest_turns(framing: FrameSpec, state: OpenFrameState) -> Int64s:
    """Return the last turn of each key in the hour of its state, with or without a reading."""
    if not framing.begins:
        return state.last
    turns: Int64s = state.last + (state.hour + HOUR_LENGTH - 1 - state.last) // framing.every * framing.every
    return turns


def with_missing(framing: FrameSpec, state: OpenFrameState, readings: Readings, until: int) -> Readings:
    """Return the readings with the missing ones: those after each reading, and after the state of each key,
    up to the next reading or while the key is known.

    Args:
        state: at most one row per key, earlier than its readings.
        readings: none of them missing.
        until: the end of the hours, in microseconds.
    """
    key, turn = np.append(state.key, readings.key), np.append(latest_turns(framing, state), readings.time)
    heard = np.append(state.last, readings.time)
    order, key, turn = sort_by_key_and_time(key, turn)
    later = np.append((key[1:] == key[:-1]), False)[: len(key)]
    following = np.where(later, np.append(turn[1:], until)[: len(key)], until)
    known = np.minimum(following, heard[order] + framing.idle)
    counts = np.maximum((known - 1 - turn) // framing.every, 0)
    row = np.repeat(np.arange(len(key)), counts)
    place = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts) + 1
    all_true = np.ones(len(row), dtype=bool)
    missing = Readings(
        key=key[row],
        time=turn[row] + place * framing.every,
        value=np.full(len(row), MISSING),
        missing=all_true,
        holds=all_true,
        starts=all_true,
        ends=~all_true,
    )
    both = readings.and_then(missing)
    return both.take(sort_by_key_and_time(both.key, both.time)[0])
