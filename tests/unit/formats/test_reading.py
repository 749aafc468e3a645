"""Any input gives events + rejections + header lines = lines, whatever the blocks, and never an exception."""

import gzip
import hashlib
import io
import json
import zlib
from contextlib import suppress
from datetime import UTC, datetime
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import example, given, settings
from hypothesis import strategies as st

from transom.formats.compression import Broken, unpacked
from transom.formats.layout import ByLines, EventTime, Field, Layout, Span
from transom.formats.reading import Chunk, Summary, read_file
from unit.formats.reference import lines

DATA = Path(__file__).parents[2] / "data"
FIELDS = (
    Field("client", ("client", "id.orig_h", "id_orig_h")),
    Field("status", ("status",), "integer"),
    Field("took", ("took",), "number", "0.001"),
    Field("ok", ("ok",), "boolean"),
)
APACHE = Layout("apache", (FIELDS[0], FIELDS[1], Field("bytes", ("bytes",), "integer")), EventTime(("time",)))
JSON = Layout("json", FIELDS, EventTime(("ts",), ("duration",), "epoch"))
CSV = Layout("csv", FIELDS, EventTime(("ts",), (), "epoch"))
ZEEK = Layout("zeek", FIELDS, EventTime(("ts",), (), "epoch"))
RECORDS = Layout("json", FIELDS, EventTime(("ts",), ("duration",), "epoch"), {"records": "Records[]"})
REGEX = Layout(
    "regex",
    FIELDS[:2],
    EventTime(("ts",), (), "epoch"),
    {"pattern": r"(?P<ts>\S+) (?P<client>\S+) ?(?P<status>\d*)"},
)
W3C = Layout("csv", FIELDS, EventTime(("ts",), (), "epoch"), {"delimiter": " ", "header": "w3c"})
KV = Layout("kv", FIELDS, EventTime(("ts",), (), "epoch"), keep_rest=True)
CALLS = Layout(
    "syscalls",
    (Field("call", ("call",)), Field("path", ("path",))),
    EventTime((), by_lines=ByLines(1_000_000, 0)),
)
LAYOUTS = {
    "apache": APACHE, "json": JSON, "csv": CSV, "zeek": ZEEK,
    "records": RECORDS, "regex": REGEX, "kv": KV, "syscalls": CALLS, "w3c": W3C,
}  # fmt: skip


def read(
    data: bytes | io.BytesIO,
    layout: Layout,
    name: str = "log",
    span: Span | None = None,
    block: int = 1 << 20,
    **more: Any,
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], Summary]:
    events, rejected = [], []
    source = io.BytesIO(data) if isinstance(data, bytes) else data
    *chunks, summary = read_file(source, name, layout, span, block=block, **more)
    for chunk in chunks:
        assert isinstance(chunk, Chunk)
        events += chunk.events.to_pylist()
        rejected += chunk.rejected.to_pylist()
    assert isinstance(summary, Summary)
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
pieces = st.one_of(
    st.binary(max_size=40),
    st.sampled_from(
        [b"\n", b"\r\n", b"", b"\0", b"#fields\tts\tb\n", b'{"ts":1}', b"{}", b"[1]", b'"', b"\xff\xfe"]
    ),
    st.sampled_from([line.encode() + b"\n" for line in good_lines.values()]),
)


@pytest.mark.parametrize("name", LAYOUTS)
@settings(max_examples=60)
@given(parts=st.lists(pieces, max_size=30), block=st.integers(1, 200))
@example(parts=[b"\xef\xbb\xbf"], block=1)
def test_every_line_is_accounted_for_whatever_the_blocks(name: str, parts: list[bytes], block: int) -> None:
    data = heads.get(name, b"") + b"".join(parts)
    whole = read(data, LAYOUTS[name])
    cut = read(data, LAYOUTS[name], block=block)
    assert cut == whole
    if name != "records":
        assert whole[2].lines == len(lines(data))
    assert read(gzip.compress(data), LAYOUTS[name], "log.gz") == whole


