"""The checks of a stream, for its stages."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from transom.formats.record_format import FieldType
from transom.ledger.check import Check
from transom.ledger.waivers import Waiver, entries_of
from transom.spec.block_columns import Use
from transom.spec.expressions import condition
from transom.spec.stream import Stream

ABOUT = {
    "seconds_outside": "event_time",
    "hours": "event_time",
    "ends_outside": "window_end",
    "wide_short_of_narrow": "count",
}
"""The column that a built-in check is about, by its metric."""


@dataclass(frozen=True)
class Declared:
    """A check in the stream file.

    Attributes:
        metric: the name of its metric, a share of rows or a number of rows.
        every: the condition whose share is checked; None for the number of rows.
        block: the block; None for all blocks.
        check: the check.
    """

    metric: str
    every: str | None
    block: str | None
    check: Check


def built_in(
    stream: Stream, name: str, metric: str, at_least: float | None = None, at_most: float | None = None
) -> tuple[Check, ...]:
    """Return a built-in check of a metric with the stream's settings; empty if the stream turns it off.

    Args:
        stream: the stream.
        name: the name of the check.
        metric: the name of the metric.
        at_least: the lower bound, inclusive; None if there is none.
        at_most: the upper bound, inclusive; a tolerance in the stream file replaces it.
    """
    return tuple(
        Check(
            name,
            metric,
            gate.severity,
            at_least,
            at_most if gate.at_most is None else gate.at_most,
            ABOUT.get(metric),
            stream.built_in[name].advice,
        )
        for gate in stream.gates
        if gate.name == name and gate.built_in
    )


def columns_read(stream: Stream, reached: Callable[[Use], bool] = lambda use: True) -> set[str]:
    """Return the columns that keys, blocks, `unique` and checks of events read, and the inputs of derived
    ones.

    Args:
        stream: the stream.
        reached: returns whether some event meets the condition of a use. Default: always.
    """
    used = set(stream.key_without_block)
    for block in stream.columns_read:
        used = used.union(*(use.columns for use in block.all_uses if reached(use)))
    if stream.unique is not None:
        used |= {*stream.unique.columns, *([stream.unique.longest] if stream.unique.longest else ())}
    for gate in stream.gates:
        if gate.stage == "ingest" and gate.every is not None:
            used |= set(condition(gate.every, stream.event_types).columns)
    derived = [stream.derived[name].columns for name in used & stream.derived.keys()]
    return used.union(*derived)


def declared(stream: Stream, stage: str) -> list[Declared]:
    """Return the checks in the stream file for a stage."""
    checks = []
    for gate in stream.gates:
        if gate.built_in or gate.stage != stage:
            continue
        if gate.every is not None:
            metric = f"check_{gate.name}"
            every = condition(gate.every, _types(stream, stage, gate.block))
            columns = ", ".join(every.columns) or None
            rule = f"{gate.block}: {every.sql}"
            check = Check(gate.name, metric, gate.severity, at_least=gate.share, column=columns, rule=rule)
        else:
            assert gate.rows is not None
            metric = "rows" if gate.block is None else f"rows_{gate.block}"
            check = Check(gate.name, metric, gate.severity, gate.rows.at_least, gate.rows.at_most)
        checks.append(Declared(metric, gate.every, gate.block, check))
    return checks


def row_meets(every: str, types: Mapping[str, FieldType]) -> str:
    """Return a condition in Spark SQL that is false instead of null."""
    return f"coalesce({condition(every, types).sql}, false)"


def waivers_of(stream: Stream) -> Sequence[Waiver]:
    """Return the waivers of a stream."""
    return entries_of(stream.waivers)


def _types(stream: Stream, stage: str, block: str | None) -> Mapping[str, FieldType]:
    """Return the types of the columns of a stage's checks."""
    for feature in stream.features:
        if feature.name == stage and feature.row_types is not None:
            types = feature.row_types(stream, judged_block(block, stream.blocks(feature.block)))
            assert types is not None  # refused by `spec.validate` before
            return types
    return stream.event_types


def judged_block(named: str | None, blocks: Iterable[str]) -> str:
    """Return the block that a check is about. Default: the first."""
    return named or next(iter(blocks))


def counts(rules: Sequence[Declared]) -> dict[str, Callable[[Mapping[str, Any]], float | None]]:
    """Return the metrics of checks that bound the number of rows; they apply to hours without rows, too."""

    def rows_of(block: str | None) -> Callable[[Mapping[str, Any]], float | None]:
        return lambda row: row["count"] if block in (None, row["block"]) else None

    return {rule.metric: rows_of(rule.block) for rule in rules if rule.every is None}
