"""The sketch stage: items that are there all the time, found in little memory.

`tuples`, state: what each hour leaves of the items that are remembered. `persistent_items`, the result: those
that its report names (Lahiri, Tirthapura and Chandrashekar).
"""

from dataclasses import replace

from transom.lake.stage import Stage
from transom.stages import persistent_items, tuples
from transom.stages.persistence_blocks import persistence_block_of
from transom.stream import Stream

NAME = "sketch"
VERSION = 1


def outline(stream: Stream) -> Stage:
    """The stage less the columns by which Spark measures it: what it reads and what makes its hours stale can
    be told without a session."""
    blocks = {name: persistence_block_of(stream, name) for name in stream.persistence}
    steps = (tuples.step_of(stream, blocks), persistent_items.step_of(stream, blocks))
    known = (block.known_table for block in blocks.values())
    return Stage(NAME, VERSION, steps, tuple(filter(None, known)))


def stage(stream: Stream) -> Stage:
    """The sketch stage of a stream."""
    bare = outline(stream)
    remembered, told = bare.steps
    blocks = {name: persistence_block_of(stream, name) for name in stream.persistence}
    return replace(bare, steps=(tuples.measured(remembered, blocks), persistent_items.measured(told, blocks)))
