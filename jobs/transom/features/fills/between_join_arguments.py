"""What a between-join is asked, and what it refuses."""

import re
from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame
from pyspark.sql.types import (
    ByteType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    TimestampType,
)

FORM = re.compile(r"\s*(count|sum|mean|min|max)\s*(?:\(\s*(\w+)\s*\))?\s*")
WHOLE = (ByteType, ShortType, IntegerType, LongType)
Aggregate = tuple[str, str | None]
"""A function and its column, which `count` has none of."""


def aggregate_of(name: str, text: str) -> Aggregate:
    """An aggregate as it is written.

    Args:
        name: of its column.

    Raises:
        ValueError: it is none.
    """
    form = FORM.fullmatch(text)
    if form is None or (form[1] == "count") is (form[2] is not None):
        rule = "must be count, or sum, mean, min or max of a column, as sum(bytes)"
        raise ValueError(f"how: {name}: {rule}; got {text!r}")
    return form[1], form[2]


def check(
    frames: DataFrame,
    rows: DataFrame,
    on: tuple[str, str, str],
    by: Sequence[str],
    aggregates: Mapping[str, Aggregate] | None,
) -> None:
    """Refuses what cannot be joined: see `transom.features.fills.between_join.between_join`."""
    start, end, time = on
    for what, of, names in (("frames", frames, (start, end)), ("rows", rows, (time,))):
        types = {field.name: field.dataType for field in of.schema}
        for name in (*names, *by):
            if name not in types:
                raise ValueError(f"{what}: no column {name!r}; there are {', '.join(types)}")
        for name in names:
            if not isinstance(types[name], TimestampType):
                raise ValueError(f"{what}: {name} must be a timestamp; it is {types[name].simpleString()}")
    kinds = {field.name: field.dataType for field in rows.schema}
    for field in frames.schema:
        if field.name in by and kinds[field.name] != field.dataType:
            both = f"{field.dataType.simpleString()} and {kinds[field.name].simpleString()}"
            raise ValueError(f"by: {field.name} must be of one type in both; got {both}")
        if aggregates is None and field.name in kinds and field.name not in by:
            raise ValueError(f"frames and rows both have a column {field.name!r}, which is not in by")
    for name, (function, column) in (aggregates or {}).items():
        if name in frames.columns:
            raise ValueError(f"how: {name} is a column of frames; choose another name")
        if column is None:
            continue
        if column not in kinds:
            raise ValueError(f"how: {name}: no column {column!r}; there are {', '.join(kinds)}")
        allowed = WHOLE if function in ("sum", "mean") else (*WHOLE, DoubleType, FloatType)
        if not isinstance(kinds[column], allowed):
            rule = "takes whole numbers" if function in ("sum", "mean") else "takes numbers"
            raise ValueError(f"how: {name}: {function} {rule}; {column} is {kinds[column].simpleString()}")
