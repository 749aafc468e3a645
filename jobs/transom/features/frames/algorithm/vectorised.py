"""Frames of many keys at once (Grossniklaus, Maier, Moorthy and Tufte; one by one:
`transom.features.frames.algorithm.reference`).

Where a frame would end is known of every reading (`transom.features.frames.algorithm.boundaries`); which
ones begin a frame
follows from the first of each key on, from each to the next. Kinds whose cuts depend on nothing but
neighbours need not even that. What readings have left of a key stands before its own as one of them, see
`transom.features.frames.algorithm.readings`: so it makes no difference how they are cut into runs.
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
    every_one,
    frames_of,
    grouped_cumsum,
    not_contained,
)
from transom.features.frames.algorithm.missing_readings import latest_turns, with_missing
from transom.features.frames.algorithm.readings import Nulls, OpenFrameState, ReadingRows, Readings
from transom.features.frames.algorithm.reference import Aggregate, FrameSpec, Threshold


@dataclass(frozen=True)
class FrameReports(ColumnBatch):
    """What hours say of frames.

    Attributes:
        hour: by where it begins.
        fragment: the number of what is said of the frame, from 1.
        final: whether it is closed.
        first: when its first reading was; it makes the frame's id.
        start, end: where it starts and ends, as far as its extent reaches.
        length: of the readings and what is missing between them, in microseconds.
        records, missing: its readings, and what is missing between them.
        values, total, low, high, peak: the values that there are, their sum, the least and the largest of
        them
            and when that was first read; `MISSING` where there is none.
        exact: whether the sum is.
        new: how many of its readings are of the hour; where missing ones may begin a frame, these as well.
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
    framing: FrameSpec, left: OpenFrameState, readings: Readings, begin: int, until: int
) -> tuple[FrameReports, OpenFrameState]:
    """Take the framing of many keys on from hour to hour.

    Args:
        left: what the readings before have left; a row a key at most, its latest, by key.
        readings: of the hours.
        begin, until: between which hours lie, whole ones, in microseconds.

    Returns:
        What these hours say of frames, by key and time; and what each has left of a key that has a reading
        in it.

    Raises:
        OverflowError: sums by which frames are cut do not fit into 62 bits.
    """
    readings, nulls = _present(framing, readings)
    if framing.begins:
        readings = with_missing(framing, left, readings, until)
    rows = ReadingRows.of(left, latest_turns(framing, left), readings, opens(framing, readings))
    if not len(rows.key):
        return FrameReports.none(), OpenFrameState.none()
    step = _Advance(framing, rows, nulls, begin, until)
    return step.reports(), step.open_state(readings, nulls)


def frames_of_period_vectorised(
    framing: FrameSpec, readings: Readings, begin: int, until: int, overlap: bool, longest: bool
) -> FrameReports:
    """The frames of a stretch of time by itself, all told in its last hour: what is open there ends with it.

    Args:
        begin, until: the stretch, in microseconds.
        overlap: whether every reading may begin a frame, or only the first one behind a frame.
        longest: whether only the longest of each key are told, all that are equally long.

    Raises:
        OverflowError: as `advance`.
    """
    readings, nulls = _present(framing, readings)
    none = OpenFrameState.none()
    rows = ReadingRows.of(none, none.last, readings, opens(framing, readings))
    if not len(rows.key):
        return FrameReports.none()
    found = _Advance(framing, rows, nulls, begin, until, overlap).all_frames()
    if longest:
        most = np.zeros(int(found.key.max(initial=-1)) + 1, dtype=np.int64)
        np.maximum.at(most, found.key, found.length)
        found = found.take(found.length == most[found.key])
    return found


def _present(framing: FrameSpec, readings: Readings) -> tuple[Readings, Readings]:
    """The readings that are not missing, and the others as far as anything depends on them."""
    nulls = readings.take(readings.missing)
    if len(nulls.key):
        readings = readings.take(~readings.missing)
    # What is missing in its turn is no different from what has not come.
    return readings, nulls.take(slice(0, 0)) if framing.scheduled else nulls


