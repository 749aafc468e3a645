"""The landing folder: which files of a stream are there, listed and opened by a file-system library.

Hadoop's globs refuse names with colons, and its text reader gives no line numbers; so files are listed
and read with `pyarrow.fs`, which speaks of local disks and of object stores alike. Names are taken as
they stand, in a URI too: the library is only told a URI's scheme and host, never a path to decode.
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
    """The file system of a path, and the path on it.

    Raises:
        LandingError: a URI of a kind that is not known, or of a host that is none.
    """
    where = absolute(path)
    try:
        return systems.resolve_filesystem(where)
    except (pa.ArrowException, OSError) as error:
        raise LandingError(f"source.path: {where} cannot be opened: {error}") from error


@dataclass(frozen=True)
class FileNames:
    """What the names of a stream's files say.

    Attributes:
        times_by_name: whether the times of their lines count from what their names say.
        star_matters: whether what `*` stands for tells files of equal bytes apart.
    """

    pattern: PathPattern
    times_by_name: bool = False
    star_matters: bool = True

    @classmethod
    def of(cls, stream: Stream) -> "FileNames":
        """Return the rules of a stream."""
        by_name = stream.time is not None and stream.time.by_name
        return cls(stream.path_pattern, by_name, stream.source.equal_files == "keep")

    def read(self, path: str, size: int = -1, modified: int = 0) -> ListedFile | None:
        """Return a file as it is listed, None where it is not the stream's.

        Args:
            modified: in microseconds since the epoch.
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
    """The files below the fixed folder of a pattern, whatever their names say.

    Attributes:
        files: size and time of change, in microseconds since the epoch, by the path as the stream file would
            write it.
    """

    names: FileNames
    files: Mapping[str, tuple[int, int]]

    @classmethod
    def looked_into(cls, names: FileNames) -> "Landing":
        """Return the landing folder as it is.

        Raises:
            LandingError: the fixed folder of the pattern, or a folder below it that may hold files of the
                stream, is not there or cannot be read; or a name below is no text.
        """
        entries = _entries(names.pattern)
        files = ((path, entry) for path, entry in entries if entry.type == fs.FileType.File)
        return cls(names, {path: (entry.size or 0, (entry.mtime_ns or 0) // 1000) for path, entry in files})

    def listed(self, path: str) -> ListedFile | None:
        """Return a file, None where it is not there or not the stream's."""
        return self.names.read(path, *self.files[path]) if path in self.files else None


def list_files(pattern: PathPattern, times_by_name: bool = False) -> dict[str, ListedFile]:
    """Every file that a pattern matches, by its path as the stream file would write it.

    Args:
        times_by_name: as in `FileNames`.

    Raises:
        LandingError: as `Landing.looked_into`.
    """
    landing = Landing.looked_into(FileNames(pattern, times_by_name))
    files = map(landing.listed, landing.files)
    return {file.path: file for file in files if file is not None}


def _entries(pattern: PathPattern) -> Iterator[tuple[str, fs.FileInfo]]:
    """What is below a pattern's fixed folder, by the path as the stream file would write it."""
    system, base = locate(pattern.base)
    above = len(base.rstrip("/")) + 1
    prefix = pattern.base if pattern.base in ("", "/") else pattern.base + "/"

    def named(entries: Iterable[fs.FileInfo]) -> Iterator[tuple[str, fs.FileInfo]]:
        return ((prefix + _path(entry)[above:], entry) for entry in entries)

    def walked(folder: str) -> Iterator[tuple[str, fs.FileInfo]]:
        try:
            entries = system.get_file_info(fs.FileSelector(folder))
        except OSError as error:
            raise LandingError(f"source.path: landing folder {folder} cannot be listed: {error}") from error
        for path, entry in named(entries):
            yield path, entry
            if entry.type == fs.FileType.Directory and pattern.can_contain(path):
                yield from walked(entry.path)

    try:
        return named(system.get_file_info(fs.FileSelector(base, recursive=True)))
    except OSError:
        # Folder by folder takes many requests and says which one it is. It only matters where it may
        # hold files of the stream, as a disk's lost+found does not; those would be missed in silence.
        return walked(base)


def _path(entry: fs.FileInfo) -> str:
    try:
        return cast(str, entry.path)
    except UnicodeDecodeError as error:
        raise LandingError(f"source.path: the name {error.object!r} is not UTF-8") from None


def is_there(path: str) -> bool:
    """Whether a file is there as the driver sees it."""
    system, inside = locate(path)
    return bool(system.get_file_info(inside).type == fs.FileType.File)


def open_file(where: str) -> BinaryIO:
    """The raw bytes of a file, by its absolute path.

    Raises:
        OSError: it has vanished or cannot be read.
    """
    system, inside = locate(where)
    return cast(BinaryIO, system.open_input_stream(inside, compression=None))
