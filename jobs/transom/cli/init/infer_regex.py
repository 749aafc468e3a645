"""Infer a regular expression for lines: words, quoted texts and brackets become groups."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from string import punctuation
from typing import NamedTuple

from transom.cli.init.infer_path import identifier
from transom.cli.init.infer_types import HALF, KLOG, partial_times_of, skeleton, times_of
from transom.cli.init.log_format import MIN_SHARE

_TOKEN = re.compile(
    r'(?P<name>[A-Za-z_][\w.-]*=)?"(?P<quoted>(?:[^"\\]|\\.)*)"|\[(?P<bracket>[^\]]*)\](?=[,;]?(?:\s|$)|\[)'
    r"|(?P<own>[A-Za-z_][\w.-]*=)?'(?P<single>[^']*)'(?=[,;:]?(?:\s|$))"
    r"|(?<=[\"\]'])(?P<sign>[,;:|/)\]]+)|(?P<label>[A-Za-z_][\w.-]*=)?(?P<word>\S+)"
)
FORMS = ("quoted", "bracket", "single", "sign", "word")
"""The forms of parts; `single` is a text in single quotes."""
MESSAGE = "message"
COMBINED_FIELDS = ("client", "ident", "user", "time", "request", "status", "bytes", "referer", "agent")
"""The first fields of a web server's log; others may follow."""
SHAPE = ("word", "word", "word", "bracket", "quoted", "word", "word", "quoted", "quoted")
REQUEST = re.compile(r"[A-Z]+ \S+ HTTP/[0-9.]+")
REQUEST_PARTS = r'(?P<method>[A-Z]+) (?P<path>[^ "]+) (?P<protocol>HTTP/[0-9.]+)'
KNOWN = {
    "ip": re.compile(r"[0-9]{1,3}(\.[0-9]{1,3}){3}|[0-9a-f:]*::[0-9a-f:]*|([0-9a-f]+:){7}[0-9a-f]+"),
    "level": re.compile(
        ":?(trace|debug|info|notice|warn|warning|error|critical|fatal|severe|alert|emerg):?", re.IGNORECASE
    ),
    # syslog: sshd[1234]:
    "process": re.compile(r"[^ \[\]:]+\[[0-9]+\]:"),
}
"""Parts whose form determines their name."""
PROSE = re.compile("(?![ap]m[,.:]?$)[A-Za-z]?[a-z']+[,.:]?")
BLANKS, TABS = ("[^ ]+", " +"), (r"\S+", r"\s+")
"""Expressions of a word and a gap: without tabs in the lines, and with tabs."""
QUOTED, ESCAPED = '[^"]*)', r'(?:[^"\\]|\\.)*)'
"""The end of a quoted group: without escaped quotes, and with them."""
TRIED = 50
SIGNS = "".join(sorted(set(punctuation) - set("+-_")))
"""Signs that may surround a time."""
WIDEST = 7
"""Maximum number of words of a time: Mon May 6 10:00:00 PM CEST 2024."""
LETTER = "(?P<level>[A-Z])"
"""The letter before klog's month and day."""
LEVEL = "(?P<level>[A-Za-z]+):"
HEADS = ("", "<(?P<priority>[0-9]+)>", LEVEL, rf"{LEVEL}(?P<logger>[^: ]+):", LETTER)
TAILS = ("", r"\[(?P<thread>[^\] ]*)\]")
"""Expressions of text before (`HEADS`) and after (`TAILS`) a time in the same word."""
SERIAL = "(?P<serial>[0-9]+)"
"""A number after a time in the same word, such as an event's: audit(1681160198.534:3901)."""
_INSTANT = re.compile(
    r"(?<![0-9.])[0-9]{10}(?:\.[0-9]{1,9})?(?![0-9.])|"
    r"(?<![0-9])[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]+)?(?:Z|[+-][0-9]{2}:?[0-9]{2})?"
)
Form = tuple[str, str, bool]
"""The form of a part, its label, and whether it is glued to the previous part."""


class Token(NamedTuple):
    """A part of a line.

    Attributes:
        form: the form; a `sign` follows a quote or a bracket.
        label: the name in `name=value`.
        glued: whether no blank precedes it, such as a comma after a quote.
    """

    form: str
    label: str
    glued: bool
    text: str

    @property
    def shape(self) -> Form:
        """The properties that equal parts of other lines share."""
        return self[:3]


DASH = Token("word", "", False, "-")
"""The token of a missing value."""
Rows = Sequence[Sequence[Token]]


@dataclass(frozen=True)
class Place:
    """The place of a time in a line.

    Attributes:
        position: the index of its first part.
        width: the number of its parts.
        before: the expression for text before it in these parts, such as a bracket.
        after: the expression for text after it in these parts, such as a comma.
    """

    position: int
    width: int
    before: str = ""
    after: str = ""


