"""Files as content: what a run does with each file that it sees. Pure decisions, no Spark, no disk.

A file is its decompressed bytes, the captures of its path and, where times count from its name, that start
(`source_id`). Equal ones are one file,
whose canonical name is the smallest path that holds it. A file that has grown is replaced by the new
one; one that shrank or differs is held back as a conflict; one that is gone keeps its rows. A file is
accepted or withheld whole, and a run takes it only when it may publish every hour that it touches.

A name that no longer holds the content that stands of it keeps that content only where the rows came
from there and no other name holds it: each content has either names that hold it or one that did.
"""

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any, Literal

from transom.intervals import HOUR, NO_HOUR, hour_of

Status = Literal["ingested", "duplicate", "waiting", "conflict", "withheld", "gone"]
HOLDING: tuple[Status, ...] = ("ingested", "duplicate")
"""A file that holds the content that stands of it; the others did once."""


@dataclass(frozen=True)
class Listed:
    """A file as the landing folder shows it.

    Attributes:
        start, end: the stretch that its name declares, None without a time in it.
        hour: the hour of `start`.
        origin: the instant from which the times of its lines count, None where they say their own.
    """

    path: str
    size: int
    modified: datetime
    captures: Mapping[str, str]
    hour: datetime | None = None
    start: datetime | None = None
    end: datetime | None = None
    origin: datetime | None = None

    @property
    def named(self) -> Iterator[datetime]:
        """The hours that its name declares."""
        if self.start is None or self.end is None:
            yield NO_HOUR
            return
        hour = hour_of(self.start)
        while hour < self.end:
            yield hour
            hour += HOUR


@dataclass(frozen=True)
class Content:
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


@dataclass(frozen=True)
class File:
    """A row of `files`: a path, and what stands of it in the tables.

    `source_id` is the content that stands; None where nothing does. `lacks` is what is missing of it,
    `detail` why the file is not ingested. `size` and `modified` are those of the content last read,
    `seen_id`, which a conflict or a withheld file holds beside what stands; `held_back` are the hours that
    lack its events for that.
    """

    path: str
    hour: datetime
    status: Status
    source_id: str | None
    seen_id: str | None
    content: str | None
    shape: str
    bytes: int
    lines: int
    header_lines: int
    accepted: int
    rejected: int
    duplicates: int
    first_event: datetime | None
    last_event: datetime | None
    columns: tuple[str, ...]
    hours: tuple[datetime, ...]
    held_back: tuple[datetime, ...]
    lacks: str | None
    detail: str | None
    size: int
    modified: datetime

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> "File":
        """A file from its row, as Arrow gives it."""
        return cls(
            **{
                **row,
                "hour": row["hour"].astimezone(UTC),
                "modified": row["modified"].astimezone(UTC),
                "columns": tuple(row["columns"] or ()),
                "hours": tuple(hour.astimezone(UTC) for hour in row["hours"] or ()),
                "held_back": tuple(hour.astimezone(UTC) for hour in row.get("held_back") or ()),
            }
        )

    def row(self) -> dict[str, Any]:
        """The row of the table."""
        return {
            **self.__dict__,
            "columns": list(self.columns),
            "hours": list(self.hours),
            "held_back": list(self.held_back),
        }

    @property
    def touched(self) -> frozenset[datetime]:
        """Every hour whose tables hold something of this file, or lack something for it."""
        return frozenset((self.hour, *self.hours, *self.held_back))


@dataclass(frozen=True)
class Rules:
    """What decisions depend on, beside the files.

    Attributes:
        shape: hash of the specification that the files of an hour are read under.
        replace_changed: whether a file that differs from what stands replaces it.
        permitted: whether a run may publish an hour.
    """

    shape: Callable[[datetime], str]
    replace_changed: bool
    permitted: Callable[[datetime], bool]


@dataclass(frozen=True)
class Decisions:
    """What a run does.

    Attributes:
        files: the rows of `files` that change, by path.
        removed: sources whose rows leave the tables, with the hours that they touched.
        added: for each source whose rows enter, the path to take them from.
        forgotten: known paths that are gone and of which nothing stands.
        unread: paths whose content has to be read before anything can be decided.
    """

    files: Mapping[str, File]
    removed: Mapping[str, frozenset[datetime]]
    added: Mapping[str, str]
    forgotten: frozenset[str]
    unread: frozenset[str]


