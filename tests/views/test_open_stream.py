"""A stream that is open for many views: intervals, versions, threads."""

import shutil
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from threading import Lock

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from tests.support.viewed_lake import ViewedLake, at, between, quality_of, sections_of, window
from transom.core.intervals import Interval
from transom.core.partitions import PartitionKey, PartitionState
from transom.engine import selection as module
from transom.storage.open_tables import OpenTables
from transom.storage.tables import LakeError
from transom.views.open_stream import NothingToView, OpenStream


@pytest.fixture
def opened(lake: ViewedLake) -> OpenStream:
    return OpenStream(lake.uri, lake.stream)


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (None, None, between(0, 6)),
        (at(2), None, between(2, 6)),
        (None, at(3), between(0, 3)),
        (None, at(-5), between(-6, -5)),
        (at(-50), at(50), between(-50, 50)),
    ],
)
def test_interval_without_an_end_ends_with_the_requested_hours(
    opened: OpenStream, start: datetime | None, end: datetime | None, expected: Interval
) -> None:
    assert opened.interval_of(start, end) == (expected, [])


def test_wrong_interval_is_an_error(opened: OpenStream) -> None:
    for start, end in ((at(3), at(3)), (at(3), at(2)), (at(1.5), at(3)), (at(9), None)):
        with pytest.raises(ValueError, match="from: must be"):
            opened.interval_of(start, end)


def test_cut_of_an_interval_is_a_notice(opened: OpenStream, lake: ViewedLake) -> None:
    _, notices = opened.interval_of(at(-500_000), at(500_000))
    assert "only [2015-05-17T00:00, 2015-05-17T06:00) is shown" in notices[0]
    lake.publish([800])
    interval, notices = opened.interval_of(None, None)
    assert (interval, notices) == (between(57, 801), ["The last 31 days of the requested hours."])


def test_stream_without_a_requested_hour(lake: ViewedLake, tmp_path: Path) -> None:
    with pytest.raises(NothingToView):
        OpenStream(tmp_path, lake.stream)
    (tmp_path / "empty").mkdir()
    empty = ViewedLake(tmp_path / "empty")
    with pytest.raises(NothingToView, match="no run has requested"):
        OpenStream(empty.uri, empty.stream).interval_of(None, None)


def figures(opened: OpenStream) -> list[object]:
    (part,) = sections_of(opened, "aggregates", None, between(0, 9), {"client": "a"})
    return [] if part.table is None else [row[part.table.columns.index("n")] for row in part.table.rows]


def test_open_stream_sees_later_commits(opened: OpenStream, lake: ViewedLake) -> None:
    assert figures(opened) == []
    lake.add("aggregates", [window(2, "a", 7)])
    assert figures(opened) == [7]
    lake.add("aggregates", [window(8, "a", 9)])
    assert figures(opened) == [7]
    lake.publish([8])
    assert figures(opened) == [9, 7]


@pytest.mark.parametrize("runs", [0, 1, 2])
def test_recreated_lake_is_opened_again(lake: ViewedLake, tmp_path: Path, runs: int) -> None:
    lake.publish([8])
    opened = OpenStream(lake.uri, lake.stream)
    lake.add("aggregates", [window(2, "a", 7)])
    assert figures(opened) == [7]
    before = opened.snapshot()
    shutil.rmtree(tmp_path / "lake")
    with pytest.raises(NothingToView, match="no run of six is in this lake"):
        opened.snapshot()
    again = ViewedLake(tmp_path)
    # With fewer commits than before, as many, and more.
    for number in range(1 + runs):
        again.publish(range(4 * number, 4 * number + 4), run=f"new {number}")
    again.add("aggregates", [window(3, "a", 8)])
    assert figures(opened) == [8]
    assert opened.snapshot() is not before
    assert opened.snapshot() == again.ledger.snapshot()


def test_selection_reads_one_version_of_a_table(opened: OpenStream, lake: ViewedLake) -> None:
    lake.add("aggregates", [window(2, "a", 7)])
    query = opened.selection(between(0, 6)).query("aggregates", "traffic", "aggregates", ["n"])
    assert query.rows(9) == [{"n": 7}]
    lake.add("aggregates", [window(3, "a", 8)])
    assert opened.selection(between(0, 6)).query("aggregates", "traffic", "aggregates", ["n"]).count() == 2
    assert (query.rows(9), query.count()) == ([{"n": 7}], 1)


def test_several_threads_use_one_open_stream(opened: OpenStream, lake: ViewedLake) -> None:
    writing = Lock()

    def view(number: int) -> object:
        if number % 4 == 0:
            with writing:
                lake.publish([10 + number], run=f"r{number}")
        return [part.subject for part in [*sections_of(opened), *quality_of(opened, between(0, 6))]]

    lake.add("aggregates", [window(2, "a", 7)])
    with ThreadPoolExecutor(4) as pool:
        subjects = [*pool.map(view, range(12))]
    assert subjects == subjects[:1] * 12


