"""The widen stage: episodes of several steps, however slow, found in windows that widen (Tolpin).

`batches`, state: what long batches of each pattern and key are made of. `matches`: what a detector finds
in the windows that end in an hour, two batches each, at every level. `episodes`: matches that lie together.
"""

from dataclasses import replace

from transom.features.patterns import tables_batches as batches
from transom.features.patterns import tables_episodes as episodes
from transom.features.patterns import tables_matches as matches
from transom.features.patterns.resolve import block_of
from transom.features.patterns.spec import Pattern
from transom.ledger.stage import Stage
from transom.spec.stream import Stream

NAME = "widen"
VERSION = 1


def outline(stream: Stream) -> Stage:
    """The stage less the columns by which Spark measures it: what it reads and what makes its hours stale can
    be told without a session."""
    blocks = {name: block_of(stream, name) for name in stream.blocks(Pattern)}
    return Stage(
        NAME,
        VERSION,
        (
            batches.step_of(stream, blocks),
            matches.step_of(stream, blocks),
            episodes.step_of(stream, blocks),
        ),
    )


def stage(stream: Stream) -> Stage:
    """The widen stage of a stream."""
    bare = outline(stream)
    *others, told = bare.steps
    return replace(bare, steps=(*others, episodes.measured(told)))
