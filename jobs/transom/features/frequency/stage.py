"""The tables of frequency: how often items are seen, found in little memory.

`tick_matrices`, state: a Count-Min matrix for each tick, and each hour's most frequent items. `cells`,
state: of variants that depend on all records, what their cells hold at each hour's end. `frequencies`, a
result: how often items were seen in each hour's window (Rivetti, Busnel and Mostefaoui).
"""

from collections.abc import Mapping

from transom.features.frequency import fingerprints
from transom.features.frequency.checks import (
    MISCOUNTED,
    SUB_CELLS,
    TOTALS,
    UNSOUND,
    WINDOW,
    cell_checks,
    excess_sub_cells,
    frequency_checks,
    matrix_checks,
)
from transom.features.frequency.resolve import FrequencyBlock, frequency_block_of
from transom.features.frequency.spec import Frequency
from transom.features.items.tables import LONG, item_table
from transom.ledger.stage import (
    BlockOutput,
    InputRange,
    Stage,
    StepRequest,
    StepResult,
    TableStep,
    rows_where,
)
from transom.spec.stream import Stream
from transom.storage.tables import Table

MATRIX_COLUMNS = ("hour", "row_kind", "tick", "records", "other_item_count", "cells")
"""Columns of `tick_matrices` beside block and item."""
CELL_COLUMNS = (
    "hour", "row", "counters", "first_ticks", "last_ticks", "totals", "partly_expired", "sub_cells", "ticks",
    "records",
)  # fmt: skip
"""Columns of `cells` beside the block."""
FREQUENCY_COLUMNS = (
    "hour", "window_end", "spell_id", "rank", "estimate", "low", "high", "window_records", "error_bound",
    "max_unreported", "watched", "change", "state", "entered", "since",
)  # fmt: skip
"""Columns of `frequencies` beside block and item."""
NAME = "frequency"
VERSION = 4


def definition(stream: Stream) -> Stage:
    """Return the tables of frequency of a stream."""
    blocks = {name: frequency_block_of(stream, name) for name in stream.blocks(Frequency)}
    chained = {name: block for name, block in blocks.items() if block.chained}
    steps = (_tick_matrices(stream, blocks), _cells(stream, chained), _frequencies(stream, blocks))
    return Stage(NAME, VERSION, steps)


def _tick_matrices(stream: Stream, blocks: Mapping[str, FrequencyBlock]) -> TableStep:
    def compute(request: StepRequest) -> StepResult:
        from transom.features.frequency.tables_tick_matrices import tick_matrices_of

        return tick_matrices_of(request, blocks)

    parts = {
        name: BlockOutput(
            (InputRange("ingest", "events", "events"),),
            fingerprints.tick_matrices(stream, name),
            (*MATRIX_COLUMNS, *block.item),
        )
        for name, block in blocks.items()
    }
    return TableStep(
        item_table("tick_matrices", (block.item for block in blocks.values())),
        parts,
        compute,
        checks=matrix_checks(stream),
        counters=(MISCOUNTED, LONG),
    )


def _cells(stream: Stream, blocks: Mapping[str, FrequencyBlock]) -> TableStep:
    def compute(request: StepRequest) -> StepResult:
        from transom.features.frequency.tables_cells import cells_of

        return cells_of(request, blocks)

    parts = {
        name: BlockOutput(
            (
                InputRange(NAME, name, "tick_matrices"),
                InputRange(NAME, name, "cells", back=block.cells_back, forward=-1),
            ),
            fingerprints.cells(stream, name),
            CELL_COLUMNS,
        )
        for name, block in blocks.items()
    }
    return TableStep(
        Table.load("cells"),
        parts,
        compute,
        checks=cell_checks(stream),
        counters=(SUB_CELLS, WINDOW),
        derived={"sub_cells_beyond": excess_sub_cells(blocks)},
    )


def _frequencies(stream: Stream, blocks: Mapping[str, FrequencyBlock]) -> TableStep:
    def compute(request: StepRequest) -> StepResult:
        from transom.features.frequency.tables_frequencies import frequencies_of

        return frequencies_of(request, blocks)

    parts = {
        name: BlockOutput(
            (
                InputRange(NAME, name, "tick_matrices", back=block.back),
                *((InputRange(NAME, name, "cells"),) if block.chained else ()),
                InputRange(NAME, name, "frequencies", back=block.hours, forward=-1),
            ),
            fingerprints.frequencies(stream, name),
            (*FREQUENCY_COLUMNS, *block.item),
        )
        for name, block in blocks.items()
    }
    return TableStep(
        item_table("frequencies", (block.item for block in blocks.values())),
        parts,
        compute,
        checks=frequency_checks(stream),
        metrics={"frequency_unsound": rows_where(UNSOUND)},
        counters=(TOTALS,),
        failing_row_filters={"frequency_bounded": UNSOUND},
    )
