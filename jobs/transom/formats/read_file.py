"""Read one file: yield parsed and typed blocks of lines, and a summary at the end."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transom.core.concurrency import ordered_map
from transom.core.intervals import EPOCH
from transom.formats import event_time
from transom.formats.event_time import Order
from transom.formats.json.record_paths import around
from transom.formats.json.records import explode_records
from transom.formats.lines import BLOCK, MAX_RAW_BYTES, ByteStats, Text, decode, raw_text, read_blocks
from transom.formats.parser import ParsedRecords, Parser, rest_of
from transom.formats.record_format import REST, RecordFormat, Span
from transom.formats.registry import make_parser
from transom.formats.rejections import Int64s, Rejections, int64s, mask
from transom.formats.typed_columns import ARROW, column

MICROSECOND = timedelta(microseconds=1)
REJECTED = pa.schema(
    [("source_line", pa.int64()), *((name, pa.string()) for name in ("raw", "reason", "column", "detail"))]
)


@dataclass(frozen=True)
class Chunk:
    """The rows of some lines.

    Attributes:
        events: event_time, the layout's fields, rest with `keep_rest`, source_line.
        rejected: source_line, raw, reason, column, detail.
        shifts: the microseconds from the time of each event to its second instant in a repeated hour; None if
            no time is in a repeated hour, or the order of lines is already applied.
    """

    events: pa.RecordBatch
    rejected: pa.RecordBatch
    shifts: Int64s | None = None


@dataclass(frozen=True)
class FileSummary:
    """The summary of a file; `lines = header_lines + accepted + rejected`.

    If lines contain records (`records` of json), each record counts as a line.

    Attributes:
        sha256: the digest of the decompressed bytes, as far as they are readable.
        bytes: their number.
        lines: the number of lines.
        header_lines: the number of header lines.
        accepted: the number of events.
        rejected: the number of rejected lines.
        columns: the field names in header lines, sorted; empty for formats without header lines.
        broken: why the file cannot be read to its end; None if it can.
        prefix_digests: the digest of the first n bytes, for each requested length.
        unknown: the names of fields that no column and no time uses, sorted, at most 100; for JSON the
            top-level names.
        absent: the declared columns without a path in any record; empty for a file without records.
        ambiguous: the number of events with a time in a repeated hour that cannot be resolved.
        ambiguous_line: the line of the first such event; None if there is none.
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

    >>> from io import BytesIO
    >>> from transom.formats.record_format import EventTime, Field
    >>> layout = RecordFormat("kv", (Field("host", ("host",)),), EventTime(("t",)))
    >>> source = BytesIO(b"t=2024-05-06T07:08:09Z host=a1\\nno pairs\\n")
    >>> chunk, summary = read_file(source, "web.log", layout, None)
    >>> chunk.events["host"].to_pylist(), chunk.rejected["reason"].to_pylist(), summary.lines
    (['a1'], ['no_match'], 2)

    Args:
        source: the stored bytes.
        name: the file's name; its suffix selects the compression (.gz, .zst).
        layout: the format, the columns and the time.
        span: the span of its times, outside of which rows are refused; None is no bound.
        start: the start of the period in the file's name, for times by line number.
        captures: the captures of the file's path, for times.
        known: the lengths, in decompressed bytes, of the prefixes to digest.
        block: decompressed bytes that are parsed at a time; it bounds the memory. No result depends on it.
        threads: the number of threads, at least 1, each of which parses one block. No result depends on it.

    Yields:
        Chunks in the order of the lines, then one FileSummary.
    """
    file = _File(layout, span, start, captures or {}, ByteStats(known))
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
    stats, parser = file.stats, file.parser or make_parser(layout)
    yield FileSummary(
        sha256=stats.sha256,
        bytes=stats.size,
        lines=file.lines,
        header_lines=file.headers,
        accepted=accepted,
        rejected=rejected,
        columns=tuple(sorted(parser.columns)),
        broken=": ".join(stats.broken) if stats.broken else None,
        prefix_digests=stats.prefix_digests,
        unknown=parser.drift.unknown,
        absent=parser.drift.absent,
        ambiguous=order.ambiguous,
        ambiguous_line=order.first_line,
        nul_bytes=stats.nul_bytes,
    )


def _resolved(chunk: Chunk, order: Order) -> Chunk:
    """Return a chunk with the times of repeated hours resolved by the order of lines."""
    events = chunk.events
    if chunk.shifts is None:
        if events.num_rows:
            order.end()
        return chunk
    times, lines = (int64s(events.column(name)) for name in ("event_time", "source_line"))
    resolved = pa.array(order.resolve(times, chunk.shifts, lines)).cast(ARROW["timestamp"])
    return Chunk(events.set_column(0, events.schema.field(0), resolved), chunk.rejected)


@dataclass
class _File:
    """The state of a file that is being read. The parsing of the next lines depends on it.

    Attributes not listed are arguments of `read_file`.

    Attributes:
        stats: the counters and digests of the file's bytes.
        lines: the number of lines so far.
        headers: the number of header lines among them.
    """

    layout: RecordFormat
    span: Span | None
    start: datetime | None
    captures: Mapping[str, str]
    stats: ByteStats
    lines: int = 0
    headers: int = 0

    def __post_init__(self) -> None:
        fields = [(field.name, ARROW[field.type]) for field in self.layout.fields]
        rest = [(REST, pa.string())] if self.layout.keep_rest else []
        columns = [("event_time", ARROW["timestamp"]), *fields, *rest, ("source_line", pa.int64())]
        self.schema = pa.schema(columns)
        self.parser = None if self.layout.format == "zeek" else make_parser(self.layout)

    def jobs(self, source: BinaryIO, name: str, block: int) -> Iterator[Callable[[], list[Chunk]]]:
        """Yield jobs, each of which parses a range of lines and may run later. Header lines are read in
        between."""
        incomplete = b""
        path = self.layout.options.get("records")
        for part in read_blocks(source, name, self.stats, block):
            if self.stats.broken is not None:
                # The line at the break is incomplete: it is not parsed.
                whole = part.data.rfind(b"\n") + 1
                incomplete, part = part.data[whole:], replace(part, data=part.data[:whole])
            if part.data:
                text = decode(part) if path is None else decode(part, MAX_RAW_BYTES)
                yield from self._parsed(text, path)
        if self.stats.broken is not None:
            # The line at the break is refused, even if it is empty.
            self.lines += 1
            reason, detail = self.stats.broken
            raw = raw_text(incomplete).decode()
            row = {"source_line": self.lines, "raw": raw, "reason": reason, "detail": detail}
            rejected = pa.RecordBatch.from_pylist([row], REJECTED)
            yield lambda: [Chunk(pa.RecordBatch.from_pylist([], self.schema), rejected)]

    def _parsed(self, lines: Text, path: object) -> Iterator[Callable[[], list[Chunk]]]:
        filled = [] if self.parser else np.flatnonzero(pc.binary_length(lines.raw)).tolist()
        if filled:
            self.parser = make_parser(self.layout, lines.raw[filled[0]].as_py())
        # All parsers refuse empty lines alike.
        parser = self.parser or make_parser(self.layout)
        texts = [lines] if path is None else explode_records(lines, str(path), around(self.layout.paths))
        for text in texts:
            self.headers += len(text.strings)
            for start, end in parser.bodies(text.strings):
                self.headers -= end - start
                # A copy: the next header lines may be read before these lines are parsed.
                yield partial(self._chunks, text, start, end, self.lines + 1, copy(parser))
            self.lines += len(text.strings)

    def _chunks(self, text: Text, start: int, end: int, first: int, parser: Parser) -> list[Chunk]:
        """Parse a range of lines of a text whose lines are numbered from `first`, in the parser's parts."""
        chunks = []
        for part in parser.parts(text.strings[start:end]):
            end = start + len(part)
            lines = np.arange(first + start, first + end, dtype=np.int64)
            chunks.append(self._chunk(part, text.raw[start:end], lines, text.refused[start:end], parser))
            start = end
        return chunks

    def _chunk(
        self, strings: pa.Array, raw: pa.Array, lines: Int64s, refused: Rejections, parser: Parser
    ) -> Chunk:
        before = refused.any.copy()
        records = parser.parse(strings, refused)
        values, shifts = self._typed(records, lines, refused)
        if not all(pa.types.is_string(field.type) for field in records.fields.values()):
            # Arrow drops the text of a number, but messages must not depend on neighbouring lines.
            again = np.flatnonzero(refused.any & ~before)
            if len(again):
                retried = Rejections.none(len(again))
                texts = parser.parse_as_text(strings.take(pa.array(again)), retried)
                self._typed(texts, lines[again], retried)
                refused[again] = retried
        numbers = pa.array(lines)
        events, bad = [*values, numbers], np.flatnonzero(refused.any)
        if len(bad):
            good = pa.array(~refused.any)
            events = [array.filter(good) for array in events]
        raw_texts = pa.array([raw_text(raw[index].as_py()) for index in bad.tolist()], pa.binary())
        reasons = (refused.reason, refused.column, refused.detail)
        rejected = [
            numbers.take(pa.array(bad)),
            raw_texts.cast(pa.string()),
            *(pa.array(part[bad].tolist(), pa.string()) for part in reasons),
        ]
        return Chunk(
            pa.RecordBatch.from_arrays(events, schema=self.schema),
            pa.RecordBatch.from_arrays(rejected, schema=REJECTED),
            None if shifts is None else shifts[~refused.any],
        )

    def _typed(
        self, records: ParsedRecords, lines: Int64s, refused: Rejections
    ) -> tuple[list[pa.Array], Int64s | None]:
        """Return the time, the layout's fields and the rest, and the times' shifts as in `Chunk`.

        Refuse lines without a time, or with one outside of the span.
        """
        layout, fields, rows = self.layout, records.fields, len(lines)

        def first_value(paths: Sequence[str]) -> pa.Array:
            values = [fields[path] for path in paths if path in fields]
            if not values:
                return pa.nulls(rows, pa.string())
            if len({value.type for value in values}) > 1:
                values = [value.cast(pa.string()) for value in values]
            return values[0] if len(values) == 1 else pc.coalesce(*values)

        def time_value(paths: Sequence[str]) -> pa.Array:
            captured = next((self.captures[path] for path in paths if path in self.captures), None)
            return first_value(paths) if captured is None else pa.repeat(pa.scalar(captured), rows)

        if layout.time.by_lines is not None:
            time, shifts = event_time.by_lines(layout.time.by_lines, self.start, lines, refused), None
        else:
            time, shifts = event_time.by_fields(layout, fields, time_value, refused)
        columns = [column(field, first_value(field.paths), refused) for field in layout.fields]
        if layout.keep_rest:
            remainder = records.rest
            columns.append(rest_of(fields, layout.paths, rows) if remainder is None else remainder)
        if self.span is not None:
            time, shifts = _in_span(time, shifts, self.span, refused)
        return [time, *columns], shifts


def _in_span(
    time: pa.Array, shifts: Int64s | None, span: Span, refused: Rejections
) -> tuple[pa.Array, Int64s | None]:
    """Refuse times outside of a file's span. Resolve times in a repeated hour if only one of both instants is
    inside."""
    start, end = ((moment - EPOCH) // MICROSECOND for moment in (span.start, span.end))
    micros = int64s(time)
    inside = (micros >= start) & (micros < end)
    if shifts is not None:
        second_inside = (micros + shifts >= start) & (micros + shifts < end)
        micros = np.where(second_inside & ~inside, micros + shifts, micros)
        time = pa.array(micros, mask=mask(pc.is_null(time))).cast(ARROW["timestamp"])
        inside, shifts = inside | second_inside, np.where(inside & second_inside, shifts, 0)
    expected = f"{span.start:%Y-%m-%d %H:%M:%S}Z to {span.end:%Y-%m-%d %H:%M:%S}Z"
    outside = mask(pc.is_valid(time)) & ~inside
    refused.add(outside, "outside_holds", values=time, expected=expected)
    return time, shifts
