"""Compile a syntax tree to Spark SQL: check the arguments and the types of each node, and write its SQL."""

import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any, NoReturn

from transom.core.intervals import micros, parse_time
from transom.formats.record_format import NUMERIC, FieldType
from transom.formats.regex_rules import PatternError, validate_regex
from transom.spec.expressions.parser import MAX_DEPTH, ExpressionError

FUNCTIONS = (
    "abs", "ceil", "coalesce", "contains", "ends_with", "floor", "greatest", "if", "least", "length",
    "lower", "regexp_like", "split_part", "starts_with", "startswith", "substring", "trim", "upper",
)  # fmt: skip
"""The functions of the language."""

Typed = tuple[str, FieldType | None]
"""Spark SQL and its type; None is the type of a bare null."""
_CASTS: dict[str, tuple[FieldType, str]] = {
    "TEXT": ("string", "STRING"), "VARCHAR": ("string", "STRING"),
    "INT": ("integer", "BIGINT"), "BIGINT": ("integer", "BIGINT"),
    "DOUBLE": ("number", "DOUBLE"), "FLOAT": ("number", "DOUBLE"), "BOOLEAN": ("boolean", "BOOLEAN"),
    "TIMESTAMP": ("timestamp", "TIMESTAMP"), "TIMESTAMPTZ": ("timestamp", "TIMESTAMP"),
}  # fmt: skip
_COMPARISONS = {
    "eq": "=", "neq": "<>", "lt": "<", "lte": "<=", "gt": ">", "gte": ">=", "nullsafeeq": "<=>",
    "nullsafeneq": "<=>",
}  # fmt: skip
_SIMPLE: dict[str, tuple[str, str, tuple[FieldType, ...], FieldType | None]] = {
    "not": ("not", "(NOT {})", ("boolean",), "boolean"),
    "add": ("+", "try_add({}, {})", NUMERIC, None),
    "sub": ("-", "try_subtract({}, {})", NUMERIC, None),
    "mul": ("*", "try_multiply({}, {})", NUMERIC, None),
    "mod": ("%", "try_mod({}, {})", NUMERIC, None),
    "div": ("/", "try_divide({}, {})", NUMERIC, "number"),
    "dpipe": ("||", "({} || {})", ("string",), "string"),
    # Spark's length has 32 bits; its product with another could overflow.
    "length": ("length", "CAST(length({}) AS BIGINT)", ("string",), "integer"),
    **{name: (name, f"{name}({{}})", ("string",), "string") for name in ("lower", "upper", "trim")},
    **{
        name: (name, f"{name}({{}}, {{}})", ("string",), "boolean")
        for name in ("startswith", "endswith", "contains")
    },
}
"""Nodes with operands of one type: the name for messages, the SQL, the types of the operands, and the type of
the result; None is the type of the operands."""
# The parser sets them; they change nothing here: Spark's greatest and least skip nulls anyway.
_HARMLESS = frozenset(("ignore_nulls", "safe", "typed", "coalesce", "_type"))
_INTEGER = re.compile("[0-9]+")
_DECIMAL = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")
_WORD_START = re.compile(r"(?<=[a-z])(?=[A-Z])")


def quote(text: str) -> str:
    """Return a Spark SQL literal. `$` is escaped, as Spark replaces `${name}` inside literals too."""
    safe = text.replace("\\", "\\\\").replace("'", "\\'")
    return "'" + "".join(c if c.isprintable() and c != "$" else _escape(c) for c in safe) + "'"


def _escape(letter: str) -> str:
    return f"\\u{ord(letter):04x}" if ord(letter) < 0x10000 else f"\\U{ord(letter):08x}"


def type_with_article(kind: FieldType | None) -> str:
    """Return a type with its article, for messages."""
    return "a null" if kind is None else f"an {kind}" if kind == "integer" else f"a {kind}"


