"""Parse a record in a text field of another record, such as JSON in a container's log line.

The option `embedded: {field: log, format: json}` names the field. Its fields are then `log.level` and so on,
as if the text were an object. A text of another form has none of them, such as `{} items` or `{not json}`:
logs mix both kinds of lines. JSON that ends too early is refused, so that truncated lines are noticed.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from transom.formats import parsed_records as rest
from transom.formats.embedded_option import Inside
from transom.formats.field_drift import MAX_NAMES, FieldDrift
from transom.formats.json import lines as json_lines
from transom.formats.json.lines import JsonLines, json_text, parse_json, same_buffers
from transom.formats.parsed_records import ParsedRecords
from transom.formats.parser import Parser
from transom.formats.record_format import EventTime, Field, RecordFormat
from transom.formats.typed_columns import Rejections, mask

BLANKS = " \t\r\n"
OBJECT = r'^\{[ \t\r\n]*(?:"|\}?$)'
"""The beginning of an object, whole or truncated. Few other texts match, and the parser rejects them."""
TEXT = "\0text"
"""The name of the text field in the outer layout; no column has it."""


class EmbeddedNames(FieldDrift):
    """The names in records and in their embedded texts."""

    def __init__(self, layout: RecordFormat, given: Inside, outer: FieldDrift, inner: FieldDrift) -> None:
        super().__init__(layout)
        self._layout, self._given, self._outer, self._inner = layout, given, outer, inner

    @property
    def unknown(self) -> tuple[str, ...]:
        """Unknown names of both; none of the texts if a column has them whole."""
        whole = self._given.field in self._layout.paths
        inner = () if whole else (f"{self._given.prefix}{name}" for name in self._inner.unknown)
        return tuple(sorted((*self._outer.unknown, *inner))[:MAX_NAMES])

    @property
    def absent(self) -> tuple[str, ...]:
        """Declared columns without a path in either."""
        if not self._outer.any_record:
            return ()
        return tuple(
            column.name
            for column in self._layout.fields
            if _lacks(self._outer, _outer(column.paths, self._given))
            and _lacks(self._inner, _inner(column.paths, self._given))
        )


class Embedded:
    """Fields of the records, and those of the embedded text below the field's path."""

    def __init__(self, layout: RecordFormat, given: Inside, make: Callable[[RecordFormat], Parser]) -> None:
        """Read a layout with the option.

        Args:
            make: makes the parser of a layout without it.
        """
        self.given = given
        self.outer = make(_outer_layout(layout, given))
        self.inner = make(_inner_layout(layout, given))
        self._layout = layout
        self.shown: FieldDrift = EmbeddedNames(layout, given, self.outer.shown, self.inner.shown)
        self._tried: tuple[pa.Array, _Texts] | None = None

    def __copy__(self) -> "Embedded":
        """Return a copy for another thread: parsers cache what they read last."""
        clone = object.__new__(Embedded)
        clone.__dict__ |= self.__dict__
        clone.outer, clone.inner, clone._tried = copy(self.outer), copy(self.inner), None
        return clone

    @property
    def columns(self) -> frozenset[str]:
        """The names of the outer format's header."""
        return self.outer.columns

    def header(self, text: pa.Array) -> int:
        """Return the number of header lines of the outer format at the beginning."""
        return self.outer.header(text)

    def parts(self, text: pa.Array) -> Iterator[pa.Array]:
        """Yield runs of lines whose JSON is read the same way."""
        outer = json_lines.pieces(self.outer, text) if isinstance(self.outer, JsonLines) else [text]
        for piece in outer:
            if not isinstance(self.inner, JsonLines):
                yield piece
                continue
            texts = self._texts(piece)
            ends = np.cumsum([len(part) for part in json_lines.pieces(self.inner, texts.strings)])
            # The last run includes the lines after its last text.
            cuts = [0, *texts.rows[ends[:-1]].tolist(), len(piece)]
            for start, end in pairwise(cuts):
                yield piece[start:end]

    def parse(self, text: pa.Array, refused: Rejections) -> ParsedRecords:
        """Return every declared field of the lines and of their texts."""
        texts = self._texts(text)
        bad = texts.refused.any & ~refused.any
        refused.any |= bad
        refused.put(np.flatnonzero(bad), texts.refused.of(bad))
        return self._joined(texts, self.inner.parse, refused)

    def parse_line_by_line(self, text: pa.Array, refused: Rejections) -> ParsedRecords:
        """Return the same as `parse`, with all JSON as text."""
        outer = self.outer.parse_line_by_line if isinstance(self.outer, JsonLines) else self.outer.parse
        inner = self.inner.parse_line_by_line if isinstance(self.inner, JsonLines) else self.inner.parse
        return self._joined(self._read(text, outer(text, refused), refused), inner, refused)

    def _texts(self, text: pa.Array) -> "_Texts":
        """Return the texts in lines; the last result is cached."""
        if self._tried is None or not same_buffers(self._tried[0], text):
            refused = Rejections.none(len(text))
            self._tried = text, self._read(text, self.outer.parse(text, refused), refused)
        return self._tried[1]

    def _read(self, text: pa.Array, records: ParsedRecords, refused: Rejections) -> "_Texts":
        values = records.fields.get(self.given.field)
        strings = pa.nulls(len(text), pa.string()) if values is None else values.cast(pa.string())
        trimmed = pc.utf8_trim(strings, BLANKS)
        is_record = mask(pc.is_valid(trimmed)) & ~refused.any
        if self.given.format == "json":
            is_record &= mask(pc.match_substring_regex(trimmed, OBJECT))
        rows = np.flatnonzero(is_record)
        return _Texts(records, refused, strings, rows, _lines(trimmed.take(pa.array(rows))))

    def _joined(
        self, texts: "_Texts", parse: Callable[[pa.Array, Rejections], ParsedRecords], refused: Rejections
    ) -> ParsedRecords:
        """Join both records of each line; refuse lines whose text begins in its form and breaks it."""
        inner_refused = Rejections.none(len(texts.rows))
        inner = parse(texts.strings, inner_refused)
        count = len(refused.any)
        place = np.full(count, -1, dtype=np.int64)
        place[texts.rows] = np.arange(len(texts.rows))
        for index in np.flatnonzero(inner_refused.any).tolist():
            row = int(texts.rows[index])
            reason = inner_refused.reason[index]
            if reason == "bad_json" and not json_lines.is_broken(texts.strings[index].as_py()):
                place[row] = -1
            elif reason != "no_match":
                refused.add_one(row, reason)
                words = inner_refused.detail[index] or reason.replace("_", " ")
                refused.detail[row] = f"{words} of {self.given.field}"
        take = pa.array(place, mask=place < 0)
        fields = {
            f"{self.given.prefix}{path}": values.take(take)
            for path, values in inner.fields.items()
            if f"{self.given.prefix}{path}" in self._layout.paths
        }
        remainder = self._rest(texts, inner, take) if self._layout.keep_rest else None
        return ParsedRecords({**texts.records.fields, **fields}, remainder)

    def _rest(self, texts: "_Texts", inner: ParsedRecords, take: pa.Array) -> pa.Array:
        """Return the fields of each line that no column takes; those of the text below the field's name."""
        outer_rest = texts.records.rest
        if outer_rest is None:
            paths = _outer_layout(self._layout, self.given).paths
            outer_rest = rest.of_fields(texts.records.fields, paths, len(take))
        if self.given.field in self._layout.paths:
            return outer_rest
        inner_rest = inner.rest
        if inner_rest is None:
            paths = _inner_layout(self._layout, self.given).paths
            inner_rest = rest.of_fields(inner.fields, paths, len(texts.rows))
        read = mask(pc.is_valid(take))
        rests: list[str | None] = []
        rows = zip(
            outer_rest.to_pylist(),
            inner_rest.take(take).to_pylist(),
            texts.all.to_pylist(),
            read,
            strict=True,
        )
        for outer, below, text, is_read in rows:
            value = (parse_json(below) if below is not None else None) if is_read else text
            whole = {**({} if outer is None else parse_json(outer)), self.given.field: value}
            whole = {name: member for name, member in whole.items() if member is not None}
            rests.append(json_text(whole, ordered=True) if whole else None)
        return pa.array(rests, pa.string())


