"""Episodes as findings."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from transom.core.durations import format_duration, format_duration_long
from transom.core.terminal import counted
from transom.features.patterns.resolve import merging_of
from transom.features.patterns.spec import AnyOrder, Pattern, Step
from transom.findings.source import ONGOING, EntityFindings, FindingSource, Row, plain_title
from transom.findings.text import as_time
from transom.spec.stream import Stream


@dataclass(frozen=True, kw_only=True)
class EpisodeFindings(EntityFindings):
    """The findings of a pattern's episodes.

    Attributes:
        rule: the pattern as text.
        windows: the length of the windows of each level, as text.
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
        """Return the pattern, the number of matches, and the time at which the first one was detected."""
        single = row["matches"] == 1
        matches = f"{counted(row['matches'], 'match', 'matches')}{' so far' if row[ONGOING] else ''}"
        table = f"the table matches, of block {self.block}{' and this key' if self.key else ''}"
        # The end of the first of several matches is unknown.
        since, record = ("last_time", "its last record") if single else ("start_time", "the first record")
        minutes, seconds = divmod((row["detected_at"] - row[since]) // timedelta(seconds=1), 60)
        windows = "windows"
        if row["level"] < len(self.windows):
            windows = f"windows of {self.windows[row['level']]} (level {row['level']})"
        return [
            f"the pattern: {self.rule}",
            f"{matches}; {'its' if single else 'their'} records are in {table}",
            f"first detected at {as_time(row['detected_at'])} in {windows}, "
            f"{minutes // 60} h {minutes % 60} min {seconds} s after {record}",
        ]


def templates(stream: Stream) -> Iterator[EpisodeFindings]:
    """Yield the findings of each pattern of a stream."""
    for name, pattern in stream.blocks(Pattern).items():
        lengths = (2 * pattern.batch * (1 << level) for level in range(pattern.widening.levels))
        yield EpisodeFindings(
            block=name,
            severity=pattern.severity,
            key=pattern.key,
            titled=pattern.title or plain_title(name, pattern.key),
            reach=merging_of(pattern).reach,
            rule=_rule(pattern),
            windows=tuple(map(format_duration_long, lengths)),
        )


SOURCE = FindingSource("patterns", "episodes", "episode", templates)


def _rule(pattern: Pattern) -> str:
    whole = f"within {format_duration(pattern.within)}"
    if pattern.detector:
        return f"what {pattern.detector} finds, {whole}"
    elements = (
        " and ".join(map(_step, steps)) + (" in any order" if isinstance(part, AnyOrder) else "")
        for part, steps in zip(pattern.steps, pattern.elements, strict=True)
    )
    return f"{', then '.join(elements)}, {whole}"


def _step(step: Step) -> str:
    return step.id if step.times == 1 else f"{step.times} times {step.id}"
