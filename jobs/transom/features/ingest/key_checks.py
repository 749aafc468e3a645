"""Which events are held against which key: those that reach a block, its `where`, against the block's.

What reaches a pattern is what one of its steps, or of `absent`, may take: the other lines of its log need no
key.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from transom.engine.check_builders import built_in
from transom.formats.record_format import FieldType
from transom.ledger.check import Check
from transom.spec.expressions import Expression, condition
from transom.spec.stream import Stream

CHECK = "keys_not_null"
NULL_PLACEHOLDER: Mapping[FieldType, str] = {
    "string": "'-'",
    "integer": "-1",
    "number": "-1",
    "boolean": "false",
}
"""What a derived column may hold in the place of a null."""


@dataclass(frozen=True)
class RequiredKeyColumn:
    """A column of a key, and the events that must have it.

    Attributes:
        where: which events, as Spark SQL; None is all of them.
        of: the blocks whose key it is in, in words.
    """

    column: str
    where: str | None
    of: str

    @property
    def metric(self) -> str:
        """The name of its figure: the number of events without it."""
        return f"null {self.column}" + (f" where {self.where}" if self.where else "")

    @property
    def lacking(self) -> str:
        """The condition, as Spark SQL, of events that ought to have it and have not."""
        lacks = f"`{self.column}` IS NULL"
        # A block takes no event for which its condition is null.
        return lacks if self.where is None else f"coalesce({self.where}, false) AND {lacks}"


def required_keys(stream: Stream) -> list[RequiredKeyColumn]:
    """The columns of every key, each with the events that are held against it; blocks of one condition
    together."""
    of: dict[tuple[str, str | None], list[str]] = {}
    blocks = stream.columns_read
    for block in blocks:
        for column in block.key:
            of.setdefault((column, block.where), []).append(block.name)
    for column in stream.key_without_block:
        where = stream.where if stream.where and not blocks else None
        found = None if where is None else condition(where, stream.event_types)
        of.setdefault((column, _sql(found)), []).append("the stream")
    return [
        RequiredKeyColumn(column, where, " and ".join(dict.fromkeys(names)))
        for (column, where), names in sorted(of.items(), key=repr)
    ]


def _sql(where: Expression | None) -> str | None:
    return None if where is None else where.sql


def key_checks(stream: Stream) -> tuple[Check, ...]:
    """The check of each column of a key."""
    return tuple(
        replace(check, column=key.column, advice=_advice(stream, key), rule=key.where)
        for key in required_keys(stream)
        for check in built_in(stream, CHECK, metric=key.metric, at_most=0)
    )


def _advice(stream: Stream, key: RequiredKeyColumn) -> str:
    instead = NULL_PLACEHOLDER.get(stream.event_types[key.column])
    derived = f"key by a derived column, `is: coalesce({key.column}, {instead})`, " if instead else ""
    return (
        f"lines of {key.of} that lack {key.column}: put the data right, or leave them out, "
        f'`where: "{key.column} is not null"`, or {derived}or give the check another severity'
    )
