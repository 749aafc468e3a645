"""Decisions on files: ingest, replace, quarantine or drop. Pure functions, no Spark, no disk.

- Contents with the same `source_id` count once. The canonical path is the smallest one with the content.
- A file that has grown replaces its former content. One that shrank or differs is a conflict.
- A file that disappears keeps its rows.
- A new file of an hour out of reach of the run is late. It waits for a run of that hour.
- A file is ingested as a whole, and only by a run that may publish every hour that it touches.
- A path that no longer has its published content keeps it only if the rows came from this path and no other
  path has the content. So each content has paths that contain it, or one path that did.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from operator import attrgetter

from transom.core.intervals import HOUR, UNKNOWN_HOUR, format_hour
from transom.features.ingest.equal_files import equal_files
from transom.features.ingest.file_records import OWNS_ROWS, FileContent, FileRecord, ListedFile, Status
from transom.features.ingest.file_selection import FilePolicy

DETERMINES_ROWS = attrgetter("hour", "spec_hash", "lines", "parsed", "rejected", "incomplete_reason")
"""The fields of a record that, with its content, determine its rows. The hour in the name bounds the times,
the specification determines how lines are read, and a broken file has one more line."""


@dataclass(frozen=True)
class Decisions:
    """The decisions of a run.

    Attributes:
        files: the rows of `files` that change, by path.
        removed: the sources whose rows are deleted, with the hours that they touched.
        added: the sources whose rows are inserted, with the path to read each from.
        dropped: recorded paths that no longer exist and own no rows.
        unread: paths that must be read before the decisions are final.
    """

    files: Mapping[str, FileRecord]
    removed: Mapping[str, frozenset[datetime]]
    added: Mapping[str, str]
    dropped: frozenset[str]
    unread: frozenset[str]

    def applied_to(self, files: Mapping[str, FileRecord]) -> dict[str, FileRecord]:
        """Return rows of `files` after the decisions, by path."""
        return {path: file for path, file in {**files, **self.files}.items() if path not in self.dropped}


def decide(
    known: Mapping[str, FileRecord],
    listed: Mapping[str, ListedFile],
    read: Mapping[str, FileContent],
    in_scope: Collection[str],
    rules: FilePolicy,
    reread: Collection[datetime] = (),
) -> Decisions:
    """Decide on every path in scope, and on other paths with the same contents.

    Args:
        known: the rows of `files`, by path.
        listed: the files of the landing folder, by path.
        read: the contents that were read, by path; other paths in scope are unchanged.
        in_scope: the paths, listed or known, that the run checks.
        rules: the policy for decisions.
        reread: hours whose rows are ingested again from files that still have their published content.
    """
    after = dict(known)
    contents = {known[path].source_id for path in in_scope if path in known}
    contents |= {content.source_id for content in read.values()}
    namesakes = {path for path, file in known.items() if file.source_id in contents - {None}}
    for path in sorted(namesakes.union(in_scope)):
        if path not in listed:
            if path in known and known[path].source_id is not None:
                reason = "no longer in the landing folder"
                after[path] = replace(known[path], status="missing", pending_hours=(), status_reason=reason)
            elif path in known:
                del after[path]
        elif path in read:
            after[path] = _record_of(known.get(path), listed[path], read[path], rules)
    before = _published_files(known)
    unread = _release_lost_paths(after, known, before, listed, read, rules)
    _name_canonical(after)
    # Missing files do not count: a lake that never had them gets the same rows.
    present = [file for file in after.values() if file.status in OWNS_ROWS]
    for path, equal in equal_files(present, rules.name_of).items():
        if after[path].status == "ingested" and equal.counted:
            after[path] = replace(after[path], status_reason=f"the same bytes as {equal.other}; both count")
    published = _published_files(after)
    removed: dict[str, frozenset[datetime]] = {}
    added: dict[str, str] = {}
    for source in before.keys() | published.keys():
        old, new = before.get(source), published.get(source)
        again = new is not None and new.path in listed and _can_reread(new, reread, rules)
        if old is not None and new is not None and DETERMINES_ROWS(old) == DETERMINES_ROWS(new) and not again:
            continue
        if old is not None:
            removed[source] = old.touched
        if new is not None:
            added[source] = new.path
            if new.path not in read:
                unread.add(new.path)
    changed = {path: file for path, file in after.items() if file != known.get(path)}
    return Decisions(changed, removed, added, frozenset(known.keys() - after.keys()), frozenset(unread))


def late_files(
    known: Collection[str],
    listed: Mapping[str, ListedFile],
    in_scope: Collection[str],
    rules: FilePolicy,
    too_late: Callable[[datetime], bool],
) -> dict[str, FileRecord]:
    """Return the new files that arrived too late for a run, with status waiting.

    Args:
        known: as of `decide`.
        listed: as of `decide`.
        in_scope: as of `decide`.
        rules: as of `decide`.
        too_late: returns whether an hour was requested and is out of the run's reach.
    """
    return {
        path: FileRecord(
            path=path, hour=file.hour, status="waiting", spec_hash=rules.spec_hash(file.hour),
            status_reason=f"came later than `repair_window`; run {file.hour:%Y-%m-%dT%H:%M} again to take it",
            size=-1, modified=file.modified,
        )
        for path, file in listed.items()
        if path not in in_scope and path not in known and file.hour is not None and too_late(file.hour)
    }  # fmt: skip


def _can_reread(file: FileRecord, reread: Collection[datetime], rules: FilePolicy) -> bool:
    """Return whether a file has its published content and the run may ingest its rows again."""
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
    """Release published contents from paths that no longer have them, if another path owns the rows.

    Returns:
        The released paths that must be read.
    """
    unread: set[str] = set()
    while True:
        released = [
            file
            for source, holders in _holders(after.values()).items()
            for file in holders
            if file.status not in OWNS_ROWS
            and (holders[0].status in OWNS_ROWS or before[source].path != file.path)
        ]
        if not released:
            return unread
        for file in released:
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
        path=listed.path, hour=hour, status="ingested", source_id=content.source_id,
        last_read_source_id=content.source_id, content_sha256=content.digest,
        spec_hash=rules.spec_hash(hour), bytes=content.bytes, lines=content.lines,
        header_lines=content.header_lines, accepted=content.accepted, rejected=content.rejected,
        first_event=content.first_event, last_event=content.last_event, columns=content.columns,
        hours=content.hours, incomplete_reason=content.lacks, size=listed.size, modified=listed.modified,
    )  # fmt: skip
    published = known if known is not None and known.source_id is not None else None
    touched = (fresh.touched | replace(published or fresh, pending_hours=()).touched) - {UNKNOWN_HOUR}
    status: Status
    if not content.source_id:
        status, reason = "quarantined", content.failed or "cannot be read"
    elif (
        published is not None
        and published.source_id != content.source_id
        and not rules.replace_changed
        and published.content_sha256 not in (content.digest, content.prefixes.get(published.bytes))
    ):
        status = "conflict"
        reason = (
            f"{content.bytes} bytes now differ from the {published.bytes} bytes that are published; "
            "`on_conflict: replace` takes the new ones"
        )
    elif content.failed:
        status, reason = "quarantined", content.failed
    elif not all(map(rules.permitted, touched)):
        span = f"{format_hour(min(touched))} to {format_hour(max(touched) + HOUR)}"
        status, reason = "waiting", f"its events lie in {span}; a run of that interval takes it"
    else:
        return fresh
    if published is None:
        return replace(fresh, status=status, status_reason=reason, source_id=None)
    return replace(
        published,
        status=status,
        last_read_source_id=content.source_id,
        # A conflict lacks no events: the published content stays the valid one.
        pending_hours=() if status == "conflict" else content.hours,
        status_reason=reason,
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
    """Return the files of each published content: first those that have it, then by path."""
    holders: dict[str, list[FileRecord]] = {}
    for file in sorted(files, key=lambda file: (file.status not in OWNS_ROWS, file.path)):
        if file.source_id is not None:
            holders.setdefault(file.source_id, []).append(file)
    return holders


def _published_files(files: Mapping[str, FileRecord]) -> dict[str, FileRecord]:
    """Return the canonical file of each source whose rows are in the tables."""
    return {source: holders[0] for source, holders in _holders(files.values()).items()}
