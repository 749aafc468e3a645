"""Read one file: yield parsed and typed blocks of lines, and a summary at the end."""

from codecs import getincrementaldecoder
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from itertools import pairwise
from typing import BinaryIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from transom.core.concurrency import ordered_map
from transom.core.intervals import EPOCH
from transom.formats import event_time as moments
from transom.formats import parsed_records as rest
from transom.formats.apache import Apache
from transom.formats.delimited import Csv, ZeekTsv
from transom.formats.embedded import Embedded
from transom.formats.embedded_option import inside
from transom.formats.json import lines as json_lines
from transom.formats.json.lines import JsonLines
from transom.formats.json.record_paths import around
from transom.formats.json.records import Text, explode_records
from transom.formats.key_value import KeyValue
from transom.formats.lines import (
    BLOCK,
    LONGEST,
    MARK,
    MAX_RAW_BYTES,
    ByteStats,
    Lines,
    blocks,
    decompressed,
    split,
    without_holes,
)
from transom.formats.parsed_records import ParsedRecords
from transom.formats.parser import Parser
from transom.formats.record_format import REST, RecordFormat, Span
from transom.formats.regex import Regex
from transom.formats.repeated_hour import Order
from transom.formats.syscalls import Syscalls
from transom.formats.typed_columns import ARROW, Rejections, column, mask
from transom.formats.w3c import W3c

MICROSECOND = timedelta(microseconds=1)
REJECTED = pa.schema(
    [("source_line", pa.int64()), *((name, pa.string()) for name in ("raw", "reason", "column", "detail"))]
)
NO_NUL = "text, which has no NUL bytes inside of a line"
PARSERS: dict[str, Callable[[RecordFormat], "Parser"]] = {
    "apache": Apache,
    "csv": Csv,
    "json": JsonLines,
    "regex": Regex,
    "kv": KeyValue,
    "syscalls": Syscalls,
}


@dataclass(frozen=True)
class Chunk:
    """The rows of some lines.

    Attributes:
        events: event_time, the layout's fields, the rest if it is kept, source_line.
        rejected: source_line, raw, reason, column, detail.
        shifts: the microseconds to add to each event's time if it means the second one of a repeated hour;
            None if no time is in a repeated hour, or the order of lines is already applied.
    """

    events: pa.RecordBatch
    rejected: pa.RecordBatch
    shifts: npt.NDArray[np.int64] | None = None


@dataclass(frozen=True)
class FileSummary:
    """The summary of a file; `lines = header_lines + accepted + rejected`.

    If lines contain records (`records` of json), each record counts as a line.

    Attributes:
        sha256: of the decompressed bytes, as far as they are readable.
        columns: field names from a header; empty for formats without one.
        broken: why it could not be read to its end.
        prefix_digests: the digest of the first n bytes, for each requested length.
        unknown: names of fields that no column and no time takes, sorted, at most 100; for JSON the top-level
            names.
        absent: declared columns without a path in any record; empty for a file without records.
        ambiguous: the number of events with a time in a repeated hour that cannot be resolved.
        ambiguous_line: the line of the first of them.
        nul_bytes: the number of skipped NUL bytes at the beginning of lines.
    """

    sha256: str
    bytes: int
    lines: int
    header_lines: int
    accepted: int
    rejected: int
    columns: tuple[str, ...]
    broken: str | None
    prefix_digests: dict[int, str]
    unknown: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    ambiguous: int = 0
    ambiguous_line: int | None = None
    nul_bytes: int = 0


