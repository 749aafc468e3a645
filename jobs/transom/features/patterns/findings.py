"""Episodes as findings."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from transom.core.durations import format_duration, format_duration_long, microseconds
from transom.core.terminal import counted
from transom.features.patterns.algorithm.episodes import Merging
from transom.features.patterns.spec import AnyOrder, Pattern, Step
from transom.findings.entities import EntityFindings, plain_title
from transom.findings.source import ONGOING, FindingSource, Row
from transom.findings.text import as_time
from transom.spec.stream import Stream


@dataclass(frozen=True, kw_only=True)
class EpisodeFindings(EntityFindings):
    """How the episodes of a pattern are put in words.

    Attributes:
        rule: the pattern.
        windows: the lengths of the windows of each level.
    """

    id: str = "episode_id"
    new: str = "new_matches"
    columns: tuple[str, ...] = (
        "episode_id", "start_time", "last_time", "matches", "new_matches", "detected_at", "level", "state",
    )  # fmt: skip
    end: str = "last_time"
    ends_inside: bool = True
    times: tuple[str, ...] = ("start_time", "last_time", "detected_at")
    rule: str
    windows: tuple[str, ...]

    def evidence(self, row: Row) -> list[str]:
        """Return the pattern, how many matches, and when the first one was detected."""
        single = row["matches"] == 1
        matches = f"{counted(row['matches'], 'match', 'matches')}{' so far' if row[ONGOING] else ''}"
        table = f"the table matches, of block {self.block}{' and this key' if self.key else ''}"
        # The table does not say where the first one of several matches ends.
        since, record = (
            (row["last_time"], "its last record") if single else (row["start_time"], "the first record")
        )
        minutes, seconds = divmod((row["detected_at"] - since) // timedelta(seconds=1), 60)
        after = f"{minutes // 60} h {minutes % 60} min {seconds} s after {record}"
        known = row["level"] < len(self.windows)
        windows = f"windows of {self.windows[row['level']]} (level {row['level']})" if known else "windows"
        return [
            f"the pattern: {self.rule}",
            f"{matches}; {'its' if single else 'their'} records are in {table}",
            f"first detected at {as_time(row['detected_at'])} in {windows}, {after}",
        ]


def templates(stream: Stream) -> Iterator[EpisodeFindings]:
    """Yield the patterns of a stream."""
    for name, pattern in stream.blocks(Pattern).items():
        yield EpisodeFindings(
            block=name,
            severity=pattern.severity,
            key=pattern.key,
            titled=pattern.title or plain_title(name, pattern.key),
            reach=Merging(*map(microseconds, (pattern.merge_gap, pattern.within, pattern.top))).reach,
            rule=_rule(pattern),
            windows=tuple(
                format_duration_long(2 * pattern.batch * (1 << level)) for level in range(pattern.levels)
            ),
        )


SOURCE = FindingSource("patterns", "episodes", "episode", templates)


def _rule(pattern: Pattern) -> str:
    whole = f"within {format_duration(pattern.within)}"
    if pattern.detector:
        return f"what {pattern.detector} finds, {whole}"
    elements = (
        f"{' and '.join(map(_step, part.any_order))} in any order"
        if isinstance(part, AnyOrder)
        else _step(part)
        for part in pattern.steps
    )
    return f"{', then '.join(elements)}, {whole}"


def _step(step: Step) -> str:
    return step.id if step.times == 1 else f"{step.times} times {step.id}"
