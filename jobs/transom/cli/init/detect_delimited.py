"""Detect delimited lines: Zeek's tables, W3C's extended logs, CSV with or without lines above its records."""

import csv
import re
from collections import Counter
from collections.abc import Mapping, Sequence

from transom.cli.init.delimited_tables import (
    DELIMITERS,
    MAX_LINES_ABOVE,
    OF_BLANKS,
    DelimitedTable,
    tables_of,
)
from transom.cli.init.detect_json import CONN
from transom.cli.init.infer_regex import guess
from transom.cli.init.infer_types import NOTHING, NUMBER, TRUTH, ColumnType, kind_of, skeleton, times_of
from transom.cli.init.log_format import MIN_SHARE, LogFormat, NearMiss, NotRead, fields_of, read_lines
from transom.formats.delimited import FIELDS
from transom.formats.record_format import EPOCHS, FieldType
from transom.formats.separated import Separated

ZEEK_TYPES: Mapping[str, FieldType] = {
    "time": "timestamp", "interval": "number", "double": "number", "count": "integer", "int": "integer",
    "port": "integer", "bool": "boolean",
}  # fmt: skip
ONE_LINE = (
    "python3 -c \"import csv, sys; csv.writer(sys.stdout).writerows([' '.join(c.split()) for c in r] "
    'for r in csv.reader(sys.stdin{}))" < FILE > NEW'
)
LONGEST_RECORD = 200
"""Maximum number of lines per record."""


def zeek(lines: Sequence[str]) -> LogFormat | NearMiss:
    """Detect Zeek's tables, whose header lines have the fields and their types."""
    headers = dict(line.split("\t", 1) for line in lines if line.startswith("#") and "\t" in line)
    if "#fields" not in headers:
        return NearMiss(0)
    names, options = headers["#fields"].split("\t"), {"variant": "tsv"}
    read, _, _ = read_lines(lines, "zeek", options)
    fields = {name: read.get(name, []) for name in names}
    declared = dict(zip(names, headers.get("#types", "").split("\t"), strict=False))
    types: dict[str, FieldType] = {name: ZEEK_TYPES.get(declared.get(name, ""), "string") for name in names}
    known = headers.get("#path") == "conn" and set(names) >= CONN
    return LogFormat("zeek", fields, types, options, "zeek/conn" if known else None)


def w3c(lines: Sequence[str]) -> LogFormat | NearMiss:
    """Detect W3C's extended logs, such as those of IIS: a `#Fields:` line names the fields."""
    if not any(line.startswith(FIELDS) for line in lines):
        return NearMiss(0)
    body = [line for line in lines if not line.startswith("#")]
    delimiter = "\t" if sum("\t" in line for line in body) * 2 > len(body) else " "
    options = {"delimiter": delimiter, "header": "w3c"}
    fields, read, refused = read_lines(lines, "csv", options)
    if not read or read < MIN_SHARE * (read + refused):
        return NearMiss(read)
    note = "its #Fields: lines name the fields"
    return LogFormat("csv", fields, {}, options, notes=(note,), utc=True)


def delimited(lines: Sequence[str]) -> LogFormat | NearMiss:
    """Detect CSV with any delimiter, and the line that names its columns.

    Raises:
        NotRead: records span several lines.
    """
    tables = tables_of(lines)
    # Text rarely contains a tab by chance, or other signs with blanks around.
    candidates = [
        table for table in tables if table.delimiter == "\t" or table.is_spaced or not _is_prose(table.rows)
    ]
    read = [(table, _log(table)) for table in candidates if table.share >= MIN_SHARE]
    fitting = [(table, log) for table, log in read if _is_sure(table, log)]
    fitting = [(table, log) for table, log in fitting if table.delimiter == "\t"] or fitting
    if fitting:
        # If values contain another delimiter, the header decides.
        best, log = max(fitting, key=_likelihood)
        # The commas may be inside lines that begin with a time of several words.
        if best.delimiter != "\t" and not _likelihood((best, log))[0] and guess(lines)[1]:
            why = "no column is a time, while the lines begin with one of several words"
            return NearMiss(len(best.rows), why)
        return log
    for delimiter in DELIMITERS[:-2]:
        _refuse_long_records(lines, delimiter)
    return NearMiss(max((len(t.rows) for t in candidates if t.delimiter not in OF_BLANKS), default=0))