def test_snapshot_with_an_external_table_is_kept_until_something_changes(
    lake: ViewedLake, tmp_path: Path
) -> None:
    prices = tmp_path / "prices"
    rows = pa.table({"at": pa.array([at(1)], pa.timestamp("us", "UTC")), "price": [1.0]})
    write_deltalake(prices, rows)
    columns = "{price: {type: number, resolution: 0.1}}"
    source = f"source: {{table: {prices}, time: at, columns: {columns}}}, measures: {{sent: sum(price)}}"
    own = "shift: [3 hours], measures: {sent: sum(bytes)}"
    text = lake.file.read_text().replace(own, f"join_on: [], {source}")
    lake.file.write_text(text)
    opened = OpenStream(lake.uri, lake.file)
    before = opened.snapshot()
    assert opened.notices() == []
    assert opened.snapshot() is before
    assert opened.freshness(opened.snapshot()) is opened.freshness(before)
    write_deltalake(prices, rows, mode="append")
    changed = opened.snapshot()
    assert changed is not before
    lake.publish([7])
    assert opened.snapshot() is not changed


def test_coverage_counts_the_hours_of_each_state(opened: OpenStream, lake: ViewedLake) -> None:
    def enter(number: int, **state: str | bool) -> None:
        values = {"status": "published", "run_id": "b"} | state
        partition = PartitionKey("patterns", "back", "episodes", at(number))
        lake.enter("patterns", {partition: PartitionState(**values)}, "b")  # type: ignore[arg-type]

    enter(0, complete=False)
    enter(1, status="quarantined")
    lake.ledger.claim("patterns", [PartitionKey("patterns", "back", "episodes", at(2))], "killed")
    (part,) = sections_of(opened, "patterns")
    assert part.note.endswith(
        "Of 6 requested hours: 3 published, 1 incomplete, 1 being written, 1 quarantined."
    )
    (part,) = sections_of(opened, "patterns", interval=between(3, 6))
    assert part.note.endswith("All 3 requested hours are published.")
    (part,) = sections_of(opened, "patterns", interval=between(5, 6))
    assert part.note.endswith("The 1 requested hour is published.")
    (part,) = sections_of(opened, "patterns", interval=between(10, 12))
    assert part.note.endswith("No hour of this interval is requested.")
    lake.file.write_text(lake.file.read_text().replace("  back:", "  added:"))
    (part,) = sections_of(OpenStream(lake.uri, lake.file), "patterns")
    assert part.note.endswith("Of 6 requested hours: 6 not computed.")


def test_ranked_rows_are_limited_to_the_last_hours(
    opened: OpenStream, lake: ViewedLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_RANKED", 5)
    frame = {"block": "busy", "client": "a", "missing": 0, "state": "final", "records": 1, "fragment": 1}
    times = {"last_time": at(2), "length_s": 1.0}
    for hour in range(4):
        rows = [{"frame_id": f"{hour} {n}", "start_time": at(hour), "hour": at(hour)} for n in range(2)]
        lake.add("frames", [frame | times | row for row in rows])
    (part,) = sections_of(opened, "frames")
    assert part.note.startswith("4 frames")
    # The last two hours of the interval have no rows.
    assert "Only the last 4 hours are read, as there are more than 5 rows." in part.note


def test_section_of_a_damaged_table_has_its_error(opened: OpenStream, lake: ViewedLake) -> None:
    lake.add("aggregates", [window(2, "a", 7, level=1)])
    lake.add("frames", [])
    for file in Path(lake.root, "aggregates").glob("**/*.parquet"):
        file.unlink()
    parts = {part.subject: part for part in sections_of(opened)}
    assert "cannot be read" in parts["traffic"].note
    assert parts["busy"].note.startswith("No frame")


def test_ledger_that_cannot_be_read_is_an_error(opened: OpenStream, lake: ViewedLake) -> None:
    opened.snapshot()
    lake.publish([9])
    for file in Path(lake.root, "ledger").glob("*/*.json"):
        file.write_text("{")
    with pytest.raises(LakeError, match="six cannot be read"):
        opened.snapshot()


def test_lake_without_its_host_is_an_error(lake: ViewedLake, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(uri: str) -> bool:
        raise OSError("connection refused")

    monkeypatch.setattr(DeltaTable, "is_deltatable", refuse)
    with pytest.raises(LakeError, match="six cannot be read: connection refused"):
        OpenStream(lake.uri, lake.stream)


def test_lake_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    assert OpenTables(str(tmp_path)).pin("none") is None
    log = tmp_path / "odd" / "_delta_log"
    log.mkdir(parents=True)
    (log / f"{0:020}.json").write_text("{")
    with pytest.raises(LakeError, match=r"odd cannot be read"):
        OpenTables(str(tmp_path)).pin("odd")
