"""What cells hold that depend on all records since the start, at the end of each hour: a chain, tick by tick
(`transom.features.frequency.algorithm.splitter`); of vanilla the sum of all matrices."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from transom.arrays.arrow import build_batches, concat_batches, int64s, lists
from transom.core.exact_sums import Int64s
from transom.core.intervals import HOUR_LENGTH
from transom.engine.hour_chains import HourRun, hour_runs
from transom.engine.hours import hour_number
from transom.features.frequency import tables_tick_matrices as tick_matrices
from transom.features.frequency.algorithm.splitter import FIELDS, SplitterCells, SubCells
from transom.features.frequency.checks import SUB_CELLS, WINDOW
from transom.features.frequency.resolve import FrequencyBlock
from transom.ledger.stage import BlockTask, StepRequest, StepResult
from transom.ledger.task_counters import TaskCounters
from transom.storage.tables import Table

TABLE = "cells"
LISTS = ("counters", "first_ticks", "last_ticks", "totals", "partly_expired")
"""Of sub-cells, in the order of `FIELDS`."""


def cells_of(request: StepRequest, blocks: Mapping[str, FrequencyBlock]) -> StepResult:
    """What every block's target hours leave."""
    shares = []
    for name, targets in request.targets.items():
        block = blocks[name]
        stretches, stored = hour_runs(request, name, TABLE, targets, block.cells_back)
        of_block = F.col("block") == name
        # Vanilla never looks into an hour.
        kind = tick_matrices.WHOLE if block.variant == "vanilla" else tick_matrices.TICK
        rows = request.pins.read(tick_matrices.TABLE, targets).where(of_block & (F.col("row_kind") == kind))
        tick = F.unix_micros(F.coalesce("tick", "hour")).alias("tick")
        rows = rows.select(tick, "records", F.col("cells").alias("counters"))
        if stored:
            left = request.pins.read(TABLE, stored).where(of_block).withColumn("hour", hour_number())
            rows = rows.unionByName(left.drop("block"), allowMissingColumns=True)
        schema = Table.load(TABLE).block_schema()
        shares.append(
            BlockTask(name, rows.repartition(1), compute_counting=CellUpdater(block, stretches, schema))
        )
    return StepResult(shares)


@dataclass(frozen=True)
class MatrixState:
    """What a matrix holds at the end of an hour.

    Attributes:
        hour: its number.
        counters: of vanilla: the matrix, flat.
        sub_cells: of splitter: its sub-cells.
        ticks: of splitter: the records of each tick of the window, the oldest first.
        records: of the window, or all.
    """

    hour: int
    counters: Int64s
    sub_cells: SubCells
    ticks: Int64s
    records: int


