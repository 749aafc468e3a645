"""The stage `aggregates`: figures of every key over sliding windows of several granularities.

`granules`, state: events of an hour grouped by key and base granule, exact in whole units of each column's
resolution. `aggregates`, the result: windows over granules. An hour's granules depend on that hour's events
alone, an hour's reports on the granules that its widest window reaches. `item_granules`, state, and
`recurring`, a result, are those of recurring items. `alerts`, a result: the reports that meet a declared
condition.
"""

from collections.abc import Iterable, Mapping

from transom.engine.check_builders import built_in, counts, declared
from transom.features.aggregates import fingerprints
from transom.features.aggregates.alerts import figures
from transom.features.aggregates.checks import (
    ABSENT_IN_A_RING,
    ENDS_OUTSIDE,
    fitted_measures,
    inexact,
    line_checks,
    line_filters,
    line_metrics,
    measured_columns,
    measures_of_columns,
    report_checks,
    report_filters,
    sum_filters,
    sums_exact,
)
from transom.features.aggregates.resolve import AggregateBlock, block_of
from transom.features.aggregates.spec import Aggregation
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
from transom.storage.tables import SPARK_TYPES, Table

NAME = "aggregates"
VERSION = 4


def definition(stream: Stream) -> Stage:
    """Return the stage `aggregates` of a stream."""
    blocks = {name: block_of(stream, name) for name in stream.blocks(Aggregation)}
    # Where no block has recurring items or alerts, the steps have no parts: rows of blocks that had some
    # once are taken away then.
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


def _granules(stream: Stream, blocks: Mapping[str, AggregateBlock]) -> TableStep:
    def compute(request: StepRequest) -> StepResult:
        from transom.features.aggregates.tables_granules import granules_of

        return granules_of(request, blocks)

    measured = measured_columns(stream)
    table = Table.load("granules").declare(
        key=_union(block.key for block in blocks.values()),
        state=_union(block.state_columns() for block in blocks.values()),
    )
    parts = {
        name: BlockOutput(
            (InputRange("ingest", "events", "events"),),
            fingerprints.granules(stream, name),
            ("hour", "granule", *block.key, "records", *block.state_columns()),
        )
        for name, block in blocks.items()
    }
    return TableStep(
        table,
        parts,
        compute,
        checks=(
            *built_in(stream, "granules_add_up", metric="unaccounted", at_least=0, at_most=0),
            *sums_exact(stream, measured),
        ),
        metrics={"granule_records": "sum(`records`)", **inexact(measured)},
        derived={"unaccounted": lambda row: row.get("matching_events", 0) - (row["granule_records"] or 0)},
        failing_row_filters=sum_filters(measured),
    )


def _aggregates(stream: Stream, blocks: Mapping[str, AggregateBlock]) -> TableStep:
    def compute(request: StepRequest) -> StepResult:
        from transom.features.aggregates.tables_aggregates import reports_of

        return reports_of(request, blocks, stream)

    measures, fitted = measures_of_columns(stream), fitted_measures(stream)
    table = Table.load("aggregates").declare(
        key=_union(block.key for block in blocks.values()),
        figures=_union(block.figure_columns() for block in blocks.values()),
    )
    parts = {
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
    }
    return TableStep(
        table,
        parts,
        compute,
        checks=(
            *report_checks(stream),
            *sums_exact(stream, measures),
            *line_checks(stream, fitted),
        ),
        metrics={"ends_outside": rows_where(ENDS_OUTSIDE), **inexact(measures), **line_metrics(fitted)},
        derived=counts(declared(stream, NAME)),
        failing_row_filters={
            "ends_inside_hour": ENDS_OUTSIDE,
            **sum_filters(measures),
            **line_filters(fitted),
            **report_filters(stream),
        },
    )


def _item_granules(stream: Stream, blocks: Mapping[str, AggregateBlock]) -> TableStep:
    def compute(request: StepRequest) -> StepResult:
        from transom.features.aggregates.tables_recurring import item_granules_of

        return item_granules_of(request, blocks)

    parts = {
        name: BlockOutput(
            (InputRange("ingest", "events", "events"),),
            fingerprints.item_granules(stream, name),
            ("hour", "granule", *block.key, *block.item, "records"),
        )
        for name, block in blocks.items()
    }
    return TableStep(_of_items("item_granules", blocks), parts, compute)


def _recurring(stream: Stream, blocks: Mapping[str, AggregateBlock]) -> TableStep:
    def compute(request: StepRequest) -> StepResult:
        from transom.features.aggregates.tables_recurring import recurring_of

        return recurring_of(request, blocks)

    parts = {
        name: BlockOutput(
            (InputRange(NAME, name, "item_granules", back=block.reach_of(block.levels[-1])),),
            fingerprints.recurring(stream, name),
            ("hour", "window_end", *block.key, *block.item, "counts", "complete"),
        )
        for name, block in blocks.items()
    }
    return TableStep(
        _of_items("recurring", blocks),
        parts,
        compute,
        checks=built_in(stream, "recurring_in_every_ring", metric="absent_in_a_ring", at_most=0),
        metrics={"absent_in_a_ring": rows_where(ABSENT_IN_A_RING)},
        failing_row_filters={"recurring_in_every_ring": ABSENT_IN_A_RING},
    )


def _alerts(stream: Stream, blocks: Mapping[str, AggregateBlock]) -> TableStep:
    def compute(request: StepRequest) -> StepResult:
        from transom.features.aggregates.tables_alerts import alerts_of

        return alerts_of(request, stream, parts)

    read = {
        name: {column: SPARK_TYPES[kind] for column, kind in figures(stream, name).items()} for name in blocks
    }
    table = Table.load("alerts").declare(
        key=_union(block.key for block in blocks.values()), figures=_union(read.values())
    )
    parts = {
        name: BlockOutput(
            (InputRange(NAME, name, "aggregates"),),
            fingerprints.alerts(stream, name),
            (
                *("hour", "alert", "level", "window_start", "window_end", *block.key, "count"),
                *read[name],
                "complete",
            ),
        )
        for name, block in blocks.items()
    }
    return TableStep(table, parts, compute)


def _of_items(table: str, blocks: Mapping[str, AggregateBlock]) -> Table:
    """Return a table of recurring items; a column may belong to the key and to the item."""
    key = _union(block.key for block in blocks.values())
    item = _union(block.item for block in blocks.values())
    return Table.load(table).declare(
        key=key, item={name: kind for name, kind in item.items() if name not in key}
    )


def _union(columns: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Return the columns of several blocks, which the stream's file gives the same types."""
    return {name: kind for some in columns for name, kind in some.items()}
