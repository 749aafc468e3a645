"""Rows in parts: equal values of some columns are in one part, and no row is lost."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from transom.findings import row_parts
from transom.findings.row_parts import PART, divide, part_sql
from transom.storage.tables import query_batches

COLUMNS = ["level", "user"]
ROWS = [
    {"level": number % 3, "user": None if number % 5 == 4 else f"user {number % 40}", "value": number}
    for number in range(1000)
]


def parts_of(folder: Path, rows: Sequence[dict[str, object]]) -> row_parts.Parts:
    schema = pa.schema({"level": pa.int64(), "user": pa.string(), "value": pa.int64()})
    write_deltalake(folder / "table", pa.Table.from_pylist(rows, schema))
    sql = f"SELECT *, {part_sql(COLUMNS)} AS {PART} FROM t"
    reader = query_batches(DeltaTable(folder / "table"), sql)
    schema = schema.append(pa.field(PART, pa.string()))
    # In small batches, so that parts have rows of several.
    batches = (
        batch.slice(start, 7).cast(schema) for batch in reader for start in range(0, batch.num_rows, 7)
    )
    return divide(batches, schema, folder / "parts")


def test_few_rows_are_one_part_in_memory(tmp_path: Path) -> None:
    (part,) = parts_of(tmp_path, ROWS)
    assert sorted(part().to_pylist(), key=lambda row: row["value"]) == ROWS
    assert not (tmp_path / "parts").exists()


def test_table_without_rows_is_one_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_parts, "MAX_ROWS", 0)
    (part,) = parts_of(tmp_path, [])
    assert part().column_names == ["level", "user", "value"]
    assert part().num_rows == 0


@pytest.mark.parametrize("most", [0, 100, 999])
def test_equal_values_of_many_rows_are_in_one_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(row_parts, "MAX_ROWS", most)
    parts = [part().to_pylist() for part in parts_of(tmp_path, ROWS)]
    assert sorted((row for part in parts for row in part), key=lambda row: row["value"]) == ROWS
    assert len(parts) > 20
    shared = Counter(key for part in parts for key in {(row["level"], row["user"]) for row in part})
    assert set(shared.values()) == {1}
