"""Files with equal bytes whose names differ by more than compression and rotation. No Spark, no disk.

Such files may be copies, or the logs of two sources that wrote the same lines, such as health checks.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from transom.core.file_names import may_be_host, split_name
from transom.features.ingest.file_records import OWNS_ROWS, FileName, FileRecord
from transom.spec.stream import Stream


@dataclass(frozen=True)
class EqualFile:
    """A file with the same bytes as another one.

    Attributes:
        other: the smallest path with the same bytes.
        counted: whether the lines of both count.
    """

    path: str
    other: str
    counted: bool

    @property
    def words(self) -> str:
        """The fact as text."""
        count = "both count" if self.counted else "they count once"
        return f"{self.path} holds the same bytes as {self.other}; {count}"


def equal_files(
    files: Iterable[FileRecord], name_of: Callable[[str], FileName | None]
) -> Mapping[str, EqualFile]:
    """Return the files with the same bytes as a file with a smaller path, by path.

    Files without an event are omitted, and files whose names differ only by compression and rotation. So are
    files with different captures: a capture is a column, which distinguishes their rows.

    Args:
        files: records of files; only those with published rows count.
        name_of: as of `FilePolicy`.
    """
    contents: dict[str | None, list[FileRecord]] = {}
    for file in files:
        if file.source_id is not None and file.parsed:
            contents.setdefault(file.content_sha256, []).append(file)
    groups: dict[tuple[object, ...], list[tuple[FileRecord, FileName]]] = {}
    # Only the names of files with equal bytes are parsed: there are few.
    for content, equal in contents.items():
        for file in sorted(equal, key=lambda file: file.path) if len(equal) > 1 else ():
            name = name_of(file.path)
            if name is not None:
                groups.setdefault((content, name.captures), []).append((file, name))
    found = {}
    for group in groups.values():
        for index, (file, name) in enumerate(group):
            earlier = [(other, _differ(file, name, other, alias)) for other, alias in group[:index]]
            first = next((other for other, differs in earlier if differs), None)
            same_log = any(other.source_id == file.source_id and not differs for other, differs in earlier)
            if first is not None and not same_log:
                found[file.path] = EqualFile(file.path, first.path, first.source_id != file.source_id)
    return found


def _differ(file: FileRecord, name: FileName, other_file: FileRecord, other_name: FileName) -> bool:
    """Return whether two names differ by more than compression and rotation.

    A rotated file has one number at a time, so two numbers that exist at once are two files.
    """
    if name.plain != other_name.plain:
        return True
    if not (name.rotation and other_name.rotation) or name.rotation == other_name.rotation:
        return False
    present = file.status in OWNS_ROWS and other_file.status in OWNS_ROWS
    return present or all(may_be_host(name.plain, each.rotation) for each in (name, other_name))


def names_of(stream: Stream) -> Callable[[str], FileName | None]:
    """Return the function that parses paths of a stream, as of `FilePolicy`."""
    pattern = stream.source.pattern
    by_name = stream.time is not None and stream.time.by_name

    def name_of(path: str) -> FileName | None:
        match = pattern.match(path)
        if match is None:
            return None
        origin = [("", match.start.isoformat())] if by_name and match.start is not None else []
        return FileName((*sorted(match.captures.items()), *origin), *split_name(path))

    return name_of