def _refuse_long_records(lines: Sequence[str], delimiter: str) -> None:
    """Raise NotRead if most records have the same number of values once quoted values may span lines."""
    records, several = _records_of(lines, delimiter)
    width, number = Counter(map(len, records)).most_common(1)[0]
    if width < 2 or not several or number < MIN_SHARE * len(records) or len(records) < 2:
        return
    rows = [record for record in records if len(record) == width]
    if _has_time(fields_of(map(str, range(width)), rows[1:])) or _is_header(rows[0], rows[1:]):
        argument = "" if delimiter == "," else f", delimiter={delimiter!r}"
        raise NotRead(
            f"is CSV whose quoted values go over several lines: {len(records)} records in {len(lines)} "
            f"lines. transom reads a record a line. Convert it: {ONE_LINE.format(argument)}"
        )


def _is_sure(table: DelimitedTable, log: LogFormat) -> bool:
    """Return whether lines are a table and no prose.

    If lines are above the table or blanks are the delimiter, it needs a header and a time; with an unusual
    delimiter one of them, and three columns if the delimiter has no blanks around.
    """
    if table.is_spaced or (len(table.delimiter) > 1 and table.delimiter not in OF_BLANKS):
        wide = table.is_spaced or len(table.rows[0]) > 2
        return _head_of(table)[0] is not None or (wide and _has_time(log.fields))
    if table.delimiter not in OF_BLANKS and not table.above:
        return True
    if _head_of(table)[0] is None or len(table.rows) < 3 or len(table.rows[0]) < 3 - bool(table.above):
        return False
    # A date counts: its time of day may be in another column.
    days = [[f"{text} 00:00:00" for text in texts[:200]] for texts in log.fields.values() if texts]
    # So do the parts of a time in columns of their own.
    days.append([" ".join(row[:5]) for row in table.rows[:200]])
    return _has_time(log.fields) or any(times_of(day) is not None for day in days)


def _likelihood(candidate: tuple[DelimitedTable, LogFormat]) -> tuple[bool, bool, int]:
    """Return a sort key: whether a table has names or a time, whether it has names, its number of columns."""
    table, log = candidate
    named = log.options.get("header") is not False
    return named or _has_time(log.fields), named, len(table.rows[0])


def _has_time(fields: Mapping[str, Sequence[str]]) -> bool:
    return any(kind_of(texts).type == "timestamp" for texts in fields.values() if texts)


def _log(table: DelimitedTable) -> LogFormat:
    header, names_line, data_row, data_line = _head_of(table)
    options: dict[str, object] = {} if table.delimiter == "," else {"delimiter": table.delimiter}
    options |= {"quote": table.quote} if table.quote != '"' else {}
    options |= {"trim": True} if table.trim else {}
    options |= {"comment": table.comment} if table.comment else {}
    skip = {"skip": data_line - 1}
    notes = []
    if header is None:
        names = [f"field_{number}" for number in range(1, len(table.rows[0]) + 1)]
        notes.append("its first line names no fields: give them names here")
        options |= {"header": False, "names": names}
        options |= {} if table.only_comments(1, data_line) else skip
    elif (names := _unique(header)) != header:
        twice = [name for name, times in Counter(header).items() if times > 1 and name.strip()]
        wrong = f"has a name twice, {', '.join(twice)}" if twice else "lacks a name"
        notes.append(f"the line that names its fields {wrong}; so the names are listed here")
        options |= {"header": False, "names": names, **skip}
    else:
        is_first = table.only_comments(1, names_line) and names_line not in table.comments
        in_between = not table.only_comments(names_line + 1, data_line)
        if not is_first or table.above or in_between:
            options["header"] = names_line
        options |= skip if in_between else {}
    fields = fields_of(names, table.rows[data_row:])
    return LogFormat("csv", fields, {}, options, notes=tuple(notes))


def _unique(names: Sequence[str]) -> list[str]:
    unique: list[str] = []
    for place, name in enumerate(names, 1):
        number, candidate = 1, name if name.strip() else f"field_{place}"
        while candidate in unique or (number > 1 and candidate in names):
            number += 1
            candidate = f"{name} {number}"
        unique.append(candidate)
    return unique


