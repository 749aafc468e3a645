"""Detect delimited lines: Zeek's tables, W3C's extended logs, CSV."""

import csv
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from transom.cli.init.detect_csv import (
    DELIMITERS,
    OF_BLANKS,
    DelimitedTable,
    head_of,
    is_header,
    records_of,
    table_of,
)
from transom.cli.init.detect_json import CONN
from transom.cli.init.detected_format import MIN_SHARE, DetectedFormat, NearMiss, NotRead
from transom.cli.init.infer_regex import guess
from transom.cli.init.infer_types import kind_of, times_of
from transom.formats.record_format import FieldType
from transom.formats.w3c import FIELDS

ZEEK_TYPES: Mapping[str, FieldType] = {
    "time": "timestamp", "interval": "number", "double": "number", "count": "integer", "int": "integer",
    "port": "integer", "bool": "boolean",
}  # fmt: skip
CLOCK_COMMA = re.compile(r"(?<![0-9])[0-9]{2}:[0-9]{2}:[0-9]{2},[0-9]{3}(?:[0-9]{3})?(?=[^0-9,\"])")
"""A time of day with a decimal comma, which is no delimiter."""
ONE_LINE = (
    "python3 -c \"import csv, sys; csv.writer(sys.stdout).writerows([' '.join(c.split()) for c in r] "
    'for r in csv.reader(sys.stdin{}))" < FILE > NEW'
)


def zeek(lines: Sequence[str]) -> DetectedFormat | NearMiss:
    """Detect Zeek's tables, whose header lines have the fields and their types."""
    headers = dict(line.split("\t", 1) for line in lines if line.startswith("#") and "\t" in line)
    if "#fields" not in headers:
        return NearMiss(0)
    names = headers["#fields"].split("\t")
    unset, empty = headers.get("#unset_field", "-"), headers.get("#empty_field", "(empty)")
    rows = [line.split("\t") for line in lines if not line.startswith("#")]
    fields: dict[str, list[str]] = {name: [] for name in names}
    for row in rows:
        if len(row) == len(names):
            for name, text in zip(names, row, strict=True):
                if text not in (unset, empty):
                    fields[name].append(text)
    declared = dict(zip(names, headers.get("#types", "").split("\t"), strict=False))
    types: dict[str, FieldType] = {name: ZEEK_TYPES.get(declared.get(name, ""), "string") for name in names}
    known = headers.get("#path") == "conn" and set(names) >= CONN
    return DetectedFormat("zeek", fields, types, {"variant": "tsv"}, "zeek/conn" if known else None)


def w3c(lines: Sequence[str]) -> DetectedFormat | NearMiss:
    """Detect W3C's extended logs, as of IIS, in which a `#Fields:` line names the fields."""
    header = next((line for line in lines if line.startswith(FIELDS)), None)
    if header is None:
        return NearMiss(0)
    names = header.removeprefix(FIELDS).split()
    body = [line for line in lines if not line.startswith("#")]
    delimiter = "\t" if sum("\t" in line for line in body) * 2 > len(body) else " "
    rows = [row for row in csv.reader(body, delimiter=delimiter) if len(row) == len(names)]
    if not rows or len(rows) < MIN_SHARE * len(body):
        return NearMiss(len(rows))
    fields = {name: [row[index] for row in rows if row[index]] for index, name in enumerate(names)}
    options = {"delimiter": delimiter, "header": "w3c"}
    return DetectedFormat("csv", fields, {}, options, notes=("its #Fields: lines name the fields",), utc=True)


def delimited(lines: Sequence[str]) -> DetectedFormat | NearMiss:
    """Detect CSV with any delimiter, and the line that names its columns.

    Raises:
        NotRead: records have several lines.
    """
    tables = list(_tables(lines))
    candidates = [table for table in tables if table.delimiter == "\t" or not _is_prose(table.rows)]
    fitting = [(table, _log(table)) for table in candidates if table.share >= MIN_SHARE]
    fitting = [(table, log) for table, log in fitting if _is_sure(table, log)]
    # A tab is in no text by chance.
    fitting = [candidate for candidate in fitting if candidate[0].delimiter == "\t"] or fitting
    if fitting:
        # If values contain another delimiter, the first line tells the right one.
        best, log = max(fitting, key=_likely)
        # Commas inside lines that begin with a time of several words.
        if best.delimiter != "\t" and not _has_time(log) and guess(lines).timed:
            why = "no column is a time, while the lines begin with one of several words"
            return NearMiss(len(best.rows), why)
        return log
    for sign in filter(lambda sign: sign not in OF_BLANKS, DELIMITERS):
        _refuse_long_records(lines, sign)
    return NearMiss(
        max((len(table.rows) for table in candidates if table.delimiter not in OF_BLANKS), default=0)
    )


