"""Infer the path pattern of a stream from its files, and identifiers from fields of a log."""

import re
from collections.abc import Collection, Iterable, Sequence
from functools import reduce

from transom.cli.init.infer_types import Lacks
from transom.core.file_names import common_prefix
from transom.core.path_pattern import PathPattern
from transom.features.aggregates.output_columns import AGGREGATE_COLUMNS, GRANULE_COLUMNS
from transom.formats.times import one_instant
from transom.spec.validate import EVENT_COLUMNS

_KEYWORDS = (
    "and", "between", "case", "cast", "else", "end", "false", "from", "in", "is", "like", "not", "null", "or",
    "select", "then", "to", "true", "when", "where",
)  # fmt: skip
RESERVED = {*EVENT_COLUMNS, *AGGREGATE_COLUMNS, *GRANULE_COLUMNS, *_KEYWORDS}
"""Names that columns may not have, or that are inconvenient in a condition."""

_DATE = re.compile(
    r"(?<!\d)(?P<Y>(?:19|20)\d\d)(?P<gap>[-_./]?)(?P<m>0[1-9]|1[0-2])(?P=gap)(?P<d>0[1-9]|[12]\d|3[01])"
    r"(?=(?:(?:[01]\d|2[0-3])(?:[0-5]\d){0,2})?(?!\d))"
)
"""A date in a path. Digits that follow at once are an hour, with or without minutes and seconds."""
_HOUR = re.compile(
    r"(?<![0-9A-Za-z])T?(?P<hour>[01]\d|2[0-3])(?:(?P<minute>[:-]?[0-5]\d)(?:[:-]?[0-5]\d)?)?(?![0-9])"
)
"""An hour after a date, with or without minutes and seconds."""


def identifier(text: str, reserved: Iterable[str] = ()) -> str:
    """Return a valid column name for a field: lower-case ASCII, with a number if it is reserved."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", text)
    plain = re.sub(r"[^a-z0-9]+", "_", words.lower()).strip("_")
    if not plain[:1].isalpha():
        plain = f"c_{plain}".rstrip("_")
    plain = plain[:58]
    if plain in RESERVED:
        plain = f"{plain}_"
    name, number, used = plain, 1, set(reserved)
    while name in used:
        number += 1
        name = f"{plain.rstrip('_')}_{number}"
    return name


def pattern_of(paths: Sequence[str], timed: bool = True, minutes: bool = False) -> str:
    """Return one pattern for several paths.

    Dates and hours become strftime codes. Another difference becomes a capture if it is a folder or the word
    before the time in a name, else `*`.

    Args:
        timed: whether the times in the names are those of the contents; if not, they become `*`.
        minutes: whether the pattern has minutes; if not, they become `*`.
    """
    patterns = {_timed(path, minutes) if timed else _literal(_DATE.sub("*", path)) for path in paths}
    return reduce(_merged, _with_hosts(sorted(patterns)))


Captured = tuple[str, tuple[str, ...], str]
"""A pattern whose captures have a date or a year, the names of these captures, and the strptime format of
their texts, joined by spaces."""


def captured_of(paths: Sequence[str], lacks: Lacks, reserved: Collection[str] = ()) -> Captured | None:
    """Return a pattern whose captures complete times by the dates in paths; None if the paths differ in form.

    Args:
        reserved: names that captures may not have.
    """
    captures = [captured for path in paths if (captured := _captured(path, lacks, reserved)) is not None]
    if len(captures) < len(paths) or len({(names, form) for _, names, form in captures}) > 1:
        return None
    pattern = reduce(_merged, sorted({pattern for pattern, _, _ in captures}))
    _, names, form = captures[0]
    for match in map(PathPattern(pattern).match, paths):
        texts = [] if match is None else [match.captures.get(name, "") for name in names]
        if one_instant(" ".join(texts), form, "UTC")[1] is not None:
            return None
    return pattern, names, form


def dated(name: str) -> str:
    """Return a file's name with an example of a date, such as app.2024-05-31.log."""
    if _DATE.search(name):
        return _DATE.sub(r"\g<Y>-\g<m>-\g<d>", name)
    stem, dot, ending = name.partition(".")
    return f"{stem}.2024-05-31{dot}{ending}"