def source_id(digest: str, captures: Mapping[str, str], origin: datetime | None = None) -> str:
    """The identity of a content: its bytes, its captures, and the instant from which its times count."""
    said = [digest, sorted(captures.items()), *([] if origin is None else [origin.isoformat()])]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()[:32]


def in_scope(
    known: Mapping[str, File],
    listed: Mapping[str, Listed],
    looked_at: Callable[[datetime, Status | None], bool],
) -> set[str]:
    """The paths that a run sees to: by the hours in their names, and by the hour under which they are known.

    Args:
        looked_at: whether a run sees to an hour, for a file of that status; None for a name.
    """
    paths = {path for path, file in listed.items() if any(looked_at(hour, None) for hour in file.named)}
    return paths | {path for path, file in known.items() if looked_at(file.hour, file.status)}


def has_to_be_read(listed: Listed, known: File | None, rules: Rules) -> bool:
    """Whether a file's content may differ from what is known, or may be wanted now.

    Size and modification time are hints that save reading; a file whose hints are as they were is read
    again only where what was decided last time may come out otherwise.
    """
    if known is None or (known.size, known.modified) != (listed.size, listed.modified):
        return True
    if known.status in ("withheld", "gone") or known.shape != rules.shape(known.hour):
        return True
    if says_otherwise(listed, known):
        return True
    if known.status == "conflict":
        return rules.replace_changed
    return known.status == "waiting" and all(map(rules.permitted, known.touched))


def says_otherwise(listed: Listed, known: File) -> bool:
    """Whether a file's name says another hour, or other captures, than are known of it, or another start of
    its times: the pattern of the paths has changed."""
    if not known.content:
        return False
    said = source_id(known.content, listed.captures, listed.origin)
    return listed.hour not in (None, known.hour) or said != (known.source_id or known.seen_id)


def decide(
    known: Mapping[str, File],
    listed: Mapping[str, Listed],
    read: Mapping[str, Content],
    in_scope: Collection[str],
    rules: Rules,
) -> Decisions:
    """Decides on every path in scope.

    Args:
        known: the rows of `files`.
        listed: the files that are there.
        read: what was read; paths in scope that are not among it are as they were.
        in_scope: paths, listed or known, that this run sees to; it sees to other names of their contents
            as well.
    """
    after = dict(known)
    contents = {known[path].source_id for path in in_scope if path in known}
    contents |= {content.source_id for content in read.values()}
    namesakes = {path for path, file in known.items() if file.source_id in contents - {None}}
    for path in sorted(namesakes.union(in_scope)):
        if path not in listed:
            if path in known and known[path].source_id is not None:
                after[path] = replace(
                    known[path], status="gone", held_back=(), detail="no longer in the landing folder"
                )
            elif path in known:
                del after[path]
        elif path in read:
            after[path] = _seen(known.get(path), listed[path], read[path], rules)
    before = _standing(known)
    unread = _give_up(after, known, before, listed, read, rules)
    _name_canonical(after)
    now = _standing(after)
    removed: dict[str, frozenset[datetime]] = {}
    added: dict[str, str] = {}
    for source in before.keys() | now.keys():
        old, new = before.get(source), now.get(source)
        if old is not None and new is not None and _same_rows(old, new):
            continue
        if old is not None:
            removed[source] = old.touched
        if new is not None:
            added[source] = new.path
            if new.path not in read:
                unread.add(new.path)
    changed = {path: file for path, file in after.items() if file != known.get(path)}
    return Decisions(changed, removed, added, frozenset(known.keys() - after.keys()), frozenset(unread))


