"""The stage `persistence` and its tables (Lahiri, Tirthapura and Chandrashekar)."""

from functools import partial

from transom.core.intervals import HOUR
from transom.features.items.tables import LONG, item_step
from transom.features.persistence import check_metrics, fingerprints
from transom.features.persistence.built_in_checks import SHORT
from transom.features.persistence.resolve import KnownItems, PersistenceBlock, persistence_block_of
from transom.features.persistence.spec import Persistence
from transom.ledger.stage import InputRange, Stage, rows_where
from transom.spec.stream import Stream

NAME = "persistence"
VERSION = 4


def definition(stream: Stream) -> Stage:
    """Return the stage `persistence` of a stream."""
    blocks = {name: persistence_block_of(stream, name) for name in stream.blocks(Persistence)}
    step = partial(item_step, stream, NAME)
    is_outside, is_unsound = check_metrics.outside(blocks), check_metrics.violates_window(blocks)
    tuples = step(
        "tuples",
        blocks,
        lambda name, block: (
            InputRange("ingest", "events", "events"),
            InputRange(NAME, name, "tuples", back=block.back, forward=-1),
        ),
        {
            "tuples_expected": "tuples_beyond",
            "tuples_in_window": "tuples_outside",
            "slots_counted": check_metrics.MISCOUNTED,
            SHORT: LONG,
        },
        metrics={"tuples_outside": rows_where(is_outside)},
        counters=(check_metrics.PAIRS, check_metrics.STARTS, check_metrics.MISCOUNTED, LONG),
        derived={"tuples_beyond": check_metrics.excess_tuples(blocks)},
        failing_row_filters={"tuples_in_window": is_outside},
    )
    persistent_items = step(
        "persistent_items",
        blocks,
        lambda name, block: (
            InputRange(NAME, name, "tuples"),
            *filter(None, (_known_items(ignored, block) for ignored in block.ignored)),
        ),
        {"persistence_bounded": "persistence_unsound"},
        metrics={"persistence_unsound": rows_where(is_unsound)},
        failing_row_filters={"persistence_bounded": is_unsound},
        before_ends=partial(fingerprints.before_ends, stream),
    )
    lists = (ignored for block in blocks.values() for ignored in block.ignored)
    known = tuple(ignored.table for ignored in lists if ignored.table is not None)
    return Stage(NAME, VERSION, (tuples, persistent_items), known)


def _known_items(ignored: KnownItems, block: PersistenceBlock) -> InputRange | None:
    """Return the range of a table of ignored items that an hour's report reads; None without a table."""
    if ignored.table is None:
        return None
    if ignored.until is None:
        return InputRange(*ignored.table.series)
    # The first report after the end reads it for the items that have left.
    end = ignored.until + block.period * HOUR
    return InputRange(*ignored.table.series, back_of=lambda hour: 0 if hour < end else -1)


def epsilons(stream: Stream) -> dict[str, int]:
    """Return the epsilon of each block, in millionths. It may follow from a budget."""
    return {
        f"{name}.epsilon_millionths": round(block.resolved_epsilon * 1_000_000)
        for name, block in stream.blocks(Persistence).items()
    }
