"""Layouts of every format, and a comparison of the vectorised parsers with the plain reference."""

import io
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import Any
from unittest.mock import patch

from tests.formats.reference import Reading, read
from tests.formats.reference_lines import lines
from transom.formats import read_file as reading
from transom.formats.read_file import Chunk, FileSummary, read_file
from transom.formats.record_format import EventTime, Field, RecordFormat, Span, TimeByLineNumber

COLUMNS = (
    Field("client", ("client", "id.orig_h", "id_orig_h"), missing=("none",)),
    Field("status", ("status",), "integer", missing=("-1",)),
    Field("took", ("took", "user.took"), "number", "0.001", missing=("-1", "none")),
    Field("size", ("size",), "number", "2.5"),
    Field("ok", ("ok",), "boolean", missing=("false",)),
    Field("at", ("at",), "timestamp", time_format="iso", zone="Europe/Berlin", missing=("never",)),
    Field("tick", ("tick",), "timestamp", time_format="epoch_ms", missing=("0",)),
    Field("name", ("user.name",)),
)
APACHE_NAMES = [
    "client", "ident", "user", "time", "request", "method", "path", "protocol", "bytes", "referer", "agent",
]  # fmt: skip
APACHE_COLUMNS = (
    *(Field(name, (name,)) for name in APACHE_NAMES),
    Field("status", ("status",), "integer"),
    Field("sent", ("bytes",), "integer", missing=("12",)),
)
EPOCH = EventTime(("ts",), (), "epoch")
ENDS = EventTime(("ts",), ("duration", "took"), "epoch")
LOCAL = EventTime(("ts", "at"), (), "iso", "Europe/Berlin")
AMERICAN = EventTime(("ts",), (), "%m/%d/%Y %H:%M:%S", "America/New_York")
JOINED = EventTime(("day", "status"), (), "iso", "Europe/Berlin", (("ts",),))


# The last of its lines have no time.
BY_LINES = EventTime((), by_lines=TimeByLineNumber(3_600_000_000, 9_214_646_400_000_000 - 3 * 3_600_000_000))
CALLS = (
    Field("call", ("call",)),
    Field("back", ("return",)),
    Field("fd", ("fd",)),
    Field("path", ("path", "n")),
)
PATTERN = (
    r"(?P<ts>[^ ]+) (?P<client>\w*)(?: status=(?P<status>\d+|-1))?(?: (?:took|t) (?P<took>[0-9.]+))?(?P<x>x*)"
)
LETTERS = "(?P<a>a*)(?P<b>b|c{2,3})?(d|(?P<e>e))*"
NAMES = ["ts", "client", "status", "took", "size", "ok", "at", "tick", "duration", "user.name"]
LAYOUTS = {
    "apache": RecordFormat("apache", APACHE_COLUMNS, EventTime(("time",))),
    "apache common": RecordFormat(
        "apache",
        APACHE_COLUMNS[3:],
        EventTime(("time",), (), "%d/%b/%Y:%H:%M:%S %z"),
        {"variant": "common"},
        keep_rest=True,
    ),
    "csv": RecordFormat("csv", COLUMNS, EPOCH),
    "csv semicolons": RecordFormat(
        "csv", COLUMNS[2:], AMERICAN, {"delimiter": ";", "quote": "'"}, keep_rest=True
    ),
    "csv text": RecordFormat("csv", COLUMNS, LOCAL, {"delimiter": "::"}, keep_rest=True),
    "csv trimmed text": RecordFormat("csv", COLUMNS, LOCAL, {"delimiter": " : ", "trim": True}),
    "csv trimmed": RecordFormat("csv", COLUMNS, LOCAL, {"delimiter": "|", "trim": True, "quote": "'"}),
    "csv names": RecordFormat("csv", COLUMNS, LOCAL, {"header": False, "names": NAMES}),
    "csv skip": RecordFormat("csv", COLUMNS, EPOCH, {"skip": 2, "comment": "#"}),
    "csv third line": RecordFormat("csv", COLUMNS, EPOCH, {"header": 3, "skip": 4}, keep_rest=True),
    "csv blanks": RecordFormat(
        "csv", COLUMNS, LOCAL, {"delimiter": "blanks", "comment": "#"}, keep_rest=True
    ),
    "csv blanks, quotes": RecordFormat(
        "csv", COLUMNS, EPOCH, {"delimiter": "blanks", "quote": "'", "header": 2}
    ),
    "csv comments": RecordFormat("csv", COLUMNS, LOCAL, {"header": False, "names": NAMES, "comment": "//"}),
    "zeek": RecordFormat("zeek", COLUMNS, ENDS, {"variant": "auto"}),
    "zeek any": RecordFormat(
        "zeek", COLUMNS[:3], EventTime(("ts",), ("duration",), "epoch_or_iso", "Europe/Berlin")
    ),
    "zeek tsv": RecordFormat(
        "zeek", COLUMNS[:1] + COLUMNS[3:], EventTime(("ts",), (), "iso"), {"variant": "tsv"}, keep_rest=True
    ),
    "zeek json": RecordFormat("zeek", COLUMNS, EPOCH, {"variant": "json"}),
    "json": RecordFormat("json", COLUMNS, ENDS),
    "json micros": RecordFormat("json", COLUMNS[:4], EventTime(("ts",), (), "epoch_us")),
    "json nanos": RecordFormat("json", COLUMNS[:4], EventTime(("ts",), (), "epoch_ns")),
    "json local": RecordFormat(
        "json", (*COLUMNS[:4], Field("name", ("user.name", "x.a.b"))), LOCAL, keep_rest=True
    ),
    # A path under two types cannot be read by the vectorised parser at all.
    "json joined": RecordFormat("json", COLUMNS[1:4], JOINED, keep_rest=True),
    "json records": RecordFormat("json", COLUMNS, ENDS, {"records": "log.items[]"}),
    "json nested records": RecordFormat(
        "json",
        (
            *COLUMNS[:3],
            Field("zone", ("$.zone", "zone")),
            Field("host", ("$.log.sets[].host.name",)),
            Field("sum", ("$.log.sum",), "integer"),
        ),
        ENDS,
        {"records": "log.sets[].items[]"},
        keep_rest=True,
    ),
    "json lines": RecordFormat("json", COLUMNS[:3], EventTime((), by_lines=TimeByLineNumber(999_999))),
    "csv joined": RecordFormat("csv", COLUMNS[:4], JOINED),
    "regex": RecordFormat("regex", COLUMNS, EPOCH, {"pattern": PATTERN}),
    "regex lines": RecordFormat(
        "regex", (Field("a", ("a",)), Field("b", ("b",))), BY_LINES, {"pattern": LETTERS}, keep_rest=True
    ),
    "regex comments": RecordFormat("regex", COLUMNS, EPOCH, {"pattern": PATTERN, "comment": "1"}),
    "kv": RecordFormat("kv", COLUMNS, ENDS),
    "kv comments": RecordFormat("kv", COLUMNS, ENDS, {"comment": "ts=1"}, keep_rest=True),
    "kv commas": RecordFormat(
        "kv", COLUMNS[1:4], ENDS, {"separator": ",", "assign": ":", "quote": "'"}, keep_rest=True
    ),
    "kv several": RecordFormat("kv", COLUMNS[:4], ENDS, {"separator": " \t'\x1d"}, keep_rest=True),
    "kv lead": RecordFormat("kv", COLUMNS, EPOCH, {"lead": ["ts", "client"]}),
    "kv lead commas": RecordFormat(
        "kv", COLUMNS[1:4], EPOCH, {"separator": ",", "lead": ["x", "ts"]}, keep_rest=True
    ),
    "syscalls": RecordFormat("syscalls", CALLS, BY_LINES),
    "syscalls lead": RecordFormat("syscalls", CALLS[1:], EPOCH, {"lead": ["ts", "pid"]}, keep_rest=True),
    "json twice": RecordFormat("json", (*COLUMNS, Field("ts", ("ts",)), Field("word", ("status",))), ENDS),
}
NAMED = datetime(2261, 12, 31, 23, 59, 58, tzinfo=UTC)
"""The start in a file's name; soon after it there are no times any more."""


