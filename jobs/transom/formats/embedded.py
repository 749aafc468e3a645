"""Parse a record in a text field of another record, such as JSON in a container's log line.

The option `embedded: {field: log, format: json}` names the field. Its fields are then `log.level` and so on,
as if the text were an object. A text of another form, such as `{} items` or `{not json}`, has no fields:
logs mix both kinds of lines. JSON that ends too early is refused, so that truncated lines are reported.
"""

from collections.abc import Callable, Iterable, Iterator
from copy import copy
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transom.formats.json.lines import SURROGATE, is_broken, json_text, parse_json
from transom.formats.parser import MAX_NAMES, FieldDrift, ParsedRecords, Parser, rest_of
from transom.formats.record_format import EmbeddedFormat, Field, RecordFormat
from transom.formats.rejections import Int64s, Rejections, mask

BLANKS = " \t\r\n"
OBJECT = r'^\{[ \t\r\n]*(?:"|\}?$)'
"""The beginning of an object, whole or truncated. Few other texts match, and the parser rejects them."""
TEXT = "\0text"
"""The name of the text field in the outer layout; no column has it."""

ParseFunction = Callable[[pa.Array, Rejections], ParsedRecords]


@dataclass(frozen=True)
class _Texts:
    """The result of the outer parser for some lines.

    Attributes:
        records: the fields of the lines.
        refused: the lines that the outer parser refuses.
        all: the text field of each line.
        rows: the lines whose text may be a record.
        strings: the texts of these lines.
    """

    records: ParsedRecords
    refused: Rejections
    all: pa.Array
    rows: Int64s
    strings: pa.Array


class Embedded(Parser):
    """Fields of the records, and those of the embedded text below the field's path."""

    def __init__(
        self, layout: RecordFormat, embedded: EmbeddedFormat, make: Callable[[RecordFormat], Parser]
    ) -> None:
        """Create the parser of a layout with the option.

        Args:
            layout: the layout.
            embedded: the value of the option.
            make: creates the parser of a layout without it.
        """
        self.embedded = embedded
        self.outer_layout, self.inner_layout = _layouts(layout, embedded)
        self.outer, self.inner = make(self.outer_layout), make(self.inner_layout)
        self._layout = layout
        self.drift = EmbeddedDrift(self)
        self._tried: tuple[pa.Array, _Texts] | None = None

    def __copy__(self) -> "Embedded":
        """Return a copy for another thread: parsers cache their last result."""
        clone = object.__new__(Embedded)
        clone.__dict__ |= self.__dict__
        clone.outer, clone.inner, clone._tried = copy(self.outer), copy(self.inner), None
        return clone

    @property
    def columns(self) -> frozenset[str]:
        """The names of the outer format's header."""
        return self.outer.columns

    def bodies(self, text: pa.Array) -> Iterator[tuple[int, int]]:
        """Yield the lines between header lines of the outer format."""
        return self.outer.bodies(text)

    def parts(self, text: pa.Array) -> Iterator[pa.Array]:
        """Yield parts of lines, each of which both parsers read in one way."""
        for part in self.outer.parts(text):
            texts = self._texts(part)
            ends = np.cumsum([len(inner) for inner in self.inner.parts(texts.strings)])
            if len(ends) == 1:
                yield part
                continue
            # The last run includes the lines after its last text.
            for start, end in pairwise([0, *texts.rows[ends[:-1]].tolist(), len(part)]):
                yield part[start:end]

    def parse(self, text: pa.Array, refused: Rejections) -> ParsedRecords:
        """Return every declared field of the lines and of their texts."""
        texts = self._texts(text)
        new = texts.refused.any & ~refused.any
        refused[new] = texts.refused[new]
        return self._joined(texts, self.inner.parse, refused)

    def parse_as_text(self, text: pa.Array, refused: Rejections) -> ParsedRecords:
        """Return the same as `parse`, with all JSON as text."""
        texts = self._read(text, self.outer.parse_as_text(text, refused), refused)
        return self._joined(texts, self.inner.parse_as_text, refused)

    def _texts(self, text: pa.Array) -> _Texts:
        """Return the texts in lines; the last result is cached."""
        if self._tried is None or self._tried[0] is not text:
            refused = Rejections.none(len(text))
            self._tried = text, self._read(text, self.outer.parse(text, refused), refused)
        return self._tried[1]

    def _read(self, text: pa.Array, records: ParsedRecords, refused: Rejections) -> _Texts:
        values = records.fields.get(self.embedded.field)
        strings = pa.nulls(len(text), pa.string()) if values is None else values.cast(pa.string())
        trimmed = pc.utf8_trim(strings, BLANKS)
        is_record = mask(pc.is_valid(trimmed)) & ~refused.any
        if self.embedded.format == "json":
            is_record &= mask(pc.match_substring_regex(trimmed, OBJECT))
        rows = np.flatnonzero(is_record)
        return _Texts(records, refused, strings, rows, _single_lines(trimmed.take(pa.array(rows))))

    def _joined(self, texts: _Texts, parse: ParseFunction, refused: Rejections) -> ParsedRecords:
        """Join both records of each line; refuse lines whose text begins like a record and breaks off."""
        field, prefix = self.embedded.field, self.embedded.prefix
        inner_refused = Rejections.none(len(texts.rows))
        inner = parse(texts.strings, inner_refused)
        index_of_row = np.full(len(refused.any), -1)
        index_of_row[texts.rows] = np.arange(len(texts.rows))
        for index in np.flatnonzero(inner_refused.any).tolist():
            reason = inner_refused.reason[index]
            row = int(texts.rows[index])
            if reason == "bad_json" and not is_broken(texts.strings[index].as_py()):
                index_of_row[row] = -1
            elif reason != "no_match":
                refused.add_one(row, reason)
                refused.detail[row] = f"{inner_refused.detail[index] or reason.replace('_', ' ')} of {field}"
        indices = pa.array(index_of_row, mask=index_of_row < 0)
        below = {f"{prefix}{path}": values for path, values in inner.fields.items()}
        fields = {path: values.take(indices) for path, values in below.items() if path in self._layout.paths}
        remainder = self._rest(texts, inner, indices) if self._layout.keep_rest else None
        return ParsedRecords({**texts.records.fields, **fields}, remainder)

    def _rest(self, texts: _Texts, inner: ParsedRecords, indices: pa.Array) -> pa.Array:
        """Return the fields of each line that no column uses; those of the text below the field's name."""
        outer_rest = texts.records.rest
        if outer_rest is None:
            outer_rest = rest_of(texts.records.fields, self.outer_layout.paths, len(indices))
        field = self.embedded.field
        if field in self._layout.paths:
            return outer_rest
        inner_rest = inner.rest
        if inner_rest is None:
            inner_rest = rest_of(inner.fields, self.inner_layout.paths, len(texts.rows))
        columns = (outer_rest, inner_rest.take(indices), texts.all, pc.is_valid(indices))
        rests: list[str | None] = []
        for outer, below, text, is_record in zip(*(column.to_pylist() for column in columns), strict=True):
            value = (None if below is None else parse_json(below)) if is_record else text
            whole = {**({} if outer is None else parse_json(outer)), field: value}
            whole = {name: member for name, member in whole.items() if member is not None}
            rests.append(json_text(whole, ordered=True) if whole else None)
        return pa.array(rests, pa.string())


