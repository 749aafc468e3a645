"""A lake whose ledger is written by hand, as runs would leave it."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import write_deltalake

from transom import __version__
from transom.app.freshness import freshness_of
from transom.core.partitions import EMPTY_DIGEST, PartitionKey, PartitionState
from transom.engine.damage_marks import damaged, publish_marks
from transom.features.ingest.expected_inputs import ExpectedInputs, partition_of
from transom.features.ingest.file_records import FileRecord
from transom.ledger.ledger import Ledger, Run
from transom.storage.tables import Table, create
from transom.stream import Stream, load

HOUR = timedelta(hours=1)
DAY = datetime(2015, 5, 17, tzinfo=UTC)

WEB = """
name: web
preset: apache/combined
source: {path: "landing/web/%Y-%m-%d/access.%H*.log"}
key: [client]
aggregates:
  traffic:
    measures: {n: count}
    levels: RANGES 2 HOURS, 1 HOUR SLIDES 1 HOUR, 1 HOUR
"""


def at(number: int) -> datetime:
    return DAY + number * HOUR


def file_row(lake: "Lake", path: str, hour: datetime, modified: datetime, **more: Any) -> FileRecord:
    """Return the row of a file of seven bytes that was read."""
    plain: dict[str, Any] = {"source_id": None, "hours": (hour,), "status_reason": None}
    return FileRecord(
        path=path, hour=hour, last_read_source_id="s", content_sha256=None,
        spec_hash=ExpectedInputs(lake.stream).spec_hash(hour), bytes=7, lines=1, header_lines=0,
        accepted=1, rejected=0, duplicates=0, first_event=None, last_event=None,
        columns=(), pending_hours=(), incomplete_reason=None, size=7, modified=modified, **plain | more,
    )  # fmt: skip


class Lake:
    """The file of a stream, a landing folder and a lake."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "streams" / "web.yaml"
        self.file.parent.mkdir()
        self.file.write_text(WEB)
        (folder / "landing" / "web").mkdir(parents=True)
        self.ledger = Ledger(f"{folder}/lake/web")

    @property
    def uri(self) -> str:
        return f"{self.folder}/lake"

    @property
    def stream(self) -> Stream:
        return load(self.file)

    def run(
        self,
        name: str,
        stage: str,
        entries: dict[PartitionKey, PartitionState],
        minute: int = 0,
        trigger: str = "schedule",
    ) -> None:
        """Write the ledger entries of a run."""
        self.ledger.claim(stage, entries, name)
        self.ledger.publish(stage, entries, name)
        hours = [node.hour for node in entries]
        self.ledger.record_run(
            Run(
                name, trigger, stage, min(hours), max(hours) + HOUR, 0, None, 0, 0, {"total": 7.5}, 100,
                __version__, datetime(2015, 5, 20, 12, minute, tzinfo=UTC),
            )
        )  # fmt: skip

    def ingest(
        self,
        hours: Iterable[int],
        name: str = "a",
        minute: int = 0,
        digest: str = "1:5",
        trigger: str = "schedule",
    ) -> None:
        """Write a run of ingest with published hours, one row each."""
        stream, entries = self.stream, {}
        for number in hours:
            for table, stored in (("events", digest), ("rejected", EMPTY_DIGEST), ("files", "1:7")):
                inputs = ExpectedInputs(stream).expected(at(number))
                entry = PartitionState(
                    "published", name, digest=stored, input_hashes=inputs, rows=int(stored[0])
                )
                entries[partition_of(table, at(number))] = entry
        self.run(name, "ingest", entries, minute, trigger)

    def files(self, known: Iterable[FileRecord]) -> None:
        """Write the table `files` with these rows."""
        table = Table.load("files")
        create(f"{self.folder}/lake/web", table)
        rows = pa.Table.from_pylist([*map(vars, known)], schema=table.arrow_schema())
        write_deltalake(f"{self.folder}/lake/web/files", rows, mode="overwrite")

    def aggregate(self, hours: Iterable[int], name: str = "b", minute: int = 1) -> None:
        """Write a run of aggregates with published hours."""
        for table in ("granules", "aggregates"):
            entries = {
                PartitionKey("aggregates", "traffic", table, at(n)): PartitionState("published", name)
                for n in hours
            }
            self.ledger.claim("aggregates", entries, name)
            self.ledger.publish("aggregates", entries, name)
            fresh = freshness_of(self.stream, self.ledger.snapshot())
            finished = {
                node: PartitionState("published", name, digest="1:3", input_hashes=fresh.inputs(node), rows=1)
                for node in entries
            }
            self.run(name, "aggregates", finished, minute)

    def mark(self, node: PartitionKey) -> None:
        """Mark a partition as damaged."""
        publish_marks(
            self.ledger,
            node.stage,
            "v",
            {node: damaged(self.ledger.snapshot()[node], "v", "f is not there")},
            self.ledger.snapshot(),
        )
