"""Reports of granules without Spark: every value compared with one recomputed from the window's records."""

import gzip
import re
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime
from itertools import groupby
from pathlib import Path
from statistics import fmean
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.stream_factories import base
from transom.arrays.arrow import overlaps_any
from transom.features.aggregates.aggregate_rows import AggregateBuilder
from transom.features.aggregates.algorithm.linear_fit import ONE
from transom.features.aggregates.algorithm.reference_summaries import mean
from transom.features.aggregates.resolve import AggregateBlock, block_of
from transom.features.aggregates.tables_recurring import RecurringItems
from transom.stream import parse

TODAY = 1_700_000_000 // 3600 * 3600
SECONDS = 4 * 3600
DATA = Path(__file__).resolve().parents[1] / "data"
Event = tuple[str | None, int, int | None]
"""User, second and milliseconds of duration, in steps of a thousandth."""


def block(**more: Any) -> AggregateBlock:
    data = base()
    data["aggregates"]["load"] |= {
        "levels": "RANGES 3 HOURS, 1 HOUR SLIDES 1 HOUR, 20 MINUTES",
        "measures": {"n": "count", "took": "mean(took)"},
        **more,
    }
    return block_of(parse(data, "app.yaml"), "load")


def granules(events: list[Event], of: AggregateBlock) -> pa.RecordBatch:
    """Return the granules that the stage would compute from some events."""
    length = of.base // 1_000_000
    grouped: dict[tuple[Any, int], list[int | None]] = {}
    for user, second, took in events:
        grouped.setdefault((user, second - second % length), []).append(took)
    rows = [
        {
            "granule": start * 1_000_000,
            "user": user,
            "records": len(values),
            "values_took": len(known),
            "sum_took": sum(known) if known else None,
            "min_took": min(known, default=None),
            "max_took": max(known, default=None),
            # Any numbers that differ for different values are hashes to the windows.
            "hashes_took": sorted({6000 + value for value in known}) or None,
        }
        for (user, start), values in grouped.items()
        for known in [[value for value in values if value is not None]]
    ]
    numbers = {name: pa.int64() for name in ("records", "values_took", "sum_took", "min_took", "max_took")}
    hashes = {"hashes_took": pa.list_(pa.int64())}
    schema = pa.schema({"granule": pa.timestamp("us", "UTC"), "user": pa.string(), **numbers, **hashes})
    return pa.RecordBatch.from_pylist(rows, schema)


def line_of(units: list[float], missing_before: int) -> tuple[float, float]:
    """Return slope, and value at the window's first unit, by numpy."""
    slope, first = np.polyfit(range(len(units)), np.array(units), 1)
    return float(slope), float(first - slope * missing_before)


OF_A_UNIT: Mapping[str, Callable[[list[int]], float]] = {"mean": fmean, "sum": sum, "min": min, "max": max}
events_of = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", None]), st.integers(0, SECONDS - 1), st.none() | st.integers(-5000, 9000)
    ),
    min_size=1,
    max_size=40,
)


