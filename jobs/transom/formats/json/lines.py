"""Parse JSON with an object per line: whole blocks with Arrow's reader, or line by line if that fails.

Arrow's reader requires that every line is well formed and every declared field has its type. A block that it
rejects is halved until few lines remain with the faulty ones. These are read one by one, where any type is
accepted as its JSON text. Both ways return the same rows. Messages about a refused value have its text, which
only the second way has.
"""

import json
import re
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json as pa_json

from transom.formats.field_drift import FieldDrift
from transom.formats.json.members import top_names
from transom.formats.lines import joined
from transom.formats.parsed_records import ParsedRecords
from transom.formats.record_format import DOUBLES, EPOCH_OR_ISO, NANOSECONDS, RecordFormat
from transom.formats.typed_columns import Rejections

ALONE = 2048
"""The smallest block that Arrow's reader gets: trying fewer lines costs more than it saves."""
DEEPEST = 100
"""The maximum nesting of arrays and objects; deeper lines are refused, since the limit of a reader depends on
its stack."""
SHAPES = 1000
"""The number of cached lists of names, so that lines with the same names are checked once."""
_REST = "\0rest"
"""The key of the remaining fields in a row; no path has this name."""
STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
SURROGATE = re.compile("[\ud800-\udfff]")
NUMERIC = {NANOSECONDS: pa.int64(), EPOCH_OR_ISO: pa.float64()}
"""Time formats that may be texts or numbers, and the type of the numbers."""
CUT_OFF = re.compile(r"|t|tr|tru|f|fa|fal|fals|n|nu|nul|-|\.|[eE][+-]?|u[0-9A-Fa-f]{0,4}")
"""The unreadable rest of JSON that was truncated."""
TYPES = {"string": pa.string(), "integer": pa.int64(), "number": pa.float64(), "boolean": pa.bool_()}


