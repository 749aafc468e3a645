"""Progressive Window Widening, record by record (Tolpin, algorithms 1 and 2).

Time is cut into batches; level i has batches of `t_i = 2**i * t`, batch j of it covers `[j*t_i, (j+1)*t_i)`
from the epoch on. Two neighbouring batches are a window, shown to the detector when the later one ends; two
that make one batch of the next level are combined:

    level 0   |   |   |   |   |        windows of 2t, sliding by t
    level 1   |       |       |        windows of 4t, sliding by 2t
    level 2   |               |        ...

So a short pattern is seen soon, and a long one not later than in proportion to its length. Work stays
bounded, as no pattern spans more than `L` records: the window over two batches has shown all that they hold
together, and of the batch that they become only the first L and the last L records can still meet what is
new.

The levels are exactly `ceil(log2(t_max / t)) + 1`: windows of 2d, sliding by d, cover every stretch of at
most d (lemma 1), and the top level's batch is the first that is not shorter than `t_max`.

What is reported once is not remembered but worked out: see `level_of`. The form that is fast is
`transom.features.patterns.algorithm.batches`.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Generic, Protocol, TypeVar


class Timed(Protocol):
    """What has a time."""

    @property
    def time(self) -> int:
        """In microseconds since the epoch."""


R = TypeVar("R", bound=Timed)


@dataclass(frozen=True)
class Widening:
    """How windows widen.

    Attributes:
        batch: `t`, the length of a batch of level 0, in microseconds.
        max_length: `t_max`, how long a pattern takes at most, from its first record to its last, in
            microseconds; no less than `batch`.
        max_records: `L`, how many records a pattern spans at most, those in between counted.
    """

    batch: int
    max_length: int
    max_records: int

    @property
    def levels(self) -> int:
        """`ceil(log2(t_max / t)) + 1`, in whole numbers."""
        return (-(-self.max_length // self.batch) - 1).bit_length() + 1

    def length(self, level: int) -> int:
        """`t_i`, in microseconds."""
        return self.batch << level

    @property
    def top(self) -> int:
        """The length of the longest batches, in microseconds."""
        return self.length(self.levels - 1)

    def end_of(self, level: int, last: int) -> int:
        """When the first window of a level ends that holds a record: `(floor(last / t_i) + 1) * t_i`."""
        return (last // self.length(level) + 1) * self.length(level)

    def level_of(self, first: int, last: int) -> int:
        """The lowest level with a window that holds all from one record to another.

        An instance belongs to the lowest i with `e - 2 * t_i <= first`, where `e` is the end of the window
        that its last record completes: nothing has to be remembered for it to be reported once.

        Args:
            first, last: times; no longer than `max_length` apart.
        """
        held = (i for i in range(self.levels) if self.end_of(i, last) - 2 * self.length(i) <= first)
        return next(held)


Batch = tuple[R, ...]
"""The records of one batch, in order."""


def combine(earlier: Batch[R], later: Batch[R], most: int) -> Batch[R]:
    """The batch of the next level (algorithm 2): of more than `2L` records the first L and the last L."""
    both = earlier + later
    return both[:most] + both[most:][-most:]


@dataclass(frozen=True)
class LevelMatch(Generic[R]):
    """A match, with the first window that shows it.

    Attributes:
        records: the matched ones, in order.
        end: of the window, in microseconds: when it is detected.
    """

    records: tuple[R, ...]
    level: int
    end: int


@dataclass
class Work:
    """What was done.

    Attributes:
        calls: how often the detector was called.
        records_shown: how many records it was shown.
        oversized: batches of level 0 of more than `2L` records.
    """

    calls: int = 0
    records_shown: int = 0
    oversized: int = 0


Detect = Callable[[Sequence[R]], Sequence[tuple[int, ...]]]
"""The black box: of a window's records, the places of those of each match, ascending."""


class KeyWidening(Generic[R]):
    """One key's records, one stretch of time after the other.

    Of what has been it keeps the batch of each level that has ended last: all that windows to come can hold.

    Args:
        begin: of the first stretch, in microseconds; no record is earlier.
        work: where what is done is counted.
    """

    def __init__(self, widening: Widening, detect: Detect[R], begin: int, work: Work | None = None) -> None:
        self.widening, self.detect, self.at = widening, detect, begin
        self.work = Work() if work is None else work
        self.ended: list[Batch[R]] = [()] * widening.levels

    def advance(self, records: Iterable[R], until: int) -> list[LevelMatch[R]]:
        """The matches of the windows that end in the next stretch, by level and time.

        Args:
            records: of the stretch, in their total order.
            until: when it ends, a multiple of `batch`; itself outside.
        """
        found: list[LevelMatch[R]] = []
        of_level_0 = groupby(records, lambda record: record.time // self.widening.batch)
        batches = {number: tuple(some) for number, some in of_level_0}
        self.work.oversized += sum(len(batch) > 2 * self.widening.max_records for batch in batches.values())
        for level in range(self.widening.levels):
            length = self.widening.length(level)
            before, behind = self.at // length - 1, until // length
            if self.ended[level]:
                # Where a part of it has been carried, too, the whole counts.
                batches[before] = self.ended[level]
            for number in sorted({*batches, *(number + 1 for number in batches)}):
                if before < number < behind:
                    found += self._seen(level, number, batches.get(number - 1, ()), batches.get(number, ()))
            self.ended[level] = batches.get(behind - 1, ())
            batches = {
                number: combine(
                    batches.get(2 * number, ()), batches.get(2 * number + 1, ()), self.widening.max_records
                )
                for number in {number // 2 for number in batches}
            }
        self.at = until
        return found

    def _seen(self, level: int, number: int, earlier: Batch[R], later: Batch[R]) -> Iterator[LevelMatch[R]]:
        """The matches that belong to one window.

        None of them lies across what has been cut out, where there can be a match that is none (of `A A B`,
        without the second A): it begins in the earlier batch and ends in the later one, so between its ends
        would be the L records that are left on the nearer side of the cut. One that is real was shown whole
        in a window below.
        """
        widening, work, window = self.widening, self.work, earlier + later
        work.calls += 1
        work.records_shown += len(window)
        start = number * widening.length(level)
        for match in self.detect(window):
            first, last = window[match[0]].time, window[match[-1]].time
            if last - first > widening.max_length or match[-1] - match[0] >= widening.max_records:
                continue
            if last >= start and widening.level_of(first, last) == level:
                records = tuple(window[place] for place in match)
                yield LevelMatch(records, level, start + widening.length(level))


def widen(
    records: Sequence[R], widening: Widening, detect: Detect[R], work: Work | None = None
) -> list[LevelMatch[R]]:
    """Every match of one key, by level and time: those that span at most `most` records and `longest` of
    time.

    Args:
        records: in their total order.
        work: where what is done is counted.
    """
    if not records:
        return []
    run = KeyWidening(widening, detect, records[0].time, work)
    return run.advance(records, widening.end_of(widening.levels - 1, records[-1].time) + widening.top)
