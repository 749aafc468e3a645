"""The gate of frames recounts a few of them by a plain filter, and reports the wrong ones."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.support.stream_factories import base
from transom.core.intervals import HOUR_LENGTH
from transom.features.frames import tables_open_frames as open_frames
from transom.features.frames.algorithm.params import FrameSpec
from transom.features.frames.algorithm.readings import OpenFrameState, Readings
from transom.features.frames.algorithm.vectorised import FrameReports
from transom.features.frames.resolve import frame_block_of
from transom.features.frames.tables_open_frames import COUNTED, MISCOUNTED, FrameBuilder
from transom.ledger.task_counters import TaskCounters
from transom.stream import parse

BEGIN = 1_431_856_800_000_000
MINUTE = 60_000_000
KINDS: dict[str, dict[str, Any]] = {
    "high": {"kind": "threshold", "where": "took > 5", "on_duplicate_time": "last", "idle": "3 hours"},
    "near": {"kind": "delta", "value": "took", "below": 3, "on_duplicate_time": "last", "idle": "3 hours"},
    "silent": {
        "kind": "threshold", "where": "took > 5", "on_duplicate_time": "last", "missing": "satisfies",
        "known": "3 hours"
    },
    "longest": {
        "kind": "threshold", "where": "took > 5", "on_duplicate_time": "last", "longest": True,
        "period": "2 hours"
    },
}  # fmt: skip


def rows_of(kind: str, turns: int = 0) -> tuple[pa.Table, TaskCounters]:
    """Return the rows of two users' readings in four hours, and the counts with them."""
    data = base() | {"frames": {kind: KINDS[kind]}}
    if kind == "silent":
        data["time"] |= {"interval": "1 minute", "on_duplicate_time": "keep"}
    block = frame_block_of(parse(data, "app.yaml"), kind)
    rng = np.random.default_rng(3)
    time = BEGIN + np.sort(rng.choice(240, 150, replace=False)) * MINUTE
    took = np.cumsum(rng.integers(-2, 3, 150)) + 5
    readings = pa.table(
        {
            "user": [f"user-{number}" for number in rng.integers(0, 2, 150)],
            "__value": took * 1000,
            "__moment": time * 16 + ((took > 5) | (kind == "near")) * 2 + 4,
            "__place": np.arange(150),
        }
    )
    frames = FrameBuilder(block, ((BEGIN, BEGIN + 4 * HOUR_LENGTH),), open_frames.schema_of(block), turns)
    tally = TaskCounters()
    return pa.Table.from_batches(frames(readings.to_batches(max_chunksize=40), tally)), tally


def counted(kind: str) -> tuple[int, TaskCounters]:
    """Return the number of reported frames, and the counts with it."""
    rows, tally = rows_of(kind)
    return len(rows) - rows["row_kind"].to_pylist().count(open_frames.STATE), tally


@pytest.mark.parametrize("kind", list(KINDS))
def test_correct_frames_have_no_faults(kind: str) -> None:
    count, tally = counted(kind)
    assert count > 3
    assert tally == TaskCounters()


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize(
    "wrong",
    [
        lambda reports: replace(reports, new=reports.new + 1),
        lambda reports: replace(
            reports, first=reports.first - 45 * MINUTE, length=reports.length + HOUR_LENGTH
        ),
    ],
)
def test_frame_that_differs_from_the_filter_is_reported(
    kind: str, wrong: Callable[[FrameReports], FrameReports], monkeypatch: pytest.MonkeyPatch
) -> None:
    reported = open_frames.FrameBuilder._advanced
    monkeypatch.setattr(
        FrameBuilder,
        "_advanced",
        lambda *given: ((wrong(reports), remaining) for reports, remaining in reported(*given)),
    )
    _, tally = counted(kind)
    assert {name for _, name in tally.sums} == {MISCOUNTED}
    (hour, name), notes = next(iter(tally.notes.items()))
    assert (hour, name) in {(BEGIN // HOUR_LENGTH + number, COUNTED) for number in range(4)}
    assert all(note.startswith("user-") and note.endswith(" readings are reported") for note in notes)


def test_generated_missing_readings_count_for_the_size_of_a_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    keys = ["user", "hour", "row_kind", "fragment", "first"]
    whole, _ = rows_of("silent")
    periods = []
    advance = open_frames.advance

    def watched(
        framing: FrameSpec, remaining: OpenFrameState, readings: Readings, begin: int, until: int
    ) -> Any:
        periods.append(until - begin)
        return advance(framing, remaining, readings, begin, until)

    monkeypatch.setattr(open_frames, "advance", watched)
    monkeypatch.setattr(open_frames, "AT_A_TIME", 200)
    cut, _ = rows_of("silent", turns=60)
    # One user at a time, as both have 150 readings and 120 turns; and three hours of it.
    assert periods == [3 * HOUR_LENGTH, HOUR_LENGTH] * 2
    assert cut.sort_by([(key, "ascending") for key in keys]) == whole.sort_by(
        [(key, "ascending") for key in keys]
    )