def read_file(
    source: BinaryIO,
    name: str,
    layout: RecordFormat,
    span: Span | None,
    *,
    start: datetime | None = None,
    captures: Mapping[str, str] | None = None,
    known: Sequence[int] = (),
    block: int = BLOCK,
    threads: int = 1,
) -> Iterator[Chunk | FileSummary]:
    """Read a file to its end.

    Args:
        source: the stored bytes; the suffix of `name` tells the compression (.gz, .zst).
        span: rows outside are refused; None for no bound.
        start: the start of the period in the file's name, from which times by lines may count.
        captures: the captures of the file's path, for times.
        known: decompressed lengths at which to compute a prefix digest.
        block: decompressed bytes that are parsed at a time; no result depends on it.
        threads: the number of threads, each of which parses a block at a time, at least 1; no result depends
            on it.

    Yields:
        Chunks in the order of the lines, then one FileSummary.
    """
    file = _File(layout, _FileContext(layout, span, start, captures or {}), ByteStats(known))
    accepted = rejected = 0
    order = Order()
    for chunks in ordered_map(file.jobs(source, name, block), threads):
        for chunk in chunks:
            chunk = _resolved(chunk, order)
            accepted += chunk.events.num_rows
            rejected += chunk.rejected.num_rows
            if chunk.events.num_rows or chunk.rejected.num_rows:
                yield chunk
    order.end()
    summary = file.summary(accepted, rejected)
    yield replace(summary, ambiguous=order.ambiguous, ambiguous_line=order.first_line)


def _resolved(chunk: Chunk, order: Order) -> Chunk:
    """Return a chunk with the times of repeated hours resolved by the order of lines."""
    events = chunk.events
    if chunk.shifts is None:
        if events.num_rows:
            order.end()
        return chunk
    times, lines = (
        events.column(name).cast(pa.int64()).to_numpy(zero_copy_only=False)
        for name in ("event_time", "source_line")
    )
    resolved = pa.array(order.resolve(times, chunk.shifts, lines)).cast(ARROW["timestamp"])
    index = events.schema.get_field_index("event_time")
    return Chunk(events.set_column(index, events.schema.field(index), resolved), chunk.rejected)


class _File:
    """The state of a file that is being read, which the parsing of the next lines depends on."""

    def __init__(self, layout: RecordFormat, context: "_FileContext", tally: ByteStats) -> None:
        self.layout, self.context, self.tally = layout, context, tally
        self.parser: Parser | None = None
        self.lines = self.headers = 0

    def jobs(self, source: BinaryIO, name: str, block: int) -> Iterator[Callable[[], list[Chunk]]]:
        """Yield jobs, each of which parses a range of lines, at any time; header lines are read in
        between."""
        half = b""
        for part in blocks(without_holes(decompressed(source, name, self.tally), self.tally), block):
            if self.lines == 0:
                part = replace(part, data=part.data.removeprefix(MARK))
            if self.tally.broken is not None:
                # The line at the break is incomplete: it is not parsed.
                whole = part.data.rfind(b"\n") + 1
                half, part = part.data[whole:], replace(part, data=part.data[:whole])
            if part.data:
                yield from self._parsed(split(part))
        if self.tally.broken is not None:
            # The line at the break is refused, even if it is empty.
            self.lines += 1
            reason, detail = self.tally.broken
            row = {
                "source_line": self.lines,
                "raw": _raw_text(half).decode(),
                "reason": reason,
                "detail": detail,
            }
            rejected = pa.RecordBatch.from_pylist([row], schema=REJECTED)
            yield lambda: [Chunk(_events([], self.layout, 0), rejected)]

    def _parsed(self, lines: Lines) -> Iterator[Callable[[], list[Chunk]]]:
        if self.parser is None and self.layout.format != "zeek":
            self.parser = _parser(self.layout, b"")
        if self.parser is None and (first_line := _first_line(lines.text)) is not None:
            self.parser = _parser(self.layout, first_line)
        # Empty lines are refused alike by all parsers.
        parser = self.parser or _parser(self.layout, b"")
        for text in _texts(lines, self.layout):
            for start, end in _ranges(text.strings, parser):
                header = parser.header(text.strings[start:end])
                self.headers += header
                # A copy: the next header lines may be read before these lines are parsed.
                as_now = copy(parser)
                yield partial(_chunks, text, start + header, end, self.lines + 1, as_now, self.context)
            self.lines += len(text.strings)

    def summary(self, accepted: int, rejected: int) -> FileSummary:
        """Return the summary after all lines are parsed."""
        tally, parser = self.tally, self.parser or _parser(self.layout, b"")
        return FileSummary(
            tally.sha256,
            tally.size,
            self.lines,
            self.headers,
            accepted,
            rejected,
            tuple(sorted(parser.columns)),
            ": ".join(tally.broken) if tally.broken else None,
            tally.prefix_digests,
            parser.shown.unknown,
            parser.shown.absent,
            nul_bytes=tally.nul_bytes,
        )


