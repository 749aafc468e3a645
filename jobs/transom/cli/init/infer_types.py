"""Infer the type of a column of texts, with resolution, missing values and format of times."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from itertools import product
from math import floor, log10
from typing import Literal
from zoneinfo import available_timezones

from transom.cli.init.log_format import MIN_SHARE, mostly
from transom.formats.record_format import EPOCHS, FieldType
from transom.formats.times import UNIVERSAL, letters_of, one_instant

NOTHING = (
    "-", "--", "---", "?", "N/A", "n/a", "#N/A", "NA", "null", "NULL", "Null", "(null)", "None", "none",
    "nil", "nan", "NaN", "NAN", "-nan", "-NaN", "\\N", "undefined",
)  # fmt: skip
"""Texts that mean no value."""
SENTINELS = (-99, -999, -9999, -99999)
"""Numbers that mean no value if no other number is near."""
ZONED = re.compile(r"(?P<time>.*[0-9])(?P<rest> ?[(\[]?(?P<zone>[A-Z][A-Za-z]+(?:/[A-Za-z0-9_+-]+)+)[)\]]?)")
"""A text that ends with the name of a zone."""
Lacks = Literal["year", "date"]
TRUTH = {"true", "false", "True", "False", "TRUE", "FALSE", "T", "F"}
DECIMAL_COMMA = re.compile(r"-?[0-9]{1,15},[0-9]+")
THOUSANDS = re.compile(r"-?[1-9][0-9]{0,2},[0-9]{3}")
"""Numbers whose comma is either a decimal one or a thousands separator."""
INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,14})")
NUMBER = re.compile(r"-?(?:(?:0|[1-9][0-9]{0,14})(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,2})?")
DIGITS = re.compile(r"[-+]?[0-9][-+0-9.,:/' ]*")
"""Texts that show that a column with numbers is not numeric: 007, an address, a decimal comma."""
INSTANT = re.compile(r"[0-9]{9,16}(?:\.[0-9]*)?|[0-9]{18,19}")
NO_FIGURE = re.compile(
    r"(^|_)(port|pid|tid|uid|gid|ppid|id|code|class|severity|status|line|year|month|day|hour|minute|second|"
    r"time|date|timestamp|epoch|version|proto|protocol|ttl|seq|sequence|record|number|no|index|rank|level|"
    r"field|spt|dpt|lat|latitude|lon|lng|longitude|_p)(_|$)|(_p|port|id)$"
)
"""Names of numbers that are no amounts or measurements."""
MAX_TEXTS = 2000
"""Maximum number of texts that are parsed as times."""
FINEST = 12
"""Maximum number of decimals in a stream file."""
ISO = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
YEARS = (datetime(1995, 1, 1, tzinfo=UTC).timestamp(), datetime(2100, 1, 1, tzinfo=UTC).timestamp())
"""Numbers in this range may be seconds since the epoch."""

_DATES = (
    "%d/%b/%Y", "%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%d-%b-%Y",
    "%d-%b-%y", "%d-%m-%Y", "%Y%m%d", "%d %b %Y", "%b %d %Y", "%b %d, %Y", "%Y %b %d", "%a, %d %b %Y",
    "%d.%m.%y", "%m/%d/%y", "%y/%m/%d", "%d/%m/%y", "%y-%m-%d", "%y%m%d", "%Y-%b-%d", "%Y/%b/%d", "%Y-%j",
    "%d%b%Y", "%a %d %b %Y", "%a %b %d %Y", "%a %b %d, %Y",
)  # fmt: skip
_TIMES = (
    "%H:%M:%S", "%H:%M:%S.%f", "%H:%M", "%H:%M:%S,%f", "%H:%M:%S:%f", "%I:%M:%S %p", "%I:%M %p", "%H%M%S",
    "%H.%M.%S", "%H.%M.%S.%f", "%I:%M:%S.%f %p",
)  # fmt: skip
_RARE = (
    "%H-%M-%S", "%H%M%S.%f", "%H%M%S,%f", "%I:%M:%S,%f %p", "%I:%M:%S%p", "%I:%M%p", "%I.%M.%S %p",
    "%I.%M.%S.%f %p", "%I:%M:%S:%f %p", "%I.%M %p",
)  # fmt: skip
_ZONES = ("", " %z", " %Z", "%z")


def _combine(*parts: Sequence[str]) -> Iterator[str]:
    return map("".join, product(*parts))


FORMS = (
    *_combine(_DATES, (" ", ":", "-", "T", "_", ", "), _TIMES, _ZONES),
    *_combine(_DATES, (" ", "T", "_"), _RARE, ("", "%z")),
    # Six digits after a time of day may be a process id or the like.
    *_combine(_TIMES, (" ", ", "), [date for date in _DATES if date != "%y%m%d"], ("", " %z")),
    "%a %b %d %H:%M:%S %Y", "%a %b %d %H:%M:%S.%f %Y", "%a %b %d %H:%M:%S %Z %Y", "%b %d %H:%M:%S %Y",
    "%a %b %d %H:%M:%S %z %Y", "%b %d %H:%M:%S.%f %Y", "%a %b %d %I:%M:%S %p %Y",
    "%a %b %d %I:%M:%S %p %Z %Y", "%Y%m%d%H%M%S", "%Y%m%d%H%M%S.%f", "%Y%m%d%H%M%S,%f", "%Y%m%d%H%M%S%f",
    "%a %b %d %H:%M:%S.%f %Z %Y", "%Y %m %d %H %M", "%Y %m %d %H %M %S",
    *_combine(["%b %d "], ["%H:%M:%S", "%H:%M:%S.%f"], [" %Z %Y", " %z %Y"]),
)  # fmt: skip
"""Formats of times in logs, besides ISO 8601 and seconds since the epoch."""
_LETTERS = {
    "UTC": " ".join(UNIVERSAL), "Europe/Berlin": "CET CEST", "Europe/Lisbon": "WET WEST",
    "Europe/Helsinki": "EET EEST", "America/New_York": "EST EDT", "America/Chicago": "CST CDT",
    "America/Denver": "MST MDT", "America/Los_Angeles": "PST PDT", "Australia/Sydney": "AEST AEDT",
    "Pacific/Auckland": "NZST NZDT", "Europe/London": "BST", "Europe/Moscow": "MSK", "Asia/Kolkata": "IST",
    "Asia/Tokyo": "JST", "Africa/Johannesburg": "SAST", "Asia/Hong_Kong": "HKT", "Asia/Seoul": "KST",
}  # fmt: skip
ZONES = {word: zone for zone, words in _LETTERS.items() for word in words.split()}
"""Letters of zones in logs, each with one zone that uses them."""
HALF = re.compile(r"[ap]\.?m\.?[^A-Za-z0-9]*", re.IGNORECASE)
"""AM or PM, as after a time of day."""
KLOG = "%m%d %H:%M:%S.%f"
_CLOCKS = ("%H:%M:%S", "%H:%M:%S.%f", "%H:%M:%S,%f", "%I:%M:%S %p", "%I:%M:%S.%f %p")
PARTIAL: Mapping[str, Lacks] = {
    **{f"{day} {time}": "year" for day in ("%b %d", "%a %b %d") for time in _CLOCKS},
    KLOG: "year",
    **dict.fromkeys(_CLOCKS, "date"),
}
"""Formats without a year or a date: a record alone does not determine the instant."""


@dataclass(frozen=True)
class ColumnType:
    """The type of a column.

    Attributes:
        missing: texts that mean no value.
        resolution: the step of a number's decimals.
        form: the format of a time in a stream file.
        local: whether a time has no zone, or only its letters.
        zone: the zone of a local time, if its letters determine one, or its texts end with its name.
        named: whether the texts end with the zone's name, which is part of the format.
        otherwise: another format that matches all times; the user has to decide.
        comma: the step of the decimals of numbers with a decimal comma.
        thousands: whether the comma in numbers is either a decimal one or a thousands separator.
        share: the share of non-empty texts that have this type.
    """

    type: FieldType
    missing: tuple[str, ...] = ()
    resolution: str | None = None
    form: str = ""
    local: bool = False
    zone: str = "UTC"
    named: bool = False
    otherwise: str | None = None
    comma: str | None = None
    thousands: bool = False
    share: float = 1.0

    @property
    def doubt(self) -> str:
        """A remark if some texts are not of the type, else empty."""
        if self.share == 1:
            return ""
        words = "such times" if self.type == "timestamp" else f"{self.type}s"
        return f"?: {floor(self.share * 10_000) / 100:g} % are {words}, lines with others are rejected"


def kind_of(values: Sequence[str], counted: bool = False) -> ColumnType:
    """Return the narrowest type of texts.

    Args:
        counted: whether numbers in the range of seconds since the epoch count as numbers.
    """
    missing = tuple(text for text in NOTHING if text in values)
    rest = [text for text in values if text not in missing and text != ""]
    if not rest:
        return ColumnType("string", missing)
    # The same single letter in all lines may be no truth value.
    if TRUTH.issuperset(rest) and set(rest) not in ({"T"}, {"F"}):
        return ColumnType("boolean", missing)
    time = times_of(rest)
    # A date alone is no time of an event, but a string.
    if time is not None and (
        not counted if time.form in EPOCHS else sorted(map(len, rest))[len(rest) // 2] > len("2024-05-01")
    ):
        return replace(time, missing=missing)
    numbers = [text for text in rest if NUMBER.fullmatch(text)]
    others = (text for text in rest if not NUMBER.fullmatch(text))
    if len(numbers) >= MIN_SHARE * len(rest) and not any(map(DIGITS.fullmatch, others)):
        share = len(numbers) / len(rest)
        sentinels = _sentinels(numbers)
        missing += sentinels
        if all(map(INTEGER.fullmatch, numbers)):
            return ColumnType("integer", missing, share=share)
        step = _resolution([text for text in numbers if text not in sentinels])
        return ColumnType("number", missing, resolution=step, share=share)
    commas = [text for text in rest if DECIMAL_COMMA.fullmatch(text)]
    if commas and len(commas) + sum(INTEGER.fullmatch(text) is not None for text in rest) == len(rest):
        if all(map(THOUSANDS.fullmatch, commas)):
            return ColumnType("string", missing, thousands=True)
        return ColumnType("string", missing, comma=_resolution([text.replace(",", ".") for text in rest]))
    return ColumnType("string", missing)


def _sentinels(numbers: Sequence[str]) -> tuple[str, ...]:
    """Return the sentinels among numbers: common ones far below all other numbers."""
    chosen = sorted({text for text in numbers if float(text) in SENTINELS})
    others = [float(text) for text in numbers if text not in chosen]
    return tuple(text for text in chosen if others and float(text) < 2 * min(*others, -10.0))


def _resolution(numbers: Sequence[str]) -> str:
    """Return the step of the decimals: at least a millionth of 1 (or of a smaller largest value), and large
    enough for exact sums."""
    digits = max(0, *(-int(Decimal(text).as_tuple().exponent) for text in numbers))
    largest = max(abs(float(text)) for text in numbers)
    digits = min(digits, FINEST, 6 - min(floor(log10(largest)) + 1, 0) if largest else 6)
    while digits > 0 and largest * 10**digits >= 2**46:
        digits -= 1
    return format(Decimal(1).scaleb(-digits), "f")


def times_of(values: Sequence[str]) -> ColumnType | None:
    """Return the type of texts with a share of times of at least `MIN_SHARE`; else None."""
    min_count = MIN_SHARE * len(values)
    compact = mostly(len(text) == 14 and text.isdigit() for text in values)
    instants = [text for text in values if INSTANT.fullmatch(text)]
    if len(instants) >= min_count and not compact:
        numbers = list(map(float, instants))
        first, last = min(numbers), max(numbers)
        forms = [form for form, unit in EPOCHS.items() if YEARS[0] <= first / unit and last / unit < YEARS[1]]
        # If some numbers are no times, the others are probably none either.
        if not forms or any(NUMBER.fullmatch(text) for text in values if not INSTANT.fullmatch(text)):
            return None
        return ColumnType("timestamp", form=forms[0], share=len(instants) / len(values))
    reasons = [one_instant(text, "iso", None)[1] for text in values if ISO.match(text)]
    number = len(reasons) - reasons.count("bad_time")
    if number >= min_count:
        return ColumnType("timestamp", form="iso", local="no_zone" in reasons, share=number / len(values))
    return written_times_of(values) or _times_with_zone_of(values)


def _times_with_zone_of(values: Sequence[str]) -> ColumnType | None:
    """Return the type of local times that end with a zone's name, such as 2024-05-06 10:00 Europe/Berlin."""
    found = [match for match in map(ZONED.fullmatch, values) if match is not None]
    ends = Counter(match["zone"] for match in found).most_common(1)
    if not ends or ends[0][1] < MIN_SHARE * len(values) or ends[0][0] not in available_timezones():
        return None
    zone = ends[0][0]
    rest, *others = {match["rest"] for match in found if match["zone"] == zone}
    kind = written_times_of([match["time"] for match in found if match["zone"] == zone])
    if others or kind is None or not kind.local or "%Z" in kind.form:
        return None
    share = kind.share * ends[0][1] / len(values)
    return replace(kind, form=f"{kind.form}{rest}", zone=zone, named=True, share=share)


