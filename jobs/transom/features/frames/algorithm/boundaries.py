"""Where frames are cut: of every reading where the frame ends that begins with it, whether one does or not.

What a frame ends with depends on where it begins and on nothing before, so all are looked for side by side. A
frame ends before the first reading that may not join it, and behind the first one that completes it. What
makes these is the kind of frame, the schedule, lengths, and conditions of starts and ends; the nearest
counts.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from transom.arrays.batched_search import first_at_least, first_of_range
from transom.arrays.column_batch import FAR_FUTURE, MISSING
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
    """Whether a frame may begin with a reading, as the kind says."""
    kind = framing.kind
    if isinstance(kind, Threshold):
        return readings.holds
    if isinstance(kind, Aggregate) and not kind.minimal:
        of = AggregateThreshold(kind)
        ones = np.ones(len(readings.key), dtype=np.int64)
        return of.holds(of.measured(ones, readings.value, readings.value, readings.value))
    return np.ones(len(readings.key), dtype=bool)


@dataclass(frozen=True)
class AggregateThreshold:
    """An aggregate's condition in whole numbers: what is measured is `bound` at least.

    Sums and counts add up, and so does `q sum - p count` of an average that is compared with `p / q`. The
    largest one so far only rises, and the smallest only falls: a condition on one is kept up by any reading,
    or broken by any, or there is one that is first to meet it. What is to be small is turned round.
    """

    kind: Aggregate

    @property
    def adds(self) -> bool:
        """Whether what is measured of a frame is the sum of its readings' measures."""
        return self.kind.function in ("sum", "count", "avg")

    @property
    def sign(self) -> int:
        """-1 where what is measured is to be small."""
        return 1 if self.kind.compared in (">", ">=") else -1

    @property
    def is_existential(self) -> bool:
        """Whether an extreme's condition holds as soon as one reading meets it; else all have to."""
        return (self.kind.function == "max") is (self.sign > 0)

    @property
    def bound(self) -> int:
        """What the measure has to come to."""
        if self.kind.function == "avg":
            return 1 if self.kind.compared in (">", "<") else 0
        least = self.sign * self.kind.bound
        strict = self.kind.compared in (">", "<")
        return (
            least.numerator // least.denominator + 1 if strict else -(-least.numerator // least.denominator)
        )

    def measured(self, records: Int64s, total: Int64s, low: Int64s, high: Int64s) -> Int64s:
        """What is measured of readings, or of frames that are one row.

        Raises:
            OverflowError: it does not fit into 62 bits.
        """
        match self.kind.function:
            case "count":
                found = records
            case "sum":
                found = total
            case "avg":
                p, q = self.kind.bound.numerator, self.kind.bound.denominator
                _fits(total, q)
                _fits(records, p)
                found = q * total - p * records
            case "min":
                found = low
            case "max":
                found = high
        return self.sign * found

    def holds(self, measured: Int64s) -> Bools:
        """Whether the condition holds."""
        met: Bools = measured >= self.bound
        return met


@dataclass(frozen=True)
class Cuts:
    """Where the frames end that begin with each row.

    Attributes:
        stop: the first row behind the frame.
        completed: whether it is complete with its last row, whatever comes.
        condition_met: whether it is a start that ends it, and nothing else at the same row.
    """

    stop: Int64s
    completed: Bools
    condition_met: Bools


