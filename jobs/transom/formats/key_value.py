"""Parse lines of pairs, such as `date=2024-04-19 srcip=10.0.0.1 msg="a b"`, which firewalls write."""

import re

import pyarrow as pa
import pyarrow.compute as pc

from transom.formats.pair_scanner import OfPairs, Scanner
from transom.formats.parsed_records import ParsedRecords
from transom.formats.record_format import RecordFormat
from transom.formats.typed_columns import Rejections, mask


class KeyValue(OfPairs):
    """Fields by name; if a line has a name twice, the first counts.

    The words of `lead` are fields by position: the first words of the line, between separators; quotes and
    assigns are ordinary letters there. Other words that are no pairs, such as flags, are left out. A line
    without any pair after them is refused.
    """

    def __init__(self, layout: RecordFormat) -> None:
        options = layout.options
        separator, self._assign = options.get("separator"), str(options.get("assign", "="))
        quote = str(options.get("quote", '"'))
        super().__init__(layout, Scanner(None if separator is None else str(separator), self._assign, quote))
        between = re.escape(" \t" if separator is None else str(separator))
        heads = "".join(rf"(?P<h{i}>[^{between}]+)[{between}]+" for i in range(len(self._lead)))
        after_lead = f", behind {' '.join(self._lead)}" if self._lead else ""
        self._form = f"a line with name{self._assign}value in it{after_lead}"
        self._line = rf"^[{between}]*{heads}(?P<pairs>.*)$"

    def parse(self, text: pa.Array, refused: Rejections) -> ParsedRecords:
        """Return every declared field as text, null if it is empty."""
        own: dict[str, pa.Array] = {}
        without = mask(text.is_valid())
        if self._lead:
            split = pc.extract_regex(text, self._line)
            words = (pc.struct_field(split, f"h{i}") for i in range(len(self._lead)))
            own = {name: pc.utf8_trim(word, " ") for name, word in zip(self._lead, words, strict=True)}
            text = pc.struct_field(split, "pairs")
        pairs = self._scanner.pairs(text)
        for row in pairs.unterminated:
            refused.add_one(row, "unterminated_quote")
        without[pairs.rows] = False
        refused.add(without, "no_match", expected=self._form)
        return self._records(own, pairs, refused)
