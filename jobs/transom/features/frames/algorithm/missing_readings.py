"""Turns in which keys say nothing, as readings, where a missing reading may begin a frame.

A key is known from its first reading on, until it has been silent for `idle`. Every turn that it misses until
then is a row: frames of many keys are made of these as of any other reading. None is stored; what an hour has
left of a key says when its last reading was, and so which turns it has missed since.
"""

import numpy as np

from transom.arrays.column_batch import MISSING
from transom.arrays.sorted_index import sort_by_key_and_time
from transom.core.exact_sums import Int64s
from transom.core.intervals import HOUR_LENGTH
from transom.features.frames.algorithm.readings import OpenFrameState, Readings
from transom.features.frames.algorithm.reference import FrameSpec


def latest_turns(framing: FrameSpec, left: OpenFrameState) -> Int64s:
    """The last turn of each key in the hour that has left it, whether or not there was a reading in it."""
    if not framing.begins:
        return left.last
    found: Int64s = left.last + (left.hour + HOUR_LENGTH - 1 - left.last) // framing.every * framing.every
    return found


def with_missing(framing: FrameSpec, left: OpenFrameState, readings: Readings, until: int) -> Readings:
    """The readings, and those that are missing: behind each of them, and behind what was left of a key, up to
    the next one or as long as the key is known.

    Args:
        left: a row a key at most, before all its readings.
        readings: of which none is missing.
        until: where the hours end, in microseconds.
    """
    key, turn = np.append(left.key, readings.key), np.append(latest_turns(framing, left), readings.time)
    heard = np.append(left.last, readings.time)
    order, key, turn = sort_by_key_and_time(key, turn)
    later = np.append((key[1:] == key[:-1]), False)[: len(key)]
    following = np.where(later, np.append(turn[1:], until)[: len(key)], until)
    known = np.minimum(following, heard[order] + framing.idle)
    many = np.maximum((known - 1 - turn) // framing.every, 0)
    row = np.repeat(np.arange(len(key)), many)
    place = np.arange(len(row)) - np.repeat(np.cumsum(many) - many, many) + 1
    yes = np.ones(len(row), dtype=bool)
    missing = Readings(
        key=key[row],
        time=turn[row] + place * framing.every,
        value=np.full(len(row), MISSING),
        missing=yes,
        holds=yes,
        starts=yes,
        ends=~yes,
    )
    both = readings.and_then(missing)
    return both.take(sort_by_key_and_time(both.key, both.time)[0])
