"""Compile a syntax tree to Spark SQL: the allowed arguments of each node, its types, and its SQL."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from typing import Any, NoReturn

from transom.core.intervals import EPOCH
from transom.formats.record_format import NUMERIC, FieldType
from transom.formats.regex_rules import PatternError, validate_regex
from transom.spec.expressions.errors import ExpressionError
from transom.spec.expressions.parser import MAX_DEPTH, parse

FUNCTIONS = (
    "abs", "ceil", "coalesce", "contains", "ends_with", "floor", "greatest", "if", "least", "length",
    "lower", "regexp_like", "split_part", "starts_with", "startswith", "substring", "trim", "upper",
)  # fmt: skip
"""The functions of the language."""

Typed = tuple[str, FieldType | None]
"""Spark SQL and its type; None is the type of a bare null."""

_CASTS: dict[str, tuple[FieldType, str]] = {
    "TEXT": ("string", "STRING"),
    "VARCHAR": ("string", "STRING"),
    "INT": ("integer", "BIGINT"),
    "BIGINT": ("integer", "BIGINT"),
    "DOUBLE": ("number", "DOUBLE"),
    "FLOAT": ("number", "DOUBLE"),
    "BOOLEAN": ("boolean", "BOOLEAN"),
    "TIMESTAMP": ("timestamp", "TIMESTAMP"),
    "TIMESTAMPTZ": ("timestamp", "TIMESTAMP"),
}
_COMPARISONS = {
    "EQ": "=", "NEQ": "<>", "LT": "<", "LTE": "<=", "GT": ">", "GTE": ">=", "NullSafeEQ": "<=>",
    "NullSafeNEQ": "<=>",
}  # fmt: skip
_ARITHMETIC = {
    "Add": ("+", "try_add"), "Sub": ("-", "try_subtract"), "Mul": ("*", "try_multiply"),
    "Mod": ("%", "try_mod"), "Div": ("/", "try_divide"),
}  # fmt: skip

# Set by the parser and without meaning here: Spark's greatest and least skip nulls anyway.
_HARMLESS = {"ignore_nulls", "safe", "typed", "coalesce", "_type"}
_INTEGER = re.compile("[0-9]+")
_DECIMAL = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")


def quote(text: str) -> str:
    """Return a Spark SQL literal for a text.

    `$` is written as an escape: Spark replaces `${name}` by its configuration, inside literals, too.
    """
    safe = text.replace("\\", "\\\\").replace("'", "\\'")
    return "'" + "".join(c if c.isprintable() and c != "$" else _escape(c) for c in safe) + "'"


def _escape(letter: str) -> str:
    return f"\\u{ord(letter):04x}" if ord(letter) < 0x10000 else f"\\U{ord(letter):08x}"


def type_with_article(kind: FieldType | None) -> str:
    """Return a type with its article, for messages."""
    return "a null" if kind is None else f"an {kind}" if kind == "integer" else f"a {kind}"


def compiled(text: str, columns: Mapping[str, FieldType]) -> tuple[str, FieldType | None, set[str]]:
    """Return Spark SQL for an expression, its type, and the columns that it reads.

    Raises:
        ExpressionError: it holds what the language has not, or its types do not fit.
    """
    compiler = _Compiler(text, columns)
    sql, kind = compiler.walk(parse(text))
    return sql, kind, compiler.used


class _Compiler:
    """One walk over a syntax tree; each method takes a node and returns Spark SQL and its type."""

    def __init__(self, text: str, columns: Mapping[str, FieldType]) -> None:
        self.text = text
        self.columns = columns
        self.used: set[str] = set()
        self.depth = 0

    def fail(self, node: Any, message: str, unknown: str | None = None) -> NoReturn:
        starts = [part.meta["start"] for part in node.walk() if "start" in part.meta]
        raise ExpressionError(self.text, min(starts, default=0), message, unknown)

    def walk(self, node: Any) -> Typed:
        kind = type(node).__name__
        handler = _HANDLERS.get(kind)
        if handler is None:
            self.refuse(node)
        allowed, method = handler
        extra = [name for name, value in node.args.items() if value and name not in (*allowed, *_HARMLESS)]
        if extra:
            self.fail(node, f"{self.name_of(node)} takes no {extra[0].replace('_', ' ')} here")
        if kind == "Paren":
            return self.walk(node.this)  # every part gets parentheses anyway
        self.depth += 1
        # Left-deep chains (a + b + c ...) are deep without parentheses; Python's stack bounds them.
        if self.depth > 4 * MAX_DEPTH:
            self.fail(node, "is nested too deeply")
        result: Typed = method(self, node)
        self.depth -= 1
        return result

    def refuse(self, node: Any) -> NoReturn:
        name = self.name_of(node)
        from sqlglot import exp

        if isinstance(node, exp.Func):
            near = get_close_matches(name, FUNCTIONS, n=1)
            hint = f"nearest: {near[0]}" if near else f"known: {', '.join(FUNCTIONS)}"
            self.fail(node, f"no function {name!r}; {hint}")
        words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(node).__name__).lower()
        self.fail(node, f"{words} is not part of the language")

    def name_of(self, node: Any) -> str:
        if type(node).__name__ == "Anonymous":
            return str(node.this).lower()
        start = node.meta.get("start")
        written = self.text[start : node.meta["end"] + 1] if start is not None else ""
        if written.isidentifier():
            return written.lower()
        return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(node).__name__).lower()

    def want(self, node: Any, *kinds: FieldType, who: str) -> Typed:
        """Compile a part that must have one of the types; a bare null is accepted."""
        sql, kind = self.walk(node)
        if kind is not None and kind not in kinds:
            self.fail(
                node,
                f"{who} takes {' or '.join(type_with_article(allowed) for allowed in kinds)}; got "
                f"{type_with_article(kind)}",
            )
        return sql, kind

    def alike(
        self, nodes: Sequence[Any], *kinds: FieldType, who: str, nulls: bool = True
    ) -> tuple[list[str], FieldType | None]:
        """Compile parts of one type, where integers among numbers are numbers.

        Args:
            nodes: the parts.
            kinds: the allowed types; none allows any.
            who: the operator or function, for messages.
            nulls: whether a part may be a bare null.
        """
        sqls: list[str] = []
        common: FieldType | None = None
        for node in nodes:
            sql, kind = self.want(node, *kinds, who=who) if kinds else self.walk(node)
            sqls.append(sql)
            if kind is None and not nulls:
                self.fail(node, f"{who} null is never true; write is null")
            if common is None or kind is None or kind == common:
                common = common or kind
            elif kind in NUMERIC and common in NUMERIC:
                common = "number"
            else:
                self.fail(
                    node,
                    f"{who} takes parts of one type; got {type_with_article(common)} and "
                    f"{type_with_article(kind)}",
                )
        return sqls, common

    def constant(self, node: Any, who: str) -> str:
        if type(node).__name__ != "Literal" or not node.is_string:
            self.fail(node, f"{who} must be a constant text")
        return str(node.this)

    def whole(self, node: Any, who: str, low: int) -> int:
        """Return a constant whole number of 32 bits, which some of Spark's functions require."""
        inner = node.this if type(node).__name__ == "Neg" else node
        digits = str(inner.this) if type(inner).__name__ == "Literal" and not inner.is_string else ""
        if not _INTEGER.fullmatch(digits) or len(digits) > 9:
            self.fail(node, f"{who} must be a constant whole number")
        value = -int(digits) if inner is not node else int(digits)
        if value < low:
            self.fail(node, f"{who} must be at least {low}; got {value}")
        return value

    def column(self, node: Any) -> Typed:
        parts = [str(part.this) for part in node.parts]
        name = ".".join(parts)
        if name not in self.columns or len(parts) > 1:
            near = get_close_matches(name.lower(), self.columns, n=1)
            hint = f"nearest: {near[0]}" if near else f"known: {', '.join(self.columns) or 'none'}"
            if node.this.args.get("quoted"):
                hint += "; text stands in single quotes"
            self.fail(node, f"no column {name!r}; {hint}", unknown=name)
        self.used.add(name)
        return "`" + name.replace("`", "``") + "`", self.columns[name]

    def literal(self, node: Any) -> Typed:
        if node.is_string:
            return quote(str(node.this)), "string"
        digits = str(node.this)
        if _INTEGER.fullmatch(digits):
            # Length first: Python refuses to read thousands of digits.
            if len(digits) > 18:
                self.fail(node, f"must have at most 18 digits; got {digits[:40]}")
            return f"{int(digits)}L", "integer"
        if not _DECIMAL.fullmatch(digits) or float(digits) == float("inf"):
            self.fail(node, f"is no number; got {digits[:40]}")
        return f"{float(digits)!r}D", "number"

    def boolean(self, node: Any) -> Typed:
        return ("TRUE" if node.this else "FALSE"), "boolean"

    def null(self, node: Any) -> Typed:
        return "NULL", None

    def logical(self, node: Any) -> Typed:
        word = type(node).__name__.lower()
        # Flat, so that a list of a hundred alternatives is one level deep.
        parts, _ = self.alike(list(_operands(node, type(node)))[::-1], "boolean", who=word)
        return "(" + f" {word.upper()} ".join(parts) + ")", "boolean"

    def negation(self, node: Any) -> Typed:
        return f"(NOT {self.want(node.this, 'boolean', who='not')[0]})", "boolean"

    def comparison(self, node: Any) -> Typed:
        name = type(node).__name__
        sign = _COMPARISONS[name]
        word = "is distinct from" if sign == "<=>" else sign
        (left, right), kind = self.alike([node.this, node.expression], who=word, nulls=sign == "<=>")
        if kind == "boolean" and sign in ("<", "<=", ">", ">="):
            self.fail(node, f"{word} does not order booleans")
        sql = f"({left} {sign} {right})"
        return (f"(NOT {sql})" if name == "NullSafeNEQ" else sql), "boolean"

    def is_(self, node: Any) -> Typed:
        operand = type(node.expression).__name__
        if operand == "Null":
            return f"({self.walk(node.this)[0]} IS NULL)", "boolean"
        if operand == "Boolean":
            value = self.want(node.this, "boolean", who="is true")[0]
            return f"({value} IS {'TRUE' if node.expression.this else 'FALSE'})", "boolean"
        self.fail(node, "is goes with null, true or false")

    def among(self, node: Any) -> Typed:
        if not node.expressions:
            self.fail(node, "in needs a list of values")
        (value, *choices), _ = self.alike([node.this, *node.expressions], who="in", nulls=False)
        return f"({value} IN ({', '.join(choices)}))", "boolean"

    def between(self, node: Any) -> Typed:
        nodes = [node.this, node.args["low"], node.args["high"]]
        (value, low, high), kind = self.alike(nodes, who="between", nulls=False)
        if kind == "boolean":
            self.fail(node, "between does not order booleans")
        return f"({value} BETWEEN {low} AND {high})", "boolean"

    def like(self, node: Any) -> Typed:
        word = type(node).__name__.lower()
        value = self.want(node.this, "string", who=word)[0]
        pattern = self.constant(node.expression, f"the pattern of {word}")
        if re.search(r"\\(?![%_\\])", re.sub(r"\\[%_\\]", "", pattern)):
            self.fail(node.expression, r"a backslash in a pattern stands before %, _ or \ only")
        return self.negated(node, f"({value} {word.upper()} {quote(pattern)})"), "boolean"

    def regexp(self, node: Any) -> Typed:
        value = self.want(node.this, "string", who="rlike")[0]
        pattern = self.constant(node.expression, "the pattern of rlike")
        # Spark uses Java's engine; only what Java and Python both support is allowed.
        if "(?P" in pattern:
            self.fail(node.expression, "no regular expression: (?P is Python's alone")
        try:
            validate_regex(pattern, linear=False)
        except PatternError as error:
            # If nothing is doubled or escaped, the pattern is part of the text.
            start = 1 + min(part.meta["start"] for part in node.expression.walk() if "start" in part.meta)
            within = error.offset if self.text.startswith(pattern, start) else -1
            raise ExpressionError(self.text, start + within, error.message) from None
        return self.negated(node, f"({value} RLIKE {quote(pattern)})"), "boolean"

    def negated(self, node: Any, sql: str) -> str:
        """Return a negated operator such as `not like`, which is one node, not a Not around another."""
        return f"(NOT {sql})" if node.args.get("negate") else sql

    def arithmetic(self, node: Any) -> Typed:
        sign, function = _ARITHMETIC[type(node).__name__]
        (left, right), kind = self.alike([node.this, node.expression], *NUMERIC, who=sign)
        return f"{function}({left}, {right})", "number" if sign == "/" else kind

    def minus(self, node: Any) -> Typed:
        sql, kind = self.want(node.this, *NUMERIC, who="-")
        if kind is None:
            self.fail(node, "- takes an integer or a number; got a null")
        return f"try_subtract({'0L' if kind == 'integer' else '0D'}, {sql})", kind

    def joined(self, node: Any) -> Typed:
        (left, right), _ = self.alike([node.this, node.expression], "string", who="||")
        return f"({left} || {right})", "string"

    def case(self, node: Any) -> Typed:
        operand, default = node.args.get("this"), node.args.get("default")
        tests = [branch.this for branch in node.args["ifs"]]
        if operand is None:
            head, conditions = "CASE", self.alike(tests, "boolean", who="when")[0]
        else:
            (subject, *conditions), _ = self.alike([operand, *tests], who="when", nulls=False)
            head = f"CASE {subject}"
        values = [branch.args["true"] for branch in node.args["ifs"]]
        (*then,), kind = self.alike(values if default is None else [*values, default], who="case")
        last = "" if default is None else f" ELSE {then.pop()}"
        branches = zip(conditions, then, strict=True)
        return f"({head}{''.join(f' WHEN {test} THEN {value}' for test, value in branches)}{last} END)", kind

    def if_(self, node: Any) -> Typed:
        test = self.want(node.this, "boolean", who="if")[0]
        if node.args.get("false") is None:
            self.fail(node, "if takes a condition and two values")
        (yes, no), kind = self.alike([node.args["true"], node.args["false"]], who="if")
        return f"if({test}, {yes}, {no})", kind

    def cast(self, node: Any) -> Typed:
        target = node.args["to"]
        name = getattr(getattr(target, "this", None), "name", "")
        if name not in _CASTS or target.expressions:
            self.fail(node, "a cast is to string, bigint, double, boolean or timestamp")
        kind, spark = _CASTS[name]
        if kind == "timestamp" and type(node.this).__name__ == "Literal" and node.this.is_string:
            return self.moment(node.this), kind
        sql, given = self.walk(node.this)
        if {kind, given} == {"boolean", "timestamp"}:
            self.fail(node, f"there is no cast from {type_with_article(given)} to {type_with_article(kind)}")
        return f"try_cast({sql} AS {spark})", kind

    def moment(self, node: Any) -> str:
        """Return a constant time, which must be valid: a null would silently match nothing."""
        try:
            time = datetime.fromisoformat(str(node.this).strip())
            time = time.replace(tzinfo=UTC) if time.tzinfo is None else time
            since = time - EPOCH
        except (ValueError, OverflowError):
            self.fail(node, f"must be a time such as '2015-05-17 10:00:00'; got {str(node.this)[:40]!r}")
        return f"timestamp_micros({since // timedelta(microseconds=1)}L)"


