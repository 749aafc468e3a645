"""Detect episodes of a trace: in widening windows, by the listing and by transom, and in fixed windows."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import groupby
from operator import or_

import numpy as np

from reproduce.trace import ACCEPT, ERR, EXECUTE, IN, OUT, Calls, Episode
from transom.core.exact_sums import Int64s
from transom.features.patterns.algorithm.batches import (
    KeyedRecords,
    detect_matches,
    keep_first_and_last,
    windows_to_detect,
)
from transom.features.patterns.algorithm.instance_search import smallest
from transom.features.patterns.algorithm.matching import RecordWindows, minimal
from transom.features.patterns.algorithm.pattern import Element, EventPattern, PatternStep, RecordSequence
from transom.features.patterns.algorithm.reference import widen
from transom.features.patterns.algorithm.widening import Widening

EVER = 2**62
ELEMENTS = (
    Element((PatternStep("accept", ACCEPT),)),
    Element(
        tuple(
            PatternStep(name, bit, agrees=(("fd", "accept", "returned"),))
            for name, bit in (("in", IN), ("out", OUT), ("err", ERR))
        )
    ),
    Element((PatternStep("execute", EXECUTE),)),
)
NEEDED = reduce(or_, (1 << step.bit for element in ELEMENTS for step in element.steps))


@dataclass(frozen=True, slots=True)
class Call:
    """One call, in the form that the listing reads."""

    time: int
    bits: int
    fd: int
    returned: int


@dataclass
class Work:
    """The work of a detector.

    Attributes:
        linear: the sum of l over the windows, where l is the number of records in a window.
        square: the sum of l*l over the windows.
        seconds: the CPU time.
    """

    linear: int = 0
    square: int = 0
    seconds: float = 0.0

    def add(self, lengths: Int64s) -> None:
        """Add windows with these numbers of records."""
        self.linear += int(lengths.sum())
        self.square += int((lengths * lengths).sum())


@dataclass
class Detected:
    """The time of detection of each episode that one way detects, and the work.

    Attributes:
        ends: the end of the window that detects each episode.
        work: the work of the detector.
    """

    ends: dict[Episode, int] = field(default_factory=dict)
    work: Work = field(default_factory=Work)


@dataclass
class Detector:
    """The black box detector: it finds episodes of any length in a window."""

    work: Work

    def __call__(self, window: Sequence[Call]) -> list[tuple[int, ...]]:
        """Return the indices of the calls of each episode."""
        began = time.thread_time()
        self.work.linear += len(window)
        self.work.square += len(window) ** 2
        places = [place for place, call in enumerate(window) if call.bits]
        found: list[tuple[int, ...]] = []
        if reduce(or_, (window[place].bits for place in places), 0) == NEEDED:
            found = self._matches([window[place] for place in places], places)
        self.work.seconds += time.thread_time() - began
        return found

    def _matches(self, calls: Sequence[Call], places: Sequence[int]) -> list[tuple[int, ...]]:
        times, bits, fds, returned = (
            np.array([getattr(call, name) for call in calls], dtype=np.int64)
            for name in ("time", "bits", "fd", "returned")
        )
        codes = {"fd": fds, "returned": returned}
        pattern = EventPattern(ELEMENTS, (), EVER, EVER)
        firsts, lasts = minimal(pattern, RecordWindows(np.zeros_like(times), times, bits, codes))
        sequence = RecordSequence(
            times.tolist(), bits.tolist(), {name: code.tolist() for name, code in codes.items()}
        )
        return [
            tuple(places[first + at] for at in smallest(pattern, sequence.part(first, last)).places)
            for first, last in zip(firsts.tolist(), lasts.tolist(), strict=True)
        ]


def records(calls: Calls) -> list[Call]:
    """Return calls as single records."""
    columns = (calls.time, calls.bits, calls.fd, calls.returned)
    return [Call(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]


def listed(calls: Sequence[Call], widening: Widening) -> Detected:
    """Detect by the paper's listing, record by record.

    Raises:
        AssertionError: an episode is reported twice.
    """
    found = Detected()
    for one in widen(calls, widening, Detector(found.work)):
        episode = Episode(one.records[0].time, one.records[-1].time)
        assert episode not in found.ends, f"{episode} is reported twice"
        found.ends[episode] = one.end
    return found


def vectorised(calls: Calls, widening: Widening) -> Detected:
    """Detect like transom: all windows of a level at once, each with records that may be part of a new match.

    Raises:
        AssertionError: an episode is reported twice.
    """
    began = time.thread_time()
    pattern, found = EventPattern(ELEMENTS, (), widening.max_length, widening.max_records), Detected()
    rows = KeyedRecords(np.zeros_like(calls.time), calls.time, np.zeros(len(calls.time), dtype=bool))
    for level in range(widening.levels):
        if level:
            cut = keep_first_and_last(rows, widening.length(level), widening.max_records)
            rows, calls = cut.rows, calls.taken(cut.retained)
        opens, closes = calls.bits & pattern.opening > 0, calls.bits & pattern.closing > 0
        windows = windows_to_detect(rows, level, widening, [(-1, EVER)], opens, closes)
        found.work.add(windows.stop - windows.first)
        codes: Mapping[str, Int64s] = {"fd": calls.fd, "returned": calls.returned}
        for a, b, ends in detect_matches(pattern, widening, level, windows, rows.time, calls.bits, codes):
            columns = (rows.time[a].tolist(), rows.time[b].tolist(), ends.tolist())
            for first, last, end in zip(*columns, strict=True):
                assert Episode(first, last) not in found.ends, f"{Episode(first, last)} is reported twice"
                found.ends[Episode(first, last)] = end
    found.work.seconds = time.thread_time() - began
    return found


def fixed(calls: Sequence[Call], half: int) -> Detected:
    """Detect in windows of length `2 * half` that overlap by `half`."""
    found = Detected()
    detect = Detector(found.work)
    batches = {number: tuple(some) for number, some in groupby(calls, lambda call: call.time // half)}
    for number in sorted({*batches, *(number + 1 for number in batches)}):
        window = (*batches.get(number - 1, ()), *batches.get(number, ()))
        for match in detect(window):
            episode = Episode(window[match[0]].time, window[match[-1]].time)
            found.ends.setdefault(episode, (number + 1) * half)
    return found
