"""Paths and URIs of `pyarrow.fs`, on local disks and in object stores.

The library decodes the path of a URI. So it gets only the scheme and the host, and names are used unchanged.
"""

import os
from functools import cache
from pathlib import Path

from pyarrow import fs

from transom.core.path_pattern import split_scheme

SAME = {"s3a://": "s3://", "s3n://": "s3://"}
"""The standard names of schemes, by Hadoop's names."""


def resolve_filesystem(where: str) -> tuple[fs.FileSystem, str]:
    """Return the file system of an absolute path or a URI, and the path on it.

    Raises:
        pyarrow.ArrowException: the scheme is unknown or the host is invalid.
        OSError: the same.
    """
    scheme, rest = split_scheme(where)
    if not scheme:
        return fs.LocalFileSystem(), where or "/"
    host, _, inside = rest.partition("/")
    system, root = _host(f"{SAME.get(scheme, scheme)}{host}/")
    return system, f"{root.rstrip('/')}/{inside}".rstrip("/") or "/"


@cache
def _host(uri: str) -> tuple[fs.FileSystem, str]:
    """Open a file system once: for an object store, this may look up the region of a bucket."""
    system, root = fs.FileSystem.from_uri(uri)
    return system, root


def landing_root() -> str:
    """Return the folder or URI that relative paths of a stream file start from, without a final slash."""
    root = os.environ.get("TRANSOM_LANDING") or os.environ.get("TRANSOM_HOME") or str(Path.cwd())
    scheme, folder = split_scheme(root)
    # The working folders of the jobs and of the executors may differ.
    return scheme + (folder if scheme else str(Path(folder).absolute())).rstrip("/")


def absolute(path: str) -> str:
    """Return a path that is valid in any working folder, such as an executor's."""
    return path if path.startswith("/") or split_scheme(path)[0] else f"{landing_root()}/{path}"