@dataclass(frozen=True)
class CellUpdater:
    """What a task makes of the ticks of a block.

    Attributes:
        runs: the hours that are wanted.
        schema: of what comes out.
    """

    block: FrequencyBlock
    runs: Sequence[HourRun]
    schema: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch], tally: TaskCounters) -> Iterator[pa.RecordBatch]:
        """The rows of the wanted hours."""
        table = concat_batches(batches)
        if table is None:
            return
        ticks, stored = self._ticks(table), self._stored(table)
        last: tuple[int, MatrixState] | None = None
        for stretch in self.runs:
            state = stretch.state(last, stored, self._nothing(stretch.previous_hour))
            for hour in stretch.hours:
                state = self._advanced(state, hour, ticks.get(hour, []))
                tally.add(SUB_CELLS, [hour], [int(state.sub_cells.lengths.sum())])
                tally.add(WINDOW, [hour], [state.records])
                # Nothing is held then, as where no task has had a row.
                if state.records:
                    yield from self._rows(state)
                last = hour, state

    def _nothing(self, hour: int) -> MatrixState:
        cells = self.block.shape.cells
        none = np.zeros(cells if self.block.variant == "vanilla" else 0, dtype=np.int64)
        return MatrixState(hour, none, SubCells.none(cells), np.zeros(self.block.steps, dtype=np.int64), 0)

    def _ticks(self, table: pa.Table) -> dict[int, list[tuple[int, int, Int64s]]]:
        """By hour: the number of each tick, its records, and its matrix; in order."""
        rows = table.filter(pc.is_valid(table["tick"]))
        found: dict[int, list[tuple[int, int, Int64s]]] = {}
        start, matrices = int64s(rows["tick"]), rows["counters"]
        for place in np.argsort(start).tolist():
            if self.block.start is not None and start[place] < self.block.start:
                continue
            matrix = matrices[place].values.to_numpy()
            tick = int(start[place]) // self.block.tick
            found.setdefault(int(start[place]) // HOUR_LENGTH, []).append(
                (tick, rows["records"][place].as_py(), matrix)
            )
        return found

    def _advanced(self, state: MatrixState, hour: int, ticks: list[tuple[int, int, Int64s]]) -> MatrixState:
        block = self.block
        if block.variant == "vanilla":
            counters = sum((matrix for _, _, matrix in ticks), state.counters)
            records = state.records + sum(seen for _, seen, _ in ticks)
            return replace(state, hour=hour, counters=counters, records=records)
        # Of each tick of the window that ends with the hour, and of that of the hour before it.
        first = (hour + 1) * block.ticks - block.steps - block.ticks
        seen = np.zeros(block.steps + block.ticks, dtype=np.int64)
        back = (hour - state.hour) * block.ticks
        kept = state.ticks[max(0, back - block.ticks) :]
        seen[: len(kept)] = kept
        for tick, records, _ in ticks:
            seen[tick - first] = records
        sums = np.concatenate([[0], np.cumsum(seen)])
        cells = SplitterCells(state.sub_cells, block.shape.columns, block.steps, block.tau, block.mu)
        for tick, _, matrix in ticks:
            end = tick - first + 1
            cells.advance(tick, matrix, int(sums[end] - sums[max(0, end - block.steps)]))
        window = seen[block.ticks :]
        held = cells.sub_cells((hour + 1) * block.ticks - 1)
        return MatrixState(hour, state.counters, held, window, int(window.sum()))

    def _rows(self, state: MatrixState) -> Iterator[pa.RecordBatch]:
        shape, vanilla = self.block.shape, self.block.variant == "vanilla"
        many = state.sub_cells.lengths.reshape(shape.rows, shape.columns)
        ends = np.cumsum(many.sum(axis=1))
        for row in range(shape.rows):
            columns: dict[str, Any] = {"hour": state.hour * HOUR_LENGTH, "row": row, "records": state.records}
            if vanilla:
                columns["counters"] = lists(state.counters.reshape(shape.rows, -1)[row], 1)
            else:
                of = slice(ends[row] - many[row].sum(), ends[row])
                for name, field in zip(LISTS, FIELDS, strict=True):
                    columns[name] = lists(getattr(state.sub_cells, field)[of], 1)
                columns["sub_cells"] = lists(many[row], 1)
                columns["ticks"] = lists(state.ticks, 1) if row == 0 else None
            yield from build_batches(1, columns, self.schema)

    def _stored(self, table: pa.Table) -> dict[int, MatrixState]:
        """What earlier hours have left, by their numbers."""
        if "row" not in table.column_names:
            return {}
        rows = table.filter(pc.is_valid(table["row"]))
        return {
            int(hour): state_of(self.block, int(hour), rows.filter(pc.equal(rows["hour"], hour)))
            for hour in np.unique(int64s(rows["hour"])).tolist()
        }


def state_of(block: FrequencyBlock, hour: int, rows: pa.Table) -> MatrixState:
    """What an hour has left, from its rows."""
    rows = rows.sort_by("row").combine_chunks()
    records = int(rows["records"][0].as_py())
    if block.variant == "vanilla":
        none = SubCells.none(block.shape.cells)
        return MatrixState(hour, _flat(rows["counters"]), none, np.zeros(0, dtype=np.int64), records)
    held = SubCells(_flat(rows["sub_cells"]), *(_flat(rows[name]) for name in LISTS))
    return MatrixState(hour, np.zeros(0, dtype=np.int64), held, _flat(rows["ticks"].slice(0, 1)), records)


def _flat(column: pa.ChunkedArray) -> Int64s:
    found: Int64s = column.combine_chunks().flatten().to_numpy()
    return found
