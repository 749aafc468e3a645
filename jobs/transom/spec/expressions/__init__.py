"""The expression language: a subset of standard SQL, checked here and compiled to Spark SQL.

Texts have single quotes ('' is a quote, a backslash is a backslash); columns have their declared names. The
types are string, integer (64 bits), number (double), boolean and timestamp (UTC).

- `= <> < <= > >=`, `is [not] distinct from`, `is [not] null`, `is [not] true`, `and or not`,
  `[not] in (...)`, `[not] between ... and ...`, `[not] like`, `[not] ilike`, `rlike` with a constant
- `+ - * / %`, `||`, `case`, `cast(x as string | bigint | double | boolean | timestamp)`,
  `timestamp '2015-05-17 10:00:00'` (UTC without an offset)
- the functions in `compiler.FUNCTIONS`

Expressions never fail at run time, since one bad row must not stop an hour. A division by zero, a number that
is too large and a failed cast return null. What Spark would refuse is refused here, with its position.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from transom.formats.record_format import FieldType
from transom.spec.expressions.compiler import FUNCTIONS, Compiler, quote, type_with_article
from transom.spec.expressions.parser import MAX_DEPTH, MAX_LENGTH, ExpressionError, parse

__all__ = [
    "FUNCTIONS", "MAX_DEPTH", "MAX_LENGTH", "Expression", "ExpressionError", "compile", "condition", "quote",
]  # fmt: skip


@dataclass(frozen=True)
class Expression:
    """A compiled expression.

    Attributes:
        text: the text in the stream file.
        sql: the Spark SQL, with every part in parentheses and every column in backticks.
        type: the type of its values.
        columns: the columns that it reads, sorted.
    """

    text: str
    sql: str
    type: FieldType
    columns: tuple[str, ...]


def condition(text: str, columns: Mapping[str, FieldType]) -> Expression:
    """Return a compiled condition; raise an ExpressionError as `compile` does, or if it is no boolean."""
    expression = compile(text, columns)
    if expression.type != "boolean":
        got = type_with_article(expression.type)
        raise ExpressionError(text, 0, f"a condition must be a boolean; got {got}")
    return expression


def compile(text: str, columns: Mapping[str, FieldType]) -> Expression:
    """Return an expression over columns of the given types, as Spark SQL.

    >>> compile("bytes / 2 > 1", {"bytes": "integer"}).sql
    '(try_divide(`bytes`, 2L) > 1L)'

    Raises:
        ExpressionError: it cannot be parsed, uses syntax outside of the language (subqueries, aggregates,
            windows, stars, comments, ...), reads an undeclared column, or its types do not fit.
    """
    compiler = Compiler(text, columns)
    sql, kind = compiler.compile(parse(text))
    if kind is None:
        raise ExpressionError(text, 0, "a bare null has no type")
    return Expression(text, sql, kind, tuple(sorted(compiler.used)))
