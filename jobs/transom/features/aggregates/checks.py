"""What must hold of the tables of aggregates."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from transom.engine.check_builders import built_in, declared, judged_block, row_meets
from transom.features.aggregates.output_columns import report_types
from transom.features.aggregates.resolve import block_of
from transom.features.aggregates.spec import Aggregation
from transom.ledger.check import Check
from transom.ledger.stage import rows_where
from transom.spec.stream import Stream

ENDS_OUTSIDE = "(`window_end` <= `hour`) OR (`window_end` > `hour` + INTERVAL 1 HOUR)"
"""Whether a report is of another hour."""
ABSENT_IN_A_RING = "coalesce(array_min(`counts`), 0) < 1"
"""Whether an item is called recurring that is not in every ring."""


def measured_columns(stream: Stream) -> list[str]:
    """Return the columns that some block measures."""
    return sorted({column for name in stream.blocks(Aggregation) for column in block_of(stream, name).units})


def measures_of_columns(stream: Stream) -> list[str]:
    """Return the measures that are of a column."""
    measures = (of for name in stream.blocks(Aggregation) for of in block_of(stream, name).measures.items())
    return sorted({name for name, (_, column) in measures if column})


def fitted_measures(stream: Stream) -> list[str]:
    """Return the measures that have a line."""
    blocks = (block_of(stream, name) for name in stream.blocks(Aggregation))
    return sorted({name for block in blocks if block.fit for name in block.measures})


def report_checks(stream: Stream) -> tuple[Check, ...]:
    """Return the checks of reports, beside those of their sums and lines."""
    return (
        *built_in(stream, "ends_inside_hour", metric="ends_outside", at_most=0),
        *built_in(stream, "wide_covers_narrow", metric="wide_short_of_narrow", at_most=0),
        *built_in(stream, "wide_holds_extremes", metric="narrow_beyond_wide", at_most=0),
        *(rule.check for rule in declared(stream, "aggregates")),
    )


def report_filters(stream: Stream) -> dict[str, str]:
    """Return, for each declared condition on reports, which rows do not meet it."""
    blocks, filters = stream.blocks(Aggregation), {}
    for rule in declared(stream, "aggregates"):
        if rule.every is not None:
            types = report_types(stream, judged_block(rule.block, blocks))
            filters[rule.check.name] = f"NOT {row_meets(rule.every, types)}"
    return filters


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


def inexact(names: Sequence[str]) -> dict[str, str]:
    """Return how many rows lack each sum; null for a block that does not have it."""
    return {f"inexact_{name}": rows_where(_lacks_sum(name)) for name in names}


def sum_filters(names: Sequence[str]) -> dict[str, str]:
    """Return which rows lack a sum."""
    return {"sums_exact": _any(map(_lacks_sum, names))} if names else {}


def _lacks_sum(name: str) -> str:
    return f"(`values_{name}` > 0) AND (`sum_{name}` IS NULL)"


def _any(conditions: Iterable[str]) -> str:
    return " OR ".join(f"({condition})" for condition in conditions)


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


def line_metrics(names: Sequence[str]) -> dict[str, str]:
    """Return how many rows break each of these checks; null for a block that does not have the line."""
    return {f"{check}_{name}": rows_where(broken(name)) for name in names for check, broken in _LINES.items()}


def line_filters(names: Sequence[str]) -> dict[str, str]:
    """Return which rows break these checks."""
    return {check: _any(map(broken, names)) for check, broken in _LINES.items()} if names else {}


def _lacks_line(name: str) -> str:
    return f"(`units_{name}` > 1) AND (`slope_{name}` IS NULL)"


def _has_line_of_one(name: str) -> str:
    # Null where a block has no such line: nothing is said of it then.
    broken = f"(`units_{name}` < 2) AND (`slope_{name}` IS NOT NULL)"
    return f"CASE WHEN `units_{name}` IS NOT NULL THEN {broken} END"


_LINES = {"lines_exact": _lacks_line, "lines_of_two": _has_line_of_one}
