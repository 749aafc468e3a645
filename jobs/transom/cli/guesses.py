"""What a stream file says of a log whose form is known: columns, the time, a key, figures worth a look."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from transom.cli.kinds import Kind, kind_of, times_of
from transom.cli.naming import identifier
from transom.cli.recognise import Log

MOST_COLUMNS = 60
"""Columns that are declared; of a log with more, the rest are named in a comment."""
TIMES = ("event_time", "eventtime", "timestamp", "datetime", "time", "ts", "date", "when", "at")
KEYS = (
    "orig_h", "client", "client_ip", "srcip", "src", "src_ip", "call", "source_ip", "remote_addr", "device",
    "sensor", "station", "host", "hostname", "user", "user_name", "principal", "account", "site", "process",
    "comm", "service", "name", "node", "ip",
)  # fmt: skip
ADDED = re.compile(r"byte|size|length|sent|received|rcvd|packets|pkts|count|amount|total")
"""What adds up; of other figures a mean says more."""
NO_FIGURE = re.compile(
    r"(^|_)(port|pid|tid|uid|gid|ppid|id|code|status|line|year|version|proto|ttl|seq|spt|dpt|_p)(_|$)|(_p|port|id)$"
)


@dataclass(frozen=True)
class Column:
    """A column that is declared.

    Attributes:
        path: the field that it is taken from.
        sample: some of its texts.
    """

    name: str
    path: str
    kind: Kind
    sample: tuple[str, ...]

    def declared(self) -> object:
        """What a stream file says of it: the path alone, where that is all."""
        facts: dict[str, object] = {"from": self.path}
        if self.kind.type != "string":
            facts["type"] = self.kind.type
        if self.kind.resolution is not None:
            facts["resolution"] = float(self.kind.resolution)
        if self.kind.form not in (None, "iso"):
            facts["format"] = self.kind.form
        if self.kind.local:
            facts["zone"] = "UTC"
        if self.kind.missing:
            facts["missing"] = list(self.kind.missing)
        return self.path if len(facts) == 1 else facts

    @property
    def words(self) -> str:
        """Some values, for a person."""
        texts = [text if len(text) <= 30 else f"{text[:27]}..." for text in self.sample]
        while len(texts) > 1 and sum(map(len, texts)) > 36:
            texts.pop()
        return ", ".join(texts) or "no values here"


@dataclass(frozen=True)
class When:
    """The time of an event.

    Attributes:
        declared: what the stream file says.
        note: what a person has to look at.
    """

    declared: Mapping[str, object]
    note: str


def columns_of(log: Log, taken: Sequence[str] = ()) -> tuple[list[Column], list[str]]:
    """The columns of a log, and the fields that are none: too many, or of a name that no path can say."""
    columns: list[Column] = []
    left = []
    for path, texts in log.fields.items():
        if "|" in path or path != path.strip() or not path or len(columns) >= MOST_COLUMNS:
            left.append(path)
            continue
        kind = _kind(log, path, texts)
        name = identifier(path, [*taken, *(column.name for column in columns)])
        sample = tuple(dict.fromkeys(texts))[:3]
        columns.append(Column(name, path, kind, sample))
    return columns, left


def _kind(log: Log, path: str, texts: Sequence[str]) -> Kind:
    kind = kind_of(texts)
    said = log.types.get(path)
    if said is None or said == kind.type or (said == "string" and kind.type == "timestamp"):
        return kind
    if said == "timestamp":
        return Kind("timestamp", form="epoch")
    if said == "number":
        step = kind.resolution if kind.type == "number" else None
        return Kind("number", resolution=step or "0.000001")
    return Kind(said)


def time_of(columns: Sequence[Column], log: Log) -> When | None:
    """The column that is the time, or a date and a time of day beside it; None where there is neither."""
    times = [column for column in columns if column.kind.type == "timestamp" and column.sample]
    if not times:
        return _joined(columns, log)
    best = min(times, key=lambda column: _rank(column.name, TIMES))
    declared: dict[str, object] = {"column": best.name}
    if best.kind.form != "iso":
        declared["format"] = best.kind.form
    notes = []
    if best.kind.local:
        declared["zone"] = "UTC"
        notes.append("?: its times do not say their zone; write which, such as Europe/Berlin")
    if best.kind.otherwise:
        notes.append(f"?: or {best.kind.otherwise}, these lines fit both")
    others = [column.name for column in times if column is not best]
    if others:
        notes.append(f"other times: {', '.join(others)}")
    return When(declared, "; ".join(notes))


def _joined(columns: Sequence[Column], log: Log) -> When | None:
    days = [c for c in columns if c.kind.type in ("string", "integer") and re.search("date|day", c.name)]
    clocks = [c for c in columns if c.sample and all(re.match(r"\d?\d[:.]\d\d", text) for text in c.sample)]
    for day in days:
        for clock in clocks:
            both = zip(log.fields[day.path], log.fields[clock.path], strict=False)
            found = times_of([f"{one} {other}" for one, other in both][:2000] or [""])
            if found is not None:
                form, local, otherwise = found
                declared: dict[str, object] = {"column": [day.name, clock.name]}
                declared |= {"format": form} if form != "iso" else {}
                declared |= {"zone": "UTC"} if local else {}
                notes = ["?: which zone these times are in, such as Europe/Berlin"] if local else []
                notes += [f"?: or {otherwise}, these lines fit both"] if otherwise else []
                return When(declared, "; ".join(notes))
    return None


def _rank(name: str, names: Sequence[str]) -> tuple[int, int]:
    """How early a name, or a word of it, stands among some."""
    words = set(name.split("_"))
    for index, known in enumerate(names):
        if name == known:
            return 0, index
        if known in words or name.endswith(f"_{known}"):
            return 1, index
    return 2, 0


@dataclass(frozen=True)
class Seen:
    """What the events of the first lines hold in one column."""

    name: str
    type: str
    nulls: int
    distinct: int


def key_of(seen: Sequence[Seen], events: int) -> Seen | None:
    """A column worth a figure for each of its values: they repeat, and no event lacks it."""
    fit = [s for s in seen if s.type == "string" and not s.nulls and 2 <= s.distinct <= max(2, events // 2)]
    named = [s for s in fit if _rank(s.name, KEYS)[0] < 2]
    if named:
        return min(named, key=lambda s: _rank(s.name, KEYS))
    return fit[0] if fit else None


def figure_of(seen: Sequence[Seen]) -> tuple[str, str] | None:
    """A column worth adding up or averaging, with the function; None where there is none."""
    numbers = [s for s in seen if s.type in ("integer", "number") and s.distinct > 1]
    fit = [s for s in numbers if not NO_FIGURE.search(s.name)]
    if not fit:
        return None
    best = min(fit, key=lambda s: (ADDED.search(s.name) is None, s.type != "number"))
    return ("sum" if ADDED.search(best.name) else "mean"), best.name
