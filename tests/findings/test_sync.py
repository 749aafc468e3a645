"""The marks of findings: an id, and a hash of the row and its template."""

from dataclasses import dataclass
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from transom.findings import sync
from transom.findings.source import IDENTITY


@dataclass(frozen=True)
class Template:
    """A template whose rows are those of the table."""

    block: str = "busy"

    def summarize(self, rows: pa.Table, *others: object) -> pa.Table:
        """Return the rows."""
        return rows


def test_few_rows_at_a_time_are_hashed_with_the_same_result(monkeypatch: pytest.MonkeyPatch) -> None:
    times = [datetime(2024, 3, 4, hour, tzinfo=UTC) for hour in range(7)]
    rows = pa.table(
        {
            IDENTITY: [f"frame {number}" for number in range(7)],
            "start_time": pa.array(times, pa.timestamp("us", "UTC")),
            "peak": [None, 1.5, 2.0, 0.25, 1.0, 7.0, 8.0],
        }
    )
    monkeypatch.setattr(sync, "_rows_of_block", lambda *others: rows)
    stream: Any = SimpleNamespace(name="web", suppress=())
    source: Any = SimpleNamespace(
        stage="frames", kind="frame", table="frames", templates=lambda stream: [Template()]
    )
    snapshot: Any = SimpleNamespace(series=lambda *others: {})
    table: Any = None

    def marks() -> list[str]:
        ((_, marked),) = sync._summaries(snapshot, table, stream, source)
        found: list[str] = marked[sync.MARK].to_pylist()
        return found

    whole, sizes, of_batch = marks(), list[int](), sync._marks
    assert len(set(whole)) == 7
    monkeypatch.setattr(sync, "ROWS_AT_A_TIME", 3)
    monkeypatch.setattr(
        sync, "_marks", lambda rows, *words: sizes.append(len(rows)) or of_batch(rows, *words)
    )
    assert marks() == whole
    assert sizes == [3, 3, 1]
    rows = rows.slice(0, 0)
    assert marks() == []
