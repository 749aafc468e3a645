"""Alerts as findings, by the rows of the table `alerts` and the stream's words. No Spark.

Reports of one alert, level and key that meet it in hours that follow each other are one finding, however the
hours were cut into runs. At a level whose slide is longer than an hour, hours that lie a slide apart follow
each other. A finding carries a hash of the rows and words that it was made of.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from transom.core.durations import format_duration, microseconds
from transom.core.intervals import HOUR
from transom.features.aggregates import alerts, fingerprints
from transom.features.aggregates.alert_spec import Alert
from transom.features.aggregates.alerts import figures
from transom.features.aggregates.spec import Aggregation, Level
from transom.findings import sync as mirroring
from transom.findings.entities import RowFindings, StandingRows
from transom.findings.sql_text import hashed, joined, one_key, one_line, quoted, ranged, shown, text, title_of
from transom.findings.store import NAME
from transom.ledger.ledger import Ledger
from transom.ledger.staleness import fingerprint
from transom.spec.stream import Stream
from transom.storage.tables import Table, in_hours_sql, instant

STAGE, TABLE, KIND = "aggregate", "alerts", "alert"
VERSION = 3
"""Of the words; raised when the code says something else of the same rows."""
TIMES = ("window_start", "window_end", "__first", "__hour")
HOUR_US = microseconds(HOUR)


def publish(ledger: Ledger, stream: Stream) -> bool:
    """Brings the findings up to date with the alerts, as they stand.

    Returns:
        Whether something was written.
    """
    blocks = {
        name: _Block(stream, name) for name, declared in stream.blocks(Aggregation).items() if declared.alert
    }
    return mirroring.publish(ledger, AlertFindings(STAGE, TABLE, KIND, stream.name, blocks))


@dataclass(frozen=True)
class _Block:
    """The alerts of one aggregation."""

    stream: Stream
    name: str
    reach: int = 0

    @property
    def key(self) -> tuple[str, ...]:
        """The columns of the key."""
        return tuple(self.stream.blocks(Aggregation)[self.name].key)

    @property
    def levels(self) -> list[Level]:
        """The windows, the finest first."""
        return list(reversed(self.stream.blocks(Aggregation)[self.name].levels))

    @property
    def figures(self) -> tuple[str, ...]:
        """The figures that conditions of the block read."""
        return tuple(figures(self.stream, self.name))

    @property
    def read(self) -> tuple[str, ...]:
        """All columns of its rows that are read."""
        own = ("hour", "alert", "level", "window_start", "window_end", "count", "complete")
        return (*own, *self.key, *(column for column in self.figures if column not in own))


class AlertFindings(RowFindings[_Block]):
    """The findings of a stream's alerts, as `mirroring` brings them up to date."""

    def sql(self, rows: StandingRows, told: _Block) -> str:
        """Return a query that makes the findings of a block."""
        return " UNION ALL ".join(
            _sql(rows, self.stream, told, name, alert)
            for name, alert in told.stream.blocks(Aggregation)[told.name].alert.items()
        )


def _others(rows: StandingRows, told: _Block) -> list[datetime]:
    """The hours whose rows were made by another specification."""
    shape = fingerprint(fingerprints.alerts(told.stream, told.name))
    return [hour for hour, of in rows.entries.items() if (of.inputs or {}).get("specification") != shape]


def _by_level(levels: list[Level], values: Iterable[str]) -> str:
    cases = " ".join(f"WHEN {number} THEN {value}" for number, value in enumerate(values))
    return f"CASE level {cases} END" if levels else "NULL"