class Compiler:
    """One walk over a syntax tree.

    Attributes:
        used: the columns that it reads.
    """

    def __init__(self, text: str, columns: Mapping[str, FieldType]) -> None:
        self.text, self.columns = text, columns
        self.used: set[str] = set()
        self._depth = 0

    def compile(self, node: Any) -> Typed:
        """Return the SQL and the type of a node; raise an ExpressionError if it is not in the language."""
        if node.key not in _HANDLERS:
            from sqlglot import exp

            if isinstance(node, exp.Func):
                name = self._name(node)
                self._fail(node, f"no function {name!r}; {_hint(name, FUNCTIONS)}")
            words = _WORD_START.sub(" ", type(node).__name__).lower()
            self._fail(node, f"{words} is not part of the language")
        allowed, method = _HANDLERS[node.key]
        for name, value in node.args.items():
            if value and name not in allowed:
                self._fail(node, f"{self._name(node)} takes no {name.replace('_', ' ')} here")
        if node.args.get("this") is None and node.key not in ("null", "case"):
            self._fail(node, f"{self._name(node)} takes a value; got none")  # sqlglot parses floor()
        if node.key == "paren":
            return self.compile(node.this)  # every part gets parentheses anyway
        self._depth += 1
        # Left-deep chains (a + b + c ...) are deep without parentheses; Python's stack bounds them.
        if self._depth > 4 * MAX_DEPTH:
            self._fail(node, "is nested too deeply")
        sql, kind = method(self, node)
        self._depth -= 1
        # A negated operator such as `not like` is one node, not a Not around another.
        return (f"(NOT {sql})" if node.args.get("negate") else sql), kind

    def _fail(self, node: Any, message: str, unknown: str | None = None) -> NoReturn:
        raise ExpressionError(self.text, _start(node), message, unknown)

    def _name(self, node: Any) -> str:
        """Return the name of a function or an operator, as written if that is a word."""
        if node.key == "anonymous":
            return str(node.this).lower()
        start = node.meta.get("start")
        written = self.text[start : node.meta["end"] + 1] if start is not None else ""
        return (written if written.isidentifier() else _WORD_START.sub("_", type(node).__name__)).lower()

    def _typed(self, node: Any, *kinds: FieldType, who: str) -> Typed:
        """Compile a part; refuse types other than `kinds` (any if empty) and null. `who` is for messages."""
        sql, kind = self.compile(node)
        if kinds and kind is not None and kind not in kinds:
            allowed = " or ".join(map(type_with_article, kinds))
            self._fail(node, f"{who} takes {allowed}; got {type_with_article(kind)}")
        return sql, kind

    def _alike(
        self, nodes: Iterable[Any], *kinds: FieldType, who: str, nulls: bool = True
    ) -> tuple[list[str], FieldType | None]:
        """Compile parts of one type; integers among numbers count as numbers.

        Args:
            nulls: whether a part may be a bare null.
        """
        sqls: list[str] = []
        common: FieldType | None = None
        for node in nodes:
            sql, kind = self._typed(node, *kinds, who=who)
            sqls.append(sql)
            if kind is None and not nulls:
                self._fail(node, f"{who} null is never true; write is null")
            if common is None or kind is None or kind == common:
                common = common or kind
            elif kind in NUMERIC and common in NUMERIC:
                common = "number"
            else:
                got = f"{type_with_article(common)} and {type_with_article(kind)}"
                self._fail(node, f"{who} takes parts of one type; got {got}")
        return sqls, common

    def _constant(self, node: Any, who: str) -> str:
        if not node.is_string:
            self._fail(node, f"{who} must be a constant text")
        return str(node.this)

    def _constant_integer(self, node: Any, who: str, minimum: int) -> int:
        """Return a constant whole number of 32 bits, which some of Spark's functions require."""
        inner = node.this if node.key == "neg" else node
        digits = str(inner.this) if inner.key == "literal" and not inner.is_string else ""
        if not _INTEGER.fullmatch(digits) or len(digits) > 9:
            self._fail(node, f"{who} must be a constant whole number")
        value = int(digits) if inner is node else -int(digits)
        if value < minimum:
            self._fail(node, f"{who} must be at least {minimum}; got {value}")
        return value

    def _column(self, node: Any) -> Typed:
        name = ".".join(str(part.this) for part in node.parts)
        if name not in self.columns or len(node.parts) > 1:
            hint = _hint(name.lower(), self.columns)
            if node.this.args.get("quoted"):
                hint += "; text is in single quotes"
            self._fail(node, f"no column {name!r}; {hint}", unknown=name)
        self.used.add(name)
        return "`" + name.replace("`", "``") + "`", self.columns[name]

    def _literal(self, node: Any) -> Typed:
        digits = str(node.this)
        if node.is_string:
            return quote(digits), "string"
        if _INTEGER.fullmatch(digits):
            # Length first: Python refuses to read thousands of digits.
            if len(digits) > 18:
                self._fail(node, f"must have at most 18 digits; got {digits[:40]}")
            return f"{int(digits)}L", "integer"
        if not _DECIMAL.fullmatch(digits) or float(digits) == float("inf"):
            self._fail(node, f"is no number; got {digits[:40]}")
        return f"{float(digits)!r}D", "number"

    def _boolean(self, node: Any) -> Typed:
        return "TRUE" if node.this else "FALSE", "boolean"

    def _logical(self, node: Any) -> Typed:
        # Flat, so that a list of a hundred alternatives is one level deep.
        parts, _ = self._alike(_operands(node), "boolean", who=node.key)
        return "(" + f" {node.key.upper()} ".join(parts) + ")", "boolean"

    def _simple(self, node: Any) -> Typed:
        name, sql, kinds, kind = _SIMPLE[node.key]
        operands = (operand for operand in (node.this, node.expression) if operand is not None)
        sqls, common = self._alike(operands, *kinds, who=name)
        return sql.format(*sqls), kind or common

    def _comparison(self, node: Any) -> Typed:
        sign = _COMPARISONS[node.key]
        word = "is distinct from" if sign == "<=>" else sign
        (left, right), kind = self._alike((node.this, node.expression), who=word, nulls=sign == "<=>")
        if kind == "boolean" and sign in ("<", "<=", ">", ">="):
            self._fail(node, f"{word} does not order booleans")
        sql = f"({left} {sign} {right})"
        return f"(NOT {sql})" if node.key == "nullsafeneq" else sql, "boolean"

    def _is(self, node: Any) -> Typed:
        if node.expression.key == "null":
            return f"({self.compile(node.this)[0]} IS NULL)", "boolean"
        if node.expression.key != "boolean":
            self._fail(node, "is requires null, true or false")
        value, _ = self._typed(node.this, "boolean", who="is true")
        return f"({value} IS {self._boolean(node.expression)[0]})", "boolean"

    def _in(self, node: Any) -> Typed:
        if not node.expressions:
            self._fail(node, "in needs a list of values")
        (value, *choices), _ = self._alike([node.this, *node.expressions], who="in", nulls=False)
        return f"({value} IN ({', '.join(choices)}))", "boolean"

    def _between(self, node: Any) -> Typed:
        nodes = [node.this, node.args["low"], node.args["high"]]
        (value, low, high), kind = self._alike(nodes, who="between", nulls=False)
        if kind == "boolean":
            self._fail(node, "between does not order booleans")
        return f"({value} BETWEEN {low} AND {high})", "boolean"

    def _like(self, node: Any) -> Typed:
        value, _ = self._typed(node.this, "string", who=node.key)
        pattern = self._constant(node.expression, f"the pattern of {node.key}")
        if re.search(r"\\(?![%_\\])", re.sub(r"\\[%_\\]", "", pattern)):
            self._fail(node.expression, r"a backslash in a pattern comes only before %, _ or \ itself")
        return f"({value} {node.key.upper()} {quote(pattern)})", "boolean"

    def _regexp(self, node: Any) -> Typed:
        value, _ = self._typed(node.this, "string", who="rlike")
        pattern = self._constant(node.expression, "the pattern of rlike")
        # Spark uses Java's engine; only what Java and Python both support is allowed.
        if "(?P" in pattern:
            self._fail(node.expression, "no regular expression: (?P is Python's alone")
        try:
            validate_regex(pattern, linear=False)
        except PatternError as error:
            # If nothing is doubled or escaped, the pattern is part of the text.
            start = 1 + _start(node.expression)
            within = error.offset if self.text.startswith(pattern, start) else -1
            raise ExpressionError(self.text, start + within, error.message) from None
        return f"({value} RLIKE {quote(pattern)})", "boolean"

    def _minus(self, node: Any) -> Typed:
        sql, kind = self._typed(node.this, *NUMERIC, who="-")
        if kind is None:
            self._fail(node, "- takes an integer or a number; got a null")
        return f"try_subtract({'0L' if kind == 'integer' else '0D'}, {sql})", kind

    def _case(self, node: Any) -> Typed:
        operand, default, branches = node.args.get("this"), node.args.get("default"), node.args["ifs"]
        tests = [branch.this for branch in branches]
        if operand is None:
            head, conditions = "CASE", self._alike(tests, "boolean", who="when")[0]
        else:
            (subject, *conditions), _ = self._alike([operand, *tests], who="when", nulls=False)
            head = f"CASE {subject}"
        values = [branch.args["true"] for branch in branches]
        then, kind = self._alike(values if default is None else [*values, default], who="case")
        last = "" if default is None else f" ELSE {then.pop()}"
        cases = "".join(f" WHEN {test} THEN {value}" for test, value in zip(conditions, then, strict=True))
        return f"({head}{cases}{last} END)", kind

    def _if(self, node: Any) -> Typed:
        test, _ = self._typed(node.this, "boolean", who="if")
        if node.args.get("false") is None:
            self._fail(node, "if takes a condition and two values")
        (yes, no), kind = self._alike([node.args["true"], node.args["false"]], who="if")
        return f"if({test}, {yes}, {no})", kind

    def _cast(self, node: Any) -> Typed:
        target = node.args["to"]
        name = getattr(getattr(target, "this", None), "name", "")
        if name not in _CASTS or target.expressions:
            self._fail(node, "a cast is to string, bigint, double, boolean or timestamp")
        kind, spark = _CASTS[name]
        if kind == "timestamp" and node.this.is_string:
            text = str(node.this.this)
            try:
                since = micros(parse_time(text.strip()))
            except (ValueError, OverflowError):  # a null would silently match nothing
                self._fail(node.this, f"must be a time such as '2015-05-17 10:00:00'; got {text[:40]!r}")
            return f"timestamp_micros({since}L)", kind
        sql, source = self.compile(node.this)
        if {kind, source} == {"boolean", "timestamp"}:
            types = f"{type_with_article(source)} to {type_with_article(kind)}"
            self._fail(node, f"there is no cast from {types}")
        return f"try_cast({sql} AS {spark})", kind

    def _substring(self, node: Any) -> Typed:
        sql, _ = self._typed(node.this, "string", who="substring")
        start, length = node.args.get("start"), node.args.get("length")
        if start is None:
            self._fail(node, "substring takes a text, a start and perhaps a length")
        numbers = [self._constant_integer(start, "the start of substring", -(10**9))]
        if length is not None:
            numbers.append(self._constant_integer(length, "the length of substring", 0))
        return f"substring({', '.join([sql, *map(str, numbers)])})", "string"

    def _split_part(self, node: Any) -> Typed:
        sql, _ = self._typed(node.this, "string", who="split_part")
        delimiter, part = node.args.get("delimiter"), node.args.get("part_index")
        if delimiter is None or part is None:
            self._fail(node, "split_part takes a text, a separator and a number")
        separator, _ = self._typed(delimiter, "string", who="split_part")
        index = self._constant_integer(part, "the number of split_part", -(10**9))
        if index == 0:
            self._fail(part, "the number of split_part counts from 1, or from -1 at the end")
        return f"split_part({sql}, {separator}, {index})", "string"

    def _abs(self, node: Any) -> Typed:
        sql, kind = self._typed(node.this, *NUMERIC, who="abs")
        if kind == "integer":
            # The smallest 64-bit integer has no positive partner, and Spark stops there.
            return f"try_cast(abs(CAST({sql} AS DECIMAL(20, 0))) AS BIGINT)", kind
        return f"abs({sql})", kind

    def _rounded(self, node: Any) -> Typed:
        sql, kind = self._typed(node.this, *NUMERIC, who=node.key)
        return (sql if kind == "integer" else f"{node.key}({sql})"), "integer"

    def _of_values(self, node: Any) -> Typed:
        parts, kind = self._alike([node.this, *node.expressions], who=node.key)
        if node.key != "coalesce" and len(parts) < 2:
            self._fail(node, f"{node.key} takes at least 2 values")
        if node.key != "coalesce" and kind == "boolean":
            self._fail(node, f"{node.key} does not order booleans")
        return f"{node.key}({', '.join(parts)})", kind