def _operands(node: Any, kind: type[Any]) -> Iterator[Any]:
    """Yield the operands of a chain of one operator, the last one first, without recursion."""
    pending = [node]
    while pending:
        part = pending.pop()
        while type(part).__name__ == "Paren":
            part = part.this
        if isinstance(part, kind):
            pending += [part.this, part.expression]
        else:
            yield part


def _of_texts(spark: str, kind: FieldType, names: Sequence[str] = ("this",)) -> Any:
    def method(self: _Compiler, node: Any) -> Typed:
        parts, _ = self.alike([node.args[name] for name in names], "string", who=spark)
        return f"{spark}({', '.join(parts)})", kind

    return method


def _length(self: _Compiler, node: Any) -> Typed:
    # Spark's is 32 bits, whose product with another overflows.
    return f"CAST(length({self.want(node.this, 'string', who='length')[0]}) AS BIGINT)", "integer"


def _substring(self: _Compiler, node: Any) -> Typed:
    sql = self.want(node.this, "string", who="substring")[0]
    if node.args.get("start") is None:
        self.fail(node, "substring takes a text, a start and perhaps a length")
    numbers = [self.whole(node.args["start"], "the start of substring", -(10**9))]
    if node.args.get("length") is not None:
        numbers.append(self.whole(node.args["length"], "the length of substring", 0))
    return f"substring({', '.join([sql, *map(str, numbers)])})", "string"


