"""The checks of a stream, as the stages compute and judge them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_
from typing import Any

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from transom.features.aggregates.output_columns import report_types
from transom.features.aggregates.spec import Aggregation
from transom.formats.record_format import FieldType
from transom.ledger.check import Check
from transom.ledger.waivers import Accepted, entries_of
from transom.spec.block_columns import Use
from transom.spec.checks import BUILT_IN
from transom.spec.expressions import condition
from transom.spec.stream import Stream

ABOUT = {
    "seconds_outside": "event_time",
    "hours": "event_time",
    "ends_outside": "window_end",
    "wide_short_of_narrow": "count",
}
"""The columns of the data that built-in checks' metrics are about, of those that are about one."""


@dataclass(frozen=True)
class Declared:
    """A check that a stream declares.

    Attributes:
        metric: the name of its figure: a share of rows, or their number.
        every: the condition that the share is of; None for a check on the number of rows.
        block: the block it is of; None is all.
    """

    metric: str
    every: str | None
    block: str | None
    check: Check


def built_in(
    stream: Stream, name: str, metric: str, at_least: float | None = None, at_most: float | None = None
) -> tuple[Check, ...]:
    """A built-in check over a metric, as the stream has it; none where the stream turns it off.

    A tolerance of the stream goes before `at_most`.
    """
    return tuple(
        Check(
            name,
            metric,
            gate.severity,
            at_least,
            at_most if gate.at_most is None else gate.at_most,
            ABOUT.get(metric),
            BUILT_IN[name].advice,
        )
        for gate in stream.gates
        if gate.name == name and gate.built_in
    )


def used_columns(stream: Stream, reached: Callable[[Use], bool] = lambda use: True) -> set[str]:
    """The columns that something is computed from: a key, a block, `unique`, `ties`, a check of events. Of
    derived ones among them, what they are computed from as well.

    Args:
        reached: whether some event meets the condition of a use, by default that of every use. What a block
            reads in other events is not used.
    """
    used = set(stream.own_key)
    for block in stream.columns_read:
        used = used.union(*(use.columns for use in block.all_uses if reached(use)))
    if stream.unique is not None:
        used |= {*stream.unique.columns, *([stream.unique.longest] if stream.unique.longest else ())}
    for gate in stream.gates:
        if gate.stage == "ingest" and gate.every is not None:
            used |= set(condition(gate.every, stream.event_types).columns)
    derived = [stream.derived[name].columns for name in used & stream.derived.keys()]
    return used.union(*derived)


def sums_exact(stream: Stream, names: Sequence[str]) -> tuple[Check, ...]:
    """The check that every sum of a table is there, for each of its sums.

    Args:
        names: what the table has `values_*` and `sum_*` of.
    """
    return tuple(
        replace(check, column=f"sum_{name}")
        for name in names
        for check in built_in(stream, "sums_exact", metric=f"inexact_{name}", at_most=0)
    )


def inexact(names: Sequence[str]) -> dict[str, Column]:
    """How many rows lack each sum; null for a block that does not have it."""
    return {f"inexact_{name}": F.sum(_lacks_sum(name).cast("bigint")) for name in names}


def sum_faults(names: Sequence[str]) -> dict[str, Column]:
    """Which rows lack a sum."""
    return {"sums_exact": reduce(or_, map(_lacks_sum, names))} if names else {}


def _lacks_sum(name: str) -> Column:
    return (F.col(f"`values_{name}`") > 0) & F.col(f"`sum_{name}`").isNull()


def wide_beside_narrow(rows: DataFrame, names: Sequence[str]) -> DataFrame:
    """How the levels' windows that end together fit each other, by block and hour.

    `wide_short_of_narrow` is by how many records, at most, a level holds fewer than the one below;
    `narrow_beyond_wide` is how many levels have an extreme that the one above does not reach. Both over all
    keys of a window's end: a key that a narrow window holds, a wide one holds too.

    Args:
        names: what the reports have `min_*` and `max_*` of.
    """
    extremes = [
        extreme(f"`{column}`").alias(column)
        for name in names
        for extreme, column in ((F.min, f"min_{name}"), (F.max, f"max_{name}"))
    ]
    totals = rows.groupBy("block", "hour", "window_end", "level").agg(
        F.sum("count").alias("records"), *extremes
    )
    of_one_end = Window.partitionBy("block", "hour", "window_end").orderBy("level")

    def below(column: str) -> Column:
        return F.lag(f"`{column}`").over(of_one_end)

    # Null is what a block does not measure, a window without a value, or what is below the finest level.
    beyond = [
        F.coalesce(
            (below(f"min_{name}") < F.col(f"`min_{name}`")) | (below(f"max_{name}") > F.col(f"`max_{name}`")),
            F.lit(False),
        )
        for name in names
    ]
    compared = totals.select(
        "block",
        "hour",
        F.greatest(F.lit(0), below("records") - F.col("records")).alias("short"),
        reduce(or_, beyond, F.lit(False)).cast("bigint").alias("beyond"),
    )
    return compared.groupBy("block", "hour").agg(
        F.max("short").alias("wide_short_of_narrow"), F.sum("beyond").alias("narrow_beyond_wide")
    )


