"""What packing and rotation add to the name of a file: `.gz`, `.zst`, `.1`, `-20240506`."""

import re

_PACKING = re.compile(r"\.(?:gz|gzip|zst|zstd)$", re.IGNORECASE)
_ROTATION = re.compile(
    r"(?:\.[0-9]{1,4}|[.-](?:19|20)[0-9]{2}-?(?:0[1-9]|1[0-2])-?(?:0[1-9]|[12][0-9]|3[01])(?:[-T]?[0-9]{2,6})?)$"
)


def split_name(path: str) -> tuple[str, str]:
    """Return a path without what packing and rotation add at its end, and what rotation has added.

    Names whose first parts are equal are names of one file: `access.log`, `access.log.1`, `access.log.2.gz`
    and `access.log-20240506.zst`. A number elsewhere, as in `web1.log` or `web.1.log`, is part of the name.

    Args:
        path: a path or a name, at least one character of whose last part stays.
    """
    rotation = ""
    while (added := _PACKING.search(path) or _ROTATION.search(path)) is not None:
        if not path[: added.start()].rpartition("/")[2]:
            break
        rotation = rotation if _PACKING.search(path) else added[0] + rotation
        path = path[: added.start()]
    return path, rotation
