"""Aggregates of any horizon from granules, for one key without Spark and for all keys with it."""

import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from pyspark.sql import SparkSession

from tests.support.stream_harness import StreamHarness, hour, line
from transom.api import RESULTS, Results, StaleDataError, UnknownKey, read
from transom.engine.reader import sql_literal
from transom.storage.tables import Table, descriptions
from transom.stream import parse

Make = Callable[..., StreamHarness]

STREAM = """
name: web
preset: apache/combined
source: {path: "landing/web/%Y-%m-%d/access.%H*.log.gz", expected_files: 1}
key: [client]
repair_window: 1 hour
retention: 4 hours
aggregates:
  traffic:
    measures: {n: count, sent: mean(bytes), kinds: distinct(status)}
    levels: RANGES 3 HOURS, 40 MINUTES SLIDES 1 HOUR, 20 MINUTES
    fit: 10 minutes
    aging: [0.25, 1]
"""
Event = tuple[int, str, int, int]
"""Second, client, bytes and status."""
DRAWN = np.random.default_rng(5)
EVENTS: list[Event] = [
    (int(at), f"it's{client}", int(sent), int(status))
    for at, client, sent, status in zip(
        np.sort(DRAWN.integers(0, 5 * 3600, 300)),
        DRAWN.integers(0, 3, 300),
        DRAWN.integers(0, 10**6, 300),
        DRAWN.choice([200, 301, 404], 300),
        strict=True,
    )
]


def results(harness: StreamHarness) -> Results:
    return read(harness.folder / "lake", harness.stream)


