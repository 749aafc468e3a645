"""Findings of things that last: each is told once, by the last row that its table has of it. No Spark.

A table has a row of such a thing in every hour in which it has changed: `partial` as long as it may go on,
`final`, or `joined` where it has become part of another, which is no finding. A finding is a function of the
last row and of the stream's words, and carries a hash of both.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, Protocol, TypeVar

import pyarrow as pa
from deltalake import DeltaTable

from transom.core.intervals import HOUR, NO_HOUR
from transom.findings import sync as mirroring
from transom.findings.sql_text import hashed, joined, one_key, quoted, shown, text, title_of
from transom.findings.store import NAME
from transom.findings.sync import At, Standing, Telling
from transom.ledger.staleness import fingerprint
from transom.ledger.state import STANDS, Entry
from transom.storage.tables import Table, in_hours_sql, instant, query


@dataclass(frozen=True)
class Told:
    """How the things of one block are told.

    Attributes:
        id: the column that says which one it is.
        new: the column that says how much of it is of the row's hour.
        columns: of its rows that are read, beside hour, id, start, end, state, new and the key.
        times: those of all columns that are times.
        title: with columns in braces.
        evidence: texts, as SQL, of which empty ones are left out; `__ongoing` says whether it may go on.
        reach: after how many hours without a row nobody knows any more whether it goes on.
        item: the columns of what it is beside the key.
        start, end: the columns that say from when to when it is.
        exactness: how exact it is, as SQL.
    """

    name: str
    key: tuple[str, ...]
    id: str
    new: str
    columns: tuple[str, ...]
    times: tuple[str, ...]
    severity: str
    title: str
    evidence: Sequence[str]
    reach: int
    item: tuple[str, ...] = ()
    start: str = "start"
    end: str = "end"
    exactness: str = "'exact'"

    @property
    def read(self) -> tuple[str, ...]:
        """All columns of its rows that are read."""
        ends = (self.start, self.end)
        return ("hour", self.id, *ends, "state", self.new, *self.columns, *self.key, *self.item)


class Block(Protocol):
    """What every block of rows says of itself: its name, and of its rows as in `Told`."""

    @property
    def name(self) -> str:
        """The name of the block."""

    @property
    def reach(self) -> int:
        """After how many hours without a row nobody knows any more whether a thing goes on."""

    @property
    def read(self) -> tuple[str, ...]:
        """All columns of its rows that are read."""


T = TypeVar("T", bound=Block)


@dataclass
class RowFindings(ABC, Generic[T]):
    """The findings of one kind, made of the rows of one table, as `mirroring` brings them up to date.

    Attributes:
        stage, table: whose rows they are made of.
        kind: what the findings are called.
        stream: the name of it.
        blocks: how those of each block are told.
    """

    stage: str
    table: str
    kind: str
    stream: str
    blocks: Mapping[str, T]

    def differing(self, now: Standing) -> Mapping[At, Telling]:
        """The hours that say something else than what stands, in order."""
        blocks = self.blocks if now.rows is not None else {}
        own = mirroring.own(self)
        held = query(now.findings, f"SELECT DISTINCT block, hour FROM t WHERE {own}").to_pylist()
        found = {(row["block"], row["hour"]): Telling(None) for row in held if row["block"] not in blocks}
        for name, told in blocks.items():
            rows = StandingRows.of(now, self, told)
            stands = f"SELECT hour, finding_id, made_of FROM f WHERE {own} AND block = '{name}'"
            made = self.sql(rows, told)
            differing = rows.query(
                f"SELECT w.hour, h.hour AS before, max(w.made_of) AS mark FROM ({made}) w "
                f"FULL OUTER JOIN ({stands}) h ON w.finding_id = h.finding_id "
                "WHERE w.made_of IS DISTINCT FROM h.made_of GROUP BY w.hour, h.hour",
                f=now.findings,
            ).to_pylist()
            if not differing:
                continue
            counts = rows.query(f"SELECT hour, count(*) AS rows FROM ({made}) GROUP BY hour").to_pylist()
            many = {row["hour"]: row["rows"] for row in counts}
            marks: dict[datetime | None, str] = {row["before"]: "" for row in differing}
            for row in differing:
                marks[row["hour"]] = max(marks.get(row["hour"], ""), row["mark"] or "")
            for hour, mark in marks.items():
                if hour is not None:
                    rows_of = many.get(hour, 0)
                    found[name, hour] = Telling(f"{rows_of} {mark}" if rows_of else None, rows_of)
        return dict(sorted(found.items()))

    def made(self, now: Standing, hours: Mapping[At, str]) -> Iterator[pa.Table]:
        """What some hours are to say."""
        for name, of_block in mirroring.by_block(hours):
            told = self.blocks[name]
            rows = StandingRows.of(now, self, told)
            yield rows.query(f"SELECT * FROM ({self.sql(rows, told)}) WHERE {in_hours_sql(of_block)}")

    @abstractmethod
    def sql(self, rows: "StandingRows", told: T) -> str:
        """Return a query that makes the findings of a block."""


class Lasting(RowFindings[Told]):
    """The findings of things that last, a row of the table in every hour in which one has changed."""

    def sql(self, rows: "StandingRows", told: Told) -> str:
        """Return a query that makes the findings of a block: of each thing its last row."""
        return _sql(rows, self, told)


def _sql(rows: "StandingRows", of: Lasting, told: Told) -> str:
    columns = ", ".join(map(quoted, told.read))
    # An hour that nothing has joined it in says only that it has come to an end.
    rows_of_all = (
        f"SELECT {columns}, row_number() OVER (PARTITION BY {told.id} ORDER BY hour DESC) AS __place, "
        f"max(CASE WHEN {told.new} > 0 THEN hour END) OVER (PARTITION BY {told.id}) AS __grown, "
        f"min(hour) OVER (PARTITION BY {told.id}) AS __first "
        f"FROM ({rows.sql})"
    )
    last = (
        f"SELECT {columns}, coalesce(__grown, hour) AS __hour, __first, "
        f"state = 'partial' AND hour >= {instant(rows.reached)} AS __ongoing "
        f"FROM ({rows_of_all}) WHERE __place = 1 AND state <> 'joined'"
    )
    values = {
        "stage": text(of.stage),
        "hour": "__hour",
        "finding_id": hashed(text(f"{of.stream}/{of.stage}/{of.kind}/{told.name}/"), told.id),
        "kind": text(of.kind),
        "block": text(told.name),
        "severity": text(told.severity),
        "title": title_of(of.stream, told.title, told.times),
        "key": one_key(told.key),
        "item": one_key(told.item),
        "start": quoted(told.start),
        "end": quoted(told.end),
        "ongoing": "__ongoing",
        "exactness": told.exactness,
        "evidence": f"array_remove_all(make_array({', '.join(told.evidence)}), '')",
        "first_hour": "__first",
    }
    # A hash of the row, and of what is made of it: so that hours are compared without their words.
    times = [f"arrow_cast({quoted(c)}, 'Int64')" for c in ("__hour", "__first", *told.times)]
    others = [c for c in (*told.columns, *told.key, *told.item) if c not in told.times]
    row = [f"cast({time} AS varchar)" for time in times] + [shown(c) for c in ("__ongoing", *others)]
    values["made_of"] = hashed(*joined([text(fingerprint(values)), *row], "/"))
    ordered = (f"{values[column]} AS {quoted(column)}" for column in Table.load(NAME).columns)
    return f"SELECT {', '.join(ordered)} FROM ({last})"


@dataclass(frozen=True)
class StandingRows:
    """The rows that stand of a block.

    Attributes:
        hours: those that a run has begun to replace, by the version of the table in which their rows stand.
        versions: the table as it is, `t`, and at these versions, by their names in a query.
        entries: what the ledger says of the hours of the table.
        reached: the earliest hour whose row may say of a thing that it goes on, and be the last one. Of
            one before it nobody knows what has come of it: hours in between were not asked for.
    """

    told: Block
    hours: Mapping[str, list[datetime]]
    versions: Mapping[str, DeltaTable]
    entries: Mapping[datetime, Entry]
    reached: datetime

    @classmethod
    def of(cls, now: Standing, of: "RowFindings[Any]", told: Block) -> "StandingRows":
        """Return the rows of a block as they stand."""
        assert now.rows is not None
        hours: dict[str, list[datetime]] = {}
        versions = {"t": now.rows}
        series = now.book.series(of.stage, told.name, of.table)
        for hour, entry in series.items():
            if entry.stood_at is not None:
                hours.setdefault(f"t{entry.stood_at}", []).append(hour)
                if f"t{entry.stood_at}" not in versions:
                    uri = now.rows.table_uri
                    versions[f"t{entry.stood_at}"] = DeltaTable(uri, version=entry.stood_at)
        last = max(
            (hour for hour, entry in series.items() if entry.before().status in STANDS), default=NO_HOUR
        )
        return cls(told, hours, versions, series, last - told.reach * HOUR)

    def query(self, sql: str, **others: DeltaTable) -> pa.Table:
        """What an SQL query over the versions gives, and over other tables."""
        return query(self.versions["t"], sql, **{**self.versions, **others})

    @property
    def sql(self) -> str:
        """A query that gives the rows."""
        torn = [hour for some in self.hours.values() for hour in some]
        kept = {"t": f"NOT {in_hours_sql(torn)}"}
        kept |= {version: in_hours_sql(some) for version, some in self.hours.items()}
        parts = []
        for version, where in kept.items():
            held = {field.name for field in self.versions[version].schema().fields}
            columns = (
                quoted(column) if column in held else f"NULL AS {quoted(column)}" for column in self.told.read
            )
            parts.append(
                f"SELECT {', '.join(columns)} FROM {version} WHERE block = '{self.told.name}' AND {where}"
            )
        return " UNION ALL ".join(parts)
