"""Alerts as findings.

Reports of one alert, level and key that meet it in hours that follow each other are one finding, however the
hours were cut into runs. At a level whose slide is longer than an hour, hours that lie a slide apart follow
each other.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transom.arrays.arrow import as_type, encode_keys, int64s
from transom.core.durations import format_duration, microseconds
from transom.core.intervals import HOUR_LENGTH, micros
from transom.core.partitions import PartitionState
from transom.core.terminal import counted
from transom.features.aggregates import alerts, fingerprints
from transom.features.aggregates.alerts import figures
from transom.features.aggregates.spec import Aggregation
from transom.findings.source import (
    FIRST_HOUR,
    HOUR,
    IDENTITY,
    MOMENT,
    ONGOING,
    FindingSource,
    FindingTemplate,
    Row,
)
from transom.findings.text import as_range, as_text, as_time, key_text
from transom.ledger.staleness import fingerprint
from transom.spec.stream import Stream
from transom.storage.tables import literal

REPORTS, HOURS, COMPLETE, OUTDATED = "__reports", "__hours", "__complete", "__outdated"
"""Of a summary: how many reports, of how many hours, whether all are complete, whether some were made by
another form of the stream's file."""


@dataclass(frozen=True, kw_only=True)
class AlertFindings(FindingTemplate):
    """How the reports of an alert are put in words; without a title it is key, hours and figures.

    Attributes:
        alert: the name of the alert.
        rule: its condition.
        figures: the columns that the condition reads beside those of each report.
        levels: the windows of each level, the finest first.
        apart: how far apart the hours lie in which each level reports, at most, in microseconds.
        shape: a hash of what shapes the rows.
    """

    times: tuple[str, ...] = ("window_start", "window_end")
    start: str = FIRST_HOUR
    end: str = "window_end"
    alert: str
    rule: str
    figures: tuple[str, ...]
    levels: tuple[str, ...]
    apart: tuple[int, ...]
    shape: str

    def summarize(
        self, rows: pa.Table, entries: Mapping[datetime, PartitionState], last: datetime
    ) -> pa.Table:
        """Return the last report of each spell, with the least and the largest of each figure."""
        known = {hour: entries.get(hour) for hour in pc.unique(rows["hour"]).to_pylist()}
        outdated = [
            micros(hour)
            for hour, entry in known.items()
            if entry is not None and (entry.input_hashes or {}).get("specification") != self.shape
        ]
        keys, _ = encode_keys(rows, ["level", *self.key])
        hours = int64s(rows["hour"])
        order = np.lexsort((int64s(rows["window_end"]), hours, keys))
        rows, hours = rows.take(order), hours[order]
        # Each hour of a level that the stream no longer has is a spell.
        apart = np.append(self.apart, 0)[np.minimum(int64s(rows["level"]), len(self.apart))]
        other_key, since = np.diff(keys[order], prepend=-1) != 0, np.diff(hours, prepend=0)
        begins = other_key | (since > apart)
        starts = np.flatnonzero(begins)
        ends = np.append(starts, len(rows))[1:] - 1
        extremes = [(name, least_or_most) for name in self.figures for least_or_most in ("min", "max")]
        spells = rows.append_column("__spell", pa.array(np.cumsum(begins))).group_by(
            "__spell", use_threads=False
        )
        of_spells = spells.aggregate(extremes).drop(["__spell"])
        complete = rows["complete"].fill_null(False).to_numpy()
        rows = rows.take(ends).drop(["hour", "complete"])
        summary = {
            HOUR: as_type(hours[ends], MOMENT),
            FIRST_HOUR: as_type(hours[starts], MOMENT),
            ONGOING: hours[ends] + apart[ends] - HOUR_LENGTH >= micros(last),
            REPORTS: ends - starts + 1,
            HOURS: np.add.reduceat(other_key | (since > 0), starts, dtype=np.int64),
            COMPLETE: np.logical_and.reduceat(complete, starts),
            OUTDATED: np.logical_or.reduceat(np.isin(hours, outdated), starts),
            **{name: rows[name] for name in rows.column_names},
            **{f"__{name}": of_spells[name] for name in of_spells.column_names},
        }
        first = pc.strftime(summary[FIRST_HOUR], "%Y-%m-%dT%H:%M")
        named = (column.to_pylist() for column in (rows["level"], first, *map(rows.column, self.key)))
        identities = (
            "/".join([self.alert, str(level), hour, *map(_delimited, key)])
            for level, hour, *key in zip(*named, strict=True)
        )
        return pa.table({IDENTITY: pa.array(identities, pa.string()), **summary})

    def title(self, row: Row) -> str:
        """Return what is the matter, without the stream's name."""
        if self.titled:
            return super().title(row)
        key = [key_text(self.key, row) or ""] if self.key else []
        span = f"{as_time(row[FIRST_HOUR], 'minutes')} to {as_time(row['window_end'], 'minutes')}"
        return ", ".join(
            [f"{self.alert} of {self.block}", *key, span, self._level(row), *self._extremes(row)]
        )

    def evidence(self, row: Row) -> list[str]:
        """Return the rule, the reports that met it, and what lessens their worth."""
        met = f"{counted(row[REPORTS], 'report')} met it in {counted(row[HOURS], 'hour')}"
        last = ", ".join(f"{column} {as_text(row[column])}" for column in (*self.figures, "count"))
        return [
            f"the rule: {self.rule}",
            f"level {row['level']}, {self._level(row)}: {met}",
            ", ".join(self._extremes(row)),
            f"the last one, to {as_time(row['window_end'])}: {last}",
            "" if row[COMPLETE] else "some of the reports are of hours that are incomplete",
            "some of the reports were made by an earlier form of the stream file; their hours are stale"
            if row[OUTDATED]
            else "",
        ]

    def _level(self, row: Row) -> str:
        return self.levels[row["level"]] if row["level"] < len(self.levels) else ""

    def _extremes(self, row: Row) -> list[str]:
        return [f"{name} {as_range(row[f'__{name}_min'], row[f'__{name}_max'])}" for name in self.figures]


def _delimited(value: object) -> str:
    """A value with its length, so that several do not run into each other; null is no text."""
    text = as_text(value)
    return "-" if value is None else f"{len(text.encode())}:{text}"


def templates(stream: Stream) -> Iterator[AlertFindings]:
    """Yield the alerts of a stream."""
    for name, block in stream.blocks(Aggregation).items():
        levels = list(reversed(block.levels))
        conditions = alerts.conditions(stream, name)
        for alert, spec in block.alert.items():
            read = tuple(figure for figure in figures(stream, name) if figure in conditions[alert].columns)
            yield AlertFindings(
                block=name,
                severity=spec.severity,
                titled=spec.title or "",
                columns=("level", "window_start", "window_end", "count", *read, "complete"),
                condition=f"alert = {literal(alert)}",
                key=tuple(block.key),
                alert=alert,
                rule=" ".join(spec.when.split()),
                figures=read,
                levels=tuple(
                    f"{format_duration(of.range)} every {format_duration(of.slide)}" for of in levels
                ),
                apart=tuple(max(1, -(-microseconds(of.slide) // HOUR_LENGTH)) * HOUR_LENGTH for of in levels),
                shape=fingerprint(fingerprints.alerts(stream, name)),
            )


SOURCE = FindingSource("aggregates", "alerts", "alert", templates)
