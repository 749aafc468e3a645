"""The aggregate stage: figures of every key over sliding windows of several granularities.

`granules`, state: events of an hour grouped by key and base granule, by Spark's own operators, exact in whole
units of each column's resolution. `aggregates`, the result: windows over granules, by one vectorised pass
over each partition of keys (`transom.features.aggregates.reports`). An hour's granules depend on that
hour's events alone,
an hour's reports on the granules that its widest window reaches. Two more tables are those of recurring items
(`transom.features.aggregates.tables_recurring`), and one of the reports that meet a declared condition
(`transom.features.aggregates.tables_alerts`).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from transom.core.exact_sums import BOUND
from transom.engine.hours import granule, hours_of, incomplete_hours, quoted, reached, stretches_of
from transom.features.aggregates import fingerprints
from transom.features.aggregates import tables_alerts as alerts
from transom.features.aggregates.distinct_hashes import with_hashes
from transom.features.aggregates.events import chosen
from transom.features.aggregates.reports import Reports
from transom.features.aggregates.resolve import Block, block_of
from transom.features.aggregates.spec import Aggregation
from transom.features.aggregates.tables_recurring import absent_in_a_ring, steps_of
from transom.features.check_builders import (
    built_in,
    counts,
    declared,
    inexact,
    line_checks,
    line_faults,
    line_figures,
    report_faults,
    shares,
    sum_faults,
    sums_exact,
    wide_beside_narrow,
)
from transom.ledger.check import Check
from transom.ledger.stage import Computed, Part, Reads, Request, Share, Stage, Step
from transom.spec.stream import Stream
from transom.storage.tables import Table

NAME = "aggregate"
VERSION = 4


def outline(stream: Stream) -> Stage:
    """The stage less the columns by which Spark measures it: what it reads and what makes its hours stale can
    be told without a session."""
    blocks = {name: block_of(stream, name) for name in stream.blocks(Aggregation)}
    key = _union(block.key for block in blocks.values())
    granules = Table.load("granules").declare(
        key=key, state=_union(block.state_columns() for block in blocks.values())
    )
    aggregates = Table.load("aggregates").declare(
        key=key, figures=_union(block.figure_columns() for block in blocks.values())
    )
    return Stage(
        NAME,
        VERSION,
        (
            Step(
                granules,
                {
                    name: Part(
                        (Reads("ingest", "events", "events"),),
                        fingerprints.granules(stream, name),
                        ("hour", "granule", *block.key, "records", *block.state_columns()),
                    )
                    for name, block in blocks.items()
                },
                lambda request: granules_of(request, blocks),
                checks=(
                    *built_in(stream, "granules_add_up", metric="unaccounted", at_least=0, at_most=0),
                    *sums_exact(stream, _measured(stream)),
                ),
                derived={
                    "unaccounted": lambda row: row.get("matching_events", 0) - (row["granule_records"] or 0)
                },
            ),
            Step(
                aggregates,
                {
                    name: Part(
                        (Reads("aggregate", name, "granules", back=block.reach),),
                        fingerprints.reports(stream, name),
                        (
                            *("hour", "level", "window_start", "window_end", *block.key, "count"),
                            *block.figure_columns(),
                            "complete",
                        ),
                    )
                    for name, block in blocks.items()
                },
                lambda request: reports_of(request, blocks, stream),
                checks=(
                    *_report_checks(stream),
                    *sums_exact(stream, _measures(stream)),
                    *line_checks(stream, _fitted(stream)),
                ),
                derived=counts(declared(stream, "aggregate")),
            ),
            *steps_of(stream, blocks),
            alerts.step_of(stream, blocks),
        ),
    )


def stage(stream: Stream) -> Stage:
    """The aggregate stage of a stream."""
    bare = outline(stream)
    granules, aggregates, item_granules, recurring, alerted = bare.steps
    measured, measures, fitted = _measured(stream), _measures(stream), _fitted(stream)
    return replace(
        bare,
        steps=(
            replace(
                granules,
                figures={"granule_records": F.sum("records"), **inexact(measured)},
                faults=sum_faults(measured),
            ),
            replace(
                aggregates,
                figures={
                    "ends_outside": F.sum(_ends_outside().cast("bigint")),
                    **inexact(measures),
                    **line_figures(fitted),
                },
                faults={
                    "ends_inside_hour": _ends_outside(),
                    **sum_faults(measures),
                    **line_faults(fitted),
                    **report_faults(declared(stream, "aggregate"), stream),
                },
            ),
            item_granules,
            replace(
                recurring,
                figures={"absent_in_a_ring": F.sum(absent_in_a_ring().cast("bigint"))},
                faults={"recurring_in_every_ring": absent_in_a_ring()},
            ),
            alerted,
        ),
    )


def _measured(stream: Stream) -> list[str]:
    """The columns that some block measures."""
    return sorted({column for name in stream.blocks(Aggregation) for column in block_of(stream, name).units})


def _measures(stream: Stream) -> list[str]:
    """The measures that are of a column."""
    found = (
        measures
        for name in stream.blocks(Aggregation)
        for measures in block_of(stream, name).measures.items()
    )
    return sorted({name for name, (_, column) in found if column})


def _fitted(stream: Stream) -> list[str]:
    """The measures that have a line."""
    blocks = (block_of(stream, name) for name in stream.blocks(Aggregation))
    return sorted({name for block in blocks if block.fit for name in block.measures})


def _report_checks(stream: Stream) -> tuple[Check, ...]:
    return (
        *built_in(stream, "ends_inside_hour", metric="ends_outside", at_most=0),
        *built_in(stream, "wide_covers_narrow", metric="wide_short_of_narrow", at_most=0),
        *built_in(stream, "wide_holds_extremes", metric="narrow_beyond_wide", at_most=0),
        *(rule.check for rule in declared(stream, "aggregate")),
    )


def _ends_outside() -> Column:
    end = F.col("window_end")
    return (end <= F.col("hour")) | (end > F.col("hour") + F.expr("INTERVAL 1 HOUR"))


def granules_of(request: Request, blocks: Mapping[str, Block]) -> Computed:
    """The base granules of every block's target hours."""
    hours = hours_of(request)
    events = request.pins.read("events", hours)
    by_block = []
    for name, targets in request.targets.items():
        block = blocks[name]
        events_of = chosen(events, block, targets, hours)
        for column, unit in block.units.items():
            up, down = unit.step
            units = F.col(f"`{column}`").cast("double") * down / up
            exact = F.col(f"`{column}`") if unit.whole else F.rint(units).cast("bigint")
            events_of = events_of.withColumn(f"__{column}", exact)
        grouped = events_of.groupBy("hour", granule(block.base), *quoted(block.key)).agg(
            F.count("*").alias("records"), *_sums(block)
        )
        for column in block.hashed:
            grouped = with_hashes(grouped, events_of, block, column)
        by_block.append(Share(name, grouped))

    # What a block takes of an hour is counted apart from the granules, and needs no look where it is all.
    standing = request.rows.get(("events", "events"))
    whole = [name for name in request.targets if blocks[name].where is None and standing is not None]
    known = {
        (name, hour): {"matching_events": (standing or {}).get(hour, 0)}
        for name in whole
        for hour in request.targets[name]
    }

    def matching(_: DataFrame) -> list[DataFrame]:
        return [
            chosen(events, blocks[name], targets, hours)
            .groupBy("hour")
            .agg(F.count("*").alias("matching_events"))
            .withColumn("block", F.lit(name))
            for name, targets in request.targets.items()
            if name not in whole
        ]

    return Computed(by_block, matching, known)


