"""The listings of persistent items, and their guarantees."""

import random
import re
from fractions import Fraction
from math import exp

import mmh3
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transom.features.persistence.algorithm.item_slot_hash import item_slot_hash, item_slot_hashes
from transom.features.persistence.algorithm.params import PersistenceParams, instances_for
from transom.features.persistence.algorithm.reference import Exact, FixedWindow, SlidingWindow, reports
from transom.features.persistence.algorithm.vectorised import estimates

SLOTS = 40
PAIRS = st.sets(st.tuples(st.sampled_from([b"a", b"b", b"c"]), st.integers(1, SLOTS))).map(
    lambda pairs: sorted(pairs, key=lambda pair: pair[1])
)


def half(item: bytes, slot: int) -> int:
    return item_slot_hash(item, slot, 7)


def test_parameters_equal_those_of_the_paper() -> None:
    requested = PersistenceParams(72, Fraction("0.7"), Fraction("0.2"))
    assert (requested.tau, requested.min_reported, requested.min_certain) == (Fraction(5, 36), 36, 51)
    assert requested.estimate(36) == Fraction(216, 5) == (requested.alpha - requested.epsilon / 2) * 72
    # With floats 0.4 - 0.15 of 288 is a little more than 72.
    assert PersistenceParams(288, Fraction("0.4"), Fraction("0.15")).min_reported == 72


def test_estimate_is_at_most_the_possible_maximum() -> None:
    requested = PersistenceParams(100, Fraction("0.5"), Fraction("0.2"))
    assert estimates(requested, np.full(4, 60), np.array([60, 69, 71, 100])).tolist() == [60, 69, 70, 70]


@given(
    slots=st.integers(10, 5000),
    alpha=st.integers(2, 100),
    share=st.integers(1, 99),
    counted=st.integers(0, 5000),
)
def test_reported_items_are_those_counted_often_enough(
    slots: int, alpha: int, share: int, counted: int
) -> None:
    epsilon = Fraction(alpha * share, 10_000)
    if epsilon * slots < 2:
        return
    requested = PersistenceParams(slots, Fraction(alpha, 100), epsilon)
    assert reports(requested, counted) == (counted >= requested.min_reported)


