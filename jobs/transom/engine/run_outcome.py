"""The results of a run of a stage."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime

from transom.core.partitions import PartitionKey, PartitionState
from transom.engine.publisher import States
from transom.ledger.run_details import FileRead, outcome_of
from transom.ledger.snapshot import LedgerSnapshot


@dataclass
class Outcome:
    """The results of a run, for `runs` and for logs. Sums over chunks, unless stated otherwise.

    Attributes:
        rows_out: the number of published rows.
        partitions_repaired: the number of partitions computed outside the interval.
        published: the number of published partitions.
        incomplete: the number of published partitions that are incomplete.
        quarantined: the number of quarantined partitions.
        blocked: the number of blocked partitions.
        stale: the stale partitions out of the run's reach, with their states after the last chunk.
        counters: counts of the run's work, by name.
        limits: theoretical maxima of some counters, by name.
        gauges: counts of what exists after the last chunk, by name.
        written: the outcome of each partition, as of `outcome_of`; of several, the last one.
        files: the files that were read.
    """

    rows_out: int = 0
    partitions_repaired: int = 0
    published: int = 0
    incomplete: int = 0
    quarantined: int = 0
    blocked: int = 0
    stale: dict[PartitionKey, PartitionState | None] = field(default_factory=dict)
    counters: dict[str, int] = field(default_factory=dict)
    limits: dict[str, int] = field(default_factory=dict)
    gauges: dict[str, int] = field(default_factory=dict)
    written: dict[PartitionKey, tuple[str, bool, int]] = field(default_factory=dict)
    files: list[FileRead] = field(default_factory=list)

    @classmethod
    def of(cls, states: States, repaired: int, seen: LedgerSnapshot) -> "Outcome":
        """Return the counts of some new states.

        Args:
            states: the new states.
            repaired: as of the class.
            seen: the ledger when the run was planned.
        """
        new = [state for state in states.values() if state is not None]
        published = [state for state in new if state.status == "published"]
        statuses = Counter(state.status for state in new)
        return cls(
            rows_out=sum(state.rows for state in published),
            partitions_repaired=repaired,
            published=len(published),
            incomplete=sum(not state.complete for state in published),
            quarantined=statuses["quarantined"],
            blocked=statuses["blocked"],
            written={key: outcome_of(seen.get(key), state) for key, state in states.items()},
        )

    @property
    def stale_since(self) -> datetime | None:
        """The first stale hour out of reach; None if there is none."""
        return min((partition.hour for partition in self.stale), default=None)

    def add(self, other: "Outcome") -> None:
        """Add the outcome of the next chunk."""
        for name in ("rows_out", "partitions_repaired", "published", "incomplete", "quarantined", "blocked"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.stale = other.stale
        for counts, more in ((self.counters, other.counters), (self.limits, other.limits)):
            for name, count in more.items():
                counts[name] = counts.get(name, 0) + count
        self.gauges = other.gauges or self.gauges
        self.written |= other.written
        self.files += other.files
