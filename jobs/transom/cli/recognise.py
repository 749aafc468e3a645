"""What kind of log some lines are: its format, its options, its fields with their texts."""

import csv
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from transom.cli.kinds import kind_of
from transom.cli.line_pattern import guess
from transom.formats.apache import COMBINED, COMMON
from transom.formats.layout import FieldType

LOOKED_AT = 5000
"""Lines that a guess goes by."""
MOST = 0.9
"""The share of lines that must be of a form: a log has others here and there."""
ZEEK_TYPES: Mapping[str, FieldType] = {
    "time": "timestamp", "interval": "number", "double": "number", "count": "integer", "int": "integer",
    "port": "integer", "bool": "boolean",
}  # fmt: skip
CONN = {"ts", "uid", "proto", "conn_state"}
"""Fields of Zeek's log of connections that other logs do not have together."""


@dataclass(frozen=True)
class Log:
    """What some lines look like.

    Attributes:
        fields: the texts of each field, by its path; where a record has none it has no text.
        types: of fields whose type the log says itself.
        preset: a known log, which says columns and time.
        notes: what a person should know of the guess.
    """

    format: str
    fields: Mapping[str, Sequence[str]]
    types: Mapping[str, FieldType] = field(default_factory=dict)
    options: Mapping[str, object] = field(default_factory=dict)
    preset: str | None = None
    notes: tuple[str, ...] = ()


def recognise(lines: Sequence[str]) -> Log | None:
    """The first of the known forms that most lines have; None where they have none."""
    lines = lines[:LOOKED_AT]
    for form in FORMS:
        log = form(lines)
        if log is not None:
            return log
    return None


def _zeek(lines: Sequence[str]) -> Log | None:
    headers = dict(line.split("\t", 1) for line in lines if line.startswith("#") and "\t" in line)
    if "#fields" not in headers:
        return None
    names = headers["#fields"].split("\t")
    unset, empty = headers.get("#unset_field", "-"), headers.get("#empty_field", "(empty)")
    rows = [line.split("\t") for line in lines if not line.startswith("#")]
    fields: dict[str, list[str]] = {name: [] for name in names}
    for row in rows:
        if len(row) == len(names):
            for name, text in zip(names, row, strict=True):
                if text not in (unset, empty):
                    fields[name].append(text)
    said = dict(zip(names, headers.get("#types", "").split("\t"), strict=False))
    types: dict[str, FieldType] = {name: ZEEK_TYPES.get(said.get(name, ""), "string") for name in names}
    known = headers.get("#path") == "conn" and set(names) >= CONN
    return Log("zeek", fields, types, {"variant": "tsv"}, "zeek/conn" if known else None)


def _json(lines: Sequence[str]) -> Log | None:
    records = []
    for line in lines:
        try:
            record = json.loads(line) if line.lstrip()[:1] == "{" else None
        except (ValueError, RecursionError):
            record = None
        if isinstance(record, dict):
            records.append(record)
    if len(records) < MOST * len(lines):
        return None
    listed = _listed(records)
    if listed is not None:
        inside = [item for record in records for item in _at(record, listed) if isinstance(item, dict)]
        fields, types = _flat(inside)
        note = f"each line holds a list of records, {listed}; a record is an event"
        return Log("json", fields, types, {"records": f"{listed}[]"}, notes=(note,))
    fields, types = _flat(records)
    if {name.replace(".", "_") for name in fields} >= CONN:
        return Log("zeek", fields, types, {"variant": "json"}, "zeek/conn")
    return Log("json", fields, types)


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


