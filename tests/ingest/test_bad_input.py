"""Invalid input, and files that change while they are read: nothing is lost, and no run breaks."""

import gzip
import json
import resource
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyarrow import RecordBatch

from tests.support.stream_harness import PLAIN, StreamHarness, clock, hour, line
from transom.app.run_stage import Context, run_chunk
from transom.core.partitions import PartitionKey
from transom.features.ingest.landing import FileNames, Landing, LandingError
from transom.features.ingest.tables import Tables
from transom.storage import driver_io as small
from transom.storage.fencing import Claim, RunSuperseded
from transom.storage.store import Store
from transom.storage.write import Write

Make = Callable[..., StreamHarness]

COLONS = """
name: web
preset: apache/combined
source: {path: "landing/{site} logs/access.%Y-%m-%dT%H:00:00.log"}
key: [site, client]
aggregates: {traffic: {measures: {n: count}, levels: RANGES 1 HOUR SLIDES 1 HOUR}}
"""


def test_names_with_colons_spaces_and_captures_are_read(make_stream: Make) -> None:
    """Slow as the first test (20 seconds): Java starts, and all stages run."""
    day = make_stream(COLONS)
    for site in ("north", "south 2"):
        folder = day.folder / f"landing/{site} logs"
        folder.mkdir(parents=True)
        (folder / "access.2015-05-17T02:00:00.log").write_text(line(7200) + "\n" + line(7201) + "\n")
    day.run(2, 3)
    rows = day.table("aggregates").select("site", "client", "n").collect()
    assert {tuple(row) for row in rows} == {("north", "10.0.0.1", 2), ("south 2", "10.0.0.1", 2)}
    assert {row.status for row in day.table("files").collect()} == {"ingested"}


def test_line_of_ten_megabytes_and_junk_are_rejected_with_their_bytes(make_stream: Make) -> None:
    day = make_stream()
    long, junk = "x" * 10_000_000, b"\xff\xfe\0\1 junk"
    good = [line(7200 + i) for i in range(98)]
    path = day.land(2, [])
    data = "".join(text + "\n" for text in [*good, long]).encode() + junk
    path.write_bytes(gzip.compress(data))
    assert day.stage("ingest", 2, 3).published == 1
    rejected = {row.source_line: row for row in day.table("rejected").collect()}
    assert rejected.keys() == {99, 100}
    assert rejected[99].raw == long
    assert (rejected[99].reason, rejected[99].detail) == (
        "line_too_long",
        "line too long: 10000000; expected at most 1048576 bytes",
    )
    assert (rejected[100].reason, rejected[100].raw) == ("not_utf8", "\\xff\\xfe\0\1 junk")
    assert day.table("events").count() == 98


def test_bytes_that_are_no_text_are_recoverable_from_rejected_lines(make_stream: Make) -> None:
    day = make_stream("""
name: web
preset: apache/combined
source: {path: "landing/web/%Y-%m-%d/access.%H*.log.gz"}
checks: {rejected_share: {at_most: 1}}
aggregates: {all: {key: [], measures: {n: count}, levels: RANGES 1 HOUR SLIDES 1 HOUR}}
""")
    path = day.land(2, [])
    path.write_bytes(gzip.compress(bytes(range(256)) * 3))
    day.run(2, 3)
    (file,) = day.table("files").collect()
    assert file.lines == file.accepted + file.rejected + file.header_lines
    assert day.table("rejected").count() == file.rejected > 0
    (entry,) = [e for n, e in day.snapshot().items() if n.table == "aggregates"]
    assert (entry.status, entry.rows) == ("published", 0)


@pytest.mark.full
def test_file_still_being_written_is_read_again_when_it_has_grown(make_stream: Make) -> None:
    """Slow (20 seconds): several runs of all stages."""
    day = make_stream(PLAIN)
    lines = [line(7200 + i, f"10.0.0.{i % 3}") for i in range(40)]
    path = day.land(2, lines[:10])
    # An unfinished line in an unfinished gzip.
    path.write_bytes(gzip.compress("\n".join([*lines[:10], lines[10][:30]]).encode())[:-8])
    day.run(2, 3)
    entry = day.snapshot()[PartitionKey("ingest", "events", "events", hour(2))]
    assert (entry.status, entry.complete, entry.rows) == ("published", False, 10)
    day.land(2, lines)
    day.run(2, 3)
    assert day.table("events").count() == 40
    whole = make_stream(PLAIN, "whole")
    whole.run(2, 3)
    assert day.state() == whole.state()