def _split_part(self: _Compiler, node: Any) -> Typed:
    sql = self.want(node.this, "string", who="split_part")[0]
    if node.args.get("delimiter") is None or node.args.get("part_index") is None:
        self.fail(node, "split_part takes a text, a separator and a number")
    separator = self.want(node.args["delimiter"], "string", who="split_part")[0]
    index = self.whole(node.args["part_index"], "the number of split_part", -(10**9))
    if index == 0:
        self.fail(node.args["part_index"], "the number of split_part counts from 1, or from -1 at the end")
    return f"split_part({sql}, {separator}, {index})", "string"


def _absolute(self: _Compiler, node: Any) -> Typed:
    sql, kind = self.want(node.this, *NUMERIC, who="abs")
    if kind == "integer":
        # The smallest 64-bit integer has no positive partner, and Spark stops there.
        return f"try_cast(abs(CAST({sql} AS DECIMAL(20, 0))) AS BIGINT)", kind
    return f"abs({sql})", kind


def _rounded(spark: str) -> Any:
    def method(self: _Compiler, node: Any) -> Typed:
        sql, kind = self.want(node.this, *NUMERIC, who=spark)
        return (sql if kind == "integer" else f"{spark}({sql})"), "integer"

    return method


def _of_values(spark: str, min_values: int) -> Any:
    def method(self: _Compiler, node: Any) -> Typed:
        parts, kind = self.alike([node.this, *node.expressions], who=spark)
        if len(parts) < min_values:
            self.fail(node, f"{spark} takes at least {min_values} values")
        if kind == "boolean" and spark != "coalesce":
            self.fail(node, f"{spark} does not order booleans")
        return f"{spark}({', '.join(parts)})", kind

    return method


