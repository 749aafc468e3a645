"""Statistics of the columns of data files: bounds that enclose every value, by which readers skip files."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given
from hypothesis import strategies as st

from transom.core.intervals import EPOCH
from transom.storage.column_stats import PREFIX
from transom.storage.data_files import write_data_files
from transom.storage.store import _adder
from transom.storage.tables import Table, instant, query

HOUR = datetime(2024, 3, 4, 5, tzinfo=UTC)
TABLE = Table(
    "t",
    {
        "hour": "timestamp", "time": "timestamp", "text": "string", "size": "bigint", "share": "double",
        "list": "array<bigint>",
    },
    ("hour",),
    frozenset(),
)  # fmt: skip
SCHEMA = TABLE.arrow_schema()
TEXTS = st.text(max_size=3) | st.tuples(st.sampled_from("a\x7fé\U0010ffff"), st.integers(30, 40)).map(
    lambda pair: pair[0] * pair[1]
)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "hour": st.just(HOUR),
            "time": st.none()
            | st.integers(-(10**16), 10**16).map(lambda us: EPOCH + timedelta(microseconds=us)),
            "text": st.none() | TEXTS,
            "size": st.none() | st.integers(-(2**63), 2**63 - 1),
            "share": st.none() | st.floats(),
            "list": st.none() | st.lists(st.integers(0, 9), max_size=2),
        }
    ),
    min_size=1,
    max_size=8,
)


def stats_of(table: Path, rows: list[dict[str, object]]) -> dict[str, dict[str, object]]:
    batches = [pa.RecordBatch.from_pylist([row], SCHEMA) for row in rows]
    [file] = write_data_files(str(table), "made", "part", batches, "hour", partition=True)
    stats: dict[str, dict[str, object]] = json.loads(json.dumps(file.stats))
    return stats


@given(rows=ROWS)
def test_bounds_enclose_every_value_and_nulls_are_counted(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, object]]
) -> None:
    stats = stats_of(tmp_path_factory.mktemp("table"), rows)
    assert stats["nullCount"] == {
        name: sum(row[name] is None for row in rows) for name in ("time", "text", "size", "share")
    }
    for name, read in (("time", datetime.fromisoformat), ("text", str.encode), ("size", lambda value: value)):
        values = [
            row[name].encode() if name == "text" else row[name] for row in rows if row[name] is not None
        ]
        assert (name in stats["minValues"]) == bool(values)
        if values:
            assert read(stats["minValues"][name]) <= min(values)
            if name in stats["maxValues"]:
                assert read(stats["maxValues"][name]) >= max(values)
            else:
                assert max(values)[: 4 * PREFIX + 4].decode(errors="ignore")[PREFIX:] == "\U0010ffff"
    assert not {"share", "list"} & (stats["minValues"].keys() | stats["maxValues"].keys())


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("a" * 32, "a" * 32),
        ("a" * 33, "a" * 32 + "\x7f"),
        ("a" * 32 + "\x7f", "a" * 32 + "\U0010ffff"),
        ("a" * 32 + "é", "a" * 32 + "\U0010ffff"),
        ("a" * 32 + "\U0010ffff", None),
    ],
)
def test_long_text_has_a_prefix_as_bound(tmp_path: Path, text: str, bound: str | None) -> None:
    stats = stats_of(tmp_path, [{"hour": HOUR, "text": text}])
    assert (stats["minValues"]["text"], stats["maxValues"].get("text")) == (text[:32], bound)


def test_times_are_bounded_by_whole_milliseconds(tmp_path: Path) -> None:
    times = [HOUR + timedelta(microseconds=us) for us in (1500, 2500, 3000)]
    stats = stats_of(tmp_path / "a", [{"hour": HOUR, "time": time} for time in times[:2]])
    assert stats["minValues"] == {"time": "2024-03-04T05:00:00.001Z"}
    assert stats["maxValues"] == {"time": "2024-03-04T05:00:00.003Z"}
    stats = stats_of(tmp_path / "b", [{"hour": HOUR, "time": times[2]}])
    assert stats["minValues"] == stats["maxValues"] == {"time": "2024-03-04T05:00:00.003Z"}


def test_readers_get_the_bounds_and_find_every_row(tmp_path: Path) -> None:
    """delta-rs skips files by what is committed."""
    uri = str(tmp_path / "t")
    write_deltalake(uri, SCHEMA.empty_table(), partition_by=["hour"])
    times = [HOUR + timedelta(microseconds=us) for us in (1, 999_999)]
    files = []
    for time, letter in zip(times, "bx", strict=True):
        row = {"hour": HOUR, "time": time, "text": letter * 40, "size": 7}
        batch = pa.RecordBatch.from_pylist([row], SCHEMA)
        files += write_data_files(uri, "made", f"part-{letter}", [batch], "hour", partition=True)
    _adder(TABLE, files, [HOUR])(DeltaTable(uri), None)
    table = DeltaTable(uri)
    actions = pa.table(table.get_add_actions(flatten=True)).sort_by("path")
    assert actions["num_records"].to_pylist() == [1, 1]
    assert actions["null_count.share"].to_pylist() == [1, 1]
    assert actions["min.size"].to_pylist() == actions["max.size"].to_pylist() == [7, 7]
    assert actions["max.text"].to_pylist() == [letter * 32 + "\x7f" for letter in "bx"]
    bounds = zip(actions["min.time"].to_pylist(), times, actions["max.time"].to_pylist(), strict=True)
    assert all(least <= time <= most for least, time, most in bounds)
    for time in times:
        assert query(table, f"SELECT text FROM t WHERE time = {instant(time)}").num_rows == 1
    for letter in "bx":
        assert query(table, f"SELECT text FROM t WHERE text = '{letter * 40}'").num_rows == 1


def test_table_that_is_not_searched_has_no_bounds(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    write_deltalake(uri, SCHEMA.empty_table(), partition_by=["hour"])
    batch = pa.RecordBatch.from_pylist([{"hour": HOUR, "size": 7}], SCHEMA)
    files = list(write_data_files(uri, "made", "part", [batch], "hour", partition=True))
    _adder(replace(TABLE, unsearched=True), files, [HOUR])(DeltaTable(uri), None)
    actions = pa.table(DeltaTable(uri).get_add_actions(flatten=True))
    assert (actions["num_records"].to_pylist(), actions["min.size"].to_pylist()) == ([1], [None])