@settings(max_examples=40)
@given(
    st.lists(
        st.fixed_dictionaries(
            {},
            optional={
                "ts": st.one_of(st.floats(0, 2e9), st.integers(0, 10**9), st.text(max_size=4), st.none()),
                "client": st.one_of(
                    st.text(max_size=5), st.integers(), st.lists(st.integers(), max_size=2), st.none()
                ),
                "status": st.one_of(
                    st.integers(), st.text(max_size=3), st.floats(), st.booleans(), st.none()
                ),
                "took": st.one_of(st.floats(), st.integers(-(2**70), 2**70), st.none()),
                "ok": st.one_of(st.booleans(), st.text(max_size=2), st.none()),
                "id.orig_h": st.text(max_size=3),
            },
        ),
        max_size=12,
    )
)
def test_json_blocks_and_single_lines_read_alike(records: list[dict[str, Any]]) -> None:
    lines = [json.dumps(record).encode() + b"\n" for record in records]
    together = read(b"".join(lines), JSON)
    events, rejected = [], []
    for number, line in enumerate(lines, 1):
        # A line beside one that Arrow refuses is read the slow way.
        one = read(line + b'{"client": {"a": 1}, "ts": "no"}\n', JSON)
        events += [{**event, "source_line": number} for event in one[0]]
        rejected += [{**row, "source_line": number} for row in one[1] if row["source_line"] == 1]
    assert [repr(event) for event in together[0]] == [repr(event) for event in events]
    assert together[1] == rejected


@pytest.mark.parametrize(
    ("layout", "line", "reason"),
    [
        (APACHE, "", "empty"),
        (APACHE, "junk", "no_match"),
        (APACHE, b"\xff\xfe", "not_utf8"),
        (APACHE, "x" * (2**20 + 1), "line_too_long"),
        (APACHE, good_lines["apache"].replace("May", "Mai"), "bad_time"),
        (APACHE, good_lines["apache"].replace(" 12 ", f" {2**60} "), "out_of_range"),
        (JSON, "[1]", "not_an_object"),
        (JSON, '{"ts": 1', "bad_json"),
        (JSON, '{"ts": NaN}', "bad_json"),
        (JSON, "[" * 100_000, "bad_json"),
        (JSON, '{"status": 1}', "missing_time"),
        (JSON, '{"ts": -1}', "bad_time"),
        (JSON, '{"ts": 1, "status": "many"}', "bad_type"),
        (JSON, '{"ts": 1, "ok": "perhaps"}', "bad_type"),
        (JSON, '{"ts": 1, "took": 1e300}', "out_of_range"),
        (RECORDS, '{"records": []}', "no_records"),
        (RECORDS, '{"Records": {}}', "no_records"),
        (RECORDS, "[]", "no_records"),
        (RECORDS, "{", "bad_json"),
        (RECORDS, b"\xff\xfe", "not_utf8"),
        (RECORDS, "", "empty"),
        (RECORDS, "x" * (2**24 + 1), "line_too_long"),
        (REGEX, "1", "no_match"),
        (KV, "no pair = here", "no_match"),
        (KV, 'ts=1 client="a b', "unterminated_quote"),
        (CALLS, "read 4", "no_match"),
        (CALLS, "read(4) = 5", "no_match"),
        (CALLS, 'open path="a', "unterminated_quote"),
    ],
)
def test_each_reason_keeps_the_line_and_its_number(layout: Layout, line: str | bytes, reason: str) -> None:
    raw = line.encode() if isinstance(line, str) else line
    _, rejected, _ = read(raw + b"\n", layout)
    assert [(row["source_line"], row["reason"]) for row in rejected] == [(1, reason)]
    assert rejected[0]["raw"] == raw[: 2**24].decode("utf-8", "backslashreplace")


