"""The real Apache log as hourly files, and recounts of it by a few plain lines."""

import gzip
import re
from collections import Counter, defaultdict
from datetime import UTC, datetime
from pathlib import Path

DATA = Path(__file__).parent / "data"
TIME = re.compile(r"\[([^\]]+)\]")


def time_of(line: str) -> datetime:
    """When a line says that it happened."""
    found = TIME.search(line)
    assert found is not None
    return datetime.strptime(found.group(1), "%d/%b/%Y:%H:%M:%S %z").astimezone(UTC)


def by_hour() -> dict[datetime, list[str]]:
    """The lines of each hour, in the log's order."""
    hours: dict[datetime, list[str]] = defaultdict(list)
    for line in (
        gzip.decompress((DATA / "apache_access.log.gz").read_bytes()).decode().removesuffix("\n").split("\n")
    ):
        hours[time_of(line).replace(minute=0, second=0)].append(line + "\n")
    return dict(sorted(hours.items()))


def file_of(folder: Path, hour: datetime) -> Path:
    """Where the file of an hour lands."""
    return folder / f"landing/web/{hour:%Y-%m-%d}/access.{hour:%H}.log.gz"


def land(folder: Path, hour: datetime, lines: list[str]) -> Path:
    """Lands the file of an hour."""
    path = file_of(folder, hour)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress("".join(lines).encode(), mtime=0))
    return path


def clients(lines: list[str]) -> Counter[str]:
    """Requests a client, of the lines that are whole."""
    return Counter(line.split()[0] for line in lines if line.rstrip("\n").endswith('"'))
