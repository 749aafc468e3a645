"""Delimited lines: Zeek's tables, W3C's extended logs, CSV."""

import csv
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from transom.cli.drafting.json_logs import CONN
from transom.cli.drafting.kinds import kind_of
from transom.cli.drafting.line_pattern import guess
from transom.cli.drafting.log import MOST, Log, Near, NotRead
from transom.formats.layout import FieldType
from transom.formats.w3c import FIELDS

ZEEK_TYPES: Mapping[str, FieldType] = {
    "time": "timestamp", "interval": "number", "double": "number", "count": "integer", "int": "integer",
    "port": "integer", "bool": "boolean",
}  # fmt: skip
DELIMITERS = ("\t", ";", ",", "|")
ONE_LINE = (
    "python3 -c \"import csv, sys; csv.writer(sys.stdout).writerows([' '.join(c.split()) for c in r] "
    'for r in csv.reader(sys.stdin{}))" < FILE > NEW'
)


def zeek(lines: Sequence[str]) -> Log | Near:
    """Zeek's own tables, whose header lines say the fields and their types."""
    headers = dict(line.split("\t", 1) for line in lines if line.startswith("#") and "\t" in line)
    if "#fields" not in headers:
        return Near(0)
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


def w3c(lines: Sequence[str]) -> Log | Near:
    """W3C's extended logs, such as IIS writes: a `#Fields:` line names what follows."""
    header = next((line for line in lines if line.startswith(FIELDS)), None)
    if header is None:
        return Near(0)
    names = header.removeprefix(FIELDS).split()
    body = [line for line in lines if not line.startswith("#")]
    delimiter = "\t" if sum("\t" in line for line in body) * 2 > len(body) else " "
    rows = [row for row in csv.reader(body, delimiter=delimiter) if len(row) == len(names)]
    if not rows or len(rows) < MOST * len(body):
        return Near(len(rows))
    fields = {name: [row[index] for row in rows if row[index]] for index, name in enumerate(names)}
    options = {"delimiter": delimiter, "header": "w3c"}
    return Log("csv", fields, {}, options, notes=("its #Fields: lines name the fields",), utc=True)


@dataclass(frozen=True)
class _Table:
    """Rows of the same number of cells, and how many lines they are of how many records."""

    delimiter: str
    rows: list[list[str]]
    records: int
    lines: int


def delimited(lines: Sequence[str]) -> Log | Near:
    """CSV, whatever stands between the values.

    Raises:
        NotRead: records go over several lines.
    """
    tables = [table for table in (_table(lines, sign) for sign in DELIMITERS) if table is not None]
    fitting = [table for table in tables if len(table.rows) >= MOST * len(lines)]
    # A tab stands in no text by chance.
    fitting = [table for table in fitting if table.delimiter == "\t"] or [
        table for table in fitting if not _spoken(table.rows)
    ]
    if fitting:
        # Of values that hold another delimiter, too, the first line tells which one parts them.
        best, log = max(((table, _log(table)) for table in fitting), key=_likely)
        # Commas here and there in lines that begin with a time of several words.
        if best.delimiter != "\t" and not _has_time(log) and guess(lines).timed:
            why = "no column is a time, while the lines begin with one of several words"
            return Near(len(best.rows), why)
        return log
    for table in tables:
        over = table.records < table.lines and len(table.rows) >= MOST * table.records
        if over and table.records > 1 and _is_header(table.rows[0], table.rows[1:]):
            sign = "" if table.delimiter == "," else f", delimiter={table.delimiter!r}"
            raise NotRead(
                f"is CSV whose quoted values go over several lines: {table.records} records in {table.lines} "
                f"lines. transom reads a record a line. Make it so: {ONE_LINE.format(sign)}"
            )
    return Near(max((len(table.rows) for table in tables if not _spoken(table.rows)), default=0))


def _likely(found: tuple[_Table, Log]) -> tuple[bool, bool, int]:
    """What tells the table that lines are from others that they could be."""
    table, log = found
    return _has_time(log), "header" not in log.options, len(table.rows[0])


def _has_time(log: Log) -> bool:
    kinds = (kind_of(texts).type for texts in log.fields.values() if texts)
    return "header" not in log.options or "timestamp" in kinds


def _table(lines: Sequence[str], delimiter: str) -> _Table | None:
    try:
        records = list(csv.reader([f"{line}\n" for line in lines], delimiter=delimiter))
    except csv.Error:
        return None
    records = [record for record in records if record]
    width, _ = Counter(map(len, records)).most_common(1)[0]
    rows = [record for record in records if len(record) == width]
    return _Table(delimiter, rows, len(records), len(lines)) if width > 1 else None


def _log(table: _Table) -> Log:
    options: dict[str, object] = {} if table.delimiter == "," else {"delimiter": table.delimiter}
    rows, notes = table.rows, []
    names = rows[0]
    unique = _unique(names)
    if names != unique and _is_header(unique, rows[1:]):
        twice = [name for name, times in Counter(names).items() if times > 1 and name.strip()]
        wrong = f"has a name twice, {', '.join(twice)}" if twice else "lacks a name"
        notes.append(f"its first line {wrong}; so the names stand here, and it is refused in each file")
        names, body = unique, rows[1:]
        options |= {"header": False, "names": names}
    elif _is_header(names, rows[1:]):
        body = rows[1:]
    else:
        notes.append("its first line names no fields: give them names here")
        names, body = [f"field_{number}" for number in range(1, len(names) + 1)], rows
        options |= {"header": False, "names": names}
    fields = {name: [row[index] for row in body if row[index]] for index, name in enumerate(names)}
    return Log("csv", fields, {}, options, notes=tuple(notes))


def _unique(names: Sequence[str]) -> list[str]:
    found: list[str] = []
    for place, name in enumerate(names, 1):
        number, other = 1, name if name.strip() else f"field_{place}"
        while other in found or (number > 1 and other in names):
            number += 1
            other = f"{name} {number}"
        found.append(other)
    return found


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
