"""Metrics of rows, declared as Spark SQL, that the tasks which write the rows compute with Arrow.

These are sums of whole numbers and means of truth values, with the operators and functions of built-in
checks. Spark computes all other metrics from the written rows.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transom.core.exact_sums import Int64s

Aggregate = Literal["sum", "avg"]
Sums = tuple[int, int]
"""The sum of the values that are not null, and their number."""

_TOO_LARGE = 2**63
_LAST_TIME = 253402300800 * 10**6
"""The end of the year 9999, the last of Spark's times, in microseconds."""


class _UnknownError(Exception):
    """Arrow does not compute an expression, or not as Spark does."""


@dataclass(frozen=True)
class Operand:
    """A column, a value, or a function of other operands.

    Attributes:
        type: the type of its values.
        function: `column`, `value`, or the name of a function of this module or of `pyarrow.compute`.
        arguments: the name of the column; the value; or the operands of the function.
    """

    type: pa.DataType
    function: str
    arguments: tuple[Any, ...]

    def may_overflow(self) -> bool:
        """Return whether Arrow may fail to compute it."""
        overflows = self.function.endswith("_checked") and self._limit() >= _TOO_LARGE
        return overflows or any(operand.may_overflow() for operand in self._operands())

    def _operands(self) -> list["Operand"]:
        return [argument for argument in self.arguments if isinstance(argument, Operand)]

    def _limit(self) -> int:
        """Return a limit of the absolute value of whole numbers, or of times in microseconds."""
        limits = [operand._limit() for operand in self._operands()]
        match self.function:
            case "value" if isinstance(self.arguments[0], int):
                return abs(self.arguments[0])
            case "add_checked" | "subtract_checked":
                return sum(limits)
            case "multiply_checked":
                return prod(limits)
            case "divide":
                return limits[0] // limits[1]
            case "whole" | "negate_checked":
                return limits[0]
        return _LAST_TIME if pa.types.is_timestamp(self.type) else _TOO_LARGE

    def of(self, rows: pa.RecordBatch) -> pa.Array | pa.Scalar:
        """Return its values for some rows: a scalar if they are equal by definition."""
        match self.function:
            case "column":
                return rows.column(self.arguments[0])
            case "value":
                return pa.scalar(self.arguments[0], self.type)
        function = _FUNCTIONS.get(self.function) or getattr(pc, self.function)
        return function(*(argument.of(rows) for argument in self.arguments))


@dataclass(frozen=True)
class ArrowMetric:
    """A metric that tasks compute.

    Attributes:
        aggregate: its aggregate.
        operand: the aggregated values.
    """

    aggregate: Aggregate
    operand: Operand

    def sums(self, rows: pa.RecordBatch, starts: Int64s) -> list[Sums]:
        """Return the sums of each slice of rows; a slice begins at each of `starts`."""
        values = self.operand.of(rows)
        if isinstance(values, pa.Scalar):
            values = pa.repeat(values, rows.num_rows)
        numbers = values.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
        valid = values.is_valid().to_numpy(zero_copy_only=False)
        totals, counts = (np.add.reduceat(of, starts, dtype=np.int64).tolist() for of in (numbers, valid))
        return list(zip(totals, counts, strict=True))

    def value(self, sums: Iterable[Sums]) -> float | None:
        """Return the metric, from the sums of all slices; None without values."""
        total, count = map(sum, zip(*sums, strict=True))
        if not count:
            return None
        return total / count if self.aggregate == "avg" else total


def arrow_metrics(
    metrics: Mapping[str, str], schema: pa.Schema, columns: Collection[str], block: str | None = None
) -> dict[str, ArrowMetric]:
    """Return those metrics that tasks can compute.

    Args:
        metrics: Spark SQL aggregates, by name.
        schema: the schema of the table.
        columns: the columns of the rows; those that only other blocks have are null.
        block: the block of the rows; None for a table without blocks.
    """
    if not metrics:
        return {}
    import sqlglot  # which takes a tenth of a second

    compiler, compiled = _Compiler(schema, columns, block), dict[str, ArrowMetric]()
    for name, sql in metrics.items():
        node = sqlglot.parse_one(sql, dialect="spark")
        try:
            operand = compiler.compile(node.this) if node.key in ("sum", "avg") else None
        except _UnknownError:
            operand = None
        # The sum of doubles depends on their order.
        if operand is not None and pa.types.is_integer(operand.type):
            compiled[name] = ArrowMetric("avg" if node.key == "avg" else "sum", operand)
    return compiled


