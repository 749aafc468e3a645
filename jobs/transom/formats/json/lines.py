"""Parse JSON with an object per line: whole blocks with Arrow's reader, or line by line if it fails.

Arrow's reader requires that every line is well formed and every declared field has its type. A block that it
rejects is halved until few lines remain with the faulty ones. These are read one by one, with a value of any
type as its JSON text. Both ways return the same rows. Messages about refused values contain their text, which
only the second way has.
"""

import json
import re
from collections.abc import Iterable, Mapping
from itertools import accumulate, chain
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json as pa_json

from transom.formats.lines import join_lines
from transom.formats.parser import FieldDrift, ParsedRecords, Parser
from transom.formats.record_format import DOUBLES, EPOCH_OR_ISO, NANOSECONDS, RecordFormat
from transom.formats.rejections import Rejections

_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_HEX = rb"[0-9a-fA-F]{2}"
_HALF = re.compile(rb"(\\u[dD][89abAB]%b\\u[dD][c-fC-F]%b|\\[^u])|\\u[dD][89a-fA-F]%b" % (_HEX, _HEX, _HEX))
"""Matches half of a surrogate pair if the first group is empty."""
ALONE = 2048
"""The block size up to which blocks are not halved: trying fewer lines costs more than it saves."""
DEEPEST = 100
"""Maximum nesting of arrays and objects. Deeper lines are refused, since the limit of a reader depends on its
stack."""
STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
SURROGATE = re.compile("[\ud800-\udfff]")
NUMERIC = {NANOSECONDS: pa.int64(), EPOCH_OR_ISO: pa.float64()}
"""Time formats that may be texts or numbers, and the type of the numbers."""
CUT_OFF = re.compile(r"|t|tr|tru|f|fa|fal|fals|n|nu|nul|-|\.|[eE][+-]?|u[0-9A-Fa-f]{0,4}")
"""Matches the unreadable rest of truncated JSON."""
TYPES = {
    "string": pa.string(), "integer": pa.int64(), "number": pa.float64(), "boolean": pa.bool_(),
    "timestamp": pa.string(),
}  # fmt: skip
"""The Arrow type in JSON of each declared type; times since 1970 are numbers."""


