"""Find a time inside the values of a field, such as `msg=audit(1681160198.534:3901):`."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product

from transom.cli.init.infer_types import partial_times_of, times_of
from transom.cli.init.log_format import MIN_SHARE, LogFormat, mostly, read_lines
from transom.formats.json.record_paths import AROUND

DATED = (
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]+)?(?:Z|[+-][0-9]{2}:?[0-9]{2})?"
)
NUMBERS = (r"[0-9]{10}(?:\.[0-9]{1,9})?", r"[0-9]{13}")
"""Patterns of times inside other text. A number alone may be anything, so it needs a `SERIAL` after it."""
SERIAL = r":(?P<serial>[0-9]+)\):?"
"""The text after the time in an audit log: the event's number; an event may have several lines."""
ONLY = "?: {} is taken apart by a pattern, as no other field has a time"
SAMPLE_VALUES = 200


def has_time(fields: Mapping[str, Sequence[str]]) -> bool:
    """Return whether the values of a field are times, or times of a day."""
    return any(times_of(texts) or partial_times_of(texts) for texts in fields.values() if texts)


def with_time_inside(log: LogFormat) -> LogFormat:
    """Return the log with the time inside the values of a field, which a pattern takes apart; unchanged if a
    field is a time, or none has a time inside."""
    inside = None if has_time(log.fields) or "embedded" in log.options else _time_inside(log.fields)
    if inside is None:
        return log
    field, pattern, parts = inside
    return replace(
        log,
        fields={**log.fields, **parts},
        options={**log.options, "embedded": {"field": field, "format": "regex", "pattern": pattern}},
        notes=(
            *log.notes,
            f"{field} is taken apart by a pattern" if SERIAL in pattern else ONLY.format(field),
        ),
    )


def _time_inside(fields: Mapping[str, Sequence[str]]) -> tuple[str, str, dict[str, list[str]]] | None:
    """Find a field whose values contain a time, as in `msg=audit(1681160198.534:3901):`.

    Returns:
        The field, a pattern for its values, and the resulting fields; None if no field has a time at the same
        place in most values.
    """
    plain = [
        field for field, texts in fields.items() if not field.startswith(AROUND) and not _has_json(texts)
    ]
    for time, field in product((DATED, *NUMBERS), plain):
        texts = fields[field]
        pattern = _pattern_around(texts[:SAMPLE_VALUES], time)
        if pattern is not None:
            groups, matched, _ = read_lines(texts, "regex", {"pattern": pattern})
            if matched >= MIN_SHARE * len(texts) and times_of(groups["time"]) is not None:
                return field, pattern, {f"{field}.{name}": values for name, values in groups.items()}
    return None


def _has_json(texts: Sequence[str]) -> bool:
    return any(re.match(r"[\[{][\[{\"]", text) for text in texts)


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
    if time in NUMBERS and not serial:
        return None
    return f"{re.escape(start)}(?P<time>{time}){SERIAL if serial else '.*' if any(tails) else ''}"
