"""The table `cells`: cells that depend on all records since the start, at the end of each hour.

Hours form a chain. The cells of `splitter` advance tick by tick
(`transom.features.frequency.algorithm.splitter`); those of `vanilla` are the sum of all matrices.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from transom.arrays.arrow import build_batches, int64s, lists
from transom.core.exact_sums import Int64s
from transom.core.intervals import HOUR_LENGTH
from transom.engine.hour_chains import ChainTask, hour_runs
from transom.engine.hours import hour_number
from transom.features.frequency import tables_tick_matrices as tick_matrices
from transom.features.frequency.algorithm.splitter import FIELDS, SplitterCells, SubCells, bounds, values
from transom.features.frequency.check_metrics import SUB_CELLS, WINDOW
from transom.features.frequency.resolve import FrequencyBlock
from transom.ledger.stage import BlockTask, StepRequest
from transom.ledger.task_counters import TaskCounters
from transom.storage.tables import Table

TABLE = "cells"
LISTS = ("counters", "first_ticks", "last_ticks", "totals", "partly_expired")
"""Columns of sub-cells, in the order of `FIELDS`."""
NUMBERS = ("number", "records")
VALUES = ("counters", "least", "most")
VALUE_SCHEMA = pa.schema(
    [
        ("hour", pa.timestamp("us", "UTC")),
        *((name, pa.int64()) for name in NUMBERS),
        *((name, pa.list_(pa.int64())) for name in VALUES),
    ]
)
"""The schema of `cell_values`."""
Tick = tuple[int, int, Int64s]
"""The number of a tick, its records, and its matrix, flat."""


def cells_of(request: StepRequest, block: FrequencyBlock, targets: Sequence[datetime]) -> BlockTask:
    """Return the cells at the end of each target hour of a block."""
    runs, stored = hour_runs(request, block.name, TABLE, targets, block.cells_back)
    of_block = F.col("block") == block.name
    # Vanilla needs no ticks.
    kind = tick_matrices.WHOLE if block.variant == "vanilla" else tick_matrices.TICK
    rows = request.pins.read(tick_matrices.TABLE, targets).where(of_block & (F.col("row_kind") == kind))
    tick = F.unix_micros(F.coalesce("tick", "hour")).alias("tick")
    rows = rows.select(tick, "records", F.col("cells").alias("counters"))
    if stored:
        state = request.pins.read(TABLE, stored).where(of_block).withColumn("hour", hour_number())
        rows = rows.unionByName(state.drop("block"), allowMissingColumns=True)
    updater = CellUpdater(block, runs, Table.load(TABLE).block_schema())
    return BlockTask(block.name, rows, compute_counting=updater, by=())


@dataclass(frozen=True)
class MatrixState:
    """The cells at the end of an hour.

    Attributes:
        hour: the number of the hour since 1970.
        counters: with `vanilla`, the matrix, flat.
        sub_cells: with `splitter`, the sub-cells.
        ticks: with `splitter`, the records of each tick of the window, the oldest first.
        records: the records of the window; with `vanilla`, all records.
    """

    hour: int
    counters: Int64s
    sub_cells: SubCells
    ticks: Int64s
    records: int


@dataclass(frozen=True)
class CellUpdater(ChainTask):
    """Advances the cells of a block from hour to hour."""

    block: FrequencyBlock

    def rows(self, table: pa.Table, tally: TaskCounters) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the hours, from all ticks and stored state of the block."""
        ticks, stored = self._ticks(table), self._stored(table)
        last: dict[int | None, MatrixState] = {}
        for run in self.runs:
            state = (stored | last).get(run.ahead) or self._empty(run.previous_hour)
            for hour in run.hours:
                state = self._advanced(state, hour, ticks.get(hour, []))
                tally.add(SUB_CELLS, [hour], [int(state.sub_cells.lengths.sum())])
                tally.add(WINDOW, [hour], [state.records])
                # Without records there are no rows, as if the task had read none.
                if state.records:
                    yield from self._rows(state)
            last = {state.hour: state}

    def _empty(self, hour: int) -> MatrixState:
        cells = self.block.shape.cells
        counters = np.zeros(cells if self.block.variant == "vanilla" else 0, dtype=np.int64)
        ticks = np.zeros(self.block.steps, dtype=np.int64)
        return MatrixState(hour, counters, SubCells.none(cells), ticks, 0)

    def _ticks(self, table: pa.Table) -> Mapping[int, list[Tick]]:
        """Return the ticks from the start on, ascending, by the numbers of their hours."""
        rows = table.filter(pc.is_valid(table["tick"]))
        starts, matrices = int64s(rows["tick"]), rows["counters"]
        ticks: dict[int, list[Tick]] = defaultdict(list)
        for place in np.argsort(starts).tolist():
            start = int(starts[place])
            if self.block.start is None or start >= self.block.start:
                records, matrix = rows["records"][place].as_py(), matrices[place].values.to_numpy()
                ticks[start // HOUR_LENGTH].append((start // self.block.tick, records, matrix))
        return ticks

    def _advanced(self, state: MatrixState, hour: int, ticks: Sequence[Tick]) -> MatrixState:
        block = self.block
        if block.variant == "vanilla":
            counters = sum((matrix for _, _, matrix in ticks), state.counters)
            records = state.records + sum(count for _, count, _ in ticks)
            return replace(state, hour=hour, counters=counters, records=records)
        # The ticks of the windows of this hour and of the previous one.
        first = (hour + 1) * block.ticks - block.steps - block.ticks
        seen = np.zeros(block.steps + block.ticks, dtype=np.int64)
        earlier = state.ticks[max(0, (hour - state.hour - 1) * block.ticks) :]
        seen[: len(earlier)] = earlier
        for tick, records, _ in ticks:
            seen[tick - first] = records
        sums = np.concatenate([[0], np.cumsum(seen)])
        cells = SplitterCells(state.sub_cells, block.shape.columns, block.steps, block.tau, block.mu)
        for tick, _, matrix in ticks:
            end = tick - first + 1
            cells.advance(tick, matrix, int(sums[end] - sums[max(0, end - block.steps)]))
        window = seen[block.ticks :]
        sub_cells = cells.sub_cells((hour + 1) * block.ticks - 1)
        return MatrixState(hour, state.counters, sub_cells, window, int(window.sum()))

    def _rows(self, state: MatrixState) -> Iterator[pa.RecordBatch]:
        rows = self.block.shape.rows
        lengths = state.sub_cells.lengths.reshape(rows, -1)
        stops = np.cumsum(lengths.sum(axis=1)).tolist()
        for row, stop in enumerate(stops):
            if self.block.variant == "vanilla":
                columns = {"counters": state.counters.reshape(rows, -1)[row]}
            else:
                of_row = slice(stop - int(lengths[row].sum()), stop)
                fields = (getattr(state.sub_cells, field)[of_row] for field in FIELDS)
                columns = dict(zip(LISTS, fields, strict=True)) | {"sub_cells": lengths[row]}
                columns |= {"ticks": state.ticks} if row == 0 else {}
            numbers = {"hour": state.hour * HOUR_LENGTH, "row": row, "records": state.records}
            arrays = {name: lists(column, 1) for name, column in columns.items()}
            yield from build_batches(1, numbers | arrays, self.schema)

    def _stored(self, table: pa.Table) -> dict[int | None, MatrixState]:
        """Return the stored states, by the numbers of their hours."""
        if "row" not in table.column_names:
            return {}
        rows, nothing = table.filter(pc.is_valid(table["row"])), np.zeros(0, dtype=np.int64)
        states: dict[int | None, MatrixState] = {}
        for hour in np.unique(int64s(rows["hour"])).tolist():
            of_hour = rows.filter(pc.equal(rows["hour"], hour)).sort_by("row")
            records = of_hour["records"][0].as_py()
            if self.block.variant == "vanilla":
                counters, sub_cells = _flat(of_hour["counters"]), SubCells.none(self.block.shape.cells)
                states[hour] = MatrixState(hour, counters, sub_cells, nothing, records)
            else:
                # Only the first row has the ticks.
                ticks = _flat(of_hour["ticks"])
                states[hour] = MatrixState(hour, nothing, _sub_cells(of_hour), ticks, records)
        return states


def cell_values(rows: DataFrame, block: FrequencyBlock) -> DataFrame:
    """Return the values of the cells of rows of `cells`, as `VALUE_SCHEMA`.

    Windows read many hours, each of which may have many sub-cells, so Spark's tasks reduce them.
    """
    rows = rows.select("hour", F.col("row").alias("number"), "records", "sub_cells", *LISTS)
    return rows.mapInArrow(partial(values_of_rows, block), from_arrow_schema(VALUE_SCHEMA))


def values_of_rows(block: FrequencyBlock, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the value of each cell, in the unit of the variant, and its bounds, in records.

    Args:
        block: the block.
        batches: rows of `cells`, with the numbers of their rows.
    """
    for batch in batches:
        for place in range(batch.num_rows):
            row = pa.Table.from_batches([batch.slice(place, 1)])
            numbers = {name: row[name][0].as_py() for name in NUMBERS}
            hour = row["hour"][0].value
            if block.variant == "vanilla":
                cells = [_flat(row["counters"])] * 3
            else:
                sub_cells, now = _sub_cells(row), (hour // HOUR_LENGTH + 1) * block.ticks - 1
                cells = [values(sub_cells, now, block.steps)]
                cells += bounds(sub_cells, now, block.steps, numbers["records"])
            arrays = {name: lists(column, 1) for name, column in zip(VALUES, cells, strict=True)}
            yield from build_batches(1, {"hour": hour} | numbers | arrays, VALUE_SCHEMA)


def _sub_cells(rows: pa.Table) -> SubCells:
    return SubCells(_flat(rows["sub_cells"]), *(_flat(rows[name]) for name in LISTS))


def _flat(column: pa.ChunkedArray) -> Int64s:
    numbers: Int64s = column.combine_chunks().flatten().to_numpy()
    return numbers