def plain(reading: Reading) -> tuple[Any, ...]:
    """Distinguish -0.0 from 0.0, and 1 from 1.0 and True."""
    events = [
        (line, time, {name: repr(value) for name, value in values.items()})
        for line, time, values in reading.events
    ]
    drift = sorted(reading.unknown), sorted(reading.absent)
    return events, reading.rejections, reading.header_lines, sorted(reading.columns), drift


def vectorised(data: bytes, layout: RecordFormat, span: Span | None, block: int) -> Reading:
    reading = Reading()
    *chunks, summary = read_file(io.BytesIO(data), "log", layout, span, start=NAMED, block=block)
    assert isinstance(summary, FileSummary)
    for chunk in chunks:
        assert isinstance(chunk, Chunk)
        for event in chunk.events.to_pylist():
            line, time = event.pop("source_line"), event.pop("event_time")
            for name, value in event.items():
                if isinstance(value, datetime):
                    event[name] = value.astimezone(UTC)
            reading.events.append((line, time.astimezone(UTC), event))
        for row in chunk.rejected.to_pylist():
            reading.rejections.append((row["source_line"], row["reason"], row["column"], row["detail"]))
    reading.header_lines = summary.header_lines
    reading.columns = set(summary.columns)
    reading.unknown, reading.absent = list(summary.unknown), list(summary.absent)
    if "records" not in layout.options:
        assert summary.lines == len(lines(data))
    assert summary.lines == summary.accepted + summary.rejected + summary.header_lines
    return reading


def backwards(jobs: Iterable[Callable[[], Any]], threads: int) -> Iterator[Any]:
    """Run the last job first, as several threads may do to slow jobs."""
    return reversed([job() for job in reversed(list(jobs))])


def agree(data: bytes, layout: RecordFormat, block: int = 1 << 20, bounded: bool = False) -> Reading:
    """Both readings are one.

    Args:
        bounded: whether also with a span that begins and ends at an event of the file, and with blocks that
            are parsed in another order.
    """
    if data and not data.strip(b"\0"):
        data = b""  # Such a file is broken; see `test_nul_bytes`.
    expected = read(data, layout, None, NAMED)
    assert plain(vectorised(data, layout, None, block)) == plain(expected)
    if "records" not in layout.options:
        assert len(expected.events) + len(expected.rejections) + expected.header_lines == len(lines(data))
    if bounded and expected.events:
        times = [time for _, time, _ in expected.events]
        span = Span(min(times), max(times))
        with patch.object(reading, "ordered_map", backwards):
            assert plain(vectorised(data, layout, span, block)) == plain(read(data, layout, span, NAMED))
    return expected
