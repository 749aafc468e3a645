"""Progressive Window Widening, record by record (Tolpin, section 3.2, algorithms 1 and 2).

The delay of a match is proportional to its duration (`widening`). The work is bounded, as no match spans more
than L records. The window over two batches has shown all matches inside them. Of the combined batch, only the
first L and the last L records can form a match with other records.

Each match is reported once, and earlier ones need not be stored, see `Widening.level_of`.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Generic, Protocol, TypeVar

from transom.features.patterns.algorithm.widening import Widening


class Timed(Protocol):
    """A record: an object with a time."""

    @property
    def time(self) -> int:
        """The time in microseconds since the epoch."""


R = TypeVar("R", bound=Timed)
Batch = tuple[R, ...]
"""The records of one batch, in their total order."""
Detect = Callable[[Sequence[R]], Sequence[tuple[int, ...]]]
"""The black box: it gets a window's records and returns the places of each match, ascending."""


@dataclass(frozen=True)
class LevelMatch(Generic[R]):
    """A match, with the first window that shows it.

    Attributes:
        records: the matched records, in their total order.
        level: the level of the window; 0 is the shortest.
        end: the end of the window, which is the time of detection, in microseconds.
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


class KeyWidening(Generic[R]):
    """The state of one key, for consecutive intervals.

    It stores the last finished batch of each level. Later windows need no more.

    Args:
        begin: the start of the first interval, in microseconds; no record is earlier.
        work: counters to increase; new ones by default.
    """

    def __init__(self, widening: Widening, detect: Detect[R], begin: int, work: Work | None = None) -> None:
        self.widening, self.detect, self.at, self.work = widening, detect, begin, work or Work()
        self.ended: list[Batch[R]] = [()] * widening.levels

    def advance(self, records: Iterable[R], until: int) -> list[LevelMatch[R]]:
        """Return the matches of the windows that end in the next interval, by level and time.

        Args:
            records: the records of the interval, in their total order.
            until: the end of the interval, exclusive, a multiple of `batch`.
        """
        matches: list[LevelMatch[R]] = []
        limit = self.widening.max_records
        of_level_0 = groupby(records, lambda record: record.time // self.widening.batch)
        batches = {number: tuple(group) for number, group in of_level_0}
        self.work.oversized += sum(len(batch) > 2 * limit for batch in batches.values())
        for level in range(self.widening.levels):
            length = self.widening.length(level)
            last_ended, stop = self.at // length - 1, until // length
            if self.ended[level]:
                # The whole batch replaces the part of it that the lower level has passed on.
                batches[last_ended] = self.ended[level]
            for number in sorted({*batches, *(number + 1 for number in batches)}):
                if last_ended < number < stop:
                    window = (*batches.get(number - 1, ()), *batches.get(number, ()))
                    matches += self._window_matches(level, number * length, window)
            self.ended[level] = batches.get(stop - 1, ())
            # Algorithm 2: a batch of the next level is the first L and the last L records of two.
            numbers = {number // 2 for number in batches}
            combined = {n: batches.get(2 * n, ()) + batches.get(2 * n + 1, ()) for n in numbers}
            batches = {n: both[:limit] + both[limit:][-limit:] for n, both in combined.items()}
        self.at = until
        return matches

    def _window_matches(self, level: int, start: int, window: Batch[R]) -> Iterator[LevelMatch[R]]:
        """Yield the matches that belong to a window, whose later batch begins at `start`.

        None of them spans a cut, where a false match is possible, such as in `A A B` without the second A.
        Each begins in the earlier batch and ends in the later one. Across a cut, it would have the L records
        on one side of the cut between its ends. A true match was shown whole in a window of a lower level.
        """
        widening = self.widening
        self.work.calls += 1
        self.work.records_shown += len(window)
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
        records: the records in their total order.
        work: counters to increase; new ones by default.
    """
    if not records:
        return []
    run = KeyWidening(widening, detect, records[0].time, work)
    return run.advance(records, widening.end_of(widening.levels - 1, records[-1].time) + widening.top)