def written_times_of(values: Sequence[str]) -> ColumnType | None:
    """Return the type of times with one format of `FORMS`; None if too few texts have it."""
    values = values[:MAX_TEXTS]
    usual, alike = _alike(values)
    if len(alike) < MIN_SHARE * len(values) or "1" not in usual:
        return None
    forms = [form for form in _by_skeleton().get(usual, ()) if form not in PARTIAL and len(alike[0]) >= 8]
    # strptime is slow: try a sample first.
    forms = [form for form in forms if any(_fits(form, text) for text in alike[:20])]
    fits = {form: sum(_fits(form, text) for text in alike) for form in forms}
    max_fits = max(fits.values(), default=0)
    if not max_fits or max_fits < MIN_SHARE * len(values):
        return None
    best, *others = (form for form, number in fits.items() if number == max_fits)
    zones = Counter(ZONES.get(letters_of(text, best) or "", "UTC") for text in alike)
    zone = next((zone for zone, _ in zones.most_common() if zone != "UTC"), "UTC")
    other, local = next((form for form in others if _days(form) != _days(best)), None), "%z" not in best
    share = max_fits / len(values)
    return ColumnType("timestamp", form=best, local=local, zone=zone, otherwise=other, share=share)


def _alike(values: Sequence[str]) -> tuple[str, list[str]]:
    """Return the most frequent skeleton, and the texts with it."""
    skeletons = list(map(skeleton, values))
    ((usual, _),) = Counter(skeletons).most_common(1)
    return usual, [text for text, own in zip(values, skeletons, strict=True) if own == usual]


