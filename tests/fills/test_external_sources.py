"""Frames filled from outside the stream: a table of other writers, and another stream."""

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from tests.promise.test_promise import assert_equal
from tests.support.stream_harness import StreamHarness, hour, line
from transom.app.pipeline import run_stages
from transom.core.intervals import Interval
from transom.storage.tables import LakeError
from transom.views.explain_hour import HourExplanation

Make = Callable[..., StreamHarness]
STREAM = """
name: {name}
preset: apache/combined
repair_window: 2 hours
source: {{path: "landing/web/%Y-%m-%d/access.%H*.log.gz"}}
key: [client]
"""
FRAMES = """
frames:
  failing: {kind: threshold, where: status >= 400, value: status, on_duplicate_time: max, idle: 2 hours}
fills:
"""
BESIDE = """
  beside:
    frame: failing
    source:
      table: %s
      time: at
      columns: {client: {from: host}, loss: {type: number, resolution: 0.1}, n: integer}
    where: n <> 13
    lead: 30 minutes
    measures: {lost: sum(loss), most: max(n)}
"""
ELSEWHERE = """
  own: {frame: failing, lag: 10 minutes, measures: {sent: sum(bytes)}}
  other: {frame: failing, source: {stream: copy, columns: {client: string, bytes: integer}}, lag: 10 minutes,
          measures: {sent: sum(bytes)}}
"""
LOG = {
    0: [line(600, status=404), line(660, status=500), line(1200)],
    1: [line(3600 + 60, status=404), line(3600 + 3000, "10.0.0.2", status=404)],
    2: [line(7200 + 5, status=404), line(7200 + 900)],
    3: [line(3 * 3600 + 5, "10.0.0.2", status=500)],
}
WAITS = r"^fills.other.source: it waits for the stream copy, of which no run"
Row = tuple[int, str, float | None, int]
EARLY: list[Row] = [
    (-600, "10.0.0.1", 0.26, 1), (0, "10.0.0.1", 1.5, 13), (630, "10.0.0.1", float("nan"), 2),
    (659, "10.0.0.2", 7.0, 3), (660, "10.0.0.1", None, 4), (3700, "10.0.0.1", 1e30, 5),
    (5400, "10.0.0.2", 2.04, 6),
]  # fmt: skip
LATE: list[Row] = [(6999, "10.0.0.1", 3.3, 7), (7204, "10.0.0.1", 0.7, 8), (10805, "10.0.0.2", 5.0, 9)]


def moment(seconds: int) -> datetime:
    return hour(0) + timedelta(seconds=seconds)


def append(path: Path, rows: list[Row]) -> None:
    at, host, loss, n = (list(column) for column in zip(*rows, strict=True))
    times = pa.array([moment(seconds) for seconds in at], pa.timestamp("us", "UTC"))
    write_deltalake(path, pa.table({"at": times, "host": host, "loss": loss, "n": n}), mode="append")


def land_hours(harness: StreamHarness) -> None:
    for number, lines in LOG.items():
        harness.land(number, lines)


def fills_of(harness: StreamHarness, name: str) -> dict[tuple[Any, ...], dict[str, Any]]:
    rows = [row for row in harness.rows_of("fills") if row["block"] == name]
    rows.sort(key=lambda row: (row["hour"], row["frame_id"], row["fragment"]))
    return {(row["hour"], row["frame_id"], row["fragment"]): row for row in rows}


@pytest.mark.full
def test_growing_table_fills_dependent_frames_again(make_stream: Make, tmp_path: Path) -> None:
    """Slow (half a minute): several runs of frames and fills."""
    text = STREAM.format(name="web") + FRAMES + BESIDE % (tmp_path / "history")
    append(tmp_path / "history", EARLY)
    actual, whole = make_stream(text, "lived"), make_stream(text, "whole")
    land_hours(actual)
    for number in range(4):
        actual.run(number, number + 1)
    check(actual, EARLY, last=1)
    before = actual.state()
    assert {finding.kind for finding in actual.findings()} == {"frame"}

    append(tmp_path / "history", LATE)
    stale = HourExplanation(actual.stream, actual.ledger, hour(2)).lines
    changed_since = (
        f"the rows of {tmp_path / 'history'} of 2015-05-16T23:00 to 2015-05-17T03:00, which it reads now"
    )
    assert [line for line in stale if changed_since in line], stale
    # The last hours are near enough to a run; the first two got no row, and the rest reads none.
    actual.stage("fills", 3, 4)
    changed = {
        name
        for name, state in actual.state().items()
        if before[name].digest != state.digest and "fill" in name
    }
    assert {name[-5:] for name in changed} == {"02:00", "03:00"}
    check(actual, [*EARLY, *LATE], last=3)
    actual.stage("fills", 0, 2)
    whole.run(0, 4)
    assert_equal(actual, whole)
    actual.assert_ledger_true()

    # Rewritten files have the same rows: hours are examined, and nothing is written.
    version = actual.store.pin(["fills"]).versions
    DeltaTable(tmp_path / "history").optimize.compact()
    assert actual.stage("fills", 0, 4).published == 4
    assert actual.store.pin(["fills"]).versions == version
    assert actual.stage("fills", 0, 4).published == 0


