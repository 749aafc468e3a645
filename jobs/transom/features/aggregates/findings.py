"""Alerts as findings.

A spell is one finding: the rows of `aggregates` of a level and key that meet an alert in consecutive hours.
If the slide of the level is longer than an hour, hours that are a slide apart are consecutive.
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
from transom.features.aggregates import fingerprints
from transom.features.aggregates.output_columns import alert_conditions, alert_figures
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
from transom.findings.text import as_range, as_short, as_text, as_time, key_text
from transom.ledger.input_hashes import fingerprint
from transom.spec.stream import Stream
from transom.storage.tables import literal

AGGREGATES, HOURS, COMPLETE, OUTDATED = "__aggregates", "__hours", "__complete", "__outdated"
"""Columns of a summary: the number of aggregates, the number of their hours, whether all are complete, and
whether some were computed from another version of the stream file."""


@dataclass(frozen=True, kw_only=True)
class AlertFindings(FindingTemplate):
    """The findings of an alert. The default title has the alert, key, hours, level and values.

    Attributes:
        alert: the name of the alert.
        rule: its condition.
        figures: the columns that the condition reads, without those that `alerts` always has.
        levels: range and slide of each level as text, the finest first.
        apart: the maximal time between consecutive hours of each level, in microseconds.
        shape: a hash of the alert's fingerprint.
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

    @property
    def grouped(self) -> tuple[str, ...]:
        """Level and key."""
        return ("level", *self.key)

    def summarize(
        self, rows: pa.Table, entries: Mapping[datetime, PartitionState], last: datetime
    ) -> pa.Table:
        """Return the last aggregate of each spell, with the minimum and maximum of the spell's `figures`."""
        states = ((hour, entries.get(hour)) for hour in pc.unique(rows["hour"]).to_pylist())
        outdated = [
            micros(hour)
            for hour, state in states
            if state is not None and (state.input_hashes or {}).get("specification") != self.shape
        ]
        keys, _ = encode_keys(rows, ["level", *self.key])
        hours = int64s(rows["hour"])
        order = np.lexsort((int64s(rows["window_end"]), hours, keys))
        rows, hours = rows.take(order), hours[order]
        # Each hour of a level that the stream no longer has is a spell.
        apart = np.append(self.apart, 0)[np.minimum(int64s(rows["level"]), len(self.apart))]
        new_key, since = np.diff(keys[order], prepend=-1) != 0, np.diff(hours, prepend=0)
        begins = new_key | (since > apart)
        starts = np.flatnonzero(begins)
        ends = np.append(starts, len(rows))[1:] - 1
        spells = rows.append_column("__spell", pa.array(np.cumsum(begins)))
        extremes = spells.group_by("__spell", use_threads=False).aggregate(
            [(name, extreme) for name in self.figures for extreme in ("min", "max")]
        )
        complete = rows["complete"].fill_null(False).to_numpy()
        rows = rows.take(ends).drop(["hour", "complete"])
        summary = {
            HOUR: as_type(hours[ends], MOMENT),
            FIRST_HOUR: as_type(hours[starts], MOMENT),
            ONGOING: hours[ends] + apart[ends] - HOUR_LENGTH >= micros(last),
            AGGREGATES: ends - starts + 1,
            HOURS: np.add.reduceat(new_key | (since > 0), starts, dtype=np.int64),
            COMPLETE: np.logical_and.reduceat(complete, starts),
            OUTDATED: np.logical_or.reduceat(np.isin(hours, outdated), starts),
            **{name: rows[name] for name in rows.column_names},
            **{f"__{name}": extremes[name] for name in extremes.drop(["__spell"]).column_names},
        }
        first = pc.strftime(summary[FIRST_HOUR], "%Y-%m-%dT%H:%M")
        columns = (column.to_pylist() for column in (rows["level"], first, *map(rows.column, self.key)))
        identities = (
            "/".join([self.alert, str(level), hour, *map(_delimited, key)])
            for level, hour, *key in zip(*columns, strict=True)
        )
        return pa.table({IDENTITY: pa.array(identities, pa.string()), **summary})

    def title(self, row: Row) -> str:
        """Return the title without the stream's name."""
        if self.titled:
            return super().title(row)
        key = [key_text(self.key, row) or ""] if self.key else []
        span = f"{as_time(row[FIRST_HOUR], 'minutes')} to {as_time(row['window_end'], 'minutes')}"
        start = f"{self.alert} of {self.block}"
        return ", ".join([start, *key, span, self._level(row), *self._extremes(row)])

    def evidence(self, row: Row) -> list[str]:
        """Return the rule, the number of aggregates that met it, and reasons to doubt them."""
        met = f"{counted(row[AGGREGATES], 'report')} met it in {counted(row[HOURS], 'hour')}"
        last = ", ".join(f"{column} {as_short(row[column])}" for column in (*self.figures, "count"))
        stale = "some of the reports were made by an earlier form of the stream file; their hours are stale"
        return [
            f"the rule: {self.rule}",
            f"level {row['level']}, {self._level(row)}: {met}",
            ", ".join(self._extremes(row)),
            f"the last one, to {as_time(row['window_end'])}: {last}",
            "" if row[COMPLETE] else "some of the reports are of hours that are incomplete",
            stale if row[OUTDATED] else "",
        ]

    def _level(self, row: Row) -> str:
        return self.levels[row["level"]] if row["level"] < len(self.levels) else ""

    def _extremes(self, row: Row) -> list[str]:
        return [f"{name} {as_range(row[f'__{name}_min'], row[f'__{name}_max'])}" for name in self.figures]


def _delimited(value: object) -> str:
    """Return a value with its length, so that joined values are unambiguous; `-` for null."""
    text = as_text(value)
    return "-" if value is None else f"{len(text.encode())}:{text}"


def templates(stream: Stream) -> Iterator[AlertFindings]:
    """Yield the findings of each alert of a stream."""
    for name, block in stream.blocks(Aggregation).items():
        levels = block.levels[::-1]
        # In hours, rounded up.
        gaps = (max(1, -(-microseconds(level.slide) // HOUR_LENGTH)) for level in levels)
        apart = tuple(gap * HOUR_LENGTH for gap in gaps)
        names = tuple(f"{format_duration(of.range)} every {format_duration(of.slide)}" for of in levels)
        conditions = alert_conditions(stream, name)
        for alert, spec in block.alert.items():
            read = tuple(f for f in alert_figures(stream, name) if f in conditions[alert].columns)
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
                levels=names,
                apart=apart,
                shape=fingerprint(fingerprints.alerts(stream, name)),
            )


SOURCE = FindingSource("aggregates", "alerts", "alert", templates)
