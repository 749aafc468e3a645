"""From names to patterns: the path of a stream from its files, identifiers from the fields of a log."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from operator import itemgetter

from transom.cli.init.infer_types import Lacks, moment_of
from transom.core.path_pattern import PathPattern
from transom.features.aggregates.output_columns import GRANULE_COLUMNS, REPORT_COLUMNS
from transom.spec.validate import EVENT_COLUMNS

_KEYWORDS = (
    "and", "between", "case", "cast", "else", "end", "false", "from", "in", "is", "like", "not", "null", "or",
    "select", "then", "to", "true", "when", "where",
)  # fmt: skip
RESERVED = {*EVENT_COLUMNS, *REPORT_COLUMNS, *GRANULE_COLUMNS, *_KEYWORDS}
"""Names that a column may not have, or that make it hard to use in a condition."""

_DATE = re.compile(
    r"(?<!\d)(?P<Y>(?:19|20)\d\d)(?P<gap>[-_./]?)(?P<m>0[1-9]|1[0-2])(?P=gap)(?P<d>0[1-9]|[12]\d|3[01])(?!\d)"
)
_HOUR = re.compile(
    r"(?<![0-9A-Za-z])T?(?P<hour>[01]\d|2[0-3])(?:(?P<minute>[:-]?[0-5]\d)(?:[:-]?[0-5]\d)?)?(?![0-9])"
)
"""An hour behind a date: what follows in the same name says the same again, or its minutes."""


def identifier(text: str, taken: Iterable[str] = ()) -> str:
    """A name that a column may have: lower-case ASCII, made of a field's; numbered where it is taken."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", text)
    plain = re.sub(r"[^a-z0-9]+", "_", words.lower()).strip("_")
    if not plain or not plain[0].isalpha():
        plain = f"c_{plain}".rstrip("_")
    plain = plain[:58]
    if plain in RESERVED:
        plain = f"{plain}_"
    name, number, used = plain, 1, set(taken)
    while name in used:
        number += 1
        name = f"{plain.rstrip('_')}_{number}"
    return name


def pattern_of(paths: Sequence[str], timed: bool = True, minutes: bool = False) -> str:
    """One pattern for some paths: dates and hours as in strftime, what else differs as a capture where it is
    a folder or a word before the time in a name, else as `*`.

    Args:
        timed: whether times in the names are those of the contents; else they only vary.
        minutes: whether the minutes of a time are a part of it; else they only vary.
    """
    patterns = sorted({_timed(path, minutes) if timed else _literal(_DATE.sub("*", path)) for path in paths})
    patterns = _with_hosts(patterns)
    merged = patterns[0]
    for other in patterns[1:]:
        merged = _merged(merged, other)
    return merged


@dataclass(frozen=True)
class Captured:
    """A pattern whose captures say a day, or a year.

    Attributes:
        names: of the captures.
        form: their texts, joined by spaces, as in strptime.
    """

    pattern: str
    names: tuple[str, ...]
    form: str


def captured_of(paths: Sequence[str], lacks: Lacks, taken: Iterable[str] = ()) -> Captured | None:
    """A pattern that captures what times lack from the dates in some paths; None where they do not all say
    it in the same way.

    Args:
        taken: names that no capture may have.
    """
    found = {_captured(path, lacks, tuple(taken)) for path in paths}
    first = next(iter(found))
    if first is None or any(
        other is None or (other.names, other.form) != (first.names, first.form) for other in found
    ):
        return None
    patterns = sorted(captured.pattern for captured in found if captured is not None)
    merged = patterns[0]
    for pattern in patterns[1:]:
        merged = _merged(merged, pattern)
    said = [PathPattern(merged).match(path) for path in paths]
    sound = all(
        match is not None
        and set(first.names) <= set(match.captures)
        and moment_of(" ".join(match.captures[name] for name in first.names), first.form) is not None
        for match in said
    )
    return Captured(merged, first.names, first.form) if sound else None


def dated(name: str) -> str:
    """A file's name with a day in it that a capture can say, such as app.2024-05-31.log."""
    if _DATE.search(name):
        return _DATE.sub(r"\g<Y>-\g<m>-\g<d>", name)
    stem, dot, ending = name.partition(".")
    return f"{stem}.2024-05-31{dot}{ending}"


def _captured(path: str, lacks: Lacks, taken: tuple[str, ...]) -> Captured | None:
    date = _DATE.search(path)
    if date is None or (lacks == "year" and not date["gap"]):
        return None
    gap = date["gap"]
    if lacks == "year":
        names: tuple[str, ...] = (identifier("year", taken),)
        form = "%Y"
        hole = gap.join((f"{{{names[0]}}}", "*", "*"))
    elif gap == "/":
        names, form = tuple(identifier(part, taken) for part in ("year", "month", "day")), "%Y %m %d"
        hole = gap.join(f"{{{name}}}" for name in names)
    else:
        names, form = (identifier("date", taken),), gap.join(("%Y", "%m", "%d"))
        hole = f"{{{names[0]}}}"
    return Captured(
        _literal(path[: date.start()]) + hole + _literal(_DATE.sub("*", path[date.end() :])), names, form
    )


