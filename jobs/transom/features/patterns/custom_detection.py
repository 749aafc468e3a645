"""What a detector of an operator's own finds, called window by window, and held to the rules of all.

A match spans at most L records and t_max of time, none across a cut is one, and it belongs to one level and
window. Where the detector raises, that window's key and bounds are told, and the other windows go on.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from traceback import extract_tb

import numpy as np

from transom.core.exact_sums import Bools, Int64s
from transom.features.patterns.algorithm.batches import DetectorWindows
from transom.features.patterns.algorithm.detected_matches import belongs
from transom.features.patterns.custom_detector import Detector, Record, matches_in
from transom.features.patterns.detector_path import format_exception
from transom.features.patterns.match_rows import LevelMatches
from transom.features.patterns.records import PatternRecords
from transom.features.patterns.resolve import PatternBlock

Failed = Callable[[int, str], None]
"""Is told the end of a window, in microseconds, and what was raised there."""


@dataclass(frozen=True)
class CustomDetection:
    """A detector at work on the records of a task."""

    block: PatternBlock
    records: PatternRecords
    detector: Detector

    @cached_property
    def _records_shown(self) -> list[Record]:
        table, columns = self.records.table, [*self.block.key, *self.block.columns]
        values = {column: table[self.block.record_column(column)].to_pylist() for column in columns}
        rows = (dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True))
        empty: Iterator[dict[str, object]] = ({} for _ in range(table.num_rows))
        times = table["event_time"].to_pylist()
        return [Record(time, row) for time, row in zip(times, rows if values else empty, strict=True)]

    def matches(
        self, level: int, places: Int64s, cut: Bools, windows: DetectorWindows, failed: Failed
    ) -> LevelMatches:
        """The matches that belong to a level.

        Args:
            places: the rows of the level's batches, among all records.
            cut: whether records have been cut out behind each.
            windows: of these rows, whole.
        """
        ends, matches = [], []
        for first, behind, end in zip(windows.first, windows.stop, windows.end, strict=True):
            rows = places[first:behind]
            try:
                some = matches_in(self.detector, [self._records_shown[row] for row in rows])
            except (Exception, SystemExit) as error:
                failed(int(end), self._place(level, int(rows[0]), int(end), error))
                continue
            for match in some:
                ends.append(int(end))
                matches.append(first + np.array(match))
        kept = self._matches_kept(level, places, cut, np.array(ends, dtype=np.int64), matches)
        return LevelMatches.of(level, [ends[i] for i in kept], [places[matches[i]] for i in kept])

    def _matches_kept(
        self, level: int, places: Int64s, cut: Bools, end: Int64s, matches: list[Int64s]
    ) -> list[int]:
        first, last = (np.array([match[at] for match in matches], dtype=np.int64) for at in (0, -1))
        before = np.concatenate([[0], np.cumsum(cut)])
        time, widening = self.records.time[places], self.block.widening
        whole = before[last] == before[first]
        short = (time[last] - time[first] <= widening.max_length) & (last - first < widening.max_records)
        return np.flatnonzero(whole & short & belongs(widening, level, end, time[first], time[last])).tolist()

    def _place(self, level: int, row: int, end: int, error: BaseException) -> str:
        key = ", ".join(f"{name}={self.records.table[name][row].as_py()!r}" for name in self.block.key)
        start = end - 2 * self.block.widening.length(level)
        window = f"window {_moment(start)} to {_moment(end)}"
        return ", ".join(filter(None, [key, window])) + f": {format_exception(error)}{_raised_in(error)}"


def _raised_in(error: BaseException) -> str:
    """The file and the line that raised, where they are not transom's own."""
    *_, last = extract_tb(error.__traceback__)
    if last.filename == matches_in.__code__.co_filename:
        return ""
    return f" ({Path(last.filename).name}, line {last.lineno})"


def _moment(micros: int) -> str:
    return np.datetime_as_string(np.datetime64(micros, "us"), unit="s")