def _apart(level: Level) -> int:
    """How many hours apart the hours lie in which a level reports, at most."""
    return max(1, -(-level.slide // HOUR))


def _spells(rows: StandingRows, told: _Block, name: str, read: list[str]) -> str:
    """A query: of each level and key the spells of hours that follow each other, with the reports in them."""
    by = ", ".join(["level", *map(quoted, told.key)])
    of_last = ["complete", "count", *read]
    last = ", ".join(f"last_value({quoted(c)} ORDER BY window_end) AS {quoted(c)}" for c in of_last)
    ends = ", ".join(f"min({quoted(c)}) AS {_least(c)}, max({quoted(c)}) AS {_most(c)}" for c in read)
    other = f"CASE WHEN {in_hours_sql(_others(rows, told))} THEN 1 ELSE 0 END"
    hourly = (
        f"SELECT {by}, hour, count(*) AS __reports, max(window_start) AS window_start, "
        f"max(window_end) AS window_end, {last}{ends and f', {ends}'}, "
        f"min(CASE WHEN complete THEN 1 ELSE 0 END) AS __complete, max({other}) AS __other "
        f"FROM ({rows.sql}) WHERE alert = {text(name)} GROUP BY {by}, hour"
    )
    apart = _by_level(told.levels, (str(_apart(level) * HOUR_US) for level in told.levels))
    micros = "arrow_cast(hour, 'Int64')"
    before = f"lag({micros}) OVER (PARTITION BY {by} ORDER BY hour)"
    begun = f"SELECT *, CASE WHEN {micros} - {before} <= {apart} THEN 0 ELSE 1 END AS __new FROM ({hourly})"
    numbered = (
        f"SELECT *, sum(__new) OVER (PARTITION BY {by} ORDER BY hour "
        f"ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS __spell FROM ({begun})"
    )
    last = ", ".join(f"last_value({quoted(c)} ORDER BY hour) AS {quoted(c)}" for c in of_last)
    ends = ", ".join(f"min({_least(c)}) AS {_least(c)}, max({_most(c)}) AS {_most(c)}" for c in read)
    return (
        f"SELECT {by}, min(hour) AS __first, max(hour) AS __hour, sum(__reports) AS __reports, "
        f"count(*) AS __hours, max(window_start) AS window_start, max(window_end) AS window_end, "
        f"{last}{ends and f', {ends}'}, min(__complete) AS __complete, max(__other) AS __other "
        f"FROM ({numbered}) GROUP BY {by}, __spell"
    )


def _least(column: str) -> str:
    return quoted(f"__least {column}")


def _most(column: str) -> str:
    return quoted(f"__most {column}")


def _sql(rows: StandingRows, stream: str, told: _Block, name: str, alert: Alert) -> str:
    """A query that makes the findings of an alert of its rows."""
    key, levels = list(told.key), told.levels
    met = alerts.conditions(told.stream, told.name)[name]
    read = [column for column in told.figures if column in met.columns]
    # A spell may go on where the next report of its level has not been asked for.
    slack = _by_level(levels, (str((_apart(level) - 1) * HOUR_US) for level in levels))
    ongoing = f"arrow_cast(__hour, 'Int64') + {slack} >= arrow_cast({instant(rows.reached)}, 'Int64')"
    spells = f"SELECT *, {ongoing} AS __ongoing FROM ({_spells(rows, told, name, read)})"
    level = _by_level(
        levels, (text(f"{format_duration(of.range)} every {format_duration(of.slide)}") for of in levels)
    )
    # Lengths keep apart what else would run into each other, and null what is the text null.
    of_key = [
        f"CASE WHEN {quoted(c)} IS NULL THEN '-' "
        f"ELSE concat(cast(octet_length({shown(c)}) AS varchar), ':', {shown(c)}) END"
        for c in key
    ]
    first = "to_char(__first, '%Y-%m-%dT%H:%M')"
    identity = joined(
        [text("/".join([stream, STAGE, KIND, told.name, name])), "cast(level AS varchar)", first, *of_key],
        "/",
    )
    seen = joined([f"concat('{c} ', {shown(c, TIMES)})" for c in [*read, "count"] if c not in key], ", ")
    reports = "CASE __reports WHEN 1 THEN '1 report' ELSE concat(cast(__reports AS varchar), ' reports') END"
    hours = "CASE __hours WHEN 1 THEN '1 hour' ELSE concat(cast(__hours AS varchar), ' hours') END"
    extremes = [f"concat('{c} ', {ranged(_least(c), _most(c))})" for c in read]
    evidence = [
        text(f"the rule: {' '.join(alert.when.split())}"),
        f"concat('level ', cast(level AS varchar), ', ', {level}, ': ', {reports}, ' met it in ', {hours})",
        *([f"concat({', '.join(joined(extremes, ', '))})"] if extremes else []),
        f"concat('the last one, to ', {shown('window_end', TIMES)}, ': ', {', '.join(seen)})",
        "CASE WHEN __complete = 1 THEN '' ELSE 'some of the reports are of hours that are incomplete' END",
        "CASE WHEN __other = 0 THEN '' ELSE 'some of the reports were made by an earlier form of the stream "
        "file; their hours are stale' END",
    ]
    values = {
        "stage": text(STAGE),
        "hour": "__hour",
        "finding_id": hashed(*identity),
        "kind": text(KIND),
        "block": text(told.name),
        "severity": text(alert.severity),
        "title": _title(stream, told.name, name, alert, one_key(key) if key else None, level, extremes),
        "key": one_key(key),
        "item": "cast(NULL AS varchar)",
        "start": "__first",
        "end": "window_end",
        "ongoing": "__ongoing",
        "exactness": "'exact'",
        "evidence": f"array_remove_all(make_array({', '.join(evidence)}), '')",
        "first_hour": "__first",
    }
    # A hash of the rows, and of what is made of them: hours are compared without their words.
    times = [f"arrow_cast({quoted(c)}, 'Int64')" for c in TIMES]
    counts = ["level", "__ongoing", "__reports", "__hours", "__complete", "__other", "count"]
    others = [*map(quoted, [*counts, *key, *read]), *map(_least, read), *map(_most, read)]
    parts = [f"cast({one} AS varchar)" for one in times]
    parts += [f"coalesce(cast({one} AS varchar), 'null')" for one in others]
    words = [VERSION, values]
    values["made_of"] = hashed(*joined([text(fingerprint(words)), *parts], "/"))
    columns = ", ".join(f"{values[column]} AS {quoted(column)}" for column in Table.load(NAME).columns)
    return f"SELECT {columns} FROM ({spells})"


def _title(
    stream: str, block: str, name: str, alert: Alert, key: str | None, level: str, extremes: list[str]
) -> str:
    """The title as SQL: the one of the stream file, with the figures of the last report; else key, hours and
    the extremes of the figures."""
    if alert.title is not None:
        return title_of(stream, alert.title, TIMES)
    span = joined([shown("__first", TIMES, to="minute"), shown("window_end", TIMES, to="minute")], " to ")
    of = [key] if key else []
    parts = joined(
        [text(f"{stream}: {name} of {block}"), *of, f"concat({', '.join(span)})", level, *extremes], ", "
    )
    return one_line(f"concat({', '.join(parts)})")
