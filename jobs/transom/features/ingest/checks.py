"""The checks of files and of hours.

The check of keys counts the events without a key column. An event needs the keys of the blocks that read it,
which are those whose `where` it meets. A pattern reads the events that a step or its `absent` may match.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from transom.engine.check_builders import built_in, declared
from transom.formats.record_format import FieldType
from transom.ledger.check import Check
from transom.spec.expressions import condition
from transom.spec.stream import Stream

SCATTERED, CAPTURES, KEYS = "hours_bounded", "captures_filled", "keys_not_null"
OF_SCHEDULE = ("files_expected", "periods_covered")
"""Checks that do not apply to hours outside of the stream's schedule."""
NULL_PLACEHOLDER: Mapping[FieldType, str] = {
    "string": "'-'", "integer": "-1", "number": "-1", "boolean": "false",
}  # fmt: skip
"""The value that a derived column may have instead of null, as SQL, by the column's type."""


def _zero(stream: Stream, name: str, metric: str = "", applies: bool = True) -> tuple[Check, ...]:
    """Return the check that a metric is 0, by default the metric of its name."""
    return built_in(stream, name, metric=metric or name, at_most=0) if applies else ()


def file_checks(stream: Stream) -> tuple[Check, ...]:
    """Return the checks of a file."""
    of_few = built_in(stream, "rejected_share", metric="rejected_share_of_few")
    return (
        *built_in(stream, "lines_accounted", metric="unaccounted", at_least=0, at_most=0),
        *built_in(stream, "rejected_share", metric="rejected_share"),
        *(replace(check, severity="warning") for check in of_few),
        *_zero(stream, "no_nul_bytes", "nul_bytes"),
        *built_in(stream, SCATTERED, metric="hours"),
        *_zero(stream, CAPTURES, applies=bool(stream.source.pattern.captures)),
        *key_checks(stream),
        *_zero(stream, "times_inside_hour", "seconds_outside"),
        *_zero(stream, "file_readable", "broken"),
        *_zero(stream, "times_unambiguous", "ambiguous", stream.time is not None and stream.time.is_local),
        *_zero(stream, "fields_known", applies=stream.extra_fields == "drop"),
        *_zero(stream, "fields_present"),
        *_zero(stream, "used_fields_present"),
        *(rule.check for rule in declared(stream, "ingest")),
    )


def hour_checks(stream: Stream) -> tuple[Check, ...]:
    """Return the checks of an hour as a whole, without those of its files."""
    source = stream.source
    files = built_in(stream, "files_expected", metric="files", at_least=source.expected_files)
    return (
        *(files if source.expected_files else ()),
        *_zero(stream, "periods_covered", "uncovered", source.periods_checked),
        *_zero(stream, "files_unchanged", "conflicts"),
        *_zero(stream, "files_distinct", "equal", source.equal_files == "keep"),
    )


@dataclass(frozen=True)
class RequiredKeyColumn:
    """A column of a key, and the events that need it.

    Attributes:
        column: its name.
        where: the condition on the events, as Spark SQL; None selects all events.
        blocks: the names of the blocks with this key, as text.
    """

    column: str
    where: str | None
    blocks: str

    @property
    def metric(self) -> str:
        """The name of the metric that counts the events without the column."""
        return f"null {self.column}" + (f" where {self.where}" if self.where else "")

    @property
    def lacking(self) -> str:
        """The condition, as Spark SQL, of events that need the column and lack it."""
        lacks = f"`{self.column}` IS NULL"
        # A block reads no event for which its condition is null.
        return lacks if self.where is None else f"coalesce({self.where}, false) AND {lacks}"


def required_keys(stream: Stream) -> list[RequiredKeyColumn]:
    """Return the columns of all keys, one for each column and condition."""
    names: dict[tuple[str, str | None], list[str]] = {}
    blocks = stream.columns_read
    for block in blocks:
        for column in block.key:
            names.setdefault((column, block.where), []).append(block.name)
    where = stream.where if stream.where and not blocks else None
    for column in stream.key_without_block:
        sql = None if where is None else condition(where, stream.event_types).sql
        names.setdefault((column, sql), []).append("the stream")
    return [
        RequiredKeyColumn(column, sql, " and ".join(dict.fromkeys(of_key)))
        for (column, sql), of_key in sorted(names.items(), key=repr)
    ]


def key_checks(stream: Stream) -> tuple[Check, ...]:
    """Return the check of each column of a key."""
    return tuple(
        replace(check, column=key.column, advice=_advice(stream, key), rule=key.where)
        for key in required_keys(stream)
        for check in _zero(stream, KEYS, key.metric)
    )


def _advice(stream: Stream, key: RequiredKeyColumn) -> str:
    instead = NULL_PLACEHOLDER.get(stream.event_types[key.column])
    derived = f"key by a derived column, `is: coalesce({key.column}, {instead})`, " if instead else ""
    return (
        f"lines of {key.blocks} that lack {key.column}: fix the data, or omit them, "
        f'`where: "{key.column} is not null"`, or {derived}or give the check another severity'
    )
