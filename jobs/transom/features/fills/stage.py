"""The fill stage: frames filled with what lies between their ends, in a log or in its past."""

from transom.features.fills import tables_fills as fills
from transom.features.fills.resolve import fill_block_of
from transom.features.fills.spec import Fill
from transom.features.frames.resolve import frame_block_of
from transom.features.frames.spec import Frame
from transom.ledger.stage import Stage
from transom.spec.stream import Stream

NAME = "fill"
VERSION = 1


def outline(stream: Stream) -> Stage:
    """The stage, which needs no session to be told."""
    frames = {name: frame_block_of(stream, name) for name in stream.blocks(Frame)}
    blocks = {name: fill_block_of(stream, name, frames) for name in stream.blocks(Fill)}
    fillers = (block.source.filler for block in blocks.values())
    return Stage(NAME, VERSION, (fills.step_of(stream, blocks),), tuple(filter(None, fillers)))


def stage(stream: Stream) -> Stage:
    """The fill stage of a stream."""
    return outline(stream)
