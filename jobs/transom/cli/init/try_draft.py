"""Read the first lines of files with a drafted stream, as a job would."""

import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.compute as pc

from transom.cli.adhoc_files import read_as_job
from transom.cli.init.infer_names import Extent
from transom.cli.log_sample import LogSample
from transom.formats.read_file import Chunk, FileSummary
from transom.spec.stream import Stream

TOLERATED = 0.04
"""Share of rejected lines above which a draft declares a tolerance; it is below the gate's limit."""
EXAMPLES = 5
"""Maximum number of forms of rejected lines; each has one example."""


@dataclass(frozen=True)
class RejectedLine:
    """A line that became no event.

    Attributes:
        reason: the reason with the rejected value.
        lines: the number of lines of this form.
    """

    text: str
    reason: str
    lines: int = 1

    @property
    def form(self) -> tuple[str, str]:
        """The properties that similar lines share: the reason, and the beginning of the text."""
        blank = self.text[:1].strip() == ""
        begins = " ".join(self.text.split()[:2])
        return self.reason.partition(":")[0], " " * blank + re.sub(r"[\w.$]+", "x", begins)[:8]

    @property
    def goes_on(self) -> bool:
        """Whether it seems to continue an earlier line, such as a stack trace or a statement."""
        unlike = self.reason.startswith("no match")
        return unlike and (self.text[:1].isspace() or not re.search("[0-9]:[0-9]{2}|[0-9]{9}", self.text))


@dataclass(frozen=True)
class DraftTrial:
    """The result of reading the first lines.

    Attributes:
        events: the events of all files, with `event_time` and the columns.
        refused: the first line of each form of rejected lines, for some forms.
    """

    events: pa.Table
    lines: int
    rejected: int
    refused: tuple[RejectedLine, ...]

    @property
    def share(self) -> float:
        """The share of rejected lines."""
        return self.rejected / self.lines

    @property
    def extent(self) -> tuple[datetime, datetime]:
        """The times of the first and the last event."""
        extent = _extent(self.events["event_time"])
        assert extent is not None
        return extent


def events_of(stream: Stream, samples: Sequence[LogSample], paths: Sequence[str]) -> DraftTrial:
    """Read the first lines of files.

    Args:
        paths: the files' paths, as the stream file has them.
    """
    events: list[pa.RecordBatch] = []
    refused: dict[tuple[str, str], RejectedLine] = {}
    lines = rejected = 0
    for sample, path in zip(samples, paths, strict=True):
        for part in _read(stream, sample, path, bounded=True):
            if isinstance(part, FileSummary):
                lines, rejected = lines + part.lines, rejected + part.rejected
                continue
            events.append(part.events)
            for row in part.rejected.to_pylist():
                line = RejectedLine(row["raw"], row["detail"] or row["reason"])
                first = refused.get(line.form)
                if first is not None:
                    refused[line.form] = replace(first, lines=first.lines + 1)
                elif len(refused) < EXAMPLES:
                    refused[line.form] = line
    schema = events[0].schema if events else pa.schema([("event_time", pa.timestamp("us", "UTC"))])
    return DraftTrial(pa.Table.from_batches(events, schema), lines, rejected, tuple(refused.values()))


def extents_of(stream: Stream, samples: Sequence[LogSample], paths: Sequence[str]) -> list[Extent]:
    """Return the extent of each file's events, also of those outside of the period in its name."""
    files = zip(samples, paths, strict=True)
    return [_extent(_event_times(stream, sample, path, bounded=False)) for sample, path in files]


def _extent(times: pa.ChunkedArray) -> Extent:
    ends = pc.min_max(times).as_py()
    return None if ends["min"] is None else (ends["min"].astimezone(UTC), ends["max"].astimezone(UTC))


def times_are_in_names(stream: Stream, samples: Sequence[LogSample], paths: Sequence[str]) -> bool:
    """Return whether almost all events of each file are of the period in its name, if it has one."""
    for sample, path in zip(samples, paths, strict=True):
        match = stream.source.pattern.match(path)
        if match is None or stream.span(match) is None:
            continue
        inside, total = (len(_event_times(stream, sample, path, bounded)) for bounded in (True, False))
        if inside < total * (1 - TOLERATED):
            return False
    return True


def _event_times(stream: Stream, sample: LogSample, path: str, bounded: bool) -> pa.ChunkedArray:
    parts = _read(stream, sample, path, bounded)
    times = [part.events["event_time"] for part in parts if isinstance(part, Chunk)]
    return pa.chunked_array(times, pa.timestamp("us", "UTC"))


def _read(stream: Stream, sample: LogSample, path: str, bounded: bool) -> Iterator[Chunk | FileSummary]:
    match = stream.source.pattern.match(path)
    return read_as_job(stream, io.BytesIO(sample.content), "sample", match, bounded)
