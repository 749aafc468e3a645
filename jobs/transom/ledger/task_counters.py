"""Counters of tasks, by hour: sums, maxima, and the first notes in alphabetical order.

So the total does not depend on how the rows are divided among tasks.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

NOTES = 20
"""The maximum number of notes for an hour and a name."""
HourName = tuple[int, str]
"""The number of an hour since the epoch, and a name."""


@dataclass
class TaskCounters:
    """Counters of one block.

    Attributes:
        sums: numbers whose sum counts.
        maxima: numbers whose maximum counts.
        notes: texts, such as descriptions of failing rows.
    """

    sums: dict[HourName, int] = field(default_factory=dict)
    maxima: dict[HourName, int] = field(default_factory=dict)
    notes: dict[HourName, list[str]] = field(default_factory=dict)

    def add(self, name: str, hours: Iterable[int], amounts: Iterable[int]) -> None:
        """Add an amount to each of some hours, which may repeat."""
        for hour, amount in zip(hours, amounts, strict=True):
            self.sums[int(hour), name] = self.sums.get((int(hour), name), 0) + int(amount)

    def set_max(self, name: str, hours: Iterable[int], amounts: Iterable[int]) -> None:
        """Raise the maximum of each of some hours, which may repeat."""
        for hour, amount in zip(hours, amounts, strict=True):
            self.maxima[int(hour), name] = max(self.maxima.get((int(hour), name), 0), int(amount))

    def note(self, name: str, hour: int, text: str) -> None:
        """Add a note."""
        self.notes[hour, name] = sorted({*self.notes.get((hour, name), ()), text})[:NOTES]

    def merge(self, other: "TaskCounters") -> None:
        """Add the counters of another task."""
        for (hour, name), amount in other.sums.items():
            self.add(name, [hour], [amount])
        for (hour, name), amount in other.maxima.items():
            self.set_max(name, [hour], [amount])
        for (hour, name), texts in other.notes.items():
            for text in texts:
                self.note(name, hour, text)

    def figures(self) -> Iterator[tuple[int, str, int]]:
        """Yield the hour, name and value of every sum and maximum."""
        for (hour, name), amount in (*self.sums.items(), *self.maxima.items()):
            yield hour, name, amount

    def to_json(self) -> str:
        """Return the counters as JSON text."""
        kinds = (self.sums, self.maxima, self.notes)
        return json.dumps([[[*key, value] for key, value in kind.items()] for kind in kinds])

    @classmethod
    def of_json(cls, text: str) -> "TaskCounters":
        """Return the counters from a text of `to_json`."""
        return cls(*({(hour, name): value for hour, name, value in kind} for kind in json.loads(text)))
