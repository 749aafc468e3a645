"""Frequencies equal those of the listings on the whole log, for any history of the lake."""

import random
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from copy import deepcopy
from datetime import timedelta

import pytest
from deltalake import DeltaTable

from tests.support import item_histories as sketched
from tests.support.item_histories import HOUR, Event, bytes_of, live, micros
from tests.support.stream_harness import StreamHarness, hour, line
from transom.api import StaleDataError, read
from transom.app.audit import audit as audit_stage
from transom.app.freshness import freshness_of
from transom.features.frequency.algorithm.reference import (
    Perfect,
    Proportional,
    Simple,
    Vanilla,
    WindowedCountMin,
)
from transom.features.frequency.algorithm.splitter_reference import FixedPointSplitter
from transom.features.frequency.audit import audit
from transom.features.frequency.resolve import FrequencyBlock, frequency_block_of

Make = Callable[..., StreamHarness]
HOURS = 12

FREQUENT = (
    sketched.STREAM
    + """frequency:
  clients: {item: [client], window: 4 hours, tick: 5 minutes, epsilon: 0.4, delta: 0.3, top: 2,
            min_share: 0.2}
  answers: {item: [client, bytes], where: status = 200, window: 3 hours, tick: 20 minutes, epsilon: 0.6,
            delta: 0.5, top: 3, seed: 5, min_share: 0.3, watch: [[10.0.0.9, 7]], finding: false}
  simple: {item: [client], window: 3 hours, tick: 1 hour, epsilon: 0.5, delta: 0.5, variant: simple, top: 2,
           min_share: 0.3}
  proportional: {item: [client], window: 2 hours, tick: 30 minutes, epsilon: 0.5, delta: 0.5,
                 variant: proportional, top: 2, min_share: 0.020000000000000007}
  splitter: {item: [client], window: 3 hours, tick: 15 minutes, epsilon: 0.9, delta: 0.25, top: 2,
             min_share: 0.3, variant: splitter, tau: 0.3, start: 2015-05-17T03:00,
             watch: [10.0.0.4, 10.0.0.11]}
  ever: {item: [client], window: 1 hour, tick: 1 hour, epsilon: 0.5, delta: 0.25, top: 2, variant: vanilla,
         min_share: 0.4}
"""
)
LISTINGS: Mapping[str, Callable[..., WindowedCountMin]] = {
    "perfect": Perfect, "simple": Simple, "proportional": Proportional, "vanilla": Vanilla
}  # fmt: skip
FREQUENCIES = {"clients", "answers", "simple", "proportional", "splitter", "ever"}
ASKED = (1, 8)
"""Hours in which any item is queried: one with a window that begins before the log, and one that follows
hours of all kinds.
"""
KEPT = 3
"""Multiple of `top` stored for an hour: few, so that some items are dropped."""


@pytest.fixture(autouse=True)
def _few_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transom.features.frequency.spec.CAPACITY_FACTOR", KEPT)


def requests(rng: random.Random) -> list[list[str]]:
    """Return requests of some clients often, of the others seldom; some hours have none, and one grows."""
    log: list[list[str]] = []
    for number in range(HOURS):
        lines = []
        for client in range(1, 14):
            often = 30 if client == 1 else 12 if client == 2 and number > 5 else 3
            for _ in range(0 if number == 7 else rng.randrange(often)):
                sent, status = rng.choice([0, 7, "-"]), rng.choice([200, 404])
                lines.append(line(3600 * number + rng.randrange(3600), f"10.0.0.{client}", sent, status))
        log.append(lines)
    return log


def listing_of(block: FrequencyBlock, first: int) -> WindowedCountMin:
    """Return the listing as of the end of the tick before the first."""
    if block.variant == "splitter":
        return FixedPointSplitter(block.shape, block.steps, first - 1, block.tau, block.mu)
    return LISTINGS[block.variant](block.shape, block.steps, first - 1)


Hour = tuple[int, WindowedCountMin, Mapping[int, Counter[bytes]]]


