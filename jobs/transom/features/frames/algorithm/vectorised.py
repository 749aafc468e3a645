"""Frames of many keys at once (Grossniklaus, Maier, Moorthy and Tufte; one by one:
`transom.features.frames.algorithm.reference`).

For every reading it is known where a frame would end (`transom.features.frames.algorithm.boundaries`). Which
readings begin a frame follows along the chain from the first of each key. Kinds whose cuts depend on
neighbours alone need no chain. The state of a key is one row before its readings, see
`transom.features.frames.algorithm.readings`. So the result does not depend on how readings are cut into runs.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from transom.arrays.column_batch import FAR_FUTURE, MISSING, ColumnBatch
from transom.arrays.sorted_index import SortedIndex
from transom.core.exact_sums import MAX_EXACT_SUM, Bools, Int64s
from transom.core.intervals import HOUR_LENGTH
from transom.features.frames.algorithm.boundaries import AggregateThreshold, FrameBoundaries, opens
from transom.features.frames.algorithm.hourly_fragments import (
    HourlyFragments,
    frame_of_each_row,
    frames_of,
    grouped_cumsum,
    not_contained,
)
from transom.features.frames.algorithm.missing_readings import latest_turns, with_missing
from transom.features.frames.algorithm.readings import Nulls, OpenFrameState, ReadingRows, Readings
from transom.features.frames.algorithm.reference import Aggregate, FrameSpec, Threshold


@dataclass(frozen=True)
class FrameReports(ColumnBatch):
    """The reports of frames by hour.

    Attributes:
        hour: the start of the hour.
        fragment: the number of the report of this frame, from 1.
        final: whether it is closed.
        first: the time of its first reading, from which the frame's id is made.
        start, end: its start and end, including the extent.
        length: of its readings with the missing ones between them, in microseconds.
        records, missing: the numbers of its readings and of missing ones between them.
        values, total, low, high, peak: the number of values, their sum, minimum and maximum, and the time of
            the first maximum; `MISSING` if there is none.
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
    records: Int64s
    missing: Int64s
    values: Int64s
    total: Int64s
    low: Int64s
    high: Int64s
    peak: Int64s
    exact: Bools
    new: Int64s


def advance(
    framing: FrameSpec, state: OpenFrameState, readings: Readings, begin: int, until: int
) -> tuple[FrameReports, OpenFrameState]:
    """Advance the framing of many keys from hour to hour.

    Args:
        state: after earlier readings: at most one row per key, its latest, ordered by key.
        readings: of the hours.
        begin, until: the interval of whole hours, in microseconds.

    Returns:
        The reports of these hours, by key and time; and the state after each hour of every key with a reading
        in it.

    Raises:
        OverflowError: sums that cut frames do not fit into 62 bits.
    """
    readings, nulls = _present(framing, readings)
    if framing.begins:
        readings = with_missing(framing, state, readings, until)
    rows = ReadingRows.of(state, latest_turns(framing, state), readings, opens(framing, readings))
    if not len(rows.key):
        return FrameReports.none(), OpenFrameState.none()
    step = _Advance(framing, rows, nulls, begin, until)
    return step.reports(), step.open_state(readings, nulls)


def frames_of_period_vectorised(
    framing: FrameSpec, readings: Readings, begin: int, until: int, overlap: bool, longest: bool
) -> FrameReports:
    """Return the frames of a period, all reported in its last hour. Open frames end with the period.

    Args:
        begin, until: the period, in microseconds.
        overlap: whether every reading may begin a frame, or only the first one after a frame.
        longest: whether only the longest frames of each key are reported, all of equal length.

    Raises:
        OverflowError: as `advance`.
    """
    readings, nulls = _present(framing, readings)
    none = OpenFrameState.none()
    rows = ReadingRows.of(none, none.last, readings, opens(framing, readings))
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


@dataclass(frozen=True)
class _Closing:
    """The end of each frame.

    Attributes:
        time: when it closes; if no reading closed it yet, when it will close without one.
        by_reading: whether a reading closes it; else it is complete, or time has passed.
        dropped: whether it is not reported.
    """

    time: Int64s
    by_reading: Bools
    dropped: Bools


