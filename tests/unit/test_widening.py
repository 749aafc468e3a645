"""Progressive Window Widening: the listing's properties, and the fast form against it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from transom.algorithms.batches import Rows, shown, trimmed
from transom.algorithms.patterns import Element, Never, Pattern, Step, Stretch, minimal_instances
from transom.algorithms.sightings import sightings
from transom.algorithms.widening import Sighting, Widening, Work, widen


@dataclass(frozen=True, order=True)
class Record:
    time: int
    place: int
    bits: int


def records_of(rows: Sequence[tuple[int, int]]) -> list[Record]:
    times = sorted(time for time, _ in rows)
    return [
        Record(time, place, bits) for place, (time, (_, bits)) in enumerate(zip(times, rows, strict=True))
    ]


def stretch(records: Sequence[Record]) -> Stretch:
    return Stretch([r.time for r in records], [r.bits for r in records], {})


@dataclass(frozen=True)
class Detector:
    pattern: Pattern

    def __call__(self, records: Sequence[Record]) -> list[tuple[int, ...]]:
        return [instance.places for instance in minimal_instances(self.pattern, stretch(records))]


A, B, C = (Step(name, bit) for bit, name in enumerate("abc"))
ELEMENTS = {
    "a": (Element((A,)),),
    "ab": (Element((A,)), Element((B,))),
    "aab": (Element((Step("a", 0, 2),)), Element((B,))),
    "a|b c": (Element((A, B)), Element((C,))),
    "a a": (Element((Step("a", 0, 2),)),),
}


@st.composite
def widenings(draw: st.DrawFn) -> tuple[Pattern, Widening]:
    elements = ELEMENTS[draw(st.sampled_from(sorted(ELEMENTS)))]
    nevers = (Never(3, elements[0].steps[0].name, elements[-1].steps[0].name),)
    batch = draw(st.integers(1, 4))
    longest = draw(st.integers(batch, 9 * batch))
    most = draw(st.integers(sum(step.times for element in elements for step in element.steps), 6))
    return Pattern(elements, nevers, longest, most), Widening(batch, longest, most)


ROWS = st.lists(st.tuples(st.integers(0, 40), st.sampled_from([0, 1, 1, 2, 2, 4, 7, 8])), max_size=14)
CASE = settings(max_examples=400, deadline=None)


def plain(pattern: Pattern, widening: Widening, records: list[Record]) -> list[Sighting[Record]]:
    found = widen(records, widening, Detector(pattern))
    return sorted(found, key=lambda one: (one.level, one.end, one.records))


@CASE
@given(case=widenings(), rows=ROWS)
def test_every_minimal_instance_is_found_once_and_nothing_else(
    case: tuple[Pattern, Widening], rows: list[tuple[int, int]]
) -> None:
    pattern, widening = case
    records = records_of(rows)
    everywhere = [
        tuple(records[place] for place in instance.places)
        for instance in minimal_instances(pattern, stretch(records))
    ]
    found = plain(pattern, widening, records)
    assert sorted(one.records for one in found) == sorted(everywhere)
    for one in found:
        length = widening.length(one.level)
        assert one.end - length <= one.records[-1].time < one.end
        assert one.end - 2 * length <= one.records[0].time


@CASE
@given(case=widenings(), rows=ROWS)
def test_the_first_window_that_shows_it_is_at_the_lowest_level(
    case: tuple[Pattern, Widening], rows: list[tuple[int, int]]
) -> None:
    pattern, widening = case
    for one in plain(pattern, widening, records_of(rows)):
        first, last = one.records[0].time, one.records[-1].time
        ends = {
            level: end
            for level in range(widening.levels)
            for end in range(0, 200, widening.length(level))
            if end - 2 * widening.length(level) <= first and last < end
        }
        lowest = min(ends)
        length = widening.length(lowest)
        earliest = min(end for end in range(0, 200, length) if end - 2 * length <= first and last < end)
        assert (one.level, one.end) == (lowest, earliest)


@CASE
@given(case=widenings(), rows=ROWS)
def test_work_is_bounded(case: tuple[Pattern, Widening], rows: list[tuple[int, int]]) -> None:
    pattern, widening = case
    work = Work()
    list(widen(records_of(rows), widening, Detector(pattern), work))
    assert work.longest_batch <= 2 * widening.most
    assert work.longest_window <= 4 * widening.most


@CASE
@given(
    case=widenings(),
    keys=st.lists(ROWS, min_size=1, max_size=3),
    ends=st.lists(st.integers(0, 90), max_size=4),
)
def test_many_keys_at_once_come_to_the_same(
    case: tuple[Pattern, Widening], keys: list[list[tuple[int, int]]], ends: list[int]
) -> None:
    pattern, widening = case
    of_keys = [records_of(rows) for rows in keys]
    marks = sorted({*ends, 200})
    stretches = [*zip([-1, *marks[:-1]], marks, strict=True)][:: 1 + len(ends) % 2]
    expected = sorted(
        (key, one.level, one.end, one.records[0], one.records[-1])
        for key, records in enumerate(of_keys)
        for one in plain(pattern, widening, records)
        if any(a < one.end <= b for a, b in stretches)
    )
    assert sorted(fast(pattern, widening, of_keys, stretches)) == expected


def fast(
    pattern: Pattern,
    widening: Widening,
    of_keys: list[list[Record]],
    stretches: list[tuple[int, int]],
) -> list[tuple[int, int, int, Record, Record]]:
    every = [(key, record) for key, records in enumerate(of_keys) for record in records]
    found = []
    rows = Rows(
        np.array([key for key, _ in every], dtype=np.int64),
        np.array([record.time for _, record in every], dtype=np.int64),
        np.zeros(len(every), dtype=bool),
    )
    at = np.arange(len(every))
    for level in range(widening.levels):
        if level:
            cut = trimmed(rows, widening.length(level), widening.most)
            rows, at = Rows(rows.key, rows.time, cut.cut).taken(cut.kept), at[cut.kept]
        bits = np.array([every[i][1].bits for i in at], dtype=np.int64)
        windows = shown(
            rows, level, widening, stretches, bits & pattern.opening > 0, bits & pattern.closing > 0
        )
        seen = sightings(pattern, widening, level, windows, rows.time, bits, {})
        for first, last, end in zip(seen.first, seen.last, seen.end, strict=True):
            (key, one), (_, other) = every[at[first]], every[at[last]]
            found.append((key, level, int(end), one, other))
    return found
