"""Two runs of one interval: the first stops before or after each of its commits, while the second runs
completely.

The second run reads other input than the first, so that rows of the first would show.
"""

import shutil
from collections.abc import Callable, Mapping, Sequence
from itertools import product

import pytest
from deltalake import DeltaTable

from tests.support.crash_states import Side, watched
from tests.support.stream_harness import StreamHarness, line
from transom.core.partitions import PartitionKey
from transom.storage.fencing import RunSuperseded
from transom.storage.tables import instant, read_rows

Make = Callable[..., StreamHarness]

ONE = """
name: web
preset: apache/combined
source: {path: "landing/web/%Y-%m-%d/access.%H*.log.gz", expected_files: 1, on_conflict: replace}
key: [client]
aggregates: {traffic: {measures: {n: count}, levels: RANGES 1 HOUR SLIDES 1 HOUR}}
"""
LENIENT = f"{ONE}checks: {{rejected_share: {{at_most: 1}}}}\n"
BEFORE, AFTER = [line(1, "10.0.0.1"), line(2, "10.0.0.2")], [line(1, "10.0.0.1"), line(3, "10.0.0.3")]
Published = Mapping[PartitionKey, tuple[str, Sequence[str]]]


def published(harness: StreamHarness) -> Published:
    """Return digest and rows of every partition that is called fresh."""
    result = {}
    for node, entry in harness.snapshot().items():
        if entry.status == "published":
            rows = read_rows(DeltaTable(f"{harness.root}/{node.table}"), f"hour = {instant(node.hour)}")
            blocks = [row for row in rows if row.get("block", node.block) == node.block]
            outside = ("size", "modified")
            retained = [{k: v for k, v in row.items() if k not in outside} for row in blocks]
            result[node] = entry.digest, sorted(map(repr, retained))
    return result


@pytest.mark.full
def test_ingest_run_between_any_two_steps_of_another_fences_it_off(make_stream: Make) -> None:
    """Every row called fresh is one that one of the runs computed from its input. The overtaken run reports
    this. A third run leaves the tables of one run alone. Stages after ingest are tested like this in
    `tests.promise.test_every_stage_in_memory`.

    Slow (half a minute): two or three runs of ingest for each side of each commit.
    """
    old, new = make_stream(ONE, "old"), make_stream(ONE, "new")
    old.land(0, BEFORE)
    shutil.copytree(old.root, old.folder / "ready" / "web")
    with watched(lambda number, side: None) as commits:
        old.stage("ingest", 0, 1)
    old.land(0, AFTER)
    new.stage("ingest", 0, 1)
    truths = [published(old), published(new)]
    overtaken = 0
    for point in product(range(1, commits.count + 1), ("before", "after")):
        lake = f"{point[1]}-{point[0]}"
        old.land(0, BEFORE)
        shutil.copytree(old.folder / "ready", old.folder / lake)

        def meanwhile(number: int, side: Side, point: tuple[int, str] = point, lake: str = lake) -> None:
            if (number, side) == point:
                old.land(0, AFTER)
                make_stream(ONE, lake).stage("ingest", 0, 1)

        one = make_stream(ONE, lake)
        with watched(meanwhile):
            try:
                one.stage("ingest", 0, 1)
            except RunSuperseded:
                overtaken += 1
        for node, fresh in published(one).items():
            assert fresh in [truth[node] for truth in truths if node in truth], (lake, node)
        one.stage("ingest", 0, 1)
        one.assert_same(new, lake)
    # At each point except before its first claim and after its last commit, where it has nothing to lose.
    assert overtaken
    new.assert_ledger_true()


@pytest.mark.full
@pytest.mark.parametrize(
    ("second", "texts"), [(1, ["junk", "junk"]), (2, [line(0), line(3600, "10.0.0.2"), line(7200)])]
)
def test_two_concurrent_runs_of_dependent_hours_equal_one_run(
    make_stream: Make, second: int, texts: Sequence[str]
) -> None:
    """Each run has read its input before the other's hour existed: a file without events that duplicates a
    file of the other run, and an hour between them, which is a gap next to either.

    Slow (20 seconds): several runs of all stages.
    """
    one, other, whole = (make_stream(LENIENT, lake) for lake in ("one", "one", "whole"))
    for number, text in enumerate(texts):
        one.land(number, [text])
    for lake in (one, whole):
        lake.run(100, 101)  # Far away: the first commit from here on is a claim.

    def meanwhile(number: int, side: Side) -> None:
        if (number, side) == (1, "before"):
            other.run(second, second + 1)

    with watched(meanwhile):
        try:
            one.run(0, 1)
        except RunSuperseded as overtaken:
            reported = str(overtaken)
            one.run(0, 1)
    whole.run(0, second + 1)
    one.assert_same(whole)
    one.assert_ledger_true()
    assert "another run of other hours" in reported
