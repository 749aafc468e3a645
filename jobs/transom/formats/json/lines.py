"""JSON, an object a line: Arrow's reader over whole blocks, and line by line where it refuses.

Arrow's reader wants every line well formed and every declared field of its type. A block that it
refuses is halved until few lines stand with the ones at fault; those are read one by one, where any
type is taken by its JSON text. Both ways give the same rows; what is said of a refused value is its
text, which only the second way has.
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
"""Lines that are tried together last: fewer cost more in tries than they save of the slow way."""
DEEPEST = 100
"""Arrays and objects in each other; a line with more is refused, since how many can be read depends on
the reader and its stack."""
SHAPES = 1000
"""Different lists of names that are remembered, so that lines which have the same are looked at once."""
_REST = "\0rest"
"""Under which a row holds what is kept of it beside its fields; no path, since paths are of the file."""
STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
SURROGATE = re.compile("[\ud800-\udfff]")
NUMERIC = {NANOSECONDS: pa.int64(), EPOCH_OR_ISO: pa.float64()}
"""Forms of times that are texts or numbers, and the type of the numbers."""
CUT_OFF = re.compile(r"|t|tr|tru|f|fa|fal|fals|n|nu|nul|-|\.|[eE][+-]?|u[0-9A-Fa-f]{0,4}")
"""What is left of JSON from where it cannot be read to its end, where it was cut off."""
TYPES = {"string": pa.string(), "integer": pa.int64(), "number": pa.float64(), "boolean": pa.bool_()}


class JsonLines:
    """Fields by their path: a top-level name, or names joined by dots; a name with dots goes first."""

    def __init__(self, layout: RecordFormat) -> None:
        wanted: dict[str, set[pa.DataType]] = {}
        for field in layout.fields:
            kind = TYPES.get(field.type) or _time_type(field.time_format)
            for path in field.paths:
                wanted.setdefault(path, set()).add(kind)
        # Joined texts are texts each.
        when = pa.string() if layout.time.more else _time_type(layout.time.time_format)
        for path in chain(layout.time.paths, *layout.time.more):
            wanted.setdefault(path, set()).add(when)
        for path in layout.time.plus:
            wanted.setdefault(path, set()).add(pa.float64())
        self.paths = tuple(wanted)
        nested = any("." in path for path in wanted)
        # A field under two types, or one that may be nested, is read line by line or by the whole name.
        self.schema = (
            None
            if any(len(kinds) > 1 for kinds in wanted.values())
            else pa.schema([(path, next(iter(kinds))) for path, kinds in wanted.items()])
        )
        # Times of some forms are texts in some logs and numbers in others.
        self._numeric = dict(_numeric(layout))
        self.inner = {path.partition(".")[0] for path in wanted if "." in path} if nested else set()
        self.columns: frozenset[str] = frozenset()
        self.shown = FieldDrift(layout, nested=True)
        self._dotted = [path for path in wanted if "." in path]
        self._shapes: set[tuple[str, ...]] = set()
        self._keeps_rest = layout.keep_rest
        self._tried: tuple[pa.Array, Mapping[str, pa.Array] | None] | None = None

    def header(self, text: pa.Array) -> int:
        """The format has no header lines."""
        return 0

    def parse(self, text: pa.Array, refused: Rejections) -> ParsedRecords:
        """Every wanted field; lines that are no object are refused (`bad_json`, `not_an_object`)."""
        fast = self._once(text)
        if fast is None:
            return self.one_by_one(text, refused)
        names = top_names(joined(text))
        self.shown.show(names)
        if not self._keeps_rest:
            return ParsedRecords(fast)
        if names <= set(self.paths):
            return ParsedRecords(fast, pa.nulls(len(text), pa.string()))
        kept = [self._rest(_read(line)) for line in text.to_pylist()]
        return ParsedRecords(fast, pa.array(kept, pa.string()))

    def one_by_one(self, text: pa.Array, refused: Rejections) -> ParsedRecords:
        """Every wanted field as text, as `parse` has it."""
        rows = [self._slow(index, line, refused) for index, line in enumerate(text.to_pylist())]
        fields = {path: pa.array([row.get(path) for row in rows], pa.string()) for path in self.paths}
        return ParsedRecords(fields, pa.array([row.get(_REST) for row in rows], pa.string()))

    def takes(self, text: pa.Array) -> bool:
        """Whether the fast way can read these lines."""
        return self._once(text) is not None

    def _once(self, text: pa.Array) -> Mapping[str, pa.Array] | None:
        """What the fast way gives of lines; asked a second time for the same, it does not read again."""
        if self._tried is None or not same_buffers(self._tried[0], text):
            self._tried = text, self._fast(text)
        return self._tried[1]

    def _fast(self, text: pa.Array) -> Mapping[str, pa.Array] | None:
        if self.schema is None or text.null_count or not len(text):
            return None
        # A line that begins and ends an object cannot run on into the next one.
        if not pc.all(pc.and_(pc.starts_with(text, "{"), pc.ends_with(text, "}"))).as_py():
            return None
        # Arrow's reader takes these for numbers; JSON does not know them.
        if pc.any(pc.match_substring_regex(text, "NaN|Inf")).as_py():
            return None
        data = joined(text)
        # Every line has a bracket of its own: where there are few others, no line can hold many.
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
        """What a record holds beside the wanted fields, which are taken out of it."""
        for path in self.paths:
            _take(record, path)
        left = {name: value for name, value in record.items() if value is not None}
        return SURROGATE.sub("\ufffd", json_text(left, ordered=True)) if left else None


class Raw(str):
    """A number's own text."""


