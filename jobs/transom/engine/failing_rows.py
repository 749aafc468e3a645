"""Samples of failing rows as evidence for a failed check, with long texts cut.

A line of a log may have megabytes. The executors cut it, so driver and ledger stay small for any data.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType

Row = dict[str, Any]
SAMPLE = 20
"""The maximum number of rows for a failed check."""
LONGEST = 200
"""The maximum number of characters of a text; the length of a longer one follows it."""


def sample_failing_rows(rows: DataFrame, columns: Sequence[str], order: Sequence[str] = ()) -> list[Row]:
    """Return the first failing rows, with their texts cut.

    Args:
        rows: the failing rows.
        columns: the columns to return.
        order: the columns to sort by. Default: `columns`.

    Returns:
        At most `SAMPLE` rows.
    """
    texts = {field.name for field in rows.schema if isinstance(field.dataType, StringType)}
    # Cut before sorting, so that the driver gets no long text.
    shown = rows.select(*(_shortened(name) if name in texts else F.col(f"`{name}`") for name in columns))
    first = shown.orderBy(*(f"`{name}`" for name in order or columns)).limit(SAMPLE)
    sample: list[Row] = first.toArrow().to_pylist()
    return sample


def _shortened(name: str) -> Column:
    text = F.col(f"`{name}`")
    length = F.length(text)
    cut = F.concat(F.substring(text, 1, LONGEST), F.lit("… ("), length.cast("string"), F.lit(" characters)"))
    return F.when(length > LONGEST, cut).otherwise(text).alias(name)


def format_row(row: Mapping[str, Any]) -> str:
    """Return a failing row as text: `level 0, client 10.0.0.1, n 301`."""
    return ", ".join(
        f"{name} {value.isoformat(timespec='seconds')[:19] if isinstance(value, datetime) else value}"
        for name, value in row.items()
        if value is not None
    )