@pytest.mark.parametrize(
    ("layout", "data", "detail"),
    [
        (CSV, b"tiem,client\n1,a\n", "missing time; expected ts among tiem, client"),
        (CSV, b"ts,client\n,a\n", "missing time; expected ts"),
        (CSV, heads["csv"] + b"1,a\n", "field count: 2; expected 5"),
        (CSV, heads["csv"] + b"soon,a,200,0.5,true\n", "bad time: soon; expected epoch, from 1970 to 2261"),
        (CSV, heads["csv"] + b"1,a,ok,0.5,true\n", "bad type: ok; expected a whole number"),
        (CSV, heads["csv"] + b"1,a,200,wet,true\n", "bad type: wet; expected a number"),
        (CSV, heads["csv"] + b"1,a,,9e14,\n", "out of range: 9e14; expected at most 2**50 steps of 0.001"),
        (JSON, b'{"tiem": 1}\n', "missing time; expected ts"),
        (APACHE, b"hello\n", "no match; expected the common or the combined log form"),
        (RECORDS, b'{"a": []}\n', "no records; expected a list at Records[]"),
        (RECORDS, b"{\n", "bad json; expected an object a line, not one over several lines"),
        (REGEX, b"hello\n", "no match; expected the pattern"),
        (KV, b"hello\n", "no match; expected a line with name=value in it"),
        (CALLS, b"=> 5\n", "no match; expected name [arg=value ...] [=> return]"),
        (
            Layout("csv", (), EventTime(("day", "date"), more=(("time",),))),
            b"date,clock\n2024-01-01,12:00\n",
            "missing time; expected day or date and time among date, clock",
        ),
    ],
)  # fmt: skip
def test_a_refusal_says_what_was_expected(layout: Layout, data: bytes, detail: str) -> None:
    _, [row], _ = read(data, layout)
    assert row["detail"] == detail


@pytest.mark.parametrize(
    ("data", "reasons"),
    [
        (b"ts,client\n1,a,b\n", ["field_count"]),
        (b'ts,client\n1,"a\n', ["unterminated_quote"]),
        (b'ts,client\n1,"a,""b"""\n', []),
    ],
)
def test_csv_records_are_lines(data: bytes, reasons: list[str]) -> None:
    events, rejected, summary = read(data, CSV)
    assert [row["reason"] for row in rejected] == reasons
    assert summary.header_lines == 1
    assert [event["client"] for event in events] == ([] if reasons else ['a,"b"'])


def test_a_zeek_header_inside_a_file_holds_from_there() -> None:
    data = (
        b"1\ta\n#separator \\x09\n#unset_field\t-\n#fields\tts\tclient\n1\ta\n2\t-\n"
        b"#fields\tclient\tts\nb\t3\n3\t(empty)\tx\n"
    )
    events, rejected, summary = read(data, ZEEK)
    assert [(event["source_line"], event["client"]) for event in events] == [(5, "a"), (6, None), (8, "b")]
    assert [(row["source_line"], row["reason"]) for row in rejected] == [(1, "no_header"), (9, "field_count")]
    assert summary.header_lines == 4
    assert summary.columns == ("client", "ts")


def test_the_header_lines_of_w3c_stand_anywhere_and_name_what_follows() -> None:
    data = (
        b"1 a\n#Software: x\n#Fields: ts client\n#Date: 2024-05-01\n1 a\n2 b c\n\n"
        b'#Fields: client\tts\nb 3\n#Remark\n"b d" 4\n'
    )
    events, rejected, summary = read(data, W3C)
    assert [(event["source_line"], event["client"]) for event in events] == [(5, "a"), (9, "b"), (11, "b d")]
    assert [(row["source_line"], row["reason"]) for row in rejected] == [
        (1, "no_header"), (6, "field_count"), (7, "empty"),
    ]  # fmt: skip
    assert (summary.header_lines, summary.columns) == (5, ("client", "ts"))


def test_a_time_of_a_capture_and_a_field() -> None:
    time = EventTime(("year",), (), "%Y %b %d %H:%M:%S", "UTC", (("ts",),))
    layout = Layout("csv", (), time, {"header": False, "names": ["ts", "year"]})
    # A field of the capture's name says nothing.
    data = b"Nov  2 06:55:22,1999\nFeb 29 00:00:00,2024\n"
    events, rejected, _ = read(data, layout, captures={"year": "2023"})
    assert [event["event_time"] for event in events] == [datetime(2023, 11, 2, 6, 55, 22, tzinfo=UTC)]
    assert [row["detail"] for row in rejected] == [
        "bad time: 2023 Feb 29 00:00:00; expected %Y %b %d %H:%M:%S, from 1970 to 2261"
    ]


