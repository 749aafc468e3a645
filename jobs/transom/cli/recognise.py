"""What kind of log some lines are: the first of the known forms that most of them have."""

from collections.abc import Callable, Mapping, Sequence

from transom.cli.cef_logs import cef
from transom.cli.delimited_logs import delimited, w3c, zeek
from transom.cli.json_logs import json_lines
from transom.cli.line_pattern import guess
from transom.cli.log import LOOKED_AT, Log, Near
from transom.cli.plain_logs import apache, own_form, pairs, strace, syscalls
from transom.cli.yaml_text import scalar

FORMS: Mapping[str, Callable[[Sequence[str]], Log | Near]] = {
    "Zeek": zeek, "W3C extended": w3c, "JSON": json_lines, "CEF": cef, "Apache": apache,
    "system calls": syscalls, "strace": strace, "key=value": pairs, "CSV": delimited, "a pattern": own_form,
}  # fmt: skip
"""The forms, the narrower before those that take more."""


class Unknown(ValueError):
    """Lines of no form that is known: what was tried, what came nearest, and how to go on by hand."""


def recognise(lines: Sequence[str]) -> Log:
    """The first of the known forms that most lines have.

    Raises:
        Unknown: they have none.
        NotRead: they have one that no format reads.
    """
    lines = lines[:LOOKED_AT]
    near: dict[str, int] = {}
    for name, form in FORMS.items():
        found = form(lines)
        if isinstance(found, Log):
            return found
        near[name] = found.lines
    name, taken = max(near.items(), key=lambda one: one[1])
    nearest = f"{name}, {taken} of {len(lines)} lines" if taken else "none takes a line"
    first = lines[0]
    pattern = guess([first]).pattern
    raise Unknown(
        f"is of no form that is known. Tried: {', '.join(near)}; nearest: {nearest}. If its lines have a "
        "form of their own, write `format: regex`, with a pattern that takes a whole line and names its "
        f"fields. This one takes the first line:\n  {first[:300]}\n"
        f"  options: {{pattern: {scalar(pattern[:1000])}}}"
    )