@dataclass(frozen=True)
class _Texts:
    """The result of the outer parser for some lines.

    Attributes:
        all: the text field of each line.
        rows: the lines whose text is of the form.
        strings: the texts of these.
    """

    records: ParsedRecords
    refused: Rejections
    all: pa.Array
    rows: npt.NDArray[np.int64]
    strings: pa.Array


def _lines(texts: pa.Array) -> pa.Array:
    """Return texts of which none goes over several lines: JSON that does is written anew."""
    several = np.flatnonzero(mask(pc.match_substring(texts, "\n")))
    if not len(several):
        return texts
    written = texts.to_pylist()
    for index in several.tolist():
        try:
            written[index] = json_lines.SURROGATE.sub("\ufffd", json_text(parse_json(written[index])))
        except ValueError:
            continue
    return pa.array(written, pa.string())


def _lacks(names: FieldDrift, paths: Sequence[str]) -> bool:
    return len(names.lacking(paths)) == len(paths)


def _outer(paths: Iterable[str], given: Inside) -> tuple[str, ...]:
    return tuple(path for path in paths if not path.startswith(given.prefix))


def _inner(paths: Iterable[str], given: Inside) -> tuple[str, ...]:
    return tuple(path.removeprefix(given.prefix) for path in paths if path.startswith(given.prefix))


def _part(
    layout: RecordFormat, given: Inside, paths_of: Callable[[Iterable[str], Inside], tuple[str, ...]]
) -> tuple[tuple[Field, ...], EventTime]:
    fields = [replace(column, paths=paths_of(column.paths, given)) for column in layout.fields]
    time = replace(
        layout.time,
        paths=paths_of(layout.time.paths, given),
        plus=paths_of(layout.time.plus, given),
        more=tuple(paths_of(paths, given) for paths in layout.time.more),
    )
    return tuple(column for column in fields if column.paths), time


def _outer_layout(layout: RecordFormat, given: Inside) -> RecordFormat:
    fields, time = _part(layout, given, _outer)
    options = {name: value for name, value in layout.options.items() if name != "embedded"}
    return replace(layout, fields=(*fields, Field(TEXT, (given.field,))), time=time, options=options)


def _inner_layout(layout: RecordFormat, given: Inside) -> RecordFormat:
    fields, time = _part(layout, given, _inner)
    return replace(layout, format=given.format, fields=fields, time=time, options=given.options)
