"""Parts of file names: suffixes that compression and rotation add, such as `.gz`, `.1`, and prefixes."""

import re
from itertools import takewhile

_PACKING = re.compile(r"\.(?:gz|gzip|zst|zstd)$", re.IGNORECASE)
_ROTATION = re.compile(
    r"(?:\.[0-9]{1,4}|[.-](?:19|20)[0-9]{2}-?(?:0[1-9]|1[0-2])-?(?:0[1-9]|[12][0-9]|3[01])(?:[-T]?[0-9]{2,6})?)$"
)
_OCTET = r"(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_ADDRESS = re.compile(rf"(?<![0-9])(?<![0-9]\.){_OCTET}(?:\.{_OCTET}){{3}}$")
"""An IPv4 address at the end of a name. It identifies a host; its last part is no rotation number."""


def split_name(path: str) -> tuple[str, str]:
    """Return a path without its compression and rotation suffixes, and the rotation suffix.

    >>> split_name("web/access.log.2.gz")
    ('web/access.log', '.2')

    Paths with the same first result belong to the same file: `access.log`, `access.log.1`, `access.log.2.gz`
    and `access.log-20240506.zst`. A number elsewhere, as in `web1.log` or `web.1.log`, is part of the name.
    So is an IPv4 address, as in `access.log.10.0.0.1`. At least one character of the last part remains.
    """
    rotation = ""
    while True:
        packing = _PACKING.search(path)
        suffix = packing or (None if _ADDRESS.search(path) else _ROTATION.search(path))
        if suffix is None or not path[: suffix.start()].rpartition("/")[2]:
            return path, rotation
        rotation = rotation if packing else suffix[0] + rotation
        path = path[: suffix.start()]


def may_be_host(plain: str, rotation: str) -> bool:
    """Return whether a rotation suffix may also be the number of a host: `syslog.1` and `node.1` look alike.

    >>> may_be_host("logs/node", ".1"), may_be_host("logs/access.log", ".1")
    (True, False)

    Such a number counts as rotation, but equal files under two such names are reported, not skipped silently.
    """
    return "." not in plain.rpartition("/")[2] and re.fullmatch(r"\.[0-9]{1,4}", rotation) is not None


def common_prefix(first: str, second: str) -> str:
    """Return the common prefix."""
    return "".join(a for a, _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False)))
