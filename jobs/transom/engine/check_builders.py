"""The checks of a stream, as the stages compute and judge them."""

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
            stream.built_in[name].advice,
        )
        for gate in stream.gates
        if gate.name == name and gate.built_in
    )


def columns_read(stream: Stream, reached: Callable[[Use], bool] = lambda use: True) -> set[str]:
    """The columns that something is computed from: a key, a block, `unique`, `on_duplicate_time`, a check of
    events. Of derived ones among them, what they are computed from as well.

    Args:
        reached: whether some event meets the condition of a use, by default that of every use. What a block
            reads in other events is not used.
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
    """The checks that the stream declares for a stage."""
    found = []
    for gate in stream.gates:
        if gate.built_in or gate.stage != stage:
            continue
        if gate.every is not None:
            metric = f"check_{gate.name}"
            met_by = condition(gate.every, _types(stream, stage, gate.block))
            about = ", ".join(met_by.columns) or None
            rule = f"{gate.block}: {met_by.sql}"
            check = Check(gate.name, metric, gate.severity, at_least=gate.share, column=about, rule=rule)
        else:
            assert gate.rows is not None
            metric = "rows" if gate.block is None else f"rows_{gate.block}"
            check = Check(gate.name, metric, gate.severity, gate.rows.at_least, gate.rows.at_most)
        found.append(Declared(metric, gate.every, gate.block, check))
    return found


def row_meets(every: str, types: Mapping[str, FieldType]) -> str:
    """Return the condition in Spark SQL; one for which it is null does not meet it."""
    return f"coalesce({condition(every, types).sql}, false)"


def waivers_of(stream: Stream) -> Sequence[Waiver]:
    """The failed checks that the stream lets pass."""
    return entries_of(stream.waivers)


def _types(stream: Stream, stage: str, block: str | None) -> Mapping[str, FieldType]:
    """Return the types of the columns that a check of a stage sees."""
    for feature in stream.features:
        if feature.name == stage and feature.row_types is not None:
            types = feature.row_types(stream, judged_block(block, stream.blocks(feature.block)))
            assert types is not None  # refused by `spec.validate` before
            return types
    return stream.event_types


def judged_block(named: str | None, blocks: Iterable[str]) -> str:
    """Return the block that a check is about; one that names none is about the first."""
    return named or next(iter(blocks))


def counts(rules: Sequence[Declared]) -> dict[str, Callable[[Mapping[str, Any]], float | None]]:
    """The figures of checks on the number of rows, of an hour without rows as well."""

    def rows_of(block: str | None) -> Callable[[Mapping[str, Any]], float | None]:
        return lambda row: row["count"] if block in (None, row["block"]) else None

    return {rule.metric: rows_of(rule.block) for rule in rules if rule.every is None}