class JsonLines:
    """Fields by path: a top-level name, or names joined by dots; a name that contains dots takes
    precedence."""

    def __init__(self, layout: RecordFormat) -> None:
        types: dict[str, set[pa.DataType]] = {}
        for field in layout.fields:
            kind = TYPES.get(field.type) or _time_type(field.time_format)
            for path in field.paths:
                types.setdefault(path, set()).add(kind)
        # Parts of a joined time are texts.
        when = pa.string() if layout.time.more else _time_type(layout.time.time_format)
        for path in chain(layout.time.paths, *layout.time.more):
            types.setdefault(path, set()).add(when)
        for path in layout.time.plus:
            types.setdefault(path, set()).add(pa.float64())
        self.paths = tuple(types)
        nested = any("." in path for path in types)
        # A field with two types is read line by line.
        self.schema = (
            None
            if any(len(kinds) > 1 for kinds in types.values())
            else pa.schema([(path, next(iter(kinds))) for path, kinds in types.items()])
        )
        # Times of some formats are texts in some logs and numbers in others.
        self._numeric = dict(_numeric(layout))
        self.inner = {path.partition(".")[0] for path in types if "." in path} if nested else set()
        self.columns: frozenset[str] = frozenset()
        self.shown = FieldDrift(layout, nested=True)
        self._dotted = [path for path in types if "." in path]
        self._shapes: set[tuple[str, ...]] = set()
        self._keeps_rest = layout.keep_rest
        self._tried: tuple[pa.Array, Mapping[str, pa.Array] | None] | None = None

    def header(self, text: pa.Array) -> int:
        """Return 0: the format has no header lines."""
        return 0

    def parse(self, text: pa.Array, refused: Rejections) -> ParsedRecords:
        """Return every declared field; refuse lines that are no object (`bad_json`, `not_an_object`)."""
        fast = self._once(text)
        if fast is None:
            return self.parse_line_by_line(text, refused)
        names = top_names(joined(text))
        self.shown.show(names)
        if not self._keeps_rest:
            return ParsedRecords(fast)
        if names <= set(self.paths):
            return ParsedRecords(fast, pa.nulls(len(text), pa.string()))
        rests = [self._rest(_read(line)) for line in text.to_pylist()]
        return ParsedRecords(fast, pa.array(rests, pa.string()))

    def parse_line_by_line(self, text: pa.Array, refused: Rejections) -> ParsedRecords:
        """Return the same as `parse`, with every field as text."""
        rows = [self._slow(index, line, refused) for index, line in enumerate(text.to_pylist())]
        fields = {path: pa.array([row.get(path) for row in rows], pa.string()) for path in self.paths}
        return ParsedRecords(fields, pa.array([row.get(_REST) for row in rows], pa.string()))

    def takes(self, text: pa.Array) -> bool:
        """Return whether the fast way can read these lines."""
        return self._once(text) is not None

    def _once(self, text: pa.Array) -> Mapping[str, pa.Array] | None:
        """Return the result of the fast way; the last result is cached."""
        if self._tried is None or not same_buffers(self._tried[0], text):
            self._tried = text, self._fast(text)
        return self._tried[1]

    def _fast(self, text: pa.Array) -> Mapping[str, pa.Array] | None:
        if self.schema is None or text.null_count or not len(text):
            return None
        # A line that begins and ends an object cannot run on into the next one.
        if not pc.all(pc.and_(pc.starts_with(text, "{"), pc.ends_with(text, "}"))).as_py():
            return None
        # Arrow's reader accepts these as numbers; JSON has no such values.
        if pc.any(pc.match_substring_regex(text, "NaN|Inf")).as_py():
            return None
        data = joined(text)
        # Every line has one bracket: if there are few others, no line can be nested deeply.
        if data.count(b"[") + data.count(b"{") >= len(text) + DEEPEST:
            brackets = pc.add(pc.count_substring(text, "["), pc.count_substring(text, "{"))
            if pc.max(brackets).as_py() > DEEPEST:
                return None
        schema = pa.schema(
            [*self.schema, *((name, pa.string()) for name in self.inner - set(self.schema.names))]
        )
        table = _table(data, schema)
        if table is None and self._numeric:
            numbers = (field.with_type(self._numeric.get(field.name, field.type)) for field in schema)
            table = _table(data, pa.schema(numbers))
        if table is None:
            return None
        # A nested object under a plain name raises above; one under a dotted path must be read slowly.
        if table.num_rows != len(text):
            return None
        return {path: table[path].combine_chunks() for path in self.paths}

    def _slow(self, index: int, line: str | None, refused: Rejections) -> dict[str, str | None]:
        if line is None:
            return {}
        try:
            record = parse_json(line)
        except ValueError as error:
            refused.add_one(index, "bad_json", json_error_reason(error))
            return {}
        if not isinstance(record, dict):
            refused.add_one(index, "not_an_object")
            return {}
        self._show(record)
        row = {path: _text(value_at(record, path)) for path in self.paths}
        if self._keeps_rest:
            row[_REST] = self._rest(record)
        return row

    def _show(self, record: dict[str, Any]) -> None:
        names = tuple(record)
        if names not in self._shapes:
            if len(self._shapes) < SHAPES:
                self._shapes.add(names)
            self.shown.show(SURROGATE.sub("\ufffd", name) for name in names)
        inside = [path for path in self.shown.lacking(self._dotted) if _has(record, path)]
        if inside:
            self.shown.show(inside)

    def _rest(self, record: dict[str, Any]) -> str | None:
        """Return the fields of a record that are not declared, as JSON; removes the declared ones."""
        for path in self.paths:
            _take(record, path)
        remaining = {name: value for name, value in record.items() if value is not None}
        return SURROGATE.sub("\ufffd", json_text(remaining, ordered=True)) if remaining else None


class Raw(str):
    """The text of a number."""


def parse_json(line: str, around: int = 0) -> Any:
    """Parse a line of JSON, with numbers as `Raw` text.

    Args:
        around: additional levels of nesting beside `DEEPEST`.

    Raises:
        ValueError: it is no JSON, or is nested too deeply; see `json_error_reason`.
    """
    if too_deep(line, DEEPEST + around):
        raise ValueError(f"more than {DEEPEST} arrays and objects in each other")
    return _read(line)


def too_deep(line: str, deepest: int) -> bool:
    """Return whether the arrays and objects of a line are nested more deeply."""
    if line.count("[") + line.count("{") <= deepest:
        return False
    depth = 0
    for bracket in re.findall(r"[\[\]{}]", STRING.sub("", line)):
        depth += 1 if bracket in "[{" else -1
        if depth > deepest:
            return True
    return False


def json_error_reason(error: ValueError) -> str:
    """Return why a line is no JSON, and where, counted from 1; the same in every Python version."""
    if not isinstance(error, json.JSONDecodeError):
        return str(error)
    message, at = error.msg, error.pos
    # Python 3.13 reports the comma, earlier versions the bracket after it.
    if message.startswith("Illegal trailing comma"):
        at = at + 1 + len(error.doc[at + 1 :]) - len(error.doc[at + 1 :].lstrip(" \t\n\r"))
        name = message.endswith("object")
        message = "Expecting property name enclosed in double quotes" if name else "Expecting value"
    return f"{message.removesuffix(' at').removesuffix(': ')} at character {at + 1}"


