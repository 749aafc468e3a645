"""A first regular expression for lines of a form of their own: words, quotes and brackets become groups."""

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
"""The fields with which lines begin that a web server's log has more behind."""
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
"""Names of parts that tell by their form what they are."""
PROSE = re.compile("(?![ap]m[,.:]?$)[A-Za-z]?[a-z']+[,.:]?")
BLANKS, TABS = ("[^ ]+", " +"), (r"\S+", r"\s+")
"""A word, and what stands between words, of lines with blanks alone, and with tabs too."""
QUOTED, ESCAPED = '[^"]*)', r'(?:[^"\\]|\\.)*)'
"""The end of a group between quotes, without and with quotes in it behind a backslash."""
TRIED = 50


@dataclass(frozen=True)
class Token:
    """A part of a line.

    Attributes:
        form: how it is written; a `sign` follows a quote or a bracket.
        label: the name that it gives itself.
        glued: whether no blank is before it, as before a comma behind a quote.
    """

    form: str
    label: str
    text: str
    glued: bool = False

    @property
    def shape(self) -> "Form":
        """What it has in common with a part of another text."""
        return self.form, self.label, self.glued


SIGNS = "".join(sorted(set(punctuation) - set("+-_")))
"""What may be around a time and is not of it."""

WIDEST = 7
"""Words of the widest time: Mon May 6 10:00:00 PM CEST 2024."""
LETTER = "(?P<level>[A-Z])"
"""What is before klog's month and day."""
HEADS = (
    "",
    "<(?P<priority>[0-9]+)>",
    "(?P<level>[A-Za-z]+):",
    "(?P<level>[A-Za-z]+):(?P<logger>[^: ]+):",
    LETTER,
)
TAILS = ("", r"\[(?P<thread>[^\] ]*)\]")
"""What logs write before and behind a time in one word with it."""
SERIAL = "(?P<serial>[0-9]+)"
"""A number behind a time in one word, such as that of an event: audit(1681160198.534:3901)."""
_INSTANT = re.compile(
    r"(?<![0-9.])[0-9]{10}(?:\.[0-9]{1,9})?(?![0-9.])|"
    r"(?<![0-9])[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]+)?(?:Z|[+-][0-9]{2}:?[0-9]{2})?"
)

DASH = Token("word", "", "-")
"""What stands for no value."""


@dataclass(frozen=True)
class Place:
    """Where a time stands in a line.

    Attributes:
        position: its first part.
        width: how many parts it goes over.
        before, after: expressions of what is around it and not of the time, such as a comma.
    """

    position: int
    width: int
    before: str = ""
    after: str = ""


@dataclass(frozen=True)
class Guess:
    """A pattern, what its groups hold in the lines that it matches, and whether one of them is a time."""

    pattern: str
    fields: dict[str, list[str]]
    matched: int
    timed: bool

    @property
    def takes_apart(self) -> bool:
        """Whether it says more than that a line is a message."""
        return not set(self.fields) <= {MESSAGE}


def tokens(line: str) -> list[Token]:
    """The parts of a line."""
    found: list[Token] = []
    for match in _TOKEN.finditer(line):
        form = next(name for name in ("quoted", "bracket", "sign", "word") if match[name] is not None)
        glued = bool(found) and not line[match.start() - 1].isspace()
        found.append(Token(form, (match["name"] or match["label"] or "")[:-1], match[form], glued))
    return found


def guess(lines: Sequence[str]) -> Guess:
    """A pattern that most lines match; where they have less in common, the rest of a line is its message."""
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
    before = r"\s*" if any(line[:1].isspace() for line in lines) else ""
    after = r"\s*" if whole and any(line[-1:].isspace() for line in lines) else ""
    pattern = before + "".join(parts) + after
    if any('\\"' in line for line in lines):
        pattern = pattern.replace(QUOTED, ESCAPED)
    form = re.compile(pattern)
    found = [match.groupdict() for match in map(form.fullmatch, lines) if match]
    fields = {name: [row[name] for row in found if row[name]] for name in form.groupindex}
    return Guess(pattern, fields, len(found), timed is not None)