def parse_json(line: str, around: int = 0) -> Any:
    """What a line says, numbers as their own text.

    Args:
        around: arrays and objects that it may have in each other beside `DEEPEST`.

    Raises:
        ValueError: it is no JSON, or has more in each other; `json_error_reason` tells it.
    """
    if too_deep(line, DEEPEST + around):
        raise ValueError(f"more than {DEEPEST} arrays and objects in each other")
    return _read(line)


def too_deep(line: str, deepest: int) -> bool:
    """Whether a line has more arrays and objects in each other."""
    if line.count("[") + line.count("{") <= deepest:
        return False
    depth = 0
    for bracket in re.findall(r"[\[\]{}]", STRING.sub("", line)):
        depth += 1 if bracket in "[{" else -1
        if depth > deepest:
            return True
    return False


def json_error_reason(error: ValueError) -> str:
    """Why a line is no JSON, and where, counted from 1: the same in every Python."""
    if not isinstance(error, json.JSONDecodeError):
        return str(error)
    message, at = error.msg, error.pos
    # Python 3.13 tells of a comma what those before it tell of the bracket behind it.
    if message.startswith("Illegal trailing comma"):
        at = at + 1 + len(error.doc[at + 1 :]) - len(error.doc[at + 1 :].lstrip(" \t\n\r"))
        name = message.endswith("object")
        message = "Expecting property name enclosed in double quotes" if name else "Expecting value"
    return f"{message.removesuffix(' at').removesuffix(': ')} at character {at + 1}"


def is_broken(text: str) -> bool:
    """Whether a text is JSON that was cut off, or that says more than is read; else it is of another form."""
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
    """Takes out what stands at a path, and the object around it where nothing else has a value there."""
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


def same_buffers(one: pa.Array, other: pa.Array) -> bool:
    """Whether two arrays are one stretch of the same buffers."""
    if (one.offset, len(one)) != (other.offset, len(other)):
        return False
    return [b and b.address for b in one.buffers()] == [b and b.address for b in other.buffers()]


def _text(value: Any) -> str | None:
    if value is None:
        return None
    text = value if isinstance(value, str) else json_text(value)
    # Half a surrogate pair is no character, and no UTF-8.
    return SURROGATE.sub("\ufffd", text)


def json_text(value: Any, ordered: bool = False) -> str:
    """A value's shortest JSON text, with its numbers as they are written; `ordered`, with sorted names."""
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
    """Yield the paths of times that may be numbers, and their type then; joined texts are texts each."""
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
    """Runs of lines that are read the same way, halved until each is fast or small."""
    if len(text) <= ALONE or parser.takes(text):
        return [text]
    half = len(text) // 2
    return [*pieces(parser, text[:half]), *pieces(parser, text[half:])]
