"""Opening paths and URIs with `pyarrow.fs`, which speaks of local disks and of object stores alike.

The library is only told a URI's scheme and host, never a path to decode: names are taken as they stand.
"""

import os
from functools import cache
from pathlib import Path

from pyarrow import fs

from transom.core.path_pattern import split_scheme

SAME = {"s3a://": "s3://", "s3n://": "s3://"}
"""Schemes that Hadoop has names of its own for."""


def resolve_filesystem(where: str) -> tuple[fs.FileSystem, str]:
    """The file system of an absolute path or a URI, and the path on it.

    Raises:
        pyarrow.ArrowException, OSError: a scheme that is not known, or a host that is none.
    """
    scheme, rest = split_scheme(where)
    if not scheme:
        return fs.LocalFileSystem(), where or "/"
    host, _, inside = rest.partition("/")
    system, root = _host(f"{SAME.get(scheme, scheme)}{host}/")
    return system, f"{root.rstrip('/')}/{inside}".rstrip("/") or "/"


@cache
def _host(uri: str) -> tuple[fs.FileSystem, str]:
    """Opened once: an object store may be asked where a bucket lies."""
    system, root = fs.FileSystem.from_uri(uri)
    return system, root


def landing_root() -> str:
    """The folder, or the URI of one, that relative paths of a stream file start from; no slash at its end."""
    named = os.environ.get("TRANSOM_LANDING") or os.environ.get("TRANSOM_HOME") or str(Path.cwd())
    scheme, folder = split_scheme(named)
    # The jobs' and the executors' working folders may differ.
    return scheme + (folder if scheme else str(Path(folder).absolute())).rstrip("/")


def absolute(path: str) -> str:
    """The path as an executor has to be told it, whatever folder it runs in."""
    return path if path.startswith("/") or split_scheme(path)[0] else f"{landing_root()}/{path}"
