"""What a stream file says of a log whose form is known: its columns, a key, figures worth a look."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from transom.cli.init.detected_format import DetectedFormat
from transom.cli.init.infer_path import identifier
from transom.cli.init.infer_time import InferredTime, rank, says_time
from transom.cli.init.infer_types import ColumnType, kind_of
from transom.formats.embedded_option import inside
from transom.formats.json.record_paths import AROUND
from transom.formats.record_format import EPOCHS

MAX_COLUMNS = 60
"""Columns that are declared; of a log with more, the rest are named in a comment."""
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
"""Names of what adds up, the first to take before the others."""
NO_FIGURE = re.compile(
    r"(^|_)(port|pid|tid|uid|gid|ppid|id|code|class|severity|status|line|year|month|day|hour|minute|second|"
    r"time|date|timestamp|epoch|version|proto|protocol|ttl|seq|sequence|record|number|no|index|rank|level|"
    r"field|spt|dpt|lat|latitude|lon|lng|longitude|_p)(_|$)|(_p|port|id)$"
)
"""Names of numbers that are no figure."""


ID = re.compile("(^|_)(id|uuid|guid|uid)$")
NAMED = 0.9
"""The share of events with a name of their own from which a column is taken for one that names events."""
SPARSE = 0.1
"""The share of events without a value from which a whole file may well have none."""
NO_KEY = re.compile(r"message|msg|text|.*_text|extension|arguments|request|agent|referer|before")
"""Texts that are no name of anything."""


@dataclass(frozen=True)
class InferredColumn:
    """A column that is declared.

    Attributes:
        path: the field that it is taken from.
        sample: some of its texts.
        is_: the expression that it is, of a column that no field holds.
        note: what a person has to look at.
    """

    name: str
    path: str
    kind: ColumnType
    sample: tuple[str, ...]
    is_: str | None = None
    note: str = ""

    def declared(self) -> object:
        """What a stream file says of it: the path alone, where that is all."""
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
        """Some values, for a person."""
        if self.note:
            return self.note
        if self.kind.thousands:
            return f"?: text, as the comma in {self.sample[0]} may be a decimal one, or one of thousands"
        texts = [text if len(text) <= 30 else f"{text[:27]}..." for text in self.sample]
        while len(texts) > 1 and sum(map(len, texts)) > 36:
            texts.pop()
        said = ", ".join(texts) or "no values here"
        return f"{said}; {self.kind.doubt}" if self.kind.doubt else said


def columns_of(
    log: DetectedFormat, when: InferredTime | None, taken: Sequence[str] = ()
) -> tuple[list[InferredColumn], list[str]]:
    """The columns of a log, and the fields that are none: too many, or of a name that no path can say.

    The fields of the time are none: event_time holds what they say.

    Args:
        taken: names that no column may have.
    """
    columns: list[InferredColumn] = []
    left = []
    of_time = () if when is None else when.fields
    for path, texts in log.fields.items():
        if path in of_time:
            continue
        if not _is_path(path) or len(columns) >= MAX_COLUMNS:
            left.append(path)
            continue
        kind = _kind(log, path, texts)
        used = [*taken, *of_time, *(column.name for column in columns)]
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
    return columns, left


def _own_name(log: DetectedFormat, path: str) -> str:
    """The name of a field where it stands: in the text of another one, or around the record."""
    given = inside(log.options)
    if given is not None and path.startswith(given.prefix):
        return path.removeprefix(given.prefix)
    return path.removeprefix(AROUND).rpartition("[].")[2] if path.startswith(AROUND) else path


def _is_path(field: str) -> bool:
    return bool(field) and "|" not in field and field == field.strip()


def _kind(log: DetectedFormat, path: str, texts: Sequence[str]) -> ColumnType:
    """What a field holds, which the log may say itself."""
    kind = kind_of(texts)
    if kind.form in EPOCHS and not says_time(path):
        kind = kind_of(texts, counted=True)
    said = log.types.get(path)
    if said is None or said == kind.type or (said == "string" and kind.type == "timestamp"):
        return kind
    if said == "timestamp":
        return ColumnType("timestamp", form="epoch")
    if said == "number":
        step = kind.resolution if kind.type == "number" else None
        return ColumnType("number", resolution=step or "0.000001")
    return ColumnType(said)


@dataclass(frozen=True)
class ColumnValues:
    """What the events of the first lines hold in one column.

    Attributes:
        structured: whether its texts are lists or objects of JSON.
    """

    name: str
    type: str
    nulls: int
    distinct: int
    structured: bool = False


def key_of(seen: Sequence[ColumnValues], events: int) -> ColumnValues | None:
    """A column worth a figure for each of its values: they repeat, and no event lacks it."""
    fit = [
        s
        for s in seen
        if s.type == "string" and not s.nulls and not s.structured and 2 <= s.distinct <= max(2, events // 2)
        if NO_KEY.fullmatch(s.name) is None
    ]
    named = [s for s in fit if rank(s.name, KEYS)[0] < 2]
    if named:
        return min(named, key=lambda s: rank(s.name, KEYS))
    return fit[0] if fit else None


def unique_of(seen: Sequence[ColumnValues], events: int, different: int) -> ColumnValues | None:
    """A column that names each event, where some name is there more than once.

    Args:
        different: events that are not alike in all columns.
    """
    fit = [
        s
        for s in seen
        if ID.search(s.name) and not s.nulls and s.distinct < events
        if s.distinct >= NAMED * events or s.distinct == different
    ]
    return max(fit, key=lambda s: s.distinct, default=None)


def figure_of(seen: Sequence[ColumnValues], events: int) -> tuple[str, str] | None:
    """Return a column worth adding up, with the function; else a measured one to average; None where there
    is none.

    A whole number whose name does not say that it adds up may be anything: a code, a time, an identity. One
    that many events lack comes last: a file in which no event has it would be withheld, as something uses
    the column.
    """
    fit = [
        one
        for one in seen
        if one.type in ("integer", "number") and one.distinct > 1
        if not NO_FIGURE.search(one.name) and not says_time(one.name)
        if one.type == "number" or adds_up(one.name) < len(ADDED)
    ]
    if not fit:
        return None
    best = min(fit, key=lambda one: (one.nulls > SPARSE * events, adds_up(one.name), one.nulls))
    return ("sum" if adds_up(best.name) < len(ADDED) else "mean"), best.name


def adds_up(name: str) -> int:
    """Return the rank of a name among those of what adds up; one behind the last where it is none."""
    return next((rank for rank, form in enumerate(ADDED) if form.search(name)), len(ADDED))
