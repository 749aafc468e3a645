"""The vectorised parsers and the plain reference agree on lines near the grammar, and on any bytes."""

import io
import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from transom.formats import json_lines as json_way
from transom.formats import json_records
from transom.formats.layout import ByLines, EventTime, Field, Layout, Span
from transom.formats.reading import Chunk, Summary, read_file
from unit.formats.reference import Reading, lines, read

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
BY_LINES = EventTime((), by_lines=ByLines(3_600_000_000, 9_214_646_400_000_000 - 3 * 3_600_000_000))
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
    "apache": Layout("apache", APACHE_COLUMNS, EventTime(("time",))),
    "apache common": Layout(
        "apache",
        APACHE_COLUMNS[3:],
        EventTime(("time",), (), "%d/%b/%Y:%H:%M:%S %z"),
        {"variant": "common"},
        keep_rest=True,
    ),
    "csv": Layout("csv", COLUMNS, EPOCH),
    "csv semicolons": Layout("csv", COLUMNS[2:], AMERICAN, {"delimiter": ";", "quote": "'"}, keep_rest=True),
    "csv names": Layout("csv", COLUMNS, LOCAL, {"header": False, "names": NAMES}),
    "zeek": Layout("zeek", COLUMNS, ENDS, {"variant": "auto"}),
    "zeek tsv": Layout(
        "zeek", COLUMNS[:1] + COLUMNS[3:], EventTime(("ts",), (), "iso"), {"variant": "tsv"}, keep_rest=True
    ),
    "zeek json": Layout("zeek", COLUMNS, EPOCH, {"variant": "json"}),
    "json": Layout("json", COLUMNS, ENDS),
    "json micros": Layout("json", COLUMNS[:4], EventTime(("ts",), (), "epoch_us")),
    "json local": Layout(
        "json", (*COLUMNS[:4], Field("name", ("user.name", "x.a.b"))), LOCAL, keep_rest=True
    ),
    # A path under two types cannot be read the fast way at all.
    "json joined": Layout("json", COLUMNS[1:4], JOINED, keep_rest=True),
    "json records": Layout("json", COLUMNS, ENDS, {"records": "log.items[]"}),
    "json lines": Layout("json", COLUMNS[:3], EventTime((), by_lines=ByLines(999_999))),
    "csv joined": Layout("csv", COLUMNS[:4], JOINED),
    "regex": Layout("regex", COLUMNS, EPOCH, {"pattern": PATTERN}),
    "regex lines": Layout(
        "regex", (Field("a", ("a",)), Field("b", ("b",))), BY_LINES, {"pattern": LETTERS}, keep_rest=True
    ),
    "kv": Layout("kv", COLUMNS, ENDS),
    "kv commas": Layout(
        "kv", COLUMNS[1:4], ENDS, {"separator": ",", "assign": ":", "quote": "'"}, keep_rest=True
    ),
    "syscalls": Layout("syscalls", CALLS, BY_LINES),
    "syscalls lead": Layout("syscalls", CALLS[1:], EPOCH, {"lead": ["ts", "pid"]}, keep_rest=True),
    "json twice": Layout("json", (*COLUMNS, Field("ts", ("ts",)), Field("word", ("status",))), ENDS),
}


NAMED = datetime(2261, 12, 31, 23, 59, 58, tzinfo=UTC)
"""The start that a file's name says; soon after it there are no times any more."""


def plain(reading: Reading) -> tuple[Any, ...]:
    """With -0.0 apart from 0.0, 1 from 1.0 and from True."""
    events = [
        (line, time, {name: repr(value) for name, value in values.items()})
        for line, time, values in reading.events
    ]
    drift = sorted(reading.unknown), sorted(reading.absent)
    return events, reading.rejections, reading.header_lines, sorted(reading.columns), drift


def vectorised(data: bytes, layout: Layout, span: Span | None, block: int) -> Reading:
    reading = Reading()
    *chunks, summary = read_file(io.BytesIO(data), "log", layout, span, start=NAMED, block=block)
    assert isinstance(summary, Summary)
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


def agree(data: bytes, layout: Layout, block: int = 1 << 20, bounded: bool = False) -> Reading:
    """Both readings are one; `bounded`, also with a span that begins and ends at an event of the file."""
    expected = read(data, layout, None, NAMED)
    assert plain(vectorised(data, layout, None, block)) == plain(expected)
    if "records" not in layout.options:
        assert len(expected.events) + len(expected.rejections) + expected.header_lines == len(lines(data))
    if bounded and expected.events:
        times = [time for _, time, _ in expected.events]
        span = Span(min(times), max(times))
        assert plain(vectorised(data, layout, span, block)) == plain(read(data, layout, span, NAMED))
    return expected