def _flat(records: Sequence[Mapping[str, Any]]) -> tuple[dict[str, list[str]], dict[str, FieldType]]:
    """The texts of every path, and the types of those that are no text in JSON already."""
    fields: dict[str, list[str]] = {}
    kinds: dict[str, set[type]] = {}
    for record in records:
        for path, value in _leaves(record):
            texts, seen = fields.setdefault(path, []), kinds.setdefault(path, set())
            if value is not None:
                texts.append(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
                seen.add(type(value))
    # An object that is null in some records.
    for path in [
        path for path in fields if not kinds[path] and any(o.startswith(f"{path}.") for o in fields)
    ]:
        del fields[path], kinds[path]
    types: dict[str, FieldType] = {}
    for path, seen in kinds.items():
        if seen == {bool}:
            types[path] = "boolean"
        elif not seen <= {int, float}:
            # A text in JSON is one on purpose, unless it is a time.
            types[path] = "string"
    return fields, types


def _apache(lines: Sequence[str]) -> Log | None:
    form = re.compile(COMMON + COMBINED + "$")
    found = [match.groupdict() for match in map(form.match, lines) if match]
    if len(found) < MOST * len(lines):
        return None
    fields = {name: [row[name] for row in found if row[name] not in (None, "-")] for name in found[0]}
    return Log("apache", fields, preset="apache/combined")


def _csv(lines: Sequence[str]) -> Log | None:
    best: tuple[int, str, list[list[str]]] | None = None
    for delimiter in ("\t", ";", ",", "|"):
        try:
            rows = list(csv.reader(lines, delimiter=delimiter))
        except csv.Error:
            continue
        width, times = Counter(map(len, rows)).most_common(1)[0]
        if width > 1 and times >= MOST * len(lines) and (best is None or width > best[0]):
            best = width, delimiter, [row for row in rows if len(row) == width]
    if best is None or _spoken(best[2]):
        return None
    width, delimiter, rows = best
    options: dict[str, object] = {} if delimiter == "," else {"delimiter": delimiter}
    header = _is_header(rows[0], rows[1:])
    names = rows[0] if header else [f"field_{number}" for number in range(1, width + 1)]
    if not header:
        options |= {"header": False, "names": names}
    body = rows[1:] if header else rows
    fields = {name: [row[index] for row in body if row[index]] for index, name in enumerate(names)}
    notes = () if header else ("its first line names no fields: give them names here",)
    return Log("csv", fields, {}, options, notes=notes)


def _spoken(rows: Sequence[Sequence[str]]) -> bool:
    """Whether what looks like fields is text with commas in it."""
    cells = [cell for row in rows[:200] for cell in row]
    return sum(cell.count(" ") > 4 for cell in cells) * 4 > len(cells)


def _is_header(first: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Whether a line names the fields: names are different, no numbers, and no values of their column."""
    if len(set(first)) < len(first) or not all(cell.strip() for cell in first):
        return False
    if any(re.search(r"[A-Za-z_]", cell) is None for cell in first):
        return False
    for index, name in enumerate(first):
        column = [row[index] for row in rows if row[index]]
        if column and kind_of([name]).type != kind_of(column).type:
            return True
    return all(name not in {row[index] for row in rows} for index, name in enumerate(first)) and all(
        re.fullmatch(r"[A-Za-z_@][\w .@()/%-]*", name) for name in first
    )


def _syscalls(lines: Sequence[str]) -> Log | None:
    """`name [arg=value ...] [=> return]`, with the same number of words before the name in each line."""
    rows = [_CALL.fullmatch(line) for line in lines]
    found = [row for row in rows if row is not None]
    if len(found) < MOST * len(lines) or sum(row["arrow"] is not None for row in found) * 4 < len(lines):
        return None
    leads = Counter(len(row["words"].split()) - 1 for row in found)
    lead = leads.most_common(1)[0][0]
    words = [row["words"].split() for row in found if len(row["words"].split()) == lead + 1]
    if len(words) < MOST * len(lines):
        return None
    names: list[str] = []
    for index in range(lead):
        kind = kind_of([row[index] for row in words]).type
        name = {"timestamp": "time", "integer": "pid"}.get(kind, "process")
        names.append(name if name not in names else f"{name}_{index + 1}")
    fields = {name: [row[index] for row in words] for index, name in enumerate([*names, "call"])}
    fields["return"] = [row["result"] for row in found if row["result"]]
    arguments: dict[str, list[str]] = {}
    for row in found:
        for name, text in _PAIR.findall(row["pairs"] or ""):
            arguments.setdefault(name, []).append(text.strip('"'))
    fields |= {name: texts for name, texts in arguments.items() if name not in fields}
    return Log("syscalls", fields, {"return": "string"}, {"lead": names} if names else {})


_PAIR = re.compile(r'([^\s="]+)=("(?:[^"\\]|\\.)*"|[^\s"]*)')
_CALL = re.compile(
    r"\s*(?P<words>(?:[^\s=\"]+\s+){0,5}[a-z_][a-z0-9_]*)"
    r'(?P<pairs>(?:\s+[^\s="]+=(?:"[^"]*"|[^\s"]*))*)(?P<arrow>\s+=>(?:\s+(?P<result>.*))?)?\s*'
)


def _kv(lines: Sequence[str]) -> Log | None:
    """Pairs, of which most of each line is made."""
    rows = [_PAIR.findall(line) for line in lines]
    most = [
        len(row) >= 3 and sum(len(name) + len(text) + 2 for name, text in row) > 0.6 * len(line)
        for row, line in zip(rows, lines, strict=True)
    ]
    if sum(most) < MOST * len(lines):
        return None
    texts = [text for row in rows for _, text in row[:-1]]
    ends = Counter(text[-1:] for text in texts)
    between = next((sign for sign in ",;|" if ends[sign] > MOST * len(texts)), "")
    fields: dict[str, list[str]] = {}
    for row in rows:
        for name, text in dict(reversed(row)).items():
            plain = text.removesuffix(between).strip('"')
            fields.setdefault(name, []).extend([plain] if plain else [])
    first = [name for row in rows[:50] for name, _ in row]
    ordered = dict.fromkeys([*first, *fields])
    return Log("kv", {name: fields[name] for name in ordered}, {}, {"separator": between} if between else {})


def _regex(lines: Sequence[str]) -> Log | None:
    """Lines of a form of their own: a first pattern, for a person to go on with."""
    found = guess(lines)
    if found.matched < 0.5 * len(lines):
        return None
    note = "?: a first attempt; give the groups names, and take apart what is one"
    return Log("regex", found.fields, {}, {"pattern": found.pattern}, notes=(note,))


FORMS: tuple[Callable[[Sequence[str]], Log | None], ...] = (
    _zeek, _json, _apache, _syscalls, _kv, _csv, _regex,
)  # fmt: skip
"""The forms, the narrower before those that take more."""
