"""Read lines with the job's readers, before there is a stream file."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from transom.formats.json.lines import parse_json
from transom.formats.json.records import Text, explode_records
from transom.formats.record_format import EventTime, RecordFormat
from transom.formats.regex import Regex
from transom.formats.typed_columns import Rejections


def object_of(line: str) -> dict[str, Any] | None:
    """Return the object that a line is, numbers as their own text; None where it is none."""
    try:
        record = parse_json(line) if line.lstrip()[:1] == "{" else None
    except ValueError:
        return None
    return record if isinstance(record, dict) else None


def records_of(lines: Sequence[str], path: str, around: Sequence[str]) -> list[dict[str, Any]]:
    """Return the records in lines of JSON, each with the values that it takes from the objects around it.

    Args:
        path: the path of the records, such as `Records[]`.
        around: paths of values around them, such as `$.sent`.
    """
    strings = pa.array(lines, pa.string())
    text = Text(strings, strings.cast(pa.large_binary()), Rejections.none(len(lines)))
    texts = (record for part in explode_records(text, path, around) for record in part.strings.to_pylist())
    objects = (object_of(record) for record in texts if record is not None)
    return [record for record in objects if record is not None]


def groups_of(lines: Sequence[str], pattern: str) -> tuple[dict[str, list[str]], int]:
    """Return the texts of each group of a pattern, and the number of lines that it matches."""
    layout = RecordFormat("regex", (), EventTime(()), {"pattern": pattern})
    refused = Rejections.none(len(lines))
    records = Regex(layout).parse(pa.array(lines, pa.string()), refused)
    fields = {name: texts.drop_null().to_pylist() for name, texts in records.fields.items()}
    return fields, len(lines) - int(refused.any.sum())