def partial_times_of(values: Sequence[str]) -> tuple[str, Lacks] | None:
    """Return the format of most times without a year or a date, and what they lack; None if there is none."""
    if not values:
        return None
    values = values[:MAX_TEXTS]
    usual, alike = _alike(values)
    for form in _by_skeleton().get(usual, ()):
        # 2000 is a leap year, so 29 February parses.
        fitting = (_fits(f"%Y {form}", f"2000 {text}") for text in alike)
        if form in PARTIAL and sum(fitting) >= MIN_SHARE * len(values):
            return form, PARTIAL[form]
    return None


_DIGITS = {"%Y": 4, "%y": 2, "%m": 2, "%d": 2, "%H": 2, "%I": 2, "%M": 2, "%S": 2, "%j": 3}
_PIECE = re.compile(r"%.|[^%]+")
_WRITTEN = {"%b": ("x",), "%a": ("x",), "%p": ("x",), "%Z": ("x",), "%z": ("+1", "-1", "Z", "+1:1", "-1:1")}


def skeleton(text: str) -> str:
    """Return a text with each number replaced by 1 and each word by x."""
    return re.sub(r"\s+", " ", re.sub("[A-Za-z]+", "x", re.sub("[0-9]+", "1", text)))


@cache
def _by_skeleton() -> dict[str, list[str]]:
    """Return formats by the skeleton of their times, so that few are tried: strptime compiles each format."""
    forms: dict[str, list[str]] = {}
    for form in dict.fromkeys((*FORMS, *PARTIAL)):
        pieces = (_WRITTEN.get(piece, ("1" if piece[0] == "%" else piece,)) for piece in _PIECE.findall(form))
        for written in set(map(skeleton, _combine(*pieces))):
            forms.setdefault(written, []).append(form)
    return forms


