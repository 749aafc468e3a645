"""The columns of `aggregates` that a page shows: each value once, with its unit and its meaning."""

from collections.abc import Iterator

from transom.core.durations import format_duration
from transom.features.aggregates.output_columns import columns_of
from transom.features.aggregates.spec import Aggregation
from transom.spec.stream import Stream


def fitted(block: Aggregation) -> list[str]:
    """Return the measures with lines."""
    measures = block.measures.items() if block.unit is not None else ()
    return [name for name, measure in measures if measure.function != "distinct"]


def shown_columns(stream: Stream, name: str) -> list[str]:
    """Return the columns of a block's rows without those that repeat another one.

    A measure that counts repeats `count`, `sent: sum(bytes)` repeats `sum_sent`, and `slope_per_second_sent`
    is `slope_sent` in another unit.
    """
    block = stream.blocks(Aggregation)[name]
    counts = any(measure.function == "count" for measure in block.measures.values())
    figures = [
        column
        for measure, columns in columns_of(stream, name).items()
        for column in columns
        if column not in (f"{block.measures[measure].function}_{measure}", f"slope_per_second_{measure}")
    ]
    count = () if counts else ("count",)
    return ["window_start", "window_end", "level", *block.key, *count, *figures, "complete"]


def per_unit(block: Aggregation, measure: str) -> str:
    """Return the unit of the slope of a measure, such as `sent per hour, per hour`."""
    return f"{_value(block, measure)}, per {_unit(block)}"


def titles(block: Aggregation) -> dict[str, str]:
    """Return the titles of the columns of lines, which have their units."""
    found = {}
    for measure in fitted(block):
        found[f"slope_{measure}"] = f"slope_{measure} ({per_unit(block, measure)})"
        found[f"intercept_{measure}"] = f"intercept_{measure} ({_value(block, measure)})"
    return found


def meanings(stream: Stream, name: str) -> dict[str, str]:
    """Return what the columns of measures mean."""
    block = stream.blocks(Aggregation)[name]
    return {column: text for measure in block.measures for column, text in _meanings(block, measure)}


def _meanings(block: Aggregation, measure: str) -> Iterator[tuple[str, str]]:
    unit = _unit(block)
    yield measure, f"{block.measures[measure]} of the window"
    yield f"error_{measure}", f"the standard error of {measure}; 0 up to 1,024 values"
    yield f"values_{measure}", "the number of values that are not null"
    for function in ("sum", "mean", "min", "max"):
        yield f"{function}_{measure}", f"the {function} of these values"
    yield f"aged_mean_{measure}", "the mean weighted by level"
    yield f"units_{measure}", f"the number of known values of the line: one for each {unit}"
    yield f"slope_{measure}", f"the change of the line in each {unit}"
    yield f"intercept_{measure}", f"the value of the line in the first {unit} of the window"


def _unit(block: Aggregation) -> str:
    return format_duration(block.unit).removeprefix("1 ") if block.unit is not None else ""


def _value(block: Aggregation, measure: str) -> str:
    """Return what a line goes through."""
    function = "sum" if block.fit is None else block.fit.value
    is_total = function == "sum" or block.measures[measure].function == "count"
    return f"{measure} per {_unit(block)}" if is_total else f"{function} {measure}"
