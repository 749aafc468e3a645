"""Suggest first blocks for a draft: a key, a block of aggregates, a tolerance for rejected lines."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from transom.cli.init.infer_path import identifier
from transom.cli.init.infer_time import is_time_name, rank
from transom.cli.init.infer_types import NO_FIGURE
from transom.cli.init.try_draft import TOLERATED, DraftTrial
from transom.spec.stream import Stream

LOOSEST = 0.1
"""Largest tolerance for rejected lines that a draft declares."""
LONG = "RANGES 24 HOURS, 1 HOUR SLIDES 1 HOUR, 1 HOUR"
SHORT = "RANGES 1 HOUR, 5 MINUTES SLIDES 5 MINUTES, 5 MINUTES"
"""Levels for a log of several days, and for one of minutes."""
KEYS = (
    "orig_h", "client", "client_ip", "srcip", "src", "src_ip", "call", "source_ip", "remote_addr", "device",
    "sensor", "station", "host", "hostname", "user", "user_name", "principal", "account", "site", "process",
    "comm", "service", "name", "node", "ip",
)  # fmt: skip
NO_KEY = re.compile(r"message|msg|text|.*_text|extension|arguments|request|agent|referer|before")
"""Names of columns with free text, which are no keys."""
ADDED = (
    r"bytes?(_|$)|octets?(_|$)",
    r"(^|_)(size|length|len|sent|received|rcvd|volume)(_|$)",
    r"(pkts?|packets?)(_|$)",
    r"(^|_)(counts?|amount|total|quantity|qty|requests|hits|errors|cost|revenue|energy|k?wh)(_|$)",
    r"(^|_)(rain|rainfall|precip|precipitation)(_|$)",
    r"(^|_)(duration|dur|elapsed)(_|$)",
)
"""Names of amounts that can be summed, in order of preference."""
ID = re.compile("(^|_)(id|uuid|guid|uid)$")
MIN_DISTINCT = 0.9
"""Minimum share of distinct values of a column that identifies events."""
SPARSE = 0.1
"""Share of events without a value above which a whole file may have no value."""


@dataclass(frozen=True)
class ColumnValues:
    """Statistics of one column over the sampled events.

    Attributes:
        structured: whether all texts are JSON lists or objects.
    """

    name: str
    type: str
    nulls: int
    distinct: int
    structured: bool = False


def column_values(stream: Stream, trial: DraftTrial) -> list[ColumnValues]:
    """Return the statistics of each column that is read."""
    statistics = []
    names = [name for name in stream.event_columns if name in trial.events.column_names]
    for name, values in zip(names, trial.events.select(names).itercolumns(), strict=True):
        type_ = stream.event_columns[name].type
        distinct = pc.count_distinct(values, mode="only_valid").as_py()
        texts = values if type_ == "string" else pa.array([""])
        structured = pc.all(pc.match_substring_regex(texts, r'^(\[|\{").*[\]}]$|^\{\}$')).as_py() is True
        statistics.append(ColumnValues(name, type_, values.null_count, distinct, structured))
    return statistics


def repeats(columns: Sequence[ColumnValues], trial: DraftTrial) -> tuple[str, int] | None:
    """Return a column that identifies events, and the number of events that repeat an identifier; None if no
    column does, or no identifier repeats."""
    rows = trial.events.select(["event_time", *(column.name for column in columns)])
    different = rows.group_by(rows.column_names).aggregate([]).num_rows
    events = rows.num_rows
    fit = [
        column
        for column in columns
        if ID.search(column.name) and not column.nulls and column.distinct < events
        if column.distinct >= MIN_DISTINCT * events or column.distinct == different
    ]
    column = max(fit, key=lambda column: column.distinct, default=None)
    return None if column is None else (column.name, events - column.distinct)


def first_blocks(stream: Stream, columns: Sequence[ColumnValues], trial: DraftTrial) -> dict[str, Any]:
    """Return a key, a block of aggregates, and a tolerance if the default allows too few rejected lines."""
    events = trial.events.num_rows
    key = _key(columns, events)
    # Spark computes derived columns, so they have no values yet.
    derived = [ColumnValues(name, stream.event_types[name], 0, 2) for name in stream.derived]
    figure = _figure([*columns, *derived], events)
    measures = {"n": "count"}
    if figure is not None:
        function = "sum" if _added(figure) < len(ADDED) else "mean"
        name = f"{'total' if function == 'sum' else function}_{figure}"
        measures[identifier(name, [*stream.event_columns, "n"])] = f"{function}({figure})"
    first, last = trial.extent
    blocks: dict[str, Any] = {"key": [key]} if key is not None else {}
    levels = LONG if last - first > timedelta(hours=12) else SHORT
    blocks["aggregates"] = {"activity": {"measures": measures, "levels": levels}}
    at_most = tolerance_of(trial)
    if at_most is not None and at_most <= LOOSEST:
        blocks["checks"] = {"rejected_share": {"at_most": at_most}}
    return blocks


def tolerance_of(trial: DraftTrial) -> float | None:
    """Return a tolerance with which such files pass; None if the default is enough."""
    return min(1.0, round(trial.share * 1.5 + 0.005, 2)) if trial.share > TOLERATED else None


def _key(columns: Sequence[ColumnValues], events: int) -> str | None:
    """Return a column that is a useful key: values repeat, and no event lacks one."""
    fit = [
        column.name
        for column in columns
        if column.type == "string" and not column.nulls and not column.structured
        if 2 <= column.distinct <= max(2, events // 2) and NO_KEY.fullmatch(column.name) is None
    ]
    # If ranks are equal, the first column.
    return min(fit, key=lambda name: rank(name, KEYS), default=None)


def _figure(columns: Sequence[ColumnValues], events: int) -> str | None:
    """Return a column of amounts to sum, else one of measurements to average; None if there is none.

    A column of integers must be named as an amount, as it may be a code, a time or an identifier. Columns
    that many events lack come last: a file without any value of a used column would be quarantined.
    """
    fit = [
        column
        for column in columns
        if column.type in ("integer", "number") and column.distinct > 1
        if not NO_FIGURE.search(column.name) and not is_time_name(column.name)
        if column.type == "number" or _added(column.name) < len(ADDED)
    ]
    fit.sort(key=lambda column: (column.nulls > SPARSE * events, _added(column.name), column.nulls))
    return fit[0].name if fit else None


def _added(name: str) -> int:
    """Return the position of the first pattern of `ADDED` in a name; their number if there is none."""
    return next((place for place, form in enumerate(ADDED) if re.search(form, name)), len(ADDED))
