"""Paths to records inside a line of JSON, and to values around them.

`resourceLogs[].scopeLogs[].logRecords[]` leads through lists in lists to the records. A path that begins
with `$.` leads from the line's object to an object around the record: `$.resourceLogs[].resource.name` is the
name of the record's resource.
"""

import re
from collections.abc import Iterable, Mapping

AROUND = "$."
"""The prefix of the path of a value around a record."""
RECORDS = re.compile(r"[^.\[\]]+(\.[^.\[\]]+)*\[\](\.[^.\[\]]+(\.[^.\[\]]+)*\[\])*")


def lists_of(records: str) -> tuple[str, ...]:
    """Return the lists on the way to the records, each by its path in the object around it.

    Args:
        records: such as `Records[]` or `a.b[].c[]`, which is of the lists `a.b` and `c`.
    """
    return tuple(part.removeprefix(".") for part in records.split("[]")[:-1])


def around(paths: Iterable[str]) -> list[str]:
    """Return the paths that lead to values around a record, sorted."""
    return sorted({path for path in paths if path.startswith(AROUND)})


def level_of(path: str, records: str) -> tuple[int, str]:
    """Return the level of the object around a record to which a path leads, and the path in that object.

    Args:
        path: a path that begins with `$.`.
        records: the path of the records.

    Returns:
        0 for the line's object, 1 for the one in the first list, and so on, and the path there.

    Raises:
        ValueError: the path leads to no object around the records.
    """
    lists = lists_of(records)
    *through, inside = path.removeprefix(AROUND).split("[]")
    level = len(through)
    names = tuple(part.removeprefix(".") for part in through)
    valid = level < len(lists) and names == lists[:level] and inside.startswith(".") == bool(level)
    inside = inside.removeprefix(".")
    # The list itself would be copied to each of its records.
    if not valid or not inside or f"{lists[level]}.".startswith(f"{inside}."):
        raise ValueError(f"must lead to what stands around the records of {records}; got {path!r}")
    return level, inside


def by_level(paths: Iterable[str], records: str) -> list[Mapping[str, str]]:
    """Return the paths of each level, in its object, with the full path of each."""
    levels: list[dict[str, str]] = [{} for _ in lists_of(records)]
    for path in paths:
        level, inside = level_of(path, records)
        levels[level][inside] = path
    return list(levels)
