"""The benchmarks' ways to the same figures give the same, on a few drawn lines."""

import json
from pathlib import Path

import pytest
from bench import duck, peer_aggregate, peer_ingest
from bench.draw import LOGS
from bench.ingest import Case
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from transom.lake.store import Store
from transom.stages.blocks import block_of
from transom.stages.ingest_tables import event_types
from transom.stages.parsing import Reading
from transom.stages.read_rows import ReadRows
from transom.stream import load

LINES = 2_000


@pytest.mark.parametrize("name", list(LOGS))
def test_every_way_gives_the_same(spark: SparkSession, tmp_path: Path, name: str) -> None:
    case = Case(name, "plain", LINES, tmp_path / "case")
    stream, plain = load(case.stream), Path(case.files(tmp_path))
    reading = Reading(plain.name, str(plain), plain.stat().st_size, {}, None, ())
    rows = ReadRows(Store(spark, str(tmp_path / "read")), stream)
    ours = rows.events(rows.read([reading]).values()).select("event_time", *event_types(stream)).persist()
    columns = ours.columns
    cut = getattr(peer_ingest, name)(spark.read.text(str(plain)))
    theirs = cut.select(*(F.col(c).cast(ours.schema[c].dataType) for c in columns))
    assert ours.count() == LINES
    assert ours.exceptAll(theirs).count() == theirs.exceptAll(ours).count() == 0

    events = ours.withColumn("hour", F.date_trunc("hour", "event_time"))
    block = block_of(stream, peer_aggregate.BLOCK)
    computed = peer_aggregate.computed(Store(spark, str(tmp_path)), stream, events)
    windows = peer_aggregate.windowed(events, block)
    kept = peer_aggregate.written(windows, str(tmp_path / "kept"))
    assert computed == peer_aggregate.drained(windows) == peer_aggregate.drained([kept])
    table = tmp_path / "lake" / "drawn" / "events"
    events.write.format("delta").save(str(table))
    for way in ("raw", "granules"):
        result = tmp_path / f"{way}.json"
        duck.main(way, str(case.stream), str(tmp_path / "lake"), "1", str(result))
        assert json.loads(result.read_text())["totals"] == computed
    ours.unpersist()