def tokens(line: str) -> list[Token]:
    """Return the parts of a line."""
    parts: list[Token] = []
    for match in _TOKEN.finditer(line):
        form = next(name for name in FORMS if match[name] is not None)
        glued = bool(parts) and not line[match.start() - 1].isspace()
        label = match["name"] or match["own"] or match["label"] or ""
        parts.append(Token(form, label[:-1], glued, match[form]))
    return parts


def guess(lines: Sequence[str]) -> tuple[str, bool]:
    """Return a pattern that most lines match, and whether one of its groups is a time.

    Parts that the lines do not share become the message.
    """
    forms, alike, whole = _shape([tokens(line) for line in lines])
    heads = [row[: len(forms)] for row in alike[:TRIED]] or [[]]
    timed = _time(heads, len(forms))
    tabs = any("\t" in line for line in lines)
    gap = r"\s+" if tabs else " +" if any("  " in line for line in lines) else " "
    pattern = "".join(_parts(heads, forms, timed, TABS if tabs else BLANKS, gap))
    if not whole:
        glued = any(row[len(forms)].glued for row in alike if len(row) > len(forms))
        pattern += f"{'' if not forms else ' *' if glued else gap}(?P<{MESSAGE}>.*)"
    elif any(line[-1:].isspace() for line in lines):
        pattern += r"\s*"
    if any(line[:1].isspace() for line in lines):
        pattern = rf"\s*{pattern}"
    if any('\\"' in line for line in lines):
        pattern = pattern.replace(QUOTED, ESCAPED)
    return pattern, timed is not None


