"""The clients of a real log over 84 hours: the vectorised form equals the listing, tuple by tuple."""

from collections.abc import Sequence
from datetime import UTC, datetime
from fractions import Fraction

import pytest

import sample_logs
from tests.support import item_factories as small_persistence
from tests.support.item_factories import Case, fast, plain
from transom.core.intervals import HOUR_LENGTH
from transom.features.persistence.algorithm.params import PersistenceParams
from transom.features.persistence.algorithm.reference import Exact
from transom.features.persistence.algorithm.vectorised import TrackerConfig

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
REGULARS = {b"46.105.14.53", b"50.16.19.13", b"66.249.73.135", b"209.85.238.199"}
"""In 51 of the last 72 hours, or more."""


def requests() -> Sequence[tuple[int, bytes]]:
    """Return the times of each client's requests; a truncated line is dropped."""
    result = []
    for hour, lines in sample_logs.apache().items():
        since = int((hour - EPOCH).total_seconds())
        for number, line in enumerate(one for one in lines if one.rstrip("\n").endswith('"')):
            # The order within an hour does not matter.
            result.append(((since * 1_000_000) + number, line.split()[0].encode()))
    return sorted(result)


@pytest.mark.full
def test_many_clients_at_once_equal_the_listing(monkeypatch: pytest.MonkeyPatch) -> None:
    records = requests()
    clients = tuple(sorted({client for _, client in records}))
    monkeypatch.setattr(small_persistence, "ITEMS", clients)
    requested = PersistenceParams(72, Fraction("0.7"), Fraction("0.2"), 2)
    first, last = records[0][0] // HOUR_LENGTH, records[-1][0] // HOUR_LENGTH
    hours = list(range(first, last + 1))
    case = Case(
        TrackerConfig(requested, HOUR_LENGTH),
        records,
        frozenset(),
        hours,
        [first, first + 30, first + 31, first + 80],
    )
    assert len(hours) == 84
    assert len(clients) > 1700
    exact = Exact(72)
    for time, client in records:
        exact.take(client, time // HOUR_LENGTH)
    for state, (hour, tuples, named, remaining) in zip(fast(case), plain(case), strict=True):
        of = state.tuples
        result = {
            (instance, clients[item], start): (counted, latest)
            for instance, item, start, counted, latest in zip(
                *(column.tolist() for column in (of.instance, of.item, of.start, of.counted, of.latest)),
                strict=True,
            )
        }
        assert state.hour == hour
        assert result == tuples
        since = zip(state.reported.item.tolist(), state.reported.since.tolist(), strict=True)
        assert {clients[item]: moment for item, moment in since} == named
        assert {clients[item] for item in state.exited.item.tolist()} == remaining
    persistence = exact.persistence(last)
    assert {client for client, count in persistence.items() if count >= 51} == REGULARS
    assert named is not None
    assert named.keys() >= REGULARS
    assert all(persistence[client] >= 36 for client in named)
