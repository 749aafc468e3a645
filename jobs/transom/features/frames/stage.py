"""The frame stage: stretches of time that the data itself delimits (Grossniklaus, Maier, Moorthy and Tufte).

`open_frames`, state: what each hour leaves of every key, from which later hours go on, and what it tells of
frames. `frames`, the result: that.
"""

from dataclasses import replace

from transom.features.frames import tables_frames as frames
from transom.features.frames import tables_open_frames as open_frames
from transom.features.frames.resolve import frame_block_of
from transom.features.frames.spec import Frame
from transom.ledger.stage import Stage
from transom.spec.stream import Stream

NAME = "frame"
VERSION = 1


def outline(stream: Stream) -> Stage:
    """The stage less the columns by which Spark measures it: what it reads and what makes its hours stale can
    be told without a session."""
    blocks = {name: frame_block_of(stream, name) for name in stream.blocks(Frame)}
    return Stage(NAME, VERSION, (open_frames.step_of(stream, blocks), frames.step_of(stream, blocks)))


def stage(stream: Stream) -> Stage:
    """The frame stage of a stream."""
    bare = outline(stream)
    opened, told = bare.steps
    blocks = {name: frame_block_of(stream, name) for name in stream.blocks(Frame)}
    return replace(bare, steps=(open_frames.measured(opened, blocks), frames.measured(told)))
