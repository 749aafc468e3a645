"""The draft of some lines, and the rows that a job reads with it."""

import gzip
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest
import yaml

from transom.cli.arguments import UsageError
from transom.cli.init.draft import draft
from transom.cli.log_sample import read_sample
from transom.formats.read_file import Chunk, FileSummary, read_file
from transom.stream import Stream, parse


@dataclass
class Drafted:
    """A draft, and the rows that a job reads from the file with it."""

    text: str
    stream: Stream
    events: list[dict[str, Any]]
    refused: list[tuple[str, str]]
    header_lines: int

    @property
    def times(self) -> list[str]:
        return [f"{event['event_time'].astimezone(UTC):%Y-%m-%dT%H:%M:%S.%f}"[:23] for event in self.events]

    def column(self, name: str) -> list[Any]:
        return [event[name] for event in self.events]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRANSOM_HOME", str(tmp_path))
    monkeypatch.delenv("TRANSOM_LANDING", raising=False)


def decided(text: str) -> dict[str, Any]:
    """Return the fields of a draft. Where it leaves the time open, use the times that it proposes to
    invent.
    """
    data: dict[str, Any] = yaml.safe_load(text)
    if "time" not in data and "preset" not in data:
        data |= yaml.safe_load(
            text.partition("each line so much later than the one before it:\n#     ")[2].partition("\n")[0]
        )
    return data


def drafted(folder: Path, lines: Sequence[str] | str, name: str = "a.log") -> Drafted:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    content = lines if isinstance(lines, str) else "".join(f"{line}\n" for line in lines)
    file.write_bytes(gzip.compress(content.encode()) if name.endswith(".gz") else content.encode())
    text = draft([read_sample(file)]).text
    stream = parse(decided(text))
    match = stream.source.pattern.match(name)
    assert match is not None
    events: list[dict[str, Any]] = []
    refused: list[tuple[str, str]] = []
    headers = 0
    with file.open("rb") as source:
        for part in read_file(
            source, name, stream.layout(), stream.span(match), start=match.start, captures=match.captures
        ):
            if isinstance(part, Chunk):
                events += part.events.to_pylist()
                refused += [(row["reason"], row["raw"]) for row in part.rejected.to_pylist()]
            elif isinstance(part, FileSummary):
                headers = part.header_lines
    return Drafted(text, stream, events, refused, headers)


def refusal(folder: Path, content: str, name: str = "a.log") -> str:
    file = folder / name
    file.write_text(content)
    with pytest.raises(UsageError) as error:
        draft([read_sample(file)])
    return str(error.value).removeprefix(f"{file}: ")


def record(number: int) -> dict[str, Any]:
    return {"eventTime": f"2024-05-06T00:00:{number % 60:02}Z", "user": f"u{number % 3}", "n": number}
