"""What packing and rotation add to the name of a file: `.gz`, `.zst`, `.1`, `-20240506`."""

import re

_PACKING = re.compile(r"\.(?:gz|gzip|zst|zstd)$", re.IGNORECASE)
_ROTATION = re.compile(
    r"(?:\.[0-9]{1,4}|[.-](?:19|20)[0-9]{2}-?(?:0[1-9]|1[0-2])-?(?:0[1-9]|[12][0-9]|3[01])(?:[-T]?[0-9]{2,6})?)$"
)
_OCTET = r"(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_ADDRESS = re.compile(rf"(?<![0-9])(?<![0-9]\.){_OCTET}(?:\.{_OCTET}){{3}}$")
"""An IPv4 address at the end of a name: it says whose the file is, and its last part is no rotation."""


def split_name(path: str) -> tuple[str, str]:
    """Return a path without what packing and rotation add at its end, and what rotation has added.

    Names whose first parts are equal are names of one file: `access.log`, `access.log.1`, `access.log.2.gz`
    and `access.log-20240506.zst`. A number elsewhere, as in `web1.log` or `web.1.log`, is part of the name,
    and so is an IPv4 address, as in `access.log.10.0.0.1`.

    Args:
        path: a path or a name, at least one character of whose last part stays.
    """
    rotation = ""
    while (added := _added(path)) is not None:
        if not path[: added.start()].rpartition("/")[2]:
            break
        rotation = rotation if _PACKING.search(path) else added[0] + rotation
        path = path[: added.start()]
    return path, rotation


def may_be_host(plain: str, rotation: str) -> bool:
    """Return whether what counts as rotation may as well be the number of a host.

    `syslog.1` and `node.1` look alike. A number behind a name without an extension counts as rotation, as
    most systems rotate their logs so; files of equal bytes under two such names are not left out in silence.
    """
    return "." not in plain.rpartition("/")[2] and re.fullmatch(r"\.[0-9]{1,4}", rotation) is not None


def _added(path: str) -> re.Match[str] | None:
    packing = _PACKING.search(path)
    return packing or (None if _ADDRESS.search(path) else _ROTATION.search(path))