def _first_line(text: pa.Array) -> bytes | None:
    filled = np.flatnonzero(pc.binary_length(text).to_numpy(zero_copy_only=False))
    return text[int(filled[0])].as_py() if len(filled) else None


def _parser(layout: RecordFormat, first_line: bytes) -> Parser:
    given = inside(layout.options)
    if given is not None:
        return Embedded(layout, given, lambda part: _parser(part, first_line))
    if layout.format == "zeek":
        variant = layout.options.get("variant", "auto")
        as_json = variant == "json" or (variant == "auto" and first_line.lstrip()[:1] == b"{")
        return JsonLines(layout) if as_json else ZeekTsv(layout)
    if layout.format == "csv" and layout.options.get("header") == "w3c":
        return W3c(layout)
    return PARSERS[layout.format](layout)


@dataclass(frozen=True)
class _FileContext:
    """The parameters of a file: its layout, its span, and the parts of its name."""

    layout: RecordFormat
    span: Span | None
    start: datetime | None
    captures: Mapping[str, str]


def _texts(lines: Lines, layout: RecordFormat) -> Iterator[Text]:
    """Return the lines as strings; or the records in them, in place of lines."""
    path = layout.options.get("records")
    strings, refused = _decoded(
        lines.text, pa.array(lines.lengths), LONGEST if path is None else MAX_RAW_BYTES
    )
    text = Text(strings, lines.text, refused)
    return iter([text]) if path is None else explode_records(text, str(path), around(layout.paths))


def _chunks(
    text: Text, start: int, end: int, first: int, parser: Parser, context: _FileContext
) -> list[Chunk]:
    """Parse some lines of a text that is numbered from `first`, in ranges that are parsed alike."""
    return [
        _chunk(text.strings[low:high], text, low, first, parser, context)
        for low, high in _parts(parser, text.strings, start, end)
    ]


def _ranges(strings: pa.Array, parser: Parser) -> list[tuple[int, int]]:
    """Return the ranges that may begin with header lines: at the beginning, at each run of them, at the line
    that names columns."""
    if isinstance(parser, Embedded):
        return _ranges(strings, parser.outer)
    if isinstance(parser, ZeekTsv | W3c):
        marked = mask(pc.starts_with(strings, "#"))
        begins = np.flatnonzero(marked & ~np.r_[False, marked[:-1]])
    elif isinstance(parser, Csv) and (parser.awaits_header or parser.comment):
        begins = _csv_begins(parser, strings)
    else:
        return [(0, len(strings))]
    cuts = sorted({0, *begins.tolist(), len(strings)})
    return list(pairwise(cuts))


def _csv_begins(parser: Csv, strings: pa.Array) -> npt.NDArray[np.int64]:
    """Return where a comment or the line that names the columns may begin."""
    comments = np.zeros(len(strings), dtype=bool)
    if parser.comment:
        comments = mask(pc.starts_with(strings, parser.comment))
    begins = np.flatnonzero(comments & ~np.r_[False, comments[:-1]])
    if parser.awaits_header:
        texts = np.flatnonzero(~mask(pc.equal(strings, "")) & ~comments)
        begins = np.r_[begins, texts[texts >= parser.skipped][:1]]
    return begins


