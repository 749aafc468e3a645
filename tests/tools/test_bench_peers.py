"""The benchmarks' variants give equal results on a few drawn lines."""

import json
from collections.abc import Sequence
from functools import reduce
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from bench import (
    between_log,
    duck,
    duck_between,
    duck_framing,
    frames,
    framing_log,
    levels,
    peer_aggregate,
    peer_between,
    peer_framing,
    peer_ingest,
)
from bench.draw import FIRST, LOGS
from bench.ingest import Case
from transom.core.intervals import EPOCH, HOUR, Interval, format_hour
from transom.features.aggregates.resolve import block_of
from transom.features.frames.resolve import frame_block_of
from transom.features.ingest.file_records import ListedFile
from transom.features.ingest.parsed_rows import ParsedRows
from transom.features.ingest.read_files import FileReadTask
from transom.storage.store import Store
from transom.stream import load

# Benchmarks are run by hand; the code that they compare is tested elsewhere in the quick tier.
pytestmark = pytest.mark.full
LINES = 2_000


@pytest.mark.parametrize("name", list(LOGS))
def test_every_variant_gives_equal_aggregates(spark: SparkSession, tmp_path: Path, name: str) -> None:
    case = Case(name, "plain", LINES, tmp_path / "case")
    stream, plain = load(case.stream), Path(case.files(tmp_path))
    listed = ListedFile(plain.name, plain.stat().st_size, EPOCH, {})
    reading = FileReadTask(listed, str(plain))
    rows = ParsedRows(Store(spark, str(tmp_path / "read")), stream)
    ours = (
        rows.events(rows.parse_files([reading]).values())
        .select("event_time", *stream.event_columns)
        .persist()
    )
    columns = ours.columns
    cut = getattr(peer_ingest, name)(spark.read.text(str(plain)))
    theirs = cut.select(*(F.col(c).cast(ours.schema[c].dataType) for c in columns))
    assert ours.count() == LINES
    assert ours.exceptAll(theirs).count() == theirs.exceptAll(ours).count() == 0

    events = ours.withColumn("hour", F.date_trunc("hour", "event_time"))
    block = block_of(stream, peer_aggregate.BLOCK)
    computed = peer_aggregate.computed(Store(spark, str(tmp_path)), stream, events)
    windows = peer_aggregate.windowed(events, block)
    retained = peer_aggregate.written(windows, str(tmp_path / "kept"))
    assert computed == peer_aggregate.drained(windows) == peer_aggregate.drained([retained])
    table = tmp_path / "lake" / "drawn" / "events"
    events.write.format("delta").save(str(table))
    for way in ("raw", "granules"):
        result = tmp_path / f"{way}.json"
        duck.main(way, str(case.stream), str(tmp_path / "lake"), "1", str(result))
        assert json.loads(result.read_text())["totals"] == computed
    ours.unpersist()


def of_levels(windows: Sequence[DataFrame]) -> DataFrame:
    """Return the rows of all levels, with columns in one order."""
    levels = (rows.withColumn("level", F.lit(number)) for number, rows in enumerate(windows))
    return reduce(DataFrame.unionByName, levels).select("level", *sorted(windows[0].columns))


def test_every_variant_gives_equal_results_for_six_levels_and_small_keys(
    spark: SparkSession, tmp_path: Path
) -> None:
    stream = load(levels.stream_of(6, tmp_path))
    lake = levels.lake_of(tmp_path, 1_000, 400)
    day = Interval(FIRST, FIRST + levels.DAY * HOUR)
    block = block_of(stream, peer_aggregate.BLOCK)
    events = spark.read.format("delta").load(f"{lake}/drawn/events").persist()
    windows = peer_aggregate.windowed(events, block, day.end)
    granules = peer_aggregate.floor(events, block).persist()
    framed = [frames.framed(granules, at, peer_aggregate.MEASURE, day.end) for at in block.levels]
    theirs, ours = (of_levels(rows).persist() for rows in (windows, framed))
    assert ours.exceptAll(theirs).count() == theirs.exceptAll(ours).count() == 0
    assert theirs.select("level").distinct().count() == 6

    expected = peer_aggregate.drained([theirs])
    assert peer_aggregate.framed(events, block, day.end) == expected
    assert peer_aggregate.computed(Store(spark, str(lake)), stream, events, day) == expected
    for way in ("raw", "granules"):
        result = tmp_path / f"{way}.json"
        duck.main(way, str(tmp_path / "levels-6.yaml"), str(lake), "1", str(result), format_hour(day.end))
        assert json.loads(result.read_text())["totals"] == expected
    for rows in (events, granules, theirs, ours):
        rows.unpersist()


@pytest.mark.parametrize("name", ["nested", "one heavy key", "no key"])
def test_every_variant_of_the_between_join_gives_equal_results(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    case, folder = between_log.CASES[name], between_log.drawn(tmp_path, name, 20 * LINES)
    rows, intervals = (spark.read.parquet(str(folder / part)) for part in ("rows", "frames.parquet"))
    actual = {
        way: peer_between.totals(way, removed())
        for way, removed in peer_between.ways_of(rows, intervals, case).items()
    }
    ours = actual["transom"]
    assert ours is not None
    assert ours[0] > 0
    assert (actual["floor"], actual["rows"]) == (None, ours[:1])
    assert actual["range"] == actual["buckets"] == ours
    minimum = [*ours[:2], 0, *ours[3:5], 0]
    for way, expected in (("range", ours), ("asof", minimum)):
        result = tmp_path / f"{way}.json"
        duck_between.main(way, name, str(folder), "1", str(result))
        assert json.loads(result.read_text())["totals"] == expected
    # Each match is compared at least once, in slices as well.
    pairs = between_log.compared(folder, case)
    sliced = between_log.compared(folder, case, case.mean * between_log.SECOND)
    assert ours[0] <= sliced <= pairs


@pytest.mark.parametrize("kind", list(framing_log.KINDS))
def test_every_variant_of_frames_gives_equal_results(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    lake, stream_file = framing_log.lake_of(tmp_path, LINES), framing_log.stream_of(tmp_path, kind)
    stream = load(stream_file)
    store = Store(spark, f"{lake}/{stream.name}")
    events = spark.read.format("delta").load(f"{store.root}/events")
    ways = peer_framing.ways_of(events, frame_block_of(stream, kind), store)
    actual = {way: peer_framing.totals(way, removed()) for way, removed in ways.items()}
    ours = actual["computed"]
    assert ours is not None
    assert ours[0] > 0
    assert actual["floor"] is None
    if kind == "threshold":
        result = tmp_path / "duck.json"
        duck_framing.main("islands", str(stream_file), str(lake), "1", str(result))
        assert actual["islands"] == json.loads(result.read_text())["totals"] == ours