def test_rows_outside_what_the_file_may_hold_are_refused() -> None:
    span = Span(datetime(2015, 5, 17, 10, tzinfo=UTC), datetime(2015, 5, 17, 11, tzinfo=UTC))
    lines = [good_lines["apache"].replace("10:05:03", time) for time in ("09:59:59", "10:00:00", "11:00:00")]
    events, rejected, _ = read("\n".join(lines).encode(), APACHE, span=span)
    assert [event["source_line"] for event in events] == [2]
    assert [(row["source_line"], row["reason"]) for row in rejected] == [
        (1, "outside_holds"),
        (3, "outside_holds"),
    ]


@pytest.mark.parametrize(
    ("local", "expected"),
    [
        ("2024-03-31 02:30:00", "no_such_local_time"),
        ("2024-10-27 02:30:00", datetime(2024, 10, 27, 0, 30, tzinfo=UTC)),
        ("2024-07-01 12:00:00", datetime(2024, 7, 1, 10, tzinfo=UTC)),
    ],
)
def test_local_times_that_a_clock_change_skips_or_repeats(local: str, expected: object) -> None:
    layout = Layout(
        "csv", (), EventTime(("ts",), (), "iso", "Europe/Berlin"), {"header": False, "names": ["ts"]}
    )
    events, rejected, _ = read(local.encode(), layout)
    assert [event["event_time"] for event in events] + [row["reason"] for row in rejected] == [expected]
    naive = Layout("csv", (), EventTime(("ts",)), {"header": False, "names": ["ts"]})
    assert [row["reason"] for row in read(local.encode(), naive)[1]] == ["no_zone"]


def test_a_gzip_cut_anywhere_gives_what_can_be_read_and_one_rejection() -> None:
    data = "".join(good_lines["apache"] + "\n" for _ in range(50)).encode()
    stored = gzip.compress(data)
    for cut in range(0, len(stored), 7):
        events, rejected, summary = read(stored[:cut], APACHE, "log.gz")
        text = zlib.decompressobj(wbits=31).decompress(stored[:cut])
        # A line that is cut may still look like one.
        whole, half = text[: text.rfind(b"\n") + 1], text[text.rfind(b"\n") + 1 :]
        assert events == read(whole, APACHE)[0]
        assert [(row["reason"], row["raw"]) for row in rejected] == [("truncated", half.decode())]
        assert rejected[-1]["source_line"] == summary.lines == whole.count(b"\n") + 1
        assert summary.broken is not None
    assert read(stored[:20] + b"\0\0\0\0" + stored[24:], APACHE, "log.gz")[2].broken is not None
    assert read(stored + stored, APACHE, "log.gz")[2].accepted == 100


class Short(io.BytesIO):
    """Gives no more than some bytes at a read."""

    most = 1

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(self.most)


@pytest.mark.parametrize("name", ["log.gz", "log.zst"])
@settings(max_examples=60)
@given(at=st.floats(0, 1, exclude_max=True), change=st.integers(1, 255), most=st.integers(1, 5000))
def test_a_flipped_byte_gives_the_lines_before_it_however_the_file_is_read(
    name: str, at: float, change: int, most: int
) -> None:
    lines = [good_lines["apache"].replace(" 12 ", f" {number**4} ") + "\n" for number in range(500)]
    data = "".join(lines).encode()
    # Several members, or blocks of one frame: of one alone that is broken little can be read.
    parts = [data[start : start + 9000] for start in range(0, len(data), 9000)]
    if name == "log.gz":
        stored = [gzip.compress(part) for part in parts]
    else:
        compressor = zstandard.ZstdCompressor(write_checksum=True).compressobj()
        flush = zstandard.COMPRESSOBJ_FLUSH_BLOCK
        stored = [compressor.compress(part) + compressor.flush(flush) for part in parts]
        stored.append(compressor.flush())
    ends = list(accumulate(map(len, stored)))
    index = int(at * ends[-1])
    broken = bytearray(b"".join(stored))
    broken[index] ^= change

    events, rejected, summary = read(bytes(broken), APACHE, name)
    source = Short(broken)
    source.most = most
    assert read(source, APACHE, name) == (events, rejected, summary)
    if summary.broken is None:
        # Not every byte means something: a gzip header has a time and a system.
        assert summary.sha256 == hashlib.sha256(data).hexdigest()
        return
    assert rejected[-1]["source_line"] == summary.lines
    assert summary.broken == f"{rejected[-1]['reason']}: {rejected[-1]['detail']}"
    assert rejected[-1]["detail"].startswith(f"after {summary.bytes} decompressed bytes: ")
    before = b"".join(part for part, end in zip(parts, ends, strict=False) if end <= index)
    assert events[: before.count(b"\n")] == read(data, APACHE)[0][: before.count(b"\n")]
    text = bytearray()
    with suppress(Broken):
        for piece in unpacked(io.BytesIO(broken), name):
            text += piece
    whole = text.rfind(b"\n") + 1
    assert rejected[-1]["raw"] == text[whole:].decode(errors="backslashreplace")
    assert events == read(bytes(text[:whole]), APACHE)[0]


