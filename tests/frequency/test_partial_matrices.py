"""Partial matrices add up to those of hours, and a matrix that lacks a record is detected."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.support.stream_factories import base
from transom.engine.hour_chains import HourRun
from transom.features.frequency import tables_cells as cells
from transom.features.frequency import tables_tick_matrices as tick_matrices
from transom.features.frequency.check_metrics import MISCOUNTED
from transom.features.frequency.queries import combine_rows
from transom.features.frequency.resolve import FrequencyBlock, frequency_block_of
from transom.features.frequency.tables_tick_matrices import (
    TICK,
    WHOLE,
    MergedMatrices,
    partial_matrices,
    partial_schema,
    task_of_counts,
)
from transom.features.frequency.windows import Hours
from transom.features.items.columns import HOUR_NUMBER
from transom.features.items.tables import item_schema
from transom.ledger.task_counters import TaskCounters
from transom.storage.tables import Table
from transom.stream import parse

HOUR = 7


def block(variant: str = "perfect") -> FrequencyBlock:
    spec = {"item": ["user"], "window": "2 hours", "tick": "20 minutes", "epsilon": 0.6, "delta": 0.2}
    spec["variant"] = variant
    return frequency_block_of(parse(base() | {"frequency": {"x": spec}}), "x")


def counts(rows: list[tuple[str, int, int]]) -> pa.Table:
    user, tick, records = zip(*rows, strict=True)
    count = len(rows)
    return pa.table({
        "user": user, "long": [False] * count, HOUR_NUMBER: [HOUR] * count, "tick": tick, "records": records,
        "watched": [False] * count,
    })  # fmt: skip


def counted(of: FrequencyBlock, *tasks: list[tuple[str, int, int]]) -> list[pa.RecordBatch]:
    schema = partial_schema(of)
    return [part for rows in tasks for part in partial_matrices(of, schema, counts(rows).to_batches())]


def added(of: FrequencyBlock, parts: list[pa.RecordBatch]) -> tuple[pa.Table, int]:
    tally = TaskCounters()
    rows = pa.Table.from_batches(
        list(MergedMatrices(of, item_schema(tick_matrices.TABLE, of.item))(iter(parts), tally))
    )
    return rows, tally.sums[HOUR, MISCOUNTED]


TASKS = [("a", 0, 5), ("b", 0, 1), ("a", 2, 7)], [("c", 0, 3), ("d", 1, 2)]


def test_partial_matrices_of_tasks_add_up() -> None:
    separate, wrong = added(block(), counted(block(), *TASKS))
    whole, _ = added(block(), counted(block(), TASKS[0] + TASKS[1]))
    assert wrong == 0
    order = [(column, "ascending") for column in ("row_kind", "tick", "user")]
    assert separate.sort_by(order).equals(whole.sort_by(order))
    rows = separate.to_pylist()
    assert [row["records"] for row in rows if row["row_kind"] == TICK] == [9, 2, 7]
    (whole,) = (row for row in rows if row["row_kind"] == WHOLE)
    assert (whole["records"], sum(whole["cells"])) == (18, 18 * block().shape.rows)


def test_task_on_the_driver_adds_the_matrices_of_an_hour_before_those_of_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    of, computed, tally = block(), list[int](), TaskCounters()
    matrices_of = tick_matrices.matrices_of

    def counting(*arguments: object) -> np.ndarray:
        computed.append(len(computed))
        return matrices_of(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(tick_matrices, "matrices_of", counting)
    hours = [counts(rows) for rows in TASKS * 2]
    # Not in order, and with a text that is too long in two of four hours.
    numbers = [HOUR + 2, HOUR, HOUR + 3, HOUR + 1]
    for place, (table, number) in enumerate(zip(hours, numbers, strict=True)):
        is_long = pa.array([place % 2 == 0, *[False] * (table.num_rows - 1)])
        table = table.set_column(1, "long", is_long)
        hours[place] = table.set_column(2, HOUR_NUMBER, pa.array([number] * table.num_rows))
    task = task_of_counts(of, pa.concat_tables(hours))
    assert isinstance(task.frame, pa.Table)
    assert task.compute_counting is not None
    assert not computed
    rows, progress = [], []
    for batch in task.compute_counting(task.frame.to_batches(), tally):
        rows.append(batch)
        progress.append(len(computed))
    # The rows of an hour follow the first matrix of the next hour, which shows that the hour is over.
    assert sorted(set(progress)) == [2, 3, 4]
    partials = [
        part for table in hours for part in partial_matrices(of, partial_schema(of), table.to_batches())
    ]
    by_hour = pa.Table.from_batches(partials).sort_by(HOUR_NUMBER).combine_chunks().to_batches()
    other = TaskCounters()
    merged = MergedMatrices(of, item_schema(tick_matrices.TABLE, of.item))
    expected = pa.Table.from_batches(list(merged(by_hour, other)))
    order = [(column, "ascending") for column in ("hour", "row_kind", "tick", "user")]
    assert pa.Table.from_batches(rows).sort_by(order).equals(expected.sort_by(order))
    assert tally == other


@pytest.mark.parametrize("rows", [1, 3])
def test_record_missing_in_a_matrix_is_detected(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    of = replace(block(), shape=replace(block().shape, rows=rows))
    matrices_of = tick_matrices.matrices_of

    def lacking(*arguments: object) -> np.ndarray:
        result = matrices_of(*arguments)  # type: ignore[arg-type]
        result[0, 0, result[0, 0].argmax()] -= 1
        return result

    monkeypatch.setattr(tick_matrices, "matrices_of", lacking)
    _, wrong = added(of, counted(of, TASKS[0]))
    assert wrong == 1


def left_of(of: FrequencyBlock, rows: pa.Table) -> pa.Table | None:
    """Return the state of cells at the end of the hour, of a chained variant."""
    if not of.chained:
        return None
    ticks = rows.filter(pc.equal(rows["row_kind"], WHOLE if of.variant == "vanilla" else TICK))
    start = pc.coalesce(ticks["tick"], ticks["hour"]).cast(pa.int64())
    given = pa.table({"tick": start, "records": ticks["records"], "counters": ticks["cells"]})
    advanced = cells.CellUpdater(of, [HourRun(None, HOUR, HOUR + 1)], Table.load(cells.TABLE).block_schema())
    return pa.Table.from_batches(list(advanced(given.to_batches(), TaskCounters())))


@pytest.mark.parametrize("hour", [HOUR, HOUR + 1])
@pytest.mark.parametrize("variant", ["perfect", "simple", "proportional"])
def test_window_whose_rows_do_not_add_up_is_detected(variant: str, hour: int) -> None:
    of = block(variant)
    rows, _ = added(of, counted(of, *TASKS))
    assert Hours(of, combine_rows(of, rows, None)).totals_off(hour) == 0
    changed = rows.to_pylist()
    (whole,) = (row for row in changed if row["row_kind"] == WHOLE)
    whole["cells"][0] += 1
    again = pa.Table.from_pylist(changed, rows.schema)
    # Hour 8 is divisible by the window's two hours: simple has restarted.
    off = int((variant, hour) != ("simple", HOUR + 1))
    assert Hours(of, combine_rows(of, again, None)).totals_off(hour) == off


@pytest.mark.parametrize(("variant", "column"), [("vanilla", "counters"), ("splitter", "totals")])
@pytest.mark.parametrize("by", [1, -1])
def test_cell_state_that_does_not_add_up_is_detected(variant: str, column: str, by: int) -> None:
    of = block(variant)
    rows, _ = added(of, counted(of, *TASKS))
    remaining = left_of(of, rows)
    assert remaining is not None
    assert Hours(of, combine_rows(of, rows, remaining)).totals_off(HOUR) == 0
    changed = remaining.to_pylist()
    changed[1][column][0] += by
    again = pa.Table.from_pylist(changed, remaining.schema)
    assert Hours(of, combine_rows(of, rows, again)).totals_off(HOUR) == 1
