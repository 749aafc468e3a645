"""Files that hold the same bytes under names that packing and rotation do not explain. No Spark, no disk.

Such files may be copies, or what two sources wrote that had nothing to tell them apart, such as health
checks. Nothing in the bytes says which.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from transom.core.file_names import may_be_host, split_name
from transom.features.ingest.file_records import OWNS_ROWS, FileName, FileRecord
from transom.spec.stream import Stream


@dataclass(frozen=True)
class EqualFile:
    """A file whose bytes another file holds, too.

    Attributes:
        path: of the file.
        other: the smallest path that holds the same bytes.
        counted: whether the lines of both count.
    """

    path: str
    other: str
    counted: bool

    @property
    def words(self) -> str:
        """The fact, for a person."""
        count = "both count" if self.counted else "they count once"
        return f"{self.path} holds the same bytes as {self.other}; {count}"


def equal_files(
    files: Iterable[FileRecord], name_of: Callable[[str], FileName | None]
) -> Mapping[str, EqualFile]:
    """Return the files that hold the same bytes as one of a smaller path, by path.

    Files without an event, names that differ only by what packing and rotation add, and names that differ in
    a capture are left out: a capture is a column, so nobody takes such files for one.

    Args:
        files: those of which something is published count.
        name_of: as in `FilePolicy`.
    """
    contents: dict[str | None, list[FileRecord]] = {}
    for file in files:
        if file.source_id is not None and file.parsed:
            contents.setdefault(file.content_sha256, []).append(file)
    groups: dict[tuple[object, ...], list[tuple[FileRecord, FileName]]] = {}
    # Of the thousands of files of a year hardly any has an equal one: the names of these alone are read.
    for content, equal in contents.items():
        for file in sorted(equal, key=lambda file: file.path) if len(equal) > 1 else ():
            name = name_of(file.path)
            if name is not None:
                groups.setdefault((content, name.captures), []).append((file, name))
    found = {}
    for group in groups.values():
        for index, mine in enumerate(group):
            file, before = mine[0], group[:index]
            explained = any(one[0].source_id == file.source_id and not _differ(one, mine) for one in before)
            other = next((one[0] for one in before if _differ(one, mine)), None)
            if other is not None and not explained:
                found[file.path] = EqualFile(file.path, other.path, other.source_id != file.source_id)
    return found


def _differ(one: tuple[FileRecord, FileName], other: tuple[FileRecord, FileName]) -> bool:
    """Return whether packing and rotation do not explain two names for sure. Of a file that is rotated one
    number is there at a time, where it is known to be rotated."""
    (file, name), (other_file, other_name) = one, other
    if name.plain != other_name.plain:
        return True
    if not (name.rotation and other_name.rotation) or name.rotation == other_name.rotation:
        return False
    there = file.status in OWNS_ROWS and other_file.status in OWNS_ROWS
    return there or (may_be_host(name.plain, name.rotation) and may_be_host(name.plain, other_name.rotation))


def names_of(stream: Stream) -> Callable[[str], FileName | None]:
    """Return what a path of a stream says of where its file comes from."""
    pattern = stream.path_pattern
    by_name = stream.time is not None and stream.time.by_name

    def name_of(path: str) -> FileName | None:
        match = pattern.match(path)
        if match is None:
            return None
        origin = [("", match.start.isoformat())] if by_name and match.start is not None else []
        return FileName((*sorted(match.captures.items()), *origin), *split_name(path))

    return name_of
