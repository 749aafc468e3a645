"""The tables of frequency (Rivetti, Busnel and Mostefaoui)."""

from transom.engine.check_builders import built_in
from transom.features.frequency import fingerprints
from transom.features.frequency.built_in_checks import SHORT
from transom.features.frequency.check_metrics import (
    MISCOUNTED,
    SUB_CELLS,
    TOTALS,
    UNSOUND,
    WINDOW,
    excess_sub_cells,
)
from transom.features.frequency.resolve import frequency_block_of
from transom.features.frequency.spec import Frequency
from transom.features.items.tables import LONG, item_step
from transom.ledger.stage import InputRange, Stage, rows_where
from transom.spec.stream import Stream

NAME = "frequency"
VERSION = 4


def definition(stream: Stream) -> Stage:
    """Return the tables of frequency of a stream."""
    blocks = {name: frequency_block_of(stream, name) for name in stream.blocks(Frequency)}
    chained = {name: block for name, block in blocks.items() if block.chained}
    tick_matrices = item_step(
        stream,
        NAME,
        "tick_matrices",
        blocks,
        lambda name, block: (InputRange("ingest", "events", "events"),),
        fingerprints.tick_matrices,
        checks=(
            *built_in(stream, "rows_counted", metric=MISCOUNTED, at_most=0),
            *built_in(stream, SHORT, metric=LONG, at_most=0),
        ),
        counters=(MISCOUNTED, LONG),
    )
    cells = item_step(
        stream,
        NAME,
        "cells",
        chained,
        lambda name, block: (
            InputRange(NAME, name, "tick_matrices"),
            InputRange(NAME, name, "cells", back=block.cells_back, forward=-1),
        ),
        fingerprints.cells,
        checks=built_in(stream, "sub_cells_bounded", metric="sub_cells_beyond", at_most=0),
        counters=(SUB_CELLS, WINDOW),
        derived={"sub_cells_beyond": excess_sub_cells(chained)},
    )
    frequencies = item_step(
        stream,
        NAME,
        "frequencies",
        blocks,
        lambda name, block: (
            InputRange(NAME, name, "tick_matrices", back=block.back),
            *([InputRange(NAME, name, "cells")] if block.chained else []),
            InputRange(NAME, name, "frequencies", back=block.hours, forward=-1),
        ),
        fingerprints.frequencies,
        checks=(
            *built_in(stream, "frequency_bounded", metric="frequency_unsound", at_most=0),
            *built_in(stream, "totals_kept", metric=TOTALS, at_most=0),
        ),
        metrics={"frequency_unsound": rows_where(UNSOUND)},
        counters=(TOTALS,),
        failing_row_filters={"frequency_bounded": UNSOUND},
    )
    return Stage(NAME, VERSION, (tick_matrices, cells, frequencies))
