"""Infer the fields of a log with the time of a record, and missing parts of the time."""

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
"""Names of other times."""
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
"""Names of fields with the zone of a time."""
OFFSET = re.compile(r"[+-](?:0\d|1[0-4]):?[0-5]\d|Z")
HOURS = re.compile(r"(?:UTC|GMT)?(?P<sign>[+-])(?P<hours>[0-9]{1,2})(?::?00)?")
CLOCK = re.compile(r"\d?\d[:.]\d\d")
ZONE_QUESTION = "?: which zone these are in, such as Europe/Berlin"

LETTERS_QUESTION = "?: other zones than {} have such letters, too"


@dataclass(frozen=True)
class InferredTime:
    """The time of an event.

    Attributes:
        fields: the fields of the record that have the time.
        declared: the declaration in the stream file.
        note: a remark for people.
        path: the pattern of the files, if their names have a part of the time.
        untimed: why no time is read, so that a person has to decide; empty if there is one. `declared` then
            would invent times, a second for each line.
    """

    fields: tuple[str, ...]
    declared: Mapping[str, object]
    note: str
    path: str | None = None
    untimed: str = ""


def time_of(log: DetectedFormat, paths: Sequence[str], start: str) -> InferredTime:
    """Infer the time of a log's records: one of its fields, or a date and a time of day beside it; else a
    time without a year or a date, completed by the files' paths; else the numbers of lines.

    Args:
        paths: the paths of the files.
        start: the time of the first line, in the form of a stream file.
    """
    kinds = {
        field: ColumnType("timestamp", form="epoch")
        if log.types.get(field) == "timestamp"
        else kind_of(texts)
        for field, texts in log.fields.items()
        if texts and "|" not in field and field == field.strip()
    }
    times = [field for field, kind in kinds.items() if kind.type == "timestamp"]
    # A number may look like a time by chance.
    sure = [field for field in times if kinds[field].form not in EPOCHS or _is_time_field(log, field)]
    leading = _several(log, log.time) if len(log.time) > 1 else None
    if leading is not None:
        return _in_zone(log, leading)
    if sure:
        return _in_zone(log, _single_field(log, kinds, sure))
    joined, partial = _joined(log, kinds, start), _partial(log, kinds, paths, start)
    for inferred in (joined, partial):
        if inferred is not None and not inferred.untimed:
            return inferred if inferred is partial else _in_zone(log, inferred)
    return _single_field(log, kinds, times) if times else joined or partial or _by_lines(kinds, start)


def _single_field(log: DetectedFormat, kinds: Mapping[str, ColumnType], times: Sequence[str]) -> InferredTime:
    best = min(times, key=lambda field: (rank(identifier(field), TIMES), kinds[field].form in EPOCHS))
    kind = kinds[best]
    notes = [_example(log.fields[best])]
    notes += _doubts(kind.otherwise, kind.doubt)
    if kind.form in EPOCHS and not _is_time_field(log, best):
        notes.append("?: taken for a time by its size alone")
    if len(times) > 1:
        notes.append(f"other times: {', '.join(field for field in times if field != best)}")
    return _when(log, [best], str(kind.form), kind.zone if kind.local else None, notes)


def _in_zone(log: DetectedFormat, when: InferredTime) -> InferredTime:
    """Return a time with the field that has its offset or zone, if there is one."""
    form = when.declared.get("format", "iso")
    if "zone" not in when.declared or LETTERS in str(form).split():
        return when
    zoned = [field for field in log.fields if field not in when.fields and _is_zone(log, field, when.fields)]
    for field in zoned:
        fields = [*when.fields, field]
        in_zone = _several(log, fields)
        if in_zone is not None and "format" not in in_zone.declared:
            # Not every Python version accepts a blank before the offset in ISO 8601.
            form = written_form_of(_texts(log, fields)[:2000])
            in_zone = (
                None if form is None else replace(in_zone, declared={**in_zone.declared, "format": form})
            )
        in_zone = in_zone or _of_one_zone(log, when, field)
        if in_zone is not None:
            return in_zone
    for field in zoned:
        zones = sorted({*log.fields[field]})
        if len(zones) > 1:
            few = ", ".join(zones[:3]) + (", ..." if len(zones) > 3 else "")
            question = f"?: {field} says which zone each is in, {few}, and only one can be declared"
            return replace(when, note=when.note.replace(ZONE_QUESTION, question))
    return when


def _is_zone(log: DetectedFormat, field: str, times: Sequence[str]) -> bool:
    """Return whether all texts of a field are offsets or zones, and its name or its position relates it to
    the time."""
    texts = log.fields[field]
    if not texts or any(len(texts) != len(log.fields[time]) for time in times):
        return False
    order = list(log.fields)
    beside = min(abs(order.index(field) - order.index(time)) for time in times) == 1
    named = rank(identifier(field), ZONE_NAMES)[0] < 2
    return (beside or named) and all(OFFSET.fullmatch(text) or _zone_of(text) for text in {*texts})


def _zone_of(text: str) -> str | None:
    """Return the IANA zone of a text: a name, letters, or whole hours from UTC."""
    if text in ZONES:
        return ZONES[text]
    hours = HOURS.fullmatch(text)
    if hours is not None and int(hours["hours"]) <= 12:
        return f"Etc/GMT{'-' if hours['sign'] == '+' else '+'}{int(hours['hours'])}"
    return text if "/" in text and text in available_timezones() else None


