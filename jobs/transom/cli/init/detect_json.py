"""Detect JSON: an object per line, of Zeek or others, lists of records in each line, or JSON in a text."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from transom.cli.init.infer_path import identifier
from transom.cli.init.infer_regex import MESSAGE, guess
from transom.cli.init.infer_time import is_time_name
from transom.cli.init.infer_types import NO_FIGURE, kind_of
from transom.cli.init.log_format import MIN_SHARE, SAMPLE_LINES, LogFormat, NearMiss, NotRead, by_pattern
from transom.cli.log_sample import JQ
from transom.formats.json.lines import Raw, json_text, parse_json
from transom.formats.json.record_paths import AROUND, RECORDS, level_of
from transom.formats.json.records import explode_records
from transom.formats.lines import Text
from transom.formats.record_format import FieldType
from transom.formats.rejections import Rejections

CONN = {"ts", "uid", "proto", "conn_state"}
"""Fields that only Zeek's connection log has together."""
SAMPLE_OBJECTS = 200
"""Maximum number of objects that are checked for times."""
MAX_AROUND = 20
"""Maximum number of values around a record that become columns."""
HALF = 0.5
"""Minimum share of texts that are JSON for its fields to become columns; the others may be plain text."""
CONTAINER = rf"(?P<time>[^ ]+) (?P<stream>stdout|stderr) (?P<tag>[FP](?::[^ ]*)?) (?P<{MESSAGE}>.*)"
BRACKETS = 3
"""Number of opening brackets of a line that are tried as the beginning of an object."""
_TAIL = re.compile(r"(?:^|(?<=\s))[^\s0-9]+$")
_ARRAY = re.compile(r"\s*\[\s*(\{\s*[\"}]|$)")
_PRETTY = re.compile(r'\s*("(?:[^"\\]|\\.)*"\s*:.*|[\]}{\[]+,?)\s*')
_ADVICE = f"transom reads an object a line. Convert it: {JQ}"


def json_lines(lines: Sequence[str]) -> LogFormat | NearMiss:
    """Detect one JSON object per line.

    The object with the time is the event. It is the line, or each object of a list in the line if more lines
    have such a list than have a time of their own.

    Raises:
        NotRead: the JSON is one value over several lines, or a list.
    """
    records = _objects(lines)
    if len(records) < MIN_SHARE * len(lines):
        _refuse_other_shapes(lines, len(records))
        return NearMiss(len(records))
    fields, types = _flat(records)
    if {name.replace(".", "_") for name in fields} >= CONN:
        return LogFormat("zeek", fields, types, {"variant": "json"}, "zeek/conn")
    lists: dict[str, list[tuple[int, list[Any], list[str]]]] = {}
    for number, record in enumerate(records[:SAMPLE_OBJECTS]):
        for path, items, around in _lists(record):
            lists.setdefault(path, []).append((number, items, around))
    # Outer lists come before inner ones.
    paths = sorted(lists, key=lambda path: path.count("[]"))
    timed = [path for path in paths if _timed([item for _, items, _ in lists[path] for item in items])]
    options, notes = {}, []
    if timed and _timed(records) < len({number for number, _, _ in lists[timed[0]]}):
        path = timed[0]
        beside = dict.fromkeys(other for _, _, around in lists[path] for other in around)
        around = [other for other in beside if _is_around(other, path)][:MAX_AROUND]
        fields, types = _flat(_records_of(lines, path, around)[:SAMPLE_LINES])
        options = {"records": path}
        notes.append(f"each line holds records in {path}; a record is an event")
    elif timed:
        having = f"the objects in {timed[0]} have times, too"
        notes.append(f"?: {having}; with the option `records` these are the events")
    texts = [path for path, kind in types.items() if kind == "string" and not path.startswith(AROUND)]
    return with_json(LogFormat("json", fields, types, options, notes=tuple(notes)), texts)


def container(lines: Sequence[str]) -> LogFormat | NearMiss:
    """Detect lines of a container runtime: time, stream, tag, and a message that may be JSON."""
    note = "a container's log; a message that is cut in parts, with the tag P, stays in parts"
    log = by_pattern(lines, CONTAINER, note, keep_empty=True)
    return log if isinstance(log, NearMiss) else with_json(log, [MESSAGE])


def carried(lines: Sequence[str]) -> LogFormat | NearMiss:
    """Detect lines with a JSON object after text of one form; the format is a pattern."""
    heads = [head for head in map(_head, lines) if head is not None]
    if len(heads) < HALF * len(lines) or not any(map(str.strip, heads)):
        return NearMiss(len(heads))
    tails = [match[0] if (match := _TAIL.search(head.rstrip())) else "" for head in heads]
    # A label such as `@cee:` or `data=` before each object belongs to no field.
    tail = tails[0] if set(tails) == {tails[0]} and tails[0][-1:] in tuple(":=,") else ""
    leads = [head.rstrip().removesuffix(tail).rstrip() for head in heads]
    sign = rf"(?:{re.escape(tail)} *)?" if tail else ""
    message, path = f"(?P<{MESSAGE}>.*)", MESSAGE
    if not any(leads):
        pattern = sign + message
    elif (lead := guess(leads)[0]).endswith(message):
        # The text before the object.
        words = lead.removesuffix(message)
        pattern, path = rf"{words}(?P<{MESSAGE}>[^{{]*?) *{sign}(?P<json>\{{.*)?", "json"
    else:
        pattern = f"{lead} *{sign}{message}"
    log = by_pattern(lines, pattern, "JSON in the lines' text: its fields are columns")
    return log if isinstance(log, NearMiss) else with_json(log, [path])