def line_checks(stream: Stream, names: Sequence[str]) -> tuple[Check, ...]:
    """The checks of the lines of a table, for each of its lines.

    Args:
        names: what the table has `slope_*` of.
    """
    return tuple(
        replace(check, column=f"slope_{name}")
        for name in names
        for check_name in _LINES
        for check in built_in(stream, check_name, metric=f"{check_name}_{name}", at_most=0)
    )


def line_figures(names: Sequence[str]) -> dict[str, Column]:
    """How many rows break each of these checks; null for a block that does not have the line."""
    return {
        f"{check}_{name}": F.sum(broken(name).cast("bigint"))
        for name in names
        for check, broken in _LINES.items()
    }


def line_faults(names: Sequence[str]) -> dict[str, Column]:
    """Which rows break these checks."""
    return {check: reduce(or_, map(broken, names)) for check, broken in _LINES.items()} if names else {}


def _lacks_line(name: str) -> Column:
    return (F.col(f"`units_{name}`") > 1) & F.col(f"`slope_{name}`").isNull()


def _has_line_of_one(name: str) -> Column:
    units = F.col(f"`units_{name}`")
    # Null where a block has no such line: nothing is said of it then.
    return F.when(units.isNotNull(), (units < 2) & F.col(f"`slope_{name}`").isNotNull())


_LINES = {"lines_exact": _lacks_line, "lines_of_two": _has_line_of_one}


def declared(stream: Stream, stage: str) -> list[Declared]:
    """The checks that the stream declares for a stage."""
    found = []
    for gate in stream.gates:
        if gate.built_in or gate.stage != stage:
            continue
        if gate.every is not None:
            metric = f"check_{gate.name}"
            types = (
                stream.event_types if stage == "ingest" else report_types(stream, _block(gate.block, stream))
            )
            met_by = condition(gate.every, types)
            about = ", ".join(met_by.columns) or None
            rule = f"{gate.block}: {met_by.sql}"
            check = Check(gate.name, metric, gate.severity, at_least=gate.share, column=about, rule=rule)
        else:
            assert gate.rows is not None
            metric = "rows" if gate.block is None else f"rows_{gate.block}"
            check = Check(gate.name, metric, gate.severity, gate.rows.at_least, gate.rows.at_most)
        found.append(Declared(metric, gate.every, gate.block, check))
    return found


def met(every: str, types: Mapping[str, FieldType]) -> Column:
    """Whether a row meets a condition; one for which it is null does not."""
    return F.coalesce(F.expr(condition(every, types).sql), F.lit(False))


def holds(every: str, types: Mapping[str, FieldType]) -> Column:
    """How many rows meet a condition."""
    return F.sum(met(every, types).cast("bigint"))


def accepted_of(stream: Stream) -> Sequence[Accepted]:
    """The failed checks that the stream lets pass."""
    return entries_of(stream.accept)


def report_faults(rules: Sequence[Declared], stream: Stream) -> dict[str, Column]:
    """For each declared condition on reports, which rows do not meet it."""
    return {
        rule.check.name: ~met(rule.every, report_types(stream, _block(rule.block, stream)))
        for rule in rules
        if rule.every is not None
    }


def _block(named: str | None, stream: Stream) -> str:
    return named or next(iter(stream.blocks(Aggregation)))


def shares(rules: Sequence[Declared], rows: DataFrame, stream: Stream) -> list[DataFrame]:
    """The shares of reports that meet declared conditions, by block and hour."""
    frames = []
    for rule in rules:
        if rule.every is not None:
            block = _block(rule.block, stream)
            share = holds(rule.every, report_types(stream, block)) / F.count("*")
            chosen = rows.where(F.col("block") == block)
            frames.append(chosen.groupBy("block", "hour").agg(share.alias(rule.metric)))
    return frames


def counts(rules: Sequence[Declared]) -> dict[str, Callable[[Mapping[str, Any]], float | None]]:
    """The figures of checks on the number of rows, of an hour without rows as well."""

    def rows_of(block: str | None) -> Callable[[Mapping[str, Any]], float | None]:
        return lambda row: row["count"] if block in (None, row["block"]) else None

    return {rule.metric: rows_of(rule.block) for rule in rules if rule.every is None}
