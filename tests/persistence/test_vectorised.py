"""Persistent items, for many items at once, compared with the listing."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given

from tests.support.item_factories import ITEMS, Case, cases, contacts, fast, plain
from transom.core.intervals import HOUR_LENGTH
from transom.features.persistence.algorithm.params import PersistenceParams
from transom.features.persistence.algorithm.reference import TrackedItem
from transom.features.persistence.algorithm.vectorised import TrackerConfig, Tuples

NAMES = ("instance", "item", "start", "counted", "latest")


def rows_of(tuples: Tuples) -> Iterator[tuple[int, ...]]:
    yield from zip(*(getattr(tuples, name).tolist() for name in NAMES), strict=True)


@given(case=cases())
def test_runs_track_and_report_the_items_of_the_listing(case: Case) -> None:
    expected = {hour: (tuples, named, remaining) for hour, tuples, named, remaining in plain(case)}
    hours = []
    for state in fast(case):
        tuples, (required, named, remaining) = state.tuples, expected[state.hour]
        hours.append(state.hour)
        result = {
            (instance, ITEMS[item], start): TrackedItem(counted, latest)
            for instance, item, start, counted, latest in rows_of(tuples)
        }
        assert result == required
        if named is not None:
            reported = zip(state.reported.item.tolist(), state.reported.since.tolist(), strict=True)
            assert {ITEMS[item]: since for item, since in reported} == named
            assert {ITEMS[item] for item in state.exited.item.tolist()} == remaining
            reports = {ITEMS[item] for item in tuples.item[state.output].tolist()}
            observed = {item for instance, item, _ in required if instance == -1}
            assert reports == {*named, *observed}
    assert hours == list(case.due)


@given(case=cases())
def test_slots_counts_and_gaps_equal_those_of_the_records(case: Case) -> None:
    for state in fast(case):
        tuples = state.tuples
        for row in range(len(tuples.item)):
            start = int(tuples.start[row])
            of_slots = contacts(case, ITEMS[tuples.item[row]], start, state.hour)
            firsts = [min(of_slots[slot]) for slot in sorted(of_slots)]
            bits = np.flatnonzero(np.unpackbits(tuples.slots[row], bitorder="little")) + start
            assert bits.tolist() == sorted(of_slots)
            assert tuples.records[row] == sum(map(len, of_slots.values()))
            assert (tuples.first[row], tuples.last[row]) == (firsts[0], firsts[-1])
            assert tuples.gap_squares[row] == sum((later - one) ** 2 for one, later in pairwise(firsts))


@given(case=cases())
def test_pairs_and_starts_are_counted_in_each_hour(case: Case) -> None:
    before: set[tuple[int, int, int]] = set()
    observed: dict[int, set[tuple[bytes, int]]] = {}
    first: dict[tuple[bytes, int], int] = {}
    for time, item in case.records:
        pair = item, time // case.tracking.length
        # A slot of several hours is a pair in the first of them with the item.
        if item not in case.watched and first.setdefault(pair, time // HOUR_LENGTH) == time // HOUR_LENGTH:
            observed.setdefault(time // HOUR_LENGTH, set()).add(pair)
    for state in fast(case):
        tuples = state.tuples
        now = {
            at
            for at in zip(tuples.instance.tolist(), tuples.item.tolist(), tuples.start.tolist(), strict=True)
            if at[0] >= 0
        }
        assert state.starts == len(now - before)
        if case.tracking.length <= HOUR_LENGTH:
            assert state.pairs == len(observed.get(state.hour, ()))
        else:
            # For an untracked item, earlier hours with it are not recorded.
            assert state.pairs >= len(observed.get(state.hour, ()))
        before = now


@pytest.mark.parametrize(
    ("hours", "unit"), [(Fraction(1, 2), 1), (1, 10), (3, 10), (5, 10), (6, 100), (72, 1000)]
)
def test_times_are_truncated_to_the_smallest_power_of_ten_that_fits_a_window(
    hours: Fraction | int, unit: int
) -> None:
    requested = PersistenceParams(9, Fraction("0.5"), Fraction("0.3"))
    assert TrackerConfig(requested, int(hours * HOUR_LENGTH / 9)).unit == unit