# Values near the grammar

NUMBERS = [
    "1", "-1", "-1.0", "-1e0", "+1.5", "1.", ".5", "1.e2", "-0", "-0.0", "-0.0001", "007", "12", "12.0",
    "0.0005", "2.0035", "1.0005", "1.25", "3.75", "6.25", "1e15", "1e400", "-1e400", "1e-400", "5e-324",
    "9007199254740991", "9007199254740992", "9007199254740993", "-9007199254740993", "1125899906842.6245",
    "1125899906842624", "1125899906842625", "1125899906842.624", "1125899906842.625",
    "9223372036854775808", "2814749767106560", "2814749767106561", "9" * 400, "0" * 400 + "1",
    "NaN", "nan", "Infinity", "-inf", "0x10", "1_000", "٣", "--1", "1e", "1e5.5", ".", "-", "+", "", " 1",
]  # fmt: skip
SECONDS = [
    "0", "1431857103.5", "1431857103.0000005", "1431857103.0000015", "1431857103.123456789", "9214646399.9",
    "9214646400", "-1", "-0.0000001", "1e9", "999999999", "999999999.9999999", "-1431857104", "1e18", "1e19",
    "12e300",
]  # fmt: skip
ISOS = [
    "20240701", "2024-07-01", "2024-W27-1", "2024-07-01T12", "2024-07-01T12:00:00,5", "2024-07-01T24:00",
    "2024-07-01T12:00:00.1234567Z", "2024-02-30", "2024-07-01T12:00:60", "never", "none", "-", "now",
]  # fmt: skip
HOURS = [
    "2024-03-31T01:59:59", "2024-03-31T02:00", "2024-03-31T02:30", "2024-03-31T03:00",
    "2024-10-27T01:59:59", "2024-10-27T02:00", "2024-10-27T02:30", "2024-10-27T03:00",
    "2024-03-10T01:59:59", "2024-03-10T02:00", "2024-03-10T02:30", "2024-03-10T03:00",
    "2024-11-03T00:59:59", "2024-11-03T01:00", "2024-11-03T01:30", "2024-11-03T02:00",
    "0001-01-01", "0001-01-01T00:30", "0001-01-02", "9999-12-30", "9999-12-31T23:30", "1893-04-01T00:03",
    "1883-11-18T12:01", "1970-01-01", "1970-01-01T00:59:59", "1970-01-01T01:00", "2261-12-31T23:59:59",
    "2262-01-01", "2262-01-01T01:00", "2015-05-17T12:00", "2015-05-17T11:59:59",
]  # fmt: skip
numbers = st.one_of(
    st.integers(-9, 99).map(str),
    st.integers(-(10**5), 10**5).map(lambda n: str(n / 10_000)),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.sampled_from(NUMBERS),
)
seconds = st.one_of(
    st.integers(0, 2_000_000_000_000_000).map(lambda micros: f"{micros // 10**6}.{micros % 10**6:06}"),
    st.sampled_from(SECONDS),
    numbers,
)
moments = st.one_of(
    st.sampled_from(HOURS).map(datetime.fromisoformat),
    st.datetimes(datetime(2015, 1, 1), datetime(2025, 1, 1)),  # noqa: DTZ001
    st.datetimes(datetime(1970, 1, 2), datetime(2261, 1, 1)),  # noqa: DTZ001
)


def american(moment: datetime) -> str:
    return f"{moment.month}/{moment.day}/{moment.year:04} {moment:%H:%M:%S}"


isos = st.one_of(
    moments.map(datetime.isoformat),
    st.tuples(moments, st.sampled_from(["Z", "+02:00", "-0330", "+23:59", "-23:59", "+24:00", " UTC"])).map(
        lambda pair: pair[0].isoformat() + pair[1]
    ),
    st.sampled_from(ISOS),
)
words = st.one_of(
    st.sampled_from(
        ["", "-", "(empty)", "none", "a", "a b", '"', '""', "'", "\\", "\\x09", "\r", "#", "é", "\0"]
    ),
    st.text(st.characters(exclude_characters="\n", codec="utf-8"), max_size=5),
)


