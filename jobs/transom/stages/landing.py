"""The landing folder: which files of a stream are there, listed and opened by a file-system library.

Hadoop's globs refuse names with colons, and its text reader gives no line numbers; so files are listed
and read with `pyarrow.fs`, which speaks of local disks and of object stores alike. Names are taken as
they stand, in a URI too: the library is only told a URI's scheme and host, never a path to decode.
"""

import os
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, cast

import pyarrow as pa
from pyarrow import fs

from transom.lake import systems
from transom.paths import PathPattern, split_scheme
from transom.stages.files import Listed


class LandingError(OSError):
    """The landing folder cannot be listed."""


def home() -> str:
    """The folder, or the URI of one, that relative paths of a stream file start from; no slash at its end."""
    named = os.environ.get("TRANSOM_LANDING") or os.environ.get("TRANSOM_HOME") or str(Path.cwd())
    scheme, folder = split_scheme(named)
    # The jobs' and the executors' working folders may differ.
    return scheme + (folder if scheme else str(Path(folder).absolute())).rstrip("/")


def absolute(path: str) -> str:
    """The path as an executor has to be told it, whatever folder it runs in."""
    return path if path.startswith("/") or split_scheme(path)[0] else f"{home()}/{path}"


def locate(path: str) -> tuple[fs.FileSystem, str]:
    """The file system of a path, and the path on it.

    Raises:
        LandingError: a URI of a kind that is not known, or of a host that is none.
    """
    where = absolute(path)
    try:
        return systems.opened(where)
    except (pa.ArrowException, OSError) as error:
        raise LandingError(f"source.path: {where} cannot be opened: {error}") from error


def listed(pattern: PathPattern, times_by_name: bool = False, apart: bool = True) -> dict[str, Listed]:
    """Every file that a pattern matches, by its path as the stream file would write it.

    Args:
        times_by_name: whether the times of their lines count from what their names say.
        apart: whether what `*` stands for tells files of equal bytes apart.

    Raises:
        LandingError: the fixed folder of the pattern, or a folder below it that may hold files of the
            stream, is not there or cannot be read; or a name below is no text.
    """
    found = {}
    for path, entry in _entries(pattern):
        match = pattern.match(path) if entry.type == fs.FileType.File else None
        if match is not None:
            modified = datetime.fromtimestamp((entry.mtime_ns or 0) // 1000 / 1e6, UTC)
            origin = match.start if times_by_name else None
            found[path] = Listed(
                path, entry.size or 0, modified, match.captures, match.hour, match.start, match.end, origin,
                match.varies if apart else (),
                pattern.words_of_empty(match.empty) if match.empty else None,
            )  # fmt: skip
    return found


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
            if entry.type == fs.FileType.Directory and pattern.may_hold(path):
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


def opened(where: str) -> BinaryIO:
    """The raw bytes of a file, by its absolute path.

    Raises:
        OSError: it has vanished or cannot be read.
    """
    system, inside = locate(where)
    return cast(BinaryIO, system.open_input_stream(inside, compression=None))
