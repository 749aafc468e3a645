"""Detectors of an operator's own: what they are given, and what is taken from them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any


class Record(Mapping[str, Any]):
    """A record as a detector sees it: its values by column, those of the key among them.

    Two records are equal only where they are the same one.

    Attributes:
        time: when it happened, in UTC.
    """

    __slots__ = ("_values", "time")

    def __init__(self, time: datetime, values: Mapping[str, Any]) -> None:
        self.time, self._values = time, values

    def __getitem__(self, column: str) -> Any:
        return self._values[column]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"Record({self.time.isoformat()}, {dict(self._values)!r})"

    __eq__ = object.__eq__
    __hash__ = object.__hash__


Detector = Callable[[Sequence[Record]], Iterable[Iterable[Record]]]
"""Is given the records of a window in their order; returns the matches among them, each as its records."""


def matches_in(detector: Detector, records: Sequence[Record]) -> list[tuple[int, ...]]:
    """What a detector finds in a window: of each match the places of its records, ascending, each match once.

    Raises:
        TypeError, ValueError: it returns something else than matches of records that it was shown.
        Exception: whatever it raises itself.
    """
    place_of = {id(record): place for place, record in enumerate(records)}
    found: dict[tuple[int, ...], None] = {}
    for match in _require_iterable(detector(tuple(records)), "matches"):
        places = set()
        for record in _require_iterable(match, "records of a match"):
            place = place_of.get(id(record))
            if place is None:
                raise ValueError(f"it returned what it was not shown: {record!r:.200}")
            places.add(place)
        if not places:
            raise ValueError("it returned a match without records")
        found[tuple(sorted(places))] = None
    return list(found)


def _require_iterable(returned: Any, what: str) -> Iterable[Any]:
    if isinstance(returned, Mapping | str) or not isinstance(returned, Iterable):
        raise TypeError(f"it has to return {what}; it returned {returned!r:.200}")
    return returned
