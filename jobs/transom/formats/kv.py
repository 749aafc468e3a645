"""Lines of pairs, such as `date=2024-04-19 srcip=10.0.0.1 msg="a b"`: what firewalls write."""

import pyarrow as pa

from transom.formats.layout import Layout
from transom.formats.pairs import OfPairs, Scanner
from transom.formats.rest import Records
from transom.formats.typed import Refusals, mask


class KeyValue(OfPairs):
    """Fields by their names; of a name that a line has twice the first counts.

    Words that are no pairs, such as flags and what stands before the first pair, are left out. A line
    without any pair is refused.
    """

    def __init__(self, layout: Layout) -> None:
        options = layout.options
        separator, self._assign = options.get("separator"), str(options.get("assign", "="))
        quote = str(options.get("quote", '"'))
        super().__init__(layout, Scanner(None if separator is None else str(separator), self._assign, quote))

    def parse(self, text: pa.Array, refused: Refusals) -> Records:
        """Every wanted field as text, null where it is empty."""
        found = self._scanner.pairs(text)
        for row in found.unterminated:
            refused.add_one(row, "unterminated_quote")
        without = mask(text.is_valid())
        without[found.rows] = False
        refused.add(without, "no_match", expected=f"a line with name{self._assign}value in it")
        if not refused.any.all():
            self.shown.show(found.distinct)
        fields = {path: found.field(path) for path in sorted(self.shown.wanted)}
        return Records(fields, found.rest(self.shown.wanted) if self._keeps_rest else None)