Form = tuple[str, str, bool]
"""How a part is written, the name that it gives itself, and whether it is glued to the one before."""


def _shape(rows: Sequence[Sequence[Token]]) -> tuple[list[Form], Sequence[Sequence[Token]], bool]:
    """How the parts of most lines are written, the lines that are so, and whether these are whole lines.

    A dash alone stands for a part of any form, that has no value.
    """
    forms: list[Form] = []
    alike, least = rows, MIN_SHARE * len(rows)
    while sum(len(row) == len(forms) for row in alike) < least:
        at = len(forms)
        seen = Counter(row[at].shape for row in alike if len(row) > at and row[at] != DASH)
        form = seen.most_common(1)[0][0] if seen else DASH.shape
        kept = [row for row in alike if len(row) > at and (row[at] == DASH or row[at].shape == form)]
        if len(kept) < least:
            break
        forms.append(form)
        alike = kept
    else:
        return forms, [row for row in alike if len(row) == len(forms)], True
    while forms and sum(len(row) > len(forms) for row in alike) < least:
        forms.pop()
    alike = [row for row in alike if len(row) > len(forms)]
    return forms[: _before_message(alike, len(forms))], alike, False


def _before_message(rows: Sequence[Sequence[Token]], length: int) -> int:
    """How many parts stand before what a line says in words, of those that are alike: up to the first that
    ends in a colon or begins a sentence, or to the last dash that all lines have."""
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
    """The expression of each part, of those that are a time one, with what stands before it.

    Args:
        gap: the expression of the blanks between two parts.
        words: the expressions of a word, and of what stands between those of a time.
    """
    combined = len(forms) > len(SHAPE) and tuple(form for form, _, _ in forms[: len(SHAPE)]) == SHAPE
    parts: list[str] = []
    taken: list[str] = []
    at = 0
    while at < len(forms):
        part = [row[at] for row in rows]
        values = [token.text for token in part if token != DASH]
        form, label, glued = forms[at]
        here = timed if timed is not None and at == timed.position else None
        width = 1 if here is None else here.width
        end = ""
        if form == "word" and here is None and len(values) == len(part):
            end = _common_end(values)
            values = [text.removesuffix(end) for text in values]
        # Words that blanks make as wide as the longest: [INFO ].
        stripped = [text.rstrip(" ") for text in values]
        padded = form == "bracket" and stripped != values and not any(" " in text for text in stripped)
        values = stripped if padded else values
        name = label or name_of(values, at) if here is None else "time"
        if form == "bracket" and not label and values and all(map(str.isdecimal, values)):
            # LOG: [123], of Postgres and of others.
            name = "pid" if name == name_of(values, at) else name
        elif (
            timed is not None
            and at == timed.position + timed.width
            and name.startswith("field_")
            and at + 1 < len(forms)
        ):
            # Of syslog, where the process follows the host.
            behind = name_of([row[at + 1].text for row in rows], at + 1)
            name = "host" if behind == "process" else name
        if combined and at < len(COMBINED):
            name = COMBINED[at]
        before = "" if glued or not parts else gap
        sign = form in ("word", "sign") and bool(values) and _is_sign(values) and len(values) == len(part)
        if sign and not combined:
            parts.append(before + re.escape(values[0]))
        elif name == "request" and all(map(REQUEST.match, values)):
            taken += ["method", "path", "protocol"]
            parts.append(
                before
                + r'"(?:(?P<method>[A-Z]+) (?P<path>[^ "]+) (?P<protocol>HTTP/[0-9.]+)|(?P<request>[^"]*))"'
            )
        elif name == "process":
            names = identifier("process", taken), identifier("pid", taken)
            taken += names
            parts.append(before + rf"(?P<{names[0]}>[^ \[]+?)(?:\[(?P<{names[1]}>[0-9]+)\])?:")
        else:
            name = identifier(name, taken)
            taken.append(name)
            word = words[1].join([words[0]] * width)
            expression = _expression(form, label, name, word, len(values) < len(part), padded)
            if here is not None and (here.before or here.after):
                expression = _named(here.before, taken) + expression + _named(here.after, taken)
            parts.append(before + expression + end)
        at += width
    return parts


