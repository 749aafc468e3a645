"""The fill stage: frames filled with what lies between their ends, in a log or in its past."""

from collections.abc import Mapping

from transom.engine.check_builders import built_in
from transom.features.fills import fingerprints
from transom.features.fills.resolve import FillBlock, fill_block_of
from transom.features.fills.spec import Fill
from transom.features.frames.resolve import frame_block_of
from transom.features.frames.spec import Frame
from transom.ledger.stage import BlockOutput, InputRange, Stage, StepRequest, StepResult, TableStep
from transom.spec.stream import Stream
from transom.storage.tables import Table

NAME = "fills"
VERSION = 1
COLUMNS = (
    "hour", "frame_id", "fragment", "shift_s", "start_time", "end_time", "rows_matched", "coverage", "state",
)  # fmt: skip
"""Columns of `fills` beside block, key and measures."""


def definition(stream: Stream) -> Stage:
    """Return the fill stage of a stream."""
    frames = {name: frame_block_of(stream, name) for name in stream.blocks(Frame)}
    blocks = {name: fill_block_of(stream, name, frames) for name in stream.blocks(Fill)}
    fillers = (block.source.filler for block in blocks.values())
    return Stage(NAME, VERSION, (_fills(stream, blocks),), tuple(filter(None, fillers)))


def _fills(stream: Stream, blocks: Mapping[str, FillBlock]) -> TableStep:
    def compute(request: StepRequest) -> StepResult:
        from transom.features.fills.tables_fills import fills_of

        return fills_of(request, blocks)

    table = Table.load("fills").declare(
        key={name: kind for block in blocks.values() for name, kind in block.frame.key.items()},
        measures={name: kind for block in blocks.values() for name, kind in block.kinds.items()},
    )
    parts = {
        name: BlockOutput(
            (InputRange("frames", block.frame.name, "frames"), *block.reads),
            fingerprints.fills(stream, name),
            (*COLUMNS, *block.frame.key, *block.kinds),
        )
        for name, block in blocks.items()
    }
    return TableStep(
        table,
        parts,
        compute,
        checks=built_in(stream, "fills_counted", metric="fills_miscounted", at_most=0),
    )
