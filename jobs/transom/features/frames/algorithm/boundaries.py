"""The end of the frame that would begin with each reading, and the contents of frames.

The end of a frame depends only on its beginning, so the ends for all readings are computed at once. A frame
ends before the first reading that may not join it, or after the first one that completes it. The kind of
frame, the schedule, limits of length, and conditions of starts and ends each give an end; the nearest counts.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from transom.arrays.column_batch import FAR_FUTURE, MISSING, ColumnBatch
from transom.arrays.range_queries import expand_ranges, extreme, first_at_least, first_of_range
from transom.arrays.sorted_index import SortedIndex, this_or_next
from transom.core.exact_sums import MAX_EXACT_SUM, Bools, Int64s
from transom.features.frames.algorithm.params import Aggregate, Boundary, Delta, FrameSpec, Threshold, Trend
from transom.features.frames.algorithm.readings import FrameFigures, Nulls, ReadingRows, Readings


def opens(framing: FrameSpec, readings: Readings) -> Bools:
    """Return whether the kind lets a frame begin with each reading."""
    kind, value = framing.kind, readings.value
    if isinstance(kind, Threshold):
        return readings.holds
    if isinstance(kind, Aggregate) and not kind.minimal:
        return measured(kind, np.ones_like(value), value, value, value) >= kind.min_measure
    return np.ones(len(value), dtype=bool)


def measured(kind: Aggregate, records: Int64s, total: Int64s, low: Int64s, high: Int64s) -> Int64s:
    """Return the measure of readings, or of frames that are one row.

    Raises:
        OverflowError: it does not fit into 62 bits.
    """
    if kind.function == "avg":
        p, q = kind.bound.numerator, kind.bound.denominator
        _check_product(total, q)
        _check_product(records, p)
        return kind.sign * (q * total - p * records)
    return kind.sign * {"count": records, "sum": total, "min": low, "max": high}[kind.function]


@dataclass(frozen=True)
class FrameRanges(ColumnBatch):
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


@dataclass(frozen=True)
class HourlyFragments(FrameFigures):
    """Pieces of frames. The aggregates are those of the frame up to the end of the piece.

    Attributes:
        frame: the number of the frame.
        hour: the start of the hour.
        last: the last row of the piece.
        new: the number of readings in the piece itself.
    """

    frame: Int64s
    hour: Int64s
    last: Int64s
    new: Int64s


class FrameBoundaries:
    """Everything that cuts the frames of some rows.

    Args:
        framing: the parameters of the frames.
        rows: at least one row.
        nulls: the null readings.
    """

    def __init__(self, framing: FrameSpec, rows: ReadingRows, nulls: SortedIndex) -> None:
        self.framing, self.rows, self.size = framing, rows, len(rows.key)
        self.index, self.ordered = np.arange(self.size), SortedIndex(rows.key, rows.time)
        self._nulls = nulls

    @cached_property
    def new_key(self) -> Bools:
        """Whether a row is the first of its key."""
        return np.asarray(np.diff(self.rows.key, prepend=-1) != 0)

    @cached_property
    def gap(self) -> Int64s:
        """The time of each row since the row before it."""
        return np.diff(self.rows.time, prepend=self.rows.time[:1])

    @cached_property
    def next_time(self) -> Int64s:
        """The time of the next row of the same key; `FAR_FUTURE` if there is none."""
        return np.append(np.where(self.new_key, FAR_FUTURE, self.rows.time)[1:], FAR_FUTURE)

    @cached_property
    def following_nulls(self) -> Nulls:
        """The null readings between each row and the next one of its key.

        There are none with a schedule, as a null reading is a missing one then.
        """
        rows = self.rows
        return Nulls.between(self._nulls, rows.key, rows.time, self.next_time).after(rows)

    @cached_property
    def missed(self) -> Int64s:
        """The number of readings missing between each row and the row before it, of the same key."""
        if self.framing.scheduled:
            return self.gap // self.framing.every - 1
        return np.append(0, self.following_nulls.nulls[:-1])

    @cached_property
    def static_cuts(self) -> Bools:
        """Whether every frame ends before a row, independent of its beginning and of conditions of starts."""
        framing, rows, value = self.framing, self.rows, self.rows.value
        silence = rows.time - np.append(rows.time[:1], rows.last[:-1])
        cut: Bools = self.new_key | (silence >= framing.idle) | np.append(False, rows.ends[:-1])
        if framing.missing == "breaks":
            cut |= self.missed > 0
        previous = np.append(value[:1], value[:-1])
        match framing.kind:
            case Threshold():
                cut |= ~(rows.held & np.append(True, rows.held[:-1]))
            case Boundary(step):
                p, q = step.numerator, step.denominator
                _check_product(value[value != MISSING], q)
                cut |= value * q // p != previous * q // p
            case Trend(rising):
                cut |= (value <= previous) if rising else (value >= previous)
            case Aggregate(minimal=False) as kind:
                if not kind.adds and not kind.is_existential:
                    cut |= self._measured < kind.min_measure
        return cut

    @cached_property
    def start_cuts(self) -> Bools:
        """Whether each row starts a frame and ends the open one."""
        return self.rows.starts & (self.framing.when_open != "continue")

    @property
    def is_static(self) -> bool:
        """Whether no cut depends on where a frame begins."""
        unlimited = self.framing.max_time is None and self.framing.max_records is None
        return unlimited and not isinstance(self.framing.kind, Delta | Aggregate)

    def disjoint_frames(self) -> FrameRanges:
        """Return the frames that do not overlap.

        The first frame of a key begins with its first row that may begin one. Each later frame begins with
        the first such row after the previous frame. Kinds whose cuts depend on neighbours alone take `O(n)`
        for `n` rows; others follow the chain of frames by doubling, in `O(n log n)`.
        """
        opening, size = this_or_next(self.rows.opens), self.size
        if self.is_static:
            heads = np.flatnonzero(self.static_cuts | self.start_cuts)
            start, stop = opening[heads], np.append(heads[1:], size)
            start, stop = start[start < stop], stop[start < stop]
            condition_met = np.append(self.start_cuts & ~self.static_cuts, False)[stop]
            return FrameRanges(start, stop, self.rows.ends[stop - 1], condition_met)
        # Follow the chain of frames of every key by doubling: one, two, four, eight frames at a step.
        frames, opening, count = self.frames, np.append(opening, size), 0
        begins = np.zeros(size + 1, dtype=bool)
        begins[opening[np.flatnonzero(self.new_key)]] = True
        further = np.append(opening[frames.stop], size)
        while count < (count := int(np.count_nonzero(begins))):
            begins[further[np.flatnonzero(begins)]] = True
            further = further[further]
        return frames.take(np.flatnonzero(begins[:-1]))

    @cached_property
    def frames(self) -> FrameRanges:
        """The frame that begins with each row."""
        framing, rows, following = self.framing, self.rows, self.index + 1
        stop = _next(self.static_cuts)
        completed = rows.ends[stop - 1]
        if framing.max_time is not None:
            late = self._first_after(rows.first + framing.max_time - framing.every)
            late = np.maximum(late, following)
            stop, completed = np.minimum(stop, late), completed & (late >= stop)
        if framing.max_records is not None:
            full = following + np.maximum(framing.max_records - rows.records, 0)
            stop, completed = np.minimum(stop, full), completed | (full <= stop)
        if framing.minimal:
            reached = self._reached(stop)
            stop, completed = np.minimum(stop, reached + 1), completed | (reached < stop)
        else:
            broken = self._broken(stop)
            stop, completed = broken, completed & (broken == stop)
        starts = np.maximum(_next(self.start_cuts), following)
        condition_met = starts < stop
        return FrameRanges(self.index, np.minimum(stop, starts), completed & ~condition_met, condition_met)

    def fragments(self, frames: FrameRanges, hour: int | None) -> HourlyFragments:
        """Return the pieces of frames.

        Args:
            frames: the frames; if they are cut at hours, they must not overlap.
            hour: the hour of all frames, each of which is one piece; None to cut them at hours.
        """
        if not len(frames.start):
            return HourlyFragments.none()
        rows = self.rows
        frame, begin, stop = np.arange(len(frames.start)), frames.start, frames.stop
        if hour is None:
            frame, row = expand_ranges(frames.start, frames.stop)
            cuts = (np.diff(frame, prepend=-1) != 0) | (np.diff(rows.hour[row], prepend=-1) != 0)
            frame, begin = frame[cuts], row[cuts]
            stop = row[np.append(np.flatnonzero(cuts)[1:], len(row)) - 1] + 1
        start = frames.start[frame]

        def total(column: Int64s | Bools, first: Int64s) -> Int64s:
            sums = np.append(0, np.cumsum(column))
            totals: Int64s = sums[stop] - sums[first]
            return totals

        high = extreme(rows.high, start, stop, np.maximum)
        return HourlyFragments(
            frame=frame,
            hour=rows.hour[begin] if hour is None else np.full(len(begin), hour),
            last=stop - 1,
            new=total(rows.own, begin),
            records=total(rows.records, start),
            missing=total(rows.missing, start) + total(self.missed, start + 1),
            values=total(rows.values, start),
            total=total(rows.total, start),
            low=extreme(rows.low, start, stop, np.minimum),
            high=high,
            peak=rows.peak[first_at_least(rows.high, start, stop, high)],
        )

    @cached_property
    def _measured(self) -> Int64s:
        assert isinstance(self.framing.kind, Aggregate)
        rows = self.rows
        return measured(self.framing.kind, rows.records, rows.total, rows.low, rows.high)

    @cached_property
    def _added(self) -> tuple[Int64s, Int64s]:
        """The measure of all earlier rows of the key, without and with each row."""
        measured, heads = self._measured, np.flatnonzero(self.new_key)
        largest = float(np.add.reduceat(np.abs(measured.astype(np.float64)), heads).max())
        if largest >= MAX_EXACT_SUM:
            raise OverflowError(
                "sums must stay below 2^62 steps of the column's resolution; got values of one key whose sum "
                f"is {largest:.3g} steps: a coarser resolution helps"
            )
        # Over all keys the sums may wrap around; differences within a key are exact.
        sums = np.cumsum(measured)
        upto = sums - (sums - measured)[heads][np.cumsum(self.new_key) - 1]
        return upto - measured, upto

    def _broken(self, stop: Int64s) -> Int64s:
        """Return the first row that may not join the frame of each row, at most `stop`."""
        kind, following = self.framing.kind, self.index + 1
        if isinstance(kind, Delta):
            broken = first_of_range(self.rows.low, self.rows.high, self.index, stop, kind.below)
            return np.maximum(broken, following)
        if isinstance(kind, Aggregate) and kind.adds:
            # A sum is below the bound if its negative is above the negative bound.
            preceding, upto = self._added
            return first_at_least(-upto, following, stop, -(preceding + kind.min_measure) + 1)
        return stop

    def _reached(self, stop: Int64s) -> Int64s:
        """Return the first row with which each frame meets its condition and is long enough; at least `stop`
        if there is none."""
        framing, rows, kind = self.framing, self.rows, self.framing.kind
        assert isinstance(kind, Aggregate)
        enough = np.maximum(self.index + framing.required_records - rows.records, self.index)
        enough = np.maximum(enough, self._first_after(rows.first + framing.min_time - framing.every - 1))
        if kind.adds:
            preceding, upto = self._added
            return first_at_least(upto, np.minimum(enough, stop), stop, preceding + kind.min_measure)
        satisfied = self._measured >= kind.min_measure
        if kind.is_existential:
            reached: Int64s = np.maximum(enough, this_or_next(satisfied))
            return reached
        return np.where(enough < this_or_next(~satisfied), enough, self.size)

    def _first_after(self, times: Int64s) -> Int64s:
        return self.ordered.first_after(self.rows.key, times)


def _next(flags: Bools) -> Int64s:
    """Return for each row the first later row with a flag; the number of rows if there is none."""
    return np.append(this_or_next(flags)[1:], len(flags))


def _check_product(values: Int64s, factor: int) -> None:
    largest = max(abs(int(values.max(initial=0))), abs(int(values.min(initial=0))))
    if largest * abs(factor) >= MAX_EXACT_SUM:
        raise OverflowError(
            f"sums must stay below 2^62 steps of the column's resolution; got values of up to {largest} "
            f"steps, {factor} of them together: a coarser resolution helps"
        )
