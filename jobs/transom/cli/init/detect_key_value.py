"""Detect lines of pairs, `a=1 b="two words"`, after words that may contain a time."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import product

from transom.cli.init.infer_regex import guess, name_of
from transom.cli.init.infer_types import partial_times_of, times_of
from transom.cli.init.log_format import MIN_SHARE, LogFormat, NearMiss, mostly, read_lines, read_pairs

PAIR = re.compile(r'([^\s="]+)=("(?:[^"\\]|\\.)*"|[^\s"]*)')
SINGLE = re.compile(PAIR.pattern.replace('"', "'"))
"""A pair with single quotes around its value."""
LABELLED = re.compile(r"[A-Za-z_][\w.-]*:[^\t]*(?:\t[A-Za-z_][\w.-]*:[^\t]*)+")
MAX_WORDS = 8
"""Maximum number of leading words of a line that are checked."""
TIMES = (
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]+)?(?:Z|[+-][0-9]{2}:?[0-9]{2})?",
    r"[0-9]{10}(?:\.[0-9]{1,9})?",
    r"[0-9]{13}",
)
"""Patterns of times inside other text."""
SERIAL = r":(?P<serial>[0-9]+)\):?"
"""The text after the time in an audit log: the event's number; an event may have several lines."""
SAMPLE_VALUES = 200
_PARTS = {
    "date": "date", "time": "time", "%b": "month", "%d": "day", "%a": "weekday", "%a,": "weekday",
    "%Y": "year", "%z": "offset", "%Z": "zone",
}  # fmt: skip
"""Field names of the words of a time, by format; other words are a date or a time of day."""


def pairs(lines: Sequence[str]) -> LogFormat | NearMiss:
    """Detect lines of mostly pairs. Words before the pairs become fields if all lines have them."""
    single = sum(line.count("='") for line in lines) > sum(line.count('="') for line in lines)
    quote, pair = ("'", SINGLE) if single else ('"', PAIR)
    rows = [pair.findall(line) for line in lines]
    matched = sum(
        len(row) >= 3 and sum(len(name) + len(text) + 2 for name, text in row) > 0.6 * len(line)
        for row, line in zip(rows, lines, strict=True)
    )
    if matched < MIN_SHARE * len(lines):
        return NearMiss(matched)
    texts = [text for row in rows for _, text in row[:-1]]
    ends = Counter(text[-1:] for text in texts)
    between = next((sign for sign in ",;|" if ends[sign] > MIN_SHARE * len(texts)), "")
    options: dict[str, object] = {"separator": between} if between else {}
    options |= {"quote": quote} if single else {}
    fields = read_pairs(lines, options)
    lead_words = [_lead_words(line, between, pair) for line in lines]
    time, lead = _lead(lead_words, fields)
    if time:
        rows = [words for words in lead_words if len(words) >= len(lead)]
        leading = {name: [words[index] for words in rows] for index, name in enumerate(lead)}
        has_more = any(len(words) > len(lead) for words in rows)
        notes = ("words between those of `lead` and the pairs are skipped",) if has_more else ()
        options["lead"] = lead
        return LogFormat("kv", leading | fields, {}, options, notes=notes, time=tuple(time))
    if not any(times_of(texts) or partial_times_of(texts) for texts in fields.values() if texts):
        inside = _time_inside(fields)
        if inside is not None:
            field, pattern, parts = inside
            options["embedded"] = {"field": field, "format": "regex", "pattern": pattern}
            note = f"{field} is taken apart by a pattern"
            return LogFormat("kv", fields | parts, {}, options, notes=(note,))
        if guess(lines)[1]:
            return NearMiss(matched, "the time before the pairs is not a separate word")
    return LogFormat("kv", fields, {}, options)


def labelled(lines: Sequence[str]) -> LogFormat | NearMiss:
    """Detect LTSV: pairs such as `host:web0`, with tabs between them."""
    rows = list(filter(LABELLED.fullmatch, lines))
    usual = Counter(row.partition(":")[0] for row in rows).most_common(1)
    if len(rows) < MIN_SHARE * len(lines) or usual[0][1] < MIN_SHARE * len(lines):
        return NearMiss(len(rows))
    options = {"separator": "\t", "assign": ":"}
    return LogFormat("kv", read_pairs(lines, options), {}, options)


