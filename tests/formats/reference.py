"""The plain parser of a log, record by record: the expected result of the vectorised parsers.

A file's bytes are split into lines. Each line is an event, a rejection or a header line, and no content of a
file raises. A line is rejected for the first fault of: its format, its time, its columns in declared order,
the time range of its file.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from tests.formats.reference_forms import form_of
from tests.formats.reference_json import Json
from tests.formats.reference_lines import Refused, lines, read_paths
from tests.formats.reference_values import event_time, value_of
from transom.formats.record_format import RecordFormat, Span


@dataclass
class Reading:
    """The result of a file: (line, event_time, columns), (line, reason, column, detail), and header lines."""

    events: list[tuple[int, datetime, dict[str, object]]] = field(default_factory=list)
    rejections: list[tuple[int, str, str | None, str | None]] = field(default_factory=list)
    header_lines: int = 0
    columns: set[str] = field(default_factory=set)
    unknown: list[str] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)


def read(
    data: bytes, layout: RecordFormat, span: Span | None = None, start: datetime | None = None
) -> Reading:
    """Parse a whole file."""
    cut: Sequence[bytes | Json.Value | Refused] = lines(data)
    form = form_of(layout, lines(data))
    if "records" in layout.options:
        assert isinstance(form, Json)
        cut = [record for line in lines(data) for record in form.records(line)]
    reading = Reading()
    shown: set[str] = set()
    brought: set[str] = set()
    records = 0
    for number, line in enumerate(cut, 1):
        try:
            if isinstance(line, Refused):
                raise line
            result = form.record(line)
            if result is None:
                reading.header_lines += 1
                continue
            records += 1
            record = result.fields
            shown |= result.shown
            brought |= {
                name
                for name in result.shown - result.own
                if layout.format != "zeek" or not name.startswith("_")
            }
            time = event_time(record, layout, number, start)
            columns = {column.name: value_of(record, column) for column in layout.fields}
            if layout.keep_rest:
                columns["rest"] = result.rest
            if span is not None and not span.start <= time < span.end:
                inside = f"{span.start:%Y-%m-%d %H:%M:%S}Z to {span.end:%Y-%m-%d %H:%M:%S}Z"
                raise Refused("outside_holds", f"{time:%Y-%m-%d %H:%M:%S.%f}Z", expected=inside)
            reading.events.append((number, time, columns))
        except Refused as refused:
            reading.rejections.append((number, refused.reason, refused.column, refused.detail))
    reading.columns = form.columns
    selected = read_paths(layout)
    if isinstance(form, Json):
        selected |= {name for name in brought if any(path.startswith(f"{name}.") for path in selected)}
    reading.unknown = sorted({name[:200] for name in brought - selected})[:100]
    if records:
        reading.absent = [column.name for column in layout.fields if not shown.intersection(column.paths)]
    return reading