class _Advance:
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
        self.nulls = SortedIndex(nulls.key, nulls.time)
        self.cutting = FrameBoundaries(framing, rows, self.nulls)
        self.overlap = overlap
        self.cuts = frame_of_each_row(self.cutting) if overlap else frames_of(self.cutting)
        self.closing = self._closing()
        of_hours = overlap is None
        self.pieces = (
            HourlyFragments.of(self.cutting, self.cuts)
            if of_hours
            else HourlyFragments.whole(self.cutting, self.cuts, until - HOUR_LENGTH)
        )

    def all_frames(self) -> FrameReports:
        """Return all frames, open ones included, in the last hour."""
        pieces, ones = self.pieces, np.ones(len(self.pieces.frame), dtype=np.int64)
        frames, valid = self._closed(pieces, pieces.hour, ones, pieces.new)
        if self.overlap:
            start, stop = self.cuts.start[valid], self.cuts.stop[valid]
            valid[valid] = not_contained(start, stop, self.framing.minimal)
        return frames.take(valid)

    def reports(self) -> FrameReports:
        """Return the reports of the hours, by key and time."""
        reported = self._reported()
        both = self._partial(reported).and_then(self._final(reported))
        return both.take(np.lexsort([both.fragment, both.first, both.key]))

    def _closing(self) -> _Closing:
        framing, rows, cuts, cutting = self.framing, self.rows, self.cuts, self.cutting
        last = cuts.stop - 1
        first, latest, by = rows.first[cuts.start], rows.time[last], cutting.next_time[last]
        closed = rows.heard[last] + framing.idle
        if framing.max_time is not None:
            closed = np.minimum(closed, first + framing.max_time)
        if framing.missing == "breaks" and framing.scheduled:
            closed = np.minimum(
                closed, np.where(latest + framing.every < by, latest + framing.every, FAR_FUTURE)
            )
        elif framing.missing == "breaks":
            null = cutting.nulls.first[last]
            closed = np.minimum(closed, np.where(null != MISSING, null, FAR_FUTURE))
        by_reading = ~cuts.completed & (by < closed)
        dropped = by_reading & cuts.condition_met & (framing.when_open == "drop")
        return _Closing(np.where(cuts.completed, latest, np.minimum(closed, by)), by_reading, dropped)

    def _reported(self) -> Bools:
        """Return which pieces give a partial report: the frame is open at the hour's end, and long enough."""
        pieces = self.pieces
        is_open = self.closing.time[pieces.frame] >= pieces.hour + HOUR_LENGTH
        enough = self._enough(pieces.frame, self.rows.time[pieces.last], pieces.records)
        return is_open & enough & (pieces.hour >= self.begin) & self.framing.reports_open

    def _enough(self, frame: Int64s, end: Int64s, records: Int64s) -> Bools:
        first = self.rows.first[self.cuts.start[frame]]
        enough: Bools = end - first + self.framing.every >= self.framing.min_time
        return enough & (records >= self.framing.fewest)

    def _fragments(self, reported: Bools) -> Int64s:
        """Return the number of partial reports of the frame up to the end of each piece."""
        frame = self.pieces.frame
        return self.rows.fragments[self.cuts.start[frame]] + grouped_cumsum(frame, reported.astype(np.int64))

    def _partial(self, reported: Bools) -> FrameReports:
        pieces = self.pieces.take(reported)
        end = self.rows.time[pieces.last]
        return self._reports(
            pieces, pieces.hour, self._fragments(reported)[reported], False, end, end, pieces.new
        )

    def _final(self, reported: Bools) -> FrameReports:
        closing, fragments = self.closing, self._fragments(reported)
        at = np.flatnonzero(np.append(self.pieces.frame[1:] != self.pieces.frame[:-1], True)[: len(reported)])
        pieces, hour = self.pieces.take(at), closing.time - closing.time % HOUR_LENGTH
        new = np.where(pieces.hour == hour, pieces.new, 0)
        of_hours = (closing.time >= self.begin) & (closing.time < self.until)
        frames, valid = self._closed(pieces, hour, fragments[at] + 1, new)
        return frames.take(of_hours & valid)

    def _closed(
        self, pieces: HourlyFragments, hour: Int64s, fragment: Int64s, new: Int64s
    ) -> tuple[FrameReports, Bools]:
        """Return closed frames, and which of them are reported."""
        rows, framing, closing = self.rows, self.framing, self.closing
        end, late = rows.time[pieces.last], np.minimum(self.cuts.stop, len(rows.key) - 1)
        if framing.missing == "satisfies":
            missed = np.where(closing.by_reading, self.cutting.missed[late], 0)
            nulls = self.cutting.nulls.last[pieces.last]
            latest = rows.time[late] - framing.every if framing.scheduled else nulls
            end = np.where(missed > 0, latest, end)
            pieces = replace(pieces, missing=pieces.missing + missed)
        reach = end
        if isinstance(framing.kind, Threshold) and framing.kind.liberal:
            reach = np.where(closing.by_reading & ~rows.holds[late], rows.time[late], end)
        valid = (
            self._enough(pieces.frame, end, pieces.records) & self._condition_met(pieces) & ~closing.dropped
        )
        return self._reports(pieces, hour, fragment, True, end, reach, new), valid

    def _condition_met(self, pieces: HourlyFragments) -> Bools:
        """Return whether frames meet the condition of a minimal aggregate; one that closes earlier does not
        count."""
        kind = self.framing.kind
        if not isinstance(kind, Aggregate) or not kind.minimal:
            return np.ones(len(pieces.frame), dtype=bool)
        threshold = AggregateThreshold(kind)
        return threshold.holds(threshold.measured(pieces.records, pieces.total, pieces.low, pieces.high))

    def _reports(
        self,
        pieces: HourlyFragments,
        hour: Int64s,
        fragment: Int64s,
        final: bool,
        end: Int64s,
        reach: Int64s,
        new: Int64s,
    ) -> FrameReports:
        start = self.cuts.start[pieces.frame]
        first, reach_back = self.rows.first[start], self._reach_back[start]
        largest = np.maximum(
            np.abs(np.where(pieces.values > 0, pieces.low, 0)),
            np.abs(np.where(pieces.values > 0, pieces.high, 0)),
        )
        return FrameReports(
            key=self.rows.key[start],
            hour=hour,
            fragment=fragment,
            final=np.full(len(start), final),
            first=first,
            start=np.where(reach_back == MISSING, first, reach_back),
            end=reach,
            length=end - first + self.framing.every,
            records=pieces.records,
            missing=pieces.missing,
            values=pieces.values,
            total=pieces.total,
            low=np.where(pieces.values > 0, pieces.low, MISSING),
            high=pieces.high,
            peak=pieces.peak,
            exact=largest.astype(np.float64) * pieces.values < MAX_EXACT_SUM,
            new=new,
        )

    @cached_property
    def _reach_back(self) -> Int64s:
        """For each row as the first of a frame, the time to which a liberal extent reaches back, or
        `MISSING`."""
        rows, kind = self.rows, self.framing.kind
        if not isinstance(kind, Threshold) or not kind.liberal:
            return np.full(len(rows.key), MISSING)
        earlier = np.append(False, ~rows.holds[:-1])[: len(rows.key)]
        beside = rows.own & earlier & ~self.cutting.new_key & (self.cutting.gap < self.framing.idle)
        return np.where(beside, rows.time - self.cutting.gap, rows.before)

    def open_state(self, readings: Readings, nulls: Readings) -> OpenFrameState:
        """Return the state after each hour of every key with a reading in it."""
        rows, pieces = self.rows, self.pieces
        key, hour = (np.append(readings.key, nulls.key), np.append(readings.time, nulls.time))
        hour = hour - hour % HOUR_LENGTH
        if len(nulls.key):
            order = np.lexsort([hour, key])
            key, hour = key[order], hour[order]
        new = np.append(True, (key[1:] != key[:-1]) | (hour[1:] != hour[:-1]))[: len(key)]
        # Known keys also miss turns in earlier hours, which are not requested.
        new &= hour >= self.begin
        key, hour = key[new], hour[new]
        row = self.cutting.ordered.first_after(key, hour + HOUR_LENGTH - 1) - 1
        latest = np.maximum(row, 0)
        known = (row >= 0) & (rows.key[latest] == key)
        # Null readings alone leave no state if the last other reading is too old: later hours do not look
        # back so far.
        time = rows.time[latest]
        known &= (time >= hour) | (time + self.framing.idle > hour + HOUR_LENGTH)
        key, hour, row = key[known], hour[known], row[known]

        piece = np.minimum(np.searchsorted(pieces.last, row), max(len(pieces.last) - 1, 0))
        is_open = pieces.last[piece] == row if len(pieces.last) else np.zeros(len(row), dtype=bool)
        if len(pieces.last):
            frame = pieces.frame[piece]
            is_open &= ~(self.cuts.completed[frame] & (self.cuts.stop[frame] - 1 == row))
        nulls_since = Nulls.of(self.nulls, key, rows.time[row], hour + HOUR_LENGTH).after(
            Nulls(
                *(
                    np.where(rows.own[row], none, column[row])
                    for none, column in (
                        (0, rows.nulls),
                        (MISSING, rows.first_null),
                        (MISSING, rows.last_null),
                    )
                )
            )
        )
        fragments = self._fragments(self._reported())

        def of_frame(column: Int64s, none: int) -> Int64s:
            values = np.full(len(row), none)
            values[is_open] = column[piece[is_open]]
            return values

        start = self.cuts.start[pieces.frame]
        return OpenFrameState(
            key=key,
            hour=hour,
            last=rows.heard[row],
            value=rows.value[row],
            held=rows.holds[row],
            first=of_frame(rows.first[start], MISSING),
            before=of_frame(self._reach_back[start], MISSING),
            records=of_frame(pieces.records, 0),
            missing=of_frame(pieces.missing, 0),
            values=of_frame(pieces.values, 0),
            total=of_frame(pieces.total, 0),
            low=of_frame(pieces.low, 0),
            high=of_frame(pieces.high, 0),
            peak=of_frame(pieces.peak, MISSING),
            fragments=of_frame(fragments, 0),
            nulls=nulls_since.count,
            first_null=nulls_since.first,
            last_null=nulls_since.last,
        )
