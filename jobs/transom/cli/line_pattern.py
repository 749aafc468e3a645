"""A first regular expression for lines of a form of their own: words, quotes and brackets become groups."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from transom.cli.kinds import times_of
from transom.cli.naming import identifier

_TOKEN = re.compile(
    r'(?P<name>[A-Za-z_][\w.-]*=)?"(?P<quoted>(?:[^"\\]|\\.)*)"|\[(?P<bracket>[^\]]*)\](?=\s|$)'
    r"|(?P<label>[A-Za-z_][\w.-]*=)?(?P<word>\S+)"
)
COMBINED = ("client", "ident", "user", "time", "request", "status", "bytes", "referer", "agent")
"""The fields with which lines begin that a web server's log has more behind."""
SHAPE = ("word", "word", "word", "bracket", "quoted", "word", "word", "quoted", "quoted")
REQUEST = re.compile(r"[A-Z]+ \S+ HTTP/[0-9.]+")
MOST = 0.9
TRIED = 50


@dataclass(frozen=True)
class Token:
    """A part of a line: how it is written, the name that it gives itself, its text."""

    form: str
    label: str
    text: str


@dataclass(frozen=True)
class Guess:
    """A pattern, and what its groups hold in the lines that it matches."""

    pattern: str
    fields: dict[str, list[str]]
    matched: int


def tokens(line: str) -> list[Token]:
    """The parts of a line."""
    found = []
    for match in _TOKEN.finditer(line):
        form = next(name for name in ("quoted", "bracket", "word") if match[name] is not None)
        found.append(Token(form, (match["name"] or match["label"] or "")[:-1], match[form]))
    return found


def guess(lines: Sequence[str]) -> Guess:
    """A pattern that most lines match; where they have less in common, the rest of a line is its message."""
    read = [tokens(line) for line in lines]
    forms = [tuple((token.form, token.label) for token in row) for row in read]
    ((whole, times),) = Counter(forms).most_common(1)
    full = times >= MOST * len(lines)
    length = len(whole) if full else _common(forms)
    alike = [row for row, form in zip(read, forms, strict=True) if form[:length] == whole[:length]]
    if not full:
        length = _common(forms)
        alike = [row for row in read if len(row) > length]
    parts = _parts([row[:length] for row in alike[:TRIED]] or [[]], length)
    if not full:
        parts.append(r"(?P<message>.*)")
    gap = " +" if any("  " in line for line in lines[:TRIED]) else " "
    pattern = gap.join(parts)
    form = re.compile(pattern)
    found = [match.groupdict() for match in map(form.fullmatch, lines) if match]
    fields = {name: [row[name] for row in found if row[name]] for name in form.groupindex}
    return Guess(pattern, fields, len(found))


def _common(forms: Sequence[tuple[tuple[str, str], ...]]) -> int:
    """How many parts most lines begin with alike."""
    length = 0
    while True:
        heads = Counter(form[: length + 1] for form in forms if len(form) > length + 1)
        if not heads or heads.most_common(1)[0][1] < MOST * len(forms):
            return length
        length += 1


def _parts(rows: Sequence[Sequence[Token]], length: int) -> list[str]:
    """The expression of each part."""
    combined = length > len(SHAPE) and tuple(token.form for token in rows[0][: len(SHAPE)]) == SHAPE
    timed = _time(rows, length)
    parts: list[str] = []
    taken: list[str] = []
    at = 0
    while at < length:
        texts = [row[at].text for row in rows]
        token = rows[0][at]
        width = timed[1] if timed is not None and at == timed[0] else 1
        name = "time" if timed is not None and at == timed[0] else _name(token, texts, at)
        if combined and at < len(COMBINED):
            name = COMBINED[at]
        if (
            len(set(texts)) == 1
            and not any(map(str.isalnum, texts[0]))
            and not combined
            and token.form == "word"
        ):
            parts.append(re.escape(texts[0]))
        elif name == "request" and all(map(REQUEST.match, texts)):
            taken += ["method", "path", "protocol"]
            parts.append(
                r'"(?:(?P<method>[A-Z]+) (?P<path>[^ "]+) (?P<protocol>HTTP/[0-9.]+)|(?P<request>[^"]*))"'
            )
        else:
            name = identifier(name, taken)
            taken.append(name)
            parts.append(_expression(token, name, width))
        at += width
    return parts


def _time(rows: Sequence[Sequence[Token]], length: int) -> tuple[int, int] | None:
    """Where a time stands, and over how many parts it goes."""
    for at in range(length):
        for width in range(min(5, length - at), 0, -1):
            parts = [row[at : at + width] for row in rows]
            if width > 1 and any(token.form != "word" or token.label for part in parts for token in part):
                continue
            if times_of([" ".join(token.text for token in part) for part in parts]) is not None:
                return at, width
    return None


def _name(token: Token, texts: Sequence[str], at: int) -> str:
    if token.label:
        return token.label
    if all(
        re.fullmatch(r"[0-9]{1,3}(\.[0-9]{1,3}){3}|[0-9a-f:]*::[0-9a-f:]*|([0-9a-f]+:){7}[0-9a-f]+", text)
        for text in texts
    ):
        return "ip"
    if all(text.strip(":").upper() in LEVELS for text in texts):
        return "level"
    return f"field_{at + 1}"


LEVELS = {
    "TRACE",
    "DEBUG",
    "INFO",
    "NOTICE",
    "WARN",
    "WARNING",
    "ERROR",
    "CRITICAL",
    "FATAL",
    "SEVERE",
    "ALERT",
}


def _expression(token: Token, name: str, width: int) -> str:
    label = f"{re.escape(token.label)}=" if token.label else ""
    if token.form == "quoted":
        return rf'{label}"(?P<{name}>[^"]*)"'
    if token.form == "bracket":
        return rf"\[(?P<{name}>[^\]]*)\]"
    return label + rf"(?P<{name}>{' +'.join([r'[^ ]+'] * width)})"
