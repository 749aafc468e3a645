"""Files as content: what the landing folder shows, what was read, what stands, and which are looked at.

A file is its decompressed bytes, the captures of its path, what `*` stands for in it, and, where times count
from its name, that start (`source_id`). No Spark, no disk.
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
"""A file that holds the content that stands of it; the others did once."""


@dataclass(frozen=True)
class ListedFile:
    """A file as the landing folder shows it.

    Attributes:
        start, end: the stretch that its name declares, None without a time in it.
        hour: the hour of `start`.
        origin: the instant from which the times of its lines count, None where they say their own.
        varies: the texts that tell files of equal bytes apart, beside the captures.
        misnamed: what is wrong with its name, in words.
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
        """What its name says of its content's identity, as `source_id` takes it."""
        return {"captures": self.captures, "origin": self.origin, "varies": self.varies}

    @property
    def named(self) -> Iterator[datetime]:
        """The hours that its name declares."""
        if self.start is None or self.end is None:
            yield UNKNOWN_HOUR
            return
        hour = hour_of(self.start)
        while hour < self.end:
            yield hour
            hour += HOUR


@dataclass(frozen=True)
class FileContent:
    """What was read of a file.

    Attributes:
        hours: hours that its events fall in, ascending.
        prefixes: the digest of the first n decompressed bytes, for lengths that were asked for.
        broken: why it could not be read to its end.
        failed: checks of severity error that it fails, in words.
        lacks: checks of severity incomplete that it fails, in words.
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

    @property
    def readable(self) -> bool:
        """Whether there are bytes of it at all."""
        return self.source_id != ""


@dataclass(frozen=True, kw_only=True)
class FileRecord:
    """A row of `files`: a path, and what stands of it in the tables.

    Attributes:
        source_id: of the content whose rows are in the tables; None if there is none.
        last_read_source_id: of the content last read. Of a conflict or a quarantined file it differs from
            `source_id`.
        size, modified: of the content last read.
        pending_hours: the hours that lack events of the content last read.
        incomplete_reason: what is missing of the ingested content.
        status_reason: why the file is not ingested.
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
        """A file from its row, as Arrow gives it."""
        return cls(
            **{
                **row,
                "hour": row["hour"].astimezone(UTC),
                "modified": row["modified"].astimezone(UTC),
                "columns": tuple(row["columns"] or ()),
                "hours": tuple(hour.astimezone(UTC) for hour in row["hours"] or ()),
                "pending_hours": tuple(hour.astimezone(UTC) for hour in row["pending_hours"] or ()),
            }
        )

    @property
    def parsed(self) -> int:
        """Lines that became records, duplicates included: what reading the file alone tells."""
        return self.accepted + self.duplicates

    @property
    def touched(self) -> frozenset[datetime]:
        """Every hour whose tables hold something of this file, or lack something for it."""
        return frozenset((self.hour, *self.hours, *self.pending_hours))


@dataclass(frozen=True)
class FileName:
    """What a path says of where its file comes from.

    Attributes:
        captures: of the path, and the start of its times where they count from it.
        plain: the path without what packing and rotation add.
        rotation: what rotation has added.
    """

    captures: tuple[tuple[str, str], ...]
    plain: str
    rotation: str = ""


def _plain(path: str) -> FileName:
    return FileName((), *split_name(path))


@dataclass(frozen=True)
class FilePolicy:
    """What decisions depend on, beside the files.

    Attributes:
        shape: hash of the specification that the files of an hour are read under.
        replace_changed: whether a file that differs from what stands replaces it.
        permitted: whether a run may publish an hour.
        name_of: what a path says of where its file comes from, None where it is not the stream's.
    """

    shape: Callable[[datetime], str]
    replace_changed: bool
    permitted: Callable[[datetime], bool]
    name_of: Callable[[str], FileName | None] = _plain


def source_id(
    digest: str, captures: Mapping[str, str], origin: datetime | None = None, varies: Sequence[str] = ()
) -> str:
    """Return the identity of a content.

    Args:
        digest: of its bytes.
        captures: of its path.
        origin: the instant from which its times count, None where they say their own.
        varies: what else in its path tells it from another file of the same bytes. Empty texts tell nothing.
    """
    said = [digest, sorted(captures.items()), *([] if origin is None else [origin.isoformat()])]
    said += [["varies", *varies]] if any(varies) else []
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()[:32]


def in_scope(
    known: Mapping[str, FileRecord],
    listed: Mapping[str, ListedFile],
    looked_at: Callable[[datetime, Status | None], bool],
) -> set[str]:
    """The paths that a run sees to: by the hours in their names, and by the hour under which they are known.

    Args:
        looked_at: whether a run sees to an hour, for a file of that status; None for a name.
    """
    paths = {path for path, file in listed.items() if any(looked_at(hour, None) for hour in file.named)}
    return paths | {path for path, file in known.items() if looked_at(file.hour, file.status)}


def needs_read(listed: ListedFile, known: FileRecord | None, rules: FilePolicy) -> bool:
    """Whether a file's content may differ from what is known, or may be wanted now.

    Size and modification time are hints that save reading; a file whose hints are as they were is read
    again only where what was decided last time may come out otherwise.
    """
    if known is None or (known.size, known.modified) != (listed.size, listed.modified):
        return True
    if known.status in ("quarantined", "missing") or known.spec_hash != rules.shape(known.hour):
        return True
    if metadata_changed(listed, known):
        return True
    if known.status == "conflict":
        return rules.replace_changed
    return known.status == "waiting" and all(map(rules.permitted, known.touched))


def metadata_changed(listed: ListedFile, known: FileRecord) -> bool:
    """Whether a file's name says another hour, or other captures, than are known of it, or another start of
    its times: the pattern of the paths has changed."""
    if not known.content_sha256:
        return False
    said = source_id(known.content_sha256, **listed.identity)
    return listed.hour not in (None, known.hour) or said != (known.source_id or known.last_read_source_id)


def with_duplicates(
    files: Mapping[str, FileRecord],
    known: Mapping[str, FileRecord],
    added: Collection[str],
    more: Mapping[str, int],
) -> dict[str, FileRecord]:
    """The rows of `files` with their duplicates, which depend on the other files of an hour.

    Args:
        known: the rows as they stand.
        added: sources whose rows enter anew, and that have no duplicates yet.
        more: how many each source gains, or loses.
    """
    counts = {file.source_id: file.duplicates for file in known.values()}
    counted = {}
    for path, file in files.items():
        before = 0 if file.source_id in added else counts.get(file.source_id, 0)
        count = before + more.get(file.source_id, 0) if file.source_id is not None else 0
        counted[path] = replace(file, accepted=file.parsed - count, duplicates=count)
    return counted
