"""What kind of log some lines are: the first of the known forms that most of them have."""

import re
from collections.abc import Callable, Mapping, Sequence

from transom.cli.init.detect_carried_json import carried, container, with_json
from transom.cli.init.detect_cef import cef
from transom.cli.init.detect_delimited import delimited, w3c, zeek
from transom.cli.init.detect_error_log import error_log
from transom.cli.init.detect_json import json_lines
from transom.cli.init.detect_key_value import labelled, pairs
from transom.cli.init.detect_plain import apache, own_form, strace, syscalls
from transom.cli.init.detected_format import MIN_SHARE, SAMPLE_LINES, DetectedFormat, NearMiss
from transom.cli.init.infer_regex import guess
from transom.cli.init.render_yaml import comment, scalar

FORMS: Mapping[str, Callable[[Sequence[str]], DetectedFormat | NearMiss]] = {
    "Zeek": zeek, "W3C extended": w3c, "JSON": json_lines, "a container's log": container, "CEF": cef,
    "Apache": apache, "a web server's error log": error_log, "JSON in a text": carried,
    "LTSV": labelled, "system calls": syscalls, "strace": strace, "key=value": pairs, "CSV": delimited,
    "a pattern": own_form,
}  # fmt: skip
"""The forms, the narrower before those that take more."""

EMBEDDING = ("csv", "kv", "regex")
"""Formats one of whose fields may be JSON."""
LONGEST = 1000
"""Characters of a pattern that is shown."""


class Unknown(ValueError):
    """Lines of no form that is known: what was tried, what came nearest, and how to go on by hand."""


def recognise(lines: Sequence[str]) -> DetectedFormat:
    """The first of the known forms that most lines have.

    Raises:
        Unknown: they have none.
        NotRead: they have one that no format reads.
    """
    lines = lines[:SAMPLE_LINES]
    near: dict[str, NearMiss] = {}
    for name, form in FORMS.items():
        found = form(lines)
        if isinstance(found, DetectedFormat):
            may = found.preset is None and found.format in EMBEDDING and "embedded" not in found.options
            return with_json(found, list(found.fields)) if may else found
        near[name] = found
    name, found = max(near.items(), key=lambda one: one[1].lines)
    nearest = f"{name}, {found.lines} of {len(lines)} lines" if found.lines else "none takes a line"
    why = f", but {found.why}" if found.why and found.lines >= MIN_SHARE * len(lines) else ""
    raise Unknown(
        f"is of no form that is known. Tried: {', '.join(near)}; nearest: {nearest}{why}. If its lines have "
        "a form of their own, write `format: regex`, with a pattern that takes a whole line and names its "
        f"fields.{_first_pattern(lines[0])}"
    )


def _first_pattern(line: str) -> str:
    """A pattern for the first line to go on with, where there is one of a length that a person reads."""
    pattern = guess([line]).pattern
    if len(pattern) > LONGEST or re.fullmatch(pattern, line) is None:
        return f" The first line:\n  {comment(line)[:300]}"
    shown = f"{line[:300]}\n  options: {{pattern: {scalar(pattern)}}}"
    return f" This one takes the first line:\n  {shown}"
