"""Detect lines of pairs, `a=1 b="two words"`, and the words before them, which may contain a time."""

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
"""The same with single quotes around values."""
LABELLED = re.compile(r"[A-Za-z_][\w.-]*:[^\t]*(?:\t[A-Za-z_][\w.-]*:[^\t]*)+")
MAX_WORDS = 8
"""Maximum number of words at a line's beginning that are checked."""
_PARTS = {
    "%b": "month",
    "%d": "day",
    "%a": "weekday",
    "%a,": "weekday",
    "%Y": "year",
    "%z": "offset",
    "%Z": "zone",
}
"""Names of a time's words; other words are a date or a time of day."""
_NOTE = "words between those of `lead` and the pairs are left out"


def pairs(lines: Sequence[str]) -> DetectedFormat | NearMiss:
    """Detect lines that mainly consist of pairs; words before them become fields as far as they are alike."""
    single = sum(line.count("='") for line in lines) > sum(line.count('="') for line in lines)
    quote, pair = ("'", SINGLE) if single else ('"', PAIR)
    rows = [pair.findall(line) for line in lines]
    mostly_pairs = [
        len(row) >= 3 and sum(len(name) + len(text) + 2 for name, text in row) > 0.6 * len(line)
        for row, line in zip(rows, lines, strict=True)
    ]
    if sum(mostly_pairs) < MIN_SHARE * len(lines):
        return NearMiss(sum(mostly_pairs))
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
    lead_words = [_lead_words(line, between, pair) for line in lines]
    time, lead = _lead(lead_words, fields)
    if not time:
        inside = None if any(map(_holds_time, fields.values())) else time_inside(fields)
        if inside is not None:
            field, pattern, parts = inside
            options["embedded"] = {"field": field, "format": "regex", "pattern": pattern}
            return DetectedFormat(
                "kv", fields | parts, {}, options, notes=(f"{field} is taken apart by a pattern",)
            )
        if not any(map(_holds_time, fields.values())) and guess(lines).timed:
            return NearMiss(
                sum(mostly_pairs), "a time stands before the pairs in a form that is no word of its own"
            )
        return DetectedFormat("kv", fields, {}, options)
    long_enough = [words[: len(lead)] for words in lead_words if len(words) >= len(lead)]
    leading = {name: [words[index] for words in long_enough] for index, name in enumerate(lead)}
    has_more = any(len(words) > len(lead) for words in lead_words)
    notes = (_NOTE,) if has_more else ()
    return DetectedFormat("kv", leading | fields, {}, options | {"lead": lead}, notes=notes, time=tuple(time))


def labelled(lines: Sequence[str]) -> DetectedFormat | NearMiss:
    """Detect LTSV, with tabs between pairs and a colon in each: `time:2024-05-06T10:00:00Z` and
    `host:web0`."""
    rows = [LABELLED.fullmatch(line) and [cell.partition(":") for cell in line.split("\t")] for line in lines]
    parsed = [row for row in rows if row]
    usual = Counter(row[0][0] for row in parsed).most_common(1)
    if len(parsed) < MIN_SHARE * len(lines) or usual[0][1] < MIN_SHARE * len(lines):
        return NearMiss(len(parsed))
    fields: dict[str, list[str]] = {}
    for row in parsed:
        for name, _, text in row:
            fields.setdefault(name, []).extend([text] if text else [])
    return DetectedFormat("kv", fields, {}, {"separator": "\t", "assign": ":"})


def _lead_words(line: str, between: str, pair: re.Pattern[str]) -> list[str]:
    """Return the words before the first pair."""
    match = pair.search(line)
    text = line[: match.start()] if match is not None else ""
    if not between:
        return text.split()
    *words, rest = text.split(between)
    # Text without a separator before the first pair belongs to its name.
    return [] if rest.strip() else [word.strip() for word in words]


def _holds_time(texts: Sequence[str]) -> bool:
    return bool(texts) and (times_of(texts) is not None or partial_times_of(texts) is not None)


def _lead(lead_words: Sequence[Sequence[str]], fields: dict[str, list[str]]) -> tuple[list[str], list[str]]:
    """Return the names of the words of the time, and of all leading words; empty if no time is before the
    pairs.

    Args:
        lead_words: the words before the pairs of each line.
        fields: the fields of the pairs, whose names are reserved.
    """
    length = MAX_WORDS
    while length and sum(len(words) >= length for words in lead_words) < MIN_SHARE * len(lead_words):
        length -= 1
    rows = [words[:length] for words in lead_words if len(words) >= length]
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
        complete, partial = times_of(texts), partial_times_of(texts)
        form = complete.form if complete is not None else partial[0] if partial is not None else ""
        parts = form.split(" ") if " " in form else ["date", "time"][-width:]
        if not form or len(parts) != width:
            continue
        names_before = [named(name_of([words[place] for words in rows], place)) for place in range(at)]
        time = [named(part if part in ("date", "time") else _part(part)) for part in parts]
        # After a time without a year syslog has a host and a process.
        known = ["host", "process"] if partial is not None and complete is None else []
        names_after = []
        for place in range(at + width, at + width + _count_alike([words[at + width :] for words in rows])):
            texts = [words[place] for words in rows]
            names_after.append(named(known.pop(0) if known else name_of(texts, place)))
        return time, [*names_before, *time, *names_after]
    return [], []


def _part(form: str) -> str:
    return _PARTS.get(form, "time" if "%H" in form or "%I" in form else "date")


def _count_alike(rows: Sequence[Sequence[str]]) -> int:
    """Return how many words are fields: up to one that ends in a colon, or before one that begins with a
    bracket."""
    length = len(rows[0])
    for at in range(length):
        texts = [words[at] for words in rows]
        if any(text.startswith("[") for text in texts):
            return at
        if all(text.endswith(":") for text in texts):
            return at + 1
    return length