def _common_end(texts: Sequence[str]) -> str:
    """The comma or semicolon in which all parts end, which is none of their value."""
    ends = {text[-1:] for text in texts}
    return ends.pop() if ends in ({","}, {";"}) and all(len(text) > 1 for text in texts) else ""


def _is_sign(texts: Sequence[str]) -> bool:
    """Whether some parts are one sign, which says nothing; dashes may stand for letters that others have."""
    return len(set(texts)) == 1 and not any(map(str.isalnum, texts[0])) and set(texts[0]) != {"-"}


def _time(rows: Sequence[Sequence[Token]], length: int) -> Place | None:
    """Where a time stands; one without a year only where no other is."""
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
    """Return a time inside of a word, between what all lines have alike but for numbers behind it."""
    for at in range(length):
        texts = [row[at].text for row in rows if row[at].form == "word"]
        found = [(text, time) for text in texts if (time := _INSTANT.search(text)) is not None]
        if not found or len(found) < len(rows):
            continue
        befores = {text[: time.start()] for text, time in found}
        behind = {skeleton(text[time.end() :]) for text, time in found}
        if len(befores) > 1 or len(behind) > 1 or times_of([time[0] for _, time in found]) is None:
            continue
        first, *more = re.split("1+", behind.pop())
        if "x" in first + "".join(more):
            continue
        numbers = [SERIAL, *("[0-9]+" for _ in more[1:])]
        after = "".join(number + re.escape(text) for number, text in zip(numbers, more, strict=False))
        return Place(at, 1, re.escape(befores.pop()), re.escape(first) + after)
    return None


def _is_klog(texts: Sequence[str]) -> bool:
    """Whether texts are times such as 0506 10:00:00.123456, as they could be by chance."""
    found = partial_times_of(texts)
    return found is not None and found[0] == KLOG


def _stripped(texts: Sequence[str]) -> Iterator[tuple[str, list[str], str]]:
    """Yield texts without what may be around a time, and the expressions of that: `HEADS`, `TAILS`, and the
    signs that all of them begin with and end in, such as brackets, commas and colons."""
    for head, tail in product(HEADS, TAILS):
        form = re.compile(f"{head}(?P<inside>.*?){tail}")
        found = [match["inside"] for match in map(form.fullmatch, texts) if match]
        if len(found) < len(texts):
            continue
        heads = {text[: len(text) - len(text.lstrip(SIGNS))] for text in found}
        tails = {text[len(text.rstrip(SIGNS)) :] for text in found}
        before = heads.pop() if len(heads) == 1 else ""
        after = tails.pop() if len(tails) == 1 else ""
        if head or tail or before or after:
            inside = [text.removeprefix(before).removesuffix(after) for text in found]
            yield head + re.escape(before), inside, re.escape(after) + tail


def _named(around: str, taken: list[str]) -> str:
    """Return an expression beside a time, its groups by names that no other has."""
    for name in re.compile(around).groupindex:
        own = identifier(name, taken)
        taken.append(own)
        around = around.replace(f"(?P<{name}>", f"(?P<{own}>")
    return around


def name_of(texts: Sequence[str], at: int) -> str:
    """What a part of lines is called: by its form, else by its place."""
    for name, form in KNOWN.items():
        fitting = sum(form.fullmatch(text) is not None for text in texts)
        if fitting and (fitting == len(texts) or (name == "process" and all(t.endswith(":") for t in texts))):
            return name
    return f"field_{at + 1}"


def _expression(form: str, label: str, name: str, words: str, dashes: bool, padded: bool) -> str:
    before = f"{re.escape(label)}=" if label else ""
    if form in ("word", "sign"):
        return before + rf"(?P<{name}>{words})"
    around = r'"{}"' if form == "quoted" else r"\[{} *\]" if padded else r"\[{}\]"
    in_brackets = rf"(?P<{name}>[^\] ]*)" if padded else rf"(?P<{name}>[^\]]*)"
    inside = before + around.format(f"(?P<{name}>{QUOTED}" if form == "quoted" else in_brackets)
    return f"(?:{inside}|-)" if dashes else inside
