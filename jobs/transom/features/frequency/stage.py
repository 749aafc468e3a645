"""The stage `frequency` and its tables (Rivetti, Busnel and Mostefaoui)."""

from functools import partial

from transom.features.frequency import check_metrics
from transom.features.frequency.built_in_checks import SHORT
from transom.features.frequency.resolve import frequency_block_of
from transom.features.frequency.spec import Frequency
from transom.features.items.tables import LONG, item_step
from transom.ledger.stage import InputRange, Stage, rows_where
from transom.spec.stream import Stream

NAME = "frequency"
VERSION = 4


def definition(stream: Stream) -> Stage:
    """Return the stage `frequency` of a stream."""
    blocks = {name: frequency_block_of(stream, name) for name in stream.blocks(Frequency)}
    step = partial(item_step, stream, NAME)
    chained = {name: block for name, block in blocks.items() if block.chained}
    tick_matrices = step(
        "tick_matrices",
        blocks,
        lambda name, block: (InputRange("ingest", "events", "events"),),
        {"rows_counted": check_metrics.MISCOUNTED, SHORT: LONG},
        counters=(check_metrics.MISCOUNTED, LONG),
    )
    cells = step(
        "cells",
        chained,
        lambda name, block: (
            InputRange(NAME, name, "tick_matrices"),
            InputRange(NAME, name, "cells", back=block.cells_back, forward=-1),
        ),
        {"sub_cells_bounded": "sub_cells_beyond"},
        counters=(check_metrics.SUB_CELLS, check_metrics.WINDOW),
        derived={"sub_cells_beyond": check_metrics.excess_sub_cells(chained)},
    )
    frequencies = step(
        "frequencies",
        blocks,
        lambda name, block: (
            InputRange(NAME, name, "tick_matrices", back=block.back),
            *([InputRange(NAME, name, "cells")] if block.chained else []),
            InputRange(NAME, name, "frequencies", back=block.hours, forward=-1),
        ),
        {"frequency_bounded": "frequency_unsound", "totals_kept": check_metrics.TOTALS},
        metrics={"frequency_unsound": rows_where(check_metrics.UNSOUND)},
        counters=(check_metrics.TOTALS,),
        failing_row_filters={"frequency_bounded": check_metrics.UNSOUND},
    )
    return Stage(NAME, VERSION, (tick_matrices, cells, frequencies))