def _tables(lines: Sequence[str]) -> Iterator[DelimitedTable]:
    """Yield the table for each delimiter, but only one of those for blanks."""
    tables = {sign: table_of(lines, sign) for sign in DELIMITERS}
    if sum(CLOCK_COMMA.search(line) is not None for line in lines) >= MIN_SHARE * len(lines):
        tables[","] = None
    single, several = (tables[sign] for sign in OF_BLANKS)
    if single is not None and several is not None:
        tables[OF_BLANKS[not _is_aligned(single, several)]] = None
    yield from filter(None, tables.values())


def _is_aligned(single: DelimitedTable, several: DelimitedTable) -> bool:
    """Return whether several blanks are one delimiter: else more lines are rows with one blank, or all the
    same.

    Args:
        single, several: the lines as tables by one blank, and by any number of blanks.
    """
    empty = any(not any(column) for column in zip(*single.rows[1:], strict=True))
    return empty or (several.share >= single.share and several.rows != single.rows)


def _refuse_long_records(lines: Sequence[str], delimiter: str) -> None:
    """Raise NotRead if single lines are no records, but most records of several lines are."""
    records, over = records_of(lines, delimiter)
    widths = Counter(map(len, records))
    width, number = widths.most_common(1)[0] if widths else (0, 0)
    if width < 2 or not over or number < MIN_SHARE * len(records) or len(records) < 2:
        return
    rows = [record for record in records if len(record) == width]
    columns = ([row[index] for row in rows[1:] if row[index]] for index in range(width))
    timed = any(kind_of(column).type == "timestamp" for column in columns if column)
    if timed or is_header(rows[0], rows[1:]):
        sign = "" if delimiter == "," else f", delimiter={delimiter!r}"
        raise NotRead(
            f"is CSV whose quoted values go over several lines: {len(records)} records in {len(lines)} "
            f"lines. transom reads a record a line. Make it so: {ONE_LINE.format(sign)}"
        )


def _is_sure(table: DelimitedTable, log: DetectedFormat) -> bool:
    """Return whether lines that could also be prose are a table: a header decides, if it is not the first
    line, or if blanks are the delimiter."""
    if table.delimiter not in OF_BLANKS and not table.above:
        return True
    return (
        head_of(table).names is not None
        and len(table.rows) > 2
        and len(table.rows[0]) > 2 - bool(table.above)
        and _dated(log)
    )


def _likely(candidate: tuple[DelimitedTable, DetectedFormat]) -> tuple[bool, bool, int]:
    """Return the sort key that selects the most likely table."""
    table, log = candidate
    return _has_time(log), log.options.get("header") is not False, len(table.rows[0])


def _has_time(log: DetectedFormat) -> bool:
    return log.options.get("header") is not False or _timed(log)


def _timed(log: DetectedFormat) -> bool:
    return any(kind_of(texts).type == "timestamp" for texts in log.fields.values() if texts)


def _dated(log: DetectedFormat) -> bool:
    """Return whether a column is a time, or a date whose time of day another column may have."""
    days = ([f"{text} 00:00:00" for text in texts[:200]] for texts in log.fields.values() if texts)
    return _timed(log) or any(times_of(day) is not None for day in days)


def _log(table: DelimitedTable) -> DetectedFormat:
    options: dict[str, object] = {} if table.delimiter == "," else {"delimiter": table.delimiter}
    options |= {"comment": table.comment} if table.comment else {}
    notes = []
    head = head_of(table)
    skipped = {"skip": head.data_line - 1} if head.data_line > 1 and not table.is_comment_above else {}
    if head.names is None:
        names = [f"field_{number}" for number in range(1, len(table.rows[0]) + 1)]
        notes.append("its first line names no fields: give them names here")
        options |= {"header": False, "names": names, **skipped}
    elif _unique(head.names) != head.names:
        names = _unique(head.names)
        twice = [name for name, times in Counter(head.names).items() if times > 1 and name.strip()]
        wrong = f"has a name twice, {', '.join(twice)}" if twice else "lacks a name"
        notes.append(f"the line that names its fields {wrong}; so the names stand here")
        options |= {"header": False, "names": names, "skip": head.data_line - 1}
    else:
        names = head.names
        if head.names_line != table.first_line or table.above:
            options["header"] = head.names_line
        if head.data_line - 1 > head.names_line and not table.is_comment_below(head):
            options |= {"header": head.names_line, "skip": head.data_line - 1}
    body = table.rows[head.data_row :]
    fields = {name: [row[index] for row in body if row[index]] for index, name in enumerate(names)}
    return DetectedFormat("csv", fields, {}, options, notes=tuple(notes))


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
    """Return whether rows are prose with commas in it."""
    cells = [cell for row in rows[:200] for cell in row]
    # JSON has blanks, too.
    return sum(cell.count(" ") > 4 and cell[0] not in "{[" for cell in cells) * 4 > len(cells)
