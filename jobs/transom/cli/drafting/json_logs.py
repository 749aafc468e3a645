"""Lines of JSON: an object a line, of Zeek or of anybody, or a list of records in each line."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from transom.cli.drafting.guesses import NO_FIGURE
from transom.cli.drafting.kinds import kind_of
from transom.cli.drafting.log import LOOKED_AT, MOST, Log, Near, NotRead
from transom.cli.drafting.naming import identifier
from transom.cli.sample import JQ
from transom.formats.layout import FieldType

CONN = {"ts", "uid", "proto", "conn_state"}
"""Fields of Zeek's log of connections that other logs do not have together."""
_ARRAY = re.compile(r"\s*\[\s*(\{\s*[\"}]|$)")
_PRETTY = re.compile(r'\s*("(?:[^"\\]|\\.)*"\s*:.*|[\]}{\[]+,?)\s*')
_ADVICE = f"transom reads an object a line. Make it so: {JQ}"


def json_lines(lines: Sequence[str]) -> Log | Near:
    """What objects hold, one a line.

    Raises:
        NotRead: they are JSON of another shape: one value over several lines, or a list.
    """
    records = [record for record in map(_object, lines) if record is not None]
    if len(records) < MOST * len(lines):
        _refuse_others(lines, len(records))
        return Near(len(records))
    listed = _listed(records)
    if listed is not None:
        inside = [item for record in records for item in _at(record, listed) if isinstance(item, dict)]
        fields, types = _flat(inside[:LOOKED_AT])
        note = f"each line holds a list of records, {listed}; a record is an event"
        return Log("json", fields, types, {"records": f"{listed}[]"}, notes=(note,))
    fields, types = _flat(records)
    if {name.replace(".", "_") for name in fields} >= CONN:
        return Log("zeek", fields, types, {"variant": "json"}, "zeek/conn")
    return Log("json", fields, types)


def _object(line: str) -> dict[str, Any] | None:
    try:
        record = json.loads(line) if line.lstrip()[:1] == "{" else None
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _refuse_others(lines: Sequence[str], objects: int) -> None:
    if _ARRAY.match("\n".join(lines[:3])[:1000]):
        raise NotRead(f"is one list of JSON, `[{{...}}, ...]`; {_ADVICE.format('.[]')}")
    begins = lines[0].lstrip()[:1] == "{" and _object(lines[0]) is None
    if begins and objects + sum(_PRETTY.fullmatch(line) is not None for line in lines) >= MOST * len(lines):
        raise NotRead(f"holds values of JSON that go over several lines; {_ADVICE.format('.')}")


def _listed(records: Sequence[Mapping[str, Any]]) -> str | None:
    """The path of a list of records that nearly all of a line's record is."""
    for name, value in _leaves(records[0]) if records else ():
        if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
            outside = len(json.dumps(records[0])) - len(json.dumps(value))
            if all(isinstance(_at(record, name), list) for record in records) and outside < 500:
                return name
    return None


def _at(record: Any, path: str) -> Any:
    for name in path.split("."):
        record = record.get(name) if isinstance(record, dict) else None
    return record


def _leaves(record: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Every value that is no object, by its path."""
    for name, value in record.items():
        if isinstance(value, dict) and value:
            yield from _leaves(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", value


def _is_quoted_number(path: str, texts: Sequence[str]) -> bool:
    """Whether texts are all numbers, other than such as are no figure by their name: ids in quotes."""
    kind = kind_of(texts)
    return kind.type in ("integer", "number") and kind.share == 1 and not NO_FIGURE.search(identifier(path))


def _flat(records: Sequence[Mapping[str, Any]]) -> tuple[dict[str, list[str]], dict[str, FieldType]]:
    """The texts of every path, and the types of those that are no text in JSON already."""
    fields: dict[str, list[str]] = {}
    kinds: dict[str, Counter[type]] = {}
    for record in records:
        for path, value in _leaves(record):
            texts, seen = fields.setdefault(path, []), kinds.setdefault(path, Counter())
            if value is not None:
                texts.append(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
                seen[type(value)] += 1
    # An object that is null in some records.
    for path in [
        path for path in fields if not kinds[path] and any(o.startswith(f"{path}.") for o in fields)
    ]:
        del fields[path], kinds[path]
    types: dict[str, FieldType] = {}
    for path, seen in kinds.items():
        if seen.keys() == {bool}:
            types[path] = "boolean"
        elif seen[int] + seen[float] < MOST * seen.total() and not _is_quoted_number(path, fields[path]):
            # A text in JSON is one on purpose, unless it is a time.
            types[path] = "string"
    return fields, types
