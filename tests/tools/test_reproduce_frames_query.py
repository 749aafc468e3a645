"""The frame-like window query finds the frames that the stage's own function finds."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from bench.peer_framing import computed, totals
from reproduce.freeway import FIRST, KINDS, Sensors, events, stream_of
from reproduce.peer_freeway import windowed
from transom.core.intervals import HOUR, Interval
from transom.features.frames.resolve import frame_block_of
from transom.storage.store import Store
from transom.stream import load


@pytest.mark.parametrize("kind", list(KINDS))
def test_both_variants_find_equal_frames(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    stream = load(stream_of(tmp_path))
    store = Store(spark, f"{tmp_path}/lake/freeway")
    ((speed, there),) = Sensors(4, 1).by_day()
    write_deltalake(f"{store.root}/events", events(0, speed, there), partition_by=["hour"])
    rows = spark.read.format("delta").load(f"{store.root}/events")
    first = datetime.fromtimestamp(FIRST, UTC)
    day = Interval(first, first + 24 * HOUR)
    ours = totals("frames", computed(rows, frame_block_of(stream, kind), store, day))
    assert ours is not None
    assert ours[0] > 0
    assert totals("windows", windowed(rows, str(stream.frames[kind].where), day)) == ours
