"""Tables of items."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

import pyarrow as pa

from transom.engine.check_builders import built_in
from transom.ledger.stage import BlockOutput, InputRange, StepRequest, StepResult, TableStep
from transom.spec.feature import lazy
from transom.spec.stream import Stream
from transom.storage.tables import Table

LONG = "items_long"
"""The counter of skipped records of items that are too long."""


def item_table(name: str, items: Iterable[Mapping[str, str]]) -> Table:
    """Return a table for some blocks of items, each given by its columns with their Spark types."""
    return Table.load(name).declare(item={column: kind for item in items for column, kind in item.items()})


def item_schema(name: str, item: Mapping[str, str]) -> pa.Schema:
    """Return the schema of the rows of one block in a table of items."""
    return item_table(name, [item]).block_schema()


def item_step(
    stream: Stream,
    stage: str,
    table: str,
    blocks: Mapping[str, Any],
    reads: Callable[[str, Any], tuple[InputRange, ...]],
    zero: Mapping[str, str],
    before_ends: Callable[[str], tuple[tuple[datetime, str], ...]] = lambda name: (),
    **options: Any,
) -> TableStep:
    """Return the step of a table that is computed block by block.

    The function `<table>_of` in `tables_<table>.py` of the stage's feature returns the `BlockTask` of a
    request, a block and its target hours. It is imported when it is called, as it needs Spark.

    Args:
        stream: the stream.
        stage: the name of the stage.
        table: the name of the table.
        blocks: the resolved blocks; without any, the step removes the rows of former blocks.
        reads: returns the inputs of a block, from its name and itself.
        zero: the metric of each built-in check, which must be 0.
        before_ends: returns `BlockOutput.before_ends` of a block.
        options: further arguments of `TableStep`.
    """
    task = lazy(f"transom.features.{stage}.tables_{table}:{table}_of")
    parts = {}
    for name, block in blocks.items():
        # Samples of failing rows show the item last.
        columns = sorted(item_schema(table, block.item).names, key=block.item.__contains__)
        shape, ends = stream.fingerprint(table, name), before_ends(name)
        parts[name] = BlockOutput(reads(name, block), shape, tuple(columns), ends)

    def compute(request: StepRequest) -> StepResult:
        return StepResult([task(request, blocks[name], hours) for name, hours in request.targets.items()])

    checks = tuple(check for name in zero for check in built_in(stream, name, metric=zero[name], at_most=0))
    items = item_table(table, (block.item for block in blocks.values()))
    return TableStep(items, parts, compute, checks=checks, **options)
