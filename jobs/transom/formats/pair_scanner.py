"""Scan pairs of names and values, `a=1 b="two words"`: for all lines at once, and for one line.

A pair is a word with an assign that has a name before it; other words are no pairs. A value that begins with
a quote extends to the next quote that is neither doubled nor escaped by a backslash; a backslash escapes a
quote or a backslash. Text after the quote up to the separator belongs to the value. An empty value is no
value.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from transom.formats import parsed_records as rest
from transom.formats.field_drift import FieldDrift
from transom.formats.parsed_records import ParsedRecords
from transom.formats.record_format import RecordFormat
from transom.formats.typed_columns import Rejections, mask

Rows = npt.NDArray[np.int64]
LINE_END = ord("\n")
BOUNDARY, ASSIGN = 1, 2


class Unterminated(ValueError):
    """A quote is open at the line's end."""


@dataclass(frozen=True)
class Word:
    """A word of a line.

    Attributes:
        text: its text in the line.
        end: its end in the line.
        name, value: of a pair; the name is None for other words.
    """

    text: str
    end: int
    name: str | None = None
    value: str = ""


@dataclass(frozen=True)
class Pairs:
    """The pairs of some lines.

    Attributes:
        lines: the number of lines.
        rows: the line of each pair, from 0; pairs of a line are in order.
        unterminated: lines with a quote that is open at the end; they have no pairs.
    """

    lines: int
    rows: Rows
    names: pa.Array
    values: pa.Array
    unterminated: Sequence[int]

    @cached_property
    def _encoded(self) -> tuple[dict[str, int], Rows]:
        encoded = self.names.dictionary_encode()
        codes = encoded.indices.to_numpy(zero_copy_only=False)
        return {name: code for code, name in enumerate(encoded.dictionary.to_pylist())}, codes

    @property
    def distinct(self) -> set[str]:
        """All names."""
        return set(self._encoded[0])

    def field(self, name: str) -> pa.Array:
        """Return the first value of a name in each line."""
        known, codes = self._encoded
        if name not in known:
            return pa.nulls(self.lines, pa.string())
        places = np.flatnonzero(codes == known[name])[::-1]
        first = np.full(self.lines, -1, dtype=np.int64)
        first[self.rows[places]] = places  # backwards, so that the first of a line is written last
        return self.values.take(pa.array(first, mask=first < 0))

    def prepend(self, fields: Mapping[str, pa.Array]) -> "Pairs":
        """Return the pairs with fields of the lines before them."""
        if not fields:
            return self
        rows = np.arange(self.lines, dtype=np.int64)
        names = [pa.repeat(name, self.lines) for name in fields]
        return Pairs(
            self.lines,
            np.concatenate([*([rows] * len(fields)), self.rows]),
            pa.concat_arrays([*names, self.names]),
            pa.concat_arrays([*fields.values(), self.values]),
            self.unterminated,
        )

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
        heads = pa.array([rest.json_value_text(name) for name in known], pa.string())
        members = rest.member(heads.take(pa.array(codes[chosen])), values)
        ends = np.cumsum(np.bincount(self.rows[chosen], minlength=self.lines))
        offsets = pa.array(np.r_[0, ends].astype(np.int32))
        return rest.braced(pc.binary_join(pa.ListArray.from_arrays(offsets, members), ","))


