"""Parameters of Progressive Window Widening (Tolpin): batches, windows and levels.

Time is cut into batches. Level i has batches of length `t_i = 2**i * t`; its batch j covers `[j*t_i,
(j+1)*t_i)` since the epoch. Two neighbouring batches are a window, which the detector gets when the later one
ends. Two batches that form one batch of the next level are combined:

    level 0   |   |   |   |   |        windows of 2t, sliding by t
    level 1   |       |       |        windows of 4t, sliding by 2t
    level 2   |               |        ...

There are exactly `ceil(log2(t_max / t)) + 1` levels: windows of 2d that slide by d cover every interval of at
most d (lemma 1), and the batch of the top level is the first that is not shorter than `t_max`.
"""

from dataclasses import dataclass


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
