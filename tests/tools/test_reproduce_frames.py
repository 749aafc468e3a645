"""The freeway's frames match the paper's table; each claim is printed if true, and with NO if not."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reproduce import frames as study
from reproduce import framing
from reproduce.freeway import EVERY, FIRST, KINDS, Sensors, events, times


@pytest.fixture(scope="module")
def one() -> list[Mapping[str, Any]]:
    return [*study.tables()]


@pytest.fixture(scope="module")
def steady() -> Mapping[str, Any]:
    return study.steady()


def costs(**seconds: float) -> list[Mapping[str, Any]]:
    """Return the seconds of a day of each variant, for spans of the paper's lengths."""
    rows: list[Mapping[str, Any]] = []
    for days in study.SPANS:
        rows += [
            {"way": way, "kind": kind, "days": days, "seconds": seconds[way] * days}
            for kind in KINDS
            for way in ("frames", "windows")
            if way == "frames" or days in study.WINDOWED
        ]
        rows.append({"way": "reading", "kind": "-", "days": days, "seconds": 0.1 * days})
    return rows


def test_drawn_sensors_are_equal_each_time_and_report_every_20_seconds() -> None:
    days = [[*Sensors(3, 2).by_day()] for _ in range(2)]
    for (speed, there), (again, present) in zip(*days, strict=True):
        np.testing.assert_array_equal(speed, again)
        np.testing.assert_array_equal(there, present)
    speed, there = days[0][1]
    rows = events(1, speed, there)
    assert rows.num_rows == there.sum() < there.size
    assert set(rows["sensor"].to_pylist()) == {"sensor-000", "sensor-001", "sensor-002"}
    assert {*np.diff(times(1))} == {EVERY * 1_000_000}
    assert times(1)[0] == (FIRST + 86_400) * 1_000_000


def test_frames_are_close_to_those_of_the_paper(
    one: list[Mapping[str, Any]], steady: Mapping[str, Any]
) -> None:
    assert [row["kind"] for row in one] == list(study.TABLE)
    output = study.verdicts(one, costs(frames=1.0, windows=2.0), steady)
    assert [text.partition(":")[0] for text in output] == ["yes"] * 9
    # Two ways of counting: each frame's own readings, and those between its ends that meet the condition.
    readings = framing.one_sensor(2)
    compare, bound = framing.BOUNDS["long"]
    holds = compare(readings.value, bound)
    reports = framing.frames_of(readings, framing.framing_of("long"), holds, 2)
    for hours in study.FRAGMENTS:
        waits = framing.latencies(readings, holds, reports, hours)
        assert len(waits) == reports.records[reports.final].sum()
        assert waits.min() > 0
    whole, hourly = (framing.latencies(readings, holds, reports, hours) for hours in (None, 1))
    assert (hourly <= whole).all()


def test_false_claims_are_reported(one: list[Mapping[str, Any]], steady: Mapping[str, Any]) -> None:
    far = [{**one[0], "frames": 400}, *one[1:]]
    curved = [
        {**row, "seconds": row["seconds"] ** 3} if row["kind"] == "medium" else row
        for row in costs(frames=1.0, windows=0.9)
    ]
    unsteady = {**steady, "errors": {"frames": [0.1, 1.0], "windows": [0.1, 0.5]}}
    output = study.verdicts(far, curved, unsteady)
    assert [text.partition(":")[0] for text in output] == [
        "NO", "yes", "yes", "yes", "NO", "yes", "NO", "yes", "NO"
    ]  # fmt: skip
    slow = [{**row, "waits": {**row["waits"], 1: row["waits"][None]}} for row in one]
    assert study.verdicts(slow, costs(frames=1.0, windows=2.0), steady)[7].startswith("NO")


@pytest.mark.full
def test_report_has_a_line_for_each_claim(
    one: list[Mapping[str, Any]], steady: Mapping[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(study, "FOLDER", tmp_path)
    lines = study.written(one, costs(frames=1.0, windows=2.0), steady, ["yes: so"])
    assert f"| 60 | {'60.0 |  | ' * 3}6.0 |" in lines
    assert sum(line.startswith("| long |") for line in lines) == 1 + len(study.FRAGMENTS)
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        "estimates.svg", "figure-10.svg", "figure-11.svg", "report.md"
    ]  # fmt: skip