def is_broken(text: str) -> bool:
    """Return whether a text is truncated JSON, or JSON that is nested too deeply; else it has another
    form."""
    try:
        parse_json(text)
    except json.JSONDecodeError as error:
        unterminated = error.msg.startswith("Unterminated string")
        return unterminated or CUT_OFF.fullmatch(error.doc, error.pos) is not None
    except ValueError:
        pass
    return True


def refuse_constant(constant: str) -> Any:
    """Refuse what Python reads and JSON has not: NaN and the infinities."""
    raise ValueError(f"{constant} is not JSON")


def value_at(record: dict[str, Any], path: str) -> Any:
    """Return what an object has at a path, None where it has nothing; a name with dots goes first."""
    if path in record:
        return record[path]
    first, dot, rest = path.partition(".")
    inside = record.get(first)
    return value_at(inside, rest) if dot and isinstance(inside, dict) else None


def _has(record: dict[str, Any], path: str) -> bool:
    if path in record:
        return True
    first, dot, rest = path.partition(".")
    inside = record.get(first)
    return bool(dot) and isinstance(inside, dict) and _has(inside, rest)


def _take(record: dict[str, Any], path: str) -> None:
    """Remove the value at a path, and its object if nothing else in it has a value."""
    if path in record:
        del record[path]
        return
    first, dot, rest = path.partition(".")
    inside = record.get(first)
    if dot and isinstance(inside, dict) and _has(inside, rest):
        _take(inside, rest)
        record[first] = {name: value for name, value in inside.items() if value is not None} or None


def _read(line: str) -> Any:
    return json.loads(line, parse_float=Raw, parse_int=Raw, parse_constant=refuse_constant)


def same_buffers(first: pa.Array, second: pa.Array) -> bool:
    """Return whether two arrays are the same slice of the same buffers."""
    if (first.offset, len(first)) != (second.offset, len(second)):
        return False
    return [b and b.address for b in first.buffers()] == [b and b.address for b in second.buffers()]


def _text(value: Any) -> str | None:
    if value is None:
        return None
    text = value if isinstance(value, str) else json_text(value)
    # Half a surrogate pair is no character, and no UTF-8.
    return SURROGATE.sub("\ufffd", text)


def json_text(value: Any, ordered: bool = False) -> str:
    """Return a value's shortest JSON text, with numbers unchanged; with `ordered` names are sorted."""
    if isinstance(value, Raw):
        return value
    if isinstance(value, list):
        return "[" + ",".join(json_text(inner, ordered) for inner in value) + "]"
    if isinstance(value, dict):
        items = sorted(value.items()) if ordered else value.items()
        return "{" + ",".join(f"{json_text(name)}:{json_text(inner, ordered)}" for name, inner in items) + "}"
    return json.dumps(value, ensure_ascii=False)


def _time_type(form: str | None) -> pa.DataType:
    return pa.float64() if form in DOUBLES else pa.string()


def _numeric(layout: RecordFormat) -> Iterator[tuple[str, pa.DataType]]:
    """Yield the paths of times that may be numbers, with their type; parts of a joined time are texts."""
    times = [] if layout.time.more else [(layout.time.paths, layout.time.time_format)]
    for paths, form in [*times, *((field.paths, field.time_format) for field in layout.fields)]:
        if form in NUMERIC:
            yield from ((path, NUMERIC[form]) for path in paths)


def _table(data: bytes, schema: pa.Schema) -> pa.Table | None:
    """Return what Arrow reads of some objects; None where it refuses a line."""
    options = pa_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
    read = pa_json.ReadOptions(use_threads=False, block_size=len(data) + 1)
    try:
        return pa_json.read_json(pa.BufferReader(data), read_options=read, parse_options=options)
    except pa.ArrowInvalid:
        return None


def pieces(parser: "JsonLines", text: pa.Array) -> list[pa.Array]:
    """Return runs of lines that are read the same way, halved until each is fast or small."""
    if len(text) <= ALONE or parser.takes(text):
        return [text]
    half = len(text) // 2
    return [*pieces(parser, text[:half]), *pieces(parser, text[half:])]
