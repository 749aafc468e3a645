"""Parse lines with a regular expression with named groups, whole blocks at a time: the stream's, or Apache's.

The message about a line that does not match shows the remaining text, and the part of the pattern that does
not match there.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transom.formats.parser import ParsedRecords, Parser
from transom.formats.record_format import RecordFormat
from transom.formats.regex_rules import beginnings, validate_regex
from transom.formats.rejections import Int64s, Mask, Rejections, mask, null_where, take_indices

MAX_SHOWN = 60
"""Maximum number of characters of a part of the pattern in a message."""
_QUOTED = r'(?:[^"\\]|\\.)*'
COMMON = (
    r"^(?P<client>\S+) (?P<ident>\S+) (?P<user>.*?) \[(?P<time>[^\]]*)\] "
    rf'"(?P<request>{_QUOTED})" (?P<status>[0-9]{{3}}) (?P<bytes>[0-9]+|-)'
)
COMBINED = rf'(?: "(?P<referer>{_QUOTED})" "(?P<agent>{_QUOTED})")?'
REQUEST = r"^(?P<method>[^ ]+) (?P<path>.*) (?P<protocol>HTTP/[0-9.]+)$"
UNSET = {"ident", "user", "bytes", "referer", "agent"}
"""The fields in which a dash means no value."""


class Regex(Parser):
    """Fields: the named groups. A group without a match, or with an empty one, has no value."""

    def __init__(self, layout: RecordFormat) -> None:
        super().__init__(layout)
        pattern = validate_regex(str(layout.options["pattern"])).text
        self._line = f"^(?:{pattern})$"
        self._beginnings = beginnings(pattern)

    def parse(self, text: pa.Array, refused: Rejections) -> ParsedRecords:
        """Return every group of every line as text; refuse lines that do not match as a whole."""
        groups = pc.extract_regex(text, self._line)
        unmatched = mask(pc.and_(pc.is_valid(text), pc.is_null(groups))) & ~refused.any
        if unmatched.any():
            self._refuse(text, unmatched, refused)
        fields = {name: null_where(pc.equal(text, ""), text) for name, text in named_groups(groups).items()}
        if not refused.any.all():
            # The pattern determines the fields of a line: a group without a match is no drift.
            self.drift.observe(fields, declared=True)
        return ParsedRecords(fields)

    def _refuse(self, lines: pa.Array, unmatched: Mask, refused: Rejections) -> None:
        """Refuse lines that the pattern does not match.

        Of several alternatives, the message is about the one that matches most of a line.
        """
        rows = np.flatnonzero(unmatched)
        texts = lines.take(pa.array(rows))
        size = np.full(len(rows), -1)
        branch, part = np.zeros((2, len(rows)), dtype=np.int64)
        for number, parts in enumerate(self._beginnings):
            part_of_branch, matched = _longest_beginning(texts, [pattern for pattern, _ in parts])
            further = matched > size
            size[further], part[further], branch[further] = matched[further], part_of_branch[further], number
        remaining = (text[start:] for text, start in zip(texts.to_pylist(), size.tolist(), strict=True))
        messages = pa.array([f"left over: {text or 'nothing'}" for text in remaining], pa.string())
        values = messages.take(take_indices(rows, len(lines)))
        for number, place in sorted({*zip(branch.tolist(), part.tolist(), strict=True)}):
            where = np.zeros(len(lines), dtype=bool)
            where[rows[(branch == number) & (part == place)]] = True
            following = self._beginnings[number][place][1]
            shown = following if len(following) <= MAX_SHOWN else f"{following[:MAX_SHOWN]}..."
            if not shown.strip(" "):
                shown = "a blank" if shown else "the end of the line"
            refused.add(where, "no_match", values=values, expected=shown)


def named_groups(groups: pa.Array) -> dict[str, pa.Array]:
    """Return the fields of an array of structs by name."""
    return {field.name: pc.struct_field(groups, field.name) for field in groups.type}


def _longest_beginning(texts: pa.Array, patterns: Sequence[str]) -> tuple[Int64s, Int64s]:
    """Return the number of the longest matching beginning for each text, and the number of characters it
    matches.

    A text that matches a longer beginning also matches each shorter one, so bisection works.
    """
    low = np.zeros(len(texts), dtype=np.int64)
    high = np.full(len(texts), len(patterns) - 1, dtype=np.int64)
    while (low < high).any():
        middle = (low + high + 1) // 2
        for at in np.unique(middle[low < high]).tolist():
            rows = np.flatnonzero((middle == at) & (low < high))
            matched = mask(pc.is_valid(_beginning(texts, rows, patterns[at])))
            low[rows[matched]] = at
            high[rows[~matched]] = at - 1
    size = np.zeros(len(texts), dtype=np.int64)
    for at in np.unique(low).tolist():
        rows = np.flatnonzero(low == at)
        size[rows] = pc.fill_null(pc.utf8_length(_beginning(texts, rows, patterns[at])), 0)
    return low, size


def _beginning(texts: pa.Array, rows: Int64s, pattern: str) -> pa.Array:
    """Return the match of a pattern at the beginning of some texts; null for no match."""
    # By position: a group of the pattern may have the same name.
    return pc.struct_field(pc.extract_regex(texts.take(pa.array(rows)), f"^(?P<text>{pattern})"), 0)


class Apache(Parser):
    """Fields: client, ident, user, time, request, method, path, protocol, status, bytes, referer, agent."""

    def __init__(self, layout: RecordFormat) -> None:
        super().__init__(layout)
        common = layout.options.get("variant") == "common"
        self._line = COMMON + ("" if common else COMBINED) + "$"
        self._form = "the common log form" if common else "the common or the combined log form"

    def parse(self, text: pa.Array, refused: Rejections) -> ParsedRecords:
        """Return every field of every line as text; refuse lines of another form as `no_match`."""
        groups = pc.extract_regex(text, self._line)
        refused.add(mask(pc.and_(pc.is_valid(text), pc.is_null(groups))), "no_match", expected=self._form)
        fields = named_groups(groups)
        fields |= named_groups(pc.extract_regex(fields["request"], REQUEST))
        for name in fields.keys() & UNSET:
            fields[name] = null_where(pc.equal(fields[name], "-"), fields[name])
        # A group without a match is empty; only the combined form ends in a quote.
        short = pc.invert(pc.ends_with(text, '"'))
        for name in fields.keys() & {"referer", "agent"}:
            fields[name] = null_where(short, fields[name])
        if not refused.any.all():
            common = pc.all(pc.or_(short, pc.is_null(groups))).as_py()
            self.drift.observe(fields.keys() - ({"referer", "agent"} if common else set()), declared=True)
        return ParsedRecords(fields)