@dataclass(frozen=True)
class _Closing:
    """How each frame ends.

    Attributes:
        time: when it is closed; where no reading has closed it, when it will be if none comes.
        by_reading: whether by a reading; else it is complete, or time has passed.
        dropped: whether it is told no more.
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
        self.cuts = every_one(self.cutting) if overlap else frames_of(self.cutting)
        self.closing = self._closing()
        of_hours = overlap is None
        self.pieces = (
            HourlyFragments.of(self.cutting, self.cuts)
            if of_hours
            else HourlyFragments.whole(self.cutting, self.cuts, until - HOUR_LENGTH)
        )

    def all_frames(self) -> FrameReports:
        """All frames, those that are open as well, in the last hour."""
        pieces, ones = self.pieces, np.ones(len(self.pieces.frame), dtype=np.int64)
        found, sound = self._closed(pieces, pieces.hour, ones, pieces.new)
        if self.overlap:
            start, behind = self.cuts.start[sound], self.cuts.stop[sound]
            sound[sound] = not_contained(start, behind, self.framing.minimal)
        return found.take(sound)

    def reports(self) -> FrameReports:
        """What the hours say of the frames, by key and time."""
        told = self._reported()
        both = self._partial(told).and_then(self._final(told))
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
        """Of which pieces a partial frame is told: it is open at the hour's end, and long enough."""
        pieces = self.pieces
        is_open = self.closing.time[pieces.frame] >= pieces.hour + HOUR_LENGTH
        enough = self._enough(pieces.frame, self.rows.time[pieces.last], pieces.records)
        return is_open & enough & (pieces.hour >= self.begin) & self.framing.reports_open

    def _enough(self, frame: Int64s, end: Int64s, records: Int64s) -> Bools:
        first = self.rows.first[self.cuts.start[frame]]
        enough: Bools = end - first + self.framing.every >= self.framing.min_time
        return enough & (records >= self.framing.fewest)

    def _fragments(self, told: Bools) -> Int64s:
        """How many partial frames have been told by the end of each piece, since the frame began."""
        frame = self.pieces.frame
        return self.rows.fragments[self.cuts.start[frame]] + grouped_cumsum(frame, told.astype(np.int64))

    def _partial(self, told: Bools) -> FrameReports:
        pieces = self.pieces.take(told)
        end = self.rows.time[pieces.last]
        return self._reports(pieces, pieces.hour, self._fragments(told)[told], False, end, end, pieces.new)

    def _final(self, told: Bools) -> FrameReports:
        closing, fragments = self.closing, self._fragments(told)
        at = np.flatnonzero(np.append(self.pieces.frame[1:] != self.pieces.frame[:-1], True)[: len(told)])
        pieces, hour = self.pieces.take(at), closing.time - closing.time % HOUR_LENGTH
        new = np.where(pieces.hour == hour, pieces.new, 0)
        of_hours = (closing.time >= self.begin) & (closing.time < self.until)
        found, sound = self._closed(pieces, hour, fragments[at] + 1, new)
        return found.take(of_hours & sound)

    def _closed(
        self, pieces: HourlyFragments, hour: Int64s, fragment: Int64s, new: Int64s
    ) -> tuple[FrameReports, Bools]:
        """Frames as they are in the end, and which of them are told."""
        rows, framing, closing = self.rows, self.framing, self.closing
        end, late = rows.time[pieces.last], np.minimum(self.cuts.stop, len(rows.key) - 1)
        if framing.missing == "satisfies":
            more = np.where(closing.by_reading, self.cutting.missed[late], 0)
            nulls = self.cutting.nulls.last[pieces.last]
            latest = rows.time[late] - framing.every if framing.scheduled else nulls
            end = np.where(more > 0, latest, end)
            pieces = replace(pieces, missing=pieces.missing + more)
        reach = end
        if isinstance(framing.kind, Threshold) and framing.kind.liberal:
            reach = np.where(closing.by_reading & ~rows.holds[late], rows.time[late], end)
        sound = (
            self._enough(pieces.frame, end, pieces.records) & self._condition_met(pieces) & ~closing.dropped
        )
        return self._reports(pieces, hour, fragment, True, end, reach, new), sound

    def _condition_met(self, pieces: HourlyFragments) -> Bools:
        """Whether frames are what they are to come to; one that is closed before is none."""
        kind = self.framing.kind
        if not isinstance(kind, Aggregate) or not kind.minimal:
            return np.ones(len(pieces.frame), dtype=bool)
        of = AggregateThreshold(kind)
        return of.holds(of.measured(pieces.records, pieces.total, pieces.low, pieces.high))

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
        first, before = self.rows.first[start], self._before[start]
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
            start=np.where(before == MISSING, first, before),
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
    def _before(self) -> Int64s:
        """Of each row, as the first of a frame, the time that a liberal extent reaches back to, or
        `MISSING`."""
        rows, kind = self.rows, self.framing.kind
        if not isinstance(kind, Threshold) or not kind.liberal:
            return np.full(len(rows.key), MISSING)
        earlier = np.append(False, ~rows.holds[:-1])[: len(rows.key)]
        beside = rows.own & earlier & ~self.cutting.new_key & (self.cutting.gap < self.framing.idle)
        return np.where(beside, rows.time - self.cutting.gap, rows.before)

    def open_state(self, readings: Readings, nulls: Readings) -> OpenFrameState:
        """What each hour has left of every key that has a reading in it."""
        rows, pieces = self.rows, self.pieces
        key, hour = (np.append(readings.key, nulls.key), np.append(readings.time, nulls.time))
        hour = hour - hour % HOUR_LENGTH
        if len(nulls.key):
            order = np.lexsort([hour, key])
            key, hour = key[order], hour[order]
        new = np.append(True, (key[1:] != key[:-1]) | (hour[1:] != hour[:-1]))[: len(key)]
        # Known keys also miss turns in hours before these, for which nobody has asked.
        new &= hour >= self.begin
        key, hour = key[new], hour[new]
        row = self.cutting.ordered.first_after(key, hour + HOUR_LENGTH - 1) - 1
        latest = np.maximum(row, 0)
        known = (row >= 0) & (rows.key[latest] == key)
        # Null readings alone leave nothing where the last other one is of no use any more: hours that come
        # later do not look so far back.
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
            found = np.full(len(row), none)
            found[is_open] = column[piece[is_open]]
            return found

        start = self.cuts.start[pieces.frame]
        return OpenFrameState(
            key=key,
            hour=hour,
            last=rows.heard[row],
            value=rows.value[row],
            held=rows.holds[row],
            first=of_frame(rows.first[start], MISSING),
            before=of_frame(self._before[start], MISSING),
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