flags = st.sampled_from(["true", "false", "T", "F", "1", "0", "True", "FALSE"])
fractions = st.one_of(
    st.integers(-(10**5), 10**5).map(lambda n: str(n / 10_000)),
    # Halves of the step, most of which are no doubles.
    st.integers(-(10**4), 10**4).map(lambda n: str((10 * n + 5) / 10_000)),
    st.sampled_from(["-1", "-1.0", "2.0035", "0.0005", "3.75", "6.25", "-0.0001", "12", "8388608.0005"]),
)
instants = st.one_of(
    st.integers(0, 2_000_000_000_000_000).map(lambda micros: f"{micros // 10**6}.{micros % 10**6:06}"),
    st.sampled_from(["0", "1431857103.5", "1431857103.0000005", "1431857103.123456789", "9214646399.9"]),
)


def written_time(time: EventTime) -> SearchStrategy[str]:
    """Times in a layout's form, nearly all of which are taken."""
    if time.time_format == "epoch":
        return instants
    if time.time_format == "epoch_us":
        return st.integers(0, 2 * 10**15).map(str)
    if "%" in time.time_format:
        return moments.map(american)
    zones = ["Z", "+02:00", "-03:30", "", ""] if time.zone else ["Z", "-03:30"]
    return st.tuples(moments, st.sampled_from(zones)).map(lambda pair: pair[0].isoformat() + pair[1])


def sound(name: str, time: EventTime) -> SearchStrategy[str]:
    match name:
        case "ts":
            return written_time(time)
        case "at":
            return st.one_of(st.just("never"), written_time(LOCAL))
        case "tick":
            return st.one_of(st.integers(0, 2 * 10**12).map(str), st.sampled_from(["0", "0.0", "5.5"]))
        case "ok":
            return flags
        case "status":
            return st.one_of(st.integers(-1, 600).map(str), st.sampled_from(["9007199254740992", "-0"]))
        case "took" | "size" | "duration":
            return fractions
    return st.sampled_from(["", "-", "none", "a", "b c", "é", "💩", "(empty)", "x'y", 'x"y'])


def odd(name: str, time: EventTime) -> SearchStrategy[str]:
    match name:
        case "ts" | "at":
            return st.one_of(written_time(time), seconds, isos, moments.map(american))
        case "tick" | "status" | "took" | "size" | "duration":
            return st.one_of(sound(name, time), seconds, numbers)
        case "ok":
            return st.one_of(flags, st.sampled_from(["yes", "-", "", "2", "tRue"]))
    return words


NASTY = [
    '"', '""', "'", "\\", '\\"', ",", ";", "\t", " ", "  ", "\r", "\0", "-", "[", "]", "{", "}", ":", "#",
    "null", "NaN", "1e400", "\\ud800", "\\u0000", "\ufeff", "\x85", "\xa0", "\x0b", "\x1c", "\u2028", "💩",
    "(empty)", "\n",
]  # fmt: skip


