"""SIGKILL between any two commits of any stage: the next run leaves the tables of a run that never died.

Each state that a kill can leave is a copy of the lake, taken during one run (`crash_states.remains`).
"""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from tests.support.crash_states import remains
from tests.support.stream_harness import StreamHarness, line
from transom.storage import driver_io as small

Make = Callable[..., StreamHarness]

TINY = """
name: web
preset: apache/combined
source: {path: "landing/web/%Y-%m-%d/access.%H*.log.gz", expected_files: 3, on_conflict: replace}
key: [client]
aggregates:
  traffic: {measures: {n: count, sent: sum(bytes)}, levels: "RANGES 2 HOURS SLIDES 1 HOUR"}
  site: {key: [], measures: {n: count}, levels: RANGES 1 HOUR SLIDES 1 HOUR}
checks: {rejected_share: {at_most: 0.5}}
"""
PATTERNS = """patterns:
  back:
    within: 3 hours
    batch: 20 minutes
    merge_gap: 1 hour
    steps: [{id: one, where: status = 200}, {id: other, where: status = 200, gap: {min: 1 second}}]
"""
TEXTS = {
    "ingest": TINY,
    "patterns": TINY[: TINY.index("aggregates")] + PATTERNS + TINY[TINY.index("checks") :],
}


def first(day: StreamHarness) -> None:
    """Land the first files: two of one hour, one with a line that cannot be read."""
    day.land(0, [line(1, "10.0.0.1"), line(2, "10.0.0.2"), "junk"])
    day.land(0, [line(3, "10.0.0.3")], ".old")


def then(day: StreamHarness) -> None:
    """Change the files: changed, removed, new under an earlier name; and a line of the next hour's file in
    this one.
    """
    day.land(0, [], ".old").unlink()
    day.land(0, [line(1, "10.0.0.1"), line(4, "10.0.0.4"), "other junk"])
    day.land(0, [line(3, "10.0.0.3")], ".a")
    day.land(1, [line(3600, "10.0.0.1"), line(3599, "10.0.0.9")])


def full(stage: str, again: bool, limit: int) -> ParameterSet:
    """Return a case of the full tier: all states."""
    return pytest.param(stage, again, limit, 1, marks=pytest.mark.full)


@pytest.mark.parametrize(
    ("stage", "again", "limit", "every"),
    [
        # Ingest has a control flow of its own. The control flow of later stages is killed with the steps of
        # each in `tests.promise.test_every_stage_in_memory`. Here it is what Delta and Spark leave: rows
        # written by Spark alone, chains, and, in `test_alerts`, rows written by the driver and by tasks.
        ("ingest", True, small.MAX_DRIVER_BYTES, 4),
        full("ingest", True, small.MAX_DRIVER_BYTES),
        full("ingest", False, small.MAX_DRIVER_BYTES),
        full("patterns", True, 0),
    ],
)
def test_stage_killed_between_any_two_commits_is_repaired(
    make_stream: Make, monkeypatch: pytest.MonkeyPatch, stage: str, again: bool, limit: int, every: int
) -> None:
    """The first run of an hour, and a later run of the next hour, which replaces and repairs it; for rows
    written by the driver and for rows written by Spark.

    Slow where every state is looked at (half a minute): a run of the stage for each of a dozen commits.
    """
    monkeypatch.setattr(small, "MAX_DRIVER_BYTES", limit)
    start, end = (1, 2) if again else (0, 1)
    never = make_stream(TEXTS[stage], "never")
    first(never)
    if again:
        never.run(0, 1)
        then(never)
    if stage != "ingest":
        never.stage("ingest", start, end)
    elif not again:
        # The first run creates the ledger's tables too.
        shutil.rmtree(never.root)

    def run() -> None:
        make_stream(TEXTS[stage], "never").stage(stage, start, end)

    copies = never.folder / "copies"
    states = remains(Path(never.root), run, copies)
    # A claim, a table, the results. Without work the run would test nothing.
    assert len(states) > 4
    for state in states[every // 2 :: every]:
        killed = make_stream(TEXTS[stage], str(state.parent.relative_to(never.folder)))
        killed.stage(stage, start, end)
        killed.assert_same(never, state.parent.name)
    never.assert_ledger_true()
    assert {entry.status for entry in never.snapshot().values()} == {"published"}
