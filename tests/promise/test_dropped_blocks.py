"""A block removed from the stream leaves no rows, nor does a stage without blocks. Other work of the stage
does not matter.
"""

from collections.abc import Callable

import pytest

from tests.support.stream_harness import StreamHarness, line
from transom.app.freshness import freshness_of
from transom.features.registry import STAGES

Make = Callable[..., StreamHarness]
BASE = """
name: web
preset: apache/combined
source: {path: "landing/web/%Y-%m-%d/access.%H*.log.gz"}
key: [client]
"""
PERSISTENCE = """
persistence:
  regulars: {item: [client], slot: 30 minutes, window: 2 hours, alpha: 0.7, epsilon: 0.6}
"""
FREQUENCY = """
frequency:
  paths: {item: [path], window: 2 hours, tick: 30 minutes, epsilon: 0.5, delta: 0.5, top: 2}
"""
CHAINED = """
  split: {item: [client], window: 2 hours, tick: 30 minutes, epsilon: 0.5, delta: 0.5, variant: splitter}
"""


@pytest.mark.full
@pytest.mark.parametrize(
    "remaining",
    [PERSISTENCE, FREQUENCY, PERSISTENCE + FREQUENCY],
    ids=["persistence", "frequency", "unchained"],
)
def test_removed_sketch_block_leaves_no_rows(make_stream: Make, remaining: str) -> None:
    whole = make_stream(BASE + PERSISTENCE + FREQUENCY.rstrip() + CHAINED, "lived")
    for number in range(3):
        whole.land(number, [line(3600 * number + 100 * n, f"10.0.0.{n % 3}") for n in range(9)])
    whole.run(0, 3)
    actual, fresh = make_stream(BASE + remaining, "lived"), make_stream(BASE + remaining, "fresh")
    actual.run(0, 1)
    fresh.run(0, 3)
    assert actual.state() == fresh.state()
    actual.assert_ledger_true()
    freshness = freshness_of(actual.stream, actual.snapshot())
    assert not freshness.stale("persistence")
    assert not freshness.stale("frequency")
    for table in ("tuples", "persistent_items", "tick_matrices", "cells", "frequencies"):
        assert {row["block"] for row in actual.rows_of(table)} <= {
            *actual.stream.persistence,
            *actual.stream.frequency,
        }
    assert {finding.block for finding in actual.findings()} == {finding.block for finding in fresh.findings()}


EVERYTHING = """
aggregates:
  traffic: {measures: {n: count}, levels: "RANGES 2 HOURS, 1 HOUR SLIDES 1 HOUR, 1 HOUR",
            alert: {many: n > 0}, recurring: [path]}
patterns:
  twice: {within: 2 hours, steps: [{id: two, where: status = 200, times: 2}]}
frames:
  served: {kind: threshold, where: status = 200, on_duplicate_time: max, idle: 1 hour}
fills:
  around: {frame: served}
"""


@pytest.mark.full
def test_stage_without_blocks_leaves_no_rows(make_stream: Make) -> None:
    """Slow (half a minute): every stage runs, and again for each removed block."""
    whole = make_stream(BASE + EVERYTHING + PERSISTENCE + FREQUENCY, "lived")
    for number in range(3):
        whole.land(number, [line(3600 * number + 100 * n, f"10.0.0.{n % 3}") for n in range(9)])
    whole.run(0, 3)
    before = {*whole.snapshot()}
    assert {node.stage for node in before} == {*STAGES}
    assert kinds(whole) >= {"alert", "episode", "frame", "persistent_item", "heavy_hitter"}
    for remaining in (EVERYTHING, ""):
        actual, fresh = (
            make_stream(BASE + remaining, "lived"),
            make_stream(BASE + remaining, f"fresh{len(remaining)}"),
        )
        actual.run(0, 1)
        fresh.run(0, 3)
        assert actual.state().keys() == fresh.state().keys()
        actual.assert_ledger_true()
        assert kinds(actual) == kinds(fresh)
    removed = {node.table for node in before} - {node.table for node in actual.snapshot()}
    assert {table for table in removed if actual.rows_of(table)} == set()


def kinds(harness: StreamHarness) -> set[str]:
    return {finding.kind for finding in harness.findings()}