@given(
    events_of,
    st.sampled_from([0, TODAY]),
    st.sampled_from(["last", "zero"]),
    st.sampled_from(list(OF_A_UNIT)),
)
def test_line_fits_equal_those_of_the_records_of_each_window(
    draws: list[Event], start: int, missing: str, value: str
) -> None:
    of = block(fit={"unit": "10 minutes", "missing": missing, "value": value})
    unit = 600
    events = [(user, start + second, took) for user, second, took in draws]
    periods = [(start * 1_000_000, (start + SECONDS + 3 * 3600) * 1_000_000)]
    computed = AggregateBuilder(of, periods, np.array([], dtype=np.int64))([granules(events, of)])
    rows = pa.Table.from_batches(computed).to_pylist()
    assert rows
    for row in rows:
        low, high = (int(row[name].timestamp()) for name in ("window_start", "window_end"))
        inside = [(t, v) for user, t, v in events if user == row["user"] and low <= t < high]
        assert row["count"] == row["n"] == len(inside)
        counts = [sum(u <= t < u + unit for t, _ in inside) for u in range(low, high, unit)]
        slope, first = line_of([float(count) for count in counts], 0)
        assert row["units_n"] == len(counts)
        assert (row["slope_n"], row["intercept_n"]) == pytest.approx((slope, first), rel=1e-9, abs=1e-9)
        assert row["slope_per_second_n"] == row["slope_n"] / unit
        means = {
            number: OF_A_UNIT[value](some) / 1000
            for number, of_unit in groupby(sorted(inside, key=lambda event: event[0]), lambda e: e[0] // unit)
            for some in [[v for _, v in of_unit if v is not None]]
            if some
        }
        known: list[float] = []
        for number in range(low // unit, high // unit):
            if missing == "zero" and means:
                known.append(means.get(number, 0.0))
            elif known or number in means:
                known.append(means.get(number, known[-1] if known else 0.0))
        assert row["units_took"] == len(known)
        if len(known) < 2:
            assert row["slope_took"] is row["slope_per_second_took"] is row["intercept_took"] is None
            continue
        slope, first = line_of(known, (high - low) // unit - len(known))
        # A mean is rounded to a millionth of the resolution.
        assert row["slope_took"] == pytest.approx(slope, rel=1e-6, abs=1e-8)
        assert row["intercept_took"] == pytest.approx(first, rel=1e-6, abs=1e-7)


@given(events_of, st.sampled_from([0, TODAY]))
def test_aged_means_equal_those_of_the_records_of_each_ring(draws: list[Event], start: int) -> None:
    of = block(aging=[0.25, 1])
    events = [(user, start + second, took) for user, second, took in draws]
    periods = [(start * 1_000_000, (start + SECONDS + 3 * 3600) * 1_000_000)]
    computed = AggregateBuilder(of, periods, np.array([], dtype=np.int64))([granules(events, of)])
    for row in pa.Table.from_batches(computed).to_pylist():
        low, high = (int(row[name].timestamp()) for name in ("window_start", "window_end"))
        near = high - 3600
        inside = [
            (0.25 if t < near else 1.0, took / 1000)
            for user, t, took in events
            if user == row["user"] and low <= t < high and took is not None
        ]
        if not inside:
            assert row["aged_mean_took"] is None
            continue
        aged = sum(weight * took for weight, took in inside) / sum(weight for weight, _ in inside)
        assert row["aged_mean_took"] == pytest.approx(aged, rel=1e-9, abs=1e-9)
        assert "aged_mean_n" not in row


@given(events_of, st.sets(st.integers(-2, 6), min_size=1, max_size=3))
def test_report_is_complete_if_its_window_has_no_incomplete_hour(
    draws: list[Event], lacking: set[int]
) -> None:
    of = block()
    events = [(user, TODAY + second, took) for user, second, took in draws]
    periods = [(TODAY * 1_000_000, (TODAY + SECONDS + 3 * 3600) * 1_000_000)]
    hours = [TODAY + 3600 * number for number in sorted(lacking)]
    incomplete = np.array([1_000_000 * hour for hour in hours], dtype=np.int64)
    computed = AggregateBuilder(of, periods, incomplete)([granules(events, of)])
    for row in pa.Table.from_batches(computed).to_pylist():
        low, high = (int(row[name].timestamp()) for name in ("window_start", "window_end"))
        assert row["complete"] is not any(low < hour + 3600 and hour < high for hour in hours)


@given(events_of, st.sampled_from([0, TODAY]), st.sampled_from([1, 2**17]))
def test_distinct_counts_equal_those_of_the_records_of_each_window(
    draws: list[Event], start: int, at_a_time: int
) -> None:
    """Exact for few values; whole keys may be processed one at a time."""
    of = block(measures={"n": "count", "took": "sum(took)", "kinds": "distinct(took)"})
    events = [(user, start + second, took) for user, second, took in draws]
    periods = [(start * 1_000_000, (start + SECONDS + 3 * 3600) * 1_000_000)]
    with patch("transom.features.aggregates.aggregate_rows.AT_A_TIME", at_a_time):
        computed = list(AggregateBuilder(of, periods, np.array([], dtype=np.int64))([granules(events, of)]))
    for row in pa.Table.from_batches(computed).to_pylist():
        low, high = (int(row[name].timestamp()) for name in ("window_start", "window_end"))
        values = {took for user, t, took in events if user == row["user"] and low <= t < high}
        assert (row["kinds"], row["error_kinds"]) == (len(values - {None}), 0.0)


@given(events_of, st.sampled_from([0, TODAY]))
def test_recurring_items_are_in_every_ring_of_the_records(draws: list[Event], start: int) -> None:
    """Items are durations, here with few values, so that they recur."""
    of = block(recurring=["status"])
    assert of.item_base == 3600 * 1_000_000
    events = [(user, start + second, (took or 0) % 2) for user, second, took in draws]
    grouped = Counter((user, t - t % 3600, status) for user, t, status in events)
    rows = [
        {"granule": t * 1_000_000, "user": user, "status": status, "records": records}
        for (user, t, status), records in grouped.items()
    ]
    schema = pa.schema(
        {
            "granule": pa.timestamp("us", "UTC"),
            "user": pa.string(),
            "status": pa.int64(),
            "records": pa.int64(),
        }
    )
    end = start + SECONDS + 3 * 3600
    incomplete = np.array([start * 1_000_000], dtype=np.int64)
    computed = RecurringItems(of, [(start * 1_000_000, end * 1_000_000)], incomplete)
    result = [
        row for batch in computed([pa.RecordBatch.from_pylist(rows, schema)]) for row in batch.to_pylist()
    ]
    required = []
    for f in range(start + 3600, end + 1, 3600):
        for user, status in {(user, status) for user, _, status in events}:
            times = [t for u, t, s in events if (u, s) == (user, status)]
            rings = [sum(f - far <= t < f - near for t in times) for near, far in ((0, 3600), (3600, 10800))]
            if all(rings):
                complete = not f - 10800 <= start < f
                required.append((f, user, status, rings, complete, f - 3600))
    assert sorted(map(repr, required)) == sorted(
        repr(
            (
                int(row["window_end"].timestamp()),
                row["user"],
                row["status"],
                row["counts"],
                row["complete"],
                int(row["hour"].timestamp()),
            )
        )
        for row in result
    )


def test_aggregates_of_a_real_log_equal_those_of_its_lines() -> None:
    """Ten thousand requests of four days, with bytes instead of durations."""
    lines = gzip.decompress((DATA / "apache_access.log.gz").read_bytes()).decode().splitlines()
    result = [re.match(r'(\S+) .*?\[(.*?)\] ".*" \d+ (\d+|-)', line) for line in lines]
    events: list[Event] = [
        (
            match[1],
            int(datetime.strptime(match[2], "%d/%b/%Y:%H:%M:%S %z").timestamp()),
            None if match[3] == "-" else int(match[3]),
        )
        for match in result
        if match
    ]
    assert len(events) == 10_000
    of = block(
        levels="RANGES 24 HOURS, 6 HOURS, 1 HOUR SLIDES 6 HOURS, 3 HOURS, 1 HOUR",
        fit="1 hour",
        measures={"n": "count", "took": "sum(took)", "sizes": "distinct(took)"},
    )
    first, last = (choose(second for _, second, _ in events) for choose in (min, max))
    periods = [(first * 1_000_000, (last + 24 * 3600) * 1_000_000)]
    computed = AggregateBuilder(of, periods, np.array([], dtype=np.int64))([granules(events, of)])
    by_user: dict[str | None, list[Event]] = {}
    for event in events:
        by_user.setdefault(event[0], []).append(event)
    checked = 0
    for row in pa.Table.from_batches(computed).to_pylist():
        low, high = (int(row[name].timestamp()) for name in ("window_start", "window_end"))
        inside = [(second, took) for _, second, took in by_user[row["user"]] if low <= second < high]
        known = [took for _, took in inside if took is not None]
        assert (row["n"], row["values_took"], row["sizes"]) == (len(inside), len(known), len(set(known)))
        if not known:
            assert row["sum_took"] is row["min_took"] is row["slope_took"] is None
            continue
        steps = (sum(known), min(known), max(known))
        assert tuple(round(row[f"{name}_took"] * 1000) for name in ("sum", "min", "max")) == steps
        units: list[float] = []
        for start in range(low, high, 3600):
            here = [took for second, took in inside if start <= second < start + 3600 and took is not None]
            if here or units:
                units.append(mean(sum(here), len(here)) / ONE / 1000 if here else units[-1])
        assert row["units_took"] == len(units)
        if len(units) > 1:
            slope, at_first = line_of(units, (high - low) // 3600 - len(units))
            largest = max(units)
            assert row["slope_took"] == pytest.approx(slope, rel=1e-9, abs=1e-9 * largest)
            assert row["intercept_took"] == pytest.approx(at_first, rel=1e-9, abs=1e-9 * largest)
            checked += 1
    assert checked > 10_000


def test_possibly_inexact_sums_are_not_reported() -> None:
    """Two values whose sum fits in int64, but not in any order with more values of their size."""
    of = block(aging=[0.25, 1], fit="20 minutes")
    events: list[Event] = [("a", 60, 2**61), ("a", 70, 2**61), ("b", 60, 5)]
    computed = AggregateBuilder(of, [(0, 3600 * 1_000_000)], np.array([], dtype=np.int64))(
        [granules(events, of)]
    )
    reported = {
        (row["user"], row["mean_took"] is None, row["aged_mean_took"] is None, row["slope_n"] is None)
        for row in pa.Table.from_batches(computed).to_pylist()
        if row["units_n"] > 1
    }
    assert reported == {("a", True, True, False), ("b", False, False, False)}


def test_window_beginning_in_an_incomplete_hour_is_incomplete() -> None:
    hours = np.array([3600, 14400], dtype=np.int64) * 1_000_000
    ends = [
        (3600, True),
        (3900, False),
        (7200, False),
        (8999, False),
        (9000, True),
        (14400, True),
        (14401, False),
    ]
    end = np.array([at for at, _ in ends], dtype=np.int64) * 1_000_000
    assert overlaps_any(end - 1800 * 1_000_000, end, hours).tolist() == [not complete for _, complete in ends]


@pytest.mark.full
def test_million_keys_of_one_event_each_are_reported() -> None:
    """Each has an event in one of the hour's three units, which determines its line fit."""
    of = block(
        fit="20 minutes",
        aging=[0.25, 1],
        measures={"n": "count", "kinds": "distinct(took)", "t": "max(took)"},
    )
    number_of = 1_000_000
    number = np.arange(number_of)
    one, value = np.ones(number_of, dtype=np.int64), number % 1000
    rows = {
        "granule": pa.array(number % 3 * 1200 * 1_000_000, pa.timestamp("us", "UTC")),
        "user": pa.array(number).cast(pa.string()),
        "records": one,
        **{"values_took": one, "sum_took": value, "min_took": value, "max_took": value},
        "hashes_took": pa.ListArray.from_arrays(
            pa.array(np.arange(number_of + 1), pa.int32()), pa.array(value + 1)
        ),
    }
    hour_after = (3599 * 1_000_000, 3600 * 1_000_000)
    computed = list(AggregateBuilder(of, [hour_after], np.array([], dtype=np.int64))([pa.record_batch(rows)]))
    result = pa.Table.from_batches(computed)
    result = result.filter(pc.equal(result["level"], 0))
    assert len(result) == pc.count_distinct(result["user"]).as_py() == number_of
    assert all(pc.all(pc.equal(result[name], 1)).as_py() for name in ("n", "kinds", "values_t"))
    user = result["user"].cast(pa.int64()).to_numpy()
    assert np.array_equal(result["slope_n"].to_numpy(), np.array([-0.5, 0.0, 0.5])[user % 3])
    assert np.array_equal(result["max_t"].to_numpy(), user % 1000 / 1000)
    assert np.array_equal(result["aged_mean_t"].to_numpy(), result["max_t"].to_numpy())


def test_single_key_with_all_granules_is_reported() -> None:
    """A granule in each minute of a fortnight, every hundredth of them with a value of its own."""
    of = block(
        levels="RANGES 7 DAYS, 1 HOUR SLIDES 1 HOUR, 1 MINUTE", measures={"n": "count", "sum": "sum(took)"}
    )
    events: list[Event] = [("a", 60 * minute, minute % 100) for minute in range(14 * 1440)]
    end = 14 * 86400
    periods = [((end - 3600) * 1_000_000, end * 1_000_000)]
    computed = AggregateBuilder(of, periods, np.array([], dtype=np.int64))([granules(events, of)])
    result = {
        (row["level"], int(row["window_end"].timestamp())): row
        for row in pa.Table.from_batches(computed).to_pylist()
    }
    assert len(result) == 61
    week = result[1, end]
    assert (week["n"], round(week["sum"] * 1000)) == (
        7 * 1440,
        sum(took or 0 for _, _, took in events[7 * 1440 :]),
    )
    assert all(result[0, end - 60 * back]["n"] == 60 for back in range(60))


def test_no_item_granules_give_no_rows() -> None:
    assert (
        list(RecurringItems(block(recurring=["status"]), [(0, 10)], np.array([], dtype=np.int64))([])) == []
    )