def _start(node: Any) -> int:
    """Return the position of a node in the expression; 0 if the parser does not record it."""
    return min((part.meta["start"] for part in node.walk() if "start" in part.meta), default=0)


def _hint(name: str, known: Iterable[str]) -> str:
    near = get_close_matches(name, known, n=1)
    return f"nearest: {near[0]}" if near else f"known: {', '.join(known) or 'none'}"


def _operands(node: Any) -> Iterator[Any]:
    """Yield the operands of a chain of one operator, also those of chains in parentheses."""
    for part in node.flatten():
        yield from _operands(part) if part.key == node.key else (part,)


# The nodes of the language, their allowed arguments, and the method that compiles them. Other nodes and other
# arguments are refused: new features of the parser do not extend the language.
_HANDLERS: dict[str, tuple[frozenset[str], Any]] = {
    node: (_HARMLESS.union(arguments.split()), method)
    for nodes, arguments, method in (
        ("paren", "this", None),
        ("column", "this table db catalog", Compiler._column),
        ("literal", "this is_string", Compiler._literal),
        ("boolean", "this", Compiler._boolean),
        ("null", "", lambda compiler, node: ("NULL", None)),
        ("and or", "this expression", Compiler._logical),
        ("not lower upper trim length", "this", Compiler._simple),
        ("add sub mul mod div dpipe startswith endswith contains", "this expression", Compiler._simple),
        (" ".join(_COMPARISONS), "this expression", Compiler._comparison),
        ("is", "this expression", Compiler._is),
        ("in", "this expressions", Compiler._in),
        ("between", "this low high", Compiler._between),
        ("like ilike", "this expression negate", Compiler._like),
        ("regexplike", "this expression negate", Compiler._regexp),
        ("neg", "this", Compiler._minus),
        ("case", "this ifs default", Compiler._case),
        ("if", "this true false", Compiler._if),
        ("cast trycast", "this to", Compiler._cast),
        ("substring", "this start length", Compiler._substring),
        ("splitpart", "this delimiter part_index", Compiler._split_part),
        ("abs", "this", Compiler._abs),
        ("floor ceil", "this", Compiler._rounded),
        ("coalesce greatest least", "this expressions", Compiler._of_values),
    )
    for node in nodes.split()
}