def _shape(rows: Rows) -> tuple[list[Form], Rows, bool]:
    """Return the common forms of the parts of most lines, these lines, and whether the forms cover them.

    A single dash is a missing value of a part of any form.
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


def _before_message(rows: Rows, length: int) -> int:
    """Return the number of common parts before the message.

    The message begins after the first part that ends in a colon, before the first that begins a sentence, or
    after the last dash that all lines have.
    """
    for at in range(length):
        if all(row[at].form in ("word", "sign") and row[at].text.endswith(":") for row in rows):
            return at + 1
        prose = (PROSE.fullmatch(token.text) for row in rows for token in row[at : at + 3])
        if 0 < at <= length - 3 and all(prose):
            return at
    dashes = [at for at in range(length) if all(row[at] == DASH for row in rows)]
    return dashes[-1] + 1 if dashes else length


def _parts(
    rows: Rows, forms: Sequence[Form], timed: Place | None, words: tuple[str, str], gap: str
) -> Iterator[str]:
    """Yield the expression of each part with the gap before it; the parts of a time have one expression.

    Args:
        gap: the expression of the gap between two parts.
        words: the expressions of a word, and of the gap between words of a time.
    """
    combined = len(forms) > len(SHAPE) and tuple(form for form, _, _ in forms[: len(SHAPE)]) == SHAPE
    reserved: list[str] = []
    at = 0
    while at < len(forms):
        place = timed if timed is not None and at == timed.position else None
        part = [row[at] for row in rows]
        form, label, glued = forms[at]
        values = [token.text for token in part if token != DASH]
        has_dashes = len(values) < len(part)
        end = _common_end(values) if form == "word" and place is None and not has_dashes else ""
        values = [text.removesuffix(end) for text in values]
        # Blanks pad such a word: [INFO ].
        stripped = [text.rstrip(" ") for text in values]
        padded = form == "bracket" and stripped != values and not any(" " in text for text in stripped)
        values = stripped if padded else values
        name = "time" if place is not None else label or _name(rows, forms, at, values, timed)
        if combined and at < len(COMBINED_FIELDS):
            name = COMBINED_FIELDS[at]
        separator = "" if glued or at == 0 else gap
        if not combined and form in ("word", "sign") and not has_dashes and _is_sign(values):
            yield separator + re.escape(values[0])
        elif name == "request" and all(map(REQUEST.match, values)):
            reserved += ["method", "path", "protocol"]
            yield rf'{separator}"(?:{REQUEST_PARTS}|(?P<request>[^"]*))"'
        elif name == "process":
            process, pid = identifier("process", reserved), identifier("pid", reserved)
            reserved += [process, pid]
            yield separator + rf"(?P<{process}>[^ \[]+?)(?:\[(?P<{pid}>[0-9]+)\])?:"
        else:
            name = identifier(name, reserved)
            reserved.append(name)
            word = words[1].join([words[0]] * (1 if place is None else place.width))
            expression = _expression(form, label, name, word, has_dashes, padded)
            if place is not None:
                expression = _named(place.before, reserved) + expression + _named(place.after, reserved)
            yield separator + expression + end
        at += 1 if place is None else place.width


def _name(rows: Rows, forms: Sequence[Form], at: int, values: Sequence[str], timed: Place | None) -> str:
    """Return the name of a part without a label."""
    name = name_of(values, at)
    if forms[at][0] == "bracket" and values and all(map(str.isdecimal, values)):
        # LOG: [123], as in Postgres.
        return "pid"
    after_time = timed is not None and at == timed.position + timed.width
    if after_time and name.startswith("field_") and at + 1 < len(forms):
        # In syslog, the process follows the host.
        return "host" if name_of([row[at + 1].text for row in rows], at + 1) == "process" else name
    return name


def _common_end(texts: Sequence[str]) -> str:
    """Return the comma or semicolon that ends all texts and is no part of their values; empty if none."""
    ends = {text[-1:] for text in texts}
    return ends.pop() if ends in ({","}, {";"}) and all(len(text) > 1 for text in texts) else ""


def _is_sign(texts: Sequence[str]) -> bool:
    """Return whether all texts are the same sign. Dashes do not count: they may be missing values."""
    return len(set(texts)) == 1 and not any(map(str.isalnum, texts[0])) and set(texts[0]) != {"-"}


def _time(rows: Rows, length: int) -> Place | None:
    """Return the place of a time, of a time without a year only if there is no other."""
    for is_time, at in product((times_of, partial_times_of), range(length)):
        for width in range(min(WIDEST, length - at), 0, -1):
            parts = [row[at : at + width] for row in rows]
            words = all(token.form == "word" for part in parts for token in part)
            if width > 1 and (not words or any(token.label for part in parts for token in part)):
                continue
            if at + width < length and all(HALF.fullmatch(row[at + width].text) for row in rows):
                continue
            texts = [" ".join(token.text for token in part) for part in parts]
            if is_time(texts) is not None and (is_time is times_of or not _is_klog(texts)):
                return Place(at, width)
            for before, inside, after in _stripped(texts) if words else ():
                klog = is_time is partial_times_of and _is_klog(inside)
                if is_time(inside) is not None and klog == (before == LETTER):
                    return Place(at, width, before, after)
    return _inside(rows, length)


def _inside(rows: Rows, length: int) -> Place | None:
    """Return the place of a time inside a word whose other text is equal in all lines, except for numbers
    after the time."""
    for at in range(length):
        texts = [row[at].text for row in rows if row[at].form == "word"]
        times = [time for time in map(_INSTANT.search, texts) if time is not None]
        if not times or len(times) < len(rows):
            continue
        heads = {time.string[: time.start()] for time in times}
        tails = {skeleton(time.string[time.end() :]) for time in times}
        if len(heads) > 1 or len(tails) > 1 or times_of([time[0] for time in times]) is None:
            continue
        first, *others = re.split("1+", tails.pop())
        if "x" in first + "".join(others):
            continue
        numbers = [SERIAL, *("[0-9]+" for _ in others[1:])]
        after = "".join(number + re.escape(text) for number, text in zip(numbers, others, strict=False))
        return Place(at, 1, re.escape(heads.pop()), re.escape(first) + after)
    return None


def _is_klog(texts: Sequence[str]) -> bool:
    """Return whether texts are times such as 0506 10:00:00.123456. Other numbers may look alike."""
    partial = partial_times_of(texts)
    return partial is not None and partial[0] == KLOG


def _stripped(texts: Sequence[str]) -> Iterator[tuple[str, list[str], str]]:
    """Yield the expression before a time, the texts without the text around it, and the expression after it.

    The text around a time matches `HEADS` and `TAILS`, or consists of the same signs in all texts, such as
    brackets, commas and colons.
    """
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
    """Return the expression of text around a time, with unique names of its groups."""
    for name in re.compile(around).groupindex:
        own = identifier(name, reserved)
        reserved.append(own)
        around = around.replace(f"(?P<{name}>", f"(?P<{own}>")
    return around


def name_of(texts: Sequence[str], at: int) -> str:
    """Return a name for a part of lines: by its form, or by its position."""
    for name, form in KNOWN.items():
        fitting = sum(form.fullmatch(text) is not None for text in texts)
        if fitting and (fitting == len(texts) or (name == "process" and all(t.endswith(":") for t in texts))):
            return name
    return f"field_{at + 1}"


def _expression(form: str, label: str, name: str, words: str, dashes: bool, padded: bool) -> str:
    prefix = f"{re.escape(label)}=" if label else ""
    if form in ("word", "sign"):
        return f"{prefix}(?P<{name}>{words})"
    if form == "quoted":
        inside = f'{prefix}"(?P<{name}>{QUOTED}"'
    elif form == "single":
        inside = f"{prefix}'(?P<{name}>[^']*)'"
    else:
        inside = prefix + (rf"\[(?P<{name}>[^\] ]*) *\]" if padded else rf"\[(?P<{name}>[^\]]*)\]")
    return f"(?:{inside}|-)" if dashes else inside