@st.composite
def mutated(draw: DrawFn, line: str) -> bytes:
    """A line as it is, or with a few characters cut out, put in or written over."""
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 1, 2]))):
        at = draw(st.integers(0, len(line)))
        upto = at + draw(st.sampled_from([0, 0, 1, 1, 2, 10]))
        put = draw(st.one_of(st.just(""), st.sampled_from(NASTY), st.just(line[at:upto] * 2)))
        line = line[:at] + put + line[upto:]
    data = line.encode()
    if draw(st.integers(0, 19)) == 0:
        at = draw(st.integers(0, len(data)))
        data = data[:at] + draw(st.sampled_from([b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf5"])) + data[at:]
    return data


ends = st.sampled_from([b"\n", b"\n", b"\n", b"\r\n", b"\n\n", b"\r\r\n"])
before = st.sampled_from([b"", b"\n", b"\r\n\n", b"\xef\xbb\xbf", b"\xef\xbb\xbf\n", b" \n", b"\xff\n"])


@st.composite
def files(
    draw: DrawFn, good: SearchStrategy[str], strange: SearchStrategy[str], head: str | None = None
) -> bytes:
    """Files of sound lines, with or without a few strange ones, or of strange lines only.

    The fast ways take many lines at once, and one strange line may send its neighbours the slow way:
    each has to be met with lines of its own.
    """
    kind = draw(st.sampled_from(["sound", "mixed", "mixed", "strange"]))
    if kind == "strange":
        parts = [draw(before)]
        if head is not None:
            parts += [draw(st.one_of(st.just(head.encode()), mutated(head))), draw(ends)]
        for line in draw(st.lists(strange, max_size=6)):
            parts += [draw(mutated(line)), draw(ends)]
        return b"".join(parts[:-1] if draw(st.booleans()) else parts)
    cut = [line.encode() for line in draw(st.lists(good, min_size=1, max_size=5))]
    cut *= draw(st.sampled_from([1, 1, 1, 1, 20]))
    if kind == "mixed":
        for line in draw(st.lists(strange, min_size=1, max_size=2)):
            cut.insert(draw(st.integers(0, len(cut))), draw(mutated(line)))
    if head is not None:
        cut.insert(0, head.encode())
    end = draw(st.sampled_from([b"\n", b"\r\n"]))
    return (
        draw(st.sampled_from([b"", b"", b"\xef\xbb\xbf"])) + end.join(cut) + draw(st.sampled_from([b"", end]))
    )


blocks = st.sampled_from([1, 30, 300, 1 << 20])


@st.composite
def apache_lines(draw: DrawFn, variant: str, strange: bool) -> str:
    moment = draw(moments)
    form = f"{moment.day:02}/{moment:%b}/{moment.year:04}:{moment:%H:%M:%S}"
    zones = [" +0000", " -0500", " +2359"] + ["", " +9999", " Z"] * strange
    inside = st.sampled_from(
        ["GET /a HTTP/1.1", "GET /a b HTTP/2", "HEAD / HTTP/", "/a", "-", "", '\\"', "é \\x"]
    )
    user = st.sampled_from(["-", "é", "two words", "", "[x]"])
    if strange:
        inside, user = st.one_of(inside, words), st.one_of(user, words)
    sizes = ["12", "-", "0", "9007199254740992"] + ["9" * 30, "1.5", ""] * strange
    codes = ["200", "404"] + ["20", "٢٠٠", "2000"] * strange
    line = f"{draw(st.sampled_from(['10.0.0.1', 'é', '-']))} {draw(st.sampled_from(['-', 'i']))} {draw(user)}"
    line += f" [{form}{draw(st.sampled_from(zones))}]"
    line += f' "{draw(inside)}" {draw(st.sampled_from(codes))} {draw(st.sampled_from(sizes))}'
    tail = draw(st.integers(0, 3)) == 0 if variant == "common" else draw(st.integers(0, 3)) > 0
    return f'{line} "{draw(inside)}" "{draw(inside)}"' if tail else line


@pytest.mark.parametrize("name", ["apache", "apache common"])
@settings(max_examples=80)
@given(st.data())
def test_apache(name: str, data: st.DataObject) -> None:
    variant = str(LAYOUTS[name].options.get("variant"))
    drawn = files(apache_lines(variant, False), apache_lines(variant, True))
    agree(data.draw(drawn), LAYOUTS[name], data.draw(blocks), data.draw(st.booleans()))


@st.composite
def csv_files(draw: DrawFn, layout: Layout) -> bytes:
    delimiter = str(layout.options.get("delimiter", ","))
    quote = str(layout.options.get("quote", '"'))
    names = NAMES
    if layout.options.get("header", True):
        names = draw(st.one_of(st.just(NAMES), st.permutations([*NAMES, "client"])))

    def quoted(text: str) -> str:
        return quote + text.replace(quote, quote * 2) + quote

    def needed(text: str) -> SearchStrategy[str]:
        return st.sampled_from(
            [quoted(text)] if delimiter in text or quote in text else [text] * 9 + [quoted(text)]
        )

    def any_way(text: str) -> SearchStrategy[str]:
        return st.sampled_from([text, text, text, quoted(text), quoted(text) + "b", "b" + quoted(text)])

    good = [sound(name, layout.time).flatmap(needed) for name in names]
    strange = [odd(name, layout.time).flatmap(any_way) for name in names]
    head = delimiter.join(names) if layout.options.get("header", True) else None
    return draw(files(st.tuples(*good).map(delimiter.join), st.tuples(*strange).map(delimiter.join), head))


@pytest.mark.parametrize("name", ["csv", "csv semicolons", "csv names"])
@settings(max_examples=75)
@given(st.data())
def test_csv(name: str, data: st.DataObject) -> None:
    agree(data.draw(csv_files(LAYOUTS[name])), LAYOUTS[name], data.draw(blocks), data.draw(st.booleans()))


DIRECTIVES = [
    "#separator ", "#separator \\", "#separator \\ud800", "#separator \\z", "#separator \\N{DIGIT", "#close",
    "#separator \\x09", "#separator \\xff", "#separator\t\\x20", "#unset_field", "#unset_field\t1", "#fields",
    "#fields\t", "#fields\tts\tstatus", "#fields\tts\tstatus\n1\t-", "#fields\tclient\tts\n2\t1", "1\t2", "#",
]  # fmt: skip


@st.composite
def zeek_files(draw: DrawFn, layout: Layout) -> bytes:
    separator = draw(st.sampled_from(["\t", "\t", "\t", " ", "|", "é", "ab"]))
    written = {"\t": "\\x09", " ": "\\x20", "ab": "\\x61b"}.get(separator, separator)
    unset = draw(st.sampled_from(["-", "-", "", "none", "(empty)"]))
    names = draw(st.one_of(st.just(NAMES), st.permutations(NAMES), st.just([*NAMES[:4], "id.orig_h", "ts"])))

    def row(kind: Callable[[str, EventTime], SearchStrategy[str]]) -> SearchStrategy[str]:
        values = [
            st.one_of(kind(name, layout.time), *([st.just(unset)] if name != "ts" else [])) for name in names
        ]
        return st.tuples(*values).map(
            lambda row: separator.join(value.replace(separator, "_") for value in row)
        )

    head = "\n".join(
        [
            f"#separator {written}",
            separator.join(["#set_separator", ","]),
            separator.join(["#unset_field", unset]),
            separator.join(["#empty_field", draw(st.sampled_from(["(empty)", "EMPTY", ""]))]),
            separator.join(["#fields", *names]),
            separator.join(["#types", *("string" for _ in names)]),
        ]
    )
    return draw(files(row(sound), st.one_of(row(odd), st.sampled_from(DIRECTIVES)), head))


@pytest.mark.parametrize("name", ["zeek", "zeek tsv"])
@settings(max_examples=80)
@given(st.data())
def test_zeek(name: str, data: st.DataObject) -> None:
    agree(data.draw(zeek_files(LAYOUTS[name])), LAYOUTS[name], data.draw(blocks), data.draw(st.booleans()))


json_texts = st.one_of(
    words.map(lambda text: json.dumps(text, ensure_ascii=False)),
    words.map(json.dumps),
    st.sampled_from(
        ['"\\ud800"', '"\\udc00\\ud800"', '"\\ud83d\\ude00"', '"a\\nb"', '"\\u0000"', '"\\/"', '"\\q"']
    ),
)
json_values = st.recursive(
    st.one_of(numbers, json_texts, st.sampled_from(["null", "true", "false", "NaN", "-Infinity", "True"])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda parts: f"[{','.join(parts)}]"),
        st.lists(st.tuples(json_texts, inner), max_size=3).map(
            lambda parts: "{" + ", ".join(f"{name}: {value}" for name, value in parts) + "}"
        ),
    ),
    max_leaves=5,
)
nested = st.sampled_from([98, 99, 100, 101, 500]).map(lambda depth: "[" * depth + "]" * depth)
TEXTS = ("client", "at", "user.name", "id.orig_h", "id_orig_h")


def as_json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def is_text(name: str, time: EventTime) -> bool:
    return name in TEXTS or (name == "ts" and time.time_format == "iso")


def sound_member(name: str, time: EventTime) -> SearchStrategy[str]:
    """What the fast way takes."""
    if name == "ok":
        return st.sampled_from(["true", "false", "null"])
    if is_text(name, time):
        return sound(name, time).map(as_json)
    return (
        st.one_of(sound(name, time), sound(name, time), st.just("null"))
        if name != "ts"
        else sound(name, time)
    )


def odd_member(name: str, time: EventTime) -> SearchStrategy[str]:
    if name in ("user", "id"):
        inside = st.sampled_from(['"name"', '"took"', '"orig_h"'])
        return st.tuples(inside, json_values).map(lambda pair: f"{{{pair[0]}: {pair[1]}}}")
    if name == "x":
        return st.one_of(json_values, nested)
    texts = odd(name, time)
    return st.one_of(sound_member(name, time), texts, texts.map(as_json), json_values)


NOT_ONE_OBJECT = [
    "{}{}", '{"ts": 1}, {"ts": 2}', '{"ts": 1}}', '{"ts": {}', '{"ts": "}', "[{}]", "1",
    '{"ts": 1, "x": {}', '{"ts": 1,}', '{"ts": 1, "x": -Infinity}', '{"ts": 1, "x": NaN}', "{'ts': 1}", "{}",
]  # fmt: skip


@st.composite
def json_lines(draw: DrawFn, time: EventTime, strange: bool) -> str:
    """Lines with the time first, so that most are not refused before their columns are looked at."""
    if strange and draw(st.integers(0, 7)) == 0:
        return draw(st.sampled_from(NOT_ONE_OBJECT))
    known = [*NAMES[1:], "id.orig_h", "id_orig_h", "x"] + ["ts", "user", "id"] * strange
    names = draw(st.lists(st.sampled_from(known), max_size=6, unique=not strange or draw(st.booleans())))
    # One strange member among sound ones is what a fast way may overlook.
    strange_ones = draw(st.sampled_from([set(names), *({name} for name in names)])) if strange else set()
    parts = ['"ts": ' + draw(sound_member("ts", time))] if not strange or draw(st.integers(0, 3)) else []
    for name in names:
        if name in strange_ones or name in ("user", "id", "ts"):
            texts = odd_member(name, time)
        else:
            texts = st.just("[1, {}]") if name == "x" else sound_member(name, time)
        parts.append(f'"{name}":{draw(texts)}')
    return "{" + draw(st.sampled_from([", ", ","])).join(parts) + "}"


@pytest.mark.parametrize(
    "name",
    ["json", "json micros", "json local", "json joined", "json lines", "json twice", "zeek json", "zeek"],
)
@settings(max_examples=75)
@given(st.data())
def test_json(name: str, data: st.DataObject) -> None:
    time = LAYOUTS[name].time
    drawn = files(json_lines(time, False), json_lines(time, True))
    with patch.object(json_way, "ALONE", data.draw(st.sampled_from([1, 8, 2048]))):
        agree(data.draw(drawn), LAYOUTS[name], data.draw(blocks), data.draw(st.booleans()))


@st.composite
def json_documents(draw: DrawFn, time: EventTime, strange: bool) -> str:
    """Lines that hold records where they are looked for, or elsewhere."""
    records = draw(st.lists(json_lines(time, strange), max_size=4))
    inside = "[" + draw(st.sampled_from([", ", ",", " , "])).join(records) + "]"
    if strange:
        deep = "[" * 101 + "]" * 101
        inside = draw(
            st.sampled_from(
                [inside, inside, inside + "]", "{}", "1", "null", f"[{deep}]", '[1, "a", [], {}]']
            )
        )
    forms = [
        '{"log": {"items": %s}}',
        '{"log":{"x":[{}],"items":%s ,"y":1e999} , "v":"}"}',
        ' {"log.items": %s} ',
    ]
    if strange:
        forms += [
            '{"items": %s}', "%s", '{"log": %s}', '{"log": {"items": 5, "items": %s}}',
            '{log: {"items": %s}}',
            '{"log.items": 5, "log": {"items": %s}}', '{"log": {"items": %s}, "log": {}}',
            '{"log": {"items" %s}}', '{"log": {"items": %s,}}', '{"log": {"items": %s}, "x": NaN}',
            '{"log": {"items": %s}, "log.items": []}', '{"log": {"items": %s}} x',
        ]  # fmt: skip
    return draw(st.sampled_from(forms)) % inside


@settings(max_examples=100)
@given(st.data())
def test_json_records(data: st.DataObject) -> None:
    layout = LAYOUTS["json records"]
    drawn = files(json_documents(layout.time, False), json_documents(layout.time, True))
    with patch.object(json_records, "LINES", 2):
        agree(data.draw(drawn), layout, data.draw(blocks), data.draw(st.booleans()))


regex_lines = st.tuples(
    instants,
    st.sampled_from([" ", " a", " é", " b1"]),
    st.sampled_from(["", " status=200", " status=-1", " status=9007199254740993"]),
    st.sampled_from(["", " took 0.5", " t 1.5", " took 1.2.3"]),
    st.sampled_from(["", "x", "xx"]),
).map("".join)
letter_lines = st.lists(st.sampled_from("abcde\r"), max_size=6).map("".join)


@pytest.mark.parametrize("name", ["regex", "regex lines"])
@settings(max_examples=80)
@given(st.data())
def test_regex(name: str, data: st.DataObject) -> None:
    good = regex_lines if name == "regex" else letter_lines
    drawn = files(good, st.one_of(good, words))
    agree(data.draw(drawn), LAYOUTS[name], data.draw(blocks), data.draw(st.booleans()))


SIGNS = ["'", '"', "\\", "=", ":", ",", " ", "\t", "\\'", '\\"', "''", '""', "\\\\", '="', ":'", "a=b", "a:b"]


@st.composite
def kv_lines(draw: DrawFn, layout: Layout, strange: bool) -> str:
    separator, assign, quote = (
        str(layout.options.get(name, sign))
        for name, sign in (("separator", " "), ("assign", "="), ("quote", '"'))
    )

    def value(text: str) -> str:
        if separator not in text and quote not in text and draw(st.integers(0, 3)):
            return text
        escaped = text.replace("\\", "\\\\").replace(quote, draw(st.sampled_from([quote * 2, "\\" + quote])))
        return f"{quote}{escaped}{quote}"

    kind = odd if strange else sound
    names = draw(st.lists(st.sampled_from([*NAMES[1:], "x", "é", " y", "OUT"]), max_size=6))
    parts = [name + assign + value(draw(kind(name.strip(), layout.time))) for name in ["ts", *names]]
    flags = st.sampled_from(["flag", "", assign, assign + "x", "Apr", *(SIGNS if strange else [])])
    for flag in draw(st.lists(flags, max_size=3)):
        parts.insert(draw(st.integers(0, len(parts))), flag)
    if strange:
        parts.insert(
            draw(st.integers(0, len(parts))), "".join(draw(st.lists(st.sampled_from(SIGNS), max_size=6)))
        )
    return draw(st.sampled_from([separator, separator, separator * 2])).join(parts)


@pytest.mark.parametrize("name", ["kv", "kv commas"])
@settings(max_examples=150)
@given(st.data())
def test_kv(name: str, data: st.DataObject) -> None:
    layout = LAYOUTS[name]
    drawn = files(kv_lines(layout, False), kv_lines(layout, True))
    agree(data.draw(drawn), layout, data.draw(blocks), data.draw(st.booleans()))


@st.composite
def call_lines(draw: DrawFn, lead: bool, strange: bool) -> str:
    parts = [draw(instants), draw(st.sampled_from(["7", "pid=8"]))] if lead else []
    parts.append(draw(st.sampled_from(["read", "accept", "ex.ec", "é"] + ["a=b", '"r"', "=>", ""] * strange)))
    arguments = [
        "fd=3",
        "fd=",
        "path=/bin/sh",
        'path="a b"',
        'n="x => y"',
        "call=x",
        "return=1",
        "zz=1=2",
        'q="a""b"',
    ]
    arguments += ["bare", 'o="', "=", "=>", *SIGNS] * strange
    parts += draw(st.lists(st.sampled_from(arguments), max_size=4))
    backs = ["=> 4", '=> -1 ENOENT (No "such)', "=>  0 ", "=>", "=> => 5"] + [
        "=>4",
        "= > 4",
        "=>\t",
    ] * strange
    parts += draw(st.lists(st.sampled_from(backs), max_size=1))
    return draw(st.sampled_from([" ", " ", "\t", "  "])).join(parts)


@pytest.mark.parametrize("name", ["syscalls", "syscalls lead"])
@settings(max_examples=150)
@given(st.data())
def test_syscalls(name: str, data: st.DataObject) -> None:
    lead = name == "syscalls lead"
    drawn = files(call_lines(lead, False), call_lines(lead, True))
    agree(data.draw(drawn), LAYOUTS[name], data.draw(blocks), data.draw(st.booleans()))


@settings(max_examples=80)
@given(st.data())
def test_joined_times(data: st.DataObject) -> None:
    days = st.sampled_from(["2024-07-01", "2024-03-31", "2024-02-30", "", "1969-12-31"])
    clocks = st.sampled_from(["12:00", "02:30", "05:00:00+02:00", "", "noon"])
    rows = st.tuples(days, st.sampled_from(["", "2024-07-02"]), clocks, st.sampled_from(["", "a"])).map(
        ",".join
    )
    head = data.draw(st.sampled_from(["day,status,ts,client", "dya,stat,ts,client"]))
    agree(
        data.draw(files(rows, rows, head)), LAYOUTS["csv joined"], data.draw(blocks), data.draw(st.booleans())
    )


@pytest.mark.parametrize("name", LAYOUTS)
@settings(max_examples=40)
@given(data=st.binary(max_size=60), block=blocks)
def test_any_bytes(name: str, data: bytes, block: int) -> None:
    agree(data, LAYOUTS[name], block)
    agree(b"ts,client\n#fields\tts\tclient\n" + data, LAYOUTS[name], block)


# What is hard to draw, or went wrong once: an event (+), a header line (#), or why a line is refused
CORNERS = [
    ("apache", "a - - [x] no", "no_match"),
    ("apache", b"x" * 2**20, "no_match"),
    ("apache", b"x" * (2**20 + 1), "line_too_long"),
    ("csv", "\nts,client\n1,a", "empty # +"),
    ("csv", 'ts,"client\n1,a', "no_header no_header"),
    ("csv", b"\xff\n1,a\n\n", "not_utf8 no_header empty"),
    ("csv", 'ts,client\n1,"a\rb"\n2,"a"\r,\n3,\r"', "# + field_count +"),
    ("csv", 'ts,client\n1,7" pipe\n2,a"b,"c"\n4,""""', "# + field_count +"),
    ("csv", 'ts,client\n1,"a""b"c"d', "# +"),
    ("csv", 'ts,client\n3,a"b,"c\n5,"""', "# unterminated_quote unterminated_quote"),
    ("csv", f'ts,client\n1,"{"a" * 200_000}"', "# +"),
    ("csv", "ts,took\n1,1e400\n2,+1e-400\n3,1125899906842.625", "# out_of_range + out_of_range"),
    ("csv", "ts,took\n9214646399.99,1\n9214646400,1\n-0.0000001,1\n-0.000001,1", "# + bad_time + bad_time"),
    ("csv names", "2024-03-31T02:30,,,,,,,,,", "no_such_local_time"),
    ("csv names", "0001-01-01,,,,,,,,,\n9999-12-31T23:59-12:00,,,,,,,,,", "bad_time bad_time"),
    ("zeek", "#separator \\ud800\n#fields\\ud800ts\n1", "# # +"),
    ("zeek", '\n{"ts": 1}', "empty +"),
    ("zeek", "\n#fields\tts\n1", "empty # +"),
    ("zeek", "#fields\tts\tduration\n1\t-2\n1\t1e9\n1\t-1\n1\tx", "# bad_time bad_time + bad_time"),
    ("json", '{"ts": 1, "x": ' + "[" * 99 + "]" * 99 + "}", "+"),
    ("json", '{"ts": 1, "x": ' + "[" * 100 + "]" * 100 + "}", "bad_json"),
    ("json", '{"ts": 1, "x": "' + "[" * 100 + '"}', "+"),
    ("json", "[" * 100_000, "bad_json"),
    ("json", '{"ts": 1, "status": -1, "took": -1.0}\n{"ts": 1, "status": "-1", "took": "-1"}', "+ +"),
    ("json", '{"ts": 1, "x": -Infinity}\n{"ts": 1}', "bad_json +"),
    ("json", '{"ts": 1}\n{"ts": 1, "took": NaN}', "+ bad_json"),
    ("json", '{"ts": 1e300}\n{"ts": 1, "size": 1e300}\n{"ts": 1}', "bad_time out_of_range +"),
    ("json", '{"ts": 1} {"ts": 2}\n{"ts": 1}{}', "bad_json bad_json"),
    ("json", '{"ts": 1, "ts": 2, "client": [1.50, {"a": "\\ud800"}]}', "+"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "data", "kinds"), CORNERS, ids=range(len(CORNERS)))
def test_corners(name: str, data: str | bytes, kinds: str) -> None:
    data = data.encode() if isinstance(data, str) else data
    reading = agree(data, LAYOUTS[name])
    assert plain(vectorised(data, LAYOUTS[name], None, 1)) == plain(reading)
    refused = {line: reason for line, reason, *_ in reading.rejections}
    events = {line for line, *_ in reading.events}
    found = [refused.get(line, "+" if line in events else "#") for line in range(1, len(lines(data)) + 1)]
    assert " ".join(found) == kinds


def test_decimals_are_rounded_as_they_are_written() -> None:
    halves = [("0.5015", 0.502), ("2.0005", 2.0), ("2.0035", 2.004), ("8388608.0005", 8388608.0)]
    wanted = [*halves, ("-0.0004", 0.0), ("-0.5015", -0.502)]
    for text, value in wanted:
        for name, data in (("csv", f"ts,took\n1,{text}"), ("json", f'{{"ts": 1, "took": {text}}}')):
            [(_, _, columns)] = agree(data.encode(), LAYOUTS[name]).events
            assert repr(columns["took"]) == repr(value)
