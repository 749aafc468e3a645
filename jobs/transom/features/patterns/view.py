"""The view of patterns: episodes as bars on a time axis, with the steps of their matches."""

from collections.abc import Iterator
from typing import Any

from transom.charts.section import DataTable, Section
from transom.charts.specs import label, millis, spans
from transom.core.intervals import MICROSECOND
from transom.core.terminal import counted
from transom.engine.selection import Selection
from transom.features.patterns.spec import Pattern
from transom.findings.text import key_text
from transom.storage.tables import instant

EPISODES = 25
"""The maximum number of episodes in a chart."""
MATCHES = 1_000
"""The maximum number of matches whose steps are drawn."""
DETECTED = "detected"


def sections(selection: Selection) -> Iterator[Section]:
    """Yield a section for each block that has the selected key."""
    for name, pattern in selection.stream.blocks(Pattern).items():
        if selection.has_key(pattern.key):
            yield _section(selection, name, pattern)


def _section(selection: Selection, name: str, pattern: Pattern) -> Section:
    rows, total = selection.rows(
        "patterns", name, "episodes", each="episode_id", keep="state <> 'joined'",
        order="start_time DESC, episode_id", limit=200,
    )  # fmt: skip
    drawn = rows[:EPISODES]
    columns = [*pattern.key, "start_time", "last_time", "matches", "level", "detected_at", "state"]
    levels = sorted({row["level"] for row in rows})
    bars = [
        {
            "label": _label(pattern, row),
            "start": millis(row["start_time"]),
            "end": millis(row["last_time"] + MICROSECOND),
            "state": f"level {row['level']}",
        }
        for row in drawn
    ]
    chart = spans(bars, [f"level {level}" for level in levels], _steps(selection, name, pattern, drawn))
    return Section(
        f"{name}: episodes",
        f"{counted(total, 'episode')}, the latest first; {len(drawn)} in the chart. Points are the steps of "
        f"at most {MATCHES:,} matches, the latest, and the end of the window that detected the first. A "
        "partial episode is open at the end of these hours. Exact."
        if rows
        else "No episode in these hours.",
        DataTable.of(columns, ([row[column] for column in columns] for row in rows), total),
        chart if bars else None,
        name,
    )


def _label(pattern: Pattern, row: dict[str, Any]) -> str:
    return label(f"{row['start_time']:%Y-%m-%d %H:%M:%S} {key_text(pattern.key, row) or ''}".strip())


def _steps(
    selection: Selection, name: str, pattern: Pattern, episodes: list[dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    """Yield the points of the steps of some episodes, and of their detection."""
    if not episodes:
        return
    of_keys = " OR ".join({selection.equals(pattern.key, row): None for row in episodes})
    first = min(row["start_time"] for row in episodes)
    matches, _ = selection.rows(
        "patterns", name, "matches", where=f"first_time >= {instant(first)} AND ({of_keys})",
        order="first_time DESC, match_id", limit=MATCHES,
    )  # fmt: skip
    for row in episodes:
        yield {"label": _label(pattern, row), "time": millis(row["detected_at"]), "step": DETECTED}
        for match in matches:
            same = all(match[column] == row[column] for column in pattern.key)
            if same and row["start_time"] <= match["first_time"] and match["last_time"] <= row["last_time"]:
                for step in match["steps"]:
                    yield {"label": _label(pattern, row), "time": millis(step["time"]), "step": step["id"]}