class FrameBoundaries:
    """All that cuts the frames of some rows."""

    def __init__(self, framing: FrameSpec, rows: ReadingRows, nulls: SortedIndex) -> None:
        self.framing, self.rows, self.size = framing, rows, len(rows.key)
        self.here, self.ordered = np.arange(self.size), SortedIndex(rows.key, rows.time)
        self._nulls = nulls

    @cached_property
    def new_key(self) -> Bools:
        """Whether a row is the first of its key."""
        key = self.rows.key
        return np.append(True, key[1:] != key[:-1])[: self.size]

    @cached_property
    def gap(self) -> Int64s:
        """How long after the one before a row comes."""
        return np.diff(self.rows.time, prepend=self.rows.time[:1])

    @cached_property
    def silence(self) -> Int64s:
        """How long no reading had come when a row does."""
        return self.rows.time - np.append(self.rows.time[:1], self.rows.heard[:-1])[: self.size]

    @cached_property
    def next_time(self) -> Int64s:
        """When the next row of the same key comes; `FAR_FUTURE` where there is none."""
        late = np.append(self.new_key[1:], True)[: self.size]
        return np.where(late, FAR_FUTURE, np.append(self.rows.time[1:], FAR_FUTURE)[: self.size])

    @cached_property
    def nulls(self) -> Nulls:
        """The null readings between each row and the next one of its key; none of a schedule, where these are
        no different from those that have not come."""
        rows = self.rows
        return Nulls.of(self._nulls, rows.key, rows.time, self.next_time).after(rows.open_state)

    @cached_property
    def missed(self) -> Int64s:
        """How many readings are missing between a row and the one before it, of the same key."""
        if self.framing.scheduled:
            return self.gap // self.framing.every - 1
        return np.append(0, self.nulls.count[:-1])[: self.size]

    @cached_property
    def by_place(self) -> Bools:
        """Whether no frame reaches from the row before to a row, wherever it begins; starts left aside."""
        framing, value = self.framing, self.rows.value
        cut = self.new_key | (self.silence >= framing.idle)
        if framing.missing == "breaks":
            cut |= self.missed > 0
        before = np.append(value[:1], value[:-1])
        match framing.kind:
            case Threshold():
                cut |= ~(self.rows.holds & np.append(True, self.rows.holds[:-1])[: self.size])
            case Boundary(step):
                _fits(value[value != MISSING], step.denominator)
                many, step_ = step.denominator, step.numerator
                cut |= value * many // step_ != before * many // step_
            case Trend(rising):
                cut |= (value <= before) if rising else (value >= before)
            case Aggregate(minimal=False) as kind if (
                not AggregateThreshold(kind).adds and not AggregateThreshold(kind).is_existential
            ):
                cut |= ~AggregateThreshold(kind).holds(self._measured)
        cut |= np.append(False, self.rows.ends[:-1])[: self.size]
        return cut

    @cached_property
    def by_start(self) -> Bools:
        """Whether a row starts a frame of its own, and ends what is open."""
        if self.framing.when_open == "continue":
            return np.zeros(self.size, dtype=bool)
        return self.rows.starts

    @property
    def only_by_place(self) -> bool:
        """Whether nothing that cuts depends on where a frame begins."""
        framing = self.framing
        unbound = framing.max_time is None and framing.max_records is None
        kind = framing.kind
        free = isinstance(kind, Threshold | Boundary | Trend | Marked)
        return unbound and free

    @cached_property
    def ends(self) -> Cuts:
        """Of every row."""
        behind = _next(self.by_place)
        completed = self._ended(behind)
        for limit in (self._by_time, self._by_records, self._by_kind):
            earlier, completes = limit(behind)
            completed = np.where(earlier < behind, completes, completed | (completes & (earlier == behind)))
            behind = earlier
        starts = np.maximum(_next(self.by_start), self.here + 1)
        met = starts < behind
        return Cuts(np.minimum(behind, starts), completed & ~met, met)

    def _ended(self, behind: Int64s) -> Bools:
        return self.rows.ends[behind - 1]

    def _by_time(self, behind: Int64s) -> tuple[Int64s, Bools]:
        most, no = self.framing.max_time, np.zeros(self.size, dtype=bool)
        if most is None:
            return behind, no
        late = self.rows.first + most - self.framing.every
        return np.minimum(behind, np.maximum(self._first_after(late), self.here + 1)), no

    def _by_records(self, behind: Int64s) -> tuple[Int64s, Bools]:
        most = self.framing.max_records
        if most is None:
            return behind, np.zeros(self.size, dtype=bool)
        full = self.here + 1 + np.maximum(most - self.rows.records, 0)
        return np.minimum(behind, full), full <= behind

    def _by_kind(self, behind: Int64s) -> tuple[Int64s, Bools]:
        rows, kind = self.rows, self.framing.kind
        if isinstance(kind, Delta):
            found = first_of_range(rows.low, rows.high, self.here, behind, kind.below)
            return np.maximum(found, self.here + 1), np.zeros(self.size, dtype=bool)
        if not isinstance(kind, Aggregate):
            return behind, np.zeros(self.size, dtype=bool)
        return (
            self._completing(kind, behind)
            if kind.minimal
            else (self._condition_broken(kind, behind), self._no)
        )

    @property
    def _no(self) -> Bools:
        return np.zeros(self.size, dtype=bool)

    @cached_property
    def _measured(self) -> Int64s:
        assert isinstance(self.framing.kind, Aggregate)
        rows = self.rows
        return AggregateThreshold(self.framing.kind).measured(rows.records, rows.total, rows.low, rows.high)

    @cached_property
    def _added(self) -> tuple[Int64s, Int64s]:
        """What the rows of its key before each one measure together, and what they do with it."""
        measured, heads = self._measured, np.flatnonzero(self.new_key)
        if self.size:
            _fits_together(np.add.reduceat(np.abs(measured.astype(np.float64)), heads))
        # Over all keys the sums may go round; the difference of two of one key does not.
        sums = np.cumsum(measured)
        key = np.cumsum(self.new_key) - 1
        upto = sums - (sums - measured)[heads][key]
        return upto - measured, upto

    def _condition_broken(self, kind: Aggregate, behind: Int64s) -> Int64s:
        """The first row with which the condition does not hold any more."""
        of = AggregateThreshold(kind)
        if not of.adds:
            return behind  # by place
        # Below the bound is the negative above its negative.
        before, upto = self._added
        return first_at_least(-upto, self.here + 1, behind, -(before + of.bound) + 1)

    def _completing(self, kind: Aggregate, behind: Int64s) -> tuple[Int64s, Bools]:
        """Behind the first row with which the condition holds and the frame is long enough."""
        of = AggregateThreshold(kind)
        enough = np.maximum(self._enough, self.here)
        if of.adds:
            before, upto = self._added
            reached = first_at_least(upto, np.minimum(enough, behind), behind, before + of.bound)
        else:
            met = of.holds(self._measured)
            first = this_or_next(met if of.is_existential else ~met)
            reached = (
                np.maximum(enough, first)
                if of.is_existential
                else np.where(enough < first, enough, self.size)
            )
        completes: Bools = reached < behind
        return np.where(completes, reached + 1, behind), completes

    @cached_property
    def _enough(self) -> Int64s:
        """The first row with which a frame is long enough."""
        framing, rows = self.framing, self.rows
        least = rows.first + framing.min_time - framing.every
        found: Int64s = np.maximum(self.here + framing.fewest - rows.records, self._first_after(least - 1))
        return found

    def _first_after(self, times: Int64s) -> Int64s:
        return self.ordered.first_after(self.rows.key, times)


def _next(flags: Bools) -> Int64s:
    """For each row the first one behind it that has a flag; behind all where there is none."""
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