def _head(line: str) -> str | None:
    """Return the text before the object at the end of a line; None if there is no object."""
    at = -1
    for _ in range(BRACKETS):
        at = line.find("{", at + 1)
        if at < 0 or not line.rstrip().endswith("}"):
            return None
        if _object_of(line[at:]):
            return line[:at]
    return None


def with_json(log: LogFormat, paths: Iterable[str]) -> LogFormat:
    """Return the log with the fields of the JSON in one of its fields; unchanged if there is none.

    Args:
        paths: the fields that may be JSON.
    """
    texts_of = {path: log.fields.get(path, ()) for path in paths if "|" not in path}
    # An object without values has no fields.
    objects_of = {path: [record for record in _objects(texts) if record] for path, texts in texts_of.items()}
    path, objects = max(objects_of.items(), key=lambda entry: len(entry[1]), default=("", []))
    if not objects or len(objects) < HALF * len(log.fields[path]):
        return log
    fields, types = _flat(objects)
    return replace(
        log,
        fields={**log.fields, **{f"{path}.{name}": texts for name, texts in fields.items()}},
        types={**log.types, **{f"{path}.{name}": kind for name, kind in types.items()}},
        options={**log.options, "embedded": {"field": path, "format": "json"}},
        notes=(*log.notes, f"{path} is JSON, its fields are {path}.NAME"),
    )


def _object_of(line: str) -> dict[str, Any] | None:
    """Parse a line as an object, with numbers as their text; return None if it is no object."""
    try:
        record = parse_json(line) if line.lstrip()[:1] == "{" else None
    except ValueError:
        return None
    return record if isinstance(record, dict) else None


def _objects(lines: Iterable[str]) -> list[dict[str, Any]]:
    return [record for record in map(_object_of, lines) if record is not None]


def _records_of(lines: Sequence[str], path: str, around: Sequence[str]) -> list[dict[str, Any]]:
    """Return the records in lines of JSON, each with values of the objects around it.

    Args:
        path: the path of the records, such as `Records[]`.
        around: paths of values around them, such as `$.sent`.
    """
    strings = pa.array(lines, pa.string())
    text = Text(strings, strings.cast(pa.large_binary()), Rejections.none(len(lines)))
    records = (record for part in explode_records(text, path, around) for record in part.strings.to_pylist())
    return _objects(record for record in records if record is not None)


def _leaves(record: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the path and the value of everything that is no object."""
    for name, value in record.items():
        if isinstance(value, dict) and value:
            yield from _leaves(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", value


def _flat(records: Sequence[Mapping[str, Any]]) -> tuple[dict[str, list[str]], dict[str, FieldType]]:
    """Return the texts of each path, and the types that JSON determines."""
    fields: dict[str, list[str]] = {}
    kinds: dict[str, Counter[type]] = {}
    for record in records:
        for path, value in _leaves(record):
            texts, counts = fields.setdefault(path, []), kinds.setdefault(path, Counter())
            if value is not None:
                texts.append(value if isinstance(value, str) else json_text(value))
                counts[type(value)] += 1
    # The path is an object that is null in some records.
    nulls = [path for path in fields if not kinds[path]]
    for path in [path for path in nulls if any(other.startswith(f"{path}.") for other in fields)]:
        del fields[path], kinds[path]
    types: dict[str, FieldType] = {}
    for path, counts in kinds.items():
        if counts.keys() == {bool}:
            types[path] = "boolean"
        elif counts[Raw] < MIN_SHARE * counts.total():
            # Strings stay strings, unless they are times, or all are numbers and no ids.
            kind = kind_of(fields[path])
            quoted = kind.type in ("integer", "number") and kind.share == 1
            if not quoted or NO_FIGURE.search(identifier(path)):
                types[path] = "string"
    return fields, types


def _is_around(path: str, records: str) -> bool:
    """Return whether a column can use a path to a value around records."""
    try:
        level_of(path, records)
    except ValueError:
        return False
    return "|" not in path


def _timed(objects: Sequence[Mapping[str, Any]]) -> int:
    """Count the first objects with a complete time; a number needs a field that is named as a time."""
    fields, types = _flat(objects[:SAMPLE_OBJECTS])
    times = (
        len(texts)
        for path, texts in fields.items()
        if texts and types.get(path) != "boolean"
        if kind_of(texts[:SAMPLE_OBJECTS], counted=not is_time_name(path)).type == "timestamp"
    )
    return max(times, default=0)


def _lists(
    record: Mapping[str, Any], above: str = "", around: Sequence[str] = ()
) -> Iterator[tuple[str, list[Any], list[str]]]:
    """Yield each list of objects in an object: its path, the objects, and the paths of values around them.

    Lists may be nested.

    Args:
        above: the path of the object, ending in a dot if it is in a list.
        around: paths of values around the object.
    """
    values = dict(_leaves(record))
    for name, value in values.items():
        path = f"{above}{name}[]"
        is_list = isinstance(value, list) and value and all(isinstance(item, dict) for item in value)
        if is_list and RECORDS.fullmatch(f"{name}[]"):
            paths = [*around, *(f"{AROUND}{above}{sibling}" for sibling in values if sibling != name)]
            yield path, value, paths
            for item in value[:SAMPLE_OBJECTS]:
                yield from _lists(item, f"{path}.", paths)


def _refuse_other_shapes(lines: Sequence[str], objects: int) -> None:
    if _ARRAY.match("\n".join(lines[:3])[:1000]):
        raise NotRead(f"is one list of JSON, `[{{...}}, ...]`; {_ADVICE.format('.[]')}")
    if lines[0].lstrip()[:1] == "{" and _object_of(lines[0]) is None:
        pretty = sum(_PRETTY.fullmatch(line) is not None for line in lines)
        if objects + pretty >= MIN_SHARE * len(lines):
            raise NotRead(f"holds values of JSON that go over several lines; {_ADVICE.format('.')}")
