"""Infer a first regular expression for lines: words, quotes and brackets become groups."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from string import punctuation

from transom.cli.init.detected_format import MIN_SHARE
from transom.cli.init.infer_path import identifier
from transom.cli.init.infer_types import HALF, KLOG, partial_times_of, skeleton, times_of

_TOKEN = re.compile(
    r'(?P<name>[A-Za-z_][\w.-]*=)?"(?P<quoted>(?:[^"\\]|\\.)*)"|\[(?P<bracket>[^\]]*)\](?=[,;]?(?:\s|$)|\[)'
    r'|(?<=["\]])(?P<sign>[,;:|/)\]]+)|(?P<label>[A-Za-z_][\w.-]*=)?(?P<word>\S+)'
)
MESSAGE = "message"
COMBINED = ("client", "ident", "user", "time", "request", "status", "bytes", "referer", "agent")
"""The first fields of a web server's log with additional ones."""
SHAPE = ("word", "word", "word", "bracket", "quoted", "word", "word", "quoted", "quoted")
REQUEST = re.compile(r"[A-Z]+ \S+ HTTP/[0-9.]+")
KNOWN = {
    "ip": re.compile(r"[0-9]{1,3}(\.[0-9]{1,3}){3}|[0-9a-f:]*::[0-9a-f:]*|([0-9a-f]+:){7}[0-9a-f]+"),
    "level": re.compile(
        ":?(trace|debug|info|notice|warn|warning|error|critical|fatal|severe|alert|emerg):?", re.IGNORECASE
    ),
    # Of syslog: sshd[1234]:
    "process": re.compile(r"[^ \[\]:]+\[[0-9]+\]:"),
}
"""Names of parts that their form identifies."""
PROSE = re.compile("(?![ap]m[,.:]?$)[A-Za-z]?[a-z']+[,.:]?")
BLANKS, TABS = ("[^ ]+", " +"), (r"\S+", r"\s+")
"""A word and a gap, for lines with blanks only, and for lines with tabs."""
QUOTED, ESCAPED = '[^"]*)', r'(?:[^"\\]|\\.)*)'
"""The end of a quoted group, without and with escaped quotes in it."""
TRIED = 50


@dataclass(frozen=True)
class Token:
    """A part of a line.

    Attributes:
        form: its form; a `sign` follows a quote or a bracket.
        label: its own name, as in `name=value`.
        glued: whether there is no blank before it, as before a comma after a quote.
    """

    form: str
    label: str
    text: str
    glued: bool = False

    @property
    def shape(self) -> "Form":
        """The properties that it shares with a part of another line."""
        return self.form, self.label, self.glued


SIGNS = "".join(sorted(set(punctuation) - set("+-_")))
"""Signs that may be around a time."""

WIDEST = 7
"""Number of words of the longest time: Mon May 6 10:00:00 PM CEST 2024."""
LETTER = "(?P<level>[A-Z])"
"""The letter before klog's month and day."""
HEADS = (
    "",
    "<(?P<priority>[0-9]+)>",
    "(?P<level>[A-Za-z]+):",
    "(?P<level>[A-Za-z]+):(?P<logger>[^: ]+):",
    LETTER,
)
TAILS = ("", r"\[(?P<thread>[^\] ]*)\]")
"""Patterns of text before and after a time in the same word."""
SERIAL = "(?P<serial>[0-9]+)"
"""A number after a time in the same word, such as that of an event: audit(1681160198.534:3901)."""
_INSTANT = re.compile(
    r"(?<![0-9.])[0-9]{10}(?:\.[0-9]{1,9})?(?![0-9.])|"
    r"(?<![0-9])[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]+)?(?:Z|[+-][0-9]{2}:?[0-9]{2})?"
)

DASH = Token("word", "", "-")
"""The token for no value."""


@dataclass(frozen=True)
class Place:
    """The place of a time in a line.

    Attributes:
        position: the number of its first part.
        width: the number of its parts.
        before, after: expressions for the text around it in these parts, such as a comma.
    """

    position: int
    width: int
    before: str = ""
    after: str = ""


