"""The landing folder: which files of a stream are there, listed and opened by a file-system library.

Hadoop's globs refuse names with colons, and its text reader gives no line numbers; so files are listed
and read with `pyarrow.fs`, which speaks of local disks and of object stores alike.
"""

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, cast

from pyarrow import fs

from transom.paths import PathPattern
from transom.stages.files import Listed


class LandingError(OSError):
    """The landing folder cannot be listed."""


def home() -> str:
    """The folder that relative paths of a stream file start from."""
    return os.environ.get("TRANSOM_LANDING") or os.environ.get("TRANSOM_HOME", str(Path.cwd()))


def locate(path: str) -> tuple[fs.FileSystem, str, str]:
    """The file system of a path, the path on it, and what to cut off to have the path as declared."""
    if "://" in path:
        system, inside = fs.FileSystem.from_uri(path)
        return system, inside, path[: len(path) - len(inside)]
    root = "" if path.startswith("/") else home().rstrip("/") + "/"
    return fs.LocalFileSystem(), root + path, root


def listed(pattern: PathPattern) -> dict[str, Listed]:
    """Every file that a pattern matches, by its path as the stream file would write it.

    Raises:
        LandingError: the fixed folder of the pattern is not there or cannot be read.
    """
    system, base, root = locate(pattern.base or ".")
    try:
        entries = system.get_file_info(fs.FileSelector(base, recursive=True))
    except OSError as error:
        raise LandingError(f"source.path: landing folder {base} cannot be listed: {error}") from error
    found = {}
    for entry in entries:
        path = entry.path.removeprefix(root)
        match = pattern.match(path) if entry.type == fs.FileType.File else None
        if match is not None:
            modified = datetime.fromtimestamp((entry.mtime_ns or 0) // 1000 / 1e6, UTC)
            found[path] = Listed(
                path, entry.size or 0, modified, match.captures, match.hour, match.start, match.end
            )
    return found


def absolute(path: str) -> str:
    """The path as an executor has to be told it, whatever folder it runs in."""
    return path if "://" in path or path.startswith("/") else f"{home().rstrip('/')}/{path}"


def is_there(path: str) -> bool:
    """Whether a file is there as the driver sees it."""
    system, inside, _ = locate(path)
    return bool(system.get_file_info(inside).type == fs.FileType.File)


def opened(where: str) -> BinaryIO:
    """The raw bytes of a file, by its absolute path.

    Raises:
        OSError: it has vanished or cannot be read.
    """
    system, inside, _ = locate(where)
    return cast(BinaryIO, system.open_input_stream(inside, compression=None))
