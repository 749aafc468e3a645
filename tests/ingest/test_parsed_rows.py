"""What the tasks that parse files measure of their events. No Spark."""

from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.stream_harness import WEB, line
from transom.core.intervals import EPOCH, moment_of
from transom.core.partitions import format_digest
from transom.features.ingest.file_records import ListedFile
from transom.features.ingest.parsed_rows import ParsedRows
from transom.features.ingest.read_files import TASK_BYTES, FileReader, FileReadResult, FileReadTask, divide
from transom.features.ingest.tables import Tables
from transom.storage.driver_io import row_bytes
from transom.storage.row_hashes import row_hashes
from transom.stream import load

LINES = [line(second, f"10.0.0.{second % 3}", status=200 + second % 2) for second in (5000, 10, 4000, 20, 30)]
CONDITIONS = {"found": "coalesce(status < 201, false)", "strange": "regexp_like(client, '1$')"}
MOST_HOURS = 2


def read(folder: Path, lines: list[str], text: str = WEB) -> tuple[ParsedRows, FileReadResult]:
    """Return the rows of a run, and the result of reading one file."""
    (folder / "web.yaml").write_text(text)
    log = folder / "access.log"
    log.write_text("".join(f"{line}\n" for line in lines))
    rows = ParsedRows(Mock(), load(folder / "web.yaml"))
    tables = {name: str(folder / name) for name in ("events", "rejected")}
    task = FileReadTask(ListedFile("access.log", log.stat().st_size, EPOCH, {}), str(log))
    measures = rows._measures(CONDITIONS)
    reader = FileReader(rows.stream.layout(), rows.columns, tables, "read", measures, MOST_HOURS)
    return rows, reader.read(task)


def test_events_are_measured_by_hour_as_they_are_written(tmp_path: Path) -> None:
    rows, result = read(tmp_path, LINES)
    table, measures = Tables.of(rows.stream).events, rows._measures(CONDITIONS)
    assert measures is not None
    assert [file.rows for file in result.events] == [3, 2]
    for file in result.events:
        assert file.hour is not None
        events = pq.read_table(tmp_path / "events" / file.path)
        hour = pa.repeat(pa.scalar(file.hour, pa.timestamp("us", "UTC")), file.rows)
        (batch,) = (
            events.append_column("hour", hour).select(list(table.columns)).combine_chunks().to_batches()
        )
        (sums,) = (sums for number, sums in result.sums.items() if moment_of(number) == file.hour)
        assert measures.aggregates({name: [of] for name, of in sums.items()}) == {
            "count": file.rows,
            "digest": format_digest(file.rows, sum(row_hashes(batch, table.digest_columns()).tolist())),
            "bytes": int(np.sum(row_bytes(batch, len(table.columns)))),
            "found": sum(status < 201 for status in events["status"].to_pylist()),
        }


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        ([*LINES, line(20_000)], WEB),
        (LINES, f"{WEB}columns: {{half: {{type: number, resolution: '0.5', is: status / 2}}}}\n"),
    ],
    ids=["several hours in a file", "derived columns"],
)
def test_events_that_tasks_do_not_measure_have_no_sums(tmp_path: Path, lines: list[str], text: str) -> None:
    _, result = read(tmp_path, lines, text)
    assert sum(file.rows for file in result.events) == len(lines)
    assert result.sums == {}


@pytest.mark.parametrize(
    ("files", "size", "shares"),
    [(1, TASK_BYTES, 1), (3, 10, 2), (8, TASK_BYTES, 8), (72, TASK_BYTES // 8, 10)],
    ids=["one file", "small files", "large files", "nine times a task's bytes"],
)
def test_tasks_that_read_files_fill_rounds_of_two_tasks(files: int, size: int, shares: int) -> None:
    listed = (ListedFile(f"{number}.log", size, EPOCH, {}) for number in range(files))
    tasks = [FileReadTask(file, file.path) for file in listed]
    divided = divide(tasks, 2)
    assert len(divided) == shares
    assert sorted(task.where for share in divided for task in share) == sorted(task.where for task in tasks)