def test_prefixes_are_digested_where_asked() -> None:
    data = good_lines["apache"].encode() * 3
    _, _, summary = read(data, APACHE, known=[5, len(data), len(data) + 1])
    assert summary.prefix_digests == {
        length: hashlib.sha256(data[:length]).hexdigest() for length in (5, len(data))
    }
    assert summary.sha256 == hashlib.sha256(data).hexdigest()


def test_the_real_log_is_read_whole() -> None:
    stored = (DATA / "apache_access.log.gz").read_bytes()
    events, rejected, summary = read(stored, APACHE, "apache_access.log.gz")
    assert (summary.lines, len(events), len(rejected)) == (10_000, 9_999, 1)
    # What the vectorised parser refuses has no closing quote.
    assert not rejected[0]["raw"].endswith('"')
    plain = zlib.decompress(stored, wbits=31).decode().splitlines()
    assert sum(event["bytes"] or 0 for event in events) == sum(
        int(size) for line in plain if (size := line.split('" ')[1].split()[1]) != "-" and line.endswith('"')
    )


NAMES = ("client", "status", "took", "ok")
HEADLESS = Layout("csv", FIELDS, CSV.time, {"header": False, "names": ["ts", "x"]})


@pytest.mark.parametrize(
    ("layout", "data", "unknown", "absent"),
    [
        # A header's names count once there is a record below it.
        (CSV, "ts,client,x,a", (), ()),
        (CSV, "ts,client,x,a\n1,b,,\n", ("a", "x"), ("status", "took", "ok")),
        (CSV, "ts,client,x\n1,b\n", (), ()),
        (HEADLESS, "1,2", (), NAMES),
        (ZEEK, "#fields\tts\tx\n1\t2\n#fields\tts\tid.orig_h\n1\t-\n", ("x",), ("status", "took", "ok")),
        # What is declared down an object makes the object known; null is there, and is no value.
        (
            JSON,
            '{"ts": 1, "x": {"client": 1}, "id": {"orig_h": null, "y": 2}, "ok": null}',
            ("x",),
            ("status", "took"),
        ),
        (JSON, '{"a\\"b": "\\\\", "c" : ":", "d": "\\"e\\": 1"}', ('a"b', "c", "d"), NAMES),
        (JSON, '{"ts": 1, "x": [{"y": 1}], "z": {"status": 1}}\n' * 3 + "no", ("x", "z"), NAMES),
        (JSON, "no", (), ()),
        (KV, "ts=1 x=2 client=", ("x",), ("status", "took", "ok")),
        (CALLS, "open x=1 => 5", ("x",), ("path",)),
        (REGEX, "1 a\n2 b 5", (), ()),
        (REGEX, "1 a", (), ("status",)),
        (APACHE, good_lines["apache"], (), ()),
    ],
)  # fmt: skip
def test_what_a_file_brings_and_lacks(
    layout: Layout, data: str, unknown: tuple[str, ...], absent: tuple[str, ...]
) -> None:
    for block in (1, 1 << 20):
        summary = read(data.encode(), layout, block=block)[2]
        assert (summary.unknown, summary.absent) == (unknown, absent)


