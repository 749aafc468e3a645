"""Detect the format of log lines: the first known form that most of them have."""

import re
from collections.abc import Callable, Mapping, Sequence

from transom.cli.init.detect_delimited import delimited, w3c, zeek
from transom.cli.init.detect_json import carried, container, json_lines, with_json
from transom.cli.init.detect_key_value import labelled, pairs
from transom.cli.init.detect_plain import apache, cef, error_log, own_form, strace, syscalls
from transom.cli.init.infer_regex import guess
from transom.cli.init.log_format import MIN_SHARE, SAMPLE_LINES, LogFormat, NearMiss
from transom.cli.init.render_yaml import comment, scalar
from transom.cli.init.time_inside import with_time_inside

FORMS: Mapping[str, Callable[[Sequence[str]], LogFormat | NearMiss]] = {
    "Zeek": zeek, "W3C extended": w3c, "JSON": json_lines, "a container's log": container, "CEF": cef,
    "Apache": apache, "a web server's error log": error_log, "JSON in a text": carried,
    "LTSV": labelled, "system calls": syscalls, "strace": strace, "key=value": pairs, "CSV": delimited,
    "a pattern": own_form,
}  # fmt: skip
"""Detectors by name, specific forms before general ones."""

EMBEDDING = ("csv", "kv", "regex")
"""Formats in which one field may be JSON."""
LONGEST = 1000
"""Maximum number of characters of a shown pattern."""


class Unknown(ValueError):
    """Lines have no known form. The message has the tried forms, the nearest one, and how to continue."""


def recognise(lines: Sequence[str]) -> LogFormat:
    """Return the first known form that most lines have.

    Raises:
        Unknown: there is no such form.
        NotRead: the form is known, but no format reads it.
    """
    lines = lines[:SAMPLE_LINES]
    near: dict[str, NearMiss] = {}
    for name, form in FORMS.items():
        detected = form(lines)
        if isinstance(detected, NearMiss):
            near[name] = detected
        elif detected.preset or "embedded" in detected.options:
            return detected
        elif detected.format in EMBEDDING:
            return with_time_inside(with_json(detected, detected.fields))
        else:
            return with_time_inside(detected) if detected.format == "json" else detected
    name, miss = max(near.items(), key=lambda entry: entry[1].lines)
    nearest = f"{name}, {miss.lines} of {len(lines)} lines" if miss.lines else "none takes a line"
    why = f", but {miss.why}" if miss.why and miss.lines >= MIN_SHARE * len(lines) else ""
    raise Unknown(
        f"has an unknown form. Tried: {', '.join(near)}; nearest: {nearest}{why}. If its lines have "
        "a form of their own, write `format: regex`, with a pattern that takes a whole line and names its "
        f"fields.{_first_pattern(lines[0])}"
    )


def _first_pattern(line: str) -> str:
    """Return text with a pattern of the first line; with the line alone if the pattern is too long."""
    pattern, _ = guess([line])
    if len(pattern) > LONGEST or re.fullmatch(pattern, line) is None:
        return f" The first line:\n  {comment(line)[:300]}"
    return f" This one takes the first line:\n  {line[:300]}\n  options: {{pattern: {scalar(pattern)}}}"
