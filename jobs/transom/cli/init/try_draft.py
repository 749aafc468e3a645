"""What the first lines of files become under a drafted stream, read as a job would read them."""

import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.compute as pc

from transom.cli.adhoc_files import counted_from
from transom.cli.log_sample import LogSample
from transom.core.path_pattern import Match
from transom.formats.read_file import Chunk, FileSummary, read_file
from transom.formats.record_format import Span
from transom.spec.stream import Stream

TOLERATED = 0.04
"""The share of refused lines from which a draft says how many may be, before the gate does."""
EXAMPLES = 5
"""Forms of refused lines of which one is kept."""


@dataclass(frozen=True)
class RejectedLine:
    """A line that became no event.

    Attributes:
        reason: with what was seen.
        lines: how many are of this form, of those that were looked at.
    """

    text: str
    reason: str
    lines: int = 1

    @property
    def form(self) -> tuple[str, str]:
        """What it has in common with others: why it is refused, and how it begins."""
        blank = self.text[:1].strip() == ""
        begins = " ".join(self.text.split()[:2])
        return self.reason.partition(":")[0], " " * blank + re.sub(r"[\w.$]+", "x", begins)[:8]

    @property
    def goes_on(self) -> bool:
        """Whether it looks like a part of what a line before it says: a stack trace, a statement."""
        unlike = self.reason.startswith("no match")
        return unlike and (self.text[:1].isspace() or not re.search("[0-9]:[0-9]{2}|[0-9]{9}", self.text))


@dataclass(frozen=True)
class DraftTrial:
    """What became of the first lines.

    Attributes:
        events: of all files, with `event_time` and the columns.
        refused: of some forms of lines that became none, the first.
    """

    events: pa.Table
    lines: int
    rejected: int
    refused: tuple[RejectedLine, ...]

    @property
    def share(self) -> float:
        """Of the lines that were refused."""
        return self.rejected / self.lines

    @property
    def extent(self) -> tuple[datetime, datetime]:
        """The first and the last time of an event."""
        ends = pc.min_max(self.events["event_time"]).as_py()
        return ends["min"].astimezone(UTC), ends["max"].astimezone(UTC)


def events_of(stream: Stream, samples: Sequence[LogSample], paths: Sequence[str]) -> DraftTrial:
    """Reads the first lines of files.

    Args:
        paths: of the files, as the stream's file writes them.
    """
    events: list[pa.RecordBatch] = []
    refused: dict[tuple[str, str], RejectedLine] = {}
    lines = rejected = 0
    for sample, path in zip(samples, paths, strict=True):
        match = stream.path_pattern.match(path)
        for part in _read(stream, sample, None if match is None else stream.span(match), match):
            if isinstance(part, FileSummary):
                lines, rejected = lines + part.lines, rejected + part.rejected
                continue
            events.append(part.events)
            for row in part.rejected.to_pylist():
                one = RejectedLine(row["raw"], row["detail"] or row["reason"])
                first = refused.get(one.form)
                if first is not None:
                    refused[one.form] = replace(first, lines=first.lines + 1)
                elif len(refused) < EXAMPLES:
                    refused[one.form] = one
    schema = events[0].schema if events else pa.schema([("event_time", pa.timestamp("us", "UTC"))])
    return DraftTrial(pa.Table.from_batches(events, schema), lines, rejected, tuple(refused.values()))


def extents(
    stream: Stream, samples: Sequence[LogSample], paths: Sequence[str]
) -> list[tuple[datetime, datetime] | None]:
    """The first and the last time of each file's events, whatever its name says; None where it has none."""
    found = []
    for sample, path in zip(samples, paths, strict=True):
        parts = _read(stream, sample, None, stream.path_pattern.match(path))
        times = [part.events["event_time"] for part in parts if isinstance(part, Chunk)]
        found.append(_extent(pa.chunked_array(times, pa.timestamp("us", "UTC"))) if times else None)
    return found


def _extent(times: pa.ChunkedArray) -> tuple[datetime, datetime] | None:
    ends = pc.min_max(times).as_py()
    return None if ends["min"] is None else (ends["min"].astimezone(UTC), ends["max"].astimezone(UTC))


def times_are_in_names(stream: Stream, samples: Sequence[LogSample], paths: Sequence[str]) -> bool:
    """Whether the times of the files' events are those that their names say, where they say any."""
    for sample, path in zip(samples, paths, strict=True):
        match = stream.path_pattern.match(path)
        span = None if match is None else stream.span(match)
        if span is None:
            continue
        inside, free = (
            sum(
                part.events.num_rows
                for part in _read(stream, sample, bound, match)
                if isinstance(part, Chunk)
            )
            for bound in (span, None)
        )
        if inside < free * (1 - TOLERATED):
            return False
    return True


def _read(
    stream: Stream, sample: LogSample, span: Span | None, match: Match | None
) -> Iterator[Chunk | FileSummary]:
    return read_file(
        io.BytesIO(sample.content),
        "sample",
        stream.layout(),
        span,
        start=counted_from(stream, match),
        captures={} if match is None else match.captures,
    )
