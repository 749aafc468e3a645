"""Parse Apache's common and combined log formats with one regular expression over a whole block."""

import pyarrow as pa
import pyarrow.compute as pc

from transom.formats.field_drift import FieldDrift
from transom.formats.parsed_records import ParsedRecords
from transom.formats.record_format import RecordFormat
from transom.formats.typed_columns import Rejections, mask

_QUOTED = r'(?:[^"\\]|\\.)*'
COMMON = (
    r"^(?P<client>\S+) (?P<ident>\S+) (?P<user>.*?) \[(?P<time>[^\]]*)\] "
    rf'"(?P<request>{_QUOTED})" (?P<status>[0-9]{{3}}) (?P<bytes>[0-9]+|-)'
)
COMBINED = rf'(?: "(?P<referer>{_QUOTED})" "(?P<agent>{_QUOTED})")?'
REQUEST = r"^(?P<method>[^ ]+) (?P<path>.*) (?P<protocol>HTTP/[0-9.]+)$"
UNSET = {"ident", "user", "bytes", "referer", "agent"}


class Apache:
    """Fields: client, ident, user, time, request, method, path, protocol, status, bytes, referer, agent."""

    def __init__(self, layout: RecordFormat) -> None:
        self.columns: frozenset[str] = frozenset()
        self.shown = FieldDrift(layout)
        common = layout.options.get("variant") == "common"
        self._line = COMMON + ("" if common else COMBINED) + "$"
        self._form = "the common log form" if common else "the common or the combined log form"

    def parse(self, text: pa.Array, refused: Rejections) -> ParsedRecords:
        """Return every field of every line as text; refuse lines of another form as `no_match`."""
        groups = pc.extract_regex(text, self._line)
        refused.add(mask(pc.and_(pc.is_valid(text), pc.is_null(groups))), "no_match", expected=self._form)
        fields = {name: pc.struct_field(groups, name) for name in _names(groups.type)}
        request = pc.extract_regex(fields["request"], REQUEST)
        fields |= {name: pc.struct_field(request, name) for name in _names(request.type)}
        # The format writes a dash for no value.
        nothing = pa.scalar(None, pa.string())
        for name in fields.keys() & UNSET:
            fields[name] = pc.if_else(pc.equal(fields[name], "-"), nothing, fields[name])
        # A group without a match is empty; only the combined form ends in a quote.
        short = pc.invert(pc.ends_with(text, '"'))
        for name in fields.keys() & {"referer", "agent"}:
            fields[name] = pc.if_else(short, nothing, fields[name])
        if not refused.any.all():
            common = pc.all(pc.or_(short, pc.is_null(groups))).as_py()
            self.shown.show(fields.keys() - ({"referer", "agent"} if common else set()), declared=True)
        return ParsedRecords(fields)

    def header(self, text: pa.Array) -> int:
        """Return 0: the format has no header lines."""
        return 0


def _names(kind: pa.DataType) -> list[str]:
    return [kind.field(index).name for index in range(kind.num_fields)]
