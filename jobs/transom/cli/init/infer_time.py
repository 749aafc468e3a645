"""Which fields of a log say the time of a record, and what is missing of it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from zoneinfo import available_timezones

from transom.cli.init.detected_format import MIN_SHARE, DetectedFormat
from transom.cli.init.infer_path import captured_of, dated, identifier
from transom.cli.init.infer_types import (
    HALF,
    ZONES,
    ColumnType,
    Lacks,
    kind_of,
    partial_times_of,
    times_of,
    written_form_of,
)
from transom.formats.record_format import EPOCHS
from transom.formats.times import LETTERS

TIMES = ("event_time", "eventtime", "timestamp", "datetime", "time", "ts", "date", "when", "at")
DAYS = ("date", "day")
ENDS = (
    "epoch", "stamp", "rt", "start", "started", "begin", "end", "ended", "first", "last", "seen", "created",
    "updated", "modified", "changed", "since", "until", "expires", "expiry", "from", "to", "on", "t",
)  # fmt: skip
"""What other times are called."""
ZONE_NAMES = (
    "tz",
    "timezone",
    "time_zone",
    "zone",
    "utc_offset",
    "gmt_offset",
    "tz_offset",
    "tzoffset",
    "offset",
)
"""What fields are called that say the zone of a time."""
OFFSET = re.compile(r"[+-](?:0\d|1[0-4]):?[0-5]\d|Z")
HOURS = re.compile(r"(?:UTC|GMT)?(?P<sign>[+-])(?P<hours>[0-9]{1,2})(?::?00)?")
CLOCK = re.compile(r"\d?\d[:.]\d\d")
ZONE_QUESTION = "?: which zone these are in, such as Europe/Berlin"

LETTERS_QUESTION = "?: other zones than {} have such letters, too"


@dataclass(frozen=True)
class InferredTime:
    """The time of an event.

    Attributes:
        fields: of the record, of which it is made.
        declared: what the stream file says.
        note: what a person has to look at.
        path: the pattern of the files, where they say what the records do not.
        untimed: why no time is read, so that a person has to decide; empty where one is. What is declared
            then is what would invent times, a second for each line.
    """

    fields: tuple[str, ...]
    declared: Mapping[str, object]
    note: str
    path: str | None = None
    untimed: str = ""


def time_of(log: DetectedFormat, paths: Sequence[str], start: str) -> InferredTime:
    """The time of a log's records: one of its fields, or a day and a time of day beside it; else what the
    files' paths add to a time without a year or a day; else their lines.

    Args:
        paths: of the files.
        start: from which lines count, as a stream file says it.
    """
    kinds = {
        field: ColumnType("timestamp", form="epoch")
        if log.types.get(field) == "timestamp"
        else kind_of(texts)
        for field, texts in log.fields.items()
        if texts and "|" not in field and field == field.strip()
    }
    times = [field for field, kind in kinds.items() if kind.type == "timestamp"]
    # A number may be as large by chance.
    sure = [field for field in times if kinds[field].form not in EPOCHS or _is_time_field(log, field)]
    leading = _several(log, log.time) if len(log.time) > 1 else None
    if leading is not None:
        return _in_zone(log, leading)
    if sure:
        return _in_zone(log, _alone(log, kinds, sure))
    joined, partial = _joined(log, kinds, start), _partial(log, kinds, paths, start)
    for said in (joined, partial):
        if said is not None and not said.untimed:
            return said if said is partial else _in_zone(log, said)
    return _alone(log, kinds, times) if times else joined or partial or _by_lines(kinds, start)


def _alone(log: DetectedFormat, kinds: Mapping[str, ColumnType], times: Sequence[str]) -> InferredTime:
    best = min(times, key=lambda field: (rank(identifier(field), TIMES), kinds[field].form in EPOCHS))
    kind = kinds[best]
    notes = [_seen(log.fields[best])]
    notes += _doubts(kind.otherwise, kind.doubt)
    if kind.form in EPOCHS and not _is_time_field(log, best):
        notes.append("?: taken for a time by its size alone")
    if len(times) > 1:
        notes.append(f"other times: {', '.join(field for field in times if field != best)}")
    return _when(log, [best], str(kind.form), kind.zone if kind.local else None, notes)


def _in_zone(log: DetectedFormat, when: InferredTime) -> InferredTime:
    """A time with the field that says its offset or zone, where there is one."""
    form = when.declared.get("format", "iso")
    if "zone" not in when.declared or LETTERS in str(form).split():
        return when
    zoned = [field for field in log.fields if field not in when.fields and _is_zone(log, field, when.fields)]
    for field in zoned:
        fields = [*when.fields, field]
        found = _several(log, fields)
        if found is not None and "format" not in found.declared:
            # Not every Python takes a blank before the offset for ISO 8601.
            form = written_form_of(_texts(log, fields)[:2000])
            found = None if form is None else replace(found, declared={**found.declared, "format": form})
        found = found or _of_one_zone(log, when, field)
        if found is not None:
            return found
    for field in zoned:
        zones = sorted({*log.fields[field]})
        if len(zones) > 1:
            few = ", ".join(zones[:3]) + (", ..." if len(zones) > 3 else "")
            asked = f"?: {field} says which zone each is in, {few}, and only one can be declared"
            return replace(when, note=when.note.replace(ZONE_QUESTION, asked))
    return when


def _is_zone(log: DetectedFormat, field: str, times: Sequence[str]) -> bool:
    """Whether all texts of a field are offsets or zones, and its name or its place says that they are the
    time's."""
    texts = log.fields[field]
    if not texts or any(len(texts) != len(log.fields[time]) for time in times):
        return False
    order = list(log.fields)
    beside = min(abs(order.index(field) - order.index(time)) for time in times) == 1
    named = rank(identifier(field), ZONE_NAMES)[0] < 2
    return (beside or named) and all(OFFSET.fullmatch(text) or _zone_of(text) for text in {*texts})


