"""The output of `transom try` on frames and fills."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from tests.support.stream_factories import changed
from transom.features.fills.render import print_fills
from transom.features.frames.render import print_frames
from transom.stream import Stream, parse

START = datetime(2024, 5, 6, 7, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


@pytest.fixture
def stream() -> Stream:
    frames = {
        "slow": {"kind": "threshold", "where": "status < 30", "on_duplicate_time": "last"},
        "fast": {"kind": "threshold", "where": "status > 99", "on_duplicate_time": "last"},
    }
    before = {
        "frame": "slow", "shift": ["1 day", "0 hours"], "combine": "median",
        "measures": {"mean": "mean(status)"},
    }  # fmt: skip
    return parse(changed(frames=frames, fills={"before": before}), "app.yaml")


def frame(sensor: str, minutes: int, fragment: int = 0, *, state: str = "final") -> dict[str, Any]:
    return {
        "block": "slow", "hour": START, "frame_id": sensor, "user": sensor, "start_time": START,
        "last_time": START + minutes * MINUTE, "length_s": minutes * 60.0, "records": minutes, "missing": 0,
        "fragment": fragment, "state": state, "peak": 7.0, "mean": 20.5,
    }  # fmt: skip


def fill(sensor: str, shift: float | None, covered: float, mean: float | None) -> dict[str, Any]:
    return {
        "block": "before", "frame_id": sensor, "fragment": 0, "shift_s": shift, "rows_matched": 3,
        "coverage": covered, "mean": mean,
    }  # fmt: skip


def shown(
    stream: Stream,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    frames: list[dict[str, Any]],
    fills: list[dict[str, Any]],
) -> list[list[str]]:
    write_deltalake(f"{folder}/frames", pa.Table.from_pylist(frames))
    write_deltalake(f"{folder}/fills", pa.Table.from_pylist(fills))
    print_frames(stream, str(folder))
    print_fills(stream, str(folder))
    return [line.split() for line in capsys.readouterr().out.splitlines()]


def test_longest_frames_are_shown_in_their_last_revision(
    stream: Stream, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reported = [frame(f"s{number}", number) for number in range(1, 7)]
    reported += [frame("long", 60, state="partial"), frame("long", 90, 1, state="partial")]
    lines = shown(stream, tmp_path, capsys, reported, [fill("s1", 0.0, 1.0, 20.0)])
    assert [
        "slow,",
        "as",
        "long",
        "as",
        "status",
        "<",
        "30:",
        "the",
        "longest",
        "5",
        "of",
        "7",
        "frames",
    ] in lines
    start = "2024-05-06T07:00"
    assert [
        "long",
        start,
        "2024-05-06T08:30",
        "1",
        "hour",
        "30",
        "minutes",
        "90",
        "0",
        "7",
        "20.5",
        "open",
    ] in lines
    sensors = [line[0] for line in lines if len(line) > 1 and line[1] == start]
    assert sensors == ["long", "s6", "s5", "s4", "s3"]
    assert ["fast:", "no", "frame", "as", "long", "as", "status", ">", "99"] in lines


def test_fill_without_coverage_is_shown_as_unknown(
    stream: Stream, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fills = [fill("s1", None, 1.0, 21.5), fill("s1", 0.0, 1.0, 20.0), fill("s1", 86400.0, 0.0, None)]
    lines = shown(stream, tmp_path, capsys, [frame("s1", 1)], fills)
    start = "2024-05-06T07:00"
    assert [line for line in lines if line[:2] == ["s1", start]][1:] == [
        ["s1", start, "not", "3", "20", "100%"],
        ["s1", start, "1", "day", "ago", "-", "-", "0%"],
        ["s1", start, "median", "of", "all", "3", "21.5", "100%"],
    ]