def _of_one_zone(log: DetectedFormat, when: InferredTime, field: str) -> InferredTime | None:
    """Return a time with the same zone text in all lines; a line with another one is refused instead of
    misread."""
    texts = set(log.fields[field])
    written = _texts(log, when.fields)[:2000]
    form = when.declared.get("format") or written_form_of(written)
    zone = _zone_of(next(iter(texts))) if len(texts) == 1 else None
    if zone is None or form is None or "%" in next(iter(texts)):
        return None
    (text,) = texts
    fields = [*when.fields, field]
    notes = [_example(_texts(log, fields)), f"lines with another {field} than {text} are refused"]
    declared = {"column": fields, "format": f"{form} {text}", "zone": zone}
    return InferredTime(tuple(fields), declared, "; ".join(notes))


def _is_time_field(log: DetectedFormat, field: str) -> bool:
    """Return whether a field is a time by its type or its name."""
    return log.types.get(field) == "timestamp" or is_time_name(field)


def _joined(log: DetectedFormat, kinds: Mapping[str, ColumnType], start: str) -> InferredTime | None:
    """Return a date and a time of day beside it, in columns of any name, with AM or PM."""
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
            inferred = _several(log, [day, clock, *half])
            if inferred is None and half and _several(log, [day, clock]) is not None:
                why = f"{_example(_texts(log, [day, clock, *half]))} is a time of no form that is known"
                unread = unread or InferredTime(
                    (), {"lines": "1 second", "from": start}, f"?: {why}", untimed=why
                )
            if inferred is not None and (_is_date(log, day, clock) or not _is_six_digits(inferred)):
                return inferred
    return unread


def _half(log: DetectedFormat, clock: str) -> list[str]:
    """Return the field after a time of day if it has AM or PM; else an empty list."""
    order = list(log.fields)
    following = order[order.index(clock) + 1 :][:1]
    return [field for field in following if log.fields[field] and all(map(HALF.fullmatch, log.fields[field]))]


def _is_date(log: DetectedFormat, day: str, clock: str) -> bool:
    """Return whether the name or the position of a field makes it the date of a time of day."""
    order = list(log.fields)
    return rank(identifier(day), DAYS)[0] < 2 or order.index(clock) == order.index(day) + 1


def _is_six_digits(when: InferredTime) -> bool:
    """Return whether the date is a number of six digits, which may be something else, such as a process
    id."""
    return str(when.declared.get("format")).startswith("%y%m%d")


def _several(log: DetectedFormat, fields: Sequence[str]) -> InferredTime | None:
    """Return a complete time of several fields, with blanks between them."""
    texts = _texts(log, fields)
    times = times_of(texts[:2000]) if texts else None
    if times is None:
        return None
    kind = ColumnType("timestamp", form=times.form, share=times.share)
    notes = [_example(texts), *_doubts(times.otherwise, kind.doubt)]
    return _when(log, fields, times.form, times.zone if times.local else None, notes)


def _doubts(otherwise: str | None, doubt: str) -> list[str]:
    return [*([f"?: or {otherwise}, these lines fit both"] if otherwise else []), *([doubt] if doubt else [])]


def _partial(
    log: DetectedFormat, kinds: Mapping[str, ColumnType], paths: Sequence[str], start: str
) -> InferredTime | None:
    """Return a time without a year, or without a date, which the files' names may have."""
    candidates: list[tuple[tuple[str, ...], str, Lacks]] = []
    leads = [log.time] if len(log.time) > 1 else []
    for fields in [*leads, *((field,) for field, kind in kinds.items() if kind.type == "string")]:
        partial = partial_times_of(_texts(log, fields))
        if partial is not None:
            candidates.append((fields, *partial))
    if not candidates:
        return None
    fields, form, lacks = min(
        candidates, key=lambda candidate: (candidate[2] != "year", rank(identifier(candidate[0][-1]), TIMES))
    )
    example = _example(_texts(log, fields))
    captured = captured_of(paths, lacks, log.fields)
    if captured is None:
        why = f"no {lacks} is found for the times in {' '.join(fields)} ({example})"
        note = f"?: {why}, so they are not read; {_advice(paths[0], lacks)}"
        return InferredTime((), {"lines": "1 second", "from": start}, note, untimed=why)
    edge = "a new year" if lacks == "year" else "midnight"
    notes = [
        f"{example}, with the {lacks} of the file's name",
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
    """Return the declaration of a time.

    Args:
        zone: the zone of times without one, if it is known.
    """
    declared: dict[str, object] = {"column": fields[0] if len(fields) == 1 else list(fields)}
    if form != "iso":
        declared["format"] = form
    remarks = list(notes)
    if zone is not None and form not in EPOCHS:
        declared["zone"] = zone
        if LETTERS in form.split():
            remarks[1:1] = [] if zone == "UTC" else [LETTERS_QUESTION.format(zone)]
        elif not log.utc:
            remarks.insert(1, ZONE_QUESTION)
    return InferredTime(tuple(fields), declared, "; ".join(remarks))


def _texts(log: DetectedFormat, fields: Sequence[str]) -> Sequence[str]:
    if len(fields) == 1:
        return log.fields[fields[0]]
    return [" ".join(row) for row in zip(*(log.fields[field] for field in fields), strict=False)]


def _example(texts: Sequence[str]) -> str:
    text = texts[0]
    return text if len(text) <= 40 else f"{text[:37]}..."


def is_time_name(field: str) -> bool:
    """Return whether the name of a field is that of a time."""
    return rank(identifier(field), (*TIMES, *ENDS))[0] < 2


def rank(name: str, names: Sequence[str]) -> tuple[int, int]:
    """Return whether a name equals one of the names, contains one, or neither (0, 1, 2), and the position of
    that one."""
    words = set(name.split("_"))
    for index, known in enumerate(names):
        if name == known:
            return 0, index
        if known in words or name.endswith(f"_{known}"):
            return 1, index
    return 2, 0
