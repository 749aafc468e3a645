"""Strategies for values near the grammar of each type, and for files of lines, some of them damaged."""

from datetime import datetime

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from tests.formats.agreement import LOCAL
from transom.formats.record_format import EventTime

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
    st.datetimes(datetime(2015, 1, 1), datetime(2025, 1, 1)),  # noqa: DTZ001 - local times are drawn
    st.datetimes(datetime(1970, 1, 2), datetime(2261, 1, 1)),  # noqa: DTZ001 - local times are drawn
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
    """Draw times in a layout's format, nearly all of them valid."""
    if time.time_format == "epoch":
        return instants
    if time.time_format == "epoch_or_iso":
        millis = st.integers(10**11, 2 * 10**12).map(str)
        return st.one_of(
            instants, millis, moments.map(datetime.isoformat), st.sampled_from(["1e11", "-1e11"])
        )
    if time.time_format == "epoch_us":
        return st.integers(0, 2 * 10**15).map(str)
    if time.time_format == "epoch_ns":
        return st.one_of(
            st.integers(0, 2 * 10**18).map(str),
            st.sampled_from(["0", "999", "1771691706842064465", "9214646399999999999"]),
        )
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
    """Draw a line unchanged, or with a few characters removed, inserted or replaced."""
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
    """Draw files of valid lines, with or without a few odd ones, or of odd lines only.

    The vectorised parsers read many lines at once, and one odd line may send its neighbours to the slow
    parser. Each parser must see lines of its own.
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
