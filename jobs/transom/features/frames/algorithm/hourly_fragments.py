"""The contents of frames, hour by hour."""

from dataclasses import dataclass

import numpy as np

from transom.arrays.range_queries import expand_ranges, extreme, first_at_least
from transom.core.exact_sums import Bools, Int64s
from transom.features.frames.algorithm.boundaries import FrameBoundaries, FrameRanges
from transom.features.frames.algorithm.readings import FrameFigures


@dataclass(frozen=True)
class HourlyFragments(FrameFigures):
    """Pieces of frames. The figures are those of the frame up to the end of the piece.

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

    @classmethod
    def of(
        cls, boundaries: FrameBoundaries, frames: FrameRanges, hour: int | None = None
    ) -> "HourlyFragments":
        """Return the pieces of frames.

        Args:
            frames: do not overlap if they are cut.
            hour: the hour of all frames, which are one piece each; None to cut them at hours.
        """
        if not len(frames.start):
            return cls.none()
        rows = boundaries.rows
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
        return cls(
            frame=frame,
            hour=rows.hour[begin] if hour is None else np.full(len(begin), hour),
            last=stop - 1,
            new=total(rows.own, begin),
            records=total(rows.records, start),
            missing=total(rows.missing, start) + total(boundaries.missed, start + 1),
            values=total(rows.values, start),
            total=total(rows.total, start),
            low=extreme(rows.low, start, stop, np.minimum),
            high=high,
            peak=rows.peak[first_at_least(rows.high, start, stop, high)],
        )
