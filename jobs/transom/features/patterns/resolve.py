"""A pattern with types, units and defaults, as the stage uses it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa

from transom.core.durations import microseconds
from transom.core.intervals import HOUR_LENGTH, micros
from transom.features.patterns import validate
from transom.features.patterns.algorithm.episodes import Merging
from transom.features.patterns.algorithm.pattern import Element, EventPattern, ForbiddenRecord, PatternStep
from transom.features.patterns.algorithm.widening import Widening
from transom.features.patterns.spec import Pattern, Step
from transom.features.patterns.validate import carried_column, kept_column
from transom.ledger.stage import InputRange
from transom.spec.stream import Stream
from transom.storage.tables import SPARK_TYPES, Table

RECORD = {"event_time": "timestamp", "source_id": "string", "source_line": "bigint"}
"""The columns that identify a record, with their types."""


@dataclass(frozen=True)
class PatternBlock:
    """One pattern of a stream.

    Attributes:
        name: the name of the pattern.
        key: the columns of the key, with their types.
        takes: the condition on the events that are its records, as Spark SQL; None selects all.
        conditions: the conditions of steps, then of `absent`; bit i of a record's mask is the i-th.
        carried: the event columns that its records carry in addition to the key, with their types.
        keep: the event columns whose values a match keeps.
        merging: the parameters that join matches to episodes.
        pattern: the pattern that the built-in detector searches; None with a custom detector.
        detector: the path of the custom detector's function; None without one.
        columns: the event columns that the custom detector gets.
    """

    name: str
    key: Mapping[str, str]
    takes: str | None
    conditions: tuple[str, ...]
    carried: Mapping[str, str]
    keep: tuple[str, ...]
    widening: Widening
    merging: Merging
    pattern: EventPattern | None
    detector: str | None
    columns: tuple[str, ...]

    @property
    def lowest(self) -> int:
        """The lowest long level. Batches of long levels last an hour or more, and are built from the table
        `batches`. Those of lower levels are built from a few hours of events."""
        long = (i for i in range(1, self.widening.levels) if self.widening.length(i) >= HOUR_LENGTH)
        return next(long, self.widening.levels)

    @property
    def long(self) -> range:
        """The long levels."""
        return range(self.lowest, self.widening.levels)

    def record_column(self, column: str) -> str:
        """Return the column of the pattern's records that holds a column of the events."""
        return column if column in self.key else carried_column(column)

    def carried_columns(self) -> dict[str, str]:
        """Return the columns of `batches` that have carried columns, with their types."""
        return {carried_column(name): kind for name, kind in self.carried.items()}

    def kept_columns(self) -> dict[str, str]:
        """Return the columns of `matches` that have kept values, with their types."""
        types = {**self.key, **self.carried}
        return {kept_column(name): f"array<{types[name]}>" for name in self.keep}

    def declared(self) -> dict[str, Mapping[str, str]]:
        """Return the pattern's columns for the placeholders of tables."""
        return {"key": self.key, "carried": self.carried_columns(), "kept": self.kept_columns()}

    def schema(self, table: str) -> pa.Schema:
        """Return the schema of the pattern's rows in a table. It reads descriptions, which tasks lack."""
        return Table.load(table).declare(**self.declared()).block_schema()

    @property
    def record_columns(self) -> tuple[str, ...]:
        """The columns of the pattern's records."""
        return (*self.key, *RECORD, "step_mask", "truncated_after", *self.carried_columns())

    @property
    def reach_of_events(self) -> int:
        """The maximal number of hours that windows of levels below the long ones reach back."""
        lengths = [self.widening.length(level) for level in range(self.lowest)]
        return max(-(-(2 * n - math.gcd(n, HOUR_LENGTH)) // HOUR_LENGTH) for n in lengths)

    def reach_of_batches(self, hour: datetime) -> int:
        """Return the number of hours that long windows reach back which end in an hour; -1 without any."""
        start = micros(hour)
        lengths = [self.widening.length(level) for level in self.long]
        begins = [(start // n - 1) * n for n in lengths if (start + HOUR_LENGTH) // n > start // n]
        return max((-((begin - start) // HOUR_LENGTH) for begin in begins), default=-1)

    @property
    def reads_of_batches(self) -> InputRange:
        """The rows of `batches` from which the long windows of an hour are built."""
        return InputRange("patterns", self.name, "batches", back_of=self.reach_of_batches)


def block_of(stream: Stream, name: str) -> PatternBlock:
    """Resolve a pattern of a stream."""
    spec, fields = stream.blocks(Pattern)[name], stream.event_columns
    where = stream.where_of(spec)
    return PatternBlock(
        name=name,
        key={column: SPARK_TYPES[fields[column].type] for column in spec.key},
        takes=(where.sql if where else None) if spec.counts_all else validate.takes(stream, name),
        conditions=tuple(met.sql for met in validate.conditions(stream, name)),
        carried={column: SPARK_TYPES[kind] for column, kind in validate.carried(stream, name).items()},
        keep=spec.carry,
        widening=spec.widening,
        merging=merging_of(spec),
        pattern=None if spec.detector else _event_pattern(spec),
        detector=spec.detector,
        columns=spec.columns,
    )


def merging_of(spec: Pattern) -> Merging:
    """Return the parameters that join the matches of a pattern to episodes."""
    return Merging(*map(microseconds, (spec.merge_gap, spec.within, spec.top)))


def _event_pattern(spec: Pattern) -> EventPattern:
    bits = {step.id: bit for bit, step in enumerate(spec.all_steps)}

    def resolve(step: Step) -> PatternStep:
        agrees = tuple((a.column, a.step, a.step_column) for a in spec.agreements(step))
        return PatternStep(step.id, bits[step.id], step.times, step.distinct, agrees)

    elements = (
        Element(
            tuple(map(resolve, steps)),
            None if element.within is None else microseconds(element.within),
            (None, None) if element.gap is None else element.gap.bounds,
        )
        for element, steps in zip(spec.steps, spec.elements, strict=True)
    )
    nevers = (ForbiddenRecord(bit, *never.between) for bit, never in enumerate(spec.absent, start=len(bits)))
    return EventPattern(tuple(elements), tuple(nevers), microseconds(spec.within), spec.max_records)
