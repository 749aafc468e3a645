"""The tables of persistence: items that are there all the time, found in little memory.

`tuples`, state: what each hour leaves of the items that are remembered. `persistent_items`, a result: those
that its report names (Lahiri, Tirthapura and Chandrashekar).
"""

from collections.abc import Mapping

from transom.engine.check_builders import built_in
from transom.features.items.tables import LONG, item_table
from transom.features.persistence import fingerprints
from transom.features.persistence.checks import (
    MISCOUNTED,
    PAIRS,
    STARTS,
    excess_tuples,
    outside,
    tuple_checks,
    violates_window,
)
from transom.features.persistence.resolve import PersistenceBlock, persistence_block_of
from transom.features.persistence.spec import Persistence
from transom.ledger.stage import (
    BlockOutput,
    InputRange,
    Stage,
    StepRequest,
    StepResult,
    TableStep,
    rows_where,
)
from transom.spec.stream import Stream

COLUMNS = (
    "hour", "window_end", "spell_id", "low", "high", "estimate", "is_certain", "watched", "change", "state",
    "entered", "since", "slots", "first_slot", "last_slot", "records", "gap_mean_s", "gap_cv",
)  # fmt: skip
"""Columns of `persistent_items` beside block and item."""
NAME = "persistence"
VERSION = 4


def definition(stream: Stream) -> Stage:
    """Return the tables of persistence of a stream."""
    blocks = {name: persistence_block_of(stream, name) for name in stream.blocks(Persistence)}
    # A table without a block has a step, too: it removes what a block has left that the stream has no longer.
    steps = (_tuples(stream, blocks), _persistent_items(stream, blocks))
    known = (block.known_table for block in blocks.values())
    return Stage(NAME, VERSION, steps, tuple(filter(None, known)))


def epsilons(stream: Stream) -> dict[str, int]:
    """Return the epsilon of each block, in millionths. It may follow from a budget."""
    return {
        f"{name}.epsilon_millionths": round(block.resolved_epsilon * 1_000_000)
        for name, block in stream.blocks(Persistence).items()
    }


def _tuples(stream: Stream, blocks: Mapping[str, PersistenceBlock]) -> TableStep:
    def compute(request: StepRequest) -> StepResult:
        from transom.features.persistence.tables_tuples import tuples_of

        return tuples_of(request, blocks)

    parts = {
        name: BlockOutput(
            (
                InputRange("ingest", "events", "events"),
                InputRange(NAME, name, "tuples", back=block.back, forward=-1),
            ),
            fingerprints.tuples(stream, name),
            tuple(item_table("tuples", [block.item]).block_schema().names),
        )
        for name, block in blocks.items()
    }
    wrong = outside(blocks)
    return TableStep(
        item_table("tuples", (block.item for block in blocks.values())),
        parts,
        compute,
        checks=tuple_checks(stream),
        metrics={"tuples_outside": rows_where(wrong)},
        counters=(PAIRS, STARTS, MISCOUNTED, LONG),
        derived={"tuples_beyond": excess_tuples(blocks)},
        failing_row_filters={"tuples_in_window": wrong},
    )


def _persistent_items(stream: Stream, blocks: Mapping[str, PersistenceBlock]) -> TableStep:
    def compute(request: StepRequest) -> StepResult:
        from transom.features.persistence.tables_persistent_items import persistent_items_of

        return persistent_items_of(request, blocks)

    parts = {
        name: BlockOutput(
            (
                InputRange(NAME, name, "tuples"),
                *(InputRange(*known.series) for known in (block.known_table,) if known is not None),
            ),
            fingerprints.persistent_items(stream, name),
            (*COLUMNS, *block.item),
        )
        for name, block in blocks.items()
    }
    wrong = violates_window(blocks)
    return TableStep(
        item_table("persistent_items", (block.item for block in blocks.values())),
        parts,
        compute,
        checks=built_in(stream, "persistence_bounded", metric="persistence_unsound", at_most=0),
        metrics={"persistence_unsound": rows_where(wrong)},
        failing_row_filters={"persistence_bounded": wrong},
    )
