"""The promise for every stage in one lake: a random history leaves the tables that one run leaves."""

import random
from collections.abc import Callable
from itertools import pairwise

from tests.support.crash_states import killed_at
from tests.support.every_stage import EVERY_STAGE, requests
from tests.support.stream_harness import StreamHarness, line
from transom.engine.gate import evaluate_gate
from transom.features.registry import STAGES

Make = Callable[..., StreamHarness]
HOURS = 3
LATE = 1
"""The hour whose file arrives after its run."""


def test_random_history_equals_one_run(make_stream: Make, rng: random.Random) -> None:
    """Slow (half a minute): every stage runs several times. Runs come in random order, one is killed and
    repeated, and a file arrives late.
    """
    actual, whole = make_stream(EVERY_STAGE, "lived"), make_stream(EVERY_STAGE, "whole")
    assert actual.stream.stages == STAGES, "the stream has every stage there is"
    for number in range(HOURS):
        actual.land(number, requests(number))
    late = actual.land(LATE, [line(3600 * LATE + 1800 + 40 * n, "10.9.9.9") for n in range(20)], ".late")
    content = late.read_bytes()
    late.unlink()
    cuts = list(pairwise([0, rng.randrange(1, HOURS), HOURS]))
    rng.shuffle(cuts)
    commit, killed = rng.randint(1, 60), rng.randrange(len(cuts))
    for number, (start, end) in enumerate(cuts):
        if number == killed:
            with killed_at(commit):
                actual.run(start, end)
        actual.run(start, end)
    late.write_bytes(content)
    actual.run(LATE, LATE + 1)
    whole.run(0, HOURS)
    actual.assert_same(whole, f"runs of {cuts}, number {killed} killed at commit {commit}")
    assert actual.findings() == whole.findings()
    actual.assert_ledger_true()
    for stage in STAGES:
        assert evaluate_gate(actual.ledger, stage, "web", actual.context(0, HOURS).interval, "").passed
    # Every table has rows, and so has every kind of finding.
    empty = {name for name, rows in actual.rows().items() if not rows}
    assert empty == {"rejected", "duplicates"}
    kinds = {finding.kind for finding in actual.findings()}
    assert kinds == {"alert", "episode", "frame", "persistent_item", "heavy_hitter"}
