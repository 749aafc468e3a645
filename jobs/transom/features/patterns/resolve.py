"""The patterns of a stream, resolved against its columns: what of the events is looked at, how far back."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from transom.core.durations import microseconds
from transom.core.intervals import HOUR_LENGTH, micros
from transom.features.patterns import validate as pattern_columns
from transom.features.patterns.algorithm.pattern import Element, EventPattern, ForbiddenRecord, PatternStep
from transom.features.patterns.algorithm.reference import Widening
from transom.features.patterns.spec import Pattern as Declared
from transom.features.patterns.validate import carried_column, kept_column
from transom.ledger.stage import InputRange
from transom.spec.stream import Stream
from transom.storage.tables import SPARK_TYPES

RECORD = {"event_time": "timestamp", "source_id": "string", "source_line": "bigint"}
"""The columns that say which record it is."""


@dataclass(frozen=True)
class PatternBlock:
    """One pattern of a stream, with everything that its columns are derived from.

    Attributes:
        takes: which events are of the pattern's stream, as Spark SQL; None is all.
        conditions: of the steps and then of `absent`; which a record meets are the bits of its mask.
        carried: columns of the events that its records carry beside the key.
        keep: those that a match keeps.
        pattern: None where there is a detector.
        detector: the path of its function.
        columns: of the events, that a record shown to it has.
    """

    name: str
    key: Mapping[str, str]
    takes: str | None
    conditions: tuple[str, ...]
    carried: Mapping[str, str]
    keep: tuple[str, ...]
    widening: Widening
    pattern: EventPattern | None
    detector: str | None
    columns: tuple[str, ...]

    @property
    def lowest(self) -> int:
        """The lowest of the long levels: their batches are no shorter than an hour and are made of what is
        stored. Those below are made of a few hours of events."""
        long = (i for i in range(1, self.widening.levels) if self.widening.length(i) >= HOUR_LENGTH)
        return next(long, self.widening.levels)

    @property
    def long(self) -> range:
        """The long levels."""
        return range(self.lowest, self.widening.levels)

    def record_column(self, column: str) -> str:
        """What holds a column of the events in the rows of the pattern's records."""
        return column if column in self.key else carried_column(column)

    def carried_columns(self) -> dict[str, str]:
        """The columns of `batches` that the records of this pattern carry."""
        return {carried_column(name): kind for name, kind in self.carried.items()}

    def kept_columns(self) -> dict[str, str]:
        """The columns of `matches` that hold what a match keeps."""
        kinds = {**self.key, **self.carried}
        return {kept_column(name): f"array<{kinds[name]}>" for name in self.keep}

    @property
    def record_columns(self) -> tuple[str, ...]:
        """The columns of a row of a record, in a batch or not."""
        return (*self.key, *RECORD, "step_mask", "truncated_after", *self.carried_columns())

    @property
    def reach_of_events(self) -> int:
        """How many hours before the one that they end in the windows of the lower levels reach at most."""
        lengths = [self.widening.length(level) for level in range(self.lowest)]
        return max(-(-(2 * n - math.gcd(n, HOUR_LENGTH)) // HOUR_LENGTH) for n in lengths)

    def reach_of_batches(self, hour: datetime) -> int:
        """How many hours back those of the long levels reach that end in an hour; -1 where none does."""
        start = micros(hour)
        lengths = [self.widening.length(level) for level in self.long]
        begins = [(start // n - 1) * n for n in lengths if (start + HOUR_LENGTH) // n > start // n]
        return max((-((begin - start) // HOUR_LENGTH) for begin in begins), default=-1)

    @property
    def reads_of_batches(self) -> InputRange:
        """What an hour reads of the stored batches, of which its long windows are made."""
        return InputRange("patterns", self.name, "batches", back_of=self.reach_of_batches)


def block_of(stream: Stream, name: str) -> PatternBlock:
    """A pattern of the stream file, resolved against its columns."""
    declared, fields = stream.blocks(Declared)[name], stream.event_columns
    widening = Widening(microseconds(declared.batch), microseconds(declared.within), declared.max_records)
    where = stream.where_of(stream.blocks(Declared)[name])
    return PatternBlock(
        name,
        {column: SPARK_TYPES[fields[column].type] for column in declared.key},
        (where.sql if where else None) if declared.counts_all else pattern_columns.takes(stream, name),
        tuple(met.sql for met in pattern_columns.conditions(stream, name)),
        {column: SPARK_TYPES[kind] for column, kind in pattern_columns.carried(stream, name).items()},
        declared.carry,
        widening,
        None if declared.detector else _pattern(declared, widening),
        declared.detector,
        declared.columns,
    )


def _pattern(declared: Declared, widening: Widening) -> EventPattern:
    bits = {step.id: bit for bit, step in enumerate(declared.all_steps)}
    elements = []
    for said, steps in zip(declared.steps, declared.elements, strict=True):
        gap = said.gap
        elements.append(
            Element(
                tuple(
                    PatternStep(
                        step.id,
                        bits[step.id],
                        step.times,
                        step.distinct,
                        None,
                        tuple((a.column, a.step, a.step_column) for a in declared.agreements(step)),
                    )
                    for step in steps
                ),
                None if said.within is None else microseconds(said.within),
                (None, None)
                if gap is None
                else (microseconds(gap.min), None if gap.max is None else microseconds(gap.max)),
            )
        )
    nevers = (
        ForbiddenRecord(bit, *never.between) for bit, never in enumerate(declared.absent, start=len(bits))
    )
    return EventPattern(tuple(elements), tuple(nevers), widening.max_length, widening.max_records)
