"""A layout of each format with a good line of it, and the full result of parsing some bytes."""

import io
from pathlib import Path
from typing import Any

from transom.formats.read_file import Chunk, FileSummary, read_file
from transom.formats.record_format import EventTime, Field, RecordFormat, Span, TimeByLineNumber

DATA = Path(__file__).parents[1] / "data"
FIELDS = (
    Field("client", ("client", "id.orig_h", "id_orig_h")),
    Field("status", ("status",), "integer"),
    Field("took", ("took",), "number", "0.001"),
    Field("ok", ("ok",), "boolean"),
)
APACHE = RecordFormat(
    "apache", (FIELDS[0], FIELDS[1], Field("bytes", ("bytes",), "integer")), EventTime(("time",))
)
JSON = RecordFormat("json", FIELDS, EventTime(("ts",), ("duration",), "epoch"))
CSV = RecordFormat("csv", FIELDS, EventTime(("ts",), (), "epoch"))
ZEEK = RecordFormat("zeek", FIELDS, EventTime(("ts",), (), "epoch"))
RECORDS = RecordFormat("json", FIELDS, EventTime(("ts",), ("duration",), "epoch"), {"records": "Records[]"})
REGEX = RecordFormat(
    "regex",
    FIELDS[:2],
    EventTime(("ts",), (), "epoch"),
    {"pattern": r"(?P<ts>\S+) (?P<client>\S+) ?(?P<status>\d*)"},
)
W3C = RecordFormat("csv", FIELDS, EventTime(("ts",), (), "epoch"), {"delimiter": " ", "header": "w3c"})
KV = RecordFormat("kv", FIELDS, EventTime(("ts",), (), "epoch"), keep_rest=True)
CALLS = RecordFormat(
    "syscalls",
    (Field("call", ("call",)), Field("path", ("path",))),
    EventTime((), by_lines=TimeByLineNumber(1_000_000, 0)),
)
LAYOUTS = {
    "apache": APACHE, "json": JSON, "csv": CSV, "zeek": ZEEK,
    "records": RECORDS, "regex": REGEX, "kv": KV, "syscalls": CALLS, "w3c": W3C,
}  # fmt: skip


def read(
    data: bytes | io.BytesIO,
    layout: RecordFormat,
    name: str = "log",
    span: Span | None = None,
    block: int = 1 << 20,
    **more: Any,
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], FileSummary]:
    events, rejected = [], []
    source = io.BytesIO(data) if isinstance(data, bytes) else data
    *chunks, summary = read_file(source, name, layout, span, block=block, **more)
    for chunk in chunks:
        assert isinstance(chunk, Chunk)
        events += chunk.events.to_pylist()
        rejected += chunk.rejected.to_pylist()
    assert isinstance(summary, FileSummary)
    assert (len(events), len(rejected)) == (summary.accepted, summary.rejected)
    assert summary.lines == summary.accepted + summary.rejected + summary.header_lines
    return (
        sorted(events, key=lambda e: e["source_line"]),
        sorted(rejected, key=lambda r: r["source_line"]),
        summary,
    )


good_lines = {
    "apache": '10.0.0.1 - - [17/May/2015:10:05:03 +0000] "GET /a HTTP/1.1" 200 12 "-" "agent"',
    "json": '{"ts": 1431857103.5, "client": "a", "status": 200, "took": 0.5, "ok": true}',
    "csv": "1431857103.5,a,200,0.5,true",
    "zeek": "1431857103.5\ta\t200\t0.5\tT",
    "records": '{"Records": [{"ts": 1, "client": "a"}, {"ts": 2}, 3]}',
    "regex": "1431857103.5 a 200",
    "kv": 'ts=1431857103.5 client="a b" status=200 took=0.5 ok=true x="y"',
    "syscalls": 'open path="/bin/a b" flags=0 => 3',
    "w3c": '1431857103.5 "a b" 200 0.5 true',
}
heads = {
    "csv": b"ts,client,status,took,ok\n",
    "zeek": b"#separator \\x09\n#fields\tts\tclient\tstatus\ttook\tok\n",
    "w3c": b"#Version: 1.0\n#Fields: ts client status took ok\n",
}
