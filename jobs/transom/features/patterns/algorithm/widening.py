"""Parameters of Progressive Window Widening (Tolpin, section 3.1): batches, windows and levels.

Time is divided into batches. Level i has batches of length `t_i = 2**i * t`; batch j of it covers `[j * t_i,
(j + 1) * t_i)` since the epoch. Two neighbouring batches are a window. The detector gets it when the later
batch ends. Two batches that form one batch of the next level are combined:

    level 0   |   |   |   |   |        windows of 2t, sliding by t
    level 1   |       |       |        windows of 4t, sliding by 2t
    level 2   |               |        ...

There are exactly `ceil(log2(t_max / t)) + 1` levels: windows of 2d that slide by d cover every interval of at
most d (lemma 1), and the batch of the top level is the first that is not shorter than `t_max`.

Each match of at most `t_max` and L records is found (section 4.1), at most `t * 2**max(0, ceil(log2(d / t)))`
after its last record, for a duration d. If a detector costs `R(l)` on l records, the mean cost of a key per
unit of time is at most `2 * R(4 * L) / t` (section 4.2).

>>> widening = Widening(batch=5, max_length=40, max_records=100)
>>> widening.levels, widening.top, widening.level_of(first=3, last=12), widening.end_of(1, 12)
(4, 40, 1, 20)
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Widening:
    """Parameters of the windows.

    Attributes:
        batch: `t`, the length of a batch of level 0, in microseconds. Longer: quick matches are found later,
            in fewer windows.
        max_length: `t_max`, the maximal duration of a match, in microseconds; at least `batch`. Each doubling
            adds a level.
        max_records: `L`, the maximal number of records that a match spans, including those between its own;
            at least 1. Memory and work are proportional to it.
    """

    batch: int
    max_length: int
    max_records: int

    @property
    def levels(self) -> int:
        """The number of levels, `ceil(log2(t_max / t)) + 1`."""
        return (-(-self.max_length // self.batch) - 1).bit_length() + 1

    def length(self, level: int) -> int:
        """Return the length `t_i` of a batch of level i, in microseconds."""
        return self.batch << level

    @property
    def top(self) -> int:
        """The length of the longest batches, in microseconds."""
        return self.length(self.levels - 1)

    def end_of(self, level: int, last: int) -> int:
        """Return the end of the first window with a record of time last: `(floor(last / t_i) + 1) * t_i`."""
        return (last // self.length(level) + 1) * self.length(level)

    def level_of(self, first: int, last: int) -> int:
        """Return the lowest level with a window that contains both records.

        A match belongs to the lowest i with `end_of(i, last) - 2 * t_i <= first`. So each match is reported
        once, and earlier ones need not be stored.

        Args:
            first: the time of the first record, in microseconds.
            last: the time of the last record, at most `max_length` later.
        """
        levels = (i for i in range(self.levels) if self.end_of(i, last) - 2 * self.length(i) <= first)
        return next(levels)
