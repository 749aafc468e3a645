"""Pairs of names and values in a line, `a=1 b="two words"`: of all lines at once, and of one line.

A pair is a word that holds an assign with something before it; other words are no pairs. A value that
begins with a quote goes on to the next one that is neither doubled nor behind a backslash, which takes a
quote or a backslash with it; what follows up to the separator belongs to the value as well. An empty value
is none.
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
        text: as it stands there.
        end: where it ends in the line.
        name, value: of a pair; the name of another word is None.
    """

    text: str
    end: int
    name: str | None = None
    value: str = ""


@dataclass(frozen=True)
class Pairs:
    """The pairs of some lines.

    Attributes:
        lines: how many lines there are.
        rows: the line of each pair, from 0; pairs of one line are in their order.
        unterminated: lines with a quote that is open at their end; of these there are no pairs.
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
        """Every name that there is."""
        return set(self._encoded[0])

    def field(self, name: str) -> pa.Array:
        """The first value of a name, of each line."""
        known, codes = self._encoded
        if name not in known:
            return pa.nulls(self.lines, pa.string())
        found = np.flatnonzero(codes == known[name])[::-1]
        first = np.full(self.lines, -1, dtype=np.int64)
        first[self.rows[found]] = found  # the last to be put is the first of its line
        return self.values.take(pa.array(first, mask=first < 0))

    def behind(self, fields: Mapping[str, pa.Array]) -> "Pairs":
        """The pairs with fields of the lines before them."""
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

    def rest(self, taken: frozenset[str]) -> pa.Array:
        """What the lines hold under other names than these, as JSON; null where that is nothing."""
        known, codes = self._encoded
        ordered = sorted(known)
        rank = np.empty(len(ordered), dtype=np.int64)
        rank[[known[name] for name in ordered]] = np.arange(len(ordered))
        left = np.array([name not in taken for name in known], dtype=bool)
        here = np.flatnonzero(left[codes]) if len(codes) else np.empty(0, dtype=np.int64)
        # By line, then by name, and of one name the first.
        _, first = np.unique(self.rows[here] * len(ordered) + rank[codes[here]], return_index=True)
        here = here[first]
        values = self.values.take(pa.array(here))
        there = mask(pc.is_valid(values))
        here, values = here[there], values.filter(pa.array(there))
        heads = pa.array([rest.json_value_text(name) for name in known], pa.string())
        members = rest.member(heads.take(pa.array(codes[here])), values)
        ends = np.cumsum(np.bincount(self.rows[here], minlength=self.lines))
        offsets = pa.array(np.r_[0, ends].astype(np.int32))
        return rest.braced(pc.binary_join(pa.ListArray.from_arrays(offsets, members), ","))


class Scanner:
    """Reads pairs."""

    def __init__(self, separator: str | None = None, assign: str = "=", quote: str = '"') -> None:
        """Each one ASCII character; no separator is blanks and tabs."""
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
        """The words of a line.

        Raises:
            Unterminated: a quote is open at its end.
        """
        for found in self._word.finditer(line):
            name, quoted, tail, plain, word = found.groups()
            if word is not None:
                if self._open.match(word):
                    raise Unterminated
                yield Word(word, found.end())
                continue
            text = found[0].lstrip(self._separators)
            name = name.lstrip(" ")
            value = plain if quoted is None else self._escaped.sub(r"\1\2", quoted) + tail
            yield Word(text, found.end(), name or None, value)

    def pairs(self, text: pa.Array) -> Pairs:
        """The pairs of lines; a null has none."""
        odd = self._surely_odd(text)
        data = _joined(text, odd)
        letters = np.frombuffer(data, dtype=np.uint8)
        marks = np.flatnonzero(letters == ord(self._quote))
        # Every line that is left has an even number of quotes, so they open and close by turns.
        wrong = marks[1::2][self._table[letters[marks[1::2] + 1]] != BOUNDARY]
        *plain, values_at = self._plain(data, letters)
        if len(marks):
            # One that opens where no value begins is a letter like any other.
            wrong = np.r_[wrong, np.setdiff1d(marks[0::2], values_at, assume_unique=True)]
        if len(wrong):
            ends = np.flatnonzero(letters == LINE_END)
            odd[np.searchsorted(ends, wrong) - 1] = True
            data = _joined(text, odd)
            *plain, _ = self._plain(data, np.frombuffer(data, dtype=np.uint8))
        return self._with_odd(text, odd, *plain)

    def _surely_odd(self, text: pa.Array) -> npt.NDArray[np.bool_]:
        """Lines with an odd number of quotes, or with a quote and something that is escaped."""
        marks = pc.count_substring(text, self._quote)
        if not pc.max(marks).as_py():
            return np.zeros(len(text), dtype=bool)
        odd = mask(pc.equal(pc.bit_wise_and(marks, 1), 1))
        escapes = mask(pc.match_substring_regex(text, rf"\\[{re.escape(self._quote)}\\]"))
        return odd | (escapes & mask(pc.greater(marks, 0)))

    def _plain(self, data: bytes, letters: npt.NDArray[np.uint8]) -> tuple[Rows, pa.Array, pa.Array, Rows]:
        """The line, the name and the value of each pair, and where its value begins in the block."""
        kinds = self._table[letters]
        marks = letters == ord(self._quote)
        if marks.any():
            kinds[np.bitwise_xor.accumulate(marks)] = 0
        places = np.flatnonzero(kinds)
        bounds = np.flatnonzero(kinds[places] == BOUNDARY)
        begins = places[bounds[:-1]]
        rows = np.cumsum(letters[begins] == LINE_END) - 1
        # A word is a pair where the first place after its beginning is an assign, with a name before it.
        first, end = places[bounds[:-1] + 1], places[bounds[1:]]
        pair = (first < end) & (first > begins + 1)
        rows, begins, first, end = rows[pair], begins[pair] + 1, first[pair], end[pair]
        start = first + 1
        quoted = (start < end) & (letters[start] == ord(self._quote))
        offsets = np.column_stack((begins, first, start + quoted, end - quoted)).ravel()
        if not len(rows):
            return rows, pa.array([], pa.string()), pa.array([], pa.string()), start
        texts = pa.LargeStringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(data))
        every = np.arange(0, len(offsets), 4)
        names, values = (texts.take(pa.array(at)).cast(pa.string()) for at in (every, every + 2))
        if " " not in self._separators:
            names = pc.utf8_ltrim(names, " ")
            named = pc.not_equal(names, "")
            rows, names, values = rows[mask(named)], names.filter(named), values.filter(named)
        return rows, names, values, start

    def _with_odd(
        self, text: pa.Array, odd: npt.NDArray[np.bool_], rows: Rows, names: pa.Array, values: pa.Array
    ) -> Pairs:
        unterminated: list[int] = []
        more: list[tuple[int, str, str]] = []
        for row in np.flatnonzero(odd).tolist():
            try:
                words = list(self.words(text[row].as_py()))
            except Unterminated:
                unterminated.append(row)
                continue
            more += [(row, word.name, word.value) for word in words if word.name is not None]
        if more:
            others = list(zip(*more, strict=True))
            rows = np.r_[rows, np.array(others[0], dtype=np.int64)]
            names = pa.concat_arrays([names, pa.array(others[1], pa.string())])
            values = pa.concat_arrays([values, pa.array(others[2], pa.string())])
        values = pc.if_else(pc.equal(values, ""), pa.scalar(None, pa.string()), values)
        return Pairs(len(text), rows, names, values, unterminated)


def _joined(text: pa.Array, without: npt.NDArray[np.bool_]) -> bytes:
    """Lines between line ends; those of a mask, and null, are empty."""
    there = pc.if_else(pa.array(without), "", text)
    return ("\n" + "\n".join(pc.fill_null(there, "").to_pylist()) + "\n").encode()


class OfPairs:
    """What formats of pairs have in common: no header lines, words that lead by their place in the line, and
    fields that only the lines know."""

    columns: frozenset[str] = frozenset()

    def __init__(self, layout: RecordFormat, scanner: Scanner) -> None:
        self._scanner = scanner
        self._keeps_rest = layout.keep_rest
        lead = layout.options.get("lead", ())
        self._lead = [str(name) for name in lead] if isinstance(lead, Sequence) else []
        self.shown = FieldDrift(layout)

    def header(self, text: pa.Array) -> int:
        """The format has no header lines."""
        return 0

    def _records(self, own: dict[str, pa.Array], pairs: Pairs, refused: Rejections) -> ParsedRecords:
        """What the lines hold: fields by their place, and pairs, of which one that is named as such a field
        is left out."""
        nothing = pa.scalar(None, pa.string())
        own = {name: pc.if_else(pc.equal(values, ""), nothing, values) for name, values in own.items()}
        if not refused.any.all():
            there = (name for name, values in own.items() if values.null_count < len(values))
            self.shown.show(there, declared=True)
            self.shown.show(pairs.distinct.difference(own))
        wanted = self.shown.wanted
        fields = own | {path: pairs.field(path) for path in sorted(wanted - own.keys())}
        return ParsedRecords(fields, pairs.behind(own).rest(wanted) if self._keeps_rest else None)
