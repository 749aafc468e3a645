"""The fields of JSON objects by path, as in the job's reader."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from transom.cli.init.detected_format import MIN_SHARE
from transom.cli.init.infer_columns import NO_FIGURE
from transom.cli.init.infer_path import identifier
from transom.cli.init.infer_types import kind_of
from transom.formats.json.lines import Raw, json_text
from transom.formats.record_format import FieldType


def leaves(record: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every value that is no object, by its path."""
    for name, value in record.items():
        if isinstance(value, dict) and value:
            yield from leaves(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", value


def flat(records: Sequence[Mapping[str, Any]]) -> tuple[dict[str, list[str]], dict[str, FieldType]]:
    """Return the texts of every path, and the types that JSON itself determines."""
    fields: dict[str, list[str]] = {}
    kinds: dict[str, Counter[type]] = {}
    for record in records:
        for path, value in leaves(record):
            texts, counts = fields.setdefault(path, []), kinds.setdefault(path, Counter())
            if value is not None:
                texts.append(value if isinstance(value, str) else json_text(value))
                counts[type(value)] += 1
    # An object that is null in some records.
    for path in [
        path for path in fields if not kinds[path] and any(o.startswith(f"{path}.") for o in fields)
    ]:
        del fields[path], kinds[path]
    types: dict[str, FieldType] = {}
    for path, counts in kinds.items():
        if counts.keys() == {bool}:
            types[path] = "boolean"
        elif counts[Raw] < MIN_SHARE * counts.total() and not _is_quoted_number(path, fields[path]):
            # A text in JSON is intended as a text, unless it is a time.
            types[path] = "string"
    return fields, types


def _is_quoted_number(path: str, texts: Sequence[str]) -> bool:
    """Return whether all texts are numbers, except for names of ids, which are often quoted."""
    kind = kind_of(texts)
    return kind.type in ("integer", "number") and kind.share == 1 and not NO_FIGURE.search(identifier(path))
