"""Persistent items equal those of the listing on the whole log, for any history of the lake."""

import random
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from tests.support import item_histories as sketched
from tests.support.item_factories import Case, plain
from tests.support.item_histories import HOUR, MICROS, Event, bytes_of, live, micros
from tests.support.stream_harness import StreamHarness, hour, line
from transom.app.freshness import freshness_of
from transom.features.persistence.algorithm.reference import Exact
from transom.features.persistence.audit import audit
from transom.features.persistence.resolve import PersistenceBlock, persistence_block_of
from transom.storage.tables import LakeError

Make = Callable[..., StreamHarness]
HOURS = 16

PERSISTENT = (
    sketched.STREAM
    + """persistence:
  clients: {item: [client], slot: 1 hour, window: 6 hours, alpha: 0.7, epsilon: 0.4}
  pairs: {item: [client, status], where: bytes > 0, slot: 20 minutes, window: 4 hours, alpha: 0.5,
          epsilon: 0.3, delta: 0.2, seed: 5, finding: false}
  slow: {item: [client], slot: 3 hours, window: 15 hours, alpha: 0.8, epsilon: 0.5, watch: [10.0.0.3]}
"""
)


def requests(rng: random.Random) -> list[list[str]]:
    """Return requests of some clients in every hour and of others in some. One is absent half of the time,
    one soon disappears, one is periodic.
    """
    chances = {1: 1.0, 2: 0.8, 3: 0.3, 4: 0.7}
    log: list[list[str]] = []
    for number in range(HOURS):
        lines = []
        for client, chance in chances.items():
            if rng.random() < chance and not (client == 1 and 6 <= number < 11):
                for _ in range(rng.choice([1, 2, 5])):
                    sent, status = rng.choice([0, 7, "-"]), rng.choice([200, 404])
                    lines.append(line(3600 * number + rng.randrange(3600), f"10.0.0.{client}", sent, status))
        lines += [line(3600 * number + 1200 * turn + 5, "10.0.0.5", 7, 200) for turn in range(3)]
        lines += [line(3600 * number + 9, "10.0.0.6", 7, 404)] * (number < 3)
        log.append(lines)
    return log


