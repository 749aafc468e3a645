"""What a run does with each file that it sees. Pure decisions, no Spark, no disk.

Equal contents of one identity (`source_id`) are one file, whose canonical name is the smallest path that
holds it. A file that has
grown is replaced by the new one; one that shrank or differs is held back as a conflict; one that is gone
keeps its rows. A file is accepted or withheld whole, and a run takes it only when it may publish every
hour that it touches.

A name that no longer holds the content that stands of it keeps that content only where the rows came
from there and no other name holds it: each content has either names that hold it or one that did.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from operator import attrgetter

from transom.core.intervals import HOUR, UNKNOWN_HOUR, format_hour
from transom.features.ingest.equal_files import equal_files
from transom.features.ingest.file_records import (
    OWNS_ROWS,
    FileContent,
    FilePolicy,
    FileRecord,
    ListedFile,
    Status,
)


@dataclass(frozen=True)
class Decisions:
    """What a run does.

    Attributes:
        files: the rows of `files` that change, by path.
        removed: sources whose rows leave the tables, with the hours that they touched.
        added: for each source whose rows enter, the path to take them from.
        dropped: known paths that are gone and of which nothing stands.
        unread: paths whose content has to be read before anything can be decided.
    """

    files: Mapping[str, FileRecord]
    removed: Mapping[str, frozenset[datetime]]
    added: Mapping[str, str]
    dropped: frozenset[str]
    unread: frozenset[str]


def decide(
    known: Mapping[str, FileRecord],
    listed: Mapping[str, ListedFile],
    read: Mapping[str, FileContent],
    in_scope: Collection[str],
    rules: FilePolicy,
    reread: Collection[datetime] = (),
) -> Decisions:
    """Decides on every path in scope.

    Args:
        known: the rows of `files`.
        listed: the files that are there.
        read: what was read; paths in scope that are not among it are as they were.
        in_scope: paths, listed or known, that this run sees to; it sees to other names of their contents
            as well.
        reread: hours whose rows are taken from their files again, where these still hold what stands.
    """
    after = dict(known)
    contents = {known[path].source_id for path in in_scope if path in known}
    contents |= {content.source_id for content in read.values()}
    namesakes = {path for path, file in known.items() if file.source_id in contents - {None}}
    for path in sorted(namesakes.union(in_scope)):
        if path not in listed:
            if path in known and known[path].source_id is not None:
                after[path] = replace(
                    known[path],
                    status="missing",
                    pending_hours=(),
                    status_reason="no longer in the landing folder",
                )
            elif path in known:
                del after[path]
        elif path in read:
            after[path] = _record_of(known.get(path), listed[path], read[path], rules)
    before = _published_files(known)
    unread = _release_lost_paths(after, known, before, listed, read, rules)
    _name_canonical(after)
    # A file that is gone says nothing: a lake that has never seen it has the same rows.
    there = [file for file in after.values() if file.status in OWNS_ROWS]
    for path, equal in equal_files(there, rules.name_of).items():
        if after[path].status == "ingested" and equal.counted:
            after[path] = replace(after[path], status_reason=f"the same bytes as {equal.other}; both count")
    now = _published_files(after)
    removed: dict[str, frozenset[datetime]] = {}
    added: dict[str, str] = {}
    for source in before.keys() | now.keys():
        old, new = before.get(source), now.get(source)
        again = new is not None and new.path in listed and _can_reread(new, reread, rules)
        if old is not None and new is not None and _same_rows(old, new) and not again:
            continue
        if old is not None:
            removed[source] = old.touched
        if new is not None:
            added[source] = new.path
            if new.path not in read:
                unread.add(new.path)
    changed = {path: file for path, file in after.items() if file != known.get(path)}
    return Decisions(changed, removed, added, frozenset(known.keys() - after.keys()), frozenset(unread))


def _can_reread(file: FileRecord, reread: Collection[datetime], rules: FilePolicy) -> bool:
    """Whether a file that holds what stands of it has rows to take again, and a run may publish them all."""
    permitted = all(map(rules.permitted, file.touched - {UNKNOWN_HOUR}))
    return file.status in OWNS_ROWS and permitted and not file.touched.isdisjoint(reread)


def _release_lost_paths(
    after: dict[str, FileRecord],
    known: Mapping[str, FileRecord],
    before: Mapping[str, FileRecord],
    listed: Mapping[str, ListedFile],
    read: Mapping[str, FileContent],
    rules: FilePolicy,
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
            if file.status not in OWNS_ROWS
            and (holders[0].status in OWNS_ROWS or before[source].path != file.path)
        ]
        if not losing:
            return unread
        for file in losing:
            if file.status == "missing":
                del after[file.path]
            elif file.path in read:
                after[file.path] = _record_of(None, listed[file.path], read[file.path], rules)
            else:
                after[file.path] = replace(file, source_id=None)
                unread |= {file.path} & listed.keys()


def _record_of(
    known: FileRecord | None, listed: ListedFile, content: FileContent, rules: FilePolicy
) -> FileRecord:
    hour = listed.hour or (content.hours[0] if content.hours else UNKNOWN_HOUR)
    fresh = FileRecord(
        path=listed.path,
        hour=hour,
        status="ingested",
        source_id=content.source_id,
        last_read_source_id=content.source_id,
        content_sha256=content.digest,
        spec_hash=rules.shape(hour),
        bytes=content.bytes,
        lines=content.lines,
        header_lines=content.header_lines,
        accepted=content.accepted,
        rejected=content.rejected,
        first_event=content.first_event,
        last_event=content.last_event,
        columns=content.columns,
        hours=content.hours,
        incomplete_reason=content.lacks,
        size=listed.size,
        modified=listed.modified,
    )
    stands = known if known is not None and known.source_id is not None else None
    if not content.readable:
        return _held_back(stands, fresh, content, listed, "quarantined", content.failed or "cannot be read")
    if stands is not None and stands.source_id != content.source_id and not rules.replace_changed:
        grown = stands.content_sha256 in (content.digest, content.prefixes.get(stands.bytes))
        if not grown:
            return _held_back(
                stands, fresh, content, listed, "conflict",
                f"{content.bytes} bytes now differ from the {stands.bytes} bytes that stand; "
                "`on_conflict: replace` takes the new ones",
            )  # fmt: skip
    if content.failed:
        return _held_back(stands, fresh, content, listed, "quarantined", content.failed)
    touched = (fresh.touched | replace(stands or fresh, pending_hours=()).touched) - {UNKNOWN_HOUR}
    if not all(map(rules.permitted, touched)):
        first, last = min(touched), max(touched)
        span = f"{format_hour(first)} to {format_hour(last + HOUR)}"
        detail = f"its events lie in {span}; a run of that interval takes it"
        return _held_back(stands, fresh, content, listed, "waiting", detail)
    return fresh


def _held_back(
    stands: FileRecord | None,
    fresh: FileRecord,
    content: FileContent,
    listed: ListedFile,
    status: Status,
    detail: str,
) -> FileRecord:
    """A file that is not taken, beside what stands of it."""
    if stands is None:
        return replace(fresh, status=status, status_reason=detail, source_id=None, size=listed.size)
    return replace(
        stands,
        status=status,
        last_read_source_id=content.source_id,
        # Nothing of a conflict is missing, as long as the stream says so.
        pending_hours=() if status == "conflict" else content.hours,
        status_reason=detail,
        size=listed.size,
        modified=listed.modified,
    )


def _name_canonical(files: dict[str, FileRecord]) -> None:
    for first, *others in _holders(files.values()).values():
        if first.status in OWNS_ROWS:
            files[first.path] = replace(first, status="ingested", status_reason=None)
        for file in others:
            files[file.path] = replace(file, status="duplicate", status_reason=f"the same as {first.path}")


def _holders(files: Iterable[FileRecord]) -> dict[str, list[FileRecord]]:
    """The files of which each content stands: first those that hold it, by path."""
    holders: dict[str, list[FileRecord]] = {}
    for file in sorted(files, key=lambda file: (file.status not in OWNS_ROWS, file.path)):
        if file.source_id is not None:
            holders.setdefault(file.source_id, []).append(file)
    return holders


def _published_files(files: Mapping[str, FileRecord]) -> dict[str, FileRecord]:
    """The canonical file of each source whose rows stand in the tables."""
    return {source: holders[0] for source, holders in _holders(files.values()).items()}


def _same_rows(old: FileRecord, new: FileRecord) -> bool:
    """Whether two canonical files of one content give the same rows: what a file may hold depends on the
    hour in its name, how it is read on the specification, and one that breaks off has a line more."""
    told = attrgetter("hour", "spec_hash", "lines", "parsed", "rejected", "incomplete_reason")
    return bool(told(old) == told(new))
