"""The sketch stage: what is there all the time, and what is there often, found in little memory.

`tuples`, state: what each hour leaves of the items that are remembered. `persistent_items`, a result: those
that its report names (Lahiri, Tirthapura and Chandrashekar). `tick_matrices`, state: a Count-Min matrix for
each tick, and each hour's most frequent items. `cells`, state: of variants that depend on all records, what
their cells hold at each hour's end. `frequencies`, a result: how often items were seen in each hour's window
(Rivetti, Busnel and Mostefaoui).
"""

from dataclasses import replace

from transom.features.frequency import tables_cells as cells
from transom.features.frequency import tables_frequencies as frequencies
from transom.features.frequency import tables_tick_matrices as tick_matrices
from transom.features.frequency.resolve import frequency_block_of
from transom.features.frequency.spec import Frequency
from transom.features.persistence import tables_persistent_items as persistent_items
from transom.features.persistence import tables_tuples as tuples
from transom.features.persistence.resolve import persistence_block_of
from transom.features.persistence.spec import Persistence
from transom.ledger.stage import Stage
from transom.spec.stream import Stream

NAME = "sketch"
VERSION = 4


def outline(stream: Stream) -> Stage:
    """The stage less the columns by which Spark measures it: what it reads and what makes its hours stale can
    be told without a session."""
    persistence = {name: persistence_block_of(stream, name) for name in stream.blocks(Persistence)}
    frequency = {name: frequency_block_of(stream, name) for name in stream.blocks(Frequency)}
    # Those without a block, too: what one has left, that the stream has no longer, is taken away by them.
    steps = (
        tuples.step_of(stream, persistence),
        persistent_items.step_of(stream, persistence),
        tick_matrices.step_of(stream, frequency),
        cells.step_of(stream, frequency),
        frequencies.step_of(stream, frequency),
    )
    known = (block.known_table for block in persistence.values())
    return Stage(NAME, VERSION, steps, tuple(filter(None, known)))


def told(stream: Stream) -> dict[str, int]:
    """What the ledger says of each run beside its work: the epsilon of each block of persistence, which may
    follow from a budget, in millionths."""
    return {
        f"{name}.epsilon_millionths": round(said.resolved_epsilon * 1_000_000)
        for name, said in stream.blocks(Persistence).items()
    }


def stage(stream: Stream) -> Stage:
    """The sketch stage of a stream."""
    bare = outline(stream)
    blocks = {name: persistence_block_of(stream, name) for name in stream.blocks(Persistence)}
    measures = {
        tuples.TABLE: lambda step: tuples.measured(step, blocks),
        persistent_items.TABLE: lambda step: persistent_items.measured(step, blocks),
        frequencies.TABLE: frequencies.measured,
    }
    steps = (measures.get(step.table.name, lambda one: one)(step) for step in bare.steps)
    return replace(bare, steps=tuple(steps))
