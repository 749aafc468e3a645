"""Parse lines of pairs of names and values, `a=1 b="two words"`, and traces of calls.

A pair is a word with a name before an assign; other words are no pairs. A value that begins with a quote
extends to the next quote that is neither doubled nor escaped by a backslash. A backslash escapes a quote or a
backslash. Text after the quote up to the separator belongs to the value. An empty value is no
value.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transom.formats.parser import ParsedRecords, Parser, json_members, json_name, json_objects
from transom.formats.record_format import CALL, RETURN, RecordFormat
from transom.formats.regex import named_groups
from transom.formats.rejections import Int64s, Mask, Rejections, mask, null_where

LINE_END = ord("\n")
BOUNDARY, ASSIGN = 1, 2
ARROW = "=>"
INSIDE = r'(?:[^"\\]|\\.|"")*'
"""The text between quotes."""
VALUE = rf'(?:"{INSIDE}"(?:[^" \t][^ \t]*)?|[^" \t][^ \t]*)?'
WORD = rf"(?:[^ \t=]+(?:={VALUE})?|=[^ \t]*)"
NAME = r'[^ \t="]+'
ARGUMENTS = rf"(?:[ \t]+[^ \t=]+={VALUE})*"
RESULT = rf"(?:[ \t]+{ARROW}(?:[ \t]+(?P<{RETURN}>.*?))?)?"


@dataclass(frozen=True)
class Pairs:
    """The pairs of some lines.

    Attributes:
        lines: the number of lines.
        rows: the line of each pair, from 0, shape (pairs,); pairs of a line are in order.
        names: the name of each pair.
        values: the value of each pair; null if it is empty.
        unterminated: lines with a quote that is open at the end; they have no pairs.
    """

    lines: int
    rows: Int64s
    names: pa.Array
    values: pa.Array
    unterminated: Sequence[int]

    @cached_property
    def _encoded(self) -> tuple[dict[str, int], Int64s]:
        encoded = self.names.dictionary_encode()
        codes = encoded.indices.to_numpy(zero_copy_only=False)
        return {name: code for code, name in enumerate(encoded.dictionary.to_pylist())}, codes

    @property
    def distinct(self) -> set[str]:
        """All names."""
        return set(self._encoded[0])

    def field(self, name: str) -> pa.Array:
        """Return the first value of a name in each line, null if there is none."""
        known, codes = self._encoded
        if name not in known:
            return pa.nulls(self.lines, pa.string())
        places = np.flatnonzero(codes == known[name])[::-1]
        first = np.full(self.lines, -1, dtype=np.int64)
        first[self.rows[places]] = places  # backwards, so that the first of a line is written last
        return self.values.take(pa.array(first, mask=first < 0))

    def prepend(self, fields: Mapping[str, pa.Array]) -> "Pairs":
        """Return the pairs with fields of the lines before them."""
        rows = np.r_[np.tile(np.arange(self.lines, dtype=np.int64), len(fields)), self.rows]
        names = pa.concat_arrays([*(pa.repeat(name, self.lines) for name in fields), self.names])
        return replace(self, rows=rows, names=names, values=pa.concat_arrays([*fields.values(), self.values]))

    def rest(self, excluded: frozenset[str]) -> pa.Array:
        """Return the pairs of each line with other names as JSON; null if there are none."""
        known, codes = self._encoded
        ordered = sorted(known)
        rank = np.empty(len(ordered), dtype=np.int64)
        rank[[known[name] for name in ordered]] = np.arange(len(ordered))
        included = np.array([name not in excluded for name in known], dtype=bool)
        chosen = np.flatnonzero(included[codes]) if len(codes) else np.empty(0, dtype=np.int64)
        # By line, then by name; the first of equal names.
        _, first = np.unique(self.rows[chosen] * len(ordered) + rank[codes[chosen]], return_index=True)
        chosen = chosen[first]
        values = self.values.take(pa.array(chosen))
        has_value = mask(pc.is_valid(values))
        chosen, values = chosen[has_value], values.filter(pa.array(has_value))
        heads = pa.array([json_name(name) for name in known], pa.string())
        members = json_members(heads.take(pa.array(codes[chosen])), values)
        ends = np.cumsum(np.bincount(self.rows[chosen], minlength=self.lines))
        offsets = pa.array(np.r_[0, ends].astype(np.int32))
        return json_objects(pc.binary_join(pa.ListArray.from_arrays(offsets, members), ","))


class PairParser(Parser):
    """Base of the formats of pairs: leading words by position, and fields named by the lines."""

    def __init__(self, layout: RecordFormat) -> None:
        super().__init__(layout)
        options = {"separator": " \t", "assign": "=", "quote": '"', **layout.options}
        separators, assign, quote = (str(options[name]) for name in ("separator", "assign", "quote"))
        self._keeps_rest = layout.keep_rest
        lead = layout.options.get("lead", ())
        self._lead = [str(name) for name in lead] if isinstance(lead, Sequence) else []
        self._separators, self._assign, self._quote = separators, assign, quote
        between, equals, mark = map(re.escape, (separators, assign, quote))
        inside = rf"(?:\\[{mark}\\]|{mark}{mark}|[^{mark}])*+"
        self._word = re.compile(
            rf"[{between}]*(?:([^{between}{equals}]+){equals}"
            rf"(?:{mark}({inside}){mark}([^{between}]*)|(?!{mark})([^{between}]*))|([^{between}]+))"
        )
        self._open = re.compile(rf"[^{between}{equals}]+{equals}{mark}")
        self._escaped = re.compile(rf"\\([{mark}\\])|{mark}({mark})")
        self._table = np.zeros(256, dtype=np.uint8)
        self._table[[LINE_END, *separators.encode()]] = BOUNDARY
        self._table[ord(assign)] = ASSIGN

    def _line_pairs(self, line: str) -> list[tuple[str, str]] | None:
        """Return the pairs of a line; None if a quote is open at its end."""
        pairs = []
        for name, quoted, tail, plain, word in (match.groups() for match in self._word.finditer(line)):
            if word is not None and self._open.match(word):
                return None
            if word is None and (name := name.lstrip(" ")):
                value = plain if quoted is None else self._escaped.sub(r"\1\2", quoted) + tail
                pairs.append((name, value))
        return pairs

    def pairs(self, text: pa.Array) -> Pairs:
        """Return the pairs of lines; a null line has none."""
        odd = self._surely_odd(text)
        data = _joined(text, odd)
        letters = np.frombuffer(data, dtype=np.uint8)
        marks = np.flatnonzero(letters == ord(self._quote))
        # The remaining lines have an even number of quotes, which open and close alternately.
        wrong = marks[1::2][self._table[letters[marks[1::2] + 1]] != BOUNDARY]
        *plain, values_at = self._plain(data)
        if len(marks):
            # A quote that does not begin a value is an ordinary letter.
            wrong = np.r_[wrong, np.setdiff1d(marks[0::2], values_at, assume_unique=True)]
        if len(wrong):
            ends = np.flatnonzero(letters == LINE_END)
            odd[np.searchsorted(ends, wrong) - 1] = True
            *plain, _ = self._plain(_joined(text, odd))
        return self._with_odd(text, odd, *plain)

    def _surely_odd(self, text: pa.Array) -> Mask:
        """Return lines with an odd number of quotes, or with quotes and escapes."""
        marks = pc.count_substring(text, self._quote)
        if not pc.max(marks).as_py():
            return np.zeros(len(text), dtype=bool)
        odd = mask(pc.equal(pc.bit_wise_and(marks, 1), 1))
        escapes = mask(pc.match_substring_regex(text, rf"\\[{re.escape(self._quote)}\\]"))
        return odd | (escapes & mask(pc.greater(marks, 0)))

    def _plain(self, data: bytes) -> tuple[Int64s, pa.Array, pa.Array, Int64s]:
        """Return the line, the name and the value of each pair, and the position of its value in the
        block."""
        letters = np.frombuffer(data, dtype=np.uint8)
        kinds = self._table[letters]
        marks = letters == ord(self._quote)
        if marks.any():
            kinds[np.bitwise_xor.accumulate(marks)] = 0
        places = np.flatnonzero(kinds)
        bounds = np.flatnonzero(kinds[places] == BOUNDARY)
        begins = places[bounds[:-1]]
        rows = np.cumsum(letters[begins] == LINE_END) - 1
        # A word is a pair if the next mark after its beginning is an assign with a name before it.
        first, end = places[bounds[:-1] + 1], places[bounds[1:]]
        pair = (first < end) & (first > begins + 1)
        rows, begins, first, end = rows[pair], begins[pair] + 1, first[pair], end[pair]
        start = first + 1
        quoted = (start < end) & (letters[start] == ord(self._quote))
        offsets = np.column_stack((begins, first, start + quoted, end - quoted)).ravel()
        if not len(rows):
            return rows, pa.array([], pa.string()), pa.array([], pa.string()), start
        texts = pa.LargeStringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(data))
        starts = np.arange(0, len(offsets), 4)
        names, values = (texts.take(pa.array(at)).cast(pa.string()) for at in (starts, starts + 2))
        if " " not in self._separators:
            names = pc.utf8_ltrim(names, " ")
            named = pc.not_equal(names, "")
            rows, names, values = rows[mask(named)], names.filter(named), values.filter(named)
        return rows, names, values, start

    def _with_odd(self, text: pa.Array, odd: Mask, rows: Int64s, names: pa.Array, values: pa.Array) -> Pairs:
        unterminated: list[int] = []
        odd_pairs: list[tuple[int, str, str]] = []
        for row in np.flatnonzero(odd).tolist():
            pairs = self._line_pairs(text[row].as_py())
            if pairs is None:
                unterminated.append(row)
            else:
                odd_pairs += [(row, name, value) for name, value in pairs]
        if odd_pairs:
            odd_rows, *odd_texts = zip(*odd_pairs, strict=True)
            rows = np.r_[rows, odd_rows]
            names, values = map(pa.concat_arrays, zip((names, values), map(pa.array, odd_texts), strict=True))
        return Pairs(len(text), rows, names, null_where(pc.equal(values, ""), values), unterminated)

    def _records(self, leading: dict[str, pa.Array], pairs: Pairs, refused: Rejections) -> ParsedRecords:
        """Return the fields by position, and the pairs without those that have the name of such a field."""
        leading = {name: null_where(pc.equal(values, ""), values) for name, values in leading.items()}
        if not refused.any.all():
            present = (name for name, values in leading.items() if values.null_count < len(values))
            self.drift.observe(present, declared=True)
            self.drift.observe(pairs.distinct.difference(leading))
        paths = self.drift.paths
        fields = leading | {path: pairs.field(path) for path in sorted(paths - leading.keys())}
        return ParsedRecords(fields, pairs.prepend(leading).rest(paths) if self._keeps_rest else None)


def _joined(text: pa.Array, without: Mask) -> bytes:
    """Join lines with line ends around them; lines in the mask and null are empty."""
    selected = pc.if_else(pa.array(without), "", text)
    return ("\n" + "\n".join(pc.fill_null(selected, "").to_pylist()) + "\n").encode()


class KeyValue(PairParser):
    """Fields by name; if a line has a name twice, the first counts.

    The words of `lead` are fields by position: the first words of the line, between separators; quotes and
    assigns are ordinary letters there. Other words that are no pairs, such as flags, are ignored. A line
    without any pair after the `lead` is refused.
    """

    def __init__(self, layout: RecordFormat) -> None:
        super().__init__(layout)
        between = re.escape(self._separators)
        heads = "".join(rf"(?P<h{i}>[^{between}]+)[{between}]+" for i in range(len(self._lead)))
        after_lead = f", after {' '.join(self._lead)}" if self._lead else ""
        self._form = f"a line with name{self._assign}value in it{after_lead}"
        self._line = rf"^[{between}]*{heads}(?P<pairs>.*)$"

    def parse(self, text: pa.Array, refused: Rejections) -> ParsedRecords:
        """Return every declared field as text, null if it is empty."""
        leading: dict[str, pa.Array] = {}
        without = mask(text.is_valid())
        if self._lead:
            split = named_groups(pc.extract_regex(text, self._line))
            leading = {name: pc.utf8_trim(split[f"h{i}"], " ") for i, name in enumerate(self._lead)}
            text = split["pairs"]
        pairs = self.pairs(text)
        for row in pairs.unterminated:
            refused.add_one(row, "unterminated_quote")
        without[pairs.rows] = False
        refused.add(without, "no_match", expected=self._form)
        return self._records(leading, pairs, refused)


class Syscalls(PairParser):
    """Fields: the words of `lead`, `call`, `return`, and each argument by its name.

    A value may be quoted, as in `kv`. If a line has an argument twice, the first counts; an argument with the
    name of another field is ignored. The return extends to the line's end.
    """

    def __init__(self, layout: RecordFormat) -> None:
        super().__init__(layout)
        lead = len(self._lead)
        heads = "".join(rf"(?P<h{i}>{WORD})[ \t]+" for i in range(lead))
        self._line = rf"^[ \t]*{heads}(?P<{CALL}>{NAME})(?P<args>{ARGUMENTS}){RESULT}[ \t]*$"
        before = rf"(?:{WORD}[ \t]+){{0,{lead}}}|(?:{WORD}[ \t]+){{{lead}}}{NAME}{ARGUMENTS}[ \t]+"
        self._open_line = rf'^[ \t]*(?:{before})[^ \t=]+="{INSIDE}\\?$'
        self._form = " ".join([*self._lead, f"name [arg=value ...] [{ARROW} return]"])

    def parse(self, text: pa.Array, refused: Rejections) -> ParsedRecords:
        """Return every declared field as text, null if it is empty."""
        groups = named_groups(pc.extract_regex(text, self._line))
        unmatched = pc.and_(pc.is_valid(text), pc.is_null(groups[CALL]))
        is_open = pc.match_substring_regex(pc.if_else(unmatched, text, ""), self._open_line)
        refused.add(mask(is_open), "unterminated_quote")
        refused.add(mask(unmatched), "no_match", expected=self._form)
        fields = {name: groups[f"h{i}"] for i, name in enumerate(self._lead)}
        fields |= {CALL: groups[CALL], RETURN: groups[RETURN]}
        return self._records(fields, self.pairs(groups["args"]), refused)