@pytest.mark.parametrize(
    ("slots", "alpha", "epsilon", "message"),
    [
        (72, "0", "0.1", "alpha must be above 0 and at most 1; got 0"),
        (72, "1.1", "0.1", "alpha must be above 0 and at most 1; got 1.1"),
        (72, "0.5", "0.5", "epsilon must be above 0 and below alpha; got 0.5 and alpha 0.5"),
        (72, "0.5", "0", "epsilon must be above 0 and below alpha; got 0 and alpha 0.5"),
        (0, "0.5", "0.1", "slots and instances must be 1 or more; got 0, 1"),
        (72, "0.5", "0.02", "epsilon must be at least 2 / 72, or every item is tracked, which costs more "
         "than exact counts: tau = 2 / (epsilon n) is 1.39; got epsilon 0.02 of 72 slots"),
    ],
)  # fmt: skip
def test_impossible_parameters_are_refused(slots: int, alpha: str, epsilon: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        PersistenceParams(slots, Fraction(alpha), Fraction(epsilon))


def test_number_of_instances_follows_from_delta() -> None:
    assert [instances_for(delta) for delta in (0.9, 0.14, 0.13, 0.05, 0.01, 1e-6)] == [1, 1, 2, 2, 3, 7]
    for delta in (0.9, 0.1, 0.013, 1e-9):
        assert exp(-2 * instances_for(delta)) <= delta


@given(pairs=PAIRS)
def test_window_that_has_not_slid_equals_a_fixed_one(pairs: list[tuple[bytes, int]]) -> None:
    requested = PersistenceParams(SLOTS, Fraction(1, 2), Fraction(3, 10))
    fixed, sliding = FixedWindow(requested, half), SlidingWindow(requested, half)
    for item, slot in pairs:
        for _ in range(2):
            fixed.take(item, slot)
            sliding.take(item, slot)
    assert fixed.reported() == sliding.reported(SLOTS)
    oldest = {item: counted for item, _, counted in sliding.oldest(SLOTS)}
    assert {item: counted for item, (counted, _) in fixed.tuples.items()} == oldest


@given(pairs=PAIRS, slots=st.integers(8, 20))
def test_sliding_window_equals_a_fixed_one_of_its_slots(pairs: list[tuple[bytes, int]], slots: int) -> None:
    requested = PersistenceParams(slots, Fraction(9, 10), Fraction(1, 2))
    sliding, exact = SlidingWindow(requested, half), Exact(slots)
    for at in range(1, SLOTS + 1):
        sliding.move_to(at)
        for item, slot in pairs:
            if slot == at:
                sliding.take(item, slot)
                exact.take(item, slot)
        fixed = FixedWindow(requested, half)
        for item, slot in pairs:
            if at - slots < slot <= at:
                fixed.take(item, slot)
        assert sliding.reported(at) == fixed.reported()
        persistence = exact.persistence(at)
        # Lemma 3.5, and every counted slot was observed.
        assert all(persistence[item] >= requested.min_reported for item in sliding.reported(at))
        assert all(counted <= persistence[item] for item, _, counted in sliding.oldest(at))


def test_persistent_items_are_missed_as_rarely_as_guaranteed() -> None:
    """Of an item that is just persistent, over many seeds: one instance, and two, one of which detects it."""
    requested = PersistenceParams(72, Fraction("0.7"), Fraction("0.2"))
    rng, missed = random.Random(3), []
    for seed in range(0, 4000, 2):
        slots = sorted(rng.sample(range(72), requested.min_certain))
        of_two = []
        for instance in (seed, seed + 1):
            fixed = FixedWindow(
                requested, lambda item, slot, instance=instance: item_slot_hash(item, slot, instance)
            )  # type: ignore[misc]
            for slot in slots:
                fixed.take(b"host", slot)
            of_two.append(not fixed.reported())
        missed.append(of_two)
    one, both = np.mean(missed), np.mean([all(two) for two in missed])
    exactly = float((1 - requested.tau) ** (requested.min_certain - requested.min_reported + 1))
    # Within three standard deviations of chance, which is below the bound of the paper.
    assert one == pytest.approx(exactly, abs=3 * (exactly / 4000) ** 0.5)
    assert exactly < exp(-2)
    assert both <= 0.05


@given(item=st.binary(max_size=40), slot=st.integers(-(2**63), 2**63 - 1), seed=st.integers(0, 2**32 - 1))
def test_hash_equals_that_of_murmur_to_the_byte(item: bytes, slot: int, seed: int) -> None:
    key = item + slot.to_bytes(8, "little", signed=True)
    low = mmh3.hash64(key, seed, x64arch=True, signed=False)[0]
    assert item_slot_hash(item, slot, seed) == low // 2**11 < 2**53
    assert item_slot_hashes([key, key], seed).tolist() == [low // 2**11] * 2


def test_hash_has_fixed_values() -> None:
    assert item_slot_hash(b"91.236.75.25", 397_968, 0) == 2_929_165_897_561_321
    assert item_slot_hashes([], 0).tolist() == []


def test_only_surely_non_persistent_items_can_be_dropped() -> None:
    requested = PersistenceParams(100, Fraction("0.5"), Fraction("0.2"))
    assert reports(requested, 30)
    assert not requested.may_be(30, 19)
    assert requested.may_be(30, 20)
    rng = np.random.default_rng(9)
    present = rng.random((4000, 100)) < rng.uniform(0.3, 0.7, (4000, 1))
    chosen = present & (rng.random(present.shape) < float(requested.tau))
    result, start = chosen.any(axis=1), chosen.argmax(axis=1)
    counted = np.where(result, (present & (np.arange(100) >= start[:, None])).sum(axis=1), 0)
    named = counted >= requested.min_reported
    persistent = present.sum(axis=1) >= requested.min_certain
    surer = named & requested.may_be(counted, start)
    assert not (named & persistent & ~surer).any()
    assert 0 < np.count_nonzero(surer & ~persistent) < 0.7 * np.count_nonzero(named & ~persistent)
