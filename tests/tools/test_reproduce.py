"""The variants whose cost the reproductions compare agree, and the drawn stream is the same each time."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.published import publish
from reproduce import multigranular, report
from reproduce.connections import PROTOCOLS, drawn
from reproduce.multigranular import WAYS, of_granules, of_levels, of_range
from reproduce.operations import Aggregation, Operation, Recurrence, Regression
from transom.features.aggregates.algorithm.granules import WindowLevel


@pytest.mark.parametrize("of", [Aggregation(), Regression(), Recurrence()], ids=lambda of: of.name)
@pytest.mark.parametrize("levels", [of_levels(2), of_levels(5), of_granules(2), of_range(4)])
def test_every_variant_gives_equal_results(of: Operation[Any], levels: tuple[WindowLevel, ...]) -> None:
    stream = drawn(levels[-1].range + 24, 300)
    result = {way: make(of, stream, levels) for way, make in WAYS.items()}
    multigranular._compare(of, result, stream, levels, "here")
    assert result["stairwise"].state_kb < result["from tuples"].state_kb / 10


def test_differing_variant_fails_the_reproduction() -> None:
    levels = of_levels(3)
    stream, other = drawn(50, 30), drawn(50, 31)
    result = {way: make(Aggregation(), stream, levels) for way, make in WAYS.items()}
    result["separate"] = WAYS["separate"](Aggregation(), other, levels)
    with pytest.raises(SystemExit, match="figure 6: aggregation separate differs from the connections"):
        multigranular._compare(Aggregation(), result, stream, levels, "figure 6")


def test_drawn_connections_are_equal_each_time() -> None:
    one, again = drawn(12, 1000), drawn(12, 1000)
    for unit, same in zip(one, again, strict=True):
        assert np.array_equal(unit.duration, same.duration)
        assert np.array_equal(unit.protocol, same.protocol)
    assert 900 < len(one[0].duration) < 1000 == len(one[0].protocol)
    rarest = len(PROTOCOLS) - 1
    assert [bool(np.any(unit.protocol == rarest)) for unit in one] == [True] * 2 + [False] * 9 + [True]
    assert np.mean(one[0].duration) > 3 * np.median(one[0].duration)


def test_claims_of_a_whole_run_are_checked_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "publish", lambda *results: publish(*results, tmp_path))
    claims = [report.verdict(True, "figure 5: linear"), report.verdict(False, "figure 6: flat")]
    monkeypatch.setattr(sys, "argv", ["reproduce", "--units", "3"])
    with pytest.raises(SystemExit, match="False"):
        report.finish("frames", tmp_path, claims[:1])
    assert [*tmp_path.iterdir()] == []
    monkeypatch.setattr(sys, "argv", ["reproduce"])
    with pytest.raises(SystemExit, match="True"):
        report.finish("frames", tmp_path, claims)
    assert json.loads((tmp_path / "reproduce-frames.json").read_text())["claims"] == [
        {"claim": "figure 5: linear", "met": True},
        {"claim": "figure 6: flat", "met": False},
    ]
