"""Parse lines of any form with one regular expression with named groups over a whole block."""

import pyarrow as pa
import pyarrow.compute as pc

from transom.formats.field_drift import FieldDrift
from transom.formats.left_over import PatternStops
from transom.formats.parsed_records import ParsedRecords
from transom.formats.record_format import RecordFormat
from transom.formats.regex_rules import validate_regex
from transom.formats.typed_columns import Rejections, mask


class Regex:
    """Fields: the named groups. A group without a match, or with an empty one, has no value."""

    def __init__(self, layout: RecordFormat) -> None:
        pattern = validate_regex(str(layout.options["pattern"])).text
        self._line = f"^(?:{pattern})$"
        self._stops = PatternStops(pattern)
        self.columns: frozenset[str] = frozenset()
        self.shown = FieldDrift(layout)

    def header(self, text: pa.Array) -> int:
        """Return 0: the format has no header lines."""
        return 0

    def parse(self, text: pa.Array, refused: Rejections) -> ParsedRecords:
        """Return every group of every line as text; refuse lines that the pattern does not match as a
        whole."""
        groups = pc.extract_regex(text, self._line)
        unmatched = mask(pc.and_(pc.is_valid(text), pc.is_null(groups))) & ~refused.any
        if unmatched.any():
            for stop in self._stops.stops(text, unmatched):
                refused.add(stop.where, "no_match", values=stop.remaining, expected=stop.expected)
        nothing = pa.scalar(None, pa.string())
        fields = {}
        for index in range(groups.type.num_fields):
            values = pc.struct_field(groups, index)
            fields[groups.type.field(index).name] = pc.if_else(pc.equal(values, ""), nothing, values)
        if not refused.any.all():
            # The pattern decides which fields a line has: a group without a match is no drift.
            self.shown.show(fields, declared=True)
        return ParsedRecords(fields)
