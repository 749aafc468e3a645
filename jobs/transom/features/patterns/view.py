"""The view of patterns: episodes as bars on a time axis, with the steps of their matches."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import islice
from typing import Any

from transom.charts.section import MAX_ROWS, Cells, DataTable, Section
from transom.charts.specs import label, labels, millis, spans
from transom.core.durations import format_duration
from transom.core.intervals import MICROSECOND, hour_of
from transom.core.terminal import counted
from transom.core.terminal_tables import plain
from transom.engine.selection import Row, Selection
from transom.features.patterns.spec import Pattern
from transom.findings.text import key_text
from transom.storage.tables import instant, literal
from transom.storage.tables import meanings as described

EPISODES = 25
"""The maximum number of episodes in a chart."""
MATCHES = 1_000
"""The maximum number of matches whose steps are drawn."""
DETECTED = "detected"
DELAY = "detection_delay_s"
AT_ONCE = 1_000
"""The number of episodes whose delays are read at once."""


def section(selection: Selection, name: str) -> Section:
    """Return the section of a block."""
    pattern = selection.stream.blocks(Pattern)[name]
    columns = [*pattern.key, "start_time", "last_time", "matches", "level", "detected_at"]
    query = selection.query(
        "patterns", name, "episodes", [*columns, "state", "episode_id"], each="episode_id",
        keep="state <> 'joined'", order="start_time DESC, episode_id",
    )  # fmt: skip
    rows, total = query.page()
    columns += [DELAY, "state"]

    def cells(row: Row) -> Cells:
        return tuple(row[column] for column in columns)

    drawn = rows[:EPISODES]
    # Episodes of a key may start in the same second.
    named = labels(
        {
            row["episode_id"]: f"{plain(row['start_time'])} {key_text(pattern.key, row) or ''}".strip()
            for row in drawn
        }
    )
    bars = [
        {
            "label": named[row["episode_id"]],
            "start": millis(row["start_time"]),
            "end": millis(row["last_time"] + MICROSECOND),
            "state": f"level {row['level']}",
        }
        for row in drawn
    ]
    levels = sorted({row["level"] for row in drawn})
    matches = _matches(selection, name, pattern, drawn)
    points = _points(pattern, drawn, matches, named)
    latest = ""
    if rows and selection.page == 1:
        first = rows[0]
        of = f"{label(key_text(pattern.key, first) or '')}, " if pattern.key else ""
        latest = f" The latest: {of}{plain(first['start_time'])} to {plain(first['last_time'])}."
    cut = " The earliest matches of these episodes have no points." if len(matches) == MATCHES else ""
    return Section(
        f"{name}: episodes",
        f"{counted(total, 'episode')}, the latest first{query.drawn(drawn, total)}.{latest}{query.limit_note}"
        if total
        else "No episode in these hours.",
        DataTable.of(
            columns,
            map(cells, _with_delays(selection, name, rows)),
            total,
            1 + (selection.page - 1) * MAX_ROWS,
            download=lambda: map(cells, _with_delays(selection, name, query.stream())),
            meanings={**described("episodes"), DELAY: described("matches")[DELAY]},
        ),
        spans(bars, [f"level {level}" for level in levels], points) if bars else None,
        name,
        guarantee=f"Points are the steps of at most {MATCHES:,} matches, the latest, and the end of the "
        f"window that detected the first, {DELAY} seconds after its last record. A partial episode is open: "
        f"a match that is detected after these hours may join it. {_exactness(pattern)}{cut}"
        if total
        else "",
    )


def _exactness(pattern: Pattern) -> str:
    """Return the guarantees of the detection."""
    if pattern.detector is not None:
        return "Exact: what the detector finds in its windows."
    counts = "" if pattern.counts_all else " that a step may take"
    return (
        f"Exact: all matches of at most {format_duration(pattern.within)} and {pattern.max_records:,} "
        f"records{counts}, each once. The delay is at most {format_duration(pattern.batch)} or twice "
        "the duration of the match."
    )


def _with_delays(selection: Selection, name: str, episodes: Iterable[Row]) -> Iterator[Row]:
    """Yield episodes with the time from the last record of the first detected match to its detection."""
    rows, known = iter(episodes), selection.snapshot.readable_hours("patterns", name, "matches")
    while part := [*islice(rows, AT_ONCE)]:
        ids = ", ".join(literal(row["episode_id"]) for row in part)
        query = selection.query(
            "patterns", name, "matches", ["match_id", DELAY], where=f"match_id IN ({ids})"
        )
        # Of an episode that has begun before these hours, the first match was reported before them.
        hours = {hour_of(row["detected_at"] - MICROSECOND) for row in part}
        found = replace(query, hours=sorted(hour for hour in hours if hour in known)).rows(len(part))
        delays = {row["match_id"]: row[DELAY] for row in found}
        yield from (row | {DELAY: delays.get(row["episode_id"])} for row in part)


def records(
    selection: Selection, name: str, start: datetime, end: datetime, limit: int
) -> dict[str, list[int]]:
    """Return the first records of the matches of the selected key in a period: the lines of each source.

    Args:
        selection: the hours that reported the matches, and the key.
        name: the block.
        start: the start of the period.
        end: its end, exclusive.
        limit: the maximum number of records.
    """
    query = selection.query(
        "patterns", name, "matches", ["records"], order="first_time, match_id",
        where=f"first_time >= {instant(start)} AND last_time < {instant(end)}",
    )  # fmt: skip
    found = (record for row in query.rows(limit) for record in row["records"] or ())
    lines: dict[str, list[int]] = {}
    first = sorted({(row["event_time"], row["source_id"], row["source_line"]) for row in found})[:limit]
    for _, source, line in first:
        lines.setdefault(source, []).append(line)
    return lines


def _matches(selection: Selection, name: str, pattern: Pattern, episodes: Sequence[Row]) -> list[Row]:
    """Return the latest matches of the keys of some episodes."""
    if not episodes:
        return []
    of_keys = " OR ".join({selection.equals(pattern.key, row): None for row in episodes})
    first = min(row["start_time"] for row in episodes)
    query = selection.query(
        "patterns", name, "matches", [*pattern.key, "first_time", "last_time", "steps"],
        where=f"first_time >= {instant(first)} AND ({of_keys})", order="first_time DESC, match_id",
    )  # fmt: skip
    return query.rows(limit=MATCHES)


def _points(
    pattern: Pattern, episodes: Sequence[Row], matches: Sequence[Row], named: dict[str, str]
) -> Iterator[dict[str, Any]]:
    """Yield the points of the steps of some episodes, and of their detection."""
    for row in episodes:
        label = named[row["episode_id"]]
        yield {"label": label, "time": millis(row["detected_at"]), "step": DETECTED}
        for match in matches:
            same = all(match[column] == row[column] for column in pattern.key)
            if same and row["start_time"] <= match["first_time"] and match["last_time"] <= row["last_time"]:
                for step in match["steps"]:
                    yield {"label": label, "time": millis(step["time"]), "step": step["id"]}
