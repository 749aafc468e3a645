"""Records of files: as listed in the landing folder, as read, and as recorded in `files`. No Spark, no disk.

The identity of a file (`source_id`) is a hash of its decompressed bytes, the captures of its path, the texts
that `*` matches, and, where times count from its name, that start.
"""

import hashlib
import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Literal

from transom.core.file_names import split_name
from transom.core.intervals import HOUR, UNKNOWN_HOUR, hour_of

Status = Literal["ingested", "duplicate", "waiting", "conflict", "quarantined", "missing"]
OWNS_ROWS: tuple[Status, ...] = ("ingested", "duplicate")
"""Statuses of files that hold the content whose rows are published; files of other statuses once did."""


@dataclass(frozen=True)
class ListedFile:
    """A file of the landing folder.

    Attributes:
        hour: the hour of `start`.
        start: of the interval in the file's name, None if the name has no time.
        end: of that interval.
        origin: the instant from which the times of its lines count, None if they are absolute.
        varies: texts of the path that are part of the file's identity, beside the captures.
        misnamed: the fault of its name, as a text.
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
        source_id: empty if the file cannot be read at all.
        hours: hours of its events, ascending.
        prefixes: digests of the first n decompressed bytes, by n.
        broken: why it could not be read to its end.
        failed: texts of the checks of severity error that it fails.
        lacks: texts of the checks of severity incomplete that it fails.
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
    """A row of `files`: a path, and its content in the tables.

    Attributes:
        source_id: of the content whose rows are in the tables; None if there is none.
        last_read_source_id: of the content last read; differs from `source_id` in conflicts and quarantine.
        pending_hours: hours that lack events of the content last read.
        incomplete_reason: what is missing of the ingested content.
        status_reason: why the file is not ingested.
        size: in bytes as stored, of the content last read.
        modified: of the content last read.
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
        """Number of lines that became records, duplicates included; it depends on this file alone."""
        return self.accepted + self.duplicates

    @property
    def touched(self) -> frozenset[datetime]:
        """The hours that hold rows of this file, or lack some of them."""
        return frozenset((self.hour, *self.hours, *self.pending_hours))


@dataclass(frozen=True)
class FileName:
    """The parts of a path that identify the origin of its file.

    Attributes:
        captures: of the path, and the start of its times where they count from it.
        plain: the path without suffixes of compression and rotation.
        rotation: the suffix of rotation.
    """

    captures: tuple[tuple[str, str], ...]
    plain: str
    rotation: str = ""


@dataclass(frozen=True)
class FilePolicy:
    """What decisions depend on, beside the files.

    Attributes:
        spec_hash: return the hash of the specification by which the files of an hour are read.
        replace_changed: whether a changed file replaces its published content.
        permitted: whether the run may publish an hour.
        name_of: return the name of a path, None if the path does not match the stream's pattern.
    """

    spec_hash: Callable[[datetime], str]
    replace_changed: bool
    permitted: Callable[[datetime], bool]
    name_of: Callable[[str], FileName | None] = lambda path: FileName((), *split_name(path))


def source_id(
    digest: str, captures: Mapping[str, str], origin: datetime | None = None, varies: Sequence[str] = ()
) -> str:
    """Return the identity of a content.

    Args:
        digest: of its bytes.
        captures, origin, varies: as of `ListedFile`; `varies` is ignored if all are empty.
    """
    parts = [digest, sorted(captures.items()), *([] if origin is None else [origin.isoformat()])]
    parts += [["varies", *varies]] if any(varies) else []
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


def in_scope(
    known: Mapping[str, FileRecord],
    listed: Mapping[str, ListedFile],
    covers: Callable[[datetime, Status | None], bool],
) -> set[str]:
    """Return the paths that a run checks, by the hours in their names and their recorded hours.

    Args:
        covers: whether the run checks files of an hour and a status; the status is None for a name.
    """
    paths = {path for path, file in listed.items() if any(covers(hour, None) for hour in file.named)}
    return paths | {path for path, file in known.items() if covers(file.hour, file.status)}


def needs_read(listed: ListedFile, known: FileRecord | None, rules: FilePolicy) -> bool:
    """Return whether a file has to be read: its content, or the decision on it, may have changed.

    Equal size and modification time save reading a file whose decision cannot change.
    """
    if known is None or (known.size, known.modified) != (listed.size, listed.modified):
        return True
    if known.status in ("quarantined", "missing") or known.spec_hash != rules.spec_hash(known.hour):
        return True
    if metadata_changed(listed, known):
        return True
    if known.status == "conflict":
        return rules.replace_changed
    return known.status == "waiting" and all(map(rules.permitted, known.touched))


def metadata_changed(listed: ListedFile, known: FileRecord) -> bool:
    """Return whether a file's name gives another hour or identity than recorded, under a new path pattern."""
    if not known.content_sha256:
        return False
    recorded = known.source_id or known.last_read_source_id
    identity = source_id(known.content_sha256, **listed.identity)
    return listed.hour not in (None, known.hour) or identity != recorded


def with_duplicates(
    files: Mapping[str, FileRecord],
    known: Mapping[str, FileRecord],
    added: Collection[str],
    deltas: Mapping[str, int],
) -> dict[str, FileRecord]:
    """Return the rows of `files` with their numbers of duplicates, which depend on other files.

    Args:
        files, known: the new rows, and the recorded ones.
        added: sources whose rows are inserted anew; they start without duplicates.
        deltas: change of the number of duplicates, by source.
    """
    counts: dict[str | None, int] = {file.source_id: file.duplicates for file in known.values()}
    counts |= dict.fromkeys(added, 0) | {None: 0}
    updated = {}
    for path, file in files.items():
        count = counts.get(file.source_id, 0) + deltas.get(file.source_id or "", 0)
        updated[path] = replace(file, accepted=file.parsed - count, duplicates=count)
    return updated
