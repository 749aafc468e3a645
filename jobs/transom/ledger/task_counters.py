"""What tasks count beside the rows that they make, hour by hour.

Sums, maxima, and a few notes, the first in the order of their texts: so what comes of all tasks together does
not depend on how the rows were divided among them.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

NOTES = 20
"""Notes that are kept of an hour under one name."""
At = tuple[int, str]
"""An hour, counted from the epoch, and a name."""


@dataclass
class TaskCounters:
    """Counts of one block.

    Attributes:
        sums: numbers that add up.
        maxima: numbers of which the largest counts.
        notes: texts for a person.
    """

    sums: dict[At, int] = field(default_factory=dict)
    maxima: dict[At, int] = field(default_factory=dict)
    notes: dict[At, list[str]] = field(default_factory=dict)

    def add(self, name: str, hours: Iterable[int], amounts: Iterable[int]) -> None:
        """Adds an amount to each of some hours, which may repeat."""
        for hour, amount in zip(hours, amounts, strict=True):
            self.sums[int(hour), name] = self.sums.get((int(hour), name), 0) + int(amount)

    def set_max(self, name: str, hours: Iterable[int], amounts: Iterable[int]) -> None:
        """Raises the maximum of each of some hours, which may repeat."""
        for hour, amount in zip(hours, amounts, strict=True):
            self.maxima[int(hour), name] = max(self.maxima.get((int(hour), name), 0), int(amount))

    def note(self, name: str, hour: int, text: str) -> None:
        """Notes something."""
        self.notes[hour, name] = sorted({*self.notes.get((hour, name), ()), text})[:NOTES]

    def merge(self, other: "TaskCounters") -> None:
        """Adds what another task has counted."""
        for (hour, name), amount in other.sums.items():
            self.add(name, [hour], [amount])
        for (hour, name), amount in other.maxima.items():
            self.set_max(name, [hour], [amount])
        for (hour, name), texts in other.notes.items():
            for text in texts:
                self.note(name, hour, text)

    def figures(self) -> Iterator[tuple[int, str, int]]:
        """Every number with its hour and name."""
        for (hour, name), amount in (*self.sums.items(), *self.maxima.items()):
            yield hour, name, amount

    def to_json(self) -> str:
        """This tally as text."""
        return json.dumps([[[*at, value] for at, value in some.items()] for some in self._kinds])

    @classmethod
    def of_json(cls, text: str) -> "TaskCounters":
        """Reads what `to_json` has written."""
        return cls(*({(hour, name): value for hour, name, value in some} for some in json.loads(text)))

    @property
    def _kinds(self) -> tuple[dict[At, Any], ...]:
        return self.sums, self.maxima, self.notes