def _sums(block: Block) -> Iterator[Column]:
    for column in block.units:
        value = F.col(f"`__{column}`")
        values, least, most = F.count(value), F.min(value), F.max(value)
        # As `Summary.exact` has it. Where the rule is broken, what comes out of the additions, and whether
        # anything does, goes by their order.
        largest = F.greatest(F.abs(least.cast("double")), F.abs(most.cast("double")))
        exact = largest * values < F.lit(float(BOUND))
        yield values.alias(f"values_{column}")
        yield F.when(exact, F.try_sum(value)).alias(f"sum_{column}")
        yield least.alias(f"min_{column}")
        yield most.alias(f"max_{column}")


def reports_of(request: Request, blocks: Mapping[str, Block], stream: Stream) -> Computed:
    """The windows that report in every block's target hours."""
    by_block = []
    for name, targets in request.targets.items():
        block = blocks[name]
        rows = request.pins.read("granules", reached(targets, block.reach)).where(F.col("block") == name)
        rows = rows.select("granule", *quoted(block.key), "records", *block.state_columns())
        # One key's granules have to meet in one pass, in whatever order: numpy sorts them there.
        rows = rows.repartition(*quoted(block.key)) if block.key else rows.repartition(1)
        made = Reports(block, stretches_of(targets), incomplete_hours(request, name))
        by_block.append(Share(name, rows, made))

    def covering(rows: DataFrame) -> list[DataFrame]:
        rules = declared(stream, "aggregate")
        return [wide_beside_narrow(rows, _measures(stream)), *shares(rules, rows, stream)]

    return Computed(by_block, covering)


def _union(columns: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Columns of several blocks, which the stream's file gives the same types."""
    return {name: kind for some in columns for name, kind in some.items()}