@dataclass(frozen=True)
class Guess:
    """A pattern, the texts of its groups in the lines that it matches, and whether one of them is a time."""

    pattern: str
    fields: dict[str, list[str]]
    matched: int
    timed: bool

    @property
    def takes_apart(self) -> bool:
        """Whether it has other groups than the message."""
        return not set(self.fields) <= {MESSAGE}


def tokens(line: str) -> list[Token]:
    """Return the parts of a line."""
    parts: list[Token] = []
    for match in _TOKEN.finditer(line):
        form = next(name for name in ("quoted", "bracket", "sign", "word") if match[name] is not None)
        glued = bool(parts) and not line[match.start() - 1].isspace()
        parts.append(Token(form, (match["name"] or match["label"] or "")[:-1], match[form], glued))
    return parts


def guess(lines: Sequence[str]) -> Guess:
    """Guess a pattern that most lines match; parts that they do not share become the message."""
    read = [tokens(line) for line in lines]
    forms, alike, whole = _shape(read)
    heads = [row[: len(forms)] for row in alike[:TRIED]] or [[]]
    timed = _time(heads, len(forms))
    tabs = any("\t" in line for line in lines)
    gap = r"\s+" if tabs else " +" if any("  " in line for line in lines) else " "
    parts = _parts(heads, forms, timed, TABS if tabs else BLANKS, gap)
    if not whole:
        glued = any(row[len(forms)].glued for row in alike if len(row) > len(forms))
        parts.append(f"{'' if not parts else ' *' if glued else gap}(?P<{MESSAGE}>.*)")
    leading_space = r"\s*" if any(line[:1].isspace() for line in lines) else ""
    trailing_space = r"\s*" if whole and any(line[-1:].isspace() for line in lines) else ""
    pattern = leading_space + "".join(parts) + trailing_space
    if any('\\"' in line for line in lines):
        pattern = pattern.replace(QUOTED, ESCAPED)
    form = re.compile(pattern)
    rows = [match.groupdict() for match in map(form.fullmatch, lines) if match]
    fields = {name: [row[name] for row in rows if row[name]] for name in form.groupindex}
    return Guess(pattern, fields, len(rows), timed is not None)


Form = tuple[str, str, bool]
"""The form of a part, its own name, and whether it is glued to the previous one."""


def _shape(rows: Sequence[Sequence[Token]]) -> tuple[list[Form], Sequence[Sequence[Token]], bool]:
    """Return the forms of the parts of most lines, the lines with these forms, and whether these are whole
    lines.

    A single dash means a part of any form without a value.
    """
    forms: list[Form] = []
    alike, min_rows = rows, MIN_SHARE * len(rows)
    while sum(len(row) == len(forms) for row in alike) < min_rows:
        at = len(forms)
        shapes = Counter(row[at].shape for row in alike if len(row) > at and row[at] != DASH)
        form = shapes.most_common(1)[0][0] if shapes else DASH.shape
        matching = [row for row in alike if len(row) > at and (row[at] == DASH or row[at].shape == form)]
        if len(matching) < min_rows:
            break
        forms.append(form)
        alike = matching
    else:
        return forms, [row for row in alike if len(row) == len(forms)], True
    while forms and sum(len(row) > len(forms) for row in alike) < min_rows:
        forms.pop()
    alike = [row for row in alike if len(row) > len(forms)]
    return forms[: _before_message(alike, len(forms))], alike, False


def _before_message(rows: Sequence[Sequence[Token]], length: int) -> int:
    """Return the number of common parts before the message: up to the first that ends in a colon or begins a
    sentence, or to the last dash that all lines have."""
    for at in range(length):
        if all(row[at].form in ("word", "sign") and row[at].text.endswith(":") for row in rows):
            return at + 1
        if (
            at > 0
            and at + 3 <= length
            and all(PROSE.fullmatch(t.text) for row in rows for t in row[at : at + 3])
        ):
            return at
    dashes = [at for at in range(length) if all(row[at] == DASH for row in rows)]
    return dashes[-1] + 1 if dashes else length


