"""The fields of a stream file that no feature declares, validated one by one."""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from functools import cached_property
from typing import Any, ClassVar, Literal, TypeVar, cast

from pydantic import Field, StrictBool

from transom.core.durations import Duration
from transom.core.intervals import HOUR, hour_of
from transom.core.path_pattern import Match
from transom.formats import record_format as layout
from transom.formats.record_format import FieldType, RecordFormat, Span
from transom.spec import derived_columns as derived
from transom.spec.base import Hour, Model, Name, NonEmptyStr
from transom.spec.block_columns import BlockColumns
from transom.spec.checks import OF_INGEST, BuiltIn, CheckSpec, ResolvedCheck, WaiverSpec, resolve
from transom.spec.deduplicate import Unique
from transom.spec.endings import SuppressSpec
from transom.spec.event_time import Time
from transom.spec.expressions import Expression, condition
from transom.spec.feature import Feature
from transom.spec.notify import RecipientSpec, SilenceSpec
from transom.spec.source import Column, Source

B = TypeVar("B", bound=Model)


class StreamFields(Model):
    """The fields of a stream file, except the blocks of features, and properties that depend on them."""

    features: ClassVar[tuple[Feature[Any], ...]] = ()

    name: Name
    """The name of the stream: the folder of its tables in the lake, and the id of its DAG."""
    title: NonEmptyStr | None = None
    """The heading of the DAG's page."""
    description: NonEmptyStr | None = None
    """The text at the top of the DAG's page."""
    owner: NonEmptyStr | None = None
    """The owner of the DAG."""
    tags: tuple[NonEmptyStr, ...] = ()
    """Tags of the DAG, in addition to `transom`."""
    preset: NonEmptyStr | None = None
    """A known kind of log, such as apache/combined or zeek/conn. It sets defaults for format, options,
    columns, time, unique and checks."""
    source: Source
    """The files of the stream: their paths, their periods and their format."""
    columns: dict[Name, Column] = Field(default_factory=dict)
    """Columns of the events by name, in addition to those of the preset: the path of the value in a record,
    or a mapping. null removes a column of the preset. The captures of the path are also columns."""
    time: Time | None = None
    """The source of `event_time`. Required unless a preset sets it."""
    extra_fields: Literal["keep", "drop"] = "drop"
    """What happens to fields that no column and no time uses: drop, or keep (as JSON in the column rest)."""
    unique: Unique | None = None
    """Columns that identify a record. Duplicates go to the table duplicates."""
    key: tuple[str, ...] = ()
    """The columns for whose values a block computes separately; the default of the blocks."""
    where: NonEmptyStr | None = None
    """A condition on the events, such as status >= 500; the default of the blocks."""
    checks: dict[Name, CheckSpec] = Field(default_factory=dict)
    """Own checks and changes of built-in checks, by name."""
    waivers: tuple[WaiverSpec, ...] = ()
    """Failed checks that may pass."""
    suppress: tuple[SuppressSpec, ...] = ()
    """Findings that the table `findings` omits."""
    notify: dict[Name, RecipientSpec] = Field(default_factory=dict)
    """Recipients of messages about findings, by name."""
    silence: tuple[SilenceSpec, ...] = ()
    """Findings that are not sent to the recipients until a day."""
    repair_window: Duration = timedelta(days=2)
    """How far around its interval a run computes stale hours again; whole hours."""
    retention: Duration | None = None
    """The age, from the last requested hour, at which private state expires; whole hours. Default: never.
    State that an older hour needs is computed again from the events. State that other stages read remains."""
    start: Hour | None = None
    """The first hour, UTC, that the DAG may schedule."""
    until: Hour | None = None
    """The end, exclusive, UTC, of the hours that the DAG may schedule."""
    schedule: StrictBool = True
    """Whether the DAG runs every hour by itself. false: users trigger it."""
    catchup: StrictBool = False
    """Whether the DAG also runs the missed hours since `start`."""
    submit: Literal["per_stage", "single"] = "per_stage"
    """How the DAG submits the stages. per_stage: one Spark application for each. single: one for all, which
    is faster if hours are small. The gates are the same."""
    chunk: Duration = timedelta(days=7)
    """The length of the parts into which a run divides a long interval; whole hours."""

    @cached_property
    def event_columns(self) -> dict[str, layout.Field]:
        """The columns of the events in order: declared ones, `rest`, captures as strings."""
        read = self.read_columns
        own = {name: read.get(name) or derived.field(self.columns, read, name) for name in self.columns}
        return own | read

    @cached_property
    def read_columns(self) -> dict[str, layout.Field]:
        """The columns of the events that are not derived from others."""
        declared = {name: column.field(name) for name, column in self.columns.items() if column.is_ is None}
        if self.extra_fields == "keep":
            declared |= {layout.REST: layout.Field(layout.REST, (layout.REST,))}
        return declared | {name: layout.Field(name, (name,)) for name in self.source.pattern.captures}

    @cached_property
    def derived(self) -> dict[str, Expression]:
        """The compiled expressions of the derived columns."""
        names = [name for name, column in self.columns.items() if column.is_ is not None]
        return {name: derived.expression(self.columns, self.read_columns, name) for name in names}

    @cached_property
    def event_types(self) -> dict[str, FieldType]:
        """The types of the columns that conditions on events may read, with `event_time`."""
        types: dict[str, FieldType] = {name: field.type for name, field in self.event_columns.items()}
        return types | {"event_time": "timestamp"}

    def blocks(self, block_type: type[B]) -> Mapping[str, B]:
        """Return the blocks of a type by name; none if no feature of the stream has such blocks."""
        name = next((feature.name for feature in self.features if feature.block is block_type), None)
        return {} if name is None else cast(Mapping[str, B], getattr(self, name))

    def fingerprint(self, table: str, block: str) -> str:
        """Return the part of a block that determines its rows of a table, as canonical JSON."""
        feature = next(feature for feature in self.features if table in feature.fingerprints)
        return feature.fingerprints[table](self, block)

    @property
    def stages(self) -> tuple[str, ...]:
        """The stages that the stream has, in the order in which they run."""
        return ("ingest", *(feature.name for feature in self.features if self.blocks(feature.block)))

    def upstream_stage(self, stage: str) -> str | None:
        """Return the stage that must pass its gate before this one; None for the first stage."""
        return None if stage == "ingest" else self.feature(stage).upstream(self)

    def feature(self, name: str) -> Feature[Any]:
        """Return a feature by name; raise a KeyError if there is none."""
        return {feature.name: feature for feature in self.features}[name]

    @cached_property
    def gates(self) -> tuple[ResolvedCheck, ...]:
        """Every check of every stage, with defaults and changes applied."""
        return resolve(self.checks, self.built_in)

    @property
    def key_without_block(self) -> tuple[str, ...]:
        """The columns of the key that are needed if there is no block, and for `on_duplicate_time`."""
        time = self.time
        ties = time is not None and time.interval is not None and time.on_duplicate_time != "keep"
        return self.key if ties or self.stages == ("ingest",) else ()

    @cached_property
    def columns_read(self) -> tuple[BlockColumns, ...]:
        """The event columns that the blocks of all features need; blocks that read no events have none."""
        return tuple(block for feature in self.features for block in feature.columns_read(self))

    @cached_property
    def built_in(self) -> dict[str, BuiltIn]:
        """The built-in checks by name."""
        return built_in_of(self.features)

    def where_of(self, block: Any) -> Expression | None:
        """Return the compiled `where` of a block; None if it takes every event."""
        return None if block.where is None else condition(block.where, self.event_types)

    def layout(self) -> RecordFormat:
        """Return the input of a parser."""
        assert self.source.format is not None  # refused by `rules` before
        assert self.time is not None
        fields = tuple(self.read_columns[name] for name in self.columns if name in self.read_columns)
        time = self.time.event_time(self.columns)
        options, keep = dict(self.source.options), self.extra_fields == "keep"
        return RecordFormat(self.source.format, fields, time, options, keep)

    def span(self, match: Match) -> Span | None:
        """Return the span of times that a file may contain; None, any time, if its name has no time.

        It is the period in the name, at least its hour, extended by `event_time_range` at both ends.
        """
        if match.start is None or match.end is None:
            return None
        start, end = match.start, match.end
        if match.unit in ("minute", "second"):
            start, end = hour_of(start), max(hour_of(start) + HOUR, end)
        return Span(start - self.source.event_time_range.before, end + self.source.event_time_range.after)


def built_in_of(features: Iterable[Feature[Any]]) -> dict[str, BuiltIn]:
    """Return the built-in checks of ingest and of some features, by name."""
    return {**OF_INGEST, **{name: check for feature in features for name, check in feature.checks.items()}}