def _fits(form: str, text: str) -> bool:
    # strptime accepts too few digits in adjacent parts: 811 as %y%m%d.
    if _digits_of(form).fullmatch(text) is None:
        return False
    letters = letters_of(text, form)
    micros, reason = one_instant(text, form, "UTC" if letters is None else ZONES.get(letters))
    return reason is None and YEARS[0] <= micros / 1e6 < YEARS[1]


@cache
def _digits_of(form: str) -> re.Pattern[str]:
    """Return a pattern of a format that requires all digits of adjacent parts."""
    pieces = _PIECE.findall(form)
    written = []
    for previous, piece, following in zip(["", *pieces], pieces, [*pieces[1:], ""], strict=False):
        if piece[0] != "%":
            written.append(r"\s+".join(map(re.escape, re.split(r"\s+", piece))))
        elif piece in _DIGITS:
            whole = {previous, following} & {*_DIGITS} or piece in ("%Y", "%y", "%j")
            written.append(f"[0-9]{{{'' if whole else '1,'}{_DIGITS[piece]}}}")
        else:
            written.append("[0-9]{1,6}" if piece == "%f" else "[^ ]+")
    return re.compile("".join(written))


def _days(form: str) -> list[str]:
    """Return the order of day, month and year in a format."""
    return [part.lower() for part in re.findall(r"%(.)", form) if part in "dmbjYy"]