def _parts(
    rows: Sequence[Sequence[Token]],
    forms: Sequence[Form],
    timed: Place | None,
    words: tuple[str, str],
    gap: str,
) -> list[str]:
    """Return the expression of each part, one for all parts of a time, each with the gap before it.

    Args:
        gap: the expression of the blanks between two parts.
        words: the expressions of a word, and of the gap between words of a time.
    """
    combined = len(forms) > len(SHAPE) and tuple(form for form, _, _ in forms[: len(SHAPE)]) == SHAPE
    parts: list[str] = []
    reserved: list[str] = []
    at = 0
    while at < len(forms):
        part = [row[at] for row in rows]
        values = [token.text for token in part if token != DASH]
        form, label, glued = forms[at]
        place = timed if timed is not None and at == timed.position else None
        width = 1 if place is None else place.width
        end = ""
        if form == "word" and place is None and len(values) == len(part):
            end = _common_end(values)
            values = [text.removesuffix(end) for text in values]
        # Words that are padded with blanks: [INFO ].
        stripped = [text.rstrip(" ") for text in values]
        padded = form == "bracket" and stripped != values and not any(" " in text for text in stripped)
        values = stripped if padded else values
        name = label or name_of(values, at) if place is None else "time"
        if form == "bracket" and not label and values and all(map(str.isdecimal, values)):
            # LOG: [123], of Postgres and of others.
            name = "pid" if name == name_of(values, at) else name
        elif (
            timed is not None
            and at == timed.position + timed.width
            and name.startswith("field_")
            and at + 1 < len(forms)
        ):
            # In syslog the process follows the host.
            next_name = name_of([row[at + 1].text for row in rows], at + 1)
            name = "host" if next_name == "process" else name
        if combined and at < len(COMBINED):
            name = COMBINED[at]
        separator = "" if glued or not parts else gap
        sign = form in ("word", "sign") and bool(values) and _is_sign(values) and len(values) == len(part)
        if sign and not combined:
            parts.append(separator + re.escape(values[0]))
        elif name == "request" and all(map(REQUEST.match, values)):
            reserved += ["method", "path", "protocol"]
            parts.append(
                separator
                + r'"(?:(?P<method>[A-Z]+) (?P<path>[^ "]+) (?P<protocol>HTTP/[0-9.]+)|(?P<request>[^"]*))"'
            )
        elif name == "process":
            names = identifier("process", reserved), identifier("pid", reserved)
            reserved += names
            parts.append(separator + rf"(?P<{names[0]}>[^ \[]+?)(?:\[(?P<{names[1]}>[0-9]+)\])?:")
        else:
            name = identifier(name, reserved)
            reserved.append(name)
            word = words[1].join([words[0]] * width)
            expression = _expression(form, label, name, word, len(values) < len(part), padded)
            if place is not None and (place.before or place.after):
                expression = _named(place.before, reserved) + expression + _named(place.after, reserved)
            parts.append(separator + expression + end)
        at += width
    return parts


def _common_end(texts: Sequence[str]) -> str:
    """Return the comma or semicolon at the end of all parts, which is not in their value."""
    ends = {text[-1:] for text in texts}
    return ends.pop() if ends in ({","}, {";"}) and all(len(text) > 1 for text in texts) else ""


def _is_sign(texts: Sequence[str]) -> bool:
    """Return whether all parts are the same sign without information; dashes may mean a missing value."""
    return len(set(texts)) == 1 and not any(map(str.isalnum, texts[0])) and set(texts[0]) != {"-"}


def _time(rows: Sequence[Sequence[Token]], length: int) -> Place | None:
    """Return the place of a time; one without a year only if there is no other."""
    for is_time in (times_of, partial_times_of):
        for at in range(length):
            for width in range(min(WIDEST, length - at), 0, -1):
                parts = [row[at : at + width] for row in rows]
                if width > 1 and any(token.form != "word" or token.label for part in parts for token in part):
                    continue
                if at + width < length and all(HALF.fullmatch(row[at + width].text) for row in rows):
                    continue
                texts = [" ".join(token.text for token in part) for part in parts]
                if is_time(texts) is not None and (is_time is times_of or not _is_klog(texts)):
                    return Place(at, width)
                if any(token.form != "word" for part in parts for token in part):
                    continue
                for before, inside, after in _stripped(texts):
                    klog = is_time is partial_times_of and _is_klog(inside)
                    if is_time(inside) is not None and klog == (before == LETTER):
                        return Place(at, width, before, after)
    return _inside(rows, length)


