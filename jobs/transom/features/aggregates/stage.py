"""The stage `aggregates`: figures of every key over sliding windows of several granularities.

State: `granules` has the events of an hour by key and base granule, with exact sums in units of each column's
resolution; `item_granules` the same of recurring items. An hour's state depends on that hour's events alone.
Results: `aggregates` has windows over the granules that the widest window reaches; `recurring` the recurring
items; `alerts` the reports that meet a declared condition.
"""

from collections.abc import Iterable, Mapping

from transom.engine.check_builders import built_in, counts, declared, judged_block, row_meets
from transom.features.aggregates import fingerprints
from transom.features.aggregates.check_metrics import (
    ABSENT_IN_A_RING,
    ENDS_OUTSIDE,
    column_checks,
    measures_of_columns,
)
from transom.features.aggregates.output_columns import alert_figures, report_types
from transom.features.aggregates.resolve import AggregateBlock, block_of
from transom.features.aggregates.spec import Aggregation
from transom.ledger.stage import BlockOutput, InputRange, Stage, TableStep, rows_where
from transom.spec.feature import lazy
from transom.spec.stream import Stream
from transom.storage.tables import SPARK_TYPES, Table

NAME = "aggregates"
VERSION = 4
_EVENTS = InputRange("ingest", "events", "events")
_TABLES = "transom.features.aggregates.tables"
Blocks = Mapping[str, AggregateBlock]


def definition(stream: Stream) -> Stage:
    """Return the stage `aggregates` of a stream."""
    blocks = {name: block_of(stream, name) for name in stream.blocks(Aggregation)}
    # Without blocks, a step deletes the rows of blocks that had recurring items or alerts before.
    recurring = {name: block for name, block in blocks.items() if block.item}
    alerting = {name: block for name, block in blocks.items() if stream.blocks(Aggregation)[name].alert}
    steps = (
        _granules(stream, blocks),
        _aggregates(stream, blocks),
        _item_granules(stream, recurring),
        _recurring(stream, recurring),
        _alerts(stream, alerting),
    )
    return Stage(NAME, VERSION, steps)


def _granules(stream: Stream, blocks: Blocks) -> TableStep:
    checks, metrics, filters = column_checks(
        stream, sorted({column for block in blocks.values() for column in block.units}), "sums_exact"
    )
    return TableStep(
        _table("granules", blocks, state=(block.state_columns() for block in blocks.values())),
        {
            name: BlockOutput(
                (_EVENTS,),
                fingerprints.granules(stream, name),
                ("hour", "granule", *block.key, "records", *block.state_columns()),
            )
            for name, block in blocks.items()
        },
        lambda request: lazy(f"{_TABLES}_granules:granules_of")(request, blocks),
        checks=(
            *built_in(stream, "granules_add_up", metric="unaccounted", at_least=0, at_most=0),
            *checks,
        ),
        metrics={"granule_records": "sum(`records`)", **metrics},
        derived={"unaccounted": lambda row: row.get("matching_events", 0) - (row["granule_records"] or 0)},
        failing_row_filters=filters,
    )


def _aggregates(stream: Stream, blocks: Blocks) -> TableStep:
    fitted = sorted({name for block in blocks.values() if block.fit for name in block.measures})
    sum_checks, sum_metrics, sum_filters = column_checks(stream, measures_of_columns(blocks), "sums_exact")
    line_checks, line_metrics, line_filters = column_checks(stream, fitted, "lines_exact", "lines_of_two")
    rules = declared(stream, NAME)
    return TableStep(
        _table("aggregates", blocks, figures=(block.figure_columns() for block in blocks.values())),
        {
            name: BlockOutput(
                (InputRange(NAME, name, "granules", back=block.reach),),
                fingerprints.reports(stream, name),
                (
                    *("hour", "level", "window_start", "window_end", *block.key, "count"),
                    *block.figure_columns(),
                    "complete",
                ),
            )
            for name, block in blocks.items()
        },
        lambda request: lazy(f"{_TABLES}_aggregates:reports_of")(request, blocks, stream),
        checks=(
            *built_in(stream, "ends_inside_hour", metric="ends_outside", at_most=0),
            *built_in(stream, "wide_covers_narrow", metric="wide_short_of_narrow", at_most=0),
            *built_in(stream, "wide_holds_extremes", metric="narrow_beyond_wide", at_most=0),
            *(rule.check for rule in rules),
            *sum_checks,
            *line_checks,
        ),
        metrics={"ends_outside": rows_where(ENDS_OUTSIDE), **sum_metrics, **line_metrics},
        derived=counts(rules),
        failing_row_filters={
            "ends_inside_hour": ENDS_OUTSIDE,
            **sum_filters,
            **line_filters,
            **{
                rule.check.name: "NOT "
                + row_meets(rule.every, report_types(stream, judged_block(rule.block, blocks)))
                for rule in rules
                if rule.every is not None
            },
        },
    )


def _item_granules(stream: Stream, blocks: Blocks) -> TableStep:
    return TableStep(
        _table("item_granules", blocks, item=(block.item for block in blocks.values())),
        {
            name: BlockOutput(
                (_EVENTS,),
                fingerprints.item_granules(stream, name),
                ("hour", "granule", *block.key, *block.item, "records"),
            )
            for name, block in blocks.items()
        },
        lambda request: lazy(f"{_TABLES}_recurring:item_granules_of")(request, blocks),
    )


def _recurring(stream: Stream, blocks: Blocks) -> TableStep:
    return TableStep(
        _table("recurring", blocks, item=(block.item for block in blocks.values())),
        {
            name: BlockOutput(
                (InputRange(NAME, name, "item_granules", back=block.reach_of(block.levels[-1])),),
                fingerprints.recurring(stream, name),
                ("hour", "window_end", *block.key, *block.item, "counts", "complete"),
            )
            for name, block in blocks.items()
        },
        lambda request: lazy(f"{_TABLES}_recurring:recurring_of")(request, blocks),
        checks=built_in(stream, "recurring_in_every_ring", metric="absent_in_a_ring", at_most=0),
        metrics={"absent_in_a_ring": rows_where(ABSENT_IN_A_RING)},
        failing_row_filters={"recurring_in_every_ring": ABSENT_IN_A_RING},
    )


def _alerts(stream: Stream, blocks: Blocks) -> TableStep:
    figures = {
        name: {column: SPARK_TYPES[kind] for column, kind in alert_figures(stream, name).items()}
        for name in blocks
    }
    parts = {
        name: BlockOutput(
            (InputRange(NAME, name, "aggregates"),),
            fingerprints.alerts(stream, name),
            (
                *("hour", "alert", "level", "window_start", "window_end", *block.key, "count"),
                *figures[name],
                "complete",
            ),
        )
        for name, block in blocks.items()
    }
    return TableStep(
        _table("alerts", blocks, figures=figures.values()),
        parts,
        lambda request: lazy(f"{_TABLES}_alerts:alerts_of")(request, stream, parts),
    )


def _table(name: str, blocks: Blocks, **columns: Iterable[Mapping[str, str]]) -> Table:
    """Return a table with the columns of all blocks. A column of the key may also be one of an item."""
    key = {column: kind for block in blocks.values() for column, kind in block.key.items()}
    unions = {
        placeholder: {
            column: kind for part in parts for column, kind in part.items() if key.get(column) != kind
        }
        for placeholder, parts in columns.items()
    }
    return Table.load(name).declare(key=key, **unions)
