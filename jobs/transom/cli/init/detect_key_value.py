"""Lines of pairs, `a=1 b="two words"`, and the words before them, among which a time may be."""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import product

from transom.cli.init.detected_format import MIN_SHARE, DetectedFormat, NearMiss
from transom.cli.init.infer_embedded_time import time_inside
from transom.cli.init.infer_regex import guess, name_of
from transom.cli.init.infer_types import partial_times_of, times_of

PAIR = re.compile(r'([^\s="]+)=("(?:[^"\\]|\\.)*"|[^\s"]*)')
SINGLE = re.compile(PAIR.pattern.replace('"', "'"))
"""The same, where single quotes are around values."""
LABELLED = re.compile(r"[A-Za-z_][\w.-]*:[^\t]*(?:\t[A-Za-z_][\w.-]*:[^\t]*)+")
MAX_WORDS = 8
"""Words at a line's beginning that are looked at."""
_PARTS = {
    "%b": "month",
    "%d": "day",
    "%a": "weekday",
    "%a,": "weekday",
    "%Y": "year",
    "%z": "offset",
    "%Z": "zone",
}
"""Names of a time's words; others hold a day or a time of day."""
_NOTE = "words between those of `lead` and the pairs are left out"


def pairs(lines: Sequence[str]) -> DetectedFormat | NearMiss:
    """Pairs, of which most of each line is made; the words before them as far as they are alike."""
    single = sum(line.count("='") for line in lines) > sum(line.count('="') for line in lines)
    quote, pair = ("'", SINGLE) if single else ('"', PAIR)
    rows = [pair.findall(line) for line in lines]
    most = [
        len(row) >= 3 and sum(len(name) + len(text) + 2 for name, text in row) > 0.6 * len(line)
        for row, line in zip(rows, lines, strict=True)
    ]
    if sum(most) < MIN_SHARE * len(lines):
        return NearMiss(sum(most))
    texts = [text for row in rows for _, text in row[:-1]]
    ends = Counter(text[-1:] for text in texts)
    between = next((sign for sign in ",;|" if ends[sign] > MIN_SHARE * len(texts)), "")
    fields: dict[str, list[str]] = {}
    for row in rows:
        for name, text in dict(reversed(row)).items():
            plain = text.removesuffix(between).strip(quote)
            fields.setdefault(name, []).extend([plain] if plain else [])
    first = [name for row in rows[:50] for name, _ in row]
    ordered = dict.fromkeys([*first, *fields])
    fields = {name: fields[name] for name in ordered}
    options: dict[str, object] = {"separator": between} if between else {}
    options |= {"quote": quote} if single else {}
    before = [_before(line, between, pair) for line in lines]
    time, lead = _lead(before, fields)
    if not time:
        inside = None if any(map(_holds_time, fields.values())) else time_inside(fields)
        if inside is not None:
            field, pattern, parts = inside
            options["embedded"] = {"field": field, "format": "regex", "pattern": pattern}
            return DetectedFormat(
                "kv", fields | parts, {}, options, notes=(f"{field} is taken apart by a pattern",)
            )
        if not any(map(_holds_time, fields.values())) and guess(lines).timed:
            return NearMiss(sum(most), "a time stands before the pairs in a form that is no word of its own")
        return DetectedFormat("kv", fields, {}, options)
    found = [words[: len(lead)] for words in before if len(words) >= len(lead)]
    leading = {name: [words[index] for words in found] for index, name in enumerate(lead)}
    more = any(len(words) > len(lead) for words in before)
    notes = (_NOTE,) if more else ()
    return DetectedFormat("kv", leading | fields, {}, options | {"lead": lead}, notes=notes, time=tuple(time))


def labelled(lines: Sequence[str]) -> DetectedFormat | NearMiss:
    """LTSV, tabs between pairs and a colon in each: `time:2024-05-06T10:00:00Z` and `host:web0`."""
    rows = [LABELLED.fullmatch(line) and [cell.partition(":") for cell in line.split("\t")] for line in lines]
    found = [row for row in rows if row]
    usual = Counter(row[0][0] for row in found).most_common(1)
    if len(found) < MIN_SHARE * len(lines) or usual[0][1] < MIN_SHARE * len(lines):
        return NearMiss(len(found))
    fields: dict[str, list[str]] = {}
    for row in found:
        for name, _, text in row:
            fields.setdefault(name, []).extend([text] if text else [])
    return DetectedFormat("kv", fields, {}, {"separator": "\t", "assign": ":"})


def _before(line: str, between: str, pair: re.Pattern[str]) -> list[str]:
    """The words before the first pair."""
    found = pair.search(line)
    text = line[: found.start()] if found is not None else ""
    if not between:
        return text.split()
    *words, rest = text.split(between)
    # What no separator parts from the first pair is of its name.
    return [] if rest.strip() else [word.strip() for word in words]


def _holds_time(texts: Sequence[str]) -> bool:
    return bool(texts) and (times_of(texts) is not None or partial_times_of(texts) is not None)


def _lead(before: Sequence[Sequence[str]], fields: dict[str, list[str]]) -> tuple[list[str], list[str]]:
    """The names of the words that make a time, and of all that lead; none where no time is before the pairs.

    Args:
        before: the words before the pairs, of each line.
        fields: of the pairs, whose names no word may have.
    """
    length = MAX_WORDS
    while length and sum(len(words) >= length for words in before) < MIN_SHARE * len(before):
        length -= 1
    rows = [words[:length] for words in before if len(words) >= length]
    names: list[str] = []

    def named(name: str) -> str:
        while name in fields or name in names:
            name = f"lead_{name}"
        names.append(name)
        return name

    for at, width in product(range(length), range(5, 0, -1)):
        if at + width > length:
            continue
        texts = [" ".join(words[at : at + width]) for words in rows]
        found, partial = times_of(texts), partial_times_of(texts)
        form = found.form if found is not None else partial[0] if partial is not None else ""
        parts = form.split(" ") if " " in form else ["date", "time"][-width:]
        if not form or len(parts) != width:
            continue
        before_time = [named(name_of([words[place] for words in rows], place)) for place in range(at)]
        time = [named(part if part in ("date", "time") else _part(part)) for part in parts]
        # Behind a time without a year syslog has a host and a process.
        known = ["host", "process"] if partial is not None and found is None else []
        behind = []
        for place in range(at + width, at + width + _alike([words[at + width :] for words in rows])):
            texts = [words[place] for words in rows]
            behind.append(named(known.pop(0) if known else name_of(texts, place)))
        return time, [*before_time, *time, *behind]
    return [], []


def _part(form: str) -> str:
    return _PARTS.get(form, "time" if "%H" in form or "%I" in form else "date")


def _alike(rows: Sequence[Sequence[str]]) -> int:
    """How many words are fields: up to one that ends in a colon, or before one with a bracket."""
    length = len(rows[0])
    for at in range(length):
        texts = [words[at] for words in rows]
        if any(text.startswith("[") for text in texts):
            return at
        if all(text.endswith(":") for text in texts):
            return at + 1
    return length
