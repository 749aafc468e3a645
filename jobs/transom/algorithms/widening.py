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
`transom.algorithms.batches`.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
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
        longest: `t_max`, how long a pattern takes at most, from its first record to its last, in
            microseconds; no less than `batch`.
        most: `L`, how many records a pattern spans at most, those in between counted.
    """

    batch: int
    longest: int
    most: int

    @property
    def levels(self) -> int:
        """`ceil(log2(t_max / t)) + 1`, in whole numbers."""
        return (-(-self.longest // self.batch) - 1).bit_length() + 1

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
            first, last: times; no longer than `longest` apart.
        """
        held = (i for i in range(self.levels) if self.end_of(i, last) - 2 * self.length(i) <= first)
        return next(held)


@dataclass(frozen=True)
class Batch(Generic[R]):
    """The records of one batch, in order, as runs between which some have been cut out."""

    runs: tuple[tuple[R, ...], ...]

    @classmethod
    def of(cls, records: Sequence[R]) -> "Batch[R]":
        """Of all the records of a stretch of time."""
        return cls((tuple(records),) if records else ())

    @property
    def records(self) -> tuple[R, ...]:
        """Without the marks."""
        return tuple(record for run in self.runs for record in run)

    def __add__(self, later: "Batch[R]") -> "Batch[R]":
        if not self.runs or not later.runs:
            return self if self.runs else later
        *before, left = self.runs
        right, *after = later.runs
        return Batch((*before, left + right, *after))


def combine(earlier: Batch[R], later: Batch[R], most: int) -> Batch[R]:
    """The batch of the next level (algorithm 2): of more than `2L` records the first L and the last L."""
    both = earlier + later
    records = both.records
    if len(records) <= 2 * most:
        return both
    return Batch((records[:most], records[-most:]))


@dataclass(frozen=True)
class Sighting(Generic[R]):
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
        shown: how many records it was shown.
        longest_batch: records of the longest batch above level 0.
        longest_window: records of the longest window whose batches of level 0 keep to `2L`.
        oversized: batches of level 0 of more than `2L` records.
    """

    calls: int = 0
    shown: int = 0
    longest_batch: int = 0
    longest_window: int = 0
    oversized: int = 0


Detect = Callable[[Sequence[R]], Sequence[tuple[int, ...]]]
"""The black box: of a window's records, the places of those of each match, ascending."""


def widen(
    records: Sequence[R], widening: Widening, detect: Detect[R], work: Work | None = None
) -> Iterator[Sighting[R]]:
    """Every match of one key, by level and time: those that span at most `most` records and `longest` of
    time.

    A match across a mark is dropped: cutting can make one that is none (of `A A B`, without the second A),
    and one that is real was shown whole in a window below.

    Args:
        records: in their total order.
        work: where what is done is counted.
    """
    work = Work() if work is None else work
    batches: dict[int, Batch[R]] = {}
    for record in records:
        number = record.time // widening.batch
        batches[number] = batches.get(number, Batch(())) + Batch.of([record])
    work.oversized += sum(len(batch.records) > 2 * widening.most for batch in batches.values())
    for level in range(widening.levels):
        length = widening.length(level)
        for number in sorted({*batches, *(number + 1 for number in batches)}):
            earlier, later = batches.get(number - 1, Batch(())), batches.get(number, Batch(()))
            window = earlier + later
            work.calls += 1
            work.shown += len(window.records)
            if level or max(len(earlier.records), len(later.records)) <= 2 * widening.most:
                work.longest_window = max(work.longest_window, len(window.records))
            for match in _found(window, widening, detect):
                first, last = match[0].time, match[-1].time
                if widening.level_of(first, last) == level and last >= number * length:
                    yield Sighting(match, level, (number + 1) * length)
        batches = {
            number // 2: combine(
                batches.get(number // 2 * 2, Batch(())),
                batches.get(number // 2 * 2 + 1, Batch(())),
                widening.most,
            )
            for number in batches
        }
        longest = max((len(batch.records) for batch in batches.values()), default=0)
        work.longest_batch = max(work.longest_batch, longest)


def _found(window: Batch[R], widening: Widening, detect: Detect[R]) -> Iterator[tuple[R, ...]]:
    records = window.records
    run_of = [number for number, run in enumerate(window.runs) for _ in run]
    for match in detect(records):
        first, last = match[0], match[-1]
        whole = run_of[first] == run_of[last]
        short = records[last].time - records[first].time <= widening.longest
        if whole and short and last - first < widening.most:
            yield tuple(records[place] for place in match)