_BINARY = ("this", "expression")
# The allowed arguments of each node, and the method that compiles it. Other nodes and other arguments are
# refused: new features of the parser do not extend the language.
_HANDLERS: dict[str, tuple[tuple[str, ...], Any]] = {
    "Paren": (("this",), None),
    "Column": (("this", "table", "db", "catalog"), _Compiler.column),
    "Literal": (("this", "is_string"), _Compiler.literal),
    "Boolean": (("this",), _Compiler.boolean),
    "Null": ((), _Compiler.null),
    "And": (_BINARY, _Compiler.logical),
    "Or": (_BINARY, _Compiler.logical),
    "Not": (("this",), _Compiler.negation),
    **dict.fromkeys(_COMPARISONS, (_BINARY, _Compiler.comparison)),
    "Is": (_BINARY, _Compiler.is_),
    "In": (("this", "expressions"), _Compiler.among),
    "Between": (("this", "low", "high"), _Compiler.between),
    "Like": ((*_BINARY, "negate"), _Compiler.like),
    "ILike": ((*_BINARY, "negate"), _Compiler.like),
    "RegexpLike": ((*_BINARY, "negate"), _Compiler.regexp),
    **dict.fromkeys(_ARITHMETIC, (_BINARY, _Compiler.arithmetic)),
    "Neg": (("this",), _Compiler.minus),
    "DPipe": (_BINARY, _Compiler.joined),
    "Case": (("this", "ifs", "default"), _Compiler.case),
    "If": (("this", "true", "false"), _Compiler.if_),
    "Cast": (("this", "to"), _Compiler.cast),
    "TryCast": (("this", "to"), _Compiler.cast),
    "Lower": (("this",), _of_texts("lower", "string")),
    "Upper": (("this",), _of_texts("upper", "string")),
    "Trim": (("this",), _of_texts("trim", "string")),
    "StartsWith": (_BINARY, _of_texts("startswith", "boolean", _BINARY)),
    "EndsWith": (_BINARY, _of_texts("endswith", "boolean", _BINARY)),
    "Contains": (_BINARY, _of_texts("contains", "boolean", _BINARY)),
    "Length": (("this",), _length),
    "Substring": (("this", "start", "length"), _substring),
    "SplitPart": (("this", "delimiter", "part_index"), _split_part),
    "Abs": (("this",), _absolute),
    "Floor": (("this",), _rounded("floor")),
    "Ceil": (("this",), _rounded("ceil")),
    "Coalesce": (("this", "expressions"), _of_values("coalesce", 1)),
    "Greatest": (("this", "expressions"), _of_values("greatest", 2)),
    "Least": (("this", "expressions"), _of_values("least", 2)),
}
