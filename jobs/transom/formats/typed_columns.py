"""Convert text columns to typed columns, whole columns at a time, with a reason for each refused value."""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from transom.core import rounding
from transom.formats.record_format import EPOCHS, Field
from transom.formats.times import instants, numbers, time_form

ARROW: dict[str, pa.DataType] = {
    "string": pa.string(),
    "integer": pa.int64(),
    "number": pa.float64(),
    "boolean": pa.bool_(),
    "timestamp": pa.timestamp("us", "UTC"),
}
LARGEST_INTEGER = 2**53
MOST_STEPS = 2**50
"""A double with at most this number of steps is exact: two more operations err by 3/8 of a step."""
INTEGER = r"^[+-]?[0-9]+$"
INTEGERS = f"-{LARGEST_INTEGER} to {LARGEST_INTEGER}"
TRUE, FALSE = ("true", "True", "TRUE", "T", "1"), ("false", "False", "FALSE", "F", "0")

Mask = npt.NDArray[np.bool_]


@dataclass
class Rejections:
    """The first reason why each line is refused."""

    reason: npt.NDArray[np.object_]
    column: npt.NDArray[np.object_]
    detail: npt.NDArray[np.object_]
    any: Mask = field(init=False)

    @classmethod
    def none(cls, rows: int) -> "Rejections":
        """Return an object without refusals."""
        return cls(*(np.full(rows, None, dtype=object) for _ in range(3)))

    def __post_init__(self) -> None:
        self.any = np.zeros(len(self.reason), dtype=bool)

    def add(
        self,
        where: Mask,
        reason: str,
        column: str | None = None,
        values: pa.Array | None = None,
        expected: str | None = None,
    ) -> None:
        """Refuse the lines of a mask that are not refused yet; `values` are for the messages."""
        new = where & ~self.any
        if not new.any():
            return
        self.any |= new
        self.reason[new] = reason
        self.column[new] = column
        if values is not None:
            texts = values.filter(pa.array(new)).cast(pa.string(), safe=False).to_pylist()
            self.detail[new] = [detail(reason, value, expected) for value in texts]
        elif expected is not None:
            self.detail[new] = detail(reason, None, expected)

    def add_one(
        self, line: int, reason: str, value: object | None = None, expected: str | None = None
    ) -> None:
        """Refuse one line, unless it is already refused."""
        if not self.any[line]:
            self.any[line], self.reason[line] = True, reason
            if value is not None or expected is not None:
                self.detail[line] = detail(reason, value, expected)

    def of(self, lines: Mask) -> "Rejections":
        """Return the reasons of the lines of a mask."""
        return Rejections(self.reason[lines], self.column[lines], self.detail[lines])

    def put(self, lines: npt.NDArray[np.int64], others: "Rejections") -> None:
        """Copy the reasons of others to refused lines."""
        self.reason[lines], self.column[lines] = others.reason, others.column
        self.detail[lines] = others.detail


def detail(reason: str, value: object | None, expected: str | None) -> str:
    """Return the message for a refused line: the reason, the value, and what was expected."""
    about = "" if value is None else f": {str(value)[:200]}"
    return reason.replace("_", " ") + about + ("" if expected is None else f"; expected {expected}")


def mask(array: pa.Array) -> Mask:
    """Return a boolean array as a numpy mask; null is false."""
    return np.asarray(pc.fill_null(array, False).to_numpy(zero_copy_only=False), dtype=bool)


def column(spec: Field, text: pa.Array, refused: Rejections) -> pa.Array:
    """Convert one declared column.

    Args:
        text: string values, or for JSON values of the type itself.
        refused: receives the lines whose value does not parse (`bad_type`) or is too large or not finite
            (`out_of_range`).
    """
    if spec.missing:
        text = pc.if_else(pa.array(_absent(spec, text)), pa.scalar(None, text.type), text)
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
            times, bad, _ = instants(text, spec.time_format or "iso", spec.zone)
            refused.add(bad, "bad_type", spec.name, text, time_form(spec.time_format or "iso"))
            return times


