"""Infer which fields of a log have the time of a record, and what the time lacks."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from zoneinfo import available_timezones

from transom.cli.init.infer_path import captured_of, dated, identifier
from transom.cli.init.infer_types import (
    HALF,
    MAX_TEXTS,
    ZONES,
    ColumnType,
    Lacks,
    kind_of,
    partial_times_of,
    times_of,
    written_times_of,
)
from transom.cli.init.log_format import LogFormat, mostly
from transom.formats.record_format import EPOCHS
from transom.formats.times import LETTERS, one_instant

TIMES = ("event_time", "eventtime", "timestamp", "datetime", "time", "ts", "date", "when", "at")
DAYS = ("date", "day")
ENDS = (
    "epoch", "stamp", "rt", "start", "started", "begin", "end", "ended", "first", "last", "seen", "created",
    "updated", "modified", "changed", "since", "until", "expires", "expiry", "from", "to", "on", "t",
)  # fmt: skip
"""Names of less likely times."""
ZONE_NAMES = (
    "tz", "timezone", "time_zone", "zone", "utc_offset", "gmt_offset", "tz_offset", "tzoffset", "offset",
)  # fmt: skip
"""Names of fields with a zone."""
OFFSET = re.compile(r"[+-](?:0\d|1[0-4]):?[0-5]\d|Z")
HOURS = re.compile(r"(?:UTC|GMT)?(?P<sign>[+-])(?P<hours>[0-9]{1,2})(?::?00)?")
ZONE_IN_NAME = re.compile(
    r"(?<![a-z])(?:utc|gmt)(?:[+-][0-9]{1,2}(?::?00)?(?![0-9:])|(?![a-z0-9+-]))", re.IGNORECASE
)
AROUND_ZONE = "()[]<>:,;"
CLOCK = re.compile(r"\d?\d[:.]\d\d")
PART_NAME = re.compile(
    "y|yy|yyyy|yr|years?|m|mm|mo|mon|months?|d|dd|dy|days?|h|hh|hr|hrs|hours?|mi|min|mins|mn|minutes?"
    "|s|ss|sec|secs|seconds?",
    re.IGNORECASE,
)
"""A field with a part of a time."""
ZONE_QUESTION = "?: which zone these are in, such as Europe/Berlin"
LETTERS_QUESTION = "?: other zones than {} have such letters, too"
CLOCK_QUESTION = "?: the clocks of {} do not show {} at these times; set the zone whose clocks do"


@dataclass(frozen=True)
class InferredTime:
    """The time of an event.

    Attributes:
        fields: the fields of the record with the time.
        declared: the declaration in the stream file.
        note: a remark for the user.
        path: the pattern of the files if their names have a part of the time.
        untimed: why no time is read and the user has to decide; empty if there is a time. `declared` then
            invents times, one second per line.
    """

    fields: tuple[str, ...]
    declared: Mapping[str, object]
    note: str
    path: str | None = None
    untimed: str = ""


def time_of(log: LogFormat, paths: Sequence[str], start: str) -> InferredTime:
    """Infer the time of a log's records.

    It is one field, or fields with a date and a time of day. Otherwise, it is a time without a year or a
    date, completed by the files' paths, or else the numbers of lines.

    Args:
        paths: the files' paths.
        start: the time of the first line, in the form of a stream file.
    """
    epoch = ColumnType("timestamp", form="epoch")
    typed = {name for name, type_ in log.types.items() if type_ == "timestamp"}
    names = [name for name, texts in log.fields.items() if texts and "|" not in name and name == name.strip()]
    kinds = {name: epoch if name in typed else kind_of(log.fields[name]) for name in names}
    times = [name for name in names if kinds[name].type == "timestamp"]
    # A number may look like a time by chance.
    sure = [name for name in times if name in typed or kinds[name].form not in EPOCHS or is_time_name(name)]
    leading = _several(log, log.time) if len(log.time) > 1 else None
    if leading is not None:
        return _in_zone(log, leading)
    if sure:
        return _in_zone(log, _single_field(log, kinds, sure, []))
    joined = _joined(log, kinds, start)
    if joined is not None and not joined.untimed:
        return _in_zone(log, joined)
    partial = _partial(log, kinds, paths, start)
    if partial is not None and not partial.untimed:
        return partial
    if times:
        return _single_field(log, kinds, times, ["?: a time by its size alone"])
    return joined or partial or _untimed("no field looks like a time", start)


def _single_field(
    log: LogFormat, kinds: Mapping[str, ColumnType], times: Sequence[str], notes: Sequence[str]
) -> InferredTime:
    best = min(times, key=lambda field: (rank(identifier(field), TIMES), kinds[field].form in EPOCHS))
    others = ", ".join(field for field in times if field != best)
    return _declared(log, [best], kinds[best], [*notes, f"other times: {others}"] if others else notes)


def _several(log: LogFormat, fields: Sequence[str]) -> InferredTime | None:
    """Return a complete time whose parts are several fields, joined by blanks."""
    texts = _texts(log, fields)[:MAX_TEXTS]
    kind = times_of(texts) if texts else None
    return None if kind is None else _declared(log, fields, kind)


def _in_zone(log: LogFormat, when: InferredTime) -> InferredTime:
    """Return a time with the field of its offset or zone; unchanged if there is none."""
    if when.declared.get("zone") != "UTC" or LETTERS in str(when.declared.get("format")).split():
        return when
    zoned = [field for field in log.fields if field not in when.fields and _is_zone(log, field, when.fields)]
    for field in zoned:
        fields = [*when.fields, field]
        in_zone = _several(log, fields)
        if in_zone is not None and "format" not in in_zone.declared:
            # Not every Python version parses ISO 8601 with a blank before the offset.
            kind = written_times_of(_texts(log, fields))
            in_zone = replace(in_zone, declared={**in_zone.declared, "format": kind.form}) if kind else None
        in_zone = in_zone or _in_one_zone(log, when, field)
        if in_zone is not None:
            return in_zone
    for field in zoned:
        zones = sorted({*log.fields[field]})
        if len(zones) > 1:
            few = ", ".join(zones[:3]) + (", ..." if len(zones) > 3 else "")
            question = f"?: {field} has the zone of each, {few}, and only one can be declared"
            return replace(when, note=when.note.replace(ZONE_QUESTION, question))
    return _in_zone_of_name(when)


def _in_zone_of_name(when: InferredTime) -> InferredTime:
    """Return a time in the zone that the name of its field has; unchanged if there is none."""
    for field in when.fields:
        match = ZONE_IN_NAME.search(field)
        zone = None if match is None else _zone_of(match[0].upper())
        if zone is not None:
            note = when.note.replace(ZONE_QUESTION, f"in {zone}, by its name")
            return replace(when, declared={**when.declared, "zone": zone}, note=note)
    return when


def _is_zone(log: LogFormat, field: str, times: Sequence[str]) -> bool:
    """Return whether a field has offsets or zones alone, and belongs to the time by its name or position."""
    texts, order = log.fields[field], list(log.fields)
    if not texts or any(len(texts) != len(log.fields[time]) for time in times):
        return False
    beside = min(abs(order.index(field) - order.index(time)) for time in times) == 1
    named = rank(identifier(field), ZONE_NAMES)[0] < 2
    return (beside or named) and all(OFFSET.fullmatch(text) or _zone_of(text) for text in {*texts})


def _zone_of(text: str) -> str | None:
    """Return the IANA zone of a name, of letters, or of an offset of whole hours, with any signs around it;
    None if there is none."""
    text = text.strip(AROUND_ZONE)
    if text in ZONES:
        return ZONES[text]
    hours = HOURS.fullmatch(text)
    if hours is not None and int(hours["hours"]) <= 12:
        return f"Etc/GMT{'-' if hours['sign'] == '+' else '+'}{int(hours['hours'])}"
    return text if "/" in text and text in available_timezones() else None


def _in_one_zone(log: LogFormat, when: InferredTime, field: str) -> InferredTime | None:
    """Return a time whose zone has the same text in all lines; a job rejects lines with another text."""
    text, *others = set(log.fields[field])
    form, zone = when.declared.get("format"), _zone_of(text)
    if form is None and (kind := written_times_of(_texts(log, when.fields))) is not None:
        form = kind.form
    if others or zone is None or form is None or "%" in text:
        return None
    fields = [*when.fields, field]
    note = f"{_example(_texts(log, fields))}; lines with another {field} than {text} are rejected"
    letters = text.strip(AROUND_ZONE)
    if letters in ZONES and zone != "UTC" and not _shows(log, when.fields, letters, f"{form} {LETTERS}"):
        note += f"; {CLOCK_QUESTION.format(zone, letters)}"
    return InferredTime(tuple(fields), {"column": fields, "format": f"{form} {text}", "zone": zone}, note)


def _shows(log: LogFormat, fields: Sequence[str], letters: str, form: str) -> bool:
    """Return whether the clocks of a zone with these letters show them at most times."""
    texts = _texts(log, fields)[:MAX_TEXTS]
    return mostly(one_instant(f"{text} {letters}", form, ZONES[letters])[1] is None for text in texts)


def _joined(log: LogFormat, kinds: Mapping[str, ColumnType], start: str) -> InferredTime | None:
    """Return a date and a time of day in two fields of any name, and AM or PM in a third; or the fields of a
    year, a month, a day, an hour, a minute, and perhaps a second."""
    unread: InferredTime | None = None
    order = list(log.fields)
    # Any small number may be a minute or a second.
    initials = "".join(name[0].lower() if _is_part(name) else " " for name in order)
    for parts in ("ymdhms", "ymdhm"):
        at = initials.find(parts)
        inferred = _several(log, order[at : at + len(parts)]) if at >= 0 else None
        if inferred is not None:
            return inferred
    plain = [name for name, kind in kinds.items() if kind.type in ("string", "integer")]
    days = [name for name in plain if times_of([f"{text} 00:00:00" for text in log.fields[name][:MAX_TEXTS]])]
    days.sort(key=lambda field: rank(identifier(field), DAYS))
    clocks = [field for field in kinds if mostly(CLOCK.match(text) is not None for text in log.fields[field])]
    clocks.sort(key=lambda field: rank(identifier(field), TIMES))
    for day in days:
        for clock in clocks:
            # A field of AM or PM.
            after = order[order.index(clock) + 1 :][:1]
            half = [name for name in after if log.fields[name] and all(map(HALF.fullmatch, log.fields[name]))]
            inferred = _several(log, [day, clock, *half])
            if inferred is None:
                if half and unread is None and _several(log, [day, clock]) is not None:
                    example = _example(_texts(log, [day, clock, *half]))
                    unread = _untimed(f"{example} is a time of an unknown form", start)
                continue
            is_date = rank(identifier(day), DAYS)[0] < 2 or order.index(clock) == order.index(day) + 1
            # Six digits may also be a process id or the like.
            if is_date or not str(inferred.declared.get("format")).startswith("%y%m%d"):
                return inferred
    return unread


def _is_part(name: str) -> bool:
    """Return whether a field has the name of a part of a time, with or without a zone."""
    return PART_NAME.fullmatch(ZONE_IN_NAME.sub("", name).strip(f" _{AROUND_ZONE}")) is not None


def _partial(
    log: LogFormat, kinds: Mapping[str, ColumnType], paths: Sequence[str], start: str
) -> InferredTime | None:
    """Return a time without a year or a date; the files' names may complete it."""
    candidates: list[tuple[tuple[str, ...], str, Lacks]] = []
    leads = [log.time] if len(log.time) > 1 else []
    for fields in [*leads, *((field,) for field, kind in kinds.items() if kind.type == "string")]:
        partial = partial_times_of(_texts(log, fields))
        if partial is not None:
            candidates.append((fields, *partial))
    if not candidates:
        return None
    candidates.sort(key=lambda time: (time[2] != "year", rank(identifier(time[0][-1]), TIMES)))
    fields, form, lacks = candidates[0]
    captured = captured_of(paths, lacks, log.fields)
    if captured is None:
        example, name = _example(_texts(log, fields)), dated(paths[0].rpartition("/")[2])
        advice = (
            f", so they are not read; land the files under names with the day, such as {name}, and draft "
            f"it again: the {lacks} is then taken from there"
        )
        return _untimed(f"no {lacks} is found for the times in {' '.join(fields)} ({example})", start, advice)
    note = f"?: a file must not go over {'a new year' if lacks == 'year' else 'midnight'}"
    pattern, names, of_path = captured
    kind = ColumnType("timestamp", form=f"{of_path} {form}", local=True)
    when = _declared(log, fields, kind, [note], f", with the {lacks} of the file's name")
    return replace(when, declared={**when.declared, "column": [*names, *fields]}, path=pattern)