def _parts(parser: Parser, strings: pa.Array, start: int, end: int) -> Iterator[tuple[int, int]]:
    pieces: Iterable[pa.Array] = [strings[start:end]]
    if isinstance(parser, Embedded):
        pieces = parser.parts(strings[start:end])
    elif isinstance(parser, JsonLines):
        pieces = json_lines.pieces(parser, strings[start:end])
    for piece in pieces:
        yield start, start + len(piece)
        start += len(piece)


def _with_nul(text: pa.Array) -> npt.NDArray[np.bool_]:
    """Return which lines contain a NUL byte."""
    has_nul = np.zeros(len(text), dtype=bool)
    data = text.buffers()[2]
    if data is not None and b"\0" in memoryview(data).tobytes():
        has_nul = mask(pc.match_substring(text, b"\0"))
    return has_nul


def _decoded(text: pa.Array, lengths: pa.Array, longest: int) -> tuple[pa.Array, Rejections]:
    """Return the lines as strings, null if one is too long, has NUL bytes or is not UTF-8. Refuse these and
    empty lines."""
    refused = Rejections.none(len(text))
    refused.add(mask(pc.equal(lengths, 0)), "empty")
    long = pc.greater(lengths, longest)
    refused.add(mask(long), "line_too_long", values=lengths, expected=f"at most {longest} bytes")
    short = pc.if_else(long, pa.scalar(None, text.type), text).cast(pa.binary())
    strings = _utf8(short, refused)
    holes = _with_nul(text)
    if holes.any():
        refused.add(holes, "nul_byte", expected=NO_NUL)
        strings = pc.if_else(pa.array(holes), pa.scalar(None, strings.type), strings)
    return strings, refused


def _utf8(text: pa.Array, refused: Rejections) -> pa.Array:
    """Return bytes as strings, null where they are not UTF-8; these lines are refused."""
    try:
        return text.cast(pa.string())
    except pa.ArrowInvalid:
        pass
    decoded: list[str | None] = []
    broken = np.zeros(len(text), dtype=bool)
    for index, line in enumerate(text.to_pylist()):
        try:
            decoded.append(None if line is None else line.decode())
        except UnicodeDecodeError:
            decoded.append(None)
            broken[index] = True
    refused.add(broken, "not_utf8")
    return pa.array(decoded, pa.string())


def _chunk(
    strings: pa.Array,
    text: Text,
    offset: int,
    first: int,
    parser: Parser,
    context: _FileContext,
) -> Chunk:
    rows = len(strings)
    selection, block = slice(offset, offset + rows), text.refused
    refused = Rejections(
        block.reason[selection].copy(), block.column[selection].copy(), block.detail[selection].copy()
    )
    refused.any = block.any[selection].copy()
    records = parser.parse(strings, refused)
    lines = np.arange(first + offset, first + offset + rows, dtype=np.int64)
    values, shifts = _typed(records, lines, context, refused)
    bad = np.flatnonzero(refused.any)
    texts = all(pa.types.is_string(field.type) for field in records.fields.values())
    if len(bad) and not texts and isinstance(parser, JsonLines | Embedded):
        # Arrow's reader drops the text of a number, but messages must not depend on the neighbours of a line.
        retried = Rejections.none(len(bad))
        _typed(parser.parse_line_by_line(strings.take(pa.array(bad)), retried), lines[bad], context, retried)
        refused.put(bad, retried)
    numbers = pa.array(lines)
    good = pa.array(~refused.any)
    events = _events([array.filter(good) for array in (*values, numbers)], context.layout, rows)
    rejected = pa.RecordBatch.from_arrays(
        [
            numbers.take(pa.array(bad)),
            pa.array([_raw_text(text.raw[offset + int(index)].as_py()) for index in bad], pa.binary()).cast(
                pa.string()
            ),
            *(
                pa.array(list(part[bad]), pa.string())
                for part in (refused.reason, refused.column, refused.detail)
            ),
        ],
        schema=REJECTED,
    )
    return Chunk(events, rejected, None if shifts is None else shifts[~refused.any])