def _absent(spec: Field, text: pa.Array) -> Mask:
    """Return which values mean no value: one of the texts, or for numbers an equal number.

    JSON's numbers come without their text, and -1 and -1.0 are the same sentinel everywhere.
    """
    texts = text.cast(pa.string()) if pa.types.is_boolean(text.type) else text
    absent = np.zeros(len(text), dtype=bool)
    if pa.types.is_string(texts.type):
        absent = mask(pc.is_in(texts, value_set=pa.array(spec.missing, pa.string())))
    if spec.type in ("integer", "number") or spec.time_format in EPOCHS:
        meant, _ = numbers(pa.array(spec.missing, pa.string()))
        meant = meant.drop_null()
        if len(meant):
            values = numbers(text)[0].to_numpy(zero_copy_only=False)
            absent |= np.isin(values, meant.to_numpy(zero_copy_only=False))
    return absent


def _boolean(spec: Field, text: pa.Array, refused: Rejections) -> pa.Array:
    if pa.types.is_boolean(text.type):
        return text
    yes = pc.is_in(text, value_set=pa.array(TRUE, pa.string()))
    no = pc.is_in(text, value_set=pa.array(FALSE, pa.string()))
    known = pc.or_(yes, no)
    refused.add(
        mask(pc.and_(pc.is_valid(text), pc.invert(known))), "bad_type", spec.name, text, "true or false"
    )
    return pc.if_else(known, yes, pa.scalar(None, pa.bool_()))


def _whole(spec: Field, text: pa.Array, refused: Rejections) -> pa.Array:
    fits = pc.match_substring_regex(text, INTEGER)
    refused.add(mask(pc.invert(fits)), "bad_type", spec.name, text, "a whole number")
    return pc.if_else(fits, text, pa.scalar(None, text.type))


def _plain(text: pa.Array) -> pa.Array:
    """Return which values have only digits, and too few to be out of range, as nearly all in logs."""
    return pc.and_(pc.ascii_is_decimal(text), pc.less(pc.binary_length(text), 16))


def _integer(spec: Field, text: pa.Array, refused: Rejections) -> pa.Array:
    if pa.types.is_integer(text.type):
        values = text.cast(pa.int64())
    elif pc.all(_plain(text)).as_py() is not False:
        return text.cast(pa.int64())
    else:
        whole = _whole(spec, text, refused)
        # Longer than any number in range: a cast would raise for all.
        digits = pc.utf8_ltrim(pc.utf8_ltrim(whole, "+-"), "0")
        long = mask(pc.greater(pc.utf8_length(digits), 18))
        refused.add(long, "out_of_range", spec.name, text, INTEGERS)
        whole = pc.if_else(pa.array(long), pa.scalar(None, whole.type), whole)
        values = pc.replace_substring_regex(whole, r"^\+", "").cast(pa.int64())
    large = mask(pc.or_(pc.greater(values, LARGEST_INTEGER), pc.less(values, -LARGEST_INTEGER)))
    refused.add(large, "out_of_range", spec.name, text, INTEGERS)
    return pc.if_else(pa.array(large), pa.scalar(None, pa.int64()), values)


def _number(spec: Field, text: pa.Array, refused: Rejections) -> pa.Array:
    values, wrong = numbers(text)
    refused.add(wrong, "bad_type", spec.name, text, "a number")
    present = mask(pc.is_valid(values))
    step = rounding.ratio(spec.resolution)
    whole, fits = rounding.steps(values.to_numpy(zero_copy_only=False), step)
    large = present & ~(fits & (np.abs(whole) <= MOST_STEPS))
    refused.add(large, "out_of_range", spec.name, text, f"at most 2**50 steps of {spec.resolution}")
    none = ~present | large
    return pa.array(rounding.value(np.where(none, 0, whole), step), mask=none)
