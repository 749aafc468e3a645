"""The sketch stage: what is there all the time, and what is there often, found in little memory.

Its tables are those of `transom.features.persistence.steps` and `transom.features.frequency.steps`.
"""

from transom.features.frequency import steps as frequency
from transom.features.frequency.resolve import frequency_block_of
from transom.features.frequency.spec import Frequency
from transom.features.persistence import steps as persistence
from transom.features.persistence.resolve import persistence_block_of
from transom.features.persistence.spec import Persistence
from transom.ledger.stage import Stage
from transom.spec.stream import Stream

NAME = "sketch"
VERSION = 4


def definition(stream: Stream) -> Stage:
    """Return the sketch stage of a stream."""
    remembered = {name: persistence_block_of(stream, name) for name in stream.blocks(Persistence)}
    counted = {name: frequency_block_of(stream, name) for name in stream.blocks(Frequency)}
    # Tables without a block have steps, too: these take away what a block has left that the stream has no
    # longer.
    steps = (*persistence.steps_of(stream, remembered), *frequency.steps_of(stream, counted))
    known = (block.known_table for block in remembered.values())
    return Stage(NAME, VERSION, steps, tuple(filter(None, known)))


def epsilons(stream: Stream) -> dict[str, int]:
    """Return what the ledger notes of each run beside its work: the epsilon of each block of persistence, in
    millionths. It may follow from a budget."""
    return {
        f"{name}.epsilon_millionths": round(block.resolved_epsilon * 1_000_000)
        for name, block in stream.blocks(Persistence).items()
    }