def _untimed(why: str, start: str, advice: str = "") -> InferredTime:
    return InferredTime((), {"lines": "1 second", "from": start}, f"?: {why}{advice}", untimed=why)


def _declared(
    log: LogFormat, fields: Sequence[str], kind: ColumnType, notes: Sequence[str] = (), source: str = ""
) -> InferredTime:
    """Return the declaration of a time.

    Args:
        notes: further remarks.
        source: where the rest of the time is, for the remark with an example.
    """
    declared: dict[str, object] = {"column": fields[0] if len(fields) == 1 else list(fields)}
    if kind.form != "iso":
        declared["format"] = kind.form
    remarks = [f"{_example(_texts(log, fields))}{source}"]
    if kind.local:
        declared["zone"] = kind.zone
        if kind.named:
            remarks.append(f"lines with another zone than {kind.zone} are rejected")
        elif LETTERS not in kind.form.split():
            remarks += [] if log.utc else [ZONE_QUESTION]
        elif kind.zone != "UTC":
            remarks.append(LETTERS_QUESTION.format(kind.zone))
    remarks += [f"?: or {kind.otherwise}, these lines fit both"] if kind.otherwise else []
    remarks += [kind.doubt] if kind.doubt else []
    return InferredTime(tuple(fields), declared, "; ".join([*remarks, *notes]))


def _texts(log: LogFormat, fields: Sequence[str]) -> Sequence[str]:
    if len(fields) == 1:
        return log.fields[fields[0]]
    return [" ".join(row) for row in zip(*(log.fields[field] for field in fields), strict=False)]


def _example(texts: Sequence[str]) -> str:
    return texts[0] if len(texts[0]) <= 40 else f"{texts[0][:37]}..."


def is_time_name(field: str) -> bool:
    """Return whether a field's name is that of a time."""
    return rank(identifier(field), (*TIMES, *ENDS))[0] < 2


def rank(name: str, names: Sequence[str]) -> tuple[int, int]:
    """Return 0 if a name equals one of `names`, 1 if it contains one, else 2; and its position in `names`."""
    words = set(name.split("_"))
    for index, known in enumerate(names):
        if name == known:
            return 0, index
        if known in words or name.endswith(f"_{known}"):
            return 1, index
    return 2, 0
