"""Episodes as findings: one for each, beside those of the ledger. No Spark.

A finding is a function of the last row that `episodes` has of it, and of the stream's words. One that has
become part of another is none. A finding carries a hash of the row and the words.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa
from deltalake import DeltaTable

from transom.algorithms.episodes import Merging
from transom.intervals import HOUR, NO_HOUR
from transom.lake import mirroring
from transom.lake.book import STANDS
from transom.lake.findings import NAME
from transom.lake.ledger import Ledger
from transom.lake.mirroring import At, Standing, Telling
from transom.lake.staleness import fingerprint
from transom.lake.tables import Table, in_hours_sql, instant, query
from transom.lake.wording import hashed, joined, one_key, quoted, shown, text, title_of
from transom.stream import Stream
from transom.stream.pattern_columns import EPISODE_COLUMNS
from transom.stream.patterns import AnyOrder, Pattern, Step
from transom.units import format_duration, microseconds, spoken

STAGE, TABLE, KIND = "widen", "episodes", "episode"
TIMES = ("start", "end", "detected_at")


def publish(ledger: Ledger, stream: Stream) -> bool:
    """Brings the findings up to date with the episodes, as they stand.

    Returns:
        Whether something was written.
    """
    return mirroring.publish(ledger, Episodes(stream))


@dataclass(frozen=True)
class Episodes:
    """The findings of a stream's patterns, as `mirroring` brings them up to date."""

    stream: Stream
    stage = STAGE
    table = TABLE
    kind = KIND

    def differing(self, now: Standing) -> Mapping[At, Telling]:
        """The hours that say something else than what stands, in order."""
        patterns = self.stream.patterns if now.rows is not None else {}
        own = mirroring.own(self)
        held = query(now.findings, f"SELECT DISTINCT block, hour FROM t WHERE {own}").to_pylist()
        found = {(row["block"], row["hour"]): Telling(None) for row in held if row["block"] not in patterns}
        for name in patterns:
            rows = _Rows.of(now, self.stream, name)
            told = f"SELECT hour, finding_id, made_of FROM f WHERE {own} AND block = '{name}'"
            made = self._sql(rows, name)
            differing = rows.query(
                f"SELECT w.hour, h.hour AS before, max(w.made_of) AS mark FROM ({made}) w "
                f"FULL OUTER JOIN ({told}) h ON w.finding_id = h.finding_id "
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
        for name, of_pattern in mirroring.by_block(hours):
            rows = _Rows.of(now, self.stream, name)
            yield rows.query(f"SELECT * FROM ({self._sql(rows, name)}) WHERE {in_hours_sql(of_pattern)}")

    def _sql(self, rows: "_Rows", name: str) -> str:
        """A query that makes the findings of a pattern."""
        pattern, stream = self.stream.patterns[name], self.stream.name
        columns = ", ".join(map(quoted, [*_READ, *pattern.key]))
        # An hour that nothing has joined it in says only that it has come to an end.
        rows_of_all = (
            f"SELECT {columns}, row_number() OVER (PARTITION BY episode_id ORDER BY hour DESC) AS __place, "
            "max(CASE WHEN new_matches > 0 THEN hour END) OVER (PARTITION BY episode_id) AS __grown "
            f"FROM ({rows.sql})"
        )
        last = (
            f"SELECT {columns}, coalesce(__grown, hour) AS __hour, "
            f"state = 'partial' AND hour >= {instant(rows.reached)} AS __ongoing "
            f"FROM ({rows_of_all}) WHERE __place = 1 AND state <> 'joined'"
        )
        key = one_key(pattern.key)
        title = pattern.title
        if title is None:
            of = f" of {', '.join(f'{{{column}}}' for column in pattern.key)}" if pattern.key else ""
            title = f"{name}{of}, {{start}} to {{end}}"
        values = {
            "stage": text(STAGE),
            "hour": "__hour",
            "finding_id": hashed(text(f"{stream}/{STAGE}/{KIND}/{name}/"), "episode_id"),
            "kind": text(KIND),
            "block": text(name),
            "severity": text(pattern.severity),
            "title": title_of(stream, title, TIMES),
            "key": key,
            "item": "cast(NULL AS varchar)",
            "start": '"start"',
            "end": '"end"',
            "ongoing": "__ongoing",
            "exactness": "'exact'",
            "evidence": f"make_array({', '.join(_evidence(name, pattern))})",
        }
        # A hash of the row, and of what is made of it: so that hours are compared without their words.
        times = [f"arrow_cast({quoted(c)}, 'Int64')" for c in ("__hour", "start", "end", "detected_at")]
        others = [shown(column) for column in ("__ongoing", "matches", "level", *pattern.key)]
        row = [f"cast({time} AS varchar)" for time in times] + others
        values["made_of"] = hashed(*joined([text(fingerprint(values)), *row], "/"))
        ordered = (f"{values[column]} AS {quoted(column)}" for column in Table.load(NAME).columns)
        return f"SELECT {', '.join(ordered)} FROM ({last})"


_READ = tuple(column for column in EPISODE_COLUMNS if column != "block")


@dataclass(frozen=True)
class _Rows:
    """The rows that stand of a pattern.

    Attributes:
        hours: those that a run has begun to replace, by the version of the table in which their rows stand.
        versions: the table as it is, `t`, and at these versions, by their names in a query.
        reached: the earliest hour whose row may say of an episode that it is open, and be the last one. Of
            one before it nobody knows what has come of it: hours in between were not asked for.
    """

    name: str
    key: tuple[str, ...]
    hours: Mapping[str, list[datetime]]
    versions: Mapping[str, DeltaTable]
    reached: datetime

    @classmethod
    def of(cls, now: Standing, stream: Stream, name: str) -> "_Rows":
        assert now.rows is not None
        pattern = stream.patterns[name]
        hours: dict[str, list[datetime]] = {}
        versions = {"t": now.rows}
        series = now.book.series(STAGE, name, TABLE)
        for hour, entry in series.items():
            if entry.stood_at is not None:
                hours.setdefault(f"t{entry.stood_at}", []).append(hour)
                if f"t{entry.stood_at}" not in versions:
                    uri = now.rows.table_uri
                    versions[f"t{entry.stood_at}"] = DeltaTable(uri, version=entry.stood_at)
        merging = Merging(*map(microseconds, (pattern.merge, pattern.within, pattern.top)))
        last = max(
            (hour for hour, entry in series.items() if entry.before().status in STANDS), default=NO_HOUR
        )
        return cls(name, pattern.key, hours, versions, last - merging.reach * HOUR)

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
                quoted(column) if column in held else f"NULL AS {quoted(column)}"
                for column in (*_READ, *self.key)
            )
            parts.append(
                f"SELECT {', '.join(columns)} FROM {version} WHERE block = '{self.name}' AND {where}"
            )
        return " UNION ALL ".join(parts)


