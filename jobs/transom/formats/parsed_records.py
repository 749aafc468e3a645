"""The fields of records that no column and no time takes, as the shortest JSON text with sorted names."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

CONTROL = "[\x00-\x1f]"
"""The characters that JSON must escape, beside the quote and the backslash."""


@dataclass(frozen=True)
class ParsedRecords:
    """The result of a parser for some lines.

    Attributes:
        fields: every field of every line, as text or typed.
        rest: the undeclared fields of each line; None if `fields` has all fields, so that `of_fields` can
            compute it.
    """

    fields: Mapping[str, pa.Array]
    rest: pa.Array | None = None


def of_fields(fields: Mapping[str, pa.Array], declared: frozenset[str], rows: int) -> pa.Array:
    """Return the undeclared fields of each line as JSON; null if none has a value."""
    parts = [member(f",{json_value_text(name)}", fields[name]) for name in sorted(fields.keys() - declared)]
    if not parts:
        return pa.nulls(rows, pa.string())
    # Arrow's join that skips nulls returns no row if there are only nulls.
    joined = pc.binary_join_element_wise(*(pc.fill_null(part, "") for part in parts), "")
    return braced(pc.utf8_slice_codeunits(joined, 1))


def member(name: str | pa.Array, values: pa.Array) -> pa.Array:
    """Return each value as a member of an object, `"name":"value"`; null stays null."""
    return pc.binary_join_element_wise(name, ':"', escaped(values), '"', "")


def braced(members: pa.Array) -> pa.Array:
    """Return members as an object; null if there are none."""
    nonempty = pc.if_else(pc.equal(members, ""), pa.scalar(None, pa.string()), members)
    return pc.binary_join_element_wise("{", nonempty, "}", "")


def escaped(values: pa.Array) -> pa.Array:
    """Escape texts for a JSON string."""
    values = pc.replace_substring(pc.replace_substring(values, "\\", "\\\\"), '"', '\\"')
    if pc.any(pc.match_substring_regex(values, CONTROL)).as_py():
        for code in range(32):
            values = pc.replace_substring(values, chr(code), json.dumps(chr(code))[1:-1])
    return values


def json_value_text(value: Any) -> str:
    """Return the shortest JSON text of a value, with sorted names."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