def test_of_many_unknown_names_the_first_hundred_are_kept() -> None:
    names = [f"{number * 7919 % 10_000:04}" for number in range(10_000)]
    data = "".join(f'{{"{name}": 1}}\n' for name in names).encode()
    for block in (5000, 1 << 20):
        assert read(data, JSON, block=block)[2].unknown == tuple(f"{number:04}" for number in range(100))


@pytest.mark.parametrize("block", [1, 1 << 20])
def test_records_are_numbered_through_the_file(block: int) -> None:
    data = b'{"v": 1, "Records": [{"ts": 1, "client": "a"}, {"ts": 2.50} ,{"x": [1, 2.0]}]}\r\n'
    data += b'{}\n{"Records": []}\n{"Records": [{"ts": 3}]}'
    events, rejected, summary = read(data, RECORDS, block=block)
    assert [(event["source_line"], event["event_time"].timestamp()) for event in events] == [
        (1, 1.0),
        (2, 2.5),
        (5, 3.0),
    ]
    assert [(row["source_line"], row["reason"], row["raw"]) for row in rejected] == [
        (3, "missing_time", '{"x": [1, 2.0]}'),
        (4, "no_records", "{}"),
    ]
    assert (summary.lines, summary.bytes) == (5, len(data))
    assert summary.unknown == ("x",)


def test_records_of_a_line_of_many_megabytes_are_read() -> None:
    record = '{"ts": 1, "client": "' + "a" * 1000 + '"}'
    data = ('{"Records": [' + ", ".join([record] * 12_000) + "]}").encode()
    assert 2**23 < len(data) < 2**24
    events, rejected, summary = read(data, RECORDS)
    assert (len(events), rejected, summary.lines) == (12_000, [], 12_000)


def test_what_no_column_takes_is_kept_as_it_is_written() -> None:
    layout = Layout(
        "json", (Field("name", ("user.name", "x.name")),), EventTime(("ts",), (), "epoch"), keep_rest=True
    )
    lines = [
        '{"ts": 1, "user": {"name": "a"}, "n": null}',
        '{"ts": 1, "user": {"name": "a", "id": 1.50, "o": null}, "b": [1.0, {"d": 1, "c": null}], '
        '"a": "\\u00e9\\n"}',
        '{"ts": 1, "x": {}, "y": true, "user.name": 2}',
    ]
    kept = [
        None,
        '{"a":"é\\n","b":[1.0,{"c":null,"d":1}],"user":{"id":1.50}}',
        '{"x":{},"y":true}',
    ]
    assert [event["rest"] for event in read("\n".join(lines).encode(), layout)[0]] == kept
    csv = Layout("csv", (), EventTime(("ts",), (), "epoch"), keep_rest=True)
    data = b'ts,b,a\n1,,\n2,x,"a""\\\t\x01"\n'
    assert [event["rest"] for event in read(data, csv)[0]] == [None, '{"a":"a\\"\\\\\\t\\u0001","b":"x"}']


def test_times_by_lines_count_every_line() -> None:
    data = b"open\n\nread fd=3\nno such call\nclose\n"
    start = datetime(2024, 1, 1, 5, tzinfo=UTC)
    layout = Layout("syscalls", CALLS.fields, EventTime((), by_lines=ByLines(500_000)))
    events, rejected, _ = read(data, layout, start=start)
    assert [(e["call"], (e["event_time"] - start).total_seconds()) for e in events] == [
        ("open", 0),
        ("read", 1),
        ("close", 2),
    ]
    assert [row["reason"] for row in rejected] == ["empty", "no_match"]
    with pytest.raises(ValueError, match="times count from the file's name, which has none"):
        read(data, layout)
    far = Layout("syscalls", (), EventTime((), by_lines=ByLines(2**70, 5)))
    events, rejected, _ = read(b"a\nb\n", far)
    assert [event["event_time"].timestamp() for event in events] == [5e-6]
    assert rejected[0]["detail"] == "bad time: 2; expected a line whose time is from 1970 to 2261"
