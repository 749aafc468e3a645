"""Records of files: as listed in the landing folder, as read, and as recorded in `files`. No Spark, no disk.

The identity of a file (`source_id`) is a hash of its decompressed bytes, the captures of its path and the
texts that `*` matches. If the times of its lines count from its name, that start is part of the hash.
"""

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Literal

from transom.core.intervals import HOUR, UNKNOWN_HOUR, hour_of
from transom.ledger.run_details import FileRead

Status = Literal["ingested", "duplicate", "waiting", "conflict", "quarantined", "missing"]
OWNS_ROWS: tuple[Status, ...] = ("ingested", "duplicate")
"""Statuses of files with the content whose rows are published. Files of other statuses may have had it."""


@dataclass(frozen=True)
class ListedFile:
    """A file of the landing folder.

    Attributes:
        path: the path, as the stream file would write it.
        size: the stored size in bytes; -1 if unknown.
        modified: the time of modification.
        captures: the values of the path's captures, by name.
        hour: the hour of `start`.
        start: the start of the interval in the file's name; None if the name has no time.
        end: the end of that interval, exclusive.
        origin: the instant from which the times of its lines count; None if they are absolute.
        varies: the texts that `*` matches, if they are part of the file's identity.
        misnamed: what is wrong with its name, as text; None if nothing is.
    """

    path: str
    size: int
    modified: datetime
    captures: Mapping[str, str]
    hour: datetime | None = None
    start: datetime | None = None
    end: datetime | None = None
    origin: datetime | None = None
    varies: tuple[str, ...] = ()
    misnamed: str | None = None

    @property
    def identity(self) -> dict[str, Any]:
        """The arguments of `source_id` that come from the name."""
        return {"captures": self.captures, "origin": self.origin, "varies": self.varies}

    @property
    def named(self) -> Iterator[datetime]:
        """The hours in the file's name; `UNKNOWN_HOUR` if it has none."""
        if self.start is None or self.end is None:
            yield UNKNOWN_HOUR
            return
        hour = hour_of(self.start)
        while hour < self.end:
            yield hour
            hour += HOUR


@dataclass(frozen=True)
class FileContent:
    """The content of a file that was read.

    Attributes:
        source_id: its identity; empty if the file cannot be read at all.
        digest: the SHA-256 of its decompressed bytes.
        hours: the hours of its events, ascending.
        prefixes: the digests of the first n decompressed bytes, by n.
        broken: why it could not be read to its end.
        failed: the texts of the failed checks of severity error.
        lacks: the texts of the failed checks of severity incomplete.
    """

    source_id: str
    digest: str
    bytes: int
    lines: int
    header_lines: int
    accepted: int
    rejected: int
    first_event: datetime | None
    last_event: datetime | None
    columns: tuple[str, ...]
    hours: tuple[datetime, ...]
    prefixes: Mapping[int, str]
    broken: str | None = None
    failed: str | None = None
    lacks: str | None = None


@dataclass(frozen=True, kw_only=True)
class FileRecord:
    """A row of `files`: a path, and its content in the tables. The description of the table has all columns.

    Attributes:
        source_id: the identity of the content whose rows are in the tables; None if there is none.
        last_read_source_id: that of the content last read; another one if this is not ingested.
        pending_hours: hours that lack events of the content last read.
        incomplete_reason: what is missing of the ingested content.
        status_reason: why the file is not ingested.
        size: the stored size when last read, in bytes.
        modified: the time of modification when last read.
    """

    path: str
    hour: datetime
    status: Status
    source_id: str | None = None
    last_read_source_id: str | None = None
    content_sha256: str | None = None
    spec_hash: str
    bytes: int = 0
    lines: int = 0
    header_lines: int = 0
    accepted: int = 0
    rejected: int = 0
    duplicates: int = 0
    first_event: datetime | None = None
    last_event: datetime | None = None
    columns: tuple[str, ...] = ()
    hours: tuple[datetime, ...] = ()
    pending_hours: tuple[datetime, ...] = ()
    incomplete_reason: str | None = None
    status_reason: str | None = None
    size: int
    modified: datetime

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> "FileRecord":
        """Return the record of an Arrow row."""
        times = {name: row[name].astimezone(UTC) for name in ("hour", "modified")}
        lists = {
            name: tuple(hour.astimezone(UTC) for hour in row[name] or ())
            for name in ("hours", "pending_hours")
        }
        return cls(**{**row, **times, **lists, "columns": tuple(row["columns"] or ())})

    @property
    def parsed(self) -> int:
        """The number of lines that became records, duplicates included. It depends on this file only."""
        return self.accepted + self.duplicates

    @property
    def touched(self) -> frozenset[datetime]:
        """The hours that hold rows of this file, or lack some of them."""
        return frozenset((self.hour, *self.hours, *self.pending_hours))


def file_read(file: FileRecord, content: FileContent, known: FileRecord | None, had_hour: bool) -> FileRead:
    """Return what the table `runs` has of a file that a run read.

    Args:
        file: its new row of `files`.
        content: the content that was read.
        known: its row before; None if it was not recorded.
        had_hour: whether an earlier run had its hour.
    """
    hours, before = file.touched - {UNKNOWN_HOUR}, known.last_read_source_id if known else None
    return FileRead(
        file.path, file.hour, min(hours, default=None), max(hours) + HOUR if hours else None, file.status,
        before not in (None, content.source_id), content.lines, content.accepted, content.rejected,
        before is None and had_hour,
    )  # fmt: skip


@dataclass(frozen=True)
class FileName:
    """The parts of a path that identify the origin of its file.

    Attributes:
        captures: the captures of the path, and the start in the name if times count from it.
        plain: the path without the suffixes of compression and rotation.
        rotation: the suffix of rotation; empty if there is none.
    """

    captures: tuple[tuple[str, str], ...]
    plain: str
    rotation: str = ""


def source_id(
    digest: str, captures: Mapping[str, str], origin: datetime | None = None, varies: Sequence[str] = ()
) -> str:
    """Return the identity of a content.

    Args:
        digest: the SHA-256 of its decompressed bytes.
        captures: as of `ListedFile`.
        origin: as of `ListedFile`.
        varies: as of `ListedFile`; ignored if all texts are empty.
    """
    parts = [digest, sorted(captures.items()), *([] if origin is None else [origin.isoformat()])]
    parts += [["varies", *varies]] if any(varies) else []
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


def with_duplicates(
    files: Mapping[str, FileRecord],
    known: Mapping[str, FileRecord],
    added: Collection[str],
    deltas: Mapping[str, int],
) -> dict[str, FileRecord]:
    """Return the rows of `files` with their numbers of duplicates, which depend on other files.

    Args:
        files: the new rows, by path.
        known: the recorded rows, by path.
        added: the sources whose rows are inserted; they start without duplicates.
        deltas: the change of the number of duplicates, by source.
    """
    counts: dict[str | None, int] = {file.source_id: file.duplicates for file in known.values()}
    counts |= dict.fromkeys(added, 0) | {None: 0}
    updated = {}
    for path, file in files.items():
        count = counts.get(file.source_id, 0) + deltas.get(file.source_id or "", 0)
        updated[path] = replace(file, accepted=file.parsed - count, duplicates=count)
    return updated