def _literal(text: str) -> str:
    return re.sub(r"[{}*]+", "*", text.replace("%", "%%"))


def _timed(path: str, minutes: bool) -> str:
    """The pattern of one path: its date, wherever it stands, and the hour behind the last of them."""
    first = _DATE.search(path)
    if first is None:
        return _literal(path)
    day = first["Y"], first["m"], first["d"]
    pattern, at = "", 0
    for date in _DATE.finditer(path):
        if (date["Y"], date["m"], date["d"]) == day:
            pattern += _literal(path[at : date.start()]) + date["gap"].join(("%Y", "%m", "%d"))
            at = date.end()
    after = path[at:]
    hour = _HOUR.search(after)
    if hour is None:
        return pattern + _literal(after)
    # Up to the ending of the name, what follows says the hour's minutes or its end.
    rest = after[hour.end() :]
    ending = re.search(r"\.[a-z]|/|$", rest)
    said, end = "%H", hour.end("hour")
    if minutes and hour["minute"]:
        said, end = said + _literal(hour["minute"][:-2]) + "%M", hour.end("minute")
    more = hour.end() > end or ending is None or ending.start() > 0
    kept = rest[ending.start() :] if ending else ""
    return pattern + _literal(after[: hour.start("hour")]) + said + "*" * more + _literal(kept)


def _with_hosts(patterns: Sequence[str]) -> list[str]:
    """Return patterns that capture the one word in which their names differ before the time.

    It says which host, or which part of a system, wrote a file: without a capture, equal files of two hosts
    cannot be told from copies.
    """
    words = [_words_before_time(pattern) for pattern in patterns]
    first = words[0]
    varying = (
        [index for index in range(len(first)) if len({*map(itemgetter(index), words)}) > 1]
        if all(len(others) == len(first) for others in words)
        else []
    )
    if len(varying) != 1 or varying[0] % 2 or not all(others[varying[0]].isalnum() for others in words):
        return list(patterns)
    found = set()
    for pattern, own in zip(patterns, words, strict=True):
        folder, slash, name = pattern.rpartition("/")
        word = varying[0]
        captured = "".join([*own[:word], "{host}", *own[word + 1 :]])
        found.add(f"{folder}{slash}{captured}{name[sum(map(len, own)) :]}")
    return sorted(found)


def _words_before_time(pattern: str) -> list[str]:
    """Return the words of a name before its time, with what separates them; none without a time."""
    name = pattern.rpartition("/")[2]
    time = re.search(r"%[A-Za-z]", name)
    return re.split(r"([-_.@]+)", name[: time.start()]) if time is not None else []


def _merged(one: str, other: str) -> str:
    """A pattern for what two patterns match."""
    ours, theirs = one.split("/"), other.split("/")
    if len(ours) != len(theirs):
        # Folders of another depth have no pattern in common: theirs would have to be a stream of its own.
        return one
    merged = []
    for depth, (mine, yours) in enumerate(zip(ours, theirs, strict=True)):
        if mine == yours or mine.startswith("{"):
            merged.append(mine)
        elif depth < len(ours) - 1 and "%" not in mine + yours:
            merged.append("{folder}" if "{folder}" not in merged else f"{{folder_{depth}}}")
        else:
            merged.append(_starred(mine, yours))
    return "/".join(merged)


def _starred(one: str, other: str) -> str:
    head = _common(one, other).removesuffix("%")
    tail = _common(one[len(head) :][::-1], other[len(head) :][::-1])[::-1]
    # A part of a time is not cut in two.
    if re.match(r"[A-Za-z%]", tail) and (one[: len(one) - len(tail)].endswith("%")):
        tail = tail[1:]
    return f"{head.rstrip('*')}*{tail.lstrip('*')}"


def _common(one: str, other: str) -> str:
    """The letters with which both begin."""
    pairs = takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
    return "".join(mine for mine, _ in pairs)


def stream_name(paths: Sequence[str]) -> str:
    """A name for a stream, from the letters that its files' names begin with, else from their folder's."""
    *folders, name = paths[0].split("/")
    for text in (name.split(".")[0], *reversed(folders)):
        words = re.match(r"[^A-Za-z]*([A-Za-z][A-Za-z_-]*)", text)
        if words is not None:
            return identifier(words[1])[:40].strip("_")
    return "stream"
