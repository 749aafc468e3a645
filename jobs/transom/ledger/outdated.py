"""What a run computes: the hours whose recorded inputs differ from their inputs now, as in a build system."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from itertools import repeat

import numpy as np

from transom.core.exact_sums import Int64s
from transom.core.intervals import HOUR, UNKNOWN_HOUR, number_of
from transom.core.partitions import BITS, PartitionKey, TableKey, input_hashes_text
from transom.ledger.input_hashes import (
    checks_fingerprint,
    completeness,
    expected_inputs,
    is_stale,
    named_inputs,
    partitions_read,
    slice_hours,
)
from transom.ledger.snapshot import LedgerSnapshot
from transom.ledger.stage import BlockOutput, InputRange, Stage
from transom.ledger.waivers import Waiver


@dataclass(frozen=True)
class BlockTable:
    """What decides whether hours of a block's table are outdated.

    Attributes:
        version: of the code of the stage.
        back: how many earlier hours of the table itself an hour reads.
        state: its inputs among the earlier tables of its stage.
        checks: the hash of the table's checks.
        completeness: by hour, the hash of what decides whether it is complete: of hours with a waiver, and of
            all others at `UNKNOWN_HOUR`.
    """

    version: int
    part: BlockOutput
    back: int
    state: tuple[InputRange, ...]
    checks: str
    completeness: Mapping[datetime, str]


def _block_tables(stage: Stage, waivers: Sequence[Waiver]) -> Iterator[tuple[TableKey, BlockTable]]:
    hours = {UNKNOWN_HOUR, *(waiver.hour for waiver in waivers)}
    earlier: set[TableKey] = set()
    for step in stage.steps:
        checks = checks_fingerprint(step.checks, waivers)
        complete = {hour: completeness(stage.name, step.checks, waivers, hour) for hour in hours}
        for block, part in step.parts.items():
            state = tuple(reads for reads in part.reads if reads.series in earlier)
            table = BlockTable(stage.version, part, step.back(block), state, checks, complete)
            yield (stage.name, block, step.table.name), table
        earlier.update((stage.name, block, step.table.name) for block in step.parts)


class OutdatedHours:
    """The hours that runs of some stages have to compute, by one snapshot of the ledger.

    Args:
        stages: in the order in which they run.
        waivers: failed checks that a person lets pass.
    """

    def __init__(self, snapshot: LedgerSnapshot, stages: Iterable[Stage], waivers: Sequence[Waiver]) -> None:
        self.snapshot = snapshot
        stages = list(stages)
        self._stages = {stage.name for stage in stages}
        self._tables = {
            table: definition for stage in stages for table, definition in _block_tables(stage, waivers)
        }
        self._outdated: dict[TableKey, list[datetime]] = {}

    @cached_property
    def required_hours(self) -> list[datetime]:
        """The hours that every table has to have, in order."""
        return list(self.snapshot.required_hours)

    @cached_property
    def _hour_numbers(self) -> Int64s:
        """The numbers of the required hours since the epoch."""
        return np.array(list(map(number_of, self.required_hours)), dtype=np.int64)

    def inputs(self, partition: PartitionKey) -> dict[str, str]:
        """Return the inputs of a partition now: a hash of each table, and of what shapes the rows."""
        definition = self._tables[partition.series]
        complete = definition.completeness.get(partition.hour, definition.completeness[UNKNOWN_HOUR])
        return expected_inputs(
            definition.part, definition.version, partition.hour, self.snapshot, complete, partition.table
        )

    def is_outdated(self, partition: PartitionKey) -> bool:
        """Return whether a run of its stage has to compute a partition of a required hour."""
        hours = self.outdated_hours(*partition.series)
        place = bisect_left(hours, partition.hour)
        return place < len(hours) and hours[place] == partition.hour

    def outdated_hours(self, stage: str, block: str, table: str) -> Sequence[datetime]:
        """Return the required hours of a block's table that a run of its stage has to compute, in order.

        They differ from their inputs, or read outdated state of their stage, or outdated earlier hours of
        their own table.
        """
        key = (stage, block, table)
        if key not in self._outdated:
            definition, differing, hours = self._tables[key], self._differing_hours(key), list[datetime]()
            state = [(reads, self.outdated_hours(*reads.series)) for reads in definition.state]
            for hour in self.required_hours if differing or any(read for _, read in state) else ():
                if (
                    (hours and hour - definition.back * HOUR <= hours[-1])
                    or hour in differing
                    or any(slice_hours(read, hour, reads) for reads, read in state)
                ):
                    hours.append(hour)
            self._outdated[key] = hours
        return self._outdated[key]

    def _differing_hours(self, table: TableKey) -> Set[datetime]:
        """The required hours of a block's table that do not exist or differ from their inputs."""
        definition, recorded = self._tables[table], self.snapshot.recorded(*table)
        numbers, texts = self._hour_numbers.tolist(), self._expected_texts(table)
        # The texts are those of hours without a waiver.
        return {
            hour
            for hour, number, expected in zip(self.required_hours, numbers, texts, strict=True)
            if (hour in definition.completeness or recorded.get(number) != expected)
            and self._differs(PartitionKey(*table, hour))
        }

    def _differs(self, partition: PartitionKey) -> bool:
        state, checks = self.snapshot.get(partition), self._tables[partition.series].checks
        return state is None or is_stale(state, self.inputs(partition), checks)

    def _expected_texts(self, table: TableKey) -> list[str]:
        """The inputs of every required hour as the ledger has them for hours without a waiver.

        For years of hours this takes a fraction of the time of comparing each hour.
        """
        definition, numbers = self._tables[table], self._hour_numbers
        hashes: dict[str, list[int]] = {}
        for reads in definition.part.reads:
            own = reads.table == table[2]
            back: int | Int64s = reads.back
            if reads.back_of is not None:
                back = np.array(list(map(reads.back_of, self.required_hours)), dtype=np.int64)
            of_reads = self.snapshot.range_hashes(
                reads.series, numbers - back, numbers + reads.forward, own, reads.requested
            )
            sums = hashes.get(reads.table, repeat(0))
            hashes[reads.table] = [(a + b) % 2**BITS for a, b in zip(sums, of_reads, strict=False)]
        complete = definition.completeness[UNKNOWN_HOUR]
        text = input_hashes_text(
            named_inputs(dict.fromkeys(hashes, "%032x"), definition.part, definition.version, complete)
        )
        ordered = (hashes[name] for name in sorted(hashes))
        return [text % tuple(row) for _, *row in zip(self.required_hours, *ordered, strict=True)]

    def state_to_compute(self, partition: PartitionKey) -> list[PartitionKey]:
        """Return the state in earlier tables of its stage that has to be computed before a partition."""
        state = self._tables[partition.series].state
        read = (key for reads in state for key in partitions_read(reads, partition.hour))
        return [*self.outdated_state(partition), *filter(self.is_expired, read)]

    def is_expired(self, partition: PartitionKey) -> bool:
        """Return whether the rows of a partition are deleted by retention."""
        state = self.snapshot.get(partition)
        return state is not None and state.status == "expired"

    def outdated_state(self, partition: PartitionKey) -> list[PartitionKey]:
        """Return the outdated state in earlier tables of its stage that a partition is computed from."""
        definition = self._tables.get(partition.series)
        return [
            PartitionKey(*reads.series, hour)
            for reads in (definition.state if definition else ())
            for hour in slice_hours(self.outdated_hours(*reads.series), partition.hour, reads)
        ]

    def outdated_predecessors(self, partition: PartitionKey) -> list[PartitionKey]:
        """Return the outdated earlier hours of its own table that a partition is computed from."""
        definition = self._tables.get(partition.series)
        if definition is None or not definition.back:
            return []
        own = InputRange(*partition.series, definition.back, -1)
        hours = slice_hours(self.outdated_hours(*partition.series), partition.hour, own)
        return [replace(partition, hour=hour) for hour in hours]
