"""Parse traces of calls, one per line: `name [arg=value ...] [=> return]`, with or without words before."""

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transom.formats.pair_scanner import OfPairs, Scanner, Unterminated
from transom.formats.parsed_records import ParsedRecords
from transom.formats.record_format import CALL, RETURN, RecordFormat
from transom.formats.typed_columns import Rejections, mask

ARROW = "=>"
BLANKS = " \t"
WORD = r"[^ \t]+"
NAME = r'[^ \t="]+'
ARGUMENTS = r"(?:[ \t]+[^ \t=]+=[^ \t]*)*"
RESULT = rf"(?:[ \t]+{ARROW}(?:[ \t]+(?P<{RETURN}>.*?))?)?"


class Syscalls(OfPairs):
    """Fields: the words of `lead`, `call`, `return`, and each argument by its name.

    A value may be quoted, as in `kv`. If a line has an argument twice, the first counts; an argument with the
    name of another field is left out. The return extends to the line's end.
    """

    def __init__(self, layout: RecordFormat) -> None:
        super().__init__(layout, Scanner())
        self._own = (*self._lead, CALL, RETURN)
        heads = "".join(rf"(?P<h{i}>{WORD})[ \t]+" for i in range(len(self._lead)))
        self._line = rf"^[ \t]*{heads}(?P<{CALL}>{NAME})(?P<args>{ARGUMENTS}){RESULT}[ \t]*$"
        self._form = " ".join([*self._lead, f"name [arg=value ...] [{ARROW} return]"])

    def parse(self, text: pa.Array, refused: Rejections) -> ParsedRecords:
        """Return every declared field as text, null if it is empty."""
        quoted = mask(pc.match_substring(text, '"'))
        groups = pc.extract_regex(pc.if_else(pa.array(quoted), pa.scalar(None, text.type), text), self._line)
        own = {name: pc.struct_field(groups, f"h{i}") for i, name in enumerate(self._lead)}
        own |= {name: pc.struct_field(groups, name) for name in (CALL, RETURN)}
        arguments = pc.struct_field(groups, "args")
        rows = {
            row: self._quoted_line(text[row].as_py(), row, refused) for row in np.flatnonzero(quoted).tolist()
        }
        if rows:
            own = {name: _patched(values, {row: fields.get(name) for row, fields in rows.items()})
                   for name, values in own.items()}  # fmt: skip
            arguments = _patched(arguments, {row: fields.get("args") for row, fields in rows.items()})
        refused.add(mask(pc.and_(pc.is_valid(text), pc.is_null(own[CALL]))), "no_match", expected=self._form)
        return self._records(own, self._scanner.pairs(arguments), refused)

    def _quoted_line(self, line: str, row: int, refused: Rejections) -> dict[str, str]:
        """Return the fields of a line with quotes, and the text of its arguments; empty for another form."""
        words = self._scanner.words(line)
        try:
            heads = [word for _, word in zip(range(len(self._lead) + 1), words, strict=False)]
            if len(heads) <= len(self._lead) or not re.fullmatch(NAME, heads[-1].text):
                return {}
            fields = {name: word.text for name, word in zip((*self._lead, CALL), heads, strict=True)}
            end, given = heads[-1].end, ""
            for word in words:
                if word.text == ARROW:
                    given = line[word.end :].strip(BLANKS)
                    break
                if word.name is None:
                    return {}
                end = word.end
        except Unterminated:
            refused.add_one(row, "unterminated_quote")
            return {}
        return {**fields, "args": line[heads[-1].end : end], RETURN: given}


def _patched(values: pa.Array, others: dict[int, str | None]) -> pa.Array:
    changed = values.to_pylist()
    for row, value in others.items():
        changed[row] = value
    return pa.array(changed, pa.string())
