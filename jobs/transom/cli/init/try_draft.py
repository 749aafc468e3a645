"""Read the first lines of files with a drafted stream, as a job would."""

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
"""With a larger share of refused lines a draft sets a tolerance; this is below the gate's limit."""
EXAMPLES = 5
"""Maximum number of forms of refused lines, each with one example."""


@dataclass(frozen=True)
class RejectedLine:
    """A line that became no event.

    Attributes:
        reason: the reason with the refused value.
        lines: the number of lines of this form.
    """

    text: str
    reason: str
    lines: int = 1

    @property
    def form(self) -> tuple[str, str]:
        """The properties shared by similar lines: the reason, and the beginning of the text."""
        blank = self.text[:1].strip() == ""
        begins = " ".join(self.text.split()[:2])
        return self.reason.partition(":")[0], " " * blank + re.sub(r"[\w.$]+", "x", begins)[:8]

    @property
    def goes_on(self) -> bool:
        """Whether it looks like the continuation of an earlier line: a stack trace, a statement."""
        unlike = self.reason.startswith("no match")
        return unlike and (self.text[:1].isspace() or not re.search("[0-9]:[0-9]{2}|[0-9]{9}", self.text))


@dataclass(frozen=True)
class DraftTrial:
    """The result of the first lines.

    Attributes:
        events: the events of all files, with `event_time` and the columns.
        refused: the first line of each of some forms of refused lines.
    """

    events: pa.Table
    lines: int
    rejected: int
    refused: tuple[RejectedLine, ...]

    @property
    def share(self) -> float:
        """The share of refused lines."""
        return self.rejected / self.lines

    @property
    def extent(self) -> tuple[datetime, datetime]:
        """The first and the last time of an event."""
        ends = pc.min_max(self.events["event_time"]).as_py()
        return ends["min"].astimezone(UTC), ends["max"].astimezone(UTC)


def events_of(stream: Stream, samples: Sequence[LogSample], paths: Sequence[str]) -> DraftTrial:
    """Read the first lines of files.

    Args:
        paths: the files' paths, in the form of the stream's file.
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
                rejected_line = RejectedLine(row["raw"], row["detail"] or row["reason"])
                first = refused.get(rejected_line.form)
                if first is not None:
                    refused[rejected_line.form] = replace(first, lines=first.lines + 1)
                elif len(refused) < EXAMPLES:
                    refused[rejected_line.form] = rejected_line
    schema = events[0].schema if events else pa.schema([("event_time", pa.timestamp("us", "UTC"))])
    return DraftTrial(pa.Table.from_batches(events, schema), lines, rejected, tuple(refused.values()))


def extents(
    stream: Stream, samples: Sequence[LogSample], paths: Sequence[str]
) -> list[tuple[datetime, datetime] | None]:
    """Return the first and the last time of each file's events, independent of its name; None if it has no
    events."""
    spans = []
    for sample, path in zip(samples, paths, strict=True):
        parts = _read(stream, sample, None, stream.path_pattern.match(path))
        times = [part.events["event_time"] for part in parts if isinstance(part, Chunk)]
        spans.append(_extent(pa.chunked_array(times, pa.timestamp("us", "UTC"))) if times else None)
    return spans


def _extent(times: pa.ChunkedArray) -> tuple[datetime, datetime] | None:
    ends = pc.min_max(times).as_py()
    return None if ends["min"] is None else (ends["min"].astimezone(UTC), ends["max"].astimezone(UTC))


def times_are_in_names(stream: Stream, samples: Sequence[LogSample], paths: Sequence[str]) -> bool:
    """Return whether the times of the files' events agree with the times in their names, if there are any."""
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
