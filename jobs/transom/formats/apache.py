"""Apache's common and combined log formats, by one regular expression over a whole block."""

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from transom.formats.layout import Layout
from transom.formats.typed import Refusals, mask

_QUOTED = r'(?:[^"\\]|\\.)*'
LINE = (
    r"^(?P<client>\S+) (?P<ident>\S+) (?P<user>.*?) \[(?P<time>[^\]]*)\] "
    rf'"(?P<request>{_QUOTED})" (?P<status>[0-9]{{3}}) (?P<bytes>[0-9]+|-)'
    rf'(?: "(?P<referer>{_QUOTED})" "(?P<agent>{_QUOTED})")?$'
)
REQUEST = r"^(?P<method>[^ ]+) (?P<path>.*) (?P<protocol>HTTP/[0-9.]+)$"
UNSET = ("ident", "user", "bytes", "referer", "agent")


class Apache:
    """Fields: client, ident, user, time, request, method, path, protocol, status, bytes, referer, agent."""

    def __init__(self, layout: Layout) -> None:
        self.columns: frozenset[str] = frozenset()

    def parse(self, text: pa.Array, refused: Refusals) -> Mapping[str, pa.Array]:
        """Every field of every line as text; lines of another form are refused as `no_match`."""
        found = pc.extract_regex(text, LINE)
        refused.add(mask(pc.and_(pc.is_valid(text), pc.is_null(found))), "no_match")
        fields = {name: pc.struct_field(found, name) for name in _names(found.type)}
        request = pc.extract_regex(fields["request"], REQUEST)
        fields |= {name: pc.struct_field(request, name) for name in _names(request.type)}
        for name in UNSET:
            # An optional group that took no part is empty; the format writes a dash for no value.
            value = fields[name]
            none = (
                pc.or_(pc.equal(value, "-"), pc.equal(value, "")) if name != "agent" else pc.equal(value, "-")
            )
            fields[name] = pc.if_else(pc.fill_null(none, True), pa.scalar(None, pa.string()), value)
        return fields

    def header(self, text: pa.Array) -> int:
        """The format has no header lines."""
        return 0


def _names(kind: pa.DataType) -> list[str]:
    return [kind.field(index).name for index in range(kind.num_fields)]
