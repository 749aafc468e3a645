"""Alerts as findings: one for each alert, level, key and hour, beside those of the ledger. No Spark.

The rows that an hour has in `findings` are a function of its rows in `alerts` and of the stream's words for
them; each carries a hash of both.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter

import pyarrow as pa

from transom.intervals import format_hour
from transom.lake import mirroring
from transom.lake.book import Entry
from transom.lake.findings import NAME
from transom.lake.ledger import Ledger
from transom.lake.mirroring import At, Standing, Telling
from transom.lake.staleness import fingerprint
from transom.lake.tables import Table, in_hours_sql, query
from transom.lake.wording import hashed, joined, one_key, one_line, quoted, shown, text, title_of
from transom.stream import Stream
from transom.stream.alerts import Alert, figures
from transom.units import format_duration

STAGE, TABLE, KIND = "aggregate", "alerts", "alert"
VERSION = 2
"""Of the words; raised when the code says something else of the same rows."""
TIMES = ("window_start", "window_end")


def publish(ledger: Ledger, stream: Stream) -> bool:
    """Brings the findings up to date with the alerts.

    Hours that are not published, or by another specification, keep what they say: the run that publishes
    them makes it anew.

    Returns:
        Whether something was written.
    """
    return mirroring.publish(ledger, Alerts(stream))


@dataclass(frozen=True)
class Alerts:
    """The findings of a stream's alerts, as `mirroring` brings them up to date."""

    stream: Stream
    stage = STAGE
    table = TABLE
    kind = KIND

    def differing(self, now: Standing) -> Mapping[At, Telling]:
        """The hours that say something else than what stands, in order."""
        sql = f"SELECT DISTINCT block, hour, made_of FROM t WHERE {mirroring.own(self)}"
        stands: dict[At, set[str]] = {}
        for row in query(now.findings, sql).to_pylist():
            stands.setdefault((row["block"], row["hour"]), set()).add(row["made_of"])
        stream = self.stream
        asking = [block for block, declared in stream.aggregate.items() if declared.alert]
        words = {block: _words(stream, block) for block in asking}
        shapes = {block: fingerprint(stream.alerts_shape(block)) for block in asking}
        wanted = dict.fromkeys(stands, Telling(None))
        for node, entry in now.book.items():
            if node.table == TABLE and node.block in words:
                at = node.block, node.hour
                of_shape = (entry.inputs or {}).get("specification") == shapes[node.block]
                if entry.status == "published" and of_shape:
                    mark = _made_of(entry, words[node.block]) if entry.rows else None
                    wanted[at] = Telling(mark, entry.rows)
                else:
                    wanted.pop(at, None)
        return {
            at: telling
            for at, telling in sorted(wanted.items(), key=itemgetter(0))
            if stands.get(at, set()) != ({telling.mark} if telling.mark else set())
        }

    def made(self, now: Standing, hours: Mapping[At, str]) -> Iterator[pa.Table]:
        """What some hours are to say, by their marks."""
        if now.rows is not None:
            for block, of_block in mirroring.by_block(hours):
                for name in self.stream.aggregate[block].alert:
                    yield query(now.rows, _sql(self.stream, block, name, of_block))


def _words(stream: Stream, block: str) -> object:
    """All that is said of a block's alerts beside their rows."""
    declared = stream.aggregate[block]
    said = {name: alert.model_dump(mode="json") for name, alert in declared.alert.items()}
    return [VERSION, stream.name, said, [str(level) for level in declared.levels]]


def _made_of(entry: Entry, words: object) -> str:
    return hashlib.sha256(json.dumps([entry.digest, words], sort_keys=True).encode()).hexdigest()[:24]


def _sql(stream: Stream, block: str, name: str, hours: Mapping[datetime, str]) -> str:
    """A query that makes the findings of an alert of its rows."""
    declared = stream.aggregate[block]
    alert, key = declared.alert[name], list(declared.key)
    met = stream.alert_conditions(block)[name]
    read = [column for column in figures(stream, block) if column in met.columns]
    of_last = ["complete", "count", *read]
    last = {column: f"last_value({quoted(column)} ORDER BY window_end)" for column in of_last}
    grouped = ", ".join(["hour", "level", *map(quoted, key)])
    one_hour = (
        f"SELECT {grouped}, count(*) AS __reports, min(window_start) AS __start, "
        "max(window_start) AS window_start, max(window_end) AS window_end, "
        + ", ".join(f"{value} AS {quoted(column)}" for column, value in last.items())
        + f" FROM t WHERE block = '{block}' AND alert = '{name}' AND {in_hours_sql(hours)} GROUP BY {grouped}"
    )
    levels = list(reversed(declared.levels))
    said = " ".join(
        f"WHEN {number} THEN {text(f'{format_duration(level.range)} every {format_duration(level.slide)}')}"
        for number, level in enumerate(levels)
    )
    level = f"CASE level {said} END"
    made_of = " ".join(f"WHEN {text(format_hour(hour))} THEN '{mark}'" for hour, mark in hours.items())
    hour = "to_char(hour, '%Y-%m-%dT%H:%M')"
    # Lengths keep apart what else would run into each other, and null what is the text null.
    of_key = [
        f"CASE WHEN {quoted(c)} IS NULL THEN '-' "
        f"ELSE concat(cast(octet_length({shown(c)}) AS varchar), ':', {shown(c)}) END"
        for c in key
    ]
    identity = joined(
        [text("/".join([stream.name, STAGE, KIND, block, name])), "cast(level AS varchar)", hour, *of_key],
        "/",
    )
    seen = joined([f"concat('{c} ', {shown(c, TIMES)})" for c in [*read, "count"] if c not in key], ", ")
    reports = "CASE __reports WHEN 1 THEN '1 report' ELSE concat(cast(__reports AS varchar), ' reports') END"
    told = [
        text(f"the rule: {' '.join(alert.when.split())}"),
        f"concat('level ', cast(level AS varchar), ', ', {level}, ': ', {reports}, ' of the hour met it')",
        f"concat('the last one, to ', {shown('window_end', TIMES)}, ': ', {', '.join(seen)}, "
        "CASE WHEN complete THEN '' ELSE ', of hours that are incomplete' END)",
    ]
    values = {
        "stage": text(STAGE),
        "hour": "hour",
        "finding_id": hashed(*identity),
        "kind": text(KIND),
        "block": text(block),
        "severity": text(alert.severity),
        "title": _title(stream, block, name, alert, one_key(key) if key else None, level),
        "key": one_key(key),
        "item": "cast(NULL AS varchar)",
        "start": "__start",
        "end": "window_end",
        "ongoing": "false",
        "exactness": "'exact'",
        "evidence": f"make_array({', '.join(told)})",
        "made_of": f"CASE {hour} {made_of} END",
    }
    columns = ", ".join(f"{values[column]} AS {quoted(column)}" for column in Table.load(NAME).columns)
    return f"SELECT {columns} FROM ({one_hour})"


def _title(stream: Stream, block: str, name: str, alert: Alert, key: str | None, level: str) -> str:
    if alert.title is None:
        of = ["', '", key, "', '"] if key else ["', '"]
        until = [text(", until "), shown("window_end", TIMES)]
        return one_line(
            f"concat({', '.join([text(f'{stream.name}: {name} of {block}'), *of, level, *until])})"
        )
    return title_of(stream.name, alert.title, TIMES)
