"""Frames as findings."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from transom.core.intervals import HOUR
from transom.core.terminal import counted
from transom.features.frames import input_columns
from transom.features.frames.spec import Frame
from transom.findings.source import ONGOING, EntityFindings, FindingSource, Row, plain_title
from transom.findings.text import as_short, as_time
from transom.spec.stream import Stream

END = "__end"
"""The end of the default title: that of the interval which the last reading covers."""


@dataclass(frozen=True, kw_only=True)
class FrameFindings(EntityFindings):
    """Texts for the findings of a block of frames.

    Attributes:
        rule: the text for what delimits a frame.
        value: the name of the value's column, if any.
        known: whether a missing reading may begin a frame.
        covered: the time that the last reading of a frame covers; zero for a moment.
    """

    id: str = "frame_id"
    new: str = "new_records"
    columns: tuple[str, ...] = (
        "frame_id", "start_time", "last_time", "length_s", "records", "missing", "new_records", "state",
        "peak", "peak_time", "mean",
)  # fmt: skip
    end: str = "last_time"
    ends_inside: bool = True
    times: tuple[str, ...] = ("start_time", "last_time", "peak_time", END)
    rule: str
    value: str | None
    known: bool
    covered: timedelta

    def title(self, row: Row) -> str:
        """Return the title without the stream's name."""
        return super().title({**row, END: row["last_time"] + self.covered})

    def evidence(self, row: Row) -> list[str]:
        """Return the rule, the readings and the value."""
        readings, value = counted(row["records"], "reading"), ""
        if self.known and not row["records"]:
            start = row["start_time"]
            until = start + timedelta(seconds=row["length_s"])
            readings = f"no reading from {as_time(start)} to {as_time(until)}"
            if row[ONGOING]:
                readings = f"no reading since {as_time(start)}"
        if row["missing"]:
            readings += f", {row['missing']} missing{'' if self.known else ' between them'}"
        # A reading may have no value, and a frame no reading.
        if self.value is not None and row["peak"] is not None:
            peak = f"at most {as_short(row['peak'])} at {as_time(row['peak_time'])}"
            value = f"{self.value}: {peak}, on average {as_short(row['mean'])}"
        return [f"the rule: {self.rule}", f"{readings}{' so far' if row[ONGOING] else ''}", value]


def templates(stream: Stream) -> Iterator[FrameFindings]:
    """Yield the texts of the blocks of a stream whose frames are findings."""
    for name, frame in stream.blocks(Frame).items():
        if frame.is_finding:
            key = input_columns.key(stream, name)
            # The last reading of a liberal extent is the one after the frame.
            every = None if frame.extent == "liberal" else input_columns.every(stream, name)
            yield FrameFindings(
                block=name,
                severity=frame.severity,
                key=key,
                titled=frame.title or plain_title(name, key, END),
                reach=-(-frame.silence // HOUR),
                rule=frame.rule,
                value=input_columns.value(stream, name),
                known=bool(frame.known),
                covered=every or timedelta(0),
            )


SOURCE = FindingSource("frames", "frames", "frame", templates)
