"""The stage `fills`: the rows within frames, or some time ago, and their aggregates."""

from functools import partial

from transom.engine.check_builders import built_in
from transom.features.fills import fingerprints
from transom.features.fills.resolve import fill_block_of
from transom.features.fills.spec import Fill
from transom.features.fills.validate import FILL_COLUMNS
from transom.features.frames.resolve import frame_block_of
from transom.features.frames.spec import Frame
from transom.ledger.stage import BlockOutput, InputRange, Stage, TableStep
from transom.spec.feature import lazy
from transom.spec.stream import Stream
from transom.storage.tables import Table

NAME = "fills"
VERSION = 1


def definition(stream: Stream) -> Stage:
    """Return the stage `fills` of a stream."""
    frames = {name: frame_block_of(stream, name) for name in stream.blocks(Frame)}
    blocks = {name: fill_block_of(stream, name, frames) for name in stream.blocks(Fill)}
    parts = {
        name: BlockOutput(
            (InputRange("frames", block.frame.name, "frames"), *block.reads),
            fingerprints.fills(stream, name),
            (*FILL_COLUMNS, *block.frame.key, *block.kinds),
        )
        for name, block in blocks.items()
    }
    table = Table.load("fills").declare(
        key={name: kind for block in blocks.values() for name, kind in block.frame.key.items()},
        measures={name: kind for block in blocks.values() for name, kind in block.kinds.items()},
    )
    compute = partial(lazy("transom.features.fills.tables_fills:fills_of"), blocks=blocks)
    checks = built_in(stream, "fills_counted", metric="fills_miscounted", at_most=0)
    fillers = filter(None, (block.source.filler for block in blocks.values()))
    return Stage(NAME, VERSION, (TableStep(table, parts, compute, checks=checks),), tuple(fillers))
