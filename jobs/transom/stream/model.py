"""The whole of a stream's file as one frozen model."""

from collections.abc import Mapping
from datetime import timedelta
from functools import cached_property
from typing import Any

from pydantic import Field, StrictBool, model_validator

from transom.expressions import Expression, condition
from transom.formats import layout
from transom.formats.layout import FieldType, Layout, Span
from transom.intervals import HOUR, hour_of
from transom.paths import Match, PathPattern
from transom.stream import figures, rules, shapes
from transom.stream.base import Hour, Model, Name, Text
from transom.stream.checks import Accept, Check, Gate, Stage, resolve
from transom.stream.errors import Problems
from transom.stream.presets import with_defaults
from transom.stream.source import Column, Source, Time
from transom.stream.windows import Aggregation
from transom.units import Duration


class Stream(Model):
    """A declared log.

    Attributes:
        name: becomes the folder of its tables and the id of its DAG.
        title, description, owner, tags: for people; they shape no table.
        preset: gives defaults for format, options, columns, time and checks.
        source: the files.
        columns: those of the events, by name, the preset's first; captures of the path are added.
        time: how the time of an event is made.
        key: the default of the blocks' keys.
        where: the default of the blocks' conditions.
        aggregate: blocks of figures over sliding windows.
        checks: own checks, and changes of built-in ones.
        accept: failed checks that somebody answers for.
        heal: how far around its interval a run mends stale hours; whole hours.
        retention: how long private state is kept before the last hour that was asked for; whole hours,
            none is for ever. State that an older hour needs is made again from the events.
        start, until: the hours `[start, until)` that the DAG schedules.
        schedule: false runs the stream only by hand.
        catchup: whether the DAG makes up for the hours since `start`.
        chunk: the length of the pieces in which a long interval is done; whole hours.
    """

    name: Name
    title: Text | None = None
    description: Text | None = None
    owner: Text | None = None
    tags: tuple[Text, ...] = ()
    preset: Text | None = None
    source: Source
    columns: dict[Name, Column] = Field(default_factory=dict)
    time: Time | None = None
    key: tuple[str, ...] = ()
    where: Text | None = None
    aggregate: dict[Name, Aggregation] = Field(default_factory=dict)
    checks: dict[Name, Check] = Field(default_factory=dict)
    accept: tuple[Accept, ...] = ()
    heal: Duration = timedelta(days=2)
    retention: Duration | None = None
    start: Hour | None = None
    until: Hour | None = None
    schedule: StrictBool = True
    catchup: StrictBool = False
    chunk: Duration = timedelta(days=7)

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
        """The columns of the events in their order: the declared ones, then the captures, as strings."""
        declared = {name: column.field(name) for name, column in self.columns.items()}
        return declared | {name: layout.Field(name, (name,)) for name in self.captures}

    @cached_property
    def event_types(self) -> dict[str, FieldType]:
        """The types that conditions on events see: the columns, and `event_time`."""
        types: dict[str, FieldType] = {name: field.type for name, field in self.event_columns.items()}
        return types | {"event_time": "timestamp"}

    def report_types(self, block: str) -> dict[str, FieldType]:
        """Return the types that checks of a block's reports see.

        They are the key, `level`, `window_start`, `window_end`, `count`, and each measure by its name.
        """
        aggregation = self.aggregate[block]
        types: dict[str, FieldType] = {
            "level": "integer",
            "window_start": "timestamp",
            "window_end": "timestamp",
            "count": "integer",
        }
        types |= {name: self.event_types[name] for name in aggregation.key}
        return types | {name: columns[name] for name, columns in figures.columns_of(self, block).items()}

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The stages that the stream has, in the order in which they run."""
        return ("ingest", "aggregate") if self.aggregate else ("ingest",)

    @cached_property
    def gates(self) -> tuple[Gate, ...]:
        """Every check of every stage, with defaults and changes applied."""
        return resolve(self.checks)

    def condition(self, block: str) -> Expression | None:
        """Return the compiled `where` of a block, None where it takes every event."""
        where = self.aggregate[block].where
        return None if where is None else condition(where, self.event_types)

    def layout(self) -> Layout:
        """Return all that a parser is told."""
        assert self.source.format is not None  # refused by `rules` before
        assert self.time is not None
        fields = tuple(column.field(name) for name, column in self.columns.items())
        return Layout(
            self.source.format, fields, self.time.event_time(self.columns), dict(self.source.options)
        )

    def span(self, match: Match) -> Span | None:
        """Return what a file of that name may hold; None, anything, where the name has no time.

        See `Holds`: the stretch that the name declares, or the hours around it where it is shorter than
        an hour, and what `holds` adds at both ends.
        """
        if match.start is None or match.end is None:
            return None
        start, end = match.start, match.end
        if match.unit in ("minute", "second"):
            start, end = hour_of(start), hour_of(start) + HOUR
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
