"""What records hold beside the columns and the time, as the shortest JSON text with sorted names."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

CONTROL = "[\x00-\x1f]"
"""What JSON has to escape, beside the quote and the backslash."""


@dataclass(frozen=True)
class ParsedRecords:
    """What a parser made of some lines.

    Attributes:
        fields: every field of every line, as text or typed.
        rest: what the lines hold beside the fields that are wanted; None where the parser leaves it to
            `of_fields`, since `fields` are all that there is.
    """

    fields: Mapping[str, pa.Array]
    rest: pa.Array | None = None


def of_fields(fields: Mapping[str, pa.Array], wanted: frozenset[str], rows: int) -> pa.Array:
    """The fields that are not wanted, of each line; null where none of them has a value."""
    parts = [member(f",{json_value_text(name)}", fields[name]) for name in sorted(fields.keys() - wanted)]
    if not parts:
        return pa.nulls(rows, pa.string())
    # Arrow's join that skips nulls gives no row at all where there are only nulls.
    joined = pc.binary_join_element_wise(*(pc.fill_null(part, "") for part in parts), "")
    return braced(pc.utf8_slice_codeunits(joined, 1))


def member(name: str | pa.Array, values: pa.Array) -> pa.Array:
    """Each value as a member of an object, behind its name, `"name":"value"`; null stays null."""
    return pc.binary_join_element_wise(name, ':"', escaped(values), '"', "")


def braced(members: pa.Array) -> pa.Array:
    """Members as an object; null where there are none."""
    there = pc.if_else(pc.equal(members, ""), pa.scalar(None, pa.string()), members)
    return pc.binary_join_element_wise("{", there, "}", "")


def escaped(values: pa.Array) -> pa.Array:
    """Texts as they stand between the quotes of JSON."""
    values = pc.replace_substring(pc.replace_substring(values, "\\", "\\\\"), '"', '\\"')
    if pc.any(pc.match_substring_regex(values, CONTROL)).as_py():
        for code in range(32):
            values = pc.replace_substring(values, chr(code), json.dumps(chr(code))[1:-1])
    return values


def json_value_text(value: Any) -> str:
    """The shortest JSON text of a value, with sorted names."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