def check(lake: StreamHarness, rows: list[Row], last: int) -> None:
    """Compare every fill with all rows.

    Args:
        last: the hour of the table's last row.
    """
    first, later = hour(0) - timedelta(hours=1), hour(last + 1)
    for fill in fills_of(lake, "beside").values():
        start, end = fill["start_time"], fill["end_time"]
        near = [r for r in rows if start <= moment(r[0]) < end and r[1] == fill["client"] and r[3] != 13]
        losses = [round(r[2], 1) for r in near if r[2] is not None and r[2] < 1e20]
        inside = max(min(later, end) - max(first, start), timedelta(0))
        assert (fill["rows_matched"], fill["most"]) == (len(near), max((r[3] for r in near), default=None))
        assert fill["lost"] == (pytest.approx(sum(losses)) if losses else None)
        assert fill["coverage"] == inside / (end - start)
    assert fills_of(lake, "beside")


@pytest.mark.full
def test_rows_deleted_by_deletion_vectors_are_noticed(make_stream: Make, tmp_path: Path) -> None:
    """Slow (20 seconds): several runs of frames and fills."""
    path = tmp_path / "history"
    text = STREAM.format(name="web") + FRAMES + BESIDE % path
    web = make_stream(text)
    rows = [f"(TIMESTAMP '2015-05-17T00:10:3{n}Z', '10.0.0.1', 0.5D, {n})" for n in (2, 3)]
    web.spark.sql(
        f"CREATE TABLE delta.`{path}` (at TIMESTAMP, host STRING, loss DOUBLE, n BIGINT) USING delta "
        "TBLPROPERTIES ('delta.enableDeletionVectors' = true)"
    )
    web.spark.sql(f"INSERT INTO delta.`{path}` VALUES {', '.join(rows)}")
    land_hours(web)
    web.run(0, 4)
    first = [fill for fill in fills_of(web, "beside").values() if fill["rows_matched"]]
    assert [(fill["rows_matched"], fill["most"]) for fill in first] == [(2, 3)]
    web.spark.sql(f"DELETE FROM delta.`{path}` WHERE n = 3")
    web.stage("fills", 0, 4)
    assert sum(fill["rows_matched"] or 0 for fill in fills_of(web, "beside").values()) == 1


