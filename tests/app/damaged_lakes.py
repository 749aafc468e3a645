"""A lake with every table, to be damaged; and what a test does with it after that."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.support.every_stage import HEAD, LATER, PATTERNS_AND_FRAMES, requests
from tests.support.stream_harness import StreamHarness, hour
from transom.app import verify as verifying
from transom.app.definitions import stage_names
from transom.app.verify import layouts_of, mark
from transom.engine import verification
from transom.engine.ledger_repair import examine
from transom.engine.verification import Verification
from transom.ledger.damage import Damage
from transom.ledger.ledger import Run

Make = Callable[..., StreamHarness]
HOURS = 3

SMALL = f"""{HEAD}unique: [client, bytes, status]
aggregates:
  traffic:
    measures: {{n: count, sent: sum(bytes)}}
    levels: RANGES 2 HOURS, 1 HOUR SLIDES 1 HOUR, 30 MINUTES
    recurring: [status]
    alert: {{many: n > 3}}
  site: {{key: [], measures: {{n: count}}, levels: RANGES 1 HOUR SLIDES 1 HOUR}}
"""
"""Two stages, for tests that need no more."""
STREAM = SMALL + PATTERNS_AND_FRAMES + LATER


def build(lake: StreamHarness) -> None:
    """Land files of some hours, with a rejected line and duplicate lines, and run all stages."""
    for number in range(HOURS):
        lake.land(number, [*requests(number), "no request"])
    lake.run(0, HOURS)
    for stage in lake.stream.stages:
        # Under one name, as runs by hand may be.
        run = Run(
            "by hand", "by hand", stage, hour(0), hour(HOURS), 0, None, 0, 0, {"total": 1.0}, 1, "1",
            hour(HOURS),
        )  # fmt: skip
        lake.ledger.record_run(run)
        lake.ledger.record_run(replace(run, finished_at=hour(HOURS + 1)))


def mark_damage(lake: StreamHarness) -> Verification:
    """Mark the damage and return it, reading the lake once for both."""
    result: list[Verification] = []

    def verify(*arguments: Any) -> Verification:
        result.append(verification.verify(*arguments))
        return result[-1]

    with patch.object(verifying, "verify", verify):
        mark(lake.spark, lake.stream, lake.root)
    return result[0]


def reopened(lake: StreamHarness) -> StreamHarness:
    """Return the lake as another process opens it."""
    return StreamHarness(lake.spark, lake.folder, lake.text, Path(lake.root).parent.name)


def run_reopened(lake: StreamHarness) -> StreamHarness:
    """Run every stage in the lake, opened again."""
    opened = reopened(lake)
    opened.run(0, HOURS)
    return opened


def ledger_damage(lake: StreamHarness) -> list[Damage]:
    """Return the damage of the ledger's tables."""
    layouts = layouts_of(lake.stream)
    return examine(lake.root, stage_names(lake.stream), [layout.table.name for layout in layouts]).damages


def assert_whole(lake: StreamHarness, whole: StreamHarness) -> None:
    """Assert that a lake equals the undamaged one.

    `find` has nothing to report: rows and ledger are equal, and digests match the rows.
    """
    lake.assert_same(whole)
    lake.assert_ledger_true()
    assert ledger_damage(lake) == []