def hours_of(
    harness: StreamHarness, name: str, events: Sequence[Event], requested: Sequence[int]
) -> Iterator[Hour]:
    """Yield each requested hour with the listing at its end, and the items of hours."""
    block = frequency_block_of(harness.stream, name)
    observed: dict[int, Counter[bytes]] = {}
    for event in events:
        # A record without a value in a column has no item.
        if name != "answers" or (event["status"] == 200 and event["bytes"] is not None):
            item = bytes_of([event[column] for column in block.item])
            observed.setdefault(micros(event["event_time"]) // block.tick, Counter())[item] += 1
    of_hours = {
        at: sum(
            (observed.get(at // block.tick + tick, Counter()) for tick in range(block.ticks)),
            Counter[bytes](),
        )
        for at in range(min(requested), max(requested) + HOUR, HOUR)
    }
    listing = listing_of(block, min(requested) // block.tick)
    for at in range(min(requested), max(requested) + HOUR, HOUR):
        counts = block.start is None or at >= block.start
        for tick in range(at // block.tick, (at + HOUR) // block.tick):
            for item, times in observed.get(tick, Counter()).items() if counts else ():
                listing.update_sample(item, times)
            listing.update_tick()
        if at in requested:
            # A read cell writes down its result.
            yield at, deepcopy(listing), of_hours


def expected(
    harness: StreamHarness, name: str, events: Sequence[Event], requested: Sequence[int]
) -> list[Event]:
    """Return the rows of a block in requested hours, computed record by record."""
    block = frequency_block_of(harness.stream, name)
    watched = {bytes_of(item) for item in block.watched}
    heavy, rows, before = dict[bytes, int](), [], min(requested)
    for at, listing, of_hours in hours_of(harness, name, events, requested):
        if at - before > block.hours * HOUR:
            heavy = {}  # records before the window are unknown
        before, now = at, dict[bytes, int]()
        stay = heavy.keys() if block.variant == "vanilla" else set()
        for row in expected_rows(block, listing, of_hours, at, watched, stay):
            if row.pop("heavy"):
                now[row["item"]] = heavy.get(row["item"], at + HOUR)
            since = now.get(row["item"])
            change = None if since is None else "entered" if since == at + HOUR else "stays"
            rows.append({**row, "since": since, "change": change})
        removed = heavy.keys() - now.keys()
        rows += [
            {"item": item, "end": at + HOUR, "change": "left", "watched": item in watched} for item in removed
        ]
        heavy = now
    return rows


def truth_of(block: FrequencyBlock, of_hours: Mapping[int, Counter[bytes]], at: int) -> Counter[bytes]:
    """Return each item's count in the window that ends with an hour; for vanilla, of all time."""
    back = len(of_hours) if block.variant == "vanilla" else block.hours
    first = max(at - (back - 1) * HOUR, block.start or 0)
    return sum((count for one, count in of_hours.items() if first <= one <= at), Counter[bytes]())


def recounted(
    harness: StreamHarness, name: str, events: Sequence[Event], requested: Sequence[int]
) -> dict[str, int]:
    """Return the counts of an audit of a block, over all windows."""
    block = frequency_block_of(harness.stream, name)
    result = dict.fromkeys(("items", "records", "error", "most", "beyond", "below", "outside"), 0)
    for at, listing, of_hours in hours_of(harness, name, events, requested):
        truth = truth_of(block, of_hours, at)
        for item, count in truth.items():
            off = listing.estimate(item) - count
            result["items"] += 1
            result["records"] += count
            result["error"] += abs(off)
            result["most"] = max(result["most"], abs(off))
            result["beyond"] += off > 0 and off >= block.shape.epsilon * (truth.total() - count)
            result["below"] += off < 0
    return result


def expected_rows(
    block: FrequencyBlock,
    listing: WindowedCountMin,
    of_hours: Mapping[int, Counter[bytes]],
    at: int,
    watched: set[bytes],
    stay: Collection[bytes],
) -> list[Event]:
    """Return the rows of an hour's items, including items that were heavy."""
    first = max(at - (block.hours - 1) * HOUR, block.start or 0)
    hours = [one for one in range(first, at + HOUR, HOUR) if one in of_hours]
    low, left_out, kept_in = Counter[bytes](), {}, {}
    for one in hours:
        others = {item: count for item, count in of_hours[one].items() if item not in watched}
        ranked = sorted(others, key=lambda item: (-others[item], item))
        retained = {*ranked[: block.capacity], *(watched & of_hours[one].keys())}
        left_out[one] = max((others[item] for item in ranked[block.capacity :]), default=0)
        kept_in[one] = retained
        low.update({item: of_hours[one][item] for item in retained})
    records = sum(sum(of_hours[one].values()) for one in hours)
    unseen = sum(left_out.values())
    if block.variant == "vanilla":
        records = sum(sum(count.values()) for one, count in of_hours.items() if one <= at)
        unseen = records
    rows = []
    for item in {*low, *stay}:
        high = low[item] + (0 if item in watched else sum(
            left_out[one] for one in hours if item not in kept_in[one]
        ))  # fmt: skip
        estimate, margin = listing.estimate(item), block.shape.epsilon * records
        if block.variant == "perfect":
            high = min(high, estimate)
        elif block.variant == "vanilla":
            high = estimate
        elif isinstance(listing, FixedPointSplitter):
            raw, (minimum, limit) = estimate, listing.bounds(item)
            high = min(high, int(limit))
            margin = min(margin + max(raw - int(minimum), 0), records)
        reported_items = min(max(estimate, low[item]), high)
        rows.append({
            "item": item, "end": at + HOUR, "low": low[item], "high": high,
            "estimate": reported_items, "records": records,
            "error_bound": None if block.variant in ("simple", "proportional") else pytest.approx(margin),
            "watched": item in watched,
            "heavy": reported_items >= block.min_share * records,
        })  # fmt: skip
    rows.sort(key=lambda row: (-row["estimate"], -row["low"], sketched.texts_of(row["item"], block.item)))
    for rank, row in enumerate(rows, 1):
        row["rank"] = rank
    reported_items = [row for row in rows if row["rank"] <= block.top or row["watched"] or row["heavy"]]
    others = max([unseen, *(row["high"] for row in rows if row not in reported_items)])
    return [{**row, "max_unreported": others} for row in reported_items]


def reported_items(harness: StreamHarness, name: str) -> Iterator[Event]:
    block = frequency_block_of(harness.stream, name)
    for text, row in sketched.item_rows(harness, "frequencies", name, block.item):
        if row["change"] != "left":
            text |= {
                column: row[column]
                for column in ("low", "high", "estimate", "rank", "error_bound", "max_unreported")
            }
            text |= {"since": row["since"] and micros(row["since"]), "records": row["window_records"]}
        yield text


def check(harness: StreamHarness, requested: Sequence[int]) -> None:
    blocks = harness.stream.frequency
    for name, rows in sketched.blocks_as_expected(harness, reported_items, expected, blocks, requested):
        # In five hours no item of `answers` remains.
        changes = {"entered", "stays"} if len(requested) > 5 else {"entered"}
        assert {row["change"] for row in rows} >= changes, name
        assert len({row["item"] for row in rows}) > 2, name


def check_queries(
    harness: StreamHarness, name: str, events: Sequence[Event], requested: Sequence[int]
) -> int:
    """Query items in each hour, stored or not: the count of an item that no hour has stored."""
    block, lake = frequency_block_of(harness.stream, name), read(harness.folder / "whole", harness.stream)
    values = {tuple(event[column] for column in block.item) for event in events if event["bytes"] is not None}
    nobody = ("nobody", 7)[: len(block.item)]
    by_key, not_kept = {bytes_of(of): of for of in values | {nobody}}, 0
    for number, (at, listing, of_hours) in enumerate(hours_of(harness, name, events, requested)):
        if number not in ASKED:
            continue
        truth, keys = truth_of(block, of_hours, at), sorted(by_key)
        estimates = dict(zip(keys, lake.sketch(name, hour(number + 1)).estimates(keys).tolist(), strict=True))
        assert estimates == {key: listing.estimate(key) for key in keys}, (name, number)
        seldom = sorted(truth, key=lambda key: (truth[key], key))
        for key in (bytes_of(nobody), *seldom[:1], *seldom[-1:]):
            result = lake.frequency(name, by_key[key], hour(number + 1))
            assert result.low <= truth[key] <= result.high, (name, number, key)
            assert result.estimate == min(max(estimates[key], result.low), result.high), (name, number, key)
            not_kept += result.low == 0 < truth[key]
    return not_kept


def test_frequencies_of_one_run_equal_those_of_the_listings(make_stream: Make) -> None:
    sketched.run_once(make_stream(FREQUENT), requests(random.Random(4))[:5], check)


@pytest.mark.full
def test_frequencies_equal_those_of_the_listings_for_any_history(make_stream: Make) -> None:
    """Slow (a minute): six blocks, six runs and an audit, each hour compared with the listing."""
    log = requests(random.Random(4))
    actual, whole = make_stream(FREQUENT, "lived"), make_stream(FREQUENT, "whole")
    late = {2: log[2][1::2], 4: log[4][::2]}
    # Hours 6 and 7 are requested last, after later ones.
    early, later = ((0, 1), (1, 6), (8, HOURS)), ((2, 3), (4, 8), (8, HOURS))
    live(actual, whole, log, late, early, later, check)
    sketched.findings_of_spells(whole, "frequencies", "heavy_hitter", FREQUENCIES - {"answers"})
    events, hours = whole.rows_of("events"), [micros(hour(number)) for number in range(HOURS)]
    # In chunks of five hours, the last one shorter.
    stream, interval = (
        whole.stream.model_copy(update={"chunk": timedelta(hours=5)}),
        whole.context(0, HOURS).interval,
    )
    audits = audit(whole.spark, stream, interval, whole.root, freshness_of(whole.stream, whole.snapshot()))
    assert {result.block for result in audits} == FREQUENCIES
    for result in audits:
        assert (result.windows, result.sound) == (HOURS, True)
        assert result.counts == recounted(whole, result.block, events, hours)
        assert result.counts["error"] > 0
    # Every hour stores all the others.
    of_not_kept = {name for name in FREQUENCIES if check_queries(whole, name, events, hours)}
    assert of_not_kept == {"clients", "simple", "splitter", "ever"}
    lake = read(whole.folder / "whole", whole.stream)
    for name in FREQUENCIES - {"answers"}:
        last = [
            row
            for row in expected(whole, name, events, hours)
            if "low" in row and row["end"] == hours[-1] + HOUR
        ]
        for row in last[:2]:
            result = lake.frequency(name, row["item"].decode(), hour(HOURS))
            assert (result.estimate, result.low, result.high) == (row["estimate"], row["low"], row["high"])
            assert (result.margin, result.records) == (row["error_bound"], row["records"])
            sketch = lake.sketch(name, hour(HOURS))
            raw = int(sketch.estimates([row["item"]])[0])
            assert min(max(raw, result.low), result.high) == result.estimate
            assert int((sketch + sketch).estimates([row["item"]])[0]) in range(2 * raw - 1, 2 * raw + 2)
    window = [event["client"] for event in events if event["hour"] >= hour(HOURS - 4)]
    for client in ("10.0.0.5", "10.0.0.12", "nobody"):
        result = lake.frequency("clients", client, hour(HOURS))
        assert result.low <= window.count(client) <= result.high
    pair = ("10.0.0.9", 7)
    assert lake.frequency("answers", [*pair], hour(HOURS)) == lake.frequency("answers", pair, hour(HOURS))
    for sketch, item, at, message in (
        ("client", "a", hour(HOURS), "sketch: frequency has no block 'client'; nearest: clients"),
        ("clients", ("a", "b"), hour(HOURS), "item: must have a value for each of client; got ('a', 'b')"),
        ("clients", b"a", hour(HOURS), "item: must be a string for client; got b'a'"),
        ("clients", None, hour(HOURS), "item: must be a string for client; got None"),
        ("answers", ("a", True), hour(HOURS), "item: must be an integer for bytes; got True"),
        ("answers", ("a", 2**63), hour(HOURS), "item: must be of 64 bits for bytes; got 9223372036854775808"),
        (
            "clients",
            "\ud800",
            hour(HOURS),
            "item: must be text that UTF-8 can write for client; got '\\ud800'",
        ),
        ("clients", "x" * 4097, hour(HOURS), "item: one of more than 4,096 bytes is skipped; got 4,097"),
        ("clients", "a", "2015-05-17T10:00", "must be a datetime; got '2015-05-17T10:00'"),
        ("clients", "a", hour(HOURS) + timedelta(minutes=5), "at: must be the end of an hour; got 2015-"),
        ("clients", "a", hour(HOURS).replace(tzinfo=None), "must be a time with a zone; got 2015-05-"),
    ):
        with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
            lake.frequency(sketch, item, at)
    with pytest.raises(
        StaleDataError, match=r"^no run has requested 2015-05-17T12:00, in which the window ends"
    ):
        lake.frequency("clients", "a", hour(HOURS + 1))


@pytest.mark.full
def test_audit_is_recorded_and_fails_the_job_if_a_row_is_wrong(
    make_stream: Make, caplog: pytest.LogCaptureFixture
) -> None:
    """Slow (20 seconds): six blocks run, and are audited twice."""
    caplog.set_level("INFO", "transom")
    one = make_stream(FREQUENT, "one")
    for number, lines in enumerate(requests(random.Random(5))[:6]):
        one.land(number, lines)
    one.run(0, 6)
    interval = one.context(0, 6).interval
    audit_stage(["frequency"], one.spark, one.stream, interval, one.root)
    run = one.ledger.runs()[-1]
    work = run["counters"]
    assert (run["trigger"], run["from"], run["to"]) == ("audit", hour(0), hour(6))
    assert work["clients.outside"] == 0
    assert work["clients.mean_error_millionths"] == round(1e6 * work["clients.error"] / work["clients.items"])
    assert "0 outside the published bounds" in caplog.text
    # The true count is one more than the row's.
    first = "block = 'clients' AND rank = 1"
    DeltaTable(f"{one.root}/frequencies").update(
        updates={"low": "low - 1", "high": "low - 1"}, predicate=first
    )
    with pytest.raises(SystemExit, match="the audit has found items below the guarantee or outside"):
        audit_stage(["frequency"], one.spark, one.stream, interval, one.root)
    assert one.ledger.runs()[-1]["counters"]["clients.outside"] == 6
