"""The grid of hours by plain loops: the reference of the arrays of `transom.views.hours`."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial

from transom.charts.section import DataTable
from transom.core.intervals import HOUR, UNKNOWN_HOUR, Interval, format_hour, format_hours
from transom.core.partitions import SOURCE_STAGE, PartitionKey
from transom.core.terminal import counted
from transom.engine.gate_text import format_roots
from transom.ledger.freshness import Freshness
from transom.ledger.hour_states import WORST
from transom.ledger.snapshot import LedgerSnapshot
from transom.spec.external_source import EVENTS
from transom.spec.stream import Stream
from transom.views.hours import DAY, MEANINGS, UNITS, WORDS, GridCell, HourGrid

MAX_RANGES = 5
"""The maximum number of ranges of hours in a row of the table."""
Trouble = tuple[datetime, str, str | None]
"""An hour, its state, and why."""


def plain_hours(
    stream: Stream, snapshot: LedgerSnapshot, freshness: Freshness, interval: Interval
) -> HourGrid:
    """Return the state of each stage by hour; cells have no target."""
    unit = next((name for name, longest in UNITS if interval.end - interval.start <= longest), "month")
    cells = list(_cells(interval, unit))
    required = sorted(hour for hour in snapshot.required_hours if hour in interval)
    stages: dict[str, tuple[GridCell, ...]] = {}
    counts: dict[str, Counter[str]] = {}
    attention: list[tuple[object, ...]] = []
    notes = ["No file is expected of this stream, so no check finds a missing one."]
    troubled = _troubled(snapshot)
    for stage in stream.stages:
        stale = freshness.stale(stage)
        # A file without an hour may belong to any hour.
        unknown = {hour for hour, *_ in troubled.get(stage, ()) if hour == UNKNOWN_HOUR}
        states = _states(snapshot, stage, sorted({*unknown, *required}), troubled.get(stage, ()), stale)
        counts[stage] = Counter(state for hour, state in states.items() if hour in interval)
        stages[stage] = tuple(_cell(cell, states) for cell in cells)
        attention += _attention(stream, snapshot, stage, states, troubled.get(stage, ()), stale)
        if stage == SOURCE_STAGE:
            for has_files, why in ((True, "as their files have none"), (False, "as no file came")):
                quiet = [
                    hour
                    for hour in required
                    if states[hour] == "empty" and _has_files(snapshot, hour) == has_files
                ]
                if quiet:
                    notes.append(f"{counted(len(quiet), 'hour')} without events, {why}: {_which(quiet)}.")
    attention.sort(key=lambda row: WORST.index(str(row[1])))
    seen = set[str]().union(*counts.values())
    seen |= {cell.state for of_stage in stages.values() for cell in of_stage}
    columns = [state for state in MEANINGS if state in seen and state != "none"]
    return HourGrid(
        unit,
        stages,
        {state: meaning for state, meaning in MEANINGS.items() if state in seen},
        DataTable.of(["stage", *columns], ([stage, *map(of.get, columns)] for stage, of in counts.items())),
        DataTable.of(["stage", "state", "hours", "which", "cause", "see"], attention),
        newest=max(filter(partial(_has_events, snapshot), snapshot.required_hours), default=None),
        notes=(*(["Every requested hour is published and fresh."] if not attention else []), *notes),
    )


def _has_files(snapshot: LedgerSnapshot, hour: datetime) -> bool:
    files = snapshot.get(PartitionKey(SOURCE_STAGE, EVENTS, "files", hour))
    return files is None or files.rows > 0


def _has_events(snapshot: LedgerSnapshot, hour: datetime) -> bool:
    events = snapshot.get(PartitionKey(SOURCE_STAGE, EVENTS, EVENTS, hour))
    return events is not None and events.rows > 0 and hour != UNKNOWN_HOUR


def _troubled(snapshot: LedgerSnapshot) -> dict[str, list[Trouble]]:
    """Return the partitions that are not published and complete, by stage: hour, state and reason."""
    troubled: dict[str, list[Trouble]] = {}
    # The first reason is that of the first block and table.
    for partition, state in sorted(snapshot.troubled()):
        if state.status != "expired":
            word = "incomplete" if state.status == "published" else state.status
            troubled.setdefault(partition.stage, []).append((partition.hour, word, state.reason))
    return troubled


def _states(
    snapshot: LedgerSnapshot,
    stage: str,
    required: Sequence[datetime],
    troubled: Iterable[Trouble],
    stale: Mapping[datetime, PartitionKey],
) -> dict[datetime, str]:
    """Return the state of each required hour of a stage."""
    states = dict.fromkeys(required, "missing")
    states |= dict.fromkeys(states.keys() & snapshot.all_hours(stage), "published")
    for hour, word, _ in troubled:
        if hour in states:
            states[hour] = min(word, states[hour], key=WORST.index)
    for hour in stale:
        # An hour that is not computed counts as stale, too.
        if states.get(hour, "missing") != "missing":
            states[hour] = min("stale", states[hour], key=WORST.index)
    for hour, state in states.items():
        events = snapshot.get(PartitionKey(SOURCE_STAGE, EVENTS, EVENTS, hour))
        if state == "published" and events and not events.rows:
            states[hour] = "empty"
    return states


def _cells(interval: Interval, unit: str) -> Iterator[Interval]:
    """Yield the intervals of the cells."""
    start = interval.start
    while start < interval.end:
        end = start + HOUR
        if unit != "hour":
            day = start.replace(hour=0)
            end = day + DAY if unit == "day" else (day.replace(day=1) + 32 * DAY).replace(day=1)
        yield Interval(start, min(end, interval.end))
        start = end


def _cell(interval: Interval, states: Mapping[datetime, str]) -> GridCell:
    counts = Counter(states.get(hour, "none") for hour in interval.hours())
    worst = sorted(counts, key=WORST.index)
    words = {state: WORDS.get(state, state) for state in worst}
    text = words[worst[0]] if len(interval) == 1 else ", ".join(f"{counts[s]} {words[s]}" for s in worst)
    return GridCell(interval, worst[0], text, len(worst) > 1 and worst[-1] == "none", interval)


def _attention(
    stream: Stream,
    snapshot: LedgerSnapshot,
    stage: str,
    states: Mapping[datetime, str],
    troubled: Iterable[Trouble],
    stale: Mapping[datetime, PartitionKey],
) -> Iterator[tuple[object, ...]]:
    """Yield a row for each state and cause of a stage's hours: how many, which, and the command to run."""
    reasons: dict[tuple[datetime, str], str] = {}
    for hour, word, reason in troubled:
        if reason and hour in states:
            reasons.setdefault((hour, word), reason)
    of_stale = {hour: root for hour, root in stale.items() if states.get(hour) in ("stale", "missing")}
    causes = {hour: text for text, of in format_roots(of_stale, snapshot).items() for hour in of}
    groups: dict[tuple[str, str], list[datetime]] = {}
    for hour, word in states.items():
        if word not in ("published", "empty"):
            cause = reasons.get((hour, word)) or causes.get(hour) or MEANINGS[word]
            groups.setdefault((word, cause), []).append(hour)
    for (word, cause), of in sorted(groups.items(), key=lambda item: (WORST.index(item[0][0]), item[1][0])):
        see = f"transom explain {stream.name} {format_hour(of[0])}"
        yield stage, word, len(of), _which(of), cause, see


def _which(hours: Sequence[datetime]) -> str:
    """Return sorted hours as text: the first ranges, and the number of the others."""
    ranges: list[list[datetime]] = []
    for hour in hours:
        if ranges and ranges[-1][1] == hour:
            ranges[-1][1] += HOUR
        else:
            ranges.append([hour, hour + HOUR])
    texts = [format_hours(Interval(start, end).hours()) for start, end in ranges[:MAX_RANGES]]
    more = len(ranges) - MAX_RANGES
    return ", ".join([*texts, *([f"and {more} more"] if more > 0 else [])])