@dataclass(frozen=True)
class _Compiler:
    schema: pa.Schema
    columns: Collection[str]
    block: str | None

    def compile(self, node: Any) -> Operand:
        """Return an expression of sqlglot as an operand; raise _UnknownError if it is not known."""
        match node.key:
            case "column":
                return self._column(node.name)
            case "literal":
                return _literal(node.this, node.is_string)
            case "boolean":
                return _value(pa.bool_(), bool(node.this))
            case "is" if node.expression.key == "null":
                return Operand(pa.bool_(), "is_null", (self.compile(node.this),))
            case "cast" | "trycast" if node.args["to"].sql() == "BIGINT":
                return _whole(self.compile(node.this))
            case "case" if node.this is None:
                return self._case(node)
        rule = _RULES.get(node.name.lower() if node.key == "anonymous" else node.key)
        if rule is None:
            raise _UnknownError
        return rule(*map(self.compile, node.iter_expressions()))

    def _column(self, name: str) -> Operand:
        if name == "block" and self.block is not None:
            return _value(pa.string(), self.block)
        if name not in self.schema.names:
            raise _UnknownError
        kind = self.schema.field(name).type
        return Operand(kind, "column", (name,)) if name in self.columns else _value(kind, None)

    def _case(self, node: Any) -> Operand:
        cases = [(self.compile(of.this), self.compile(of.args["true"])) for of in node.args["ifs"]]
        kind, other = cases[0][1].type, node.args.get("default")
        result = _value(kind, None) if other is None else self.compile(other)
        for condition, value in reversed(cases):
            _require(condition.type == pa.bool_() and value.type == kind and result.type == kind)
            if condition in (_TRUE, _FALSE):
                result = value if condition == _TRUE else result
                continue
            # A condition that is null is not met.
            is_met = _coalesce(condition, _FALSE)
            result = Operand(kind, "if_else", (is_met, _guarded(value), _guarded(result)))
        return result


def _require(known: bool) -> None:
    if not known:
        raise _UnknownError


def _value(kind: pa.DataType, value: object) -> Operand:
    return Operand(kind, "value", (value,))


_TRUE, _FALSE = _value(pa.bool_(), True), _value(pa.bool_(), False)


def _literal(text: str, is_string: bool) -> Operand:
    # A number of more than 64 bits is a decimal.
    _require(is_string or (text.isdecimal() and int(text) < _TOO_LARGE))
    return _value(pa.string(), text) if is_string else _value(pa.int64(), int(text))


def _of(kind: pa.DataType, function: str, result: pa.DataType | None = None) -> Callable[..., Operand]:
    """Return the rule of a function whose operands have one type. Default: so does its result."""

    def rule(*operands: Operand) -> Operand:
        if kind == pa.int64():
            operands = tuple(map(_whole, operands))
        _require(all(operand.type == kind for operand in operands))
        return Operand(result or kind, function, operands)

    return rule


def _whole(operand: Operand) -> Operand:
    """Return a whole number or a truth value as an integer of 64 bits; Spark casts a time to seconds."""
    _require(pa.types.is_integer(operand.type) or operand.type == pa.bool_())
    return operand if operand.type == pa.int64() else Operand(pa.int64(), "whole", (operand,))


def _micros(operand: Operand) -> Operand:
    _require(pa.types.is_timestamp(operand.type))
    return Operand(pa.int64(), "whole", (operand,))


def _logical(function: str, decisive: Operand) -> Callable[..., Operand]:
    """Return the rule of a logical function.

    An operand that decides the result for all rows leaves the others uncomputed, as in Spark: the rule of
    another block would take time, and its numbers may overflow.
    """
    rule = _of(pa.bool_(), function)

    def of(left: Operand, right: Operand) -> Operand:
        return decisive if decisive in (left, right) else rule(left, _guarded(right))

    return of