def _evidence(name: str, pattern: Pattern) -> list[str]:
    longest = f"CASE level {_windows(pattern)} ELSE 'windows' END"
    # Of several matches nobody has noted where the first one ends.
    since = 'CASE matches WHEN 1 THEN "end" ELSE start END'
    which = "CASE matches WHEN 1 THEN ' after its last record' ELSE ' after the first record' END"
    seconds = f"((arrow_cast(detected_at, 'Int64') - arrow_cast({since}, 'Int64')) / 1000000)"
    after = f"concat({seconds} / 3600, ' h ', {seconds} % 3600 / 60, ' min ', {seconds} % 60, ' s')"
    so_far = "CASE WHEN __ongoing THEN ' so far' ELSE '' END"
    matches = f"concat(CASE matches WHEN 1 THEN '1 match' ELSE concat(matches, ' matches') END, {so_far}"
    where = f"records are in the table matches, of block {name}{' and this key' if pattern.key else ''}"
    return [
        text(f"the pattern: {_in_words(pattern)}"),
        f"{matches}, CASE matches WHEN 1 THEN '; its ' ELSE '; their ' END, {text(where)})",
        f"concat('first detected at ', {shown('detected_at', TIMES)}, ' in ', {longest}, ', ', {after}, "
        f"{which})",
    ]


def _windows(pattern: Pattern) -> str:
    """What the windows of each level are, as cases."""
    lengths = (2 * pattern.batch * (1 << level) for level in range(pattern.levels))
    return " ".join(
        f"WHEN {level} THEN {text(f'windows of {spoken(length)} (level {level})')}"
        for level, length in enumerate(lengths)
    )


def _in_words(pattern: Pattern) -> str:
    whole = f"within {format_duration(pattern.within)}"
    if pattern.detector:
        return f"what {pattern.detector} finds, {whole}"
    elements = (
        f"{' and '.join(map(_step, part.any_order))} in any order"
        if isinstance(part, AnyOrder)
        else _step(part)
        for part in pattern.steps
    )
    return f"{', then '.join(elements)}, {whole}"


def _step(step: Step) -> str:
    return step.id if step.times == 1 else f"{step.times} times {step.id}"
