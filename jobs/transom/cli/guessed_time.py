"""Which fields of a log say the time of a record, and what is missing of it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from transom.cli.kinds import EPOCHS, Kind, Lacks, kind_of, partial_times_of, times_of
from transom.cli.log import Log
from transom.cli.naming import captured_of, dated, identifier

TIMES = ("event_time", "eventtime", "timestamp", "datetime", "time", "ts", "date", "when", "at")
CLOCK = re.compile(r"\d?\d[:.]\d\d")
ZONE_ASKED = "?: which zone these are in, such as Europe/Berlin"


@dataclass(frozen=True)
class When:
    """The time of an event.

    Attributes:
        fields: of the record, of which it is made.
        declared: what the stream file says.
        note: what a person has to look at.
        path: the pattern of the files, where they say what the records do not.
    """

    fields: tuple[str, ...]
    declared: Mapping[str, object]
    note: str
    path: str | None = None


def time_of(log: Log, paths: Sequence[str], start: str) -> When:
    """The time of a log's records: one of its fields, or a day and a time of day beside it; else what the
    files' paths add to a time without a year or a day; else their lines.

    Args:
        paths: of the files.
        start: from which lines count, as a stream file says it.
    """
    kinds = {
        field: Kind("timestamp", form="epoch") if log.types.get(field) == "timestamp" else kind_of(texts)
        for field, texts in log.fields.items()
        if texts and "|" not in field and field == field.strip()
    }
    times = [field for field, kind in kinds.items() if kind.type == "timestamp"]
    if times:
        return _alone(log, kinds, times)
    return _joined(log, kinds) or _partial(log, kinds, paths, start) or _by_lines(start)


def _alone(log: Log, kinds: Mapping[str, Kind], times: Sequence[str]) -> When:
    best = min(times, key=lambda field: rank(identifier(field), TIMES))
    kind = kinds[best]
    notes = [_seen(log, best)]
    if kind.otherwise:
        notes.append(f"?: or {kind.otherwise}, these lines fit both")
    if len(times) > 1:
        notes.append(f"other times: {', '.join(field for field in times if field != best)}")
    return _when(log, [best], str(kind.form), kind.local, notes)


def _joined(log: Log, kinds: Mapping[str, Kind]) -> When | None:
    days = [
        field
        for field, kind in kinds.items()
        if kind.type in ("string", "integer") and re.search("date|day", field.lower())
    ]
    clocks = [field for field in kinds if all(map(CLOCK.match, log.fields[field]))]
    for day in days:
        for clock in clocks:
            both = zip(log.fields[day], log.fields[clock], strict=False)
            found = times_of([f"{one} {other}" for one, other in both][:2000] or [""])
            if found is not None:
                form, local, otherwise = found
                notes = [f"{_seen(log, day)} {_seen(log, clock)}"]
                notes += [f"?: or {otherwise}, these lines fit both"] if otherwise else []
                return _when(log, [day, clock], form, local, notes)
    return None


def _partial(log: Log, kinds: Mapping[str, Kind], paths: Sequence[str], start: str) -> When | None:
    """A time without a year, or without a day, which the files' names may say."""
    found: list[tuple[str, str, Lacks]] = []
    for field, kind in kinds.items():
        partial = partial_times_of(log.fields[field]) if kind.type == "string" else None
        if partial is not None:
            found.append((field, *partial))
    if not found:
        return None
    field, form, lacks = min(found, key=lambda one: (one[2] != "year", rank(identifier(one[0]), TIMES)))
    captured = captured_of(paths, lacks, log.fields)
    if captured is None:
        note = (
            f"?: the times in {field} ({_seen(log, field)}) have no {lacks}, so they are not read and each "
            f"line counts a second; {_advice(paths[0], lacks)}"
        )
        return When((), {"lines": "1 second", "from": start}, note)
    edge = "a new year" if lacks == "year" else "midnight"
    notes = [
        f"{_seen(log, field)}, with the {lacks} of the file's name",
        f"?: a file must not go over {edge}",
    ]
    when = _when(log, [field], f"{captured.form} {form}", True, notes)
    return When((field,), {**when.declared, "column": [*captured.names, field]}, when.note, captured.pattern)


def _advice(path: str, lacks: Lacks) -> str:
    return (
        f"land the files under names that say the day, such as {dated(path.rpartition('/')[2])}, and draft "
        f"it again: the {lacks} is then taken from there"
    )


def _by_lines(start: str) -> When:
    note = "?: no field looks like a time; each line counts a second"
    return When((), {"lines": "1 second", "from": start}, note)


def _when(log: Log, fields: Sequence[str], form: str, local: bool, notes: Sequence[str]) -> When:
    declared: dict[str, object] = {"column": fields[0] if len(fields) == 1 else list(fields)}
    if form != "iso":
        declared["format"] = form
    said = list(notes)
    if local and form not in EPOCHS:
        declared["zone"] = "UTC"
        if not log.utc:
            said.insert(1, ZONE_ASKED)
    return When(tuple(fields), declared, "; ".join(said))


def _seen(log: Log, field: str) -> str:
    text = log.fields[field][0]
    return text if len(text) <= 40 else f"{text[:37]}..."


def rank(name: str, names: Sequence[str]) -> tuple[int, int]:
    """How early a name, or a word of it, stands among some."""
    words = set(name.split("_"))
    for index, known in enumerate(names):
        if name == known:
            return 0, index
        if known in words or name.endswith(f"_{known}"):
            return 1, index
    return 2, 0
