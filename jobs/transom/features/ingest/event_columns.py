"""The columns of the events that each block of each feature needs, and of which events it needs them.

The checks `used_fields_present` and `keys_not_null` go by this list. A new feature adds a line to `FEATURES`.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from transom.features.fills import validate as fill_columns
from transom.features.frames import validate as frame_columns
from transom.features.items import validate as item_rules
from transom.features.patterns import validate as pattern_columns
from transom.spec.expressions import Expression
from transom.spec.external_source import EVENTS
from transom.stream import Stream


@dataclass(frozen=True)
class Use:
    """Columns that a block reads in the events that meet a condition.

    Attributes:
        columns: the names of the columns.
        where: the condition, as Spark SQL; None is every event.
        decides: whether `where` itself reads the columns. Then they are also needed where an event neither
            meets it nor fails it, as is the case without them.
    """

    columns: frozenset[str]
    where: str | None
    decides: bool = False

    @property
    def metric(self) -> str:
        """The name of its figure: how many events of a file it reads the columns in."""
        return f"{'not failing' if self.decides else 'meeting'} {self.where}"


@dataclass(frozen=True)
class BlockColumns:
    """What one block needs of the events.

    Attributes:
        name: the name of the block.
        key: the columns that every event which the block takes must have.
        where: which events the block takes, as Spark SQL; None is every event.
        uses: the columns that it reads beside its key.
    """

    name: str
    key: tuple[str, ...] = ()
    where: str | None = None
    uses: tuple[Use, ...] = field(default=())

    @property
    def all_uses(self) -> tuple[Use, ...]:
        """What it reads, its key included."""
        return (Use(frozenset(self.key), self.where), *self.uses)


def block_columns(stream: Stream) -> list[BlockColumns]:
    """Return what every block of every feature needs of the events.

    Blocks that read no events, such as frames over a block of aggregate, are not among them.
    """
    return [block for columns_of in FEATURES.values() for block in columns_of(stream)]


def _sql(condition: Expression | None) -> str | None:
    return None if condition is None else condition.sql


def _tested(condition: Expression | None) -> tuple[Use, ...]:
    """Return the use that a block's own condition makes of columns."""
    return () if condition is None else (Use(frozenset(condition.columns), condition.sql, decides=True),)


def _both(where: Expression | None, condition: Expression) -> str:
    """Return the SQL of a condition on the events that another one lets through."""
    return condition.sql if where is None else f"{where.sql} AND {condition.sql}"


def _aggregate(stream: Stream) -> Iterator[BlockColumns]:
    for name, block in stream.aggregate.items():
        where = stream.condition(name)
        measured = {measure.column for measure in block.measures.values() if measure.column is not None}
        read = Use(frozenset({*block.recurring, *measured}), _sql(where))
        yield BlockColumns(name, block.key, _sql(where), (*_tested(where), read))


def _patterns(stream: Stream) -> Iterator[BlockColumns]:
    for name, pattern in stream.patterns.items():
        where, takes = stream.pattern_where(name), stream.pattern_takes(name)
        uses = list(_tested(where))
        uses += [
            Use(frozenset(met.columns), _both(where, met), decides=True)
            for met in stream.pattern_conditions(name)
        ]
        # A record of one step needs no column of another one.
        by_step = pattern_columns.compared(pattern)
        for step, met in zip(pattern.all_steps, stream.pattern_conditions(name), strict=False):
            uses.append(Use(frozenset(by_step[step.id]), _both(where, met)))
        uses.append(Use(frozenset({*pattern.keep, *pattern.columns}), takes))
        yield BlockColumns(name, pattern.key, takes, tuple(uses))


def _frames(stream: Stream) -> Iterator[BlockColumns]:
    for name, frame in stream.frames.items():
        if frame.over is not None:
            continue  # it reads granules
        conditions = frame_columns.conditions(stream, name)
        only = conditions.pop("only", None)
        read = {column for column in (frame_columns.value(stream, name),) if column is not None}
        read |= {frame.baseline.of} if frame.baseline is not None else set()
        uses = [*_tested(only), Use(frozenset(read), _sql(only))]
        for met in conditions.values():
            columns = frozenset(met.columns) - {frame_columns.BASELINE}
            # A baseline is no column of the events: which of them meet the condition is not known here.
            by_itself = frame_columns.BASELINE not in met.columns
            uses.append(Use(columns, _both(only, met) if by_itself else _sql(only), decides=by_itself))
        yield BlockColumns(name, frame.key, _sql(only), tuple(uses))


def _fills(stream: Stream) -> Iterator[BlockColumns]:
    for name, fill in stream.fills.items():
        if fill.from_.block != EVENTS:
            continue  # it reads granules, or what is not the stream's own
        where = fill_columns.where(stream, name)
        measured = {measure.column for measure in fill.measures.values() if measure.column is not None}
        uses = (*_tested(where), Use(frozenset(measured), _sql(where)))
        yield BlockColumns(name, fill_columns.by(stream, name), _sql(where), uses)


def _items(stream: Stream, blocks: "Mapping[str, item_rules.OfItems]") -> Iterator[BlockColumns]:
    """An event may lack a column of an item, and has no item then: an item is no key."""
    for name, block in blocks.items():
        where = item_rules.where(stream, block)
        yield BlockColumns(name, (), _sql(where), (*_tested(where), Use(frozenset(block.item), _sql(where))))


FEATURES: Mapping[str, Callable[[Stream], Iterator[BlockColumns]]] = {
    "aggregate": _aggregate,
    "patterns": _patterns,
    "frames": _frames,
    "fills": _fills,
    "persistence": lambda stream: _items(stream, stream.persistence),
    "frequency": lambda stream: _items(stream, stream.frequency),
}
"""Every feature, by the field of the stream file that declares its blocks."""