def _zone_of(text: str) -> str | None:
    """The IANA zone that a text names, by its name, its letters, or as whole hours from UTC."""
    if text in ZONES:
        return ZONES[text]
    hours = HOURS.fullmatch(text)
    if hours is not None and int(hours["hours"]) <= 12:
        return f"Etc/GMT{'-' if hours['sign'] == '+' else '+'}{int(hours['hours'])}"
    return text if "/" in text and text in available_timezones() else None


def _of_one_zone(log: DetectedFormat, when: InferredTime, field: str) -> InferredTime | None:
    """A time whose zone one text says in all lines; a line with another one is refused, and not misread."""
    texts = set(log.fields[field])
    written = _texts(log, when.fields)[:2000]
    form = when.declared.get("format") or written_form_of(written)
    zone = _zone_of(next(iter(texts))) if len(texts) == 1 else None
    if zone is None or form is None or "%" in next(iter(texts)):
        return None
    (text,) = texts
    fields = [*when.fields, field]
    notes = [_seen(_texts(log, fields)), f"lines with another {field} than {text} are refused"]
    declared = {"column": fields, "format": f"{form} {text}", "zone": zone}
    return InferredTime(tuple(fields), declared, "; ".join(notes))


def _is_time_field(log: DetectedFormat, field: str) -> bool:
    """Whether a field is a time by its type or its name."""
    return log.types.get(field) == "timestamp" or says_time(field)


def _joined(log: DetectedFormat, kinds: Mapping[str, ColumnType], start: str) -> InferredTime | None:
    """A day and a time of day beside it, in columns of any name, with its half of the day."""
    unread: InferredTime | None = None
    days = [
        field
        for field, kind in kinds.items()
        if kind.type in ("string", "integer")
        and times_of([f"{text} 00:00:00" for text in log.fields[field][:2000]]) is not None
    ]
    days.sort(key=lambda field: rank(identifier(field), DAYS))
    clocks = [
        field
        for field in kinds
        if sum(map(bool, map(CLOCK.match, log.fields[field]))) >= MIN_SHARE * len(log.fields[field])
    ]
    clocks.sort(key=lambda field: rank(identifier(field), TIMES))
    for day in days:
        for clock in clocks:
            half = _half(log, clock)
            found = _several(log, [day, clock, *half])
            if found is None and half and _several(log, [day, clock]) is not None:
                why = f"{_seen(_texts(log, [day, clock, *half]))} is a time of no form that is known"
                unread = unread or InferredTime(
                    (), {"lines": "1 second", "from": start}, f"?: {why}", untimed=why
                )
            if found is not None and (_is_date(log, day, clock) or not _is_six_digits(found)):
                return found
    return unread


def _half(log: DetectedFormat, clock: str) -> list[str]:
    """Return the field behind a time of day that says its half of the day; none where there is none."""
    order = list(log.fields)
    behind = order[order.index(clock) + 1 :][:1]
    return [field for field in behind if log.fields[field] and all(map(HALF.fullmatch, log.fields[field]))]


def _is_date(log: DetectedFormat, day: str, clock: str) -> bool:
    """Whether the name or the place of a field says that it is the day of a time of day."""
    order = list(log.fields)
    return rank(identifier(day), DAYS)[0] < 2 or order.index(clock) == order.index(day) + 1


