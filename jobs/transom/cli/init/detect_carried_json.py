"""Detect JSON in the text of a log: container lines, syslog and others with words before an object."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from transom.cli.init.detected_format import MIN_SHARE, DetectedFormat, NearMiss
from transom.cli.init.infer_regex import MESSAGE, guess
from transom.cli.init.job_readers import groups_of, object_of
from transom.cli.init.json_fields import flat
from transom.formats.record_format import FieldType

HALF = 0.5
"""The minimum share of JSON texts for which its fields become columns: logs mix both kinds."""
CONTAINER = rf"(?P<time>[^ ]+) (?P<stream>stdout|stderr) (?P<tag>[FP](?::[^ ]*)?) (?P<{MESSAGE}>.*)"
_TAIL = re.compile(r"(?:^|(?<=\s))[^\s0-9]+$")
_CONTAINER_NOTE = "a container's log; a message that is cut in parts, with the tag P, stays in parts"
_NOTE = "JSON in the lines' text: its fields are columns"
TRIES = 3
"""The number of a line's brackets that are tried as the beginning of an object."""


def container(lines: Sequence[str]) -> DetectedFormat | NearMiss:
    """Detect lines of a container runtime: time, stream, tag and message, which may be JSON."""
    fields, matched = groups_of(lines, CONTAINER)
    if matched < MIN_SHARE * len(lines):
        return NearMiss(matched)
    log = DetectedFormat("regex", fields, {}, {"pattern": CONTAINER}, notes=(_CONTAINER_NOTE,))
    return with_json(log, [MESSAGE])


def carried(lines: Sequence[str]) -> DetectedFormat | NearMiss:
    """Detect lines that end in a JSON object after words of one form; the format is a pattern."""
    heads = [head for head in map(_head, lines) if head is not None]
    if len(heads) < HALF * len(lines) or not any(map(str.strip, heads)):
        return NearMiss(len(heads))
    tails = [match[0] if (match := _TAIL.search(head.rstrip())) else "" for head in heads]
    # Words such as `@cee:` or `data=` before each object belong to no field.
    tail = tails[0] if set(tails) == {tails[0]} and tails[0][-1:] in tuple(":=,") else ""
    leads = [head.rstrip().removesuffix(tail).rstrip() for head in heads]
    sign = rf"(?:{re.escape(tail)} *)?" if tail else ""
    if not any(leads):
        return _by_pattern(lines, f"{sign}(?P<{MESSAGE}>.*)", MESSAGE)
    lead_pattern = guess(leads).pattern
    message_group = f"(?P<{MESSAGE}>.*)"
    if lead_pattern.endswith(message_group):
        # The words before the object.
        pattern = rf"{lead_pattern.removesuffix(message_group)}(?P<{MESSAGE}>[^{{]*?) *{sign}(?P<json>\{{.*)?"
        return _by_pattern(lines, pattern, "json")
    return _by_pattern(lines, f"{lead_pattern} *{sign}(?P<{MESSAGE}>.*)", MESSAGE)


def with_json(log: DetectedFormat, paths: Sequence[str]) -> DetectedFormat:
    """Return a log with the fields of the JSON in one of its texts; unchanged if there is none.

    Args:
        paths: the fields that may be JSON.
    """
    objects_of = {path: _objects(log.fields.get(path, ())) for path in paths if "|" not in path}
    path, objects = max(objects_of.items(), key=lambda entry: len(entry[1]), default=("", []))
    if not objects or len(objects) < HALF * len(log.fields[path]):
        return log
    fields, types = flat(objects)
    below: dict[str, Sequence[str]] = {f"{path}.{name}": texts for name, texts in fields.items()}
    inner_types: Mapping[str, FieldType] = {f"{path}.{name}": kind for name, kind in types.items()}
    options = {**log.options, "embedded": {"field": path, "format": "json"}}
    return DetectedFormat(
        log.format, {**log.fields, **below}, {**log.types, **inner_types}, options, log.preset,
        (*log.notes, f"{path} is JSON, its fields are {path}.NAME"), log.utc, log.time,
    )  # fmt: skip


def _by_pattern(lines: Sequence[str], pattern: str, path: str) -> DetectedFormat | NearMiss:
    fields, matched = groups_of(lines, pattern)
    if matched < MIN_SHARE * len(lines):
        return NearMiss(matched)
    nonempty = {name: texts for name, texts in fields.items() if texts}
    return with_json(DetectedFormat("regex", nonempty, {}, {"pattern": pattern}, notes=(_NOTE,)), [path])


def _objects(texts: Sequence[str]) -> list[dict[str, Any]]:
    return [record for record in map(object_of, texts) if record]


def _head(line: str) -> str | None:
    """Return the text before the object at the end of a line; None if there is no object."""
    at = -1
    for _ in range(TRIES):
        at = line.find("{", at + 1)
        if at < 0 or not line.rstrip().endswith("}"):
            return None
        if object_of(line[at:]):
            return line[:at]
    return None
