"""Paths to records inside a line of JSON, and to values around them.

`resourceLogs[].scopeLogs[].logRecords[]` leads through lists in lists to the records. A path that begins with
`$.` leads from the line's object to a value around the record: `$.resourceLogs[].resource.name` is the name
of the record's resource.
"""

import re
from collections.abc import Iterable, Mapping

AROUND = "$."
"""The prefix of the path of a value around a record."""
RECORDS = re.compile(r"[^.\[\]]+(\.[^.\[\]]+)*\[\](\.[^.\[\]]+(\.[^.\[\]]+)*\[\])*")


def lists_of(records: str) -> tuple[str, ...]:
    """Return the lists on the way to the records, each by its path in the object around it.

    >>> lists_of("a.b[].c[]")
    ('a.b', 'c')
    """
    return tuple(part.removeprefix(".") for part in records.split("[]")[:-1])


def around(paths: Iterable[str]) -> list[str]:
    """Return the paths that lead to values around a record, sorted."""
    return sorted({path for path in paths if path.startswith(AROUND)})


def level_of(path: str, records: str) -> tuple[int, str]:
    """Return the level of the object around a record to which a path leads, and the path in that object.

    >>> level_of("$.a[].host.name", "a[].b[]")
    (1, 'host.name')

    Args:
        path: a path that begins with `$.`.
        records: the path of the records.

    Returns:
        The level: 0 for the line's object, 1 for the object in the first list, and so on. And the path.

    Raises:
        ValueError: the path leads to no object around the records.
    """
    lists = lists_of(records)
    *through, inside = path.removeprefix(AROUND).split("[]")
    level = len(through)
    names = tuple(part.removeprefix(".") for part in through)
    valid = level < len(lists) and names == lists[:level] and inside.startswith(".") == bool(level)
    inside = inside.removeprefix(".")
    # The list itself is refused: it would be copied to each of its records.
    if not valid or not inside or f"{lists[level]}.".startswith(f"{inside}."):
        raise ValueError(f"must lead to a value around the records of {records}; got {path!r}")
    return level, inside


def by_level(paths: Iterable[str], records: str) -> list[Mapping[str, str]]:
    """Return for each level the paths in its object, each with its full path."""
    levels: list[dict[str, str]] = [{} for _ in lists_of(records)]
    for path in paths:
        level, inside = level_of(path, records)
        levels[level][inside] = path
    return list(levels)
