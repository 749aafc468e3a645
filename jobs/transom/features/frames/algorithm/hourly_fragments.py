"""Which frames there are among readings, and what is in them hour by hour."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from transom.arrays.batched_search import extreme, first_at_least
from transom.arrays.column_batch import FAR_FUTURE, ColumnBatch
from transom.arrays.sorted_index import this_or_next
from transom.core.exact_sums import Bools, Int64s
from transom.core.intervals import HOUR_LENGTH
from transom.features.frames.algorithm.boundaries import FrameBoundaries


class FrameRanges(NamedTuple):
    """Frames, in order.

    Attributes:
        start: the first row of each.
        stop: the first row behind it.
        completed: whether it is complete with its last row, whatever comes.
        condition_met: whether it is a start that ends it, and nothing else at the same row.
    """

    start: Int64s
    stop: Int64s
    completed: Bools
    condition_met: Bools


def frames_of(cutting: FrameBoundaries) -> FrameRanges:
    """The frames: the first of each key begins with the first row that may begin one, every other with the
    first such row behind the one before."""
    return _runs(cutting) if cutting.only_by_place else _chained(cutting)


def _runs(cutting: FrameBoundaries) -> FrameRanges:
    """Where the place alone says where to cut, a frame begins with the first of the rows
    between two cuts that may."""
    size, cut = cutting.size, cutting.by_place | cutting.by_start
    heads = np.flatnonzero(cut)
    behind = np.append(heads[1:], size)[: len(heads)]
    start = this_or_next(cutting.rows.opens)[heads]
    start, behind = start[start < behind], behind[start < behind]
    met = np.append(cutting.by_start & ~cutting.by_place, False)[behind]
    return FrameRanges(start, behind, cutting.rows.ends[behind - 1], met)


def _chained(cutting: FrameBoundaries) -> FrameRanges:
    """From the first frames of every key on with each step twice as far: one, two, four, eight frames."""
    cuts, opening = cutting.ends, np.append(this_or_next(cutting.rows.opens), cutting.size)
    begins = np.zeros(cutting.size + 1, dtype=bool)
    begins[opening[np.flatnonzero(cutting.new_key)]] = True
    further, found = np.append(opening[cuts.stop], cutting.size), 0
    while found < (found := int(np.count_nonzero(begins))):
        begins[further[np.flatnonzero(begins)]] = True
        further = further[further]
    start = np.flatnonzero(begins[:-1])
    return FrameRanges(start, cuts.stop[start], cuts.completed[start], cuts.condition_met[start])


def every_one(cutting: FrameBoundaries) -> FrameRanges:
    """The frame of each row that may begin one."""
    cuts, start = cutting.ends, np.flatnonzero(cutting.rows.opens)
    return FrameRanges(start, cuts.stop[start], cuts.completed[start], cuts.condition_met[start])


def not_contained(start: Int64s, behind: Int64s, minimal: bool) -> Bools:
    """Whether frames, in order, are inside of no other one; of minimal ones, whether they have none
    inside."""
    if minimal:
        nearest = np.minimum.accumulate(behind[::-1])[::-1]
        found: Bools = behind < np.append(nearest[1:], FAR_FUTURE)[: len(behind)]
    else:
        found = behind > np.append(0, np.maximum.accumulate(behind)[:-1])[: len(behind)]
    return found


@dataclass(frozen=True)
class HourlyFragments(ColumnBatch):
    """Frames, cut at hours; figures are of a frame up to the piece's end.

    Attributes:
        frame: its number.
        hour: by where it begins.
        last: the piece's last row.
        new: how many readings it has itself.
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
    def whole(cls, cutting: FrameBoundaries, found: FrameRanges, hour: int) -> "HourlyFragments":
        """Frames as one piece each, whether or not they overlap; all is of one hour."""
        rows, (start, behind, _, _) = cutting.rows, found

        def summed(column: Int64s, first: Int64s) -> Int64s:
            sums = np.append(0, np.cumsum(column))
            total: Int64s = sums[behind] - sums[first]
            return total

        records, high = summed(rows.records, start), extreme(rows.high, start, behind, np.maximum)
        top = first_at_least(rows.high, start, behind, high)
        return cls(
            frame=np.arange(len(start)),
            hour=np.full(len(start), hour),
            last=behind - 1,
            new=records,
            records=records,
            missing=summed(cutting.missed, start + 1),
            values=summed(rows.values, start),
            total=summed(rows.total, start),
            low=extreme(rows.low, start, behind, np.minimum),
            high=high,
            peak=rows.peak[top],
        )

    @classmethod
    def of(cls, cutting: FrameBoundaries, found: FrameRanges) -> "HourlyFragments":
        """All pieces of some frames."""
        rows = cutting.rows
        many = found.stop - found.start
        of = np.repeat(np.arange(len(many)), many)
        row = np.arange(len(of)) + np.repeat(found.start - np.cumsum(many) + many, many)
        hour = rows.time[row] // HOUR_LENGTH
        begins = np.append(True, (np.diff(of) != 0) | (np.diff(hour) != 0))[: len(row)]
        begin = np.flatnonzero(begins)
        if not len(begin):
            return cls.none()
        frame, last = of[begin], row[np.append(begin[1:], len(row)) - 1]
        missed = cutting.missed[row]
        missed[np.cumsum(many) - many] = 0
        missed += rows.missing[row]
        low, high = np.minimum.reduceat(rows.low[row], begin), np.maximum.reduceat(rows.high[row], begin)
        piece = np.cumsum(begins) - 1
        top = np.flatnonzero(rows.high[row] == high[piece])[::-1]
        peak = np.empty(len(begin), dtype=np.int64)
        # Of several the first one stays, for it is written last.
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
    """Running sums that begin anew with each group.

    Args:
        group: of each amount, ascending.
    """
    sums = np.cumsum(amounts)
    first = np.searchsorted(group, group)
    found: Int64s = sums - (sums - amounts)[first]
    return found


def _running(values: Int64s, group: Int64s) -> Int64s:
    """Where the largest value is of those up to each one, of its group; of equal ones the first."""
    order = np.lexsort([-np.arange(len(values)), values])
    rank = np.empty(len(values), dtype=np.int64)
    rank[order] = np.arange(len(values))
    highest = np.maximum.accumulate(group * len(values) + rank) - group * len(values)
    found: Int64s = order[highest]
    return found
