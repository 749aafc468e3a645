"""Lines of any form, by one regular expression with named groups over a whole block."""

import pyarrow as pa
import pyarrow.compute as pc

from transom.formats.field_drift import FieldDrift
from transom.formats.left_over import PatternStops
from transom.formats.parsed_records import ParsedRecords
from transom.formats.record_format import RecordFormat
from transom.formats.regex_rules import validate_regex
from transom.formats.typed_columns import Rejections, mask


class Regex:
    """Fields: the named groups. One that takes no part, or nothing, has no value."""

    def __init__(self, layout: RecordFormat) -> None:
        pattern = validate_regex(str(layout.options["pattern"])).text
        self._line = f"^(?:{pattern})$"
        self._left_over = PatternStops(pattern)
        self.columns: frozenset[str] = frozenset()
        self.shown = FieldDrift(layout)

    def header(self, text: pa.Array) -> int:
        """The format has no header lines."""
        return 0

    def parse(self, text: pa.Array, refused: Rejections) -> ParsedRecords:
        """Every group of every line as text; lines that the pattern does not match whole are refused."""
        found = pc.extract_regex(text, self._line)
        unmatched = mask(pc.and_(pc.is_valid(text), pc.is_null(found))) & ~refused.any
        if unmatched.any():
            for stop in self._left_over.stops(text, unmatched):
                refused.add(stop.where, "no_match", values=stop.left, expected=stop.expected)
        nothing = pa.scalar(None, pa.string())
        fields = {}
        for index in range(found.type.num_fields):
            values = pc.struct_field(found, index)
            fields[found.type.field(index).name] = pc.if_else(pc.equal(values, ""), nothing, values)
        if not refused.any.all():
            # What a line shows is up to the pattern: a group that takes part in none has drifted nowhere.
            self.shown.show(fields, declared=True)
        return ParsedRecords(fields)
