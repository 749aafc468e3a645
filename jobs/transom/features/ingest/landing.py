"""The landing folder: the files of a stream, listed and opened by `pyarrow.fs`.

Hadoop's globs refuse names with colons, and its text reader has no line numbers. The library decodes the path
of a URI. So it gets only the scheme and the host, and names are used unchanged.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import BinaryIO, cast

import pyarrow as pa
from pyarrow import fs

from transom.core.intervals import EPOCH
from transom.core.path_pattern import PathPattern
from transom.features.ingest.file_records import ListedFile
from transom.spec.stream import Stream
from transom.storage import filesystem as systems
from transom.storage.filesystem import absolute


class LandingError(OSError):
    """The landing folder cannot be listed."""


def locate(path: str) -> tuple[fs.FileSystem, str]:
    """Return the file system of a path, and the path on it.

    Raises:
        LandingError: the scheme of the URI is unknown, or its host is invalid.
    """
    where = absolute(path)
    try:
        return systems.resolve_filesystem(where)
    except (pa.ArrowException, OSError) as error:
        raise LandingError(f"source.path: {where} cannot be opened: {error}") from error


@dataclass(frozen=True)
class FileNames:
    """A parser of the paths of a stream's files.

    Attributes:
        pattern: the pattern of the paths.
        times_by_name: whether the times of the lines count from the time in the name.
        star_matters: whether the texts that `*` matches are part of a file's identity.
    """

    pattern: PathPattern
    times_by_name: bool = False
    star_matters: bool = True

    @classmethod
    def of(cls, stream: Stream) -> "FileNames":
        """Return the parser of a stream."""
        by_name = stream.time is not None and stream.time.by_name
        return cls(stream.source.pattern, by_name, stream.source.equal_files == "keep")

    def read(self, path: str, size: int = -1, modified: int = 0) -> ListedFile | None:
        """Return a file by its path; None if the path does not match.

        Args:
            path: the path, as the stream file would write it.
            size: the stored size in bytes; -1 if unknown.
            modified: the time of modification, in microseconds since the epoch.
        """
        match = self.pattern.match(path)
        if match is None:
            return None
        return ListedFile(
            path, size, EPOCH + timedelta(microseconds=modified), match.captures, match.hour, match.start,
            match.end, match.start if self.times_by_name else None, match.varies if self.star_matters else (),
            self.pattern.words_of_empty(match.empty) if match.empty else None,
        )  # fmt: skip


@dataclass(frozen=True)
class Landing:
    """All files below the fixed folder of a pattern.

    Attributes:
        names: the parser of their paths.
        files: for each path, the size in bytes and the time of modification in microseconds since the epoch.
    """

    names: FileNames
    files: Mapping[str, tuple[int, int]]

    @classmethod
    def read(cls, names: FileNames) -> "Landing":
        """List the landing folder.

        Raises:
            LandingError: a folder that may contain files of the stream cannot be listed, or a name is not
                UTF-8.
        """
        entries = _entries(names.pattern)
        files = ((path, entry) for path, entry in entries if entry.type == fs.FileType.File)
        return cls(names, {path: (entry.size or 0, (entry.mtime_ns or 0) // 1000) for path, entry in files})

    def listed(self, path: str) -> ListedFile | None:
        """Return a file; None if it does not exist or does not match."""
        return self.names.read(path, *self.files[path]) if path in self.files else None


def list_files(pattern: PathPattern) -> dict[str, ListedFile]:
    """Return every file that a pattern matches, by path; raise as `Landing.read`."""
    landing = Landing.read(FileNames(pattern))
    return {path: file for path in landing.files if (file := landing.listed(path)) is not None}


def _entries(pattern: PathPattern) -> Iterator[tuple[str, fs.FileInfo]]:
    """Return the entries below a pattern's fixed folder, by the path as the stream file would write it."""
    system, base = locate(pattern.base)
    above = len(base.rstrip("/")) + 1
    prefix = pattern.base if pattern.base in ("", "/") else pattern.base + "/"

    def name(entry: fs.FileInfo) -> str:
        try:
            return prefix + cast(str, entry.path)[above:]
        except UnicodeDecodeError as error:
            raise LandingError(f"source.path: the name {error.object!r} is not UTF-8") from None

    def walk(folder: str) -> Iterator[fs.FileInfo]:
        try:
            entries = system.get_file_info(fs.FileSelector(folder))
        except OSError as error:
            raise LandingError(f"source.path: landing folder {folder} cannot be listed: {error}") from error
        for entry in entries:
            yield entry
            if entry.type == fs.FileType.Directory and pattern.can_contain(name(entry)):
                yield from walk(entry.path)

    entries: Iterable[fs.FileInfo]
    try:
        entries = system.get_file_info(fs.FileSelector(base, recursive=True))
    except OSError:
        # One request for each folder is slow. But it skips unreadable folders that cannot contain files of
        # the stream, such as lost+found, and the error names the others.
        entries = walk(base)
    return ((name(entry), entry) for entry in entries)


def is_there(path: str) -> bool:
    """Return whether the driver sees a file."""
    system, inside = locate(path)
    return bool(system.get_file_info(inside).type == fs.FileType.File)


def open_file(where: str) -> BinaryIO:
    """Open the stored bytes of a file by its absolute path; raise OSError if it cannot be read."""
    system, inside = locate(where)
    return cast(BinaryIO, system.open_input_stream(inside, compression=None))