def _inside(rows: Sequence[Sequence[Token]], length: int) -> Place | None:
    """Return the place of a time inside a word, between text that is the same in all lines, except for
    numbers after the time."""
    for at in range(length):
        texts = [row[at].text for row in rows if row[at].form == "word"]
        matches = [(text, time) for text in texts if (time := _INSTANT.search(text)) is not None]
        if not matches or len(matches) < len(rows):
            continue
        befores = {text[: time.start()] for text, time in matches}
        tails = {skeleton(text[time.end() :]) for text, time in matches}
        if len(befores) > 1 or len(tails) > 1 or times_of([time[0] for _, time in matches]) is None:
            continue
        first, *later_parts = re.split("1+", tails.pop())
        if "x" in first + "".join(later_parts):
            continue
        numbers = [SERIAL, *("[0-9]+" for _ in later_parts[1:])]
        after = "".join(number + re.escape(text) for number, text in zip(numbers, later_parts, strict=False))
        return Place(at, 1, re.escape(befores.pop()), re.escape(first) + after)
    return None


def _is_klog(texts: Sequence[str]) -> bool:
    """Return whether texts are times such as 0506 10:00:00.123456, which may be by chance."""
    partial = partial_times_of(texts)
    return partial is not None and partial[0] == KLOG


def _stripped(texts: Sequence[str]) -> Iterator[tuple[str, list[str], str]]:
    """Yield texts without the text around a time, and the expressions of that: `HEADS`, `TAILS`, and common
    signs at the beginning and the end, such as brackets, commas and colons."""
    for head, tail in product(HEADS, TAILS):
        form = re.compile(f"{head}(?P<inside>.*?){tail}")
        inner = [match["inside"] for match in map(form.fullmatch, texts) if match]
        if len(inner) < len(texts):
            continue
        heads = {text[: len(text) - len(text.lstrip(SIGNS))] for text in inner}
        tails = {text[len(text.rstrip(SIGNS)) :] for text in inner}
        before = heads.pop() if len(heads) == 1 else ""
        after = tails.pop() if len(tails) == 1 else ""
        if head or tail or before or after:
            inside = [text.removeprefix(before).removesuffix(after) for text in inner]
            yield head + re.escape(before), inside, re.escape(after) + tail


def _named(around: str, reserved: list[str]) -> str:
    """Return an expression beside a time, with unique names of its groups."""
    for name in re.compile(around).groupindex:
        own = identifier(name, reserved)
        reserved.append(own)
        around = around.replace(f"(?P<{name}>", f"(?P<{own}>")
    return around


def name_of(texts: Sequence[str], at: int) -> str:
    """Return a name for a part of lines, by its form, else by its position."""
    for name, form in KNOWN.items():
        fitting = sum(form.fullmatch(text) is not None for text in texts)
        if fitting and (fitting == len(texts) or (name == "process" and all(t.endswith(":") for t in texts))):
            return name
    return f"field_{at + 1}"


def _expression(form: str, label: str, name: str, words: str, dashes: bool, padded: bool) -> str:
    prefix = f"{re.escape(label)}=" if label else ""
    if form in ("word", "sign"):
        return prefix + rf"(?P<{name}>{words})"
    around = r'"{}"' if form == "quoted" else r"\[{} *\]" if padded else r"\[{}\]"
    in_brackets = rf"(?P<{name}>[^\] ]*)" if padded else rf"(?P<{name}>[^\]]*)"
    inside = prefix + around.format(f"(?P<{name}>{QUOTED}" if form == "quoted" else in_brackets)
    return f"(?:{inside}|-)" if dashes else inside
