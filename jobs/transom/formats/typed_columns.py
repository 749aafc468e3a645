"""Convert text columns to typed columns, whole columns at a time, with a reason for each refused value."""

from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transom.core import rounding
from transom.formats.record_format import (
    DOUBLES,
    EPOCH_OR_ISO,
    EPOCHS,
    NUMERIC,
    Field,
    FieldType,
    RecordFormat,
)
from transom.formats.rejections import Mask, Rejections, mask, null_where
from transom.formats.times import TIMESTAMP, describe, instants, numbers

ARROW: dict[str, pa.DataType] = {
    "string": pa.string(), "integer": pa.int64(), "number": pa.float64(), "boolean": pa.bool_(),
    "timestamp": TIMESTAMP,
}  # fmt: skip
LARGEST_INTEGER = 2**53
MAX_STEPS = 2**50
"""A double of at most this number of steps is exact: two more operations err by 3/8 of a step."""
INTEGER = r"^[+-]?[0-9]+$"
INTEGERS = f"-{LARGEST_INTEGER} to {LARGEST_INTEGER}"
TRUE, FALSE = ("true", "True", "TRUE", "T", "1"), ("false", "False", "FALSE", "F", "0")


def value_types(layout: RecordFormat) -> dict[str, pa.DataType]:
    """Return the types of the values at paths that are used only as numbers or as booleans.

    Nothing if a path is used in two ways, or if the text of a value may count.
    """
    time = layout.time
    of_time = _value_type("timestamp", None if time.more else time.time_format)
    uses = [(field.paths, _value_type(field.type, field.time_format)) for field in layout.fields]
    uses += [((*time.paths, *chain(*time.more)), of_time), (time.plus, pa.float64())]
    types: dict[str, set[pa.DataType]] = {}
    for paths, kind in uses:
        for path in paths:
            types.setdefault(path, set()).add(kind)
    if any(field.missing for field in layout.fields) or any(len(kinds) > 1 for kinds in types.values()):
        return {}
    return {path: kind for path, (kind,) in types.items() if kind != pa.string()}


def _value_type(kind: FieldType, time_format: str | None) -> pa.DataType:
    if kind == "timestamp":
        return pa.float64() if time_format in (*DOUBLES, EPOCH_OR_ISO) else pa.string()
    return ARROW[kind]


def column(spec: Field, text: pa.Array, refused: Rejections) -> pa.Array:
    """Convert one declared column.

    >>> refused = Rejections.none(2)
    >>> column(Field("bytes", ("bytes",), "integer"), pa.array(["12", "x"]), refused).to_pylist()
    [12, None]
    >>> refused.detail.tolist()
    [None, 'bad type: x; expected a whole number']

    Args:
        spec: the column.
        text: its values as text, or for JSON also of the column's type, shape (lines,).
        refused: receives the lines whose value has another type (`bad_type`), or is too large or not finite
            (`out_of_range`).
    """
    if spec.missing:
        text = null_where(_missing(spec, text), text)
    match spec.type:
        case "string":
            return text.cast(pa.string())
        case "boolean":
            return _boolean(spec, text, refused)
        case "integer":
            return _integer(spec, text, refused)
        case "number":
            return _number(spec, text, refused)
        case "timestamp":
            form = spec.time_format or "iso"
            times, codes = instants(text, form, spec.zone)
            refused.add(codes > 0, "bad_type", spec.name, text, describe(form))
            return times


def _missing(spec: Field, text: pa.Array) -> Mask:
    """Return which values mean no value: those equal to one of the texts, or for numbers to its number.

    Numbers of JSON have no text; and -1 and -1.0 are the same sentinel in every format.
    """
    texts = text.cast(pa.string()) if pa.types.is_boolean(text.type) else text
    missing = np.zeros(len(text), dtype=bool)
    signs = pa.array(spec.missing, pa.string())
    if pa.types.is_string(texts.type):
        missing = mask(pc.is_in(texts, value_set=signs))
    if spec.type in NUMERIC or spec.time_format in EPOCHS:
        equal_to = numbers(signs)[0].drop_null()
        if len(equal_to):
            # Unlike Arrow, numpy counts 0.0 and -0.0 as equal.
            missing |= np.isin(numbers(text)[0].to_numpy(zero_copy_only=False), equal_to.to_numpy())
    return missing


def _boolean(spec: Field, text: pa.Array, refused: Rejections) -> pa.Array:
    if pa.types.is_boolean(text.type):
        return text
    true, false = (pc.is_in(text, value_set=pa.array(texts, pa.string())) for texts in (TRUE, FALSE))
    other = pc.invert(pc.or_(true, false))
    refused.add(mask(pc.and_(pc.is_valid(text), other)), "bad_type", spec.name, text, "true or false")
    return null_where(other, true)


def _integer(spec: Field, text: pa.Array, refused: Rejections) -> pa.Array:
    if pa.types.is_integer(text.type):
        values = text.cast(pa.int64())
    # Nearly all integers in logs have only digits, and too few to be out of range.
    elif pc.all(pc.and_(pc.ascii_is_decimal(text), pc.less(pc.binary_length(text), 16))).as_py() is not False:
        return text.cast(pa.int64())
    else:
        other = pc.invert(pc.match_substring_regex(text, INTEGER))
        refused.add(mask(other), "bad_type", spec.name, text, "a whole number")
        whole = null_where(other, text)
        # Longer than any number in range. A cast would raise an error for the whole column.
        long = mask(pc.greater(pc.utf8_length(pc.utf8_ltrim(pc.utf8_ltrim(whole, "+-"), "0")), 18))
        refused.add(long, "out_of_range", spec.name, text, INTEGERS)
        values = pc.replace_substring_regex(null_where(long, whole), r"^\+", "").cast(pa.int64())
    large = mask(pc.or_(pc.greater(values, LARGEST_INTEGER), pc.less(values, -LARGEST_INTEGER)))
    refused.add(large, "out_of_range", spec.name, text, INTEGERS)
    return null_where(large, values) if large.any() else values


def _number(spec: Field, text: pa.Array, refused: Rejections) -> pa.Array:
    values, wrong = numbers(text)
    refused.add(wrong, "bad_type", spec.name, text, "a number")
    present = mask(pc.is_valid(values))
    step = rounding.ratio(spec.resolution)
    whole, fits = rounding.steps(values.to_numpy(zero_copy_only=False), step)
    valid = present & fits & (np.abs(whole) <= MAX_STEPS)
    expected = f"at most 2**50 steps of {spec.resolution}"
    refused.add(present & ~valid, "out_of_range", spec.name, text, expected)
    return pa.array(rounding.value(np.where(valid, whole, 0), step), mask=~valid)