def _guarded(operand: Operand) -> Operand:
    """Return an operand that Spark computes for some rows only: for the others it may not overflow."""
    _require(not operand.may_overflow())
    return operand


_and, _or = _logical("and_kleene", _FALSE), _logical("or_kleene", _TRUE)
_not, _both = _of(pa.bool_(), "invert"), _of(pa.bool_(), "and_kleene")


def _less(left: Operand, right: Operand) -> Operand:
    return _compared("less", left, right, _both(_not(_is_nan(left)), _is_nan(right)))


def _equal(left: Operand, right: Operand) -> Operand:
    if _is_text(left) and _is_text(right):
        return _TRUE if left == right else _FALSE
    return _compared("equal", left, right, _both(_is_nan(left), _is_nan(right)))


def _compared(function: str, left: Operand, right: Operand, of_nan: Operand) -> Operand:
    """Compare two values. For Spark, NaN equals NaN and is greater than every other number."""
    if left.type == right.type and not pa.types.is_floating(left.type):
        return Operand(pa.bool_(), function, (left, right))
    _require(all(pa.types.is_integer(of.type) or pa.types.is_floating(of.type) for of in (left, right)))
    if not any(pa.types.is_floating(of.type) for of in (left, right)):
        return Operand(pa.bool_(), function, (_whole(left), _whole(right)))
    doubles = tuple(Operand(pa.float64(), "double", (operand,)) for operand in (left, right))
    return Operand(pa.bool_(), "or_kleene", (Operand(pa.bool_(), function, doubles), of_nan))


def _is_text(operand: Operand) -> bool:
    """Return whether an operand is one text for all rows, such as the block."""
    return operand.function == "value" and isinstance(operand.arguments[0], str)


def _is_nan(operand: Operand) -> Operand:
    is_double = pa.types.is_floating(operand.type)
    return Operand(pa.bool_(), "is_nan", (operand,)) if is_double else _value(pa.bool_(), False)


def _quotient(number: Operand, divisor: Operand) -> Operand:
    """Divide whole numbers. A divisor that is not constant may be 0 where Spark does not divide."""
    constant = divisor.arguments[0] if divisor.function == "negate_checked" else divisor
    _require(constant.function == "value" and constant.arguments[0])
    return _of(pa.int64(), "divide")(number, divisor)


def _coalesce(*operands: Operand) -> Operand:
    _require(all(operand.type == operands[0].type for operand in operands))
    return Operand(operands[0].type, "coalesce", (operands[0], *map(_guarded, operands[1:])))


_RULES: Mapping[str, Callable[..., Operand]] = {
    "paren": lambda operand: operand,
    "and": _and,
    "or": _or,
    "not": _not,
    "lt": _less,
    "gt": lambda left, right: _less(right, left),
    "lte": lambda left, right: _not(_less(right, left)),
    "gte": lambda left, right: _not(_less(left, right)),
    "eq": _equal,
    "neq": lambda left, right: _not(_equal(left, right)),
    "between": lambda value, low, high: _both(_not(_less(value, low)), _not(_less(high, value))),
    # As in Spark, an overflow is an error.
    "add": _of(pa.int64(), "add_checked"),
    "sub": _of(pa.int64(), "subtract_checked"),
    "mul": _of(pa.int64(), "multiply_checked"),
    "neg": _of(pa.int64(), "negate_checked"),
    "intdiv": _quotient,
    "unixmicros": _micros,
    "coalesce": _coalesce,
    "length": _of(pa.string(), "utf8_length", pa.int32()),
    "regexpreplace": _of(pa.string(), "replaced"),
}
"""What Arrow computes as Spark does, by the name of sqlglot's node."""
_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "whole": lambda values: values.cast(pa.int64()),
    # Rounded, as in Spark, beyond 2**53.
    "double": lambda values: values.cast(pa.float64(), safe=False),
    "replaced": lambda values, pattern, by: pc.replace_substring_regex(values, pattern.as_py(), by.as_py()),
}
"""What `pyarrow.compute` does with other arguments."""
