"""For any input, events + rejections + header lines = lines, for any blocks, and without an exception."""

import gzip
import hashlib
import json
import zlib
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.formats.reference_lines import lines
from tests.formats.some_formats import (
    APACHE,
    CALLS,
    CSV,
    DATA,
    FIELDS,
    JSON,
    KV,
    LAYOUTS,
    RECORDS,
    REGEX,
    ZEEK,
    good_lines,
    heads,
    read,
)
from transom.formats.record_format import EventTime, Field, RecordFormat, TimeByLineNumber

pieces = st.one_of(
    st.binary(max_size=40),
    st.sampled_from(
        [b"\n", b"\r\n", b"", b"\0", b"#fields\tts\tb\n", b'{"ts":1}', b"{}", b"[1]", b'"', b"\xff\xfe"]
    ),
    st.sampled_from([line.encode() + b"\n" for line in good_lines.values()]),
)


@pytest.mark.parametrize("name", LAYOUTS)
@given(parts=st.lists(pieces, max_size=30), block=st.integers(1, 200))
@example(parts=[b"\xef\xbb\xbf"], block=1)
def test_every_line_is_accounted_for_with_any_blocks(name: str, parts: list[bytes], block: int) -> None:
    data = heads.get(name, b"") + b"".join(parts)
    whole = read(data, LAYOUTS[name])
    cut = read(data, LAYOUTS[name], block=block)
    assert cut == whole
    if name != "records" and whole[2].broken is None:
        assert whole[2].lines == len(lines(data))
    assert read(gzip.compress(data), LAYOUTS[name], "log.gz") == whole


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
        # A line next to one that Arrow rejects is read by the slow parser.
        one = read(line + b'{"client": {"a": 1}, "ts": "no"}\n', JSON)
        events += [{**event, "source_line": number} for event in one[0]]
        rejected += [{**row, "source_line": number} for row in one[1] if row["source_line"] == 1]
    assert [repr(event) for event in together[0]] == [repr(event) for event in events]
    assert together[1] == rejected


def test_prefixes_are_digested_on_request() -> None:
    data = good_lines["apache"].encode() * 3
    _, _, summary = read(data, APACHE, known=[5, len(data), len(data) + 1])
    assert summary.prefix_digests == {
        length: hashlib.sha256(data[:length]).hexdigest() for length in (5, len(data))
    }
    assert summary.sha256 == hashlib.sha256(data).hexdigest()


def test_real_log_is_read_completely() -> None:
    stored = (DATA / "apache_access.log.gz").read_bytes()
    events, rejected, summary = read(stored, APACHE, "apache_access.log.gz")
    assert (summary.lines, len(events), len(rejected)) == (10_000, 9_999, 1)
    # The lines that the vectorised parser rejects have no closing quote.
    assert not rejected[0]["raw"].endswith('"')
    plain = zlib.decompress(stored, wbits=31).decode().splitlines()
    assert sum(event["bytes"] or 0 for event in events) == sum(
        int(size) for line in plain if (size := line.split('" ')[1].split()[1]) != "-" and line.endswith('"')
    )


NAMES = ("client", "status", "took", "ok")


HEADLESS = RecordFormat("csv", FIELDS, CSV.time, {"header": False, "names": ["ts", "x"]})


@pytest.mark.parametrize(
    ("layout", "data", "unknown", "absent"),
    [
        # A header's names count once there is a record below it.
        (CSV, "ts,client,x,a", (), ()),
        (CSV, "ts,client,x,a\n1,b,,\n", ("a", "x"), ("status", "took", "ok")),
        (CSV, "ts,client,x\n1,b\n", (), ()),
        (HEADLESS, "1,2", (), NAMES),
        (ZEEK, "#fields\tts\tx\n1\t2\n#fields\tts\tid.orig_h\n1\t-\n", ("x",), ("status", "took", "ok")),
        # A declared nested field makes the object known; null is present, and is no value.
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
        # A pattern declares its names, even if no line matches.
        (REGEX, "1 a", (), ()),
        (APACHE, good_lines["apache"], (), ()),
    ],
)  # fmt: skip
def test_new_and_missing_fields_of_a_file_are_known(
    layout: RecordFormat, data: str, unknown: tuple[str, ...], absent: tuple[str, ...]
) -> None:
    for block in (1, 1 << 20):
        summary = read(data.encode(), layout, block=block)[2]
        assert (summary.unknown, summary.absent) == (unknown, absent)


def test_first_hundred_of_many_unknown_names_are_stored() -> None:
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


def test_fields_without_a_column_are_stored_as_written() -> None:
    layout = RecordFormat(
        "json", (Field("name", ("user.name", "x.name")),), EventTime(("ts",), (), "epoch"), keep_rest=True
    )
    lines = [
        '{"ts": 1, "user": {"name": "a"}, "n": null}',
        '{"ts": 1, "user": {"name": "a", "id": 1.50, "o": null}, "b": [1.0, {"d": 1, "c": null}], '
        '"a": "\\u00e9\\n"}',
        '{"ts": 1, "x": {}, "y": true, "user.name": 2}',
    ]
    retained = [
        None,
        '{"a":"é\\n","b":[1.0,{"c":null,"d":1}],"user":{"id":1.50}}',
        '{"x":{},"y":true}',
    ]
    assert [event["rest"] for event in read("\n".join(lines).encode(), layout)[0]] == retained
    csv = RecordFormat("csv", (), EventTime(("ts",), (), "epoch"), keep_rest=True)
    data = b'ts,b,a\n1,,\n2,x,"a""\\\t\x01"\n'
    assert [event["rest"] for event in read(data, csv)[0]] == [None, '{"a":"a\\"\\\\\\t\\u0001","b":"x"}']


def test_times_by_lines_count_every_line() -> None:
    data = b"open\n\nread fd=3\nno such call\nclose\n"
    start = datetime(2024, 1, 1, 5, tzinfo=UTC)
    layout = RecordFormat("syscalls", CALLS.fields, EventTime((), by_lines=TimeByLineNumber(500_000)))
    events, rejected, _ = read(data, layout, start=start)
    assert [(e["call"], (e["event_time"] - start).total_seconds()) for e in events] == [
        ("open", 0),
        ("read", 1),
        ("close", 2),
    ]
    assert [row["reason"] for row in rejected] == ["empty", "no_match"]
    with pytest.raises(ValueError, match="times count from the file's name, which has none"):
        read(data, layout)
    far = RecordFormat("syscalls", (), EventTime((), by_lines=TimeByLineNumber(2**70, 5)))
    events, rejected, _ = read(b"a\nb\n", far)
    assert [event["event_time"].timestamp() for event in events] == [5e-6]
    assert rejected[0]["detail"] == "bad time: 2; expected a line whose time is from 1970 to 2261"
