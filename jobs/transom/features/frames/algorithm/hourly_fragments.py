"""The frames of readings, and their contents hour by hour."""

from dataclasses import dataclass

import numpy as np

from transom.arrays.column_batch import ColumnBatch
from transom.arrays.range_queries import expand_ranges, extreme, first_at_least
from transom.arrays.sorted_index import this_or_next
from transom.core.exact_sums import Bools, Int64s
from transom.features.frames.algorithm.boundaries import FrameBoundaries, FrameRanges


def frames_of(boundaries: FrameBoundaries) -> FrameRanges:
    """Return the frames. The first of each key begins with the first row that may begin one; each other with
    the first such row after the previous frame."""
    opening, size = this_or_next(boundaries.rows.opens), boundaries.size
    if boundaries.is_static:
        heads = np.flatnonzero(boundaries.static_cuts | boundaries.start_cuts)
        start, stop = opening[heads], np.append(heads[1:], size)
        start, stop = start[start < stop], stop[start < stop]
        condition_met = np.append(boundaries.start_cuts & ~boundaries.static_cuts, False)[stop]
        return FrameRanges(start, stop, boundaries.rows.ends[stop - 1], condition_met)
    # Follow the chain of frames of every key by doubling: one, two, four, eight frames at a step.
    frames, opening, count = boundaries.frames, np.append(opening, size), 0
    begins = np.zeros(size + 1, dtype=bool)
    begins[opening[np.flatnonzero(boundaries.new_key)]] = True
    further = np.append(opening[frames.stop], size)
    while count < (count := int(np.count_nonzero(begins))):
        begins[further[np.flatnonzero(begins)]] = True
        further = further[further]
    return frames.take(np.flatnonzero(begins[:-1]))


def not_contained(stop: Int64s, minimal: bool) -> Bools:
    """Return which frames lie inside no other one; for minimal ones, which contain no other one.

    Args:
        stop: of frames, ascending by their start, no two of which are equal.
    """
    if minimal:
        nearest = np.minimum.accumulate(stop[::-1])[::-1]
        return np.append(stop[:-1] < nearest[1:], True)[: len(stop)]
    return np.append(True, stop[1:] > np.maximum.accumulate(stop)[:-1])[: len(stop)]


@dataclass(frozen=True)
class HourlyFragments(ColumnBatch):
    """Frames cut at hours. The figures are those of the frame up to the piece's end.

    Attributes:
        frame: the frame's number.
        hour: the start of the hour.
        last: the piece's last row.
        new: the number of readings in the piece itself.
    """

    frame: Int64s
    hour: Int64s
    last: Int64s
    new: Int64s
    records: Int64s
    missing: Int64s
    values: Int64s
    total: Int64s
    low: Int64s
    high: Int64s
    peak: Int64s

    @classmethod
    def whole(cls, boundaries: FrameBoundaries, frames: FrameRanges, hour: int) -> "HourlyFragments":
        """Return frames as one piece each, all in one hour. Frames may overlap."""
        rows, start, stop = boundaries.rows, frames.start, frames.stop

        def total(column: Int64s, first: Int64s) -> Int64s:
            sums: Int64s = np.append(0, np.cumsum(column))
            return sums[stop] - sums[first]

        records, high = total(rows.records, start), extreme(rows.high, start, stop, np.maximum)
        return cls(
            frame=np.arange(len(start)),
            hour=np.full(len(start), hour),
            last=stop - 1,
            new=records,
            records=records,
            missing=total(boundaries.missed, start + 1),
            values=total(rows.values, start),
            total=total(rows.total, start),
            low=extreme(rows.low, start, stop, np.minimum),
            high=high,
            peak=rows.peak[first_at_least(rows.high, start, stop, high)],
        )

    @classmethod
    def of(cls, boundaries: FrameBoundaries, frames: FrameRanges) -> "HourlyFragments":
        """Return all pieces of frames, which do not overlap."""
        if not len(frames.start):
            return cls.none()
        rows = boundaries.rows
        frame, row = expand_ranges(frames.start, frames.stop)
        hour = rows.hour[row]
        begins = np.append(True, (np.diff(frame) != 0) | (np.diff(hour) != 0))
        piece, begin = np.cumsum(begins) - 1, np.flatnonzero(begins)
        missed = np.where(np.diff(frame, prepend=-1) != 0, 0, boundaries.missed[row]) + rows.missing[row]
        low, high = np.minimum.reduceat(rows.low[row], begin), np.maximum.reduceat(rows.high[row], begin)
        top = np.flatnonzero(rows.high[row] == high[piece])[::-1]
        peak = np.empty(len(begin), dtype=np.int64)
        # Backwards, so that the first one is written last.
        peak[piece[top]] = rows.peak[row[top]]
        frame = frame[begin]
        highest = _running(high, frame)
        records, missing, values, total = (
            grouped_cumsum(frame, np.add.reduceat(column, begin))
            for column in (rows.records[row], missed, rows.values[row], rows.total[row])
        )
        return cls(
            frame=frame,
            hour=hour[begin],
            last=row[np.append(begin[1:], len(row)) - 1],
            new=np.add.reduceat(rows.own[row].astype(np.int64), begin),
            records=records,
            missing=missing,
            values=values,
            total=total,
            low=low[_running(-low, frame)],
            high=high[highest],
            peak=peak[highest],
        )


def grouped_cumsum(group: Int64s, amounts: Int64s) -> Int64s:
    """Return running sums that restart with each group.

    Args:
        group: of each amount, ascending.
    """
    sums = np.cumsum(amounts)
    first = np.searchsorted(group, group)
    running: Int64s = sums - (sums - amounts)[first]
    return running


def _running(values: Int64s, group: Int64s) -> Int64s:
    """Return the position of the running maximum of each group; the first one of equal values."""
    order = np.lexsort([-np.arange(len(values)), values])
    rank = np.empty(len(values), dtype=np.int64)
    rank[order] = np.arange(len(values))
    highest = np.maximum.accumulate(group * len(values) + rank) - group * len(values)
    places: Int64s = order[highest]
    return places