def _lead_words(line: str, between: str, pair: re.Pattern[str]) -> list[str]:
    """Return the words before the first pair."""
    match = pair.search(line)
    text = line[: match.start()] if match is not None else ""
    if not between:
        return text.split()
    *words, rest = text.split(between)
    # Text directly before the first pair belongs to its name.
    return [] if rest.strip() else [word.strip() for word in words]


def _lead(lead_words: Sequence[Sequence[str]], fields: Mapping[str, object]) -> tuple[list[str], list[str]]:
    """Return the names of the time's words, and of all leading words; both empty without a leading time.

    Args:
        lead_words: the words before the pairs of each line.
        fields: the fields of the pairs, whose names are reserved.
    """
    lengths = list(map(len, lead_words))
    enough = (n for n in range(MAX_WORDS, 0, -1) if sum(m >= n for m in lengths) >= MIN_SHARE * len(lengths))
    length = next(enough, 0)
    rows = [words[:length] for words in lead_words if len(words) >= length]
    names: list[str] = []

    def named(name: str) -> str:
        while name in fields or name in names:
            name = f"lead_{name}"
        names.append(name)
        return name

    for at, width in product(range(length), range(5, 0, -1)):
        end = at + width
        if end > length:
            continue
        texts = [" ".join(words[at:end]) for words in rows]
        complete, partial = times_of(texts), partial_times_of(texts)
        form = complete.form if complete is not None else partial[0] if partial is not None else ""
        parts = form.split(" ") if " " in form else ["date", "time"][-width:]
        if not form or len(parts) != width:
            continue
        for place in range(at):
            named(name_of([words[place] for words in rows], place))
        time = [named(_PARTS.get(p) or ("time" if "%H" in p or "%I" in p else "date")) for p in parts]
        # In syslog, a host and a process follow a time without a year.
        known = ["host", "process"] if partial is not None and complete is None else []
        for place in range(end, end + _count_alike([words[end:] for words in rows])):
            named(known.pop(0) if known else name_of([words[place] for words in rows], place))
        return time, names
    return [], []


def _count_alike(rows: Sequence[Sequence[str]]) -> int:
    """Count the leading words that are fields: up to one that ends in a colon, or before a bracket."""
    for at, texts in enumerate(zip(*rows, strict=True)):
        if any(text.startswith("[") for text in texts):
            return at
        if all(text.endswith(":") for text in texts):
            return at + 1
    return len(rows[0])


def _time_inside(fields: Mapping[str, Sequence[str]]) -> tuple[str, str, dict[str, list[str]]] | None:
    """Find a field whose values contain a time, as in `msg=audit(1681160198.534:3901):`.

    Returns:
        The field, a pattern for its values, and the resulting fields; None if no field has a time at the same
        place in most values.
    """
    for (field, texts), time in product(fields.items(), TIMES):
        pattern = _pattern_around(texts[:SAMPLE_VALUES], time)
        if pattern is not None:
            groups, matched, _ = read_lines(texts, "regex", {"pattern": pattern})
            if matched >= MIN_SHARE * len(texts) and times_of(groups["time"]) is not None:
                return field, pattern, {f"{field}.{name}": values for name, values in groups.items()}
    return None


def _pattern_around(texts: Sequence[str], time: str) -> str | None:
    """Return a pattern for values with the same text before a time; None if most differ."""
    form = re.compile(rf"(?<![0-9.]){time}(?![0-9])")
    matches = [match for match in map(form.search, texts) if match is not None]
    if not matches or len(matches) < MIN_SHARE * len(texts):
        return None
    ((start, number),) = Counter(match.string[: match.start()] for match in matches).most_common(1)
    if number < MIN_SHARE * len(texts):
        return None
    tails = [match.string[match.end() :] for match in matches]
    serial = mostly(re.fullmatch(SERIAL, text) is not None for text in tails)
    return f"{re.escape(start)}(?P<time>{time}){SERIAL if serial else '.*' if any(tails) else ''}"
