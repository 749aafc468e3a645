"""The stage `frames`: periods of time that the data itself delimits (Grossniklaus, Maier, Moorthy and Tufte).

`open_frames` has the state of every key after each hour, from which later hours continue, and the reports of
the hour. `frames`, the result, has the reports.
"""

from functools import partial

from transom.engine.check_builders import built_in
from transom.features.frames import fingerprints
from transom.features.frames.check_metrics import AWAY, COUNTED, GROW, INEXACT, MISCOUNTED, violates_rules
from transom.features.frames.resolve import frame_block_of
from transom.features.frames.spec import Frame
from transom.features.frames.validate import FRAME_COLUMNS
from transom.ledger.stage import BlockOutput, InputRange, Stage, TableStep, rows_where
from transom.spec.feature import lazy
from transom.spec.stream import Stream
from transom.storage.tables import Table

NAME = "frames"
VERSION = 1


def definition(stream: Stream) -> Stage:
    """Return the stage `frames` of a stream."""
    blocks = {name: frame_block_of(stream, name) for name in stream.blocks(Frame)}
    key = {name: kind for block in blocks.values() for name, kind in block.key.items()}
    state, parts = Table.load("open_frames"), {}
    for name, block in blocks.items():
        own = InputRange(NAME, name, "open_frames", back=block.back, forward=-1)
        reads = block.reads if block.period else (*block.reads, own)
        columns = tuple(state.declare(key=block.key).block_schema().names)
        parts[name] = BlockOutput(reads, fingerprints.open_frames(stream, name), columns)
    wrong = violates_rules(blocks)
    open_frames = TableStep(
        state.declare(key=key),
        parts,
        partial(lazy("transom.features.frames.tables_open_frames:open_frames_of"), blocks=blocks),
        checks=(
            *built_in(stream, "frames_keep_rules", metric="frames_breaking", at_most=0),
            *built_in(stream, COUNTED, metric=MISCOUNTED, at_most=0),
            *built_in(stream, GROW, metric=AWAY, at_most=0),
        ),
        metrics={"frames_breaking": rows_where(wrong)},
        counters=(MISCOUNTED, AWAY),
        failing_row_filters={"frames_keep_rules": wrong},
    )
    frames = TableStep(
        Table.load("frames").declare(key=key),
        {
            name: BlockOutput(
                (InputRange(NAME, name, "open_frames"),),
                fingerprints.frames(stream, name),
                (*FRAME_COLUMNS, *block.key),
            )
            for name, block in blocks.items()
        },
        partial(lazy("transom.features.frames.tables_frames:frames_of"), blocks=blocks),
        checks=(
            *built_in(stream, "frames_apart", metric="frames_overlapping", at_most=0),
            *built_in(stream, "frames_exact", metric="frames_inexact", at_most=0),
        ),
        metrics={"frames_inexact": rows_where(INEXACT)},
        failing_row_filters={"frames_exact": INEXACT},
    )
    return Stage(NAME, VERSION, (open_frames, frames))
