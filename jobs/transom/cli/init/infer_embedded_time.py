"""A time inside a value, as in `msg=audit(1681160198.534:3901):`, by a pattern that takes the value apart."""

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
"""How a time is written that other letters surround."""
SERIAL = r":(?P<serial>[0-9]+)\):?"
"""What follows in an audit log: the number of the event, which several lines share."""
SAMPLE_VALUES = 200


def time_inside(fields: Mapping[str, Sequence[str]]) -> tuple[str, str, dict[str, list[str]]] | None:
    """Return a field whose values have a time in them, a pattern for these, and the fields that it makes.

    None where no field has one at the same place in most values.
    """
    for field, texts in fields.items():
        for time in TIMES:
            pattern = _pattern(texts[:SAMPLE_VALUES], time)
            if pattern is None:
                continue
            found, matched = groups_of(texts, pattern)
            if matched >= MIN_SHARE * len(texts) and times_of(found["time"]) is not None:
                return field, pattern, {f"{field}.{name}": values for name, values in found.items()}
    return None


def _pattern(texts: Sequence[str], time: str) -> str | None:
    """A pattern for values that begin alike up to a time."""
    form = re.compile(rf"(?<![0-9.]){time}(?![0-9])")
    found = [(text, match) for text in texts if (match := form.search(text)) is not None]
    if not found or len(found) < MIN_SHARE * len(texts):
        return None
    ((start, number),) = Counter(text[: match.start()] for text, match in found).most_common(1)
    if number < MIN_SHARE * len(texts):
        return None
    behind = [text[match.end() :] for text, match in found]
    serial = sum(re.fullmatch(SERIAL, text) is not None for text in behind) >= MIN_SHARE * len(behind)
    return f"{re.escape(start)}(?P<time>{time}){SERIAL if serial else '.*' if any(behind) else ''}"
