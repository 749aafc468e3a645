"""Detect lines of JSON: an object per line, of Zeek or others, or lists of records in each line."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from transom.cli.init.detect_carried_json import with_json
from transom.cli.init.detected_format import MIN_SHARE, SAMPLE_LINES, DetectedFormat, NearMiss, NotRead
from transom.cli.init.infer_time import is_time_name
from transom.cli.init.infer_types import kind_of
from transom.cli.init.job_readers import object_of, records_of
from transom.cli.init.json_fields import flat, leaves
from transom.cli.log_sample import JQ
from transom.formats.json.record_paths import AROUND, RECORDS, level_of
from transom.formats.record_format import FieldType

CONN = {"ts", "uid", "proto", "conn_state"}
"""Fields that together occur only in Zeek's log of connections."""
SAMPLE_OBJECTS = 200
"""The number of objects that are checked for times."""
MAX_AROUND = 20
"""Maximum number of values around a record that become columns."""
_ARRAY = re.compile(r"\s*\[\s*(\{\s*[\"}]|$)")
_PRETTY = re.compile(r'\s*("(?:[^"\\]|\\.)*"\s*:.*|[\]}{\[]+,?)\s*')
_ADVICE = f"transom reads an object a line. Make it so: {JQ}"


@dataclass
class _Listed:
    """A list of objects in records.

    Attributes:
        path: its path, in the form of the option `records`.
        objects: some of its objects.
        around: paths of values around the list.
        lines: the numbers of the lines with the list.
    """

    path: str
    objects: list[Mapping[str, Any]] = field(default_factory=list)
    around: dict[str, None] = field(default_factory=dict)
    lines: set[int] = field(default_factory=set)


def json_lines(lines: Sequence[str]) -> DetectedFormat | NearMiss:
    """Detect lines with an object each. The object with the time is the event: the line, or the objects of a
    list if more lines have such a list than a time of their own.

    Raises:
        NotRead: the lines are JSON of another shape: one value over several lines, or a list.
    """
    records = [record for record in map(object_of, lines) if record is not None]
    if len(records) < MIN_SHARE * len(lines):
        _refuse_others(lines, len(records))
        return NearMiss(len(records))
    fields, types = flat(records)
    if {name.replace(".", "_") for name in fields} >= CONN:
        return DetectedFormat("zeek", fields, types, {"variant": "json"}, "zeek/conn")
    timed = [listed for listed in _lists(records) if _timed(*flat(listed.objects[:SAMPLE_OBJECTS]))]
    if not timed or _timed(*flat(records[:SAMPLE_OBJECTS])) >= len(timed[0].lines):
        template = "?: the objects in {} have times, too; with the option `records` these are the events"
        notes = tuple(template.format(candidate.path) for candidate in timed[:1])
        return with_json(DetectedFormat("json", fields, types, notes=notes), _texts(types))
    listed = timed[0]
    around = [path for path in listed.around if _leads(path, listed.path)][:MAX_AROUND]
    fields, types = flat(records_of(lines, listed.path, around)[:SAMPLE_LINES])
    note = f"each line holds records in {listed.path}; a record is an event"
    return with_json(
        DetectedFormat("json", fields, types, {"records": listed.path}, notes=(note,)), _texts(types)
    )


def _leads(path: str, records: str) -> bool:
    """Return whether a column can use a path to a value around records."""
    try:
        level_of(path, records)
    except ValueError:
        return False
    return "|" not in path


def _texts(types: Mapping[str, FieldType]) -> list[str]:
    """Return the paths of texts in records."""
    return [path for path, kind in types.items() if kind == "string" and not path.startswith(AROUND)]


def _timed(fields: Mapping[str, Sequence[str]], types: Mapping[str, FieldType]) -> int:
    """Return how many objects have a field with a complete time; a number counts only if its name is that of
    a time."""
    times = (
        len(texts)
        for path, texts in fields.items()
        if texts and types.get(path) != "boolean"
        if kind_of(texts[:SAMPLE_OBJECTS], counted=not is_time_name(path)).type == "timestamp"
    )
    return max(times, default=0)


def _lists(records: Sequence[Mapping[str, Any]]) -> list[_Listed]:
    """Return the lists of objects in records, also nested ones, the outer ones first."""
    collected: dict[str, _Listed] = {}
    for number, record in enumerate(records[:SAMPLE_OBJECTS]):
        _collect(record, "", (), collected, number)
    return sorted(collected.values(), key=lambda listed: listed.path.count("[]"))


def _collect(
    record: Mapping[str, Any], above: str, around: Sequence[str], collected: dict[str, _Listed], line: int
) -> None:
    """Collect the lists of objects in an object.

    Args:
        above: the path of the object, ending in a dot where it is in a list.
        around: paths of values around the object.
        line: the number of the line.
    """
    values = dict(leaves(record))
    lists = {path: value for path, value in values.items() if _is_list(path, value)}
    for path, value in lists.items():
        paths = [*around, *(f"{AROUND}{above}{sibling}" for sibling in values if sibling != path)]
        listed = collected.setdefault(f"{above}{path}[]", _Listed(f"{above}{path}[]"))
        listed.around |= dict.fromkeys(paths)
        listed.lines.add(line)
        if len(listed.objects) < SAMPLE_OBJECTS:
            listed.objects += value
        for item in value[:SAMPLE_OBJECTS]:
            _collect(item, f"{listed.path}.", paths, collected, line)


def _is_list(path: str, value: Any) -> bool:
    """Return whether a value is a list of objects at a path that is valid in an option."""
    is_objects = isinstance(value, list) and bool(value) and all(isinstance(item, dict) for item in value)
    return is_objects and RECORDS.fullmatch(f"{path}[]") is not None


def _refuse_others(lines: Sequence[str], objects: int) -> None:
    if _ARRAY.match("\n".join(lines[:3])[:1000]):
        raise NotRead(f"is one list of JSON, `[{{...}}, ...]`; {_ADVICE.format('.[]')}")
    begins = lines[0].lstrip()[:1] == "{" and object_of(lines[0]) is None
    if begins and objects + sum(_PRETTY.fullmatch(line) is not None for line in lines) >= MIN_SHARE * len(
        lines
    ):
        raise NotRead(f"holds values of JSON that go over several lines; {_ADVICE.format('.')}")