def _is_prose(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether rows are prose with commas."""
    cells = [cell for row in rows[:200] for cell in row]
    # JSON also has blanks.
    return sum(cell.count(" ") > 4 and cell[0] not in "{[" for cell in cells) * 4 > len(cells)


def _head_of(table: DelimitedTable) -> tuple[list[str] | None, int, int, int]:
    """Find the header and the first record of a table.

    A line above the records, such as names or units, has no value of the type of its column.

    Returns:
        The column names, None if no line has them; the number of their line, from 1; the index of the first
        record in `rows`; the number of its line, from 1.
    """
    rows, first = table.rows, table.places[0]
    typed_rows = rows[len(rows) // 2 :] if len(rows) > 3 else rows[1:]
    columns = ([row[index] for row in typed_rows if row[index]] for index in range(len(rows[0])))
    kinds = [_kind_of_column(column) for column in columns]
    data = 0
    if any(kind.type != "string" for kind in kinds):
        while data < min(len(rows) - 1, MAX_LINES_ABOVE) and _is_above(rows[data], kinds, data > 0):
            data += 1
    else:
        # `_unique` replaces missing and repeated names.
        names = [
            name if name.strip() and rows[0].count(name) == 1 else f"{name or 'field'}_{place}"
            for place, name in enumerate(rows[0], 1)
        ]
        data = int(_is_header(names, rows[1:]))
    if data:
        distinct = (at for at, row in enumerate(rows[:data]) if len(set(row)) == len(row))
        named = next((at for at in distinct if all(re.search(r"[^\W\d]", cell) for cell in rows[at])), 0)
        return rows[named], table.places[named], data, table.places[data % len(rows)]
    for number in sorted(table.comments, reverse=True):
        parts = Separated(table.delimiter, table.quote, trim=table.trim)
        names = parts.split_line(table.comments[number]) or []
        if number < first and len(names) == len(rows[0]) and _is_header(names, rows):
            return names, number, 0, first
    return None, 0, 0, first


def _kind_of_column(column: Sequence[str]) -> ColumnType:
    """Return the type of a column. Texts of one form without letters, such as dates, are times."""
    kind = kind_of(column) if column else ColumnType("string")
    forms = {skeleton(text) for text in column}
    if kind.type == "string" and len(forms) == 1 and re.fullmatch("1([^1x]+1)+", form := forms.pop()):
        return ColumnType("timestamp", form=form)
    return kind


def _is_above(row: Sequence[str], kinds: Sequence[ColumnType], below_another: bool) -> bool:
    """Return whether a row has values in columns with a type, and none of them is of this type. Below another
    such row, one without any time suffices."""
    cells = [(cell, kind) for cell, kind in zip(row, kinds, strict=True) if kind.type != "string"]
    typed = [_is_of(kind, cell) for cell, kind in cells if cell and cell not in NOTHING]
    times = [cell for cell, kind in cells if kind.type == "timestamp"]
    return not any(typed) and (bool(typed) or (below_another and bool(times) and not any(times)))


def _is_of(kind: ColumnType, cell: str) -> bool:
    if kind.type in ("integer", "number") or kind.form in EPOCHS:
        return NUMBER.fullmatch(cell) is not None or re.fullmatch(r"[-+]?[0-9.,]+", cell) is not None
    if kind.type == "boolean":
        return cell in TRUTH
    return times_of([cell]) is not None or skeleton(cell) in (skeleton("2024-05-01 10:00:00"), kind.form)


def _is_header(first: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Return whether a line names the fields: texts that are distinct, no numbers, and no values of their
    columns."""
    if len(set(first)) < len(first) or not all(cell.strip() for cell in first):
        return False
    if any(re.search(r"[^\W\d]|_", cell) is None for cell in first):
        return False
    columns = [[row[index] for row in rows] for index in range(len(first))]
    for name, column in zip(first, columns, strict=True):
        values = list(filter(None, column))
        if values and kind_of([name]).type != kind_of(values).type:
            return True
    return all(
        name not in column and re.fullmatch(r"[^\W\d@]?[\w .@()/%-]*", name)
        for name, column in zip(first, columns, strict=True)
    )


def _records_of(lines: Sequence[str], delimiter: str) -> tuple[list[list[str]], int]:
    """Split lines into records; a quoted value may continue in the next line.

    Returns:
        The records, and how many of them span several lines. A line with a quote that is not closed before a
        delimiter or a line's end is a record with one value.
    """
    records: list[list[str]] = []
    several = at = 0
    while at < len(lines):
        text = (f"{line}\n" for line in lines[at : at + LONGEST_RECORD])
        reader = csv.reader(text, delimiter=delimiter, strict=True)
        try:
            record, count = next(reader), reader.line_num
        except csv.Error:
            record, count = [lines[at]], 1
        records.append(record)
        several += count > 1
        at += count
    return records, several
