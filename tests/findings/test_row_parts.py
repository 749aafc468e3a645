"""Rows in parts: equal values of some columns are in one part, and no row is lost."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

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


def parts_of(folder: Path, rows: Sequence[dict[str, Any]], limit: int) -> row_parts.Parts:
    schema = pa.schema({"level": pa.int64(), "user": pa.string(), "value": pa.int64()})
    write_deltalake(folder / "table", pa.Table.from_pylist(rows, schema))
    sql = f"SELECT *, {part_sql(COLUMNS)} AS {PART} FROM t"
    reader = query_batches(DeltaTable(folder / "table"), sql)
    schema = schema.append(pa.field(PART, pa.string()))
    # In small batches, so that parts have rows of several.
    batches = (
        batch.slice(start, 7).cast(schema) for batch in reader for start in range(0, batch.num_rows, 7)
    )
    return divide(batches, schema, limit)


def by_value(rows: Iterable[dict[str, object]]) -> list[dict[str, object]]:
    return sorted(rows, key=lambda row: str(row["value"]).zfill(4))


def test_few_rows_are_one_part(tmp_path: Path) -> None:
    (part,) = parts_of(tmp_path, ROWS, len(ROWS))
    assert by_value(part().to_pylist()) == ROWS


def test_table_without_rows_is_one_part(tmp_path: Path) -> None:
    (part,) = parts_of(tmp_path, [], 0)
    assert part().column_names == ["level", "user", "value"]
    assert part().num_rows == 0


@pytest.mark.parametrize(("limit", "at_a_time"), [(0, 1000), (100, 64), (999, 1)])
def test_equal_values_of_many_rows_are_in_one_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int, at_a_time: int
) -> None:
    monkeypatch.setattr(row_parts, "AT_A_TIME", at_a_time)
    parts = parts_of(tmp_path, ROWS, limit)
    read = [part().to_pylist() for part in parts]
    assert by_value(row for rows in read for row in rows) == ROWS
    assert len(parts) > 20
    shared = Counter(key for rows in read for key in {(row["level"], row["user"]) for row in rows})
    assert set(shared.values()) == {1}
    # A part is read again, in any order.
    assert [part().to_pylist() for part in parts[::-1]] == read[::-1]