@pytest.mark.full
def test_another_stream_fills_frames_like_own_events(make_stream: Make) -> None:
    """Slow (half a minute): runs of two streams, and of one that has both."""
    text = STREAM.format(name="web") + FRAMES + ELSEWHERE
    web, copy = make_stream(text), make_stream(STREAM.format(name="copy"))
    land_hours(web)
    copy.run(0, 2)
    for number in range(4):
        web.run(number, number + 1)
    early = fills_of(web, "other")
    assert {row["coverage"] for row in early.values()} > {1.0}
    copy.run(2, 4)
    assert web.stage("fills", 0, 4).published > 0
    alike = [
        {name: value for name, value in row.items() if name not in ("block",)}
        for block in ("own", "other")
        for row in fills_of(web, block).values()
    ]
    assert alike[: len(alike) // 2] == alike[len(alike) // 2 :]
    # A quarantined hour there blocks its readers here.
    copy.land(1, ["junk"] * 9, "b")
    copy.run(1, 2)
    web.stage("fills", 0, 4)
    states = {name[-5:]: state for name, state in web.state().items() if name.startswith("fills.other")}
    assert states["01:00"].status == "blocked"
    assert states["01:00"].cause == "filler copy 2015-05-17T01:00 is quarantined: " + str(
        copy.state()["ingest.events.events 2015-05-17T01:00"].cause
    )


@pytest.mark.parametrize(
    ("columns", "output"),
    [
        (None, "fills.beside.source: .*/history cannot be read: .*"),
        ({"when": pa.timestamp("us", "UTC")},
         "fills.beside.source.time: .*/history has no column 'at'; known: when"),
        ({"at": pa.timestamp("us")}, "fills.beside.source.time: at must be a timestamp; in .*/history it is "
         r"a timestamp\[us\], which has no zone"),
        ({"at": pa.int64()},
         "fills.beside.source.time: at must be a timestamp; in .*/history it is an int64"),
        ({"at": pa.timestamp("us", "UTC"), "hots": pa.string()},
         "fills.beside.source.columns.client: .*/history has no column 'host'; nearest: hots"),
        ({"at": pa.timestamp("us", "UTC"), "host": pa.string(), "loss": pa.string()},
         "fills.beside.source.columns.loss: loss must be a number; in .*/history it is a string"),
    ],
)  # fmt: skip
def test_table_that_differs_from_its_declaration_is_refused(
    make_stream: Make, tmp_path: Path, columns: dict[str, pa.DataType] | None, output: str
) -> None:
    web = make_stream(STREAM.format(name="web") + FRAMES + BESIDE % (tmp_path / "history"))
    if columns is not None:
        DeltaTable.create(tmp_path / "history", pa.schema(columns))
    with pytest.raises(LakeError, match=f"^{output}$"):
        web.stage("fills", 0, 1)


def test_table_without_times_in_its_log_is_refused(make_stream: Make, tmp_path: Path) -> None:
    path = tmp_path / "history"
    web = make_stream(STREAM.format(name="web") + FRAMES + BESIDE % path)
    schema = pa.schema(
        {"at": pa.timestamp("us", "UTC"), "host": pa.string(), "loss": pa.float64(), "n": pa.int64()}
    )
    DeltaTable.create(path, schema, configuration={"delta.dataSkippingNumIndexedCols": "0"})
    append(path, EARLY)
    with pytest.raises(
        LakeError, match="the log of the table must have the first and last time of each file"
    ):
        web.stage("fills", 0, 1)


@pytest.mark.full
@pytest.mark.parametrize(
    ("setting", "property_", "output"),
    [
        ("spark.databricks.delta.stats.collect", "'a' = 'b'",
         "the log of the table must have the first and last time of each file"),
        ("spark.databricks.delta.stats.skipping", "'delta.columnMapping.mode' = 'name'",
         "has its columns under other names in its files"),
    ],
)  # fmt: skip
def test_unreadable_hour_of_a_table_does_not_count_as_empty(
    make_stream: Make, tmp_path: Path, setting: str, property_: str, output: str
) -> None:
    path = tmp_path / "history"
    web = make_stream(STREAM.format(name="web") + FRAMES + BESIDE % path)
    web.spark.conf.set(setting, "false")
    try:
        web.spark.sql(
            f"CREATE TABLE delta.`{path}` (at TIMESTAMP, host STRING, loss DOUBLE, n BIGINT) USING delta "
            f"TBLPROPERTIES ({property_})"
        )
        web.spark.sql(
            f"INSERT INTO delta.`{path}` VALUES (TIMESTAMP '2015-05-17T00:10:32Z', '10.0.0.1', 0.5D, 1)"
        )
    finally:
        web.spark.conf.unset(setting)
    with pytest.raises(LakeError, match=output):
        web.stage("fills", 0, 1)


def test_stream_that_never_ran_is_refused(make_stream: Make) -> None:
    web = make_stream(STREAM.format(name="web") + FRAMES + ELSEWHERE)
    with pytest.raises(LakeError, match=WAITS):
        web.stage("fills", 0, 1)


@pytest.mark.full
def test_stages_before_a_waiting_one_are_published(make_stream: Make) -> None:
    """Slow (20 seconds): ingest, frames and fills as the job runs them. The job raises what its script ends
    with, with exit code 1.
    """
    web = make_stream(STREAM.format(name="web") + FRAMES + ELSEWHERE)
    web.land(0, LOG[0])
    first = Interval(hour(0), hour(1))
    with pytest.raises(LakeError, match=WAITS):
        run_stages(web.spark, web.stream, first, lake=str(Path(web.root).parent), command="")
    published = {(node.stage, entry.status) for node, entry in web.ledger.snapshot().items()}
    assert published == {("ingest", "published"), ("frames", "published")}
    assert [len(web.rows_of(table)) for table in ("events", "frames")] == [3, 1]