class JsonLines(Parser):
    """Fields by path: a top-level name, or names joined by dots; a name that contains dots takes
    precedence."""

    def __init__(self, layout: RecordFormat) -> None:
        self.drift = FieldDrift(layout, nested=True)
        self._keeps_rest = layout.keep_rest
        time = layout.time
        # The parts of a joined time are texts.
        of_time = ("string", None) if time.more else ("timestamp", time.time_format)
        sources = [
            *((field.paths, field.type, field.time_format) for field in layout.fields),
            *((paths, *of_time) for paths in (time.paths, *time.more)),
            (time.plus, "number", None),
        ]
        types: dict[str, set[pa.DataType]] = {}
        for paths, kind, form in sources:
            type_ = pa.float64() if kind == "timestamp" and form in DOUBLES else TYPES[kind]
            for path in paths:
                types.setdefault(path, set()).add(type_)
        self.paths = tuple(types)
        self._dotted = [path for path in types if "." in path]
        # The schemas to try with Arrow's reader; a path with two types is read line by line.
        self._schemas: list[pa.Schema] = []
        if all(len(kinds) == 1 for kinds in types.values()):
            outer = sorted({path.partition(".")[0] for path in self._dotted} - types.keys())
            columns = {path: kind for path, (kind,) in types.items()} | dict.fromkeys(outer, pa.string())
            # Times of some formats are texts in some logs and numbers in others.
            numeric = {path: NUMERIC[form] for paths, _, form in sources if form in NUMERIC for path in paths}
            self._schemas = [pa.schema(columns), *([pa.schema(columns | numeric)] if numeric else [])]
        self._tried: tuple[pa.Array, Mapping[str, pa.Array] | None] | None = None

    def parts(self, text: pa.Array) -> Iterable[pa.Array]:
        """Return parts of lines that are read in one way, halved until each is fast or small."""
        if len(text) <= ALONE or self.read_fast(text) is not None:
            return [text]
        half = len(text) // 2
        return [*self.parts(text[:half]), *self.parts(text[half:])]

    def parse(self, text: pa.Array, refused: Rejections) -> ParsedRecords:
        """Return every declared field; refuse lines that are no object (`bad_json`, `not_an_object`)."""
        fast = self.read_fast(text)
        if fast is None:
            return self.parse_as_text(text, refused)
        names: set[str] = set()
        for line in join_lines(text).split(b"\n")[:-1]:
            names.update(members(line))
        self.drift.observe(names)
        if not self._keeps_rest:
            return ParsedRecords(fast)
        if names <= set(self.paths):
            return ParsedRecords(fast, pa.nulls(len(text), pa.string()))
        rests = [self._rest(_read(line)) for line in text.to_pylist()]
        return ParsedRecords(fast, pa.array(rests, pa.string()))

    def parse_as_text(self, text: pa.Array, refused: Rejections) -> ParsedRecords:
        """Return the same as `parse`, with every field as text."""
        records = [_record(index, line, refused) for index, line in enumerate(text.to_pylist())]
        objects = [record for record in records if record is not None]
        if objects:
            names = {*chain.from_iterable(objects)}
            self.drift.observe(SURROGATE.sub("\ufffd", name) for name in names)
            nested = self.drift.unobserved(self._dotted)
            self.drift.observe([path for path in nested if any(_holder(record, path) for record in objects)])
        rows = [{} if record is None else record for record in records]
        texts = {path: [_text(value_at(row, path)) for row in rows] for path in self.paths}
        rest = pa.array([self._rest(row) for row in rows], pa.string()) if self._keeps_rest else None
        return ParsedRecords({path: pa.array(values, pa.string()) for path, values in texts.items()}, rest)

    def read_fast(self, text: pa.Array) -> Mapping[str, pa.Array] | None:
        """Return the fields from Arrow's reader, None if it fails; the last result is cached."""
        if self._tried is None or self._tried[0] is not text:
            self._tried = text, self._fast(text)
        return self._tried[1]

    def _fast(self, text: pa.Array) -> Mapping[str, pa.Array] | None:
        if not self._schemas or text.null_count or not len(text):
            return None
        # A line with both brackets of an object cannot extend into the next line.
        if not pc.all(pc.and_(pc.starts_with(text, "{"), pc.ends_with(text, "}"))).as_py():
            return None
        # Arrow's reader accepts these as numbers; JSON has no such values.
        if pc.any(pc.match_substring_regex(text, "NaN|Inf")).as_py():
            return None
        data = join_lines(text)
        # Every line has one bracket: if there are few others, no line can be nested deeply.
        if data.count(b"[") + data.count(b"{") >= len(text) + DEEPEST:
            brackets = pc.add(pc.count_substring(text, "["), pc.count_substring(text, "{"))
            if pc.max(brackets).as_py() > DEEPEST:
                return None
        # Arrow refuses a nested object under a plain name; one under a dotted path must be read slowly.
        tables = (_table(data, schema) for schema in self._schemas)
        table = next((table for table in tables if table is not None), None)
        if table is None or table.num_rows != len(text):
            return None
        return {path: table[path].combine_chunks() for path in self.paths}

    def _rest(self, record: dict[str, Any]) -> str | None:
        """Return the fields of a record that are not declared, as JSON; removes the declared ones."""
        for path in self.paths:
            _remove(record, path)
        remaining = {name: value for name, value in record.items() if value is not None}
        return SURROGATE.sub("\ufffd", json_text(remaining, ordered=True)) if remaining else None


def _record(index: int, line: str | None, refused: Rejections) -> dict[str, Any] | None:
    """Return a line's object; None if it is refused."""
    if line is None:
        return None
    try:
        record = parse_json(line)
    except ValueError as error:
        refused.add_one(index, "bad_json", json_error_reason(error))
        return None
    if isinstance(record, dict):
        return record
    refused.add_one(index, "not_an_object")
    return None


def members(text: bytes) -> Mapping[str, msgspec.Raw]:
    """Return the members of an object; of members with the same name the last.

    Half of a surrogate pair, which is no character, becomes U+FFFD.

    Raises:
        msgspec.ValidationError: the text is no object; what follows is not checked.
        msgspec.DecodeError: the text is not JSON.
    """
    try:
        return _MEMBERS.decode(text)
    except msgspec.DecodeError:
        return _MEMBERS.decode(_HALF.sub(lambda match: match[1] or rb"\ufffd", text))


class Raw(str):
    """The text of a number."""


def parse_json(line: str, around: int = 0) -> Any:
    """Parse a line of JSON, with numbers as `Raw` text.

    Args:
        line: the text.
        around: the number of additional levels, above `DEEPEST`.

    Raises:
        ValueError: it is not JSON, or is nested too deeply; see `json_error_reason`.
    """
    refuse_too_deep(line, around)
    return _read(line)