class Scanner:
    """Scans pairs."""

    def __init__(self, separator: str | None = None, assign: str = "=", quote: str = '"') -> None:
        """Create a scanner. Each argument is one ASCII character; no separator means blanks and tabs."""
        self._separators = " \t" if separator is None else separator
        self._assign, self._quote = assign, quote
        between, equals, mark = (re.escape(text) for text in (self._separators, assign, quote))
        inside = rf"(?:\\[{mark}\\]|{mark}{mark}|[^{mark}])*+"
        self._word = re.compile(
            rf"[{between}]*(?:([^{between}{equals}]+){equals}"
            rf"(?:{mark}({inside}){mark}([^{between}]*)|(?!{mark})([^{between}]*))|([^{between}]+))"
        )
        self._open = re.compile(rf"[^{between}{equals}]+{equals}{mark}")
        self._escaped = re.compile(rf"\\([{mark}\\])|{mark}({mark})")
        self._table = np.zeros(256, dtype=np.uint8)
        self._table[[LINE_END, *self._separators.encode()]] = BOUNDARY
        self._table[ord(assign)] = ASSIGN

    def words(self, line: str) -> Iterator[Word]:
        """Yield the words of a line.

        Raises:
            Unterminated: a quote is open at its end.
        """
        for match in self._word.finditer(line):
            name, quoted, tail, plain, word = match.groups()
            if word is not None:
                if self._open.match(word):
                    raise Unterminated
                yield Word(word, match.end())
                continue
            text = match[0].lstrip(self._separators)
            name = name.lstrip(" ")
            value = plain if quoted is None else self._escaped.sub(r"\1\2", quoted) + tail
            yield Word(text, match.end(), name or None, value)

    def pairs(self, text: pa.Array) -> Pairs:
        """Return the pairs of lines; null has none."""
        odd = self._surely_odd(text)
        data = _joined(text, odd)
        letters = np.frombuffer(data, dtype=np.uint8)
        marks = np.flatnonzero(letters == ord(self._quote))
        # The remaining lines have an even number of quotes, which open and close alternately.
        wrong = marks[1::2][self._table[letters[marks[1::2] + 1]] != BOUNDARY]
        *plain, values_at = self._plain(data, letters)
        if len(marks):
            # A quote that does not begin a value is an ordinary letter.
            wrong = np.r_[wrong, np.setdiff1d(marks[0::2], values_at, assume_unique=True)]
        if len(wrong):
            ends = np.flatnonzero(letters == LINE_END)
            odd[np.searchsorted(ends, wrong) - 1] = True
            data = _joined(text, odd)
            *plain, _ = self._plain(data, np.frombuffer(data, dtype=np.uint8))
        return self._with_odd(text, odd, *plain)

    def _surely_odd(self, text: pa.Array) -> npt.NDArray[np.bool_]:
        """Return lines with an odd number of quotes, or with quotes and escapes."""
        marks = pc.count_substring(text, self._quote)
        if not pc.max(marks).as_py():
            return np.zeros(len(text), dtype=bool)
        odd = mask(pc.equal(pc.bit_wise_and(marks, 1), 1))
        escapes = mask(pc.match_substring_regex(text, rf"\\[{re.escape(self._quote)}\\]"))
        return odd | (escapes & mask(pc.greater(marks, 0)))

    def _plain(self, data: bytes, letters: npt.NDArray[np.uint8]) -> tuple[Rows, pa.Array, pa.Array, Rows]:
        """Return the line, the name and the value of each pair, and the position of its value in the
        block."""
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

    def _with_odd(
        self, text: pa.Array, odd: npt.NDArray[np.bool_], rows: Rows, names: pa.Array, values: pa.Array
    ) -> Pairs:
        unterminated: list[int] = []
        odd_pairs: list[tuple[int, str, str]] = []
        for row in np.flatnonzero(odd).tolist():
            try:
                words = list(self.words(text[row].as_py()))
            except Unterminated:
                unterminated.append(row)
                continue
            odd_pairs += [(row, word.name, word.value) for word in words if word.name is not None]
        if odd_pairs:
            others = list(zip(*odd_pairs, strict=True))
            rows = np.r_[rows, np.array(others[0], dtype=np.int64)]
            names = pa.concat_arrays([names, pa.array(others[1], pa.string())])
            values = pa.concat_arrays([values, pa.array(others[2], pa.string())])
        values = pc.if_else(pc.equal(values, ""), pa.scalar(None, pa.string()), values)
        return Pairs(len(text), rows, names, values, unterminated)


def _joined(text: pa.Array, without: npt.NDArray[np.bool_]) -> bytes:
    """Join lines with line ends around them; lines in the mask and null are empty."""
    selected = pc.if_else(pa.array(without), "", text)
    return ("\n" + "\n".join(pc.fill_null(selected, "").to_pylist()) + "\n").encode()


class OfPairs:
    """Base of formats of pairs: no header lines, leading words by position, and fields that only the lines
    name."""

    columns: frozenset[str] = frozenset()

    def __init__(self, layout: RecordFormat, scanner: Scanner) -> None:
        self._scanner = scanner
        self._keeps_rest = layout.keep_rest
        lead = layout.options.get("lead", ())
        self._lead = [str(name) for name in lead] if isinstance(lead, Sequence) else []
        self.shown = FieldDrift(layout)

    def header(self, text: pa.Array) -> int:
        """Return 0: the format has no header lines."""
        return 0

    def _records(self, own: dict[str, pa.Array], pairs: Pairs, refused: Rejections) -> ParsedRecords:
        """Return the fields by position, and the pairs without those that have the name of such a field."""
        nothing = pa.scalar(None, pa.string())
        own = {name: pc.if_else(pc.equal(values, ""), nothing, values) for name, values in own.items()}
        if not refused.any.all():
            present = (name for name, values in own.items() if values.null_count < len(values))
            self.shown.show(present, declared=True)
            self.shown.show(pairs.distinct.difference(own))
        paths = self.shown.paths
        fields = own | {path: pairs.field(path) for path in sorted(paths - own.keys())}
        return ParsedRecords(fields, pairs.prepend(own).rest(paths) if self._keeps_rest else None)
