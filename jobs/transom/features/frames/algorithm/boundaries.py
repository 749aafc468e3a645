"""Where frames are cut: for every reading, where a frame that begins with it would end.

The end of a frame depends only on its beginning, so all ends are computed side by side. A frame ends before
the first reading that may not join it, or after the first one that completes it. The kind of frame, the
schedule, limits of length, and conditions of starts and ends each give an end; the nearest counts.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from transom.arrays.column_batch import FAR_FUTURE, MISSING
from transom.arrays.range_queries import first_at_least, first_of_range
from transom.arrays.sorted_index import SortedIndex, this_or_next
from transom.core.exact_sums import MAX_EXACT_SUM, Bools, Int64s
from transom.features.frames.algorithm.readings import Nulls, ReadingRows, Readings
from transom.features.frames.algorithm.reference import (
    Aggregate,
    Boundary,
    Delta,
    FrameSpec,
    Marked,
    Threshold,
    Trend,
)


def opens(framing: FrameSpec, readings: Readings) -> Bools:
    """Return whether the kind lets a frame begin with each reading."""
    kind = framing.kind
    if isinstance(kind, Threshold):
        return readings.holds
    if isinstance(kind, Aggregate) and not kind.minimal:
        threshold = AggregateThreshold(kind)
        ones = np.ones(len(readings.key), dtype=np.int64)
        return threshold.holds(threshold.measured(ones, readings.value, readings.value, readings.value))
    return np.ones(len(readings.key), dtype=bool)


@dataclass(frozen=True)
class AggregateThreshold:
    """An aggregate's condition in whole numbers: the measure is at least `bound`.

    Sums and counts add up. So does `q sum - p count`, for an average that is compared with `p / q`. The
    running maximum only rises and the running minimum only falls: a condition on one holds from some reading
    on, or up to some reading. A condition that bounds from above is negated.
    """

    kind: Aggregate

    @property
    def adds(self) -> bool:
        """Whether the measure of a frame is the sum of its readings' measures."""
        return self.kind.function in ("sum", "count", "avg")

    @property
    def sign(self) -> int:
        """-1 if the condition bounds the measure from above, else 1."""
        return 1 if self.kind.compared in (">", ">=") else -1

    @property
    def is_existential(self) -> bool:
        """Whether a condition on an extreme holds as soon as one reading meets it; else all must meet it."""
        return (self.kind.function == "max") is (self.sign > 0)

    @property
    def bound(self) -> int:
        """The smallest measure that meets the condition."""
        if self.kind.function == "avg":
            return 1 if self.kind.compared in (">", "<") else 0
        threshold = self.sign * self.kind.bound
        strict = self.kind.compared in (">", "<")
        return (
            threshold.numerator // threshold.denominator + 1
            if strict
            else -(-threshold.numerator // threshold.denominator)
        )

    def measured(self, records: Int64s, total: Int64s, low: Int64s, high: Int64s) -> Int64s:
        """Return the measure of readings, or of frames that are one row.

        Raises:
            OverflowError: it does not fit into 62 bits.
        """
        match self.kind.function:
            case "count":
                measure = records
            case "sum":
                measure = total
            case "avg":
                p, q = self.kind.bound.numerator, self.kind.bound.denominator
                _fits(total, q)
                _fits(records, p)
                measure = q * total - p * records
            case "min":
                measure = low
            case "max":
                measure = high
        return self.sign * measure

    def holds(self, measured: Int64s) -> Bools:
        """Return whether the condition holds."""
        satisfied: Bools = measured >= self.bound
        return satisfied


@dataclass(frozen=True)
class Cuts:
    """The end of a frame that begins with each row.

    Attributes:
        stop: the first row after the frame.
        completed: whether its last row completes it, independent of later rows.
        condition_met: whether only the condition of a start ends it at that row.
    """

    stop: Int64s
    completed: Bools
    condition_met: Bools


class FrameBoundaries:
    """Everything that cuts the frames of some rows."""

    def __init__(self, framing: FrameSpec, rows: ReadingRows, nulls: SortedIndex) -> None:
        self.framing, self.rows, self.size = framing, rows, len(rows.key)
        self.index, self.ordered = np.arange(self.size), SortedIndex(rows.key, rows.time)
        self._nulls = nulls

    @cached_property
    def new_key(self) -> Bools:
        """Whether a row is the first of its key."""
        key = self.rows.key
        return np.append(True, key[1:] != key[:-1])[: self.size]

    @cached_property
    def gap(self) -> Int64s:
        """The time of each row since the row before it."""
        return np.diff(self.rows.time, prepend=self.rows.time[:1])

    @cached_property
    def silence(self) -> Int64s:
        """The time since the last reading before each row."""
        return self.rows.time - np.append(self.rows.time[:1], self.rows.heard[:-1])[: self.size]

    @cached_property
    def next_time(self) -> Int64s:
        """The time of the next row of the same key; `FAR_FUTURE` if there is none."""
        late = np.append(self.new_key[1:], True)[: self.size]
        return np.where(late, FAR_FUTURE, np.append(self.rows.time[1:], FAR_FUTURE)[: self.size])

    @cached_property
    def nulls(self) -> Nulls:
        """The null readings between each row and the next one of its key; none with a schedule, where a null
        reading is a missing one."""
        rows = self.rows
        return Nulls.of(self._nulls, rows.key, rows.time, self.next_time).after(rows.open_state)

    @cached_property
    def missed(self) -> Int64s:
        """The number of readings missing between each row and the row before it, of the same key."""
        if self.framing.scheduled:
            return self.gap // self.framing.every - 1
        return np.append(0, self.nulls.count[:-1])[: self.size]

    @cached_property
    def by_place(self) -> Bools:
        """Whether every frame ends before a row, wherever it begins; conditions of starts not included."""
        framing, value = self.framing, self.rows.value
        cut = self.new_key | (self.silence >= framing.idle)
        if framing.missing == "breaks":
            cut |= self.missed > 0
        previous = np.append(value[:1], value[:-1])
        match framing.kind:
            case Threshold():
                cut |= ~(self.rows.holds & np.append(True, self.rows.holds[:-1])[: self.size])
            case Boundary(step):
                _fits(value[value != MISSING], step.denominator)
                denominator, numerator = step.denominator, step.numerator
                cut |= value * denominator // numerator != previous * denominator // numerator
            case Trend(rising):
                cut |= (value <= previous) if rising else (value >= previous)
            case Aggregate(minimal=False) as kind if (
                not AggregateThreshold(kind).adds and not AggregateThreshold(kind).is_existential
            ):
                cut |= ~AggregateThreshold(kind).holds(self._measured)
        cut |= np.append(False, self.rows.ends[:-1])[: self.size]
        return cut

    @cached_property
    def by_start(self) -> Bools:
        """Whether each row starts a frame and ends the open one."""
        if self.framing.when_open == "continue":
            return np.zeros(self.size, dtype=bool)
        return self.rows.starts

    @property
    def only_by_place(self) -> bool:
        """Whether no cut depends on where a frame begins."""
        framing = self.framing
        unbound = framing.max_time is None and framing.max_records is None
        kind = framing.kind
        free = isinstance(kind, Threshold | Boundary | Trend | Marked)
        return unbound and free

    @cached_property
    def ends(self) -> Cuts:
        """The ends for every row."""
        stop = _next(self.by_place)
        completed = self._ended(stop)
        for limit in (self._by_time, self._by_records, self._by_kind):
            earlier, completes = limit(stop)
            completed = np.where(earlier < stop, completes, completed | (completes & (earlier == stop)))
            stop = earlier
        starts = np.maximum(_next(self.by_start), self.index + 1)
        condition_met = starts < stop
        return Cuts(np.minimum(stop, starts), completed & ~condition_met, condition_met)

    def _ended(self, stop: Int64s) -> Bools:
        return self.rows.ends[stop - 1]

    def _by_time(self, stop: Int64s) -> tuple[Int64s, Bools]:
        max_time, completed = self.framing.max_time, np.zeros(self.size, dtype=bool)
        if max_time is None:
            return stop, completed
        late = self.rows.first + max_time - self.framing.every
        return np.minimum(stop, np.maximum(self._first_after(late), self.index + 1)), completed

    def _by_records(self, stop: Int64s) -> tuple[Int64s, Bools]:
        max_records = self.framing.max_records
        if max_records is None:
            return stop, np.zeros(self.size, dtype=bool)
        full = self.index + 1 + np.maximum(max_records - self.rows.records, 0)
        return np.minimum(stop, full), full <= stop

    def _by_kind(self, stop: Int64s) -> tuple[Int64s, Bools]:
        rows, kind = self.rows, self.framing.kind
        if isinstance(kind, Delta):
            cut = first_of_range(rows.low, rows.high, self.index, stop, kind.below)
            return np.maximum(cut, self.index + 1), np.zeros(self.size, dtype=bool)
        if not isinstance(kind, Aggregate):
            return stop, np.zeros(self.size, dtype=bool)
        return (
            self._completing(kind, stop)
            if kind.minimal
            else (self._condition_broken(kind, stop), self._none_completed)
        )

    @property
    def _none_completed(self) -> Bools:
        return np.zeros(self.size, dtype=bool)

    @cached_property
    def _measured(self) -> Int64s:
        assert isinstance(self.framing.kind, Aggregate)
        rows = self.rows
        return AggregateThreshold(self.framing.kind).measured(rows.records, rows.total, rows.low, rows.high)

    @cached_property
    def _added(self) -> tuple[Int64s, Int64s]:
        """The measure of all earlier rows of the key, without and with each row."""
        measured, heads = self._measured, np.flatnonzero(self.new_key)
        if self.size:
            _fits_together(np.add.reduceat(np.abs(measured.astype(np.float64)), heads))
        # Over all keys the sums may wrap around; differences within a key are exact.
        sums = np.cumsum(measured)
        key = np.cumsum(self.new_key) - 1
        upto = sums - (sums - measured)[heads][key]
        return upto - measured, upto

    def _condition_broken(self, kind: Aggregate, stop: Int64s) -> Int64s:
        """Return the first row with which the condition no longer holds."""
        threshold = AggregateThreshold(kind)
        if not threshold.adds:
            return stop  # see `by_place`
        # A sum is below the bound if its negative is above the negative bound.
        preceding, upto = self._added
        return first_at_least(-upto, self.index + 1, stop, -(preceding + threshold.bound) + 1)

    def _completing(self, kind: Aggregate, stop: Int64s) -> tuple[Int64s, Bools]:
        """Return the row after the first one with which the condition holds and the frame is long enough."""
        threshold = AggregateThreshold(kind)
        enough = np.maximum(self._enough, self.index)
        if threshold.adds:
            preceding, upto = self._added
            reached = first_at_least(upto, np.minimum(enough, stop), stop, preceding + threshold.bound)
        else:
            satisfied = threshold.holds(self._measured)
            first = this_or_next(satisfied if threshold.is_existential else ~satisfied)
            reached = (
                np.maximum(enough, first)
                if threshold.is_existential
                else np.where(enough < first, enough, self.size)
            )
        completes: Bools = reached < stop
        return np.where(completes, reached + 1, stop), completes

    @cached_property
    def _enough(self) -> Int64s:
        """The first row with which each frame is long enough."""
        framing, rows = self.framing, self.rows
        earliest = rows.first + framing.min_time - framing.every
        long_enough: Int64s = np.maximum(
            self.index + framing.fewest - rows.records, self._first_after(earliest - 1)
        )
        return long_enough

    def _first_after(self, times: Int64s) -> Int64s:
        return self.ordered.first_after(self.rows.key, times)


def _next(flags: Bools) -> Int64s:
    """Return for each row the first later row with a flag; the number of rows if there is none."""
    return np.append(this_or_next(flags)[1:], len(flags))[: len(flags)]


def _fits(values: Int64s, times: int) -> None:
    largest = max(abs(int(values.max(initial=0))), abs(int(values.min(initial=0))))
    if largest * abs(times) >= MAX_EXACT_SUM:
        raise OverflowError(
            f"sums must stay below 2^62 steps of the column's resolution; got values of up to {largest} "
            f"steps, {times} of them together: a coarser resolution helps"
        )


def _fits_together(magnitudes: npt.NDArray[np.float64]) -> None:
    if (largest := float(magnitudes.max(initial=0))) >= MAX_EXACT_SUM:
        raise OverflowError(
            "sums must stay below 2^62 steps of the column's resolution; got values of one key that come to "
            f"{largest:.3g} steps together: a coarser resolution helps"
        )