def _typed(
    records: ParsedRecords, lines: npt.NDArray[np.int64], context: _FileContext, refused: Rejections
) -> tuple[list[pa.Array], npt.NDArray[np.int64] | None]:
    """Return the time, the layout's fields and the rest, and the times' shifts as in `Chunk`. Refuse lines
    without a time, or with one outside of the span."""
    layout, span, fields = context.layout, context.span, records.fields
    rows = len(refused.any)

    def first_value(paths: Sequence[str]) -> pa.Array:
        values = [fields[path] for path in paths if path in fields]
        if not values:
            return pa.nulls(rows, pa.string())
        return values[0] if len(values) == 1 else pc.coalesce(*values)

    def time_value(paths: Sequence[str]) -> pa.Array:
        captured = next((context.captures[path] for path in paths if path in context.captures), None)
        return first_value(paths) if captured is None else pa.repeat(pa.scalar(captured), rows)

    if layout.time.by_lines is not None:
        time, shifts = moments.by_lines(layout.time.by_lines, context.start, lines, refused), None
    else:
        time, shifts = moments.by_fields(layout, fields, time_value, refused)
    columns = [column(field, first_value(field.paths), refused) for field in layout.fields]
    if layout.keep_rest:
        remainder = records.rest
        columns.append(rest.of_fields(fields, layout.paths, rows) if remainder is None else remainder)
    if span is not None:
        start, end = (pa.scalar(moment, ARROW["timestamp"]) for moment in (span.start, span.end))
        if shifts is not None:
            time, shifts = _in_span(time, shifts, span)
        outside = pc.or_(pc.less(time, start), pc.greater_equal(time, end))
        inside = f"{span.start:%Y-%m-%d %H:%M:%S}Z to {span.end:%Y-%m-%d %H:%M:%S}Z"
        refused.add(mask(outside), "outside_holds", values=time, expected=inside)
    return [time, *columns], shifts


def _in_span(
    time: pa.Array, shifts: npt.NDArray[np.int64], span: Span
) -> tuple[pa.Array, npt.NDArray[np.int64]]:
    """Resolve times in a repeated hour if only one of both instants is in the file's span."""
    start, end = ((moment - EPOCH) // MICROSECOND for moment in (span.start, span.end))
    micros = pc.fill_null(time.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
    first = (micros >= start) & (micros < end)
    second = (micros + shifts >= start) & (micros + shifts < end)
    moved = np.where(~first & second, micros + shifts, micros)
    times = pa.array(moved, mask=mask(pc.is_null(time))).cast(ARROW["timestamp"])
    return times, np.where(first & second, shifts, 0)


def _raw_text(line: bytes) -> bytes:
    """Return the text of a refused line in UTF-8; bytes that are no text become \\xNN."""
    line = line[:MAX_RAW_BYTES]
    if len(line) <= LONGEST:
        return line.decode("utf-8", "backslashreplace").encode()
    # In parts, to save memory: an invalid byte takes four characters, and a single rare character makes all
    # characters of a Python text take four bytes.
    decoder = getincrementaldecoder("utf-8")("backslashreplace")
    text = bytearray()
    for start in range(0, len(line), LONGEST):
        text += decoder.decode(line[start : start + LONGEST]).encode()
    text += decoder.decode(b"", final=True).encode()
    return bytes(text)


def _events(arrays: Sequence[pa.Array], layout: RecordFormat, rows: int) -> pa.RecordBatch:
    schema = pa.schema(
        [
            ("event_time", ARROW["timestamp"]),
            *((field.name, ARROW[field.type]) for field in layout.fields),
            *([(REST, pa.string())] if layout.keep_rest else []),
            ("source_line", pa.int64()),
        ]
    )
    if not arrays:
        arrays = [pa.array([], kind) for kind in schema.types]
    return pa.RecordBatch.from_arrays(list(arrays), schema=schema)
