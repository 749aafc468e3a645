"""Find a time inside a value, as in `msg=audit(1681160198.534:3901):`, and a pattern that splits the
value."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from transom.cli.init.detected_format import MIN_SHARE
from transom.cli.init.infer_types import times_of
from transom.cli.init.job_readers import groups_of

TIMES = (
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]+)?(?:Z|[+-][0-9]{2}:?[0-9]{2})?",
    r"[0-9]{10}(?:\.[0-9]{1,9})?",
    r"[0-9]{13}",
)
"""Patterns of times inside other text."""
SERIAL = r":(?P<serial>[0-9]+)\):?"
"""The text after the time in an audit log: the number of the event, which several lines share."""
SAMPLE_VALUES = 200


def time_inside(fields: Mapping[str, Sequence[str]]) -> tuple[str, str, dict[str, list[str]]] | None:
    """Return a field whose values contain a time, a pattern for these, and the resulting fields.

    None if no field has a time at the same place in most values.
    """
    for field, texts in fields.items():
        for time in TIMES:
            pattern = _pattern(texts[:SAMPLE_VALUES], time)
            if pattern is None:
                continue
            groups, matched = groups_of(texts, pattern)
            if matched >= MIN_SHARE * len(texts) and times_of(groups["time"]) is not None:
                return field, pattern, {f"{field}.{name}": values for name, values in groups.items()}
    return None


def _pattern(texts: Sequence[str], time: str) -> str | None:
    """Return a pattern for values that begin alike up to a time."""
    form = re.compile(rf"(?<![0-9.]){time}(?![0-9])")
    matches = [(text, match) for text in texts if (match := form.search(text)) is not None]
    if not matches or len(matches) < MIN_SHARE * len(texts):
        return None
    ((start, number),) = Counter(text[: match.start()] for text, match in matches).most_common(1)
    if number < MIN_SHARE * len(texts):
        return None
    tails = [text[match.end() :] for text, match in matches]
    serial = sum(re.fullmatch(SERIAL, text) is not None for text in tails) >= MIN_SHARE * len(tails)
    return f"{re.escape(start)}(?P<time>{time}){SERIAL if serial else '.*' if any(tails) else ''}"
