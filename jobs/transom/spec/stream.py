"""The whole of a stream's file as one frozen model."""

from collections.abc import Mapping
from datetime import timedelta
from functools import cached_property
from typing import Any, Literal

from pydantic import Field, StrictBool, model_validator

from transom.core.durations import Duration
from transom.core.intervals import HOUR, hour_of
from transom.core.path_pattern import Match, PathPattern
from transom.features.aggregates import alerts
from transom.features.aggregates import output_columns as figures
from transom.features.aggregates.spec import Aggregation
from transom.features.fills.spec import Fill
from transom.features.frames.spec import Frame
from transom.features.frequency.spec import Frequency
from transom.features.items import fingerprints as sketch_shapes
from transom.features.patterns import validate as pattern_columns
from transom.features.patterns.spec import Pattern
from transom.features.persistence.spec import Persistence
from transom.formats import record_format as layout
from transom.formats.record_format import FieldType, Layout, Span
from transom.spec import derived_columns as derived
from transom.spec import fingerprints as shapes
from transom.spec import validate as rules
from transom.spec.base import Hour, Model, Name, Text
from transom.spec.checks import Accept, Check, Gate, Stage, resolve
from transom.spec.deduplicate import Unique
from transom.spec.errors import Problems
from transom.spec.event_time import Time
from transom.spec.expressions import Expression, condition
from transom.spec.presets import with_defaults
from transom.spec.source import Column, Source


