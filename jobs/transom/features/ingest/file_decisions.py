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

from transom.core.intervals import HOUR, NO_HOUR, format_hour
from transom.features.ingest.equal_files import equal_files
from transom.features.ingest.file_records import HOLDING, Content, File, Listed, Rules, Status


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


def decide(
    known: Mapping[str, File],
    listed: Mapping[str, Listed],
    read: Mapping[str, Content],
    in_scope: Collection[str],
    rules: Rules,
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
                    known[path], status="gone", held_back=(), detail="no longer in the landing folder"
                )
            elif path in known:
                del after[path]
        elif path in read:
            after[path] = _seen(known.get(path), listed[path], read[path], rules)
    before = _standing(known)
    unread = _give_up(after, known, before, listed, read, rules)
    _name_canonical(after)
    # A file that is gone says nothing: a lake that has never seen it has the same rows.
    there = [file for file in after.values() if file.status in HOLDING]
    for path, equal in equal_files(there, rules.name_of).items():
        if after[path].status == "ingested" and equal.counted:
            after[path] = replace(after[path], detail=f"the same bytes as {equal.other}; both count")
    now = _standing(after)
    removed: dict[str, frozenset[datetime]] = {}
    added: dict[str, str] = {}
    for source in before.keys() | now.keys():
        old, new = before.get(source), now.get(source)
        again = new is not None and new.path in listed and _taken_again(new, reread, rules)
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


def _taken_again(file: File, reread: Collection[datetime], rules: Rules) -> bool:
    """Whether a file that holds what stands of it has rows to take again, and a run may publish them all."""
    permitted = all(map(rules.permitted, file.touched - {NO_HOUR}))
    return file.status in HOLDING and permitted and not file.touched.isdisjoint(reread)


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
        return _held_back(stands, fresh, content, listed, "withheld", content.failed or "cannot be read")
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
        span = f"{format_hour(first)} to {format_hour(last + HOUR)}"
        detail = f"its events lie in {span}; a run of that interval takes it"
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
    told = attrgetter("hour", "shape", "lines", "parsed", "rejected", "lacks")
    return bool(told(old) == told(new))
