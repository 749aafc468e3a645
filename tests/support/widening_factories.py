"""Strategies for records and widenings, with a detector that does not depend on either."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from hypothesis import strategies as st

from tests.support.examples import rare_case
from tests.support.instances import minimal_instances
from transom.features.patterns.algorithm.pattern import (
    Element,
    EventPattern,
    ForbiddenRecord,
    Instance,
    PatternStep,
    RecordSequence,
)
from transom.features.patterns.algorithm.widening import Widening

OVER = 256
"""A time by which all windows have ended, for any draw; also a bound of every batch."""


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


@dataclass(frozen=True)
class Detector:
    """A black box, which knows neither the maximum duration of an instance nor its span."""

    pattern: EventPattern
    instances: Callable[[EventPattern, RecordSequence], Sequence[Instance] | Iterator[Instance]] = (
        minimal_instances
    )

    def __call__(self, records: Sequence[Record]) -> list[tuple[int, ...]]:
        unbound = replace(self.pattern, max_length=10**6, max_records=10**6)
        period = RecordSequence([r.time for r in records], [r.bits for r in records], {})
        return sorted({instance.places for instance in self.instances(unbound, period)})


A, B, C = (PatternStep(name, bit) for bit, name in enumerate("abc"))
ELEMENTS = {
    "a": (Element((A,)),),
    "ab": (Element((A,)), Element((B,))),
    "aab": (Element((PatternStep("a", 0, 2),)), Element((B,))),
    "a|b c": (Element((A, B)), Element((C,))),
    "a a": (Element((PatternStep("a", 0, 2),)),),
}


@st.composite
def widenings(draw: st.DrawFn) -> tuple[EventPattern, Widening]:
    elements = ELEMENTS[draw(st.sampled_from(sorted(ELEMENTS)))]
    nevers = (ForbiddenRecord(3, elements[0].steps[0].name, elements[-1].steps[0].name),)
    batch = draw(st.integers(1, 4))
    longest = draw(st.integers(batch, 9 * batch))
    slots = sum(step.times for element in elements for step in element.steps)
    limit = draw(st.one_of(st.integers(slots, slots + 1), st.integers(slots, 6)))
    return EventPattern(elements, nevers, longest, limit), Widening(batch, longest, limit)


ROW = st.tuples(
    st.one_of(st.integers(0, 40), st.integers(8, 20), st.integers(10, 12)),
    st.sampled_from([0, 1, 1, 2, 2, 4, 7, 8]),
)
ROWS = st.lists(ROW, max_size=14)
KEYS = st.lists(ROWS, min_size=1, max_size=3)
ENDS = st.lists(st.integers(0, 90), max_size=4)
CASE = rare_case(4)


def everywhere(detector: Detector, widening: Widening, records: list[Record]) -> list[tuple[Record, ...]]:
    """Return all matches of the whole stream, neither cut nor trimmed."""
    return [
        tuple(records[place] for place in places)
        for places in detector(records)
        if places[-1] - places[0] < widening.max_records
        and records[places[-1]].time - records[places[0]].time <= widening.max_length
    ]


def bounds(widening: Widening, ends: list[int]) -> list[int]:
    """Draw bounds of runs, each on a bound of level 0."""
    return sorted({0, OVER * 3, *(end // widening.batch * widening.batch for end in ends)})