def _captured(path: str, lacks: Lacks, reserved: Collection[str]) -> Captured | None:
    date = _DATE.search(path)
    if date is None or (lacks == "year" and not date["gap"]):
        return None
    gap = date["gap"]
    if lacks == "year":
        parts, form, rest = "year", "%Y", f"{gap}*{gap}*"
    elif gap == "/":
        parts, form, rest = "year month day", "%Y %m %d", ""
    else:
        parts, form, rest = "date", gap.join(("%Y", "%m", "%d")), ""
    names = tuple(identifier(part, reserved) for part in parts.split())
    hole = gap.join(f"{{{name}}}" for name in names) + rest
    pattern = _literal(path[: date.start()]) + hole + _literal(_DATE.sub("*", path[date.end() :]))
    return pattern, names, form


def _literal(text: str) -> str:
    return re.sub(r"[{}*]+", "*", text.replace("%", "%%"))


def _timed(path: str, minutes: bool) -> str:
    """Return the pattern of one path: each occurrence of its date, and the hour after the last one."""
    pattern, at, day = "", 0, None
    for date in _DATE.finditer(path):
        day = day or date.group("Y", "m", "d")
        if date.group("Y", "m", "d") == day:
            pattern += _literal(path[at : date.start()]) + date["gap"].join(("%Y", "%m", "%d"))
            at = date.end()
    after = path[at:]
    hour = _HOUR.search(after)
    if day is None or hour is None:
        return pattern + _literal(after)
    # The text before the name's suffix is the minutes, or the end of the hour.
    rest = after[hour.end() :]
    ending = re.search(r"\.[a-z]|/|$", rest)
    time_pattern, end = "%H", hour.end("hour")
    if minutes and hour["minute"]:
        time_pattern, end = time_pattern + _literal(hour["minute"][:-2]) + "%M", hour.end("minute")
    has_more = hour.end() > end or ending is None or ending.start() > 0
    suffix = rest[ending.start() :] if ending else ""
    return pattern + _literal(after[: hour.start("hour")]) + time_pattern + "*" * has_more + _literal(suffix)


def _with_hosts(patterns: Sequence[str]) -> Sequence[str]:
    """Capture the word before the time in which names differ, if they differ in exactly one.

    The word identifies the host or the component that wrote a file. Without a capture, equal files of two
    hosts look like copies.
    """
    words = [_words_before_time(pattern) for pattern in patterns]
    if len(set(map(len, words))) > 1:
        return patterns
    varying = [at for at, column in enumerate(zip(*words, strict=True)) if len(set(column)) > 1]
    if len(varying) != 1 or varying[0] % 2 or not all(own[varying[0]].isalnum() for own in words):
        return patterns
    with_hosts = set()
    for pattern, own in zip(patterns, words, strict=True):
        folder, slash, name = pattern.rpartition("/")
        captured = "".join([*own[: varying[0]], "{host}", *own[varying[0] + 1 :]])
        with_hosts.add(f"{folder}{slash}{captured}{name[sum(map(len, own)) :]}")
    return sorted(with_hosts)


def _words_before_time(pattern: str) -> list[str]:
    """Return the words and separators of a name before its time; empty if it has no time."""
    name = pattern.rpartition("/")[2]
    time = re.search(r"%[A-Za-z]", name)
    return re.split(r"([-_.@]+)", name[: time.start()]) if time is not None else []


def _merged(first: str, second: str) -> str:
    """Return a pattern that matches everything that two patterns match."""
    parts, others = first.split("/"), second.split("/")
    if len(parts) != len(others):
        # Folders of different depth have no common pattern; they need separate streams.
        return first
    merged: list[str] = []
    for depth, (part, other) in enumerate(zip(parts, others, strict=True)):
        if part == other or part.startswith("{"):
            merged.append(part)
        elif depth < len(parts) - 1 and "%" not in part + other:
            merged.append("{folder}" if "{folder}" not in merged else f"{{folder_{depth}}}")
        else:
            merged.append(_starred(part, other))
    return "/".join(merged)


def _starred(first: str, second: str) -> str:
    head = common_prefix(first, second).removesuffix("%")
    tail = common_prefix(first[len(head) :][::-1], second[len(head) :][::-1])[::-1]
    # Do not split a code of the time.
    if re.match(r"[A-Za-z%]", tail) and first[: len(first) - len(tail)].endswith("%"):
        tail = tail[1:]
    return f"{head.rstrip('*')}*{tail.lstrip('*')}"


def stream_name(paths: Sequence[str]) -> str:
    """Return a name for a stream from the common prefix of its files' names, else from their folder."""
    *folders, name = paths[0].split("/")
    for text in (name.split(".")[0], *reversed(folders)):
        words = re.match(r"[^A-Za-z]*([A-Za-z][A-Za-z_-]*)", text)
        if words is not None:
            return identifier(words[1])[:40].strip("_")
    return "stream"
