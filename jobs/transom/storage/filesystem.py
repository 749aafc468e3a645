"""Opening paths and URIs with `pyarrow.fs`, which speaks of local disks and of object stores alike.

The library is only told a URI's scheme and host, never a path to decode: names are taken as they stand.
"""

from functools import cache

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