def expected(
    harness: StreamHarness, name: str, events: Sequence[Event], requested: Sequence[int]
) -> Iterator[Event]:
    """Return the rows of a block in requested hours, computed record by record."""
    block = persistence_block_of(harness.stream, name)
    selected = [e for e in events if name != "pairs" or (e["bytes"] or 0) > 0]
    selected.sort(key=lambda event: event["event_time"])
    records = [(micros(e["event_time"]), bytes_of([e[column] for column in block.item])) for e in selected]
    watched = frozenset(map(bytes_of, block.watched))
    hours = [at // HOUR for at in requested]
    case = Case(block.tracking, records, watched, hours, [], block.seeds[0])
    for number, tuples, named, remaining in plain(case):
        if named is None or number not in hours:
            continue
        end, oldest = (number + 1) * HOUR, dict[bytes, tuple[int, int]]()
        for (_, item, start), (counted, _) in tuples.items():
            oldest[item] = min((start, counted), oldest.get(item, (start, counted)))
        for item in {*named, *(watched & oldest.keys())}:
            yield expected_row(selected, block, item, *oldest[item], end, named.get(item), item in watched)
        for item in remaining:
            yield {"item": item, "end": end, "change": "left", "watched": item in watched}


def expected_row(
    events: Sequence[Event],
    block: PersistenceBlock,
    item: bytes,
    start: int,
    counted: int,
    end: int,
    since: int | None,
    watched: bool,
) -> Event:
    length, of = block.tracking.length, block.tracking.params
    first = end // length - of.slots
    times: dict[int, list[int]] = {}
    for event in events:
        time = micros(event["event_time"])
        if start * length <= time < end and bytes_of([event[c] for c in block.item]) == item:
            times.setdefault(time // length, []).append(time)
    contacts = [min(times[slot]) // block.tracking.unit for slot in sorted(times)]
    gaps = [(later - one) * block.tracking.unit / MICROS for one, later in pairwise(contacts)]
    mean = sum(gaps) / len(gaps) if gaps else None
    spread = (sum((gap - mean) ** 2 for gap in gaps) / len(gaps)) ** 0.5 / mean if mean else None
    high = counted if watched else counted + start - first
    estimate = min(of.estimate(counted), high)
    change = None if since is None else "entered" if since == end else "stays"
    return {
        "item": item, "end": end, "change": change, "low": counted, "high": high,
        "estimate": pytest.approx(float(estimate)),
        "is_certain": counted >= of.alpha * of.slots, "watched": watched, "since": since,
        "first": start * length, "last": max(times) * length, "records": sum(map(len, times.values())),
        "slots": "".join(
            "1" if slot in times else "0" if watched or slot >= start else "?"
            for slot in range(first, first + of.slots)
        ),
        "mean": None if mean is None else pytest.approx(mean), "spread": None if spread is None else
        pytest.approx(spread, abs=1e-6),
    }  # fmt: skip


def reported_items(harness: StreamHarness, name: str) -> Iterator[Event]:
    block = persistence_block_of(harness.stream, name)
    for output, row in sketched.item_rows(harness, "persistent_items", name, block.item):
        assert row["is_certain"] or row["low"] is None or row["low"] < block.tracking.params.min_certain
        if row["change"] != "left":
            output |= {
                name: row[name] for name in ("low", "high", "estimate", "is_certain", "records", "slots")
            }
            output |= {
                "since": row["since"] and micros(row["since"]), "first": micros(row["first_slot"]),
                "last": micros(row["last_slot"]), "mean": row["gap_mean_s"], "spread": row["gap_cv"],
            }  # fmt: skip
        yield output


def check(harness: StreamHarness, requested: Sequence[int]) -> None:
    blocks = harness.stream.persistence
    for name, rows in sketched.blocks_as_expected(harness, reported_items, expected, blocks, requested):
        changes = {row["change"] for row in rows}
        # In six hours few enter, and none has left.
        assert changes >= ({"entered", "stays"} if len(requested) > 6 else {"entered"}), name
        assert name != "clients" or len(requested) <= 6 or "left" in changes


def test_items_of_one_run_equal_those_of_the_listing(make_stream: Make) -> None:
    sketched.run_once(make_stream(PERSISTENT), requests(random.Random(4))[:6], check)


@pytest.mark.full
def test_items_equal_those_of_the_listing_for_any_history(make_stream: Make) -> None:
    """Slow (half a minute): six runs and an audit, each hour compared with the listing."""
    log = requests(random.Random(4))
    actual, whole = make_stream(PERSISTENT, "lived"), make_stream(PERSISTENT, "whole")
    late = {4: log[4][1::2], 9: log[9][::2]}
    # Hours 6 to 8 are requested last, after later ones.
    early, later = ((0, 1), (1, 6), (9, 10), (10, HOURS)), ((4, 5), (6, 9), (9, HOURS))
    live(actual, whole, log, late, early, later, check)
    events, named = whole.rows_of("events"), whole.rows_of("persistent_items")
    interval, fresh = whole.context(0, HOURS).interval, freshness_of(whole.stream, whole.snapshot())
    for result in audit(whole.spark, whole.stream, interval, whole.root, fresh):
        assert result.sound
        counts = recounted(whole, result.block, events, named)
        assert {name: result.counts[name] for name in counts} == counts
        assert result.counts["tuples"] > 0
        assert result.windows == HOURS // max(
            1, (whole.stream.persistence[result.block].slot // timedelta(hours=1))
        )
    # A persisting item is one finding, and so is one that has left; a block without findings has none.
    findings = sketched.findings_of_spells(whole, "persistent_items", "persistent_item", {"clients", "slow"})
    ongoing = [finding for finding in findings if finding.ongoing]
    assert {finding.item for finding in ongoing if finding.block == "clients"} == {
        row["client"]
        for row in whole.rows_of("persistent_items")
        if row["block"] == "clients" and row["hour"] == hour(HOURS - 1) and row["state"] == "partial"
    }


def recounted(
    harness: StreamHarness, name: str, events: Sequence[Event], rows: Sequence[Event]
) -> dict[str, int]:
    """Return the counts of an audit of a block, over all windows."""
    block = persistence_block_of(harness.stream, name)
    tracking, requested = block.tracking, block.tracking.params
    exact, counts = (
        Exact(requested.slots),
        dict.fromkeys(("items", "pairs", "persistent", "missed", "transient", "named_wrongly"), 0),
    )
    for event in events:
        if name != "pairs" or (event["bytes"] or 0) > 0:
            item = bytes_of([event[column] for column in block.item])
            exact.take(item, micros(event["event_time"]) // tracking.length)
    for number in range(HOURS):
        end = micros(hour(number)) + HOUR
        if end % tracking.length:
            continue
        reported_items = {
            bytes_of([row[column] for column in block.item])
            for row in rows
            if row["block"] == name
            and micros(row["window_end"]) == end
            and row["since"]
            and row["low"] is not None
        }
        for item, count in exact.persistence(end // tracking.length - 1).items():
            persistent = count >= requested.min_certain
            counts["items"] += 1
            counts["pairs"] += count
            counts["persistent"] += persistent
            counts["missed"] += persistent and item not in reported_items
            counts["transient"] += not persistent
            counts["named_wrongly"] += not persistent and item in reported_items
    return counts


IGNORING = """
  known: {item: [client], slot: 1 hour, window: 4 hours, alpha: 1, epsilon: 0.9, ignore: IGNORED}
"""


@pytest.mark.full
def test_ignored_items_are_tracked_and_not_reported(make_stream: Make, tmp_path: Path) -> None:
    """Slow (20 seconds): several runs of the sketches."""
    text = f"{sketched.STREAM}persistence:\n{IGNORING}"
    path = tmp_path / "known"
    write_deltalake(path, pa.table({"ip": ["10.0.0.1"]}))
    day = make_stream(text.replace("IGNORED", "{}"))
    for number in range(3):
        day.land(number, [line(3600 * number, f"10.0.0.{n}") for n in (1, 2)] + [line(3600 * number, "::7")])
    day.run(0, 3)
    tuples = day.store.pin(["tuples"]).versions
    observed = {"{}": clients(day)}
    assert observed["{}"] == {"10.0.0.1", "10.0.0.2", "::7"}
    table = f"{{table: {{path: {path}, columns: {{client: ip}}}}}}"
    for known, remaining in (
        ("{items: [10.0.0.2]}", {"10.0.0.1", "::7"}),
        ("{networks: {client: [10.0.0.0/31, '::/64']}}", {"10.0.0.2"}),
        (table, {"10.0.0.2", "::7"}),
    ):
        day = make_stream(text.replace("IGNORED", known))
        day.stage("persistence", 0, 3)
        assert clients(day) == remaining, known
        # The tracked state does not depend on it.
        assert day.store.pin(["tuples"]).versions == tuples
    write_deltalake(path, pa.table({"ip": ["10.0.0.2"]}), mode="append")
    assert day.stage("persistence", 0, 3).published == 3
    assert clients(day) == {"::7"}
    DeltaTable(path).delete()
    day.stage("persistence", 0, 3)
    assert clients(day) == observed["{}"]
    assert day.stage("persistence", 0, 3).published == 0
    write_deltalake(path, pa.table({"host": ["10.0.0.2"]}), mode="overwrite", schema_mode="overwrite")
    with pytest.raises(
        LakeError, match=r"^persistence.known.ignore.table.columns.client: .* has no column 'ip'"
    ):
        day.stage("persistence", 0, 3)


def clients(harness: StreamHarness) -> set[str]:
    return {row["client"] for row in harness.rows_of("persistent_items")}
