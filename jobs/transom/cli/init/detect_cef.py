"""Detect ArcSight's CEF: seven fields between bars, then pairs whose values may contain blanks."""

import re
from collections import Counter
from collections.abc import Sequence

from transom.cli.init.detected_format import MIN_SHARE, DetectedFormat, NearMiss
from transom.cli.init.infer_regex import guess

HEADER = ("version", "vendor", "product", "product_version", "event_class", "event", "severity")
MAX_KEYS = 24
"""Maximum number of the extension's keys that become groups."""
TIMES = ("rt", "end", "start", "deviceReceiptTime")
_BAR = r"(?:[^|\\]|\\.)*"
_LINE = re.compile(rf"(.*?)CEF:([0-9.]+)\|({_BAR})\|({_BAR})\|({_BAR})\|({_BAR})\|({_BAR})\|({_BAR})\|(.*)")
_PAIR = re.compile(r"(?:^| )([A-Za-z0-9_]+)=((?:[^=\\]|\\.)*?)(?= +[A-Za-z0-9_]+=|$)")
_NOTE = (
    "CEF; of its pairs those without blanks in their values are groups, in the order in which they stand "
    "here; all of them are in `extension`"
)


def cef(lines: Sequence[str]) -> DetectedFormat | NearMiss:
    """Detect CEF, with or without syslog's fields before it; the format is a pattern."""
    rows = [match.groups() for match in map(_LINE.fullmatch, lines) if match]
    if len(rows) < MIN_SHARE * len(lines):
        return NearMiss(len(rows))
    prefix = _prefix_pattern([row[0] for row in rows])
    groups = _groups([row[-1] for row in rows], {*HEADER, "extension", *re.findall(r"\?P<(\w+)>", prefix)})
    bars = "".join(rf"\|(?P<{name}>{_BAR})" for name in HEADER[1:])
    pattern = rf"{prefix}CEF:(?P<{HEADER[0]}>[0-9.]+){bars}\|(?P<extension>{groups}.*)"
    form = re.compile(pattern)
    parsed = [match.groupdict() for match in map(form.fullmatch, lines) if match]
    fields = {name: [row[name] for row in parsed if row[name]] for name in form.groupindex}
    return DetectedFormat("regex", fields, {}, {"pattern": pattern}, notes=(_NOTE,))


def _prefix_pattern(texts: Sequence[str]) -> str:
    """Return a pattern for the text before the message."""
    if not any(texts):
        return ""
    if not all(map(str.strip, texts)):
        return "(?P<before>.*?)"
    guessed = guess([text.rstrip() for text in texts])
    whole = guessed.matched >= MIN_SHARE * len(texts) and "(?P<message>" not in guessed.pattern
    return f"{guessed.pattern} *" if whole else "(?P<before>.*?)"


def _groups(extensions: Sequence[str], reserved: set[str]) -> str:
    """Return an optional group for each key whose values have no blanks, and for times.

    Args:
        reserved: names that other groups have.
    """
    rows = [_PAIR.findall(text) for text in extensions]
    values: dict[str, list[str]] = {}
    places: Counter[str] = Counter()
    for row in rows:
        for place, (name, text) in enumerate(row):
            values.setdefault(name, []).append(text)
            places[name] += place
    groups = {}
    for name, texts in values.items():
        words = {len(text.split()) for text in texts if text}
        if words == {1}:
            groups[name] = r"[^ ]+"
        elif name in TIMES and len(words) == 1:
            groups[name] = r"[^ ]+(?: [^ =]+){" + str(words.pop() - 1) + "}"
    ordered = sorted(groups, key=lambda name: (places[name] / len(values[name]), name))[:MAX_KEYS]
    named = {name: f"cef_{name}" if name in reserved or not name[0].isalpha() else name for name in ordered}
    return "".join(rf"(?:.*?\b{name}=(?P<{named[name]}>{groups[name]}))?" for name in ordered)
