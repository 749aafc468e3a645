"""The stage `aggregates`: measures of every key over sliding windows of several granularities.

State, which depends on the events of its hour alone:
- `granules`: counts, exact sums in units of each column's resolution, and extremes by key and granule;
- `item_granules`: counts by key, item and granule.

Results:
- `aggregates`: windows over granules, as far back as the widest range;
- `recurring`: items in every ring;
- `alerts`: rows of `aggregates` that meet a condition of the stream file.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from transom.engine.check_builders import built_in, counts, declared, judged_block, row_meets
from transom.features.aggregates.check_metrics import (
    ABSENT_IN_A_RING,
    ENDS_OUTSIDE,
    column_checks,
    measures_of_columns,
)
from transom.features.aggregates.output_columns import aggregate_types
from transom.features.aggregates.resolve import AggregateBlock, block_of
from transom.features.aggregates.spec import Aggregation
from transom.ledger.stage import BlockOutput, InputRange, Stage, StepResult, TableStep, rows_where
from transom.spec.feature import lazy
from transom.spec.stream import Stream
from transom.storage.tables import Table

NAME = "aggregates"
VERSION = 4
Blocks = Mapping[str, AggregateBlock]


def definition(stream: Stream) -> Stage:
    """Return the stage `aggregates` of a stream."""
    blocks = {name: block_of(stream, name) for name in stream.blocks(Aggregation)}
    # A step without blocks stays: it deletes rows of blocks that had recurring items or alerts before.
    recurring = {name: block for name, block in blocks.items() if block.item}
    alerting = {name: block for name, block in blocks.items() if stream.blocks(Aggregation)[name].alert}
    steps = (
        _granules(stream, blocks),
        _aggregates(stream, blocks),
        _step(stream, "item_granules", recurring, _reads_events, _lazy("recurring:item_granules_of")),
        _recurring(stream, recurring),
        _alerts(stream, alerting),
    )
    return Stage(NAME, VERSION, steps)


def _granules(stream: Stream, blocks: Blocks) -> TableStep:
    columns = sorted({column for block in blocks.values() for column in block.units})
    checks, metrics, filters = column_checks(stream, columns, "sums_exact")
    added_up = built_in(stream, "granules_add_up", metric="unaccounted", at_least=0, at_most=0)
    return _step(
        stream, "granules", blocks, _reads_events, _lazy("granules:granules_of"),
        checks=(*added_up, *checks),
        metrics={"granule_records": "sum(`records`)", **metrics},
        derived={"unaccounted": lambda row: row.get("matching_events", 0) - (row["granule_records"] or 0)},
        failing_row_filters=filters,
    )  # fmt: skip


def _aggregates(stream: Stream, blocks: Blocks) -> TableStep:
    fitted = sorted({name for block in blocks.values() if block.fit for name in block.measures})
    sum_checks, sum_metrics, sum_filters = column_checks(stream, measures_of_columns(blocks), "sums_exact")
    line_checks, line_metrics, line_filters = column_checks(stream, fitted, "lines_exact", "lines_of_two")
    rules = declared(stream, NAME)
    shares, unmet = {}, {}
    for rule in rules:
        if rule.every is not None:
            block = judged_block(rule.block, blocks)
            met = row_meets(rule.every, aggregate_types(stream, block))
            shares[rule.metric] = f"avg(CASE WHEN `block` = '{block}' THEN CAST({met} AS double) END)"
            unmet[rule.check.name] = f"NOT {met}"
    return _step(
        stream, "aggregates", blocks,
        lambda block: InputRange(NAME, block.name, "granules", back=block.reach),
        _lazy("aggregates:aggregates_of"),
        checks=(
            *built_in(stream, "ends_inside_hour", metric="ends_outside", at_most=0),
            *built_in(stream, "wide_covers_narrow", metric="wide_short_of_narrow", at_most=0),
            *built_in(stream, "wide_holds_extremes", metric="narrow_beyond_wide", at_most=0),
            *(rule.check for rule in rules),
            *sum_checks,
            *line_checks,
        ),
        metrics={"ends_outside": rows_where(ENDS_OUTSIDE), **shares, **sum_metrics, **line_metrics},
        counters=("wide_short_of_narrow", "narrow_beyond_wide"),
        derived=counts(rules),
        failing_row_filters={"ends_inside_hour": ENDS_OUTSIDE, **sum_filters, **line_filters, **unmet},
    )  # fmt: skip


def _recurring(stream: Stream, blocks: Blocks) -> TableStep:
    def reads(block: AggregateBlock) -> InputRange:
        return InputRange(NAME, block.name, "item_granules", back=block.reach_of(block.levels[-1]))

    return _step(
        stream, "recurring", blocks, reads, _lazy("recurring:recurring_of"),
        checks=built_in(stream, "recurring_in_every_ring", metric="absent_in_a_ring", at_most=0),
        metrics={"absent_in_a_ring": rows_where(ABSENT_IN_A_RING)},
        failing_row_filters={"recurring_in_every_ring": ABSENT_IN_A_RING},
    )  # fmt: skip


def _alerts(stream: Stream, blocks: Blocks) -> TableStep:
    compute = partial(_lazy("aggregates:alerts_of"), stream=stream)
    return _step(stream, "alerts", blocks, lambda block: InputRange(NAME, block.name, "aggregates"), compute)


def _lazy(function: str) -> Callable[..., StepResult]:
    return lazy(f"transom.features.aggregates.tables_{function}")


def _reads_events(block: AggregateBlock) -> InputRange:
    return InputRange("ingest", "events", "events")


def _step(
    stream: Stream,
    table: str,
    blocks: Blocks,
    reads: Callable[[AggregateBlock], InputRange],
    compute: Callable[..., StepResult],
    **options: Any,
) -> TableStep:
    """Return the step of a table, with the columns of all blocks."""
    parts = {
        name: BlockOutput((reads(block),), stream.fingerprint(table, name), tuple(block.schema(table).names))
        for name, block in blocks.items()
    }
    columns: dict[str, dict[str, str]] = {part: {} for part in ("key", "state", "figures", "item")}
    for block in blocks.values():
        for part, kinds in block.declared(table).items():
            columns[part] |= kinds
    # A column may be in the key of one block and in the items of another.
    columns["item"] = {name: kind for name, kind in columns["item"].items() if name not in columns["key"]}
    return TableStep(Table.load(table).declare(**columns), parts, partial(compute, blocks=blocks), **options)
