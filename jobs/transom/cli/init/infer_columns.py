"""Infer the columns of a log of a known form, a key, and useful measures."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from transom.cli.init.detected_format import DetectedFormat
from transom.cli.init.infer_path import identifier
from transom.cli.init.infer_time import InferredTime, is_time_name, rank
from transom.cli.init.infer_types import ColumnType, kind_of
from transom.formats.embedded_option import inside
from transom.formats.json.record_paths import AROUND
from transom.formats.record_format import EPOCHS

MAX_COLUMNS = 60
"""Maximum number of declared columns; further ones are listed in a comment."""
KEYS = (
    "orig_h", "client", "client_ip", "srcip", "src", "src_ip", "call", "source_ip", "remote_addr", "device",
    "sensor", "station", "host", "hostname", "user", "user_name", "principal", "account", "site", "process",
    "comm", "service", "name", "node", "ip",
)  # fmt: skip
ADDED = tuple(
    map(
        re.compile,
        (
            r"bytes?(_|$)|octets?(_|$)",
            r"(^|_)(size|length|len|sent|received|rcvd|volume)(_|$)",
            r"(pkts?|packets?)(_|$)",
            r"(^|_)(counts?|amount|total|quantity|qty|requests|hits|errors|cost|revenue|energy|k?wh)(_|$)",
            r"(^|_)(rain|rainfall|precip|precipitation)(_|$)",
            r"(^|_)(duration|dur|elapsed)(_|$)",
        ),
    )
)
"""Names of values that can be added, in order of preference."""
NO_FIGURE = re.compile(
    r"(^|_)(port|pid|tid|uid|gid|ppid|id|code|class|severity|status|line|year|month|day|hour|minute|second|"
    r"time|date|timestamp|epoch|version|proto|protocol|ttl|seq|sequence|record|number|no|index|rank|level|"
    r"field|spt|dpt|lat|latitude|lon|lng|longitude|_p)(_|$)|(_p|port|id)$"
)
"""Names of numbers that are no measure."""


ID = re.compile("(^|_)(id|uuid|guid|uid)$")
NAMED = 0.9
"""The minimum share of distinct values for a column to count as an identifier of events."""
SPARSE = 0.1
"""With a larger share of events without a value, a whole file may have none."""
NO_KEY = re.compile(r"message|msg|text|.*_text|extension|arguments|request|agent|referer|before")
"""Texts that are no names."""


@dataclass(frozen=True)
class InferredColumn:
    """A declared column.

    Attributes:
        path: the field of its values.
        sample: some of its texts.
        is_: the expression of a derived column.
        note: a remark for people.
    """

    name: str
    path: str
    kind: ColumnType
    sample: tuple[str, ...]
    is_: str | None = None
    note: str = ""

    def declared(self) -> object:
        """Return its declaration in a stream file: the path alone, if that is enough."""
        facts: dict[str, object] = {"from": self.path} if self.is_ is None else {"is": self.is_}
        if self.kind.type != "string":
            facts["type"] = self.kind.type
        if self.kind.resolution is not None:
            facts["resolution"] = float(self.kind.resolution)
        if self.kind.form not in (None, "iso"):
            facts["format"] = self.kind.form
        if self.kind.local:
            facts["zone"] = self.kind.zone
        if self.kind.missing:
            facts["missing"] = list(self.kind.missing)
        return self.path if len(facts) == 1 else facts

    @property
    def words(self) -> str:
        """Some values, for people."""
        if self.note:
            return self.note
        if self.kind.thousands:
            return f"?: text, as the comma in {self.sample[0]} may be a decimal one, or one of thousands"
        texts = [text if len(text) <= 30 else f"{text[:27]}..." for text in self.sample]
        while len(texts) > 1 and sum(map(len, texts)) > 36:
            texts.pop()
        values = ", ".join(texts) or "no values here"
        return f"{values}; {self.kind.doubt}" if self.kind.doubt else values


def columns_of(
    log: DetectedFormat, when: InferredTime | None, reserved: Sequence[str] = ()
) -> tuple[list[InferredColumn], list[str]]:
    """Return the columns of a log, and the fields that are not declared: too many, or with an invalid path.

    The fields of the time are no columns, since event_time has their value.

    Args:
        reserved: names that no column may have.
    """
    columns: list[InferredColumn] = []
    undeclared = []
    of_time = () if when is None else when.fields
    for path, texts in log.fields.items():
        if path in of_time:
            continue
        if not _is_path(path) or len(columns) >= MAX_COLUMNS:
            undeclared.append(path)
            continue
        kind = _kind(log, path, texts)
        used = [*reserved, *of_time, *(column.name for column in columns)]
        sample = tuple(dict.fromkeys(texts))[:3]
        name = identifier(_own_name(log, path), used)
        if kind.comma is None:
            columns.append(InferredColumn(name, path, kind, sample))
            continue
        text = identifier(f"{name}_text", [*used, name])
        number = f"cast(split_part({text}, ',', 1) || '.' || split_part({text}, ',', 2) as double)"
        columns.append(InferredColumn(text, path, kind, sample))
        note = f"?: made of {text}, which has a decimal comma"
        columns.append(
            InferredColumn(name, path, ColumnType("number", resolution=kind.comma), sample, number, note)
        )
    return columns, undeclared


def _own_name(log: DetectedFormat, path: str) -> str:
    """Return the name of a field without the path of its embedded text or of the objects around the
    record."""
    given = inside(log.options)
    if given is not None and path.startswith(given.prefix):
        return path.removeprefix(given.prefix)
    return path.removeprefix(AROUND).rpartition("[].")[2] if path.startswith(AROUND) else path


def _is_path(field: str) -> bool:
    return bool(field) and "|" not in field and field == field.strip()


def _kind(log: DetectedFormat, path: str, texts: Sequence[str]) -> ColumnType:
    """Return the type of a field, which the log may declare."""
    kind = kind_of(texts)
    if kind.form in EPOCHS and not is_time_name(path):
        kind = kind_of(texts, counted=True)
    declared = log.types.get(path)
    if declared is None or declared == kind.type or (declared == "string" and kind.type == "timestamp"):
        return kind
    if declared == "timestamp":
        return ColumnType("timestamp", form="epoch")
    if declared == "number":
        step = kind.resolution if kind.type == "number" else None
        return ColumnType("number", resolution=step or "0.000001")
    return ColumnType(declared)


@dataclass(frozen=True)
class ColumnValues:
    """Statistics of one column over the events of the first lines.

    Attributes:
        structured: whether its texts are JSON lists or objects.
    """

    name: str
    type: str
    nulls: int
    distinct: int
    structured: bool = False


def key_of(columns: Sequence[ColumnValues], events: int) -> ColumnValues | None:
    """Return a column that is a useful key: its values repeat, and no event lacks it."""
    fit = [
        s
        for s in columns
        if s.type == "string" and not s.nulls and not s.structured and 2 <= s.distinct <= max(2, events // 2)
        if NO_KEY.fullmatch(s.name) is None
    ]
    named = [s for s in fit if rank(s.name, KEYS)[0] < 2]
    if named:
        return min(named, key=lambda s: rank(s.name, KEYS))
    return fit[0] if fit else None


def unique_of(columns: Sequence[ColumnValues], events: int, different: int) -> ColumnValues | None:
    """Return a column that identifies events, if some identifier occurs more than once.

    Args:
        different: the number of events that differ in some column.
    """
    fit = [
        s
        for s in columns
        if ID.search(s.name) and not s.nulls and s.distinct < events
        if s.distinct >= NAMED * events or s.distinct == different
    ]
    return max(fit, key=lambda s: s.distinct, default=None)


def figure_of(columns: Sequence[ColumnValues], events: int) -> tuple[str, str] | None:
    """Return a column to sum up, with the function; else a measurement to average; None if there is none.

    A whole number is only used if its name is that of an amount: it may be a code, a time, an identifier. A
    column that many events lack comes last: a file in which no event has it would be quarantined, as a block
    uses the column.
    """
    fit = [
        column
        for column in columns
        if column.type in ("integer", "number") and column.distinct > 1
        if not NO_FIGURE.search(column.name) and not is_time_name(column.name)
        if column.type == "number" or adds_up(column.name) < len(ADDED)
    ]
    if not fit:
        return None
    best = min(fit, key=lambda column: (column.nulls > SPARSE * events, adds_up(column.name), column.nulls))
    return ("sum" if adds_up(best.name) < len(ADDED) else "mean"), best.name


def adds_up(name: str) -> int:
    """Return the rank of a name among the patterns of `ADDED`; their number if none matches."""
    return next((rank for rank, form in enumerate(ADDED) if form.search(name)), len(ADDED))