def _is_six_digits(when: InferredTime) -> bool:
    """Whether the day is written as a number that may be any other, such as that of a process."""
    return str(when.declared.get("format")).startswith("%y%m%d")


def _several(log: DetectedFormat, fields: Sequence[str]) -> InferredTime | None:
    """A whole time of several fields, with blanks between them."""
    texts = _texts(log, fields)
    found = times_of(texts[:2000]) if texts else None
    if found is None:
        return None
    kind = ColumnType("timestamp", form=found.form, share=found.share)
    notes = [_seen(texts), *_doubts(found.otherwise, kind.doubt)]
    return _when(log, fields, found.form, found.zone if found.local else None, notes)


def _doubts(otherwise: str | None, doubt: str) -> list[str]:
    return [*([f"?: or {otherwise}, these lines fit both"] if otherwise else []), *([doubt] if doubt else [])]


def _partial(
    log: DetectedFormat, kinds: Mapping[str, ColumnType], paths: Sequence[str], start: str
) -> InferredTime | None:
    """A time without a year, or without a day, which the files' names may say."""
    found: list[tuple[tuple[str, ...], str, Lacks]] = []
    leads = [log.time] if len(log.time) > 1 else []
    for fields in [*leads, *((field,) for field, kind in kinds.items() if kind.type == "string")]:
        partial = partial_times_of(_texts(log, fields))
        if partial is not None:
            found.append((fields, *partial))
    if not found:
        return None
    fields, form, lacks = min(found, key=lambda one: (one[2] != "year", rank(identifier(one[0][-1]), TIMES)))
    seen = _seen(_texts(log, fields))
    captured = captured_of(paths, lacks, log.fields)
    if captured is None:
        why = f"no {lacks} is found for the times in {' '.join(fields)} ({seen})"
        note = f"?: {why}, so they are not read; {_advice(paths[0], lacks)}"
        return InferredTime((), {"lines": "1 second", "from": start}, note, untimed=why)
    edge = "a new year" if lacks == "year" else "midnight"
    notes = [
        f"{seen}, with the {lacks} of the file's name",
        f"?: a file must not go over {edge}",
    ]
    when = _when(log, fields, f"{captured.form} {form}", "UTC", notes)
    return InferredTime(
        fields, {**when.declared, "column": [*captured.names, *fields]}, when.note, captured.pattern
    )


def _advice(path: str, lacks: Lacks) -> str:
    return (
        f"land the files under names that say the day, such as {dated(path.rpartition('/')[2])}, and draft "
        f"it again: the {lacks} is then taken from there"
    )


def _by_lines(kinds: Mapping[str, ColumnType], start: str) -> InferredTime:
    why = "no field looks like a time"
    return InferredTime((), {"lines": "1 second", "from": start}, f"?: {why}", untimed=why)


def _when(
    log: DetectedFormat, fields: Sequence[str], form: str, zone: str | None, notes: Sequence[str]
) -> InferredTime:
    """What a stream file says of a time.

    Args:
        zone: where the times do not say theirs, as far as it is known.
    """
    declared: dict[str, object] = {"column": fields[0] if len(fields) == 1 else list(fields)}
    if form != "iso":
        declared["format"] = form
    said = list(notes)
    if zone is not None and form not in EPOCHS:
        declared["zone"] = zone
        if LETTERS in form.split():
            said[1:1] = [] if zone == "UTC" else [LETTERS_QUESTION.format(zone)]
        elif not log.utc:
            said.insert(1, ZONE_QUESTION)
    return InferredTime(tuple(fields), declared, "; ".join(said))


def _texts(log: DetectedFormat, fields: Sequence[str]) -> Sequence[str]:
    if len(fields) == 1:
        return log.fields[fields[0]]
    return [" ".join(row) for row in zip(*(log.fields[field] for field in fields), strict=False)]


def _seen(texts: Sequence[str]) -> str:
    text = texts[0]
    return text if len(text) <= 40 else f"{text[:37]}..."


def says_time(field: str) -> bool:
    """Whether the name of a field is that of a time."""
    return rank(identifier(field), (*TIMES, *ENDS))[0] < 2


def rank(name: str, names: Sequence[str]) -> tuple[int, int]:
    """How early a name, or a word of it, stands among some."""
    words = set(name.split("_"))
    for index, known in enumerate(names):
        if name == known:
            return 0, index
        if known in words or name.endswith(f"_{known}"):
            return 1, index
    return 2, 0