def refuse_too_deep(line: str, around: int) -> None:
    """Raise a ValueError if the arrays and objects of a line are nested too deeply; see `parse_json`."""
    if line.count("[") + line.count("{") > DEEPEST + around:
        brackets = re.findall(r"[\[\]{}]", STRING.sub("", line))
        depths = accumulate(1 if bracket in "[{" else -1 for bracket in brackets)
        if max(depths, default=0) > DEEPEST + around:
            raise ValueError(f"more than {DEEPEST} arrays and objects in each other")


def json_error_reason(error: ValueError) -> str:
    """Return why a line is not JSON, and where, counted from 1; the same in every Python version."""
    if not isinstance(error, json.JSONDecodeError):
        return str(error)
    message, at = error.msg, error.pos
    # Python 3.13 reports the comma, earlier versions the bracket after it.
    if message.startswith("Illegal trailing comma"):
        at = len(error.doc) - len(error.doc[at + 1 :].lstrip(" \t\n\r"))
        in_object = message.endswith("object")
        message = "Expecting property name enclosed in double quotes" if in_object else "Expecting value"
    return f"{message.removesuffix(' at').removesuffix(': ')} at character {at + 1}"


def is_broken(text: str) -> bool:
    """Return whether a text is JSON that is truncated or nested too deeply; other texts are no JSON.

    >>> is_broken('{"a": [1'), is_broken("{not json}")
    (True, False)
    """
    try:
        parse_json(text)
    except json.JSONDecodeError as error:
        unterminated = error.msg.startswith("Unterminated string")
        return unterminated or CUT_OFF.fullmatch(error.doc, error.pos) is not None
    except ValueError:
        pass
    return True


def value_at(record: dict[str, Any], path: str) -> Any:
    """Return the value of an object at a path, None if it has none; a name with dots takes precedence.

    >>> value_at({"a": {"b": 1}}, "a.b"), value_at({"a.b": 2, "a": {"b": 1}}, "a.b")
    (1, 2)
    """
    holder = _holder(record, path)
    return holder and holder[0][holder[1]]


def _holder(record: dict[str, Any], path: str) -> tuple[dict[str, Any], str] | None:
    """Return the object that has the value at a path, and its name there; None if the path has no value."""
    while path not in record:
        first, dot, path = path.partition(".")
        inner = record.get(first)
        if not dot or not isinstance(inner, dict):
            return None
        record = inner
    return record, path


def _remove(record: dict[str, Any], path: str) -> None:
    """Remove the value at a path, and its object if nothing else in it has a value."""
    if path in record:
        del record[path]
        return
    first, dot, rest = path.partition(".")
    inner = record.get(first)
    if dot and isinstance(inner, dict) and _holder(inner, rest):
        _remove(inner, rest)
        record[first] = {name: value for name, value in inner.items() if value is not None} or None


def _refuse_constant(constant: str) -> Any:
    """Refuse NaN and the infinities, which Python reads and JSON does not have."""
    raise ValueError(f"{constant} is not JSON")


def _read(line: str) -> Any:
    return json.loads(line, parse_float=Raw, parse_int=Raw, parse_constant=_refuse_constant)


def _text(value: Any) -> str | None:
    if value is None:
        return None
    text = value if isinstance(value, str) else json_text(value)
    # Half of a surrogate pair is no character, and not UTF-8.
    return SURROGATE.sub("\ufffd", text)


def json_text(value: Any, ordered: bool = False) -> str:
    """Return a value's shortest JSON text, with numbers unchanged; with `ordered`, names are sorted.

    >>> json_text({"b": Raw("1.50"), "a": [True]}, ordered=True)
    '{"a":[true],"b":1.50}'
    """
    if isinstance(value, Raw):
        return value
    if isinstance(value, list):
        return "[" + ",".join(json_text(inner, ordered) for inner in value) + "]"
    if isinstance(value, dict):
        items = sorted(value.items()) if ordered else value.items()
        return "{" + ",".join(f"{json_text(name)}:{json_text(inner, ordered)}" for name, inner in items) + "}"
    return json.dumps(value, ensure_ascii=False)


def _table(data: bytes, schema: pa.Schema) -> pa.Table | None:
    """Return the table that Arrow reads from some objects; None if it refuses a line."""
    options = pa_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
    read = pa_json.ReadOptions(use_threads=False, block_size=len(data) + 1)
    try:
        return pa_json.read_json(pa.BufferReader(data), read_options=read, parse_options=options)
    except pa.ArrowInvalid:
        return None
