"""Checks, metrics and row filters of the tables of aggregates."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from transom.core.intervals import HOUR_LENGTH
from transom.engine.check_builders import built_in
from transom.features.aggregates.resolve import AggregateBlock
from transom.ledger.check import Check
from transom.ledger.stage import rows_where
from transom.spec.stream import Stream

ENDS_OUTSIDE = f"unix_micros(`window_end`) - unix_micros(`hour`) NOT BETWEEN 1 AND {HOUR_LENGTH}"
"""Whether a window belongs to another hour. Spark adds an interval to a time more slowly than numbers."""
ABSENT_IN_A_RING = "coalesce(array_min(`counts`), 0) < 1"
"""Whether an item is missing in a ring, and so not recurring."""

_COLUMN_CHECKS = {
    "sums_exact": ("inexact", "sum", "(`values_{0}` > 0) AND (`sum_{0}` IS NULL)"),
    "lines_exact": ("lines_exact", "slope", "(`units_{0}` > 1) AND (`slope_{0}` IS NULL)"),
    "lines_of_two": (
        *("lines_of_two", "slope"),
        # Null, which is neither met nor unmet, in blocks without this line.
        "CASE WHEN `units_{0}` IS NOT NULL THEN (`units_{0}` < 2) AND (`slope_{0}` IS NOT NULL) END",
    ),
}
"""Prefix of the metric, prefix of the checked column, and the condition of failing rows."""


def measures_of_columns(blocks: Mapping[str, AggregateBlock]) -> list[str]:
    """Return the measures of a column, sorted; counts of distinct values are not among them."""
    pairs = (pair for block in blocks.values() for pair in block.measures.items())
    return sorted({name for name, (_, column) in pairs if column})


def column_checks(
    stream: Stream, names: Iterable[str], *rules: str
) -> tuple[tuple[Check, ...], dict[str, str], dict[str, str]]:
    """Return the checks of columns that a table has for each of several names.

    Args:
        names: measures, or measured columns.
        rules: keys of `_COLUMN_CHECKS`.

    Returns:
        The checks, their metrics, and the filters of failing rows.
    """
    checks: list[Check] = []
    metrics: dict[str, str] = {}
    faults: dict[str, list[str]] = {}
    for name in names:
        for rule in rules:
            metric, column, condition = _COLUMN_CHECKS[rule]
            metric, fault = f"{metric}_{name}", condition.format(name)
            metrics[metric] = rows_where(fault)
            faults.setdefault(rule, []).append(f"({fault})")
            built = built_in(stream, rule, metric=metric, at_most=0)
            checks += [replace(check, column=f"{column}_{name}") for check in built]
    return tuple(checks), metrics, {rule: " OR ".join(parts) for rule, parts in faults.items()}
