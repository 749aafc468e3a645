"""Which files a run checks and reads; the decision on each is in `file_decisions`. No Spark, no disk."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from transom.core.file_names import split_name
from transom.features.ingest.file_records import FileName, FileRecord, ListedFile, Status, source_id


@dataclass(frozen=True)
class FilePolicy:
    """Rules for decisions on files.

    Attributes:
        spec_hash: returns the hash of the specification by which the files of an hour are read.
        replace_changed: whether a changed file replaces its published content.
        permitted: returns whether the run may publish an hour.
        name_of: returns the name of a path; None if the path does not match the stream's pattern.
    """

    spec_hash: Callable[[datetime], str]
    replace_changed: bool
    permitted: Callable[[datetime], bool]
    name_of: Callable[[str], FileName | None] = lambda path: FileName((), *split_name(path))


def in_scope(
    known: Mapping[str, FileRecord],
    listed: Mapping[str, ListedFile],
    covers: Callable[[datetime, Status | None], bool],
) -> set[str]:
    """Return the paths that a run checks, by the hours in their names and their recorded hours.

    Args:
        known: the rows of `files`, by path.
        listed: the files of the landing folder, by path.
        covers: returns whether the run checks files of an hour and a status; the status is None for a name.
    """
    paths = {path for path, file in listed.items() if any(covers(hour, None) for hour in file.named)}
    return paths | {path for path, file in known.items() if covers(file.hour, file.status)}


def needs_read(listed: ListedFile, known: FileRecord | None, rules: FilePolicy) -> bool:
    """Return whether a file must be read: its content, or the decision on it, may have changed.

    A file of equal size and modification time is not read if the decision on it cannot change.
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
    """Return whether a file's name now has another hour or identity than recorded: the pattern changed."""
    if not known.content_sha256:
        return False
    recorded = known.source_id or known.last_read_source_id
    identity = source_id(known.content_sha256, **listed.identity)
    return listed.hour not in (None, known.hour) or identity != recorded