class EmbeddedDrift(FieldDrift):
    """The names in records and in their embedded texts."""

    def __init__(self, parser: Embedded) -> None:
        super().__init__(parser._layout)
        self._parser = parser

    @property
    def unknown(self) -> tuple[str, ...]:
        """Unknown names of both; none of the texts if a column has the whole text."""
        embedded, outer, inner = self._parser.embedded, self._parser.outer.drift, self._parser.inner.drift
        of_texts = () if embedded.field in self.paths else inner.unknown
        names = (*outer.unknown, *(f"{embedded.prefix}{name}" for name in of_texts))
        return tuple(sorted(names)[:MAX_NAMES])

    @property
    def absent(self) -> tuple[str, ...]:
        """Declared columns without a path in either."""
        outer, inner = self._parser.outer.drift, self._parser.inner.drift
        if not outer.any_record:
            return ()
        of_texts = (f"{self._parser.embedded.prefix}{path}" for path in inner.unobserved(inner.paths))
        unobserved = {*outer.unobserved(outer.paths), *of_texts}
        return tuple(name for name, paths in self._columns.items() if unobserved.issuperset(paths))


def _single_lines(texts: pa.Array) -> pa.Array:
    """Return texts; JSON over several lines is written in one line."""
    several = np.flatnonzero(mask(pc.match_substring(texts, "\n")))
    if not len(several):
        return texts
    lines = texts.to_pylist()
    for index in several.tolist():
        try:
            lines[index] = SURROGATE.sub("\ufffd", json_text(parse_json(lines[index])))
        except ValueError:
            continue
    return pa.array(lines, pa.string())


def _layouts(layout: RecordFormat, embedded: EmbeddedFormat) -> tuple[RecordFormat, RecordFormat]:
    """Return the layout of the records without their texts, and that of the texts."""

    def part(inner: bool) -> RecordFormat:
        def select(paths: Iterable[str]) -> tuple[str, ...]:
            prefix = embedded.prefix
            return tuple(path.removeprefix(prefix) for path in paths if path.startswith(prefix) == inner)

        time, more = layout.time, tuple(map(select, layout.time.more))
        time = replace(time, paths=select(time.paths), plus=select(time.plus), more=more)
        fields = (replace(field, paths=select(field.paths)) for field in layout.fields)
        return replace(layout, fields=tuple(field for field in fields if field.paths), time=time)

    outer, options = part(inner=False), {**layout.options}
    del options["embedded"]
    outer = replace(outer, fields=(*outer.fields, Field(TEXT, (embedded.field,))), options=options)
    return outer, replace(part(inner=True), format=embedded.format, options=embedded.options)
