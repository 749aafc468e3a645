"""Progressive Window Widening of many keys at once, against the listing."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from unittest import mock

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.support.widening_factories import (
    CASE,
    ELEMENTS,
    ENDS,
    KEYS,
    OVER,
    Detector,
    Record,
    bounds,
    everywhere,
    records_of,
    widenings,
)
from transom.features.patterns.algorithm.batches import (
    KeyedRecords,
    belongs,
    detect_matches,
    keep_first_and_last,
    windows_to_detect,
)
from transom.features.patterns.algorithm.matching import minimal
from transom.features.patterns.algorithm.pattern import EventPattern
from transom.features.patterns.algorithm.reference import KeyWidening, Work, widen
from transom.features.patterns.algorithm.widening import Widening

Found = tuple[int, int, int, Record, Record]


def of_all(keys: list[list[tuple[int, int]]]) -> list[tuple[int, Record]]:
    return [(key, record) for key, rows in enumerate(keys) for record in records_of(rows)]


def rows_of(every: list[tuple[int, Record]], at: np.ndarray, cut: np.ndarray | None = None) -> KeyedRecords:
    key, time = (np.array([f(every[i]) for i in at], dtype=np.int64) for f in (key_of, time_of))
    return KeyedRecords(key, time, np.zeros(len(at), dtype=bool) if cut is None else cut)


def key_of(one: tuple[int, Record]) -> int:
    return one[0]


def time_of(one: tuple[int, Record]) -> int:
    return one[1].time


@dataclass
class Fast:
    """Runs of the vectorised form; rows of each level carry the state to the next run."""

    pattern: EventPattern
    widening: Widening
    every: list[tuple[int, Record]]
    at: int = 0

    def __post_init__(self) -> None:
        none = (np.empty(0, dtype=np.int64), np.empty(0, dtype=bool))
        self.ended = [none for _ in range(self.widening.levels)]

    def advance(self, until: int, periods: list[tuple[int, int]]) -> list[Found]:
        every, begin = self.every, self.at
        at = np.array([i for i, one in enumerate(every) if begin <= time_of(one) < until], dtype=np.int64)
        cut, result = np.zeros(len(at), dtype=bool), []
        for level in range(self.widening.levels):
            length = self.widening.length(level)
            rows = rows_of(every, at, cut)
            if level:
                selected = (rows.time >= begin // length * length) & (rows.time < until // length * length)
                at, rows = at[selected], rows.take(selected)
                what = keep_first_and_last(rows, length, self.widening.max_records)
                at, cut = at[what.retained], what.rows.cut
                count = np.unique(self._batches(at, length), return_counts=True)[1]
                assert what.count.tolist() == count.tolist()
            at, cut = (np.concatenate(pair) for pair in zip(self.ended[level], (at, cut), strict=True))
            order = np.argsort(at)
            at, cut = at[order], cut[order]
            # Records far apart within a batch are separated, and no others.
            batch = self._batches(at, length)
            assert cut.tolist() == [*((np.diff(at) > 1) & (np.diff(batch) == 0)), False][: len(at)]
            result += self._found(level, rows_of(every, at, cut), at, periods)
            ended = np.array([time_of(every[i]) // length == until // length - 1 for i in at], dtype=bool)
            self.ended[level] = (at[ended], cut[ended])
        self.at = until
        return result

    def _batches(self, at: np.ndarray, length: int) -> np.ndarray:
        return np.array([self.every[i][0] * 1000 + time_of(self.every[i]) // length for i in at])

    def _found(
        self, level: int, rows: KeyedRecords, at: np.ndarray, periods: list[tuple[int, int]]
    ) -> Iterator[Found]:
        every, pattern = self.every, self.pattern
        bits = np.array([every[i][1].bits for i in at], dtype=np.int64)
        opens, closes = bits & pattern.opening > 0, bits & pattern.closing > 0
        needs = [((bits >> step.bit & 1).astype(bool), step.times) for step in pattern.steps]
        windows = windows_to_detect(rows, level, self.widening, periods, opens, closes, needs)
        for observed in detect_matches(pattern, self.widening, level, windows, rows.time, bits, {}):
            for first, last, end in zip(*observed, strict=True):
                (key, one), (_, other) = every[at[first]], every[at[last]]
                yield key, level, int(end), one, other


def expected_of(
    pattern: EventPattern,
    widening: Widening,
    keys: list[list[tuple[int, int]]],
    periods: list[tuple[int, int]],
) -> list[Found]:
    result = []
    for key, rows in enumerate(keys):
        for match in everywhere(Detector(pattern), widening, records_of(rows)):
            first, last = match[0], match[-1]
            level = widening.level_of(first.time, last.time)
            end = widening.end_of(level, last.time)
            if any(a < end <= b for a, b in periods):
                result.append((key, level, end, first, last))
    return sorted(result)


@CASE
@given(case=widenings(), keys=KEYS, ends=ENDS, records=st.integers(1, 30), pairs=st.integers(1, 400))
def test_many_keys_at_once_equal_each_key(
    case: tuple[EventPattern, Widening],
    keys: list[list[tuple[int, int]]],
    ends: list[int],
    records: int,
    pairs: int,
) -> None:
    periods = some_of(ends)
    with mock.patch.multiple(
        "transom.features.patterns.algorithm.batches", AT_A_TIME=records, PAIRS_AT_A_TIME=pairs
    ):
        result = Fast(*case, of_all(keys)).advance(OVER, periods)
    assert sorted(result) == expected_of(*case, keys, periods)


@given(
    elements=st.sampled_from(["ab", "aab", "a a"]),
    limit=st.integers(3, 4),
    bits=st.lists(st.sampled_from([0, 1, 1, 2, 3]), min_size=17, max_size=24),
)
def test_batch_of_too_many_records_has_the_matches_of_any_other(
    elements: str, limit: int, bits: list[int]
) -> None:
    pattern, widening = EventPattern(ELEMENTS[elements], (), 40, limit), Widening(40, 40, limit)
    keys = [list(enumerate(bits, start=1))]
    with mock.patch("transom.features.patterns.algorithm.batches.minimal", wraps=minimal) as looked:
        result = Fast(pattern, widening, of_all(keys)).advance(OVER, [(-1, OVER)])
    assert sorted(result) == expected_of(pattern, widening, keys, [(-1, OVER)])
    # So few are examined together that the cost grows with the records, not with their square.
    shown = [call.args[1].window for call in looked.call_args_list]
    assert all(np.bincount(windows).max() <= 4 * limit for windows in shown if len(windows))


@given(case=widenings(), keys=KEYS, ends=ENDS)
def test_runs_of_many_keys_carry_the_state_of_the_listing(
    case: tuple[EventPattern, Widening], keys: list[list[tuple[int, int]]], ends: list[int]
) -> None:
    pattern, widening = case
    every = of_all(keys)
    fast = Fast(pattern, widening, every)
    runs = [KeyWidening(widening, Detector(pattern), 0) for _ in keys]
    result = []
    for begin, until in pairwise(bounds(widening, ends)):
        result += fast.advance(until, [(begin, until)])
        for key, run in enumerate(runs):
            run.advance([one for k, one in every if k == key and begin <= one.time < until], until)
        for level, (at, _) in enumerate(fast.ended):
            length = widening.length(level)
            listed = [(key, one) for key, run in enumerate(runs) for one in run.ended[level]]
            assert [every[i] for i in at] == listed
            assert all(time_of(every[i]) // length == until // length - 1 for i in at)
    assert sorted(result) == expected_of(pattern, widening, keys, [(-1, OVER * 3)])


@dataclass(frozen=True)
class Window:
    """A window as the listing shows it, with the reason to show it: a first and a last record of its
    level.
    """

    rows: list[int]
    middle: int
    end: int
    oversized: bool
    new: list[tuple[int, int]]


def windows_of(widening: Widening, level: int, rows: KeyedRecords) -> list[Window]:
    """Return every window of a level that is not empty."""
    length, time = widening.length(level), rows.time.tolist()
    batches: dict[tuple[int, int], list[int]] = {}
    for row, key in enumerate(rows.key.tolist()):
        batches.setdefault((key, time[row] // length), []).append(row)
    result = []
    for key, number in sorted({(key, number + later) for key, number in batches for later in (0, 1)}):
        earlier, later = batches.get((key, number - 1), []), batches.get((key, number), [])
        new = [
            (one, other)
            for one in [*earlier, *later]
            for other in later
            if one <= other and lowest(widening, time[one], time[other]) == level
        ]
        over = level == 0 and max(len(earlier), len(later)) > 2 * widening.max_records
        result.append(
            Window([*earlier, *later], (later or [-1])[0], (number + 1) * length, over, new),
        )
    return result


@CASE
@given(case=widenings(), keys=KEYS, ends=ENDS)
def test_windows_with_possible_new_matches_are_shown_whole(
    case: tuple[EventPattern, Widening], keys: list[list[tuple[int, int]]], ends: list[int]
) -> None:
    _, widening = case
    every, at = of_all(keys), np.arange(sum(map(len, keys)))
    periods = some_of(ends)
    observed = 0
    for level in range(widening.levels):
        if level:
            at = at[
                keep_first_and_last(rows_of(every, at), widening.length(level), widening.max_records).retained
            ]
        rows = rows_of(every, at)
        what = windows_to_detect(rows, level, widening, periods)
        windows = windows_of(widening, level, rows)
        observed += len(windows)
        required = [one for one in windows if any(a < one.end <= b for a, b in periods)]
        assert sorted(what.ends.tolist()) == sorted(one.end for one in required)
        columns = (what.first, what.stop, what.end, what.oversized)
        assert [*zip(*(column.tolist() for column in columns), strict=True)] == [
            (one.rows[0], one.rows[-1] + 1, one.end, one.oversized) for one in required if one.new
        ]
    works = [Work() for _ in keys]
    for work, some in zip(works, keys, strict=True):
        widen(records_of(some), widening, lambda records: [], work)
    assert observed == sum(work.calls for work in works)


@CASE
@given(
    case=widenings(),
    keys=KEYS,
    ends=ENDS,
    marked=st.lists(st.tuples(st.booleans(), st.booleans())),
    count=st.integers(1, 3),
)
def test_only_records_of_possible_new_matches_are_shown(
    case: tuple[EventPattern, Widening],
    keys: list[list[tuple[int, int]]],
    ends: list[int],
    marked: list[tuple[bool, bool]],
    count: int,
) -> None:
    _, widening = case
    every, at = of_all(keys), np.arange(sum(map(len, keys)))
    periods = some_of(ends)
    for level in range(widening.levels):
        if level:
            at = at[
                keep_first_and_last(rows_of(every, at), widening.length(level), widening.max_records).retained
            ]
        rows = rows_of(every, at)
        opens, closes = (
            np.array([marked[i][side] if i < len(marked) else i % 3 > side for i in at], dtype=bool)
            for side in (0, 1)
        )
        what = windows_to_detect(rows, level, widening, periods, opens, closes, [(opens, count), (closes, 1)])
        windows = [one for one in windows_of(widening, level, rows) if one.new]
        windows = [one for one in windows if any(a < one.end <= b for a, b in periods)]
        columns = (what.first, what.stop, what.end, what.oversized)
        parts = [*zip(*(column.tolist() for column in columns), strict=True)]
        for one in windows:
            near = [
                (first, last)
                for first, last in one.new
                if opens[first] and closes[last] and last - first < widening.max_records
                if rows.time[last] - rows.time[first] <= widening.max_length
                if sum(opens[first : last + 1]) >= count
            ]
            of = [part for part in parts if one.rows[0] <= part[0] <= one.rows[-1] and part[2] == one.end]
            assert len(of) == 1 if near else len(of) <= 1
            for first, after, _, oversized in of:
                assert oversized == one.oversized
                assert opens[first]
                assert closes[after - 1]
                assert sum(opens[first:after]) >= count
                assert all(first <= begin and end < after for begin, end in near)
                # No more than L allows to meet: L - 1 records of the earlier batch, and of the later one too
                # where an instance has to begin in the earlier one.
                assert max(one.rows[0], one.middle - widening.max_records + 1) <= first < after
                assert one.middle < after <= one.rows[-1] + 1
                assert not level or (first < one.middle and after < one.middle + widening.max_records)
            parts = [part for part in parts if part not in of]
        assert not parts


def some_of(ends: list[int]) -> list[tuple[int, int]]:
    """Draw intervals that are adjacent, or apart."""
    marks = sorted({*ends, OVER})
    return [*zip([-1, *marks[:-1]], marks, strict=True)][:: 1 + len(ends) % 2]


def lowest(widening: Widening, first: int, last: int) -> int:
    """Return the lowest level with a window that contains both, near enough or not."""
    for level in range(20):
        length = widening.batch << level
        if (last // length + 1) * length - 2 * length <= first:
            return level
    raise AssertionError


@given(case=widenings(), first=st.integers(0, 60), reach=st.integers(0, 36))
def test_match_belongs_to_the_first_window_of_the_lowest_level(
    case: tuple[EventPattern, Widening], first: int, reach: int
) -> None:
    _, widening = case
    last = first + min(reach, widening.max_length)
    belonging = [
        (level, end)
        for level in range(widening.levels)
        for end in range(0, OVER * 2, widening.length(level))
        if end - 2 * widening.length(level) <= first
        and last < end
        and belongs(widening, level, *(np.array([value]) for value in (end, first, last)))[0]
    ]
    level = widening.level_of(first, last)
    assert belonging == [(level, widening.end_of(level, last))]