def test_file_removed_between_listing_and_reading_counts_as_not_listed(
    make_stream: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    day = make_stream()
    read = Landing.read

    def ingest_without(goes: Path) -> None:
        def listed_then_gone(names: FileNames) -> Landing:
            result = read(names)
            goes.unlink()
            return result

        with monkeypatch.context() as patch:
            patch.setattr(Landing, "read", listed_then_gone)
            day.stage("ingest", 2, 4)

    def statuses() -> dict[str, str]:
        return {Path(row.path).name: row.status for row in day.table("files").collect()}

    day.land(2, [line(7200)])
    ingest_without(day.land(2, [line(7201)], ".b"))
    assert statuses() == {"access.02.log.gz": "ingested"}
    assert day.table("events").count() == 1
    # A file that is read after the others, as it no longer equals one of them.
    day.land(2, [line(7201)], ".b")
    day.land(3, [line(7200)])
    day.stage("ingest", 2, 4)
    day.land(2, [line(7200), line(7202)])
    ingest_without(day.land(2, [line(7201), line(7203)], ".b"))
    assert statuses() == {
        "access.02.log.gz": "ingested",
        "access.02.b.log.gz": "missing",
        "access.03.log.gz": "ingested",
    }
    assert day.table("events").count() == 4


def test_missing_landing_folder_is_reported(make_stream: Make) -> None:
    day = make_stream()
    with pytest.raises(LandingError, match=r"source.path: landing folder .*landing/web cannot be listed"):
        day.stage("ingest", 2, 3)
    assert not day.snapshot()


def test_rows_outside_the_time_range_of_their_file_are_rejected_with_its_name(make_stream: Make) -> None:
    day = make_stream(
        """
name: web
preset: apache/combined
source: {path: "landing/web/%Y-%m-%d/access.%H*.log.gz", event_time_range: {before: 1 hour, after: 0 seconds}}
checks: {rejected_share: {at_most: 0.5}}
aggregates: {all: {key: [], measures: {n: count}, levels: RANGES 1 HOUR SLIDES 1 HOUR}}
"""
    )
    day.land(5, [line(5 * 3600 + 1), line(4 * 3600), line(4 * 3600 - 1)])
    day.run(5, 6)
    (refused,) = day.table("rejected").collect()
    assert (refused.source_line, refused.reason) == (3, "outside_holds")
    assert clock(day.table("events")) == {4, 5}


@pytest.mark.full
def test_one_of_two_concurrent_runs_is_fenced_off(make_stream: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second run reads before the first publishes. Its write is refused and then repeated.

    Slow (20 seconds): several runs of ingest, two of them concurrent.
    """
    day = make_stream(PLAIN)
    for number in (0, 1):
        day.land(number, [line(number * 3600 + i) for i in range(5)])
    first: Context = day.context(0, 2)
    claim = day.ledger.claim

    def overtaken(*arguments: Any) -> Any:
        monkeypatch.setattr(day.ledger, "claim", claim)
        day.stage("ingest", 0, 2)
        return claim(*arguments)

    monkeypatch.setattr(day.ledger, "claim", overtaken)
    with pytest.raises(RunSuperseded, match=r"run run .* was recorded meanwhile; run run .* wrote nothing"):
        run_chunk("ingest", first)
    day.run(0, 2)
    alone = make_stream(PLAIN, "alone")
    alone.run(0, 2)
    assert day.state() == alone.state()
    day.assert_ledger_true()


def test_overtaken_write_is_reported_in_one_line(make_stream: Make, tmp_path: Path) -> None:
    """The second run commits while the first one's rows are still being computed."""
    day = make_stream()
    table = Tables.of(day.stream).rejected
    day.store.create(table)
    begun, go = tmp_path / "begun", tmp_path / "go"

    def slowly(batches: Iterable[RecordBatch]) -> Iterator[RecordBatch]:
        begun.touch()
        while not go.exists():
            time.sleep(0.05)
        for _ in batches:
            yield from ()

    none = day.spark.createDataFrame(table.arrow_schema().empty_table())
    slow = Write(table, day.spark.range(0, 1, 1, 1).mapInArrow(slowly, none.schema), {None: [hour(0)]})
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(day.store.write, slow, Claim("ingest", "first", 1))
        while not begun.exists():
            time.sleep(0.05)
        day.store.write(Write(table, none, {None: [hour(1)]}), Claim("ingest", "second", 2))
        go.touch()
        with pytest.raises(RunSuperseded, match="table rejected holds a later run's write; run first wrote"):
            first.result(timeout=60)


def test_missing_field_is_null_and_unfit_field_is_rejected(make_stream: Make) -> None:
    day = make_stream(
        """
name: web
source: {path: "landing/web/%Y-%m-%d/access.%H*.log.gz", format: json}
columns: {at: {from: at, type: timestamp}, n: {from: n, type: integer}, late: {from: late, type: integer}}
time: {column: at}
checks: {rejected_share: {at_most: 0.5}}
aggregates: {all: {key: [], measures: {total: sum(n)}, levels: RANGES 1 HOUR SLIDES 1 HOUR}}
"""
    )
    records: list[dict[str, object]] = [
        {"at": "2015-05-17T02:00:01Z", "n": 4},
        {"n": 5, "new": [1, 2], "at": "2015-05-17T02:00:02Z"},
        {"at": "2015-05-17T02:00:03Z", "n": "five"},
    ]
    day.land(2, [json.dumps(record) for record in records])
    day.run(2, 3)
    (refused,) = day.table("rejected").collect()
    assert (refused.source_line, refused.reason, refused.column) == (3, "bad_type", "n")
    assert [row.late for row in day.table("events").collect()] == [None, None]
    assert [row.total for row in day.table("aggregates").collect()] == [9]


def land_two_hours(day: StreamHarness) -> None:
    for number in (0, 1):
        day.land(number, [line(number * 3600 + i, f"10.0.{i % 7}.1") for i in range(50)])


def build(day: StreamHarness) -> None:
    """Build a lake of two hours, with room on the disk."""
    land_two_hours(day)
    day.run(0, 2)


@pytest.mark.full
@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="limits of another process are Linux's")
@pytest.mark.parametrize(
    ("table", "limit"),
    [
        ("events", small.MAX_DRIVER_BYTES),
        ("granules", 0),
        ("events", 0),
        ("aggregates", small.MAX_DRIVER_BYTES),
    ],
)
def test_full_disk_loses_no_rows(
    make_stream: Make, monkeypatch: pytest.MonkeyPatch, table: str, limit: int
) -> None:
    """For rows written by the driver, and for rows written by Spark.

    Slow (10 seconds each): a run that fails, and a complete one.
    """
    alone, day = make_stream(PLAIN, "alone", ready=build), make_stream(PLAIN)
    monkeypatch.setattr(small, "MAX_DRIVER_BYTES", limit)
    land_two_hours(day)
    java = int(day.spark._jvm.java.lang.ProcessHandle.current().pid())
    soft, hard = resource.prlimit(java, resource.RLIMIT_FSIZE)
    write = Store.write

    def no_room(self: Store, what: Any, *more: Any) -> None:
        if what.table.name == table:
            for process in (java, 0):
                resource.prlimit(process, resource.RLIMIT_FSIZE, (100, hard))
        write(self, what, *more)

    with monkeypatch.context() as patch:
        patch.setattr(Store, "write", no_room)
        try:
            with pytest.raises(Exception, match=r"(?i)file too large"):
                day.run(0, 2)
        finally:
            for process in (java, 0):
                resource.prlimit(process, resource.RLIMIT_FSIZE, (soft, hard))
    assert {entry.status for node, entry in day.snapshot().items() if node.table == table} == {"writing"}
    assert day.table(table).count() == 0
    day.run(0, 2)
    assert day.state() == alone.state()
    day.assert_ledger_true()
