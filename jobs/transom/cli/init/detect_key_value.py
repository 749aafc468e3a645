"""Detect lines of pairs, `a=1 b="two words"`, after words that may contain a time."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import product

from transom.cli.init.infer_regex import guess, name_of
from transom.cli.init.infer_types import partial_times_of, times_of
from transom.cli.init.log_format import MIN_SHARE, LogFormat, NearMiss, read_pairs
from transom.cli.init.time_inside import has_time, with_time_inside
from transom.spec.format_options import GROUP

PAIR = re.compile(r'([^\s="]+)=("(?:[^"\\]|\\.)*"|[^\s"]*)')
SINGLE = re.compile(PAIR.pattern.replace('"', "'"))
"""A pair with single quotes around its value."""
LABELLED = re.compile(r"[A-Za-z_][\w.-]*:[^\t]*(?:\t[A-Za-z_][\w.-]*:[^\t]*)+")
NEXT_PAIR = re.compile(r"(?<=[^\s,;|])([\s,;|]+)[^\s,;|=]+=")
PART = re.compile(r"(?:.*\s)?(?P<name>[^\s=]+)=(?P<text>.*)")
BETWEEN = (",", ";", "|")
"""Signs between pairs whose values may have blanks."""
INNER_PAIRS = re.compile(r"='[^\s'=]+=[^']*'")
"""A value in single quotes that has pairs of its own, as in audit logs."""
MAX_WORDS = 8
"""Maximum number of leading words of a line that are checked."""
_PARTS = {
    "date": "date", "time": "time", "%b": "month", "%d": "day", "%a": "weekday", "%a,": "weekday",
    "%Y": "year", "%z": "offset", "%Z": "zone",
}  # fmt: skip
"""Field names of the words of a time, by format; other words are a date or a time of day."""


def pairs(lines: Sequence[str]) -> LogFormat | NearMiss:
    """Detect lines of mostly pairs. Words before the pairs become fields if all lines have them."""
    singles = sum(line.count("='") - len(INNER_PAIRS.findall(line)) for line in lines)
    single = singles > sum(line.count('="') for line in lines)
    quote, pair = ("'", SINGLE) if single else ('"', PAIR)
    bare = [re.sub(rf"={quote}(?:[^{quote}\\]|\\.)*{quote}", _without_signs, line) for line in lines]
    between = _between(bare)
    rows = [_in_parts(line, between) if between else pair.findall(line) for line in bare]
    # An assign, a blank, and the sign between pairs.
    signs = 3 if between else 2
    matched = sum(
        len(row) >= 3 and sum(len(name) + len(text) + signs for name, text in row) > 0.6 * len(line)
        for row, line in zip(rows, lines, strict=True)
    )
    if matched < MIN_SHARE * len(lines):
        return NearMiss(matched)
    separators = between or _further_separators(bare)
    options: dict[str, object] = {"separator": separators} if separators else {}
    options |= {"quote": quote} if single else {}
    fields = read_pairs(lines, options)
    lead_words = [_lead_words(line, between, pair) for line in lines]
    time, lead = _lead(lead_words, fields)
    if time:
        heads = [words for words in lead_words if len(words) >= len(lead)]
        leading = {name: [words[index] for words in heads] for index, name in enumerate(lead)}
        has_more = any(len(words) > len(lead) for words in heads)
        notes = ("words between those of `lead` and the pairs are skipped",) if has_more else ()
        options["lead"] = lead
        return LogFormat("kv", leading | fields, {}, options, notes=notes, time=tuple(time))
    log = with_time_inside(LogFormat("kv", fields, {}, options))
    if not has_time(log.fields) and guess(lines)[1]:
        return NearMiss(matched, "the time before the pairs is not a separate word")
    return log


def _without_signs(quoted: re.Match[str]) -> str:
    """Return a quoted value of the same length without signs."""
    return f"={'x' * (len(quoted[0]) - 1)}"


def _between(lines: Sequence[str]) -> str:
    """Return the sign before almost every pair but the first of a line; empty if there is none."""
    before = [sign.strip() for line in lines for sign in NEXT_PAIR.findall(line)]
    return next((sign for sign in BETWEEN if before.count(sign) > MIN_SHARE * len(before)), "")


def _in_parts(line: str, between: str) -> list[tuple[str, str]]:
    """Return the pairs of a line by the sign between them."""
    parts = (PART.fullmatch(part.strip()) for part in line.split(between))
    return [(part["name"], part["text"]) for part in parts if part is not None]


def _further_separators(lines: Sequence[str]) -> str:
    """Return the separators of an audit log, which may have pairs inside of a value, and a second group of
    pairs; empty for another log."""
    present = {"'": any(map(INNER_PAIRS.search, lines)), GROUP: any(GROUP in line for line in lines)}
    return "".join([" \t", *(sign for sign in present if present[sign])]) if any(present.values()) else ""


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
