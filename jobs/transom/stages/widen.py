"""The widen stage: episodes of several steps, however slow, found in windows that widen (Tolpin).

`batches`, state: what is left of the longer batches of each pattern and key. `matches`: what a detector finds
in the windows that end in an hour, two batches each, at every level. `episodes`: matches that lie together.
"""

from transom.lake.stage import Stage
from transom.stages import batches, matches
from transom.stages.patterns import block_of
from transom.stream import Stream

NAME = "widen"
VERSION = 1


def stage(stream: Stream) -> Stage:
    """The widen stage of a stream."""
    blocks = {name: block_of(stream, name) for name in stream.patterns}
    return Stage(NAME, VERSION, (batches.step_of(stream, blocks), matches.step_of(stream, blocks)))