class Stream(Model):
    """A declared log."""

    name: Name
    """The folder of its tables in the lake, and the id of its DAG."""
    title: Text | None = None
    """For people: the heading of the DAG's page. No table depends on it."""
    description: Text | None = None
    """For people: the DAG's page opens with it."""
    owner: Text | None = None
    """For people: the owner of the DAG."""
    tags: tuple[Text, ...] = ()
    """Tags of the DAG, beside `transom`."""
    preset: Text | None = None
    """A known log, such as apache/combined or zeek/conn: defaults for format, options, columns, time and
    checks."""
    source: Source
    """The files: where they are, what their names say, how they are read."""
    columns: dict[Name, Column] = Field(default_factory=dict)
    """Columns of the events, by name, beside the preset's: where a value stands in a record, or more about
    it; null leaves a column of the preset out. Captures of the path are added."""
    time: Time | None = None
    """How the time of an event is made."""
    rest: Literal["keep", "drop"] = "drop"
    """What becomes of the fields that neither a column nor the time takes: drop, or keep, as JSON text in a
    column rest."""
    unique: Unique | None = None
    """Columns that make a record one; what repeats it is kept in the table duplicates."""
    key: tuple[str, ...] = ()
    """The columns that a figure is for each value of; the default of the blocks."""
    where: Text | None = None
    """A condition on the events, such as status >= 500; the default of the blocks."""
    aggregate: dict[Name, Aggregation] = Field(default_factory=dict)
    """Blocks of figures over sliding windows."""
    patterns: dict[Name, Pattern] = Field(default_factory=dict)
    """Episodes of several steps, minutes or days apart, that are looked for in the events of each key."""
    frames: dict[Name, Frame] = Field(default_factory=dict)
    """Stretches of time that the data of each key delimits."""
    fills: dict[Name, Fill] = Field(default_factory=dict)
    """What lies between the ends of frames, in the log or in its past."""
    persistence: dict[Name, Persistence] = Field(default_factory=dict)
    """Items that are there all the time, however rarely each time."""
    frequency: dict[Name, Frequency] = Field(default_factory=dict)
    """How often items are seen in the last hours."""
    checks: dict[Name, Check] = Field(default_factory=dict)
    """Own checks, and changes of built-in ones."""
    accept: tuple[Accept, ...] = ()
    """Failed checks that somebody answers for."""
    heal: Duration = timedelta(days=2)
    """How far around its interval a run mends stale hours; whole hours."""
    retention: Duration | None = None
    """How long private state is kept before the last hour that was asked for; whole hours, none is
    for ever. State that an older hour needs is made again from the events. State that
    other stages read is kept for ever."""
    start: Hour | None = None
    """The first hour, UTC, that the DAG may schedule."""
    until: Hour | None = None
    """The end of the hours, exclusive, UTC, that the DAG may schedule."""
    schedule: StrictBool = True
    """Whether the DAG runs every hour by itself; false: only by hand."""
    catchup: StrictBool = False
    """Whether the DAG makes up for the hours since `start`."""
    submit: Literal["each", "together"] = "each"
    """How the DAG submits the stages: each as an application of its own, or together in one, which is quicker
    where hours are small. The gates are the same."""
    chunk: Duration = timedelta(days=7)
    """The length of the pieces in which a long interval is done; whole hours."""

    @model_validator(mode="before")
    @classmethod
    def _with_defaults(cls, data: Any) -> Any:
        return with_defaults(data) if isinstance(data, Mapping) else data

    @model_validator(mode="after")
    def _consistent(self) -> "Stream":
        problems = rules.problems(self)
        if problems:
            raise Problems(problems)
        return self

    @property
    def path_pattern(self) -> PathPattern:
        """Which files are the stream's, and what their names say."""
        return self.source.pattern

    @property
    def captures(self) -> tuple[str, ...]:
        """The names of the path's captures, in order of appearance."""
        return self.path_pattern.captures

    @cached_property
    def event_columns(self) -> dict[str, layout.Field]:
        """The columns of the events in their order: the declared ones, the `rest` where it is kept, then the
        captures, as strings."""
        read = self.read_columns
        own = {name: read.get(name) or derived.field(self, name) for name in self.columns}
        return own | {name: field for name, field in read.items() if name not in own}

    @cached_property
    def read_columns(self) -> dict[str, layout.Field]:
        """The same, without those that are derived from the others."""
        declared = {name: column.field(name) for name, column in self.columns.items() if column.is_ is None}
        if self.rest == "keep":
            declared |= {layout.REST: layout.Field(layout.REST, (layout.REST,))}
        return declared | {name: layout.Field(name, (name,)) for name in self.captures}

    @cached_property
    def derived(self) -> dict[str, Expression]:
        """What the derived columns are, compiled."""
        return {
            name: derived.expression(self, name)
            for name, column in self.columns.items()
            if column.is_ is not None
        }

    @cached_property
    def event_types(self) -> dict[str, FieldType]:
        """The types that conditions on events see: the columns, and `event_time`."""
        types: dict[str, FieldType] = {name: field.type for name, field in self.event_columns.items()}
        return types | {"event_time": "timestamp"}

    def report_types(self, block: str) -> dict[str, FieldType]:
        """Return the types that checks of a block's reports see.

        They are the key, `level`, `window_start`, `window_end`, `count`, and the figures of each measure.
        """
        aggregation = self.aggregate[block]
        types: dict[str, FieldType] = {
            "level": "integer",
            "window_start": "timestamp",
            "window_end": "timestamp",
            "count": "integer",
        }
        types |= {name: self.event_types[name] for name in aggregation.key}
        for columns in figures.columns_of(self, block).values():
            types |= columns
        return types

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The stages that the stream has, in the order in which they run."""
        blocks: dict[Stage, bool] = {
            "widen": bool(self.patterns),
            "aggregate": bool(self.aggregate),
            "frame": bool(self.frames),
            "fill": bool(self.fills),
            "sketch": bool(self.persistence or self.frequency),
        }
        return ("ingest", *(stage for stage, there in blocks.items() if there))

    def before(self, stage: str) -> Stage | None:
        """Return the stage whose tables one reads, and whose gate has to pass first; None of the first."""
        if stage == "ingest":
            return None
        if stage == "fill":
            return "frame"
        return "aggregate" if stage == "frame" and self.aggregate else "ingest"

    @cached_property
    def gates(self) -> tuple[Gate, ...]:
        """Every check of every stage, with defaults and changes applied."""
        return resolve(self.checks)

    @property
    def own_key(self) -> tuple[str, ...]:
        """Return the columns of the stream's key that it needs itself, beside its blocks: for `ties`, or
        where no block says what the key is for."""
        ties = self.time is not None and self.time.every is not None and self.time.ties != "keep"
        blocks = self.aggregate or self.patterns or self.frames or self.persistence or self.frequency
        return self.key if ties or not blocks else ()

    def condition(self, block: str) -> Expression | None:
        """Return the compiled `where` of a block, None where it takes every event."""
        where = self.aggregate[block].where
        return None if where is None else condition(where, self.event_types)

    def alert_conditions(self, block: str) -> dict[str, Expression]:
        """Return the compiled conditions of the alerts of a block, by name."""
        return alerts.conditions(self, block)

    def pattern_where(self, pattern: str) -> Expression | None:
        """Return the compiled `where` of a pattern, None where it sees every event."""
        where = self.patterns[pattern].where
        return None if where is None else condition(where, self.event_types)

    def pattern_conditions(self, pattern: str) -> list[Expression]:
        """Return the compiled condition of each step of a pattern in the order of the file, then of each
        never; none where it has a detector."""
        return pattern_columns.conditions(self, pattern)

    def pattern_takes(self, pattern: str) -> str | None:
        """Return, as Spark SQL, which events a step or a never of a pattern may take, or what lies before its
        detector; None is any."""
        return pattern_columns.takes(self, pattern)

    def pattern_columns(self, pattern: str) -> dict[str, FieldType]:
        """Return the columns beside the key's that records of a pattern carry, sorted, with their types.

        They are those that agreements, `distinct`, `keep` and a detector read.
        """
        return pattern_columns.carried(self, pattern)

    def layout(self) -> Layout:
        """Return all that a parser is told."""
        assert self.source.format is not None  # refused by `rules` before
        assert self.time is not None
        fields = tuple(self.read_columns[name] for name in self.columns if name in self.read_columns)
        time = self.time.event_time(self.columns)
        return Layout(self.source.format, fields, time, dict(self.source.options), self.rest == "keep")

    def span(self, match: Match) -> Span | None:
        """Return what a file of that name may hold; None, anything, where the name has no time.

        See `Holds`: the stretch that the name declares, or the hours around it where it is shorter than
        an hour, and what `holds` adds at both ends.
        """
        if match.start is None or match.end is None:
            return None
        start, end = match.start, match.end
        if match.unit in ("minute", "second"):
            start, end = hour_of(start), max(hour_of(start) + HOUR, end)
        return Span(start - self.source.holds.before, end + self.source.holds.after)

    def ingest_shape(self) -> str:
        """Return the canonical JSON of what shapes the tables of ingest."""
        return shapes.ingest(self)

    def granules_shape(self, block: str) -> str:
        """Return the canonical JSON of what shapes the granules of a block of `aggregate`."""
        return shapes.granules(self, block)

    def reports_shape(self, block: str) -> str:
        """Return the canonical JSON of what shapes the reports of a block, granules given."""
        return shapes.reports(self, block)

    def item_granules_shape(self, block: str) -> str:
        """Return the canonical JSON of what shapes the granules of a block's items."""
        return shapes.item_granules(self, block)

    def recurring_shape(self, block: str) -> str:
        """Return the canonical JSON of what shapes the recurring items of a block, their granules given."""
        return shapes.recurring(self, block)

    def alerts_shape(self, block: str) -> str:
        """Return the canonical JSON of what shapes the alerts of a block, reports given."""
        return shapes.alerts(self, block)

    def batches_shape(self, pattern: str) -> str:
        """Return the canonical JSON of what shapes the batches of a pattern."""
        return shapes.batches(self, pattern)

    def matches_shape(self, pattern: str) -> str:
        """Return the canonical JSON of what shapes the matches of a pattern."""
        return shapes.matches(self, pattern)

    def open_frames_shape(self, frame: str) -> str:
        """Return the canonical JSON of what shapes what is left and told of a kind of frame."""
        return shapes.open_frames(self, frame)

    def frames_shape(self, frame: str) -> str:
        """Return the canonical JSON of what shapes how it is told."""
        return shapes.frames(self, frame)

    def fills_shape(self, fill: str) -> str:
        """Return the canonical JSON of what shapes a fill, its frames given."""
        return shapes.fills(self, fill)

    def tuples_shape(self, block: str) -> str:
        """Return the canonical JSON of what shapes what is remembered of a block's items."""
        return sketch_shapes.tuples(self, block)

    def persistent_items_shape(self, block: str) -> str:
        """Return the canonical JSON of what shapes what is told of them."""
        return sketch_shapes.persistent_items(self, block)

    def tick_matrices_shape(self, block: str) -> str:
        """Return the canonical JSON of what shapes the matrices of a block's ticks."""
        return sketch_shapes.tick_matrices(self, block)

    def cells_shape(self, block: str) -> str:
        """Return the canonical JSON of what shapes what its cells hold."""
        return sketch_shapes.cells(self, block)

    def frequencies_shape(self, block: str) -> str:
        """Return the canonical JSON of what shapes what is told of its items."""
        return sketch_shapes.frequencies(self, block)

    def episodes_shape(self, pattern: str) -> str:
        """Return the canonical JSON of what shapes the episodes of a pattern, matches given."""
        return shapes.episodes(self, pattern)
