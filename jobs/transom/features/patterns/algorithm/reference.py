"""Progressive Window Widening, record by record (Tolpin, algorithms 1 and 2).

Time is cut into batches. Level i has batches of length `t_i = 2**i * t`; its batch j covers `[j*t_i,
(j+1)*t_i)` since the epoch. Two neighbouring batches are a window, which the detector gets when the later one
ends. Two batches that form one batch of the next level are combined:

    level 0   |   |   |   |   |        windows of 2t, sliding by t
    level 1   |       |       |        windows of 4t, sliding by 2t
    level 2   |               |        ...

So the delay of detection is proportional to the length of a pattern. The work is bounded, as no pattern spans
more than `L` records: the window over two batches has shown all patterns inside them, and of the combined
batch only the first L and the last L records can form a pattern with other records.

There are exactly `ceil(log2(t_max / t)) + 1` levels: windows of 2d that slide by d cover every interval of at
most d (lemma 1), and the batch of the top level is the first that is not shorter than `t_max`.

Each match is reported once without storing earlier ones, see `level_of`. The fast form is
`transom.features.patterns.algorithm.batches`.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Generic, Protocol, TypeVar


class Timed(Protocol):
    """An object with a time."""

    @property
    def time(self) -> int:
        """The time in microseconds since the epoch."""


R = TypeVar("R", bound=Timed)


@dataclass(frozen=True)
class Widening:
    """Parameters of the windows.

    Attributes:
        batch: `t`, the length of a batch of level 0, in microseconds.
        max_length: `t_max`, the longest time from the first record of a pattern to its last, in microseconds;
            at least `batch`.
        max_records: `L`, the largest number of records that a pattern spans, including those in between.
    """

    batch: int
    max_length: int
    max_records: int

    @property
    def levels(self) -> int:
        """`ceil(log2(t_max / t)) + 1`, in whole numbers."""
        return (-(-self.max_length // self.batch) - 1).bit_length() + 1

    def length(self, level: int) -> int:
        """Return `t_i`, in microseconds."""
        return self.batch << level

    @property
    def top(self) -> int:
        """The length of the longest batches, in microseconds."""
        return self.length(self.levels - 1)

    def end_of(self, level: int, last: int) -> int:
        """Return the end of the first window that contains a record: `(floor(last / t_i) + 1) * t_i`."""
        return (last // self.length(level) + 1) * self.length(level)

    def level_of(self, first: int, last: int) -> int:
        """Return the lowest level with a window that contains both records.

        An instance belongs to the lowest i with `e - 2 * t_i <= first`, where `e` is the end of the window
        that its last record completes. So each instance is reported once, and nothing is stored for this.

        Args:
            first, last: times, at most `max_length` apart.
        """
        levels = (i for i in range(self.levels) if self.end_of(i, last) - 2 * self.length(i) <= first)
        return next(levels)


Batch = tuple[R, ...]
"""The records of one batch, in their total order."""


def combine(earlier: Batch[R], later: Batch[R], limit: int) -> Batch[R]:
    """Return the first L and the last L records of two batches: a batch of the next level (algorithm 2)."""
    both = earlier + later
    return both[:limit] + both[limit:][-limit:]


@dataclass(frozen=True)
class LevelMatch(Generic[R]):
    """A match, with the first window that shows it.

    Attributes:
        records: the matched records, in their total order.
        end: the end of the window, the time of detection, in microseconds.
    """

    records: tuple[R, ...]
    level: int
    end: int


@dataclass
class Work:
    """Counters of work.

    Attributes:
        calls: the number of calls of the detector.
        records_shown: the number of records that the detector got.
        oversized: the number of batches of level 0 with more than `2L` records.
    """

    calls: int = 0
    records_shown: int = 0
    oversized: int = 0


Detect = Callable[[Sequence[R]], Sequence[tuple[int, ...]]]
"""The black box: it gets a window's records and returns the places of each match, ascending."""


class KeyWidening(Generic[R]):
    """The state of one key, for consecutive intervals.

    It stores the last finished batch of each level, which is all that later windows need.

    Args:
        begin: the start of the first interval, in microseconds; no record is earlier.
        work: where what is done is counted.
    """

    def __init__(self, widening: Widening, detect: Detect[R], begin: int, work: Work | None = None) -> None:
        self.widening, self.detect, self.at = widening, detect, begin
        self.work = Work() if work is None else work
        self.ended: list[Batch[R]] = [()] * widening.levels

    def advance(self, records: Iterable[R], until: int) -> list[LevelMatch[R]]:
        """Return the matches of the windows that end in the next interval, by level and time.

        Args:
            records: the records of the interval, in their total order.
            until: the end of the interval, exclusive, a multiple of `batch`.
        """
        matches: list[LevelMatch[R]] = []
        of_level_0 = groupby(records, lambda record: record.time // self.widening.batch)
        batches = {number: tuple(group) for number, group in of_level_0}
        self.work.oversized += sum(len(batch) > 2 * self.widening.max_records for batch in batches.values())
        for level in range(self.widening.levels):
            length = self.widening.length(level)
            last_ended, stop = self.at // length - 1, until // length
            if self.ended[level]:
                # The whole batch replaces a part of it that was carried as well.
                batches[last_ended] = self.ended[level]
            for number in sorted({*batches, *(number + 1 for number in batches)}):
                if last_ended < number < stop:
                    window = (batches.get(number - 1, ()), batches.get(number, ()))
                    matches += self._window_matches(level, number, *window)
            self.ended[level] = batches.get(stop - 1, ())
            halves = {
                n: (batches.get(2 * n, ()), batches.get(2 * n + 1, ())) for n in {n // 2 for n in batches}
            }
            batches = {number: combine(*pair, self.widening.max_records) for number, pair in halves.items()}
        self.at = until
        return matches

    def _window_matches(
        self, level: int, number: int, earlier: Batch[R], later: Batch[R]
    ) -> Iterator[LevelMatch[R]]:
        """Yield the matches that belong to one window.

        None of them spans a cut, where a false match is possible (in `A A B` without the second A): it begins
        in the earlier batch and ends in the later one, so the L records on one side of the cut would lie
        between its ends. A true match was shown whole in a window below.
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
    """Return the matches of one key that span at most `max_records` and `max_length`, by level and time.

    Args:
        records: in their total order.
        work: where what is done is counted.
    """
    if not records:
        return []
    run = KeyWidening(widening, detect, records[0].time, work)
    return run.advance(records, widening.end_of(widening.levels - 1, records[-1].time) + widening.top)
