"""An hour is up to date only together with everything that it is computed from, and the reason is
recorded.
"""

from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cli import ledger_by_hand as hand
from tests.cli.ledger_by_hand import WEB, Lake
from tests.support.memory_lake import at
from tests.support.memory_pipeline import CHANGED, OUTSIDE, STREAM, Pipeline, initial
from transom.api import StaleDataError, read
from transom.app.freshness import stale_hours
from transom.core.intervals import Interval
from transom.core.partitions import PartitionKey
from transom.engine.gate import evaluate_gate
from transom.engine.gate_text import format_root
from transom.features import registry
from transom.features.ingest.expected_inputs import partition_of
from transom.ledger.freshness import Freshness
from transom.stream import parse

STAGES = registry.STAGES[1:]


def freshness(lake: Pipeline) -> Freshness:
    """Return what the product reports of a lake whose events are up to date."""
    return Freshness(lake.snapshot(), [double.stage for double in lake.doubles.values()], ())


def nodes(lake: Pipeline) -> set[PartitionKey]:
    required = lake.ledger.snapshot().required_hours
    return {
        PartitionKey(name, block, step.table.name, hour)
        for name, double in lake.doubles.items()
        for step in double.stage.steps
        for block in step.outputs
        for hour in required
    }


def assert_agrees(lake: Pipeline) -> None:
    """Assert that the product calls the right hours fresh, by the definition, and that each reason is
    true.
    """
    result, stale, fresh = freshness(lake), lake.stale(), lake.fresh()
    for node in nodes(lake):
        assert (result.root(node) is None) == (node in fresh)
        assert result.is_fresh(node) == (not result.why_not(node))
        settled = node not in result.snapshot or result.snapshot[node].status != "quarantined"
        assert not settled or result.is_fresh(node) == (node in fresh)
    assert {result.root(node) for node in nodes(lake)} - {None} <= stale


TURNS = st.one_of(
    st.tuples(
        st.just("run"), st.integers(0, 3), st.integers(1, 3),
        st.lists(st.sampled_from(STAGES), unique=True),
    ),
    st.tuples(st.just("events"), st.integers(0, 4), st.integers(0, 9), st.booleans()),
    st.tuples(st.just("outside"), st.sampled_from(OUTSIDE), st.integers(0, 3), st.integers(0, 9)),
    st.tuples(st.just("specify"), st.sampled_from([STREAM, CHANGED]), st.sampled_from([90, 100]), st.just(0)),
)  # fmt: skip


@settings(max_examples=12)
@given(st.lists(TURNS, min_size=1, max_size=6))
def test_fresh_hours_have_fresh_inputs_down_to_events_for_any_history(turns: list[tuple]) -> None:  # type: ignore[type-arg]
    lake = Pipeline()
    initial(lake)
    lake.run(0, 3)
    assert_agrees(lake)
    for kind, first, second, third in turns:
        match kind:
            case "run":
                lake.run(first, first + second, repair_window=1, stages=third)
            case "events":
                lake.set_events(first, [second], complete=third)
            case "outside":
                lake.outside[first][at(second)] = third
            case "specify":
                lake.specify(first, at_most=second)
        assert_agrees(lake)


def test_reason_names_the_upstream_change() -> None:
    """Aggregates have changed, and no later stage has run since."""
    lake = Pipeline()
    initial(lake)
    lake.run(0, 3)
    assert all(freshness(lake).root(node) is None for node in nodes(lake))
    lake.set_events(2, [1, 2, 3])
    result = freshness(lake)
    frames = PartitionKey("frames", "busy", "frames", at(2))
    granules = PartitionKey("aggregates", "site", "granules", at(2))
    # Frames over granules equal their inputs; the inputs of these granules have changed.
    assert frames not in lake.stale()
    assert result.root(frames) == result.root(granules) == granules
    assert format_root(granules, lake.ledger.snapshot()) == (
        f"aggregates site (granules) of {at(2):%Y-%m-%dT%H:%M} is out of date"
    )
    assert set(result.stale("frames")) >= {at(2)}
    lake.run(0, 3)
    assert all(freshness(lake).root(node) is None for node in nodes(lake))


def changed_lake(folder: Path) -> Lake:
    """Return a lake with hours whose events must be read again. Its aggregates match the published events."""
    lake = Lake(folder)
    lake.ingest(range(3))
    lake.aggregate(range(3))
    lake.file.write_text(WEB + "extra_fields: keep\n")
    return lake


REASON = "ingest events (events) of 2015-05-17T00:00 to 2015-05-17T03:00 is out of date"


def test_gate_reports_stale_hours_with_reason(tmp_path: Path) -> None:
    lake, interval = changed_lake(tmp_path), Interval(hand.at(0), hand.at(3))
    fresh = stale_hours(parse(yaml.safe_load(WEB)), lake.ledger, "aggregates", interval)
    assert fresh == {}
    stale = stale_hours(lake.stream, lake.ledger, "aggregates", interval)
    evaluated = evaluate_gate(lake.ledger, "aggregates", "web", interval, "run", stale=stale)
    assert evaluated.passed
    assert evaluated.warnings == (f"stale: aggregates of 2015-05-17T00:00 to 2015-05-17T03:00, as {REASON}",)
    assert evaluated.summary.endswith(f"3 of 3 hours published, 3 of them stale, as {REASON}, 1 warning")


def test_hours_computed_from_stale_hours_are_not_read(tmp_path: Path) -> None:
    lake = changed_lake(tmp_path)
    with pytest.raises(
        StaleDataError, match=r"are out of date, as ingest events .* of 2015-05-17T01:00 is out of"
    ):
        read(lake.uri, lake.stream).horizon({"client": "x"}, hand.at(2), "1 hour")


def test_damage_is_the_reason_for_all_hours_computed_from_it(tmp_path: Path) -> None:
    lake, interval = Lake(tmp_path), Interval(hand.at(0), hand.at(3))
    lake.ingest(range(3))
    lake.aggregate(range(3))
    lake.mark(partition_of("events", hand.at(1)))
    why = "ingest events (events) of 2015-05-17T01:00 is damaged"
    assert stale_hours(lake.stream, lake.ledger, "ingest", interval) == {why: [hand.at(1)]}
    assert stale_hours(lake.stream, lake.ledger, "aggregates", interval) == {why: [hand.at(1), hand.at(2)]}
    lake.ingest([1])
    lake.mark(partition_of("files", hand.at(1)))
    why = "ingest events (files) of 2015-05-17T01:00 is damaged"
    assert stale_hours(lake.stream, lake.ledger, "ingest", interval) == {why: [hand.at(1)]}
    assert stale_hours(lake.stream, lake.ledger, "aggregates", interval) == {}


def test_hours_computed_from_damaged_hours_are_not_read(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.ingest(range(3))
    lake.aggregate(range(3))
    lake.mark(partition_of("events", hand.at(1)))
    with pytest.raises(
        StaleDataError, match=r"are out of date, as ingest events .* of 2015-05-17T01:00 is damaged"
    ):
        read(lake.uri, lake.stream).horizon({"client": "x"}, hand.at(2), "1 hour")
