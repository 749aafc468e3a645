"""Rows at fault, kept as evidence beside a failed check: a few of them, with every text cut.

A line of a log may be megabytes long. What is kept of it says where to look; so the executors cut it, and the
driver and the ledger hold little, whatever the data.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType

SAMPLE = 20
"""How many rows are kept of one failed check."""
LONGEST = 200
"""Characters that are kept of a text; the length that it has is said behind them."""


def sample_failing_rows(
    rows: DataFrame, columns: Sequence[str], order: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """Some of the rows at fault: the first ones, with their texts cut.

    Args:
        order: the columns to go by, as they are shown; none are all of them.
    """
    texts = {field.name for field in rows.schema if isinstance(field.dataType, StringType)}
    # Cut before they are put in order: the rows of which the driver chooses the first are those.
    shown = rows.select(*(_shortened(name) if name in texts else F.col(f"`{name}`") for name in columns))
    first = shown.orderBy(*(f"`{name}`" for name in order or columns)).limit(SAMPLE)
    found: list[dict[str, Any]] = first.toArrow().to_pylist()
    return found


def _shortened(name: str) -> Column:
    text = F.col(f"`{name}`")
    length = F.length(text)
    cut = F.concat(F.substring(text, 1, LONGEST), F.lit("… ("), length.cast("string"), F.lit(" characters)"))
    return F.when(length > LONGEST, cut).otherwise(text).alias(name)


def format_row(row: Mapping[str, Any]) -> str:
    """A row at fault as a person reads it: `level 0, client 10.0.0.1, n 301`."""
    return ", ".join(
        f"{name} {value.isoformat(timespec='seconds')[:19] if isinstance(value, datetime) else value}"
        for name, value in row.items()
        if value is not None
    )
