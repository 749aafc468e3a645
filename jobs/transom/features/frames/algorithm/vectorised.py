"""Frames of many keys at once (Grossniklaus, Maier, Moorthy and Tufte, sections 4.1 to 4.4).

The end of a frame is computed for every reading as its beginning. The readings that begin a frame form a
chain from the first one of each key. Kinds whose cuts depend on neighbours alone need no chain. The state of
a key is one row before its readings.

Guarantee: the frames equal those of `reference.framed` over the key's whole history. They do not depend on
the runs in which hours are computed.

Cost: `O((n + k) log n)` time and `O(n + k)` memory, for `n` readings and `k` keys with a state.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from transom.arrays.column_batch import FAR_FUTURE, MISSING
from transom.arrays.sorted_index import SortedIndex, sort_by_key_and_time
from transom.core.exact_sums import MAX_EXACT_SUM, Bools, Int64s
from transom.core.intervals import HOUR_LENGTH
from transom.features.frames.algorithm.boundaries import FrameBoundaries, HourlyFragments, measured, opens
from transom.features.frames.algorithm.params import Aggregate, FrameSpec
from transom.features.frames.algorithm.readings import (
    FrameFigures,
    Nulls,
    OpenFrameState,
    ReadingRows,
    Readings,
    with_missing,
)


@dataclass(frozen=True)
class FrameReports(FrameFigures):
    """The reports of frames by hour. `low` is `MISSING` if there is no value.

    Attributes:
        key: codes.
        hour: the start of the hour.
        fragment: the number of the report of this frame, from 1.
        final: whether it is closed.
        first: the time of its first reading, from which the frame's id is derived.
        start: its start, including the extent.
        end: its end (inclusive), including the extent.
        length: the length without the extent, in microseconds.
        exact: whether the sum is exact.
        new: the number of its readings in the hour; missing ones count if they may begin a frame.
    """

    key: Int64s
    hour: Int64s
    fragment: Int64s
    final: Bools
    first: Int64s
    start: Int64s
    end: Int64s
    length: Int64s
    exact: Bools
    new: Int64s


def advance(
    framing: FrameSpec, state: OpenFrameState, readings: Readings, begin: int, until: int
) -> tuple[FrameReports, OpenFrameState]:
    """Advance the frames of many keys from hour to hour.

    Args:
        framing: the parameters of the frames.
        state: the latest state of each key before `begin`, at most one row per key, ordered by key.
        readings: the readings of the hours.
        begin: the start of the first hour, in microseconds.
        until: the end of the last hour, in microseconds.

    Returns:
        The reports of these hours, by key and time; and the state after each hour of every key with a reading
        in it.

    Raises:
        OverflowError: a sum that decides where a frame ends does not fit into 62 bits.
    """
    readings, nulls = _present(framing, readings)
    if framing.begins:
        readings = with_missing(framing, state, readings, until)
    rows = ReadingRows.of(framing, state, readings, opens(framing, readings))
    if not len(rows.key):
        return FrameReports.none(), OpenFrameState.none()
    step = _Advance(framing, rows, nulls, begin, until)
    return step.reports(), step.open_state()


def period_frames(
    framing: FrameSpec, readings: Readings, begin: int, until: int, overlap: bool, longest: bool
) -> FrameReports:
    """Return the frames of a period, all reported in its last hour. Open frames end with the period.

    Args:
        framing: the parameters of the frames.
        readings: the readings of the period.
        begin: the start of the period, in microseconds.
        until: its end, in microseconds.
        overlap: whether every reading may begin a frame, or only the first one after a frame.
        longest: whether only the longest frames of each key are reported; all, if several are longest.

    Raises:
        OverflowError: as `advance`.
    """
    readings, nulls = _present(framing, readings)
    rows = ReadingRows.of(framing, OpenFrameState.none(), readings, opens(framing, readings))
    if not len(rows.key):
        return FrameReports.none()
    frames = _Advance(framing, rows, nulls, begin, until, overlap).all_frames()
    if longest:
        max_length = np.zeros(int(frames.key.max(initial=-1)) + 1, dtype=np.int64)
        np.maximum.at(max_length, frames.key, frames.length)
        frames = frames.take(frames.length == max_length[frames.key])
    return frames


def _present(framing: FrameSpec, readings: Readings) -> tuple[Readings, Readings]:
    """Return the readings that are not missing, and the null ones that affect the result."""
    nulls = readings.take(readings.missing)
    if len(nulls.key):
        readings = readings.take(~readings.missing)
    # With a schedule a null reading is the same as a missing one.
    return readings, nulls.take(slice(0, 0)) if framing.scheduled else nulls


class _Advance:
    """The frames of some rows.

    Args:
        overlap: for a period, whether every reading may begin a frame; None for frames that are cut at hours.
    """

    def __init__(
        self,
        framing: FrameSpec,
        rows: ReadingRows,
        nulls: Readings,
        begin: int,
        until: int,
        overlap: bool | None = None,
    ) -> None:
        self.framing, self.rows, self.begin, self.until = framing, rows, begin, until
        self.overlap, self.nulls = overlap, SortedIndex(nulls.key, nulls.time)
        self.boundaries = FrameBoundaries(framing, rows, self.nulls)
        disjoint = self.boundaries.disjoint_frames
        self.frames = self.boundaries.frames.take(rows.opens) if overlap else disjoint()
        last_hour = None if overlap is None else until - HOUR_LENGTH
        self.pieces = self.boundaries.fragments(self.frames, last_hour)
        self.closed, self.by_reading = self._closing()

    def all_frames(self) -> FrameReports:
        """Return all frames, open ones included, in the last hour."""
        reports, valid = self._final(self.pieces, np.ones_like(self.pieces.frame))
        if self.overlap:
            valid[valid] = _not_contained(self.frames.stop[valid], self.framing.minimal)
        return reports.take(valid)

    def reports(self) -> FrameReports:
        """Return the reports of the hours, by key and time."""
        pieces = self.pieces.take(self.reported)
        end = self.rows.time[pieces.last]
        partial = self._reports(pieces, self.fragments[self.reported], False, end, end)
        is_last = np.diff(self.pieces.frame, append=-1) != 0
        pieces, hour = self.pieces.take(is_last), self.closed - self.closed % HOUR_LENGTH
        pieces = replace(pieces, hour=hour, new=np.where(pieces.hour == hour, pieces.new, 0))
        final, valid = self._final(pieces, self.fragments[is_last] + 1)
        in_hours = (self.closed >= self.begin) & (self.closed < self.until)
        both = partial.and_then(final.take(valid & in_hours))
        return both.take(np.lexsort([both.fragment, both.first, both.key]))

    def _closing(self) -> tuple[Int64s, Bools]:
        """Return when each frame closes, and whether a reading closes it.

        If no reading closes a frame, it closes when it is complete, or later by the passing of time.
        """
        framing, rows, frames, boundaries = self.framing, self.rows, self.frames, self.boundaries
        last = frames.stop - 1
        latest, next_time = rows.time[last], boundaries.next_time[last]
        closed = rows.last[last] + framing.idle
        if framing.max_time is not None:
            closed = np.minimum(closed, rows.first[frames.start] + framing.max_time)
        if framing.missing == "breaks":
            if framing.scheduled:
                missed, breaks = latest + framing.every, latest + framing.every < next_time
            else:
                missed = boundaries.following_nulls.first_null[last]
                breaks = missed != MISSING
            closed = np.minimum(closed, np.where(breaks, missed, FAR_FUTURE))
        by_reading = ~frames.completed & (next_time < closed)
        return np.where(frames.completed, latest, np.minimum(closed, next_time)), by_reading

    @cached_property
    def reported(self) -> Bools:
        """Whether each piece gives a partial report: the frame is open at the hour's end, and long enough."""
        pieces = self.pieces
        is_open = self.closed[pieces.frame] >= pieces.hour + HOUR_LENGTH
        enough = self._enough(pieces, self.rows.time[pieces.last])
        return is_open & enough & (pieces.hour >= self.begin) & self.framing.reports_open

    @cached_property
    def fragments(self) -> Int64s:
        """The number of partial reports of the frame up to the end of each piece."""
        frame, reported = self.pieces.frame, self.reported.astype(np.int64)
        sums = np.cumsum(reported)
        earlier = (sums - reported)[np.searchsorted(frame, frame)]
        fragments: Int64s = self.rows.fragments[self.frames.start[frame]] + sums - earlier
        return fragments

    def _enough(self, pieces: HourlyFragments, end: Int64s) -> Bools:
        first = self.rows.first[self.frames.start[pieces.frame]]
        enough: Bools = end - first + self.framing.every >= self.framing.min_time
        return enough & (pieces.records >= self.framing.required_records)

    def _final(self, pieces: HourlyFragments, fragment: Int64s) -> tuple[FrameReports, Bools]:
        """Return closed frames, and whether each is reported. Its piece is the last one, with the report's
        hour."""
        rows, framing, kind = self.rows, self.framing, self.framing.kind
        end, late = rows.time[pieces.last], np.minimum(self.frames.stop, len(rows.key) - 1)
        if framing.missing == "satisfies":
            missed = np.where(self.by_reading, self.boundaries.missed[late], 0)
            nulls = self.boundaries.following_nulls.last_null[pieces.last]
            latest = rows.time[late] - framing.every if framing.scheduled else nulls
            end = np.where(missed > 0, latest, end)
            pieces = replace(pieces, missing=pieces.missing + missed)
        reach = end
        if framing.liberal:
            reach = np.where(self.by_reading & ~rows.held[late], rows.time[late], end)
        valid = self._enough(pieces, end)
        if framing.when_open == "drop":
            valid &= ~(self.by_reading & self.frames.condition_met)
        if isinstance(kind, Aggregate) and kind.minimal:
            measure = measured(kind, pieces.records, pieces.total, pieces.low, pieces.high)
            valid &= measure >= kind.min_measure
        return self._reports(pieces, fragment, True, end, reach), valid

    def _reports(
        self, pieces: HourlyFragments, fragment: Int64s, final: bool, end: Int64s, reach: Int64s
    ) -> FrameReports:
        start, valued = self.frames.start[pieces.frame], pieces.values > 0
        first, reach_back = self.rows.first[start], self._reach_back[start]
        largest = np.where(valued, np.maximum(-pieces.low, pieces.high), 0)
        return FrameReports(
            key=self.rows.key[start],
            fragment=fragment,
            final=np.full(len(start), final),
            first=first,
            start=np.where(reach_back == MISSING, first, reach_back),
            end=reach,
            length=end - first + self.framing.every,
            exact=largest.astype(np.float64) * pieces.values < MAX_EXACT_SUM,
            hour=pieces.hour,
            new=pieces.new,
            **pieces.figures | {"low": np.where(valued, pieces.low, MISSING)},
        )

    @cached_property
    def _reach_back(self) -> Int64s:
        """For each row as the first of a frame, the time to which a liberal extent reaches back, or
        `MISSING`."""
        rows, boundaries = self.rows, self.boundaries
        if not self.framing.liberal:
            return np.full(len(rows.key), MISSING)
        earlier = np.append(False, ~rows.held[:-1])
        beside = rows.own & earlier & ~boundaries.new_key & (boundaries.gap < self.framing.idle)
        return np.where(beside, rows.time - boundaries.gap, rows.before)

    def open_state(self) -> OpenFrameState:
        """Return the state after each hour of every key with a reading in it."""
        rows, frames, pieces, nulls = self.rows, self.frames, self.pieces, self.nulls
        key, hour = np.append(rows.key[rows.own], nulls.key), np.append(rows.time[rows.own], nulls.time)
        hour = hour - hour % HOUR_LENGTH
        if len(nulls.key):
            _, key, hour = sort_by_key_and_time(key, hour)
        # Known keys also miss turns in earlier hours, which are not requested.
        new = ((np.diff(key, prepend=-1) != 0) | (np.diff(hour, prepend=-1) != 0)) & (hour >= self.begin)
        key, hour = key[new], hour[new]
        row = self.boundaries.ordered.first_after(key, hour + HOUR_LENGTH - 1) - 1
        latest = np.maximum(row, 0)
        # Null readings alone leave no state if the last other reading is too old: later hours do not look
        # back so far.
        recent = (rows.time[latest] >= hour) | (rows.time[latest] + self.framing.idle > hour + HOUR_LENGTH)
        known = (row >= 0) & (rows.key[latest] == key) & recent
        key, hour, row = key[known], hour[known], row[known]

        # The piece that ends with a row, if its frame is open; else -1, the index of the value for none.
        ended = frames.completed[pieces.frame] & (frames.stop[pieces.frame] - 1 == pieces.last)
        open_piece = np.full(len(rows.key), -1)
        open_piece[pieces.last[~ended]] = np.flatnonzero(~ended)
        piece = open_piece[row]

        def of_frame(column: Int64s, none: int = 0) -> Int64s:
            values: Int64s = np.append(column, none)[piece]
            return values

        start = frames.start[pieces.frame]
        earlier = Nulls(rows.nulls[row], rows.first_null[row], rows.last_null[row])
        nulls_since = Nulls.between(nulls, key, rows.time[row], hour + HOUR_LENGTH).after(earlier)
        return OpenFrameState(
            key=key,
            hour=hour,
            last=rows.last[row],
            value=rows.value[row],
            held=rows.held[row],
            first=of_frame(rows.first[start], MISSING),
            before=of_frame(self._reach_back[start], MISSING),
            fragments=of_frame(self.fragments),
            **{name: of_frame(column) for name, column in pieces.figures.items()}
            | {"peak": of_frame(pieces.peak, MISSING)},
            **nulls_since.columns(),
        )


def _not_contained(stop: Int64s, minimal: bool) -> Bools:
    """Return whether each frame is inside no other one; for minimal frames, whether it contains no other one.

    Frames ascend by their start, and no two are equal.
    """
    if minimal:
        nearest = np.minimum.accumulate(stop[::-1])[::-1]
        return np.append(stop[:-1] < nearest[1:], True)[: len(stop)]
    return np.append(True, stop[1:] > np.maximum.accumulate(stop)[:-1])[: len(stop)]