@pytest.fixture
def history(make_stream: Make) -> StreamHarness:
    """Return a lake of five hours."""
    day = make_stream(STREAM)
    for number in range(5):
        day.land(number, [line(*event) for event in EVENTS if event[0] // 3600 == number])
    day.run(0, 5)
    return day


def recomputed(client: str, until: int, length: int) -> dict[str, Any] | None:
    """Return the aggregates of a client from its events, in seconds of the day."""
    inside = [event for event in EVENTS if event[1] == client and until - length <= event[0] < until]
    if not inside:
        return None
    sent = [event[2] for event in inside]
    units = []
    for start in range(until - length, until, 600):
        here = [event[2] for event in inside if start <= event[0] < start + 600]
        if here or units:
            units.append(float(np.mean(here)) if here else units[-1])
    slope, first = np.polyfit(range(len(units)), units, 1) if len(units) > 1 else (None, None)
    weights = [1.0 if event[0] >= until - 2400 else 0.25 for event in inside]
    return {
        "window_start": hour(0) + timedelta(seconds=until - length),
        "window_end": hour(0) + timedelta(seconds=until),
        "client": client,
        "count": len(inside),
        "n": len(inside),
        "sent": np.mean(sent),
        "values_sent": len(sent),
        "sum_sent": sum(sent),
        "mean_sent": np.mean(sent),
        "min_sent": min(sent),
        "max_sent": max(sent),
        "aged_mean_sent": np.average(sent, weights=weights),
        "units_sent": len(units),
        "slope_sent": slope,
        "slope_per_second_sent": None if slope is None else slope / 600,
        "intercept_sent": None if slope is None else first - slope * (length // 600 - len(units)),
        "kinds": len({event[3] for event in inside}),
        "error_kinds": 0.0,
        "complete": True,
    }


def close(result: dict[str, Any] | None, required: dict[str, Any] | None) -> None:
    """Compare the requested values, except for the last digits of doubles."""
    if result is None or required is None:
        assert result is required
        return
    for name, value in required.items():
        about = pytest.approx(value, rel=1e-6, abs=1e-6) if isinstance(value, float) else value
        assert result[name] == about, name


def test_aggregates_of_a_horizon_equal_those_of_its_events(
    spark: SparkSession, history: StreamHarness
) -> None:
    """From ten minutes to more than the widest window, with any end; with Spark and without."""
    web = results(history)
    clients = sorted({event[1] for event in EVENTS})
    for until, length in ((18000, 600), (18000, 10800), (15000, 2400), (17400, 3000), (18000, 9000)):
        end = hour(0) + timedelta(seconds=until)
        required = {client: recomputed(client, until, length) for client in clients}
        alone = {
            client: web.horizon({"client": client}, end, timedelta(seconds=length)) for client in required
        }
        for client, values in required.items():
            close(alone[client], values)
        every = web.horizons(spark, end, f"{length // 60} minutes").toArrow().to_pylist()
        assert {row["client"]: row for row in every} == {c: row for c, row in alone.items() if row}
    with pytest.raises(UnknownKey, match=r"key: no hour of block traffic has a record of client 'nobody'$"):
        web.horizon({"client": "nobody"}, hour(5), "1 hour")


def test_horizon_of_a_level_equals_its_report(history: StreamHarness) -> None:
    web = results(history)
    for row in web.table("aggregates", hour(4), hour(5)).to_pylist():
        result = web.horizon(
            {"client": row["client"]}, row["window_end"], row["window_end"] - row["window_start"], "traffic"
        )
        assert result == {name: row[name] for name in result or ()}


def test_horizon_with_stale_hours_is_refused(history: StreamHarness) -> None:
    web, one = results(history), {"client": "it's1"}
    whole = web.horizon(one, hour(5), "2 hours")
    history.land(4, [line(3600 * 4 + 5, "it's1")], ".late")
    history.stage("ingest", 4, 5)
    with pytest.raises(
        StaleDataError, match="granules of aggregates traffic 2015-05-17T04:00 are out of date"
    ):
        web.horizon(one, hour(5), "2 hours")
    history.stage("aggregates", 4, 5)
    healed = web.horizon(one, hour(5), "2 hours")
    assert whole is not None
    assert healed is not None
    assert healed["n"] == whole["n"] + 1
    with pytest.raises(
        StaleDataError, match="no run has requested 2015-05-17T05:00, in which the window ends"
    ):
        web.horizon(one, hour(6), "2 hours")
    history.land(6, [line(3600 * 6, "it's1")])
    history.run(5, 7)
    result = web.horizon(one, hour(7), "2 hours")
    assert result is not None
    assert (result["n"], result["complete"]) == (1, False)
    with pytest.raises(StaleDataError, match="granules of aggregates traffic 2015-05-17T00:00 are expired"):
        web.horizon(one, hour(2), "2 hours")


def test_invalid_horizon_is_refused_with_reason(history: StreamHarness) -> None:
    web, one = results(history), {"client": "it's1"}
    for message, call in {
        "h: must be a multiple of 10 minutes, above 0; got 15 minutes": lambda: web.horizon(
            one, hour(5), "15 minutes"
        ),
        "h: must be a multiple of 10 minutes, above 0; got 0 seconds": lambda: web.horizon(
            one, hour(5), timedelta()
        ),
        "until: must be a multiple of 10 minutes since 1970; got 2015-05-17T05:05:00+00:00": lambda: (
            web.horizon(one, hour(5) + timedelta(minutes=5), "1 hour")
        ),
        "must be a time with a zone; got 2015-05-17T05:00:00": lambda: web.horizon(
            one, hour(5).replace(tzinfo=None), "1 hour"
        ),
        "key: must have a value for each of its columns (client); got {'user': 'x'}": lambda: web.horizon(
            {"user": "x"}, hour(5), "1 hour"
        ),
        "block: aggregates has no block 'trafic'; nearest: traffic": lambda: web.horizon(
            one, hour(5), "1 hour", "trafic"
        ),
    }.items():
        with pytest.raises(ValueError, match=re.escape(message) + "$"):
            call()
    with pytest.raises(KeyError, match="no table of results 'granules'; known: events, "):
        web.table("granules")


def test_query_creates_no_table(tmp_path: Path) -> None:
    web = read(tmp_path / "lake", parse(yaml.safe_load(STREAM)))
    with pytest.raises(StaleDataError, match="no run of web is in this lake: "):
        web.horizon({"client": "x"}, hour(5), "1 hour")
    with pytest.raises(StaleDataError, match="no run of web has created a table recurring: "):
        web.table("recurring")
    assert not (tmp_path / "lake").exists()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.float64(1.5), "1.5"),
        (np.int64(3), "3"),
        (7, "7"),
        (np.True_, "TRUE"),
        (False, "FALSE"),
        ("it's", "'it''s'"),
    ],
)
def test_key_values_are_written_as_in_sql(value: object, text: str) -> None:
    assert sql_literal(value) == text
    with pytest.raises(ValueError, match="key: a number must be finite; got inf"):
        sql_literal(float("inf"))


def test_every_table_except_state_ledger_and_messages_is_a_result() -> None:
    tables = {name for name in descriptions() if not Table.load(name).state}
    assert tables - {"ledger", "runs", "checks", "deliveries"} == {*RESULTS}