def _give_up(
    after: dict[str, File],
    known: Mapping[str, File],
    before: Mapping[str, File],
    listed: Mapping[str, Listed],
    read: Mapping[str, Content],
    rules: Rules,
) -> set[str]:
    """Takes what stands from names that no longer hold it, where others do or the rows were never theirs.

    Returns:
        The paths among them whose content is to be looked at anew, and has not been read.
    """
    unread: set[str] = set()
    while True:
        losing = [
            file
            for source, holders in _holders(after.values()).items()
            for file in holders
            if file.status not in HOLDING
            and (holders[0].status in HOLDING or before[source].path != file.path)
        ]
        if not losing:
            return unread
        for file in losing:
            if file.status == "gone":
                del after[file.path]
            elif file.path in read:
                after[file.path] = _seen(None, listed[file.path], read[file.path], rules)
            else:
                after[file.path] = replace(file, source_id=None)
                unread |= {file.path} & listed.keys()


def _seen(known: File | None, listed: Listed, content: Content, rules: Rules) -> File:
    hour = listed.hour or (content.hours[0] if content.hours else NO_HOUR)
    fresh = File(
        path=listed.path,
        hour=hour,
        status="ingested",
        source_id=content.source_id,
        seen_id=content.source_id,
        content=content.digest,
        shape=rules.shape(hour),
        bytes=content.bytes,
        lines=content.lines,
        header_lines=content.header_lines,
        accepted=content.accepted,
        rejected=content.rejected,
        duplicates=0,
        first_event=content.first_event,
        last_event=content.last_event,
        columns=content.columns,
        hours=content.hours,
        held_back=(),
        lacks=content.lacks,
        detail=None,
        size=listed.size,
        modified=listed.modified,
    )
    stands = known if known is not None and known.source_id is not None else None
    if not content.readable:
        unseen = replace(listed, size=-1)
        return _held_back(stands, fresh, content, unseen, "withheld", content.failed or "cannot be read")
    if stands is not None and stands.source_id != content.source_id and not rules.replace_changed:
        grown = stands.content in (content.digest, content.prefixes.get(stands.bytes))
        if not grown:
            return _held_back(
                stands, fresh, content, listed, "conflict",
                f"{content.bytes} bytes now differ from the {stands.bytes} bytes that stand; "
                "`on_change: replace` takes the new ones",
            )  # fmt: skip
    if content.failed:
        return _held_back(stands, fresh, content, listed, "withheld", content.failed)
    touched = (fresh.touched | replace(stands or fresh, held_back=()).touched) - {NO_HOUR}
    if not all(map(rules.permitted, touched)):
        first, last = min(touched), max(touched)
        detail = f"touches {first:%Y-%m-%dT%H:%M} to {last:%Y-%m-%dT%H:%M}; run that stretch to take it"
        return _held_back(stands, fresh, content, listed, "waiting", detail)
    return fresh


def _held_back(
    stands: File | None, fresh: File, content: Content, listed: Listed, status: Status, detail: str
) -> File:
    """A file that is not taken, beside what stands of it."""
    if stands is None:
        return replace(fresh, status=status, detail=detail, source_id=None, size=listed.size)
    return replace(
        stands,
        status=status,
        seen_id=content.source_id,
        # Nothing of a conflict is missing, as long as the stream says so.
        held_back=() if status == "conflict" else content.hours,
        detail=detail,
        size=listed.size,
        modified=listed.modified,
    )


def _name_canonical(files: dict[str, File]) -> None:
    for first, *others in _holders(files.values()).values():
        if first.status in HOLDING:
            files[first.path] = replace(first, status="ingested", detail=None)
        for file in others:
            files[file.path] = replace(file, status="duplicate", detail=f"the same as {first.path}")


def _holders(files: Iterable[File]) -> dict[str, list[File]]:
    """The files of which each content stands: first those that hold it, by path."""
    holders: dict[str, list[File]] = {}
    for file in sorted(files, key=lambda file: (file.status not in HOLDING, file.path)):
        if file.source_id is not None:
            holders.setdefault(file.source_id, []).append(file)
    return holders


def _standing(files: Mapping[str, File]) -> dict[str, File]:
    """The canonical file of each source whose rows stand in the tables."""
    return {source: holders[0] for source, holders in _holders(files.values()).items()}


def _same_rows(old: File, new: File) -> bool:
    """Whether two canonical files of one content give the same rows: what a file may hold depends on the
    hour in its name, how it is read on the specification, and one that breaks off has a line more."""
    told = attrgetter("hour", "shape", "lines", "accepted", "rejected", "lacks")
    return bool(told(old) == told(new))
