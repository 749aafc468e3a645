"""Detect lines of other forms: web servers' logs, system calls, or a guessed regular expression."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from ipaddress import ip_address

from transom.cli.init.detect_key_value import PAIR
from transom.cli.init.detected_format import MIN_SHARE, DetectedFormat, NearMiss
from transom.cli.init.infer_regex import guess, tokens
from transom.cli.init.infer_types import kind_of, skeleton
from transom.formats.apache import COMBINED, COMMON
from transom.formats.record_format import FieldType

MIN_SHARE_OF_OWN_FORM = 0.3
"""The minimum share of lines that a guessed pattern must match; the others continue earlier lines."""
_REQUEST = (
    r'"(?:(?P<method>[A-Z]+) (?P<path>[^ "]+) (?P<protocol>HTTP/[0-9.]+)'
    r'|(?P<request>(?:[^"\\]|\\.)*))"'
)
_HOSTED = (
    r"(?P<host>[^ ]+?)(?::(?P<port>[0-9]+))? "
    + re.sub(r'"\(\?P<request>.*?\)"(?= \(\?P<status>)', lambda _: _REQUEST, COMMON.removeprefix("^"))
    + COMBINED
)
"""A web server's line after the virtual host."""


def apache(lines: Sequence[str]) -> DetectedFormat | NearMiss:
    """Detect the common or the combined log; with the virtual host in front the format is a pattern."""
    rows = [match.groupdict() for match in map(re.compile(COMMON + COMBINED + "$").match, lines) if match]
    if len(rows) < MIN_SHARE * len(lines):
        return NearMiss(len(rows))
    if sum(_is_address(row["ident"]) for row in rows) >= MIN_SHARE * len(lines):
        note = "a web server's log with the virtual host in front"
        return _by_pattern(lines, _HOSTED, (note,))
    fields = {name: [row[name] for row in rows if row[name] not in (None, "-")] for name in rows[0]}
    return DetectedFormat("apache", fields, preset="apache/combined")


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _by_pattern(
    lines: Sequence[str], pattern: str, notes: tuple[str, ...], types: Mapping[str, FieldType] | None = None
) -> DetectedFormat | NearMiss:
    form = re.compile(pattern)
    rows = [match.groupdict() for match in map(form.fullmatch, lines) if match]
    if len(rows) < MIN_SHARE * len(lines):
        return NearMiss(len(rows))
    fields = {name: [row[name] for row in rows if row[name]] for name in form.groupindex}
    # An optional group that never matches is no column.
    nonempty = {name: texts for name, texts in fields.items() if texts}
    return DetectedFormat("regex", nonempty, types or {}, {"pattern": pattern}, notes=notes)


_STRACE = (
    r"(?:(?:\[pid +)?(?P<pid>[0-9]+)\]? +)?(?:(?P<time>[0-9][0-9:.]*[0-9]) +)?"
    r"(?P<call>[a-z_][a-z0-9_]*)\((?P<arguments>.*)\) += (?P<return>.*)"
)


def strace(lines: Sequence[str]) -> DetectedFormat | NearMiss:
    """Detect the output of strace: `open("/etc/passwd", O_RDONLY) = 3`."""
    note = (
        "strace's output: its arguments are one text, and lines of signals, exits and unfinished calls are "
        "refused; run strace with -f -ttt for times that say the day"
    )
    return _by_pattern(lines, _STRACE, (note,), {"return": "string"})


def syscalls(lines: Sequence[str]) -> DetectedFormat | NearMiss:
    """Detect `name [arg=value ...] [=> return]`, with the same number of words before the name in each
    line."""
    rows = [_CALL.fullmatch(line) for line in lines]
    matched = [row for row in rows if row is not None]
    if len(matched) < MIN_SHARE * len(lines) or sum(row["arrow"] is not None for row in matched) * 4 < len(
        lines
    ):
        return NearMiss(sum(row["arrow"] is not None for row in matched))
    leads = Counter(len(row["words"].split()) - 1 for row in matched)
    lead = leads.most_common(1)[0][0]
    words = [row["words"].split() for row in matched if len(row["words"].split()) == lead + 1]
    if len(words) < MIN_SHARE * len(lines):
        return NearMiss(len(words))
    names: list[str] = []
    for index in range(lead):
        kind = kind_of([row[index] for row in words]).type
        name = {"timestamp": "time", "integer": "pid"}.get(kind, "process")
        names.append(name if name not in names else f"{name}_{index + 1}")
    fields = {name: [row[index] for row in words] for index, name in enumerate([*names, "call"])}
    fields["return"] = [row["result"] for row in matched if row["result"]]
    arguments: dict[str, list[str]] = {}
    for row in matched:
        for name, text in PAIR.findall(row["pairs"] or ""):
            arguments.setdefault(name, []).append(text.strip('"'))
    fields |= {name: texts for name, texts in arguments.items() if name not in fields}
    return DetectedFormat("syscalls", fields, {"return": "string"}, {"lead": names} if names else {})


_CALL = re.compile(
    r"\s*(?P<words>(?:[^\s=\"]+\s+){0,5}[a-z_][a-z0-9_]*)"
    r'(?P<pairs>(?:\s+[^\s="]+=(?:"[^"]*"|[^\s"]*))*)(?P<arrow>\s+=>(?:\s+(?P<result>.*))?)?\s*'
)


def own_form(lines: Sequence[str]) -> DetectedFormat | NearMiss:
    """Guess a first pattern, for a person to continue with.

    If most lines have nothing in common, use those that begin alike, with a time: the others continue a
    message, such as a stack trace.
    """
    notes = ["?: a first attempt; give the groups names, and take apart what is one"]
    guessed = guess(lines)
    if not guessed.timed:
        begins = [skeleton(line[:12].split(" ")[0]) for line in lines]
        ((usual, _),) = Counter(begin for begin in begins if "1" in begin).most_common(1) or [("", 0)]
        others = guess([line for line, begin in zip(lines, begins, strict=True) if begin == usual] or lines)
        if others.timed and others.matched < len(lines):
            guessed = others
            notes.append("lines that do not begin with a time, as of a stack trace, are refused")
    if not guessed.takes_apart or guessed.matched < MIN_SHARE_OF_OWN_FORM * len(lines):
        alike = Counter(tuple(token.shape for token in tokens(line)) for line in lines)
        why = "" if guessed.takes_apart else "it would take a line for one message, with no time in it"
        return NearMiss(alike.most_common(1)[0][1], why)
    return DetectedFormat("regex", guessed.fields, {}, {"pattern": guessed.pattern}, notes=tuple(notes))
