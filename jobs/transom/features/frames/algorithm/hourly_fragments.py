"""The frames of readings, and their contents hour by hour."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from transom.arrays.column_batch import FAR_FUTURE, ColumnBatch
from transom.arrays.range_queries import extreme, first_at_least
from transom.arrays.sorted_index import this_or_next
from transom.core.exact_sums import Bools, Int64s
from transom.core.intervals import HOUR_LENGTH
from transom.features.frames.algorithm.boundaries import FrameBoundaries


class FrameRanges(NamedTuple):
    """Frames, ascending.

    Attributes:
        start: the first row of each.
        stop: the first row after it.
        completed: whether its last row completes it, independent of later rows.
        condition_met: whether only the condition of a start ends it at that row.
    """

    start: Int64s
    stop: Int64s
    completed: Bools
    condition_met: Bools


def frames_of(cutting: FrameBoundaries) -> FrameRanges:
    """Return the frames. The first of each key begins with the first row that may begin one; each other with
    the first such row after the previous frame."""
    return _runs(cutting) if cutting.only_by_place else _chained(cutting)


def _runs(cutting: FrameBoundaries) -> FrameRanges:
    """Return the frames if cuts do not depend on where a frame begins: between two cuts, a frame begins with
    the first row that may."""
    size, cut = cutting.size, cutting.by_place | cutting.by_start
    heads = np.flatnonzero(cut)
    stop = np.append(heads[1:], size)[: len(heads)]
    start = this_or_next(cutting.rows.opens)[heads]
    start, stop = start[start < stop], stop[start < stop]
    condition_met = np.append(cutting.by_start & ~cutting.by_place, False)[stop]
    return FrameRanges(start, stop, cutting.rows.ends[stop - 1], condition_met)


def _chained(cutting: FrameBoundaries) -> FrameRanges:
    """Follow the chain of frames of every key by doubling: one, two, four, eight frames at a step."""
    cuts, opening = cutting.ends, np.append(this_or_next(cutting.rows.opens), cutting.size)
    begins = np.zeros(cutting.size + 1, dtype=bool)
    begins[opening[np.flatnonzero(cutting.new_key)]] = True
    further, count = np.append(opening[cuts.stop], cutting.size), 0
    while count < (count := int(np.count_nonzero(begins))):
        begins[further[np.flatnonzero(begins)]] = True
        further = further[further]
    start = np.flatnonzero(begins[:-1])
    return FrameRanges(start, cuts.stop[start], cuts.completed[start], cuts.condition_met[start])


def frame_of_each_row(cutting: FrameBoundaries) -> FrameRanges:
    """Return the frame of each row that may begin one."""
    cuts, start = cutting.ends, np.flatnonzero(cutting.rows.opens)
    return FrameRanges(start, cuts.stop[start], cuts.completed[start], cuts.condition_met[start])


def not_contained(start: Int64s, stop: Int64s, minimal: bool) -> Bools:
    """Return which frames, ascending, lie inside no other one; for minimal ones, which contain no other
    one."""
    if minimal:
        nearest = np.minimum.accumulate(stop[::-1])[::-1]
        outermost: Bools = stop < np.append(nearest[1:], FAR_FUTURE)[: len(stop)]
    else:
        outermost = stop > np.append(0, np.maximum.accumulate(stop)[:-1])[: len(stop)]
    return outermost


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
    def whole(cls, cutting: FrameBoundaries, frames: FrameRanges, hour: int) -> "HourlyFragments":
        """Return frames as one piece each, all in one hour. Frames may overlap."""
        rows, (start, stop, _, _) = cutting.rows, frames

        def summed(column: Int64s, first: Int64s) -> Int64s:
            sums = np.append(0, np.cumsum(column))
            total: Int64s = sums[stop] - sums[first]
            return total

        records, high = summed(rows.records, start), extreme(rows.high, start, stop, np.maximum)
        top = first_at_least(rows.high, start, stop, high)
        return cls(
            frame=np.arange(len(start)),
            hour=np.full(len(start), hour),
            last=stop - 1,
            new=records,
            records=records,
            missing=summed(cutting.missed, start + 1),
            values=summed(rows.values, start),
            total=summed(rows.total, start),
            low=extreme(rows.low, start, stop, np.minimum),
            high=high,
            peak=rows.peak[top],
        )

    @classmethod
    def of(cls, cutting: FrameBoundaries, frames: FrameRanges) -> "HourlyFragments":
        """Return all pieces of frames."""
        rows = cutting.rows
        lengths = frames.stop - frames.start
        frame_of_row = np.repeat(np.arange(len(lengths)), lengths)
        row = np.arange(len(frame_of_row)) + np.repeat(frames.start - np.cumsum(lengths) + lengths, lengths)
        hour = rows.time[row] // HOUR_LENGTH
        begins = np.append(True, (np.diff(frame_of_row) != 0) | (np.diff(hour) != 0))[: len(row)]
        begin = np.flatnonzero(begins)
        if not len(begin):
            return cls.none()
        frame, last = frame_of_row[begin], row[np.append(begin[1:], len(row)) - 1]
        missed = cutting.missed[row]
        missed[np.cumsum(lengths) - lengths] = 0
        missed += rows.missing[row]
        low, high = np.minimum.reduceat(rows.low[row], begin), np.maximum.reduceat(rows.high[row], begin)
        piece = np.cumsum(begins) - 1
        top = np.flatnonzero(rows.high[row] == high[piece])[::-1]
        peak = np.empty(len(begin), dtype=np.int64)
        # Backwards, so that the first one is written last.
        peak[piece[top]] = rows.peak[row[top]]
        highest = _running(high, frame)
        records, missing, values, total = (
            grouped_cumsum(frame, np.add.reduceat(column, begin))
            for column in (rows.records[row], missed, rows.values[row], rows.total[row])
        )
        return cls(
            frame=frame,
            hour=hour[begin] * HOUR_LENGTH,
            last=last,
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
