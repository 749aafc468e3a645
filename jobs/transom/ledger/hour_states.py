"""The worst state of each stage in each hour, in arrays: years of hours take milliseconds."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from transom.core.exact_sums import Bools, Int64s
from transom.core.intervals import UNKNOWN_HOUR, number_of
from transom.core.partitions import SOURCE_STAGE
from transom.spec.external_source import EVENTS
from transom.storage.data_files import hours_of
from transom.storage.tables import Table

Ranks = npt.NDArray[np.uint8]
"""Indexes of `WORST`."""
WORST = (
    "damaged",
    "writing",
    "quarantined",
    "blocked",
    "stale",
    "incomplete",
    "missing",
    "published",
    "empty",
    "none",
)
"""The states, worst first: a stage has the worst state of its tables, and a cell the worst of its hours."""
RANKS: Mapping[str, int] = {state: rank for rank, state in enumerate(WORST)}
COLUMNS = ("stage", "block", "table", "hour", "status", "complete", "requested", "rows", "reason")
"""The columns of `ledger` that decide the states."""
_UNKNOWN = number_of(UNKNOWN_HOUR)


class HourStates:
    """The worst state of each stage in each required hour.

    Args:
        rows: the columns `COLUMNS` of `ledger`, a row for each partition.

    Attributes:
        hours: the required hours since the epoch and `UNKNOWN_HOUR`, ascending.
        required: which of them are required.
        without_events: which of them `events` has, without a row.
        without_files: which of them `files` has, without a row.
        newest: the last required hour with an event; None if there is none.
    """

    def __init__(self, rows: pa.Table) -> None:
        # DataFusion returns text as string views.
        schema = Table.load("ledger").arrow_schema()
        rows = rows.cast(pa.schema([schema.field(name) for name in rows.column_names])).combine_chunks()
        numbers = hours_of(rows["hour"])
        stages = _encoded(rows["stage"])
        names = stages.dictionary.to_pylist()
        codes = stages.indices.to_numpy()
        of_source = pc.equal(rows["stage"], SOURCE_STAGE)
        requested = _bools(pc.and_(rows["requested"], of_source))
        required = np.unique(numbers[requested])
        self.hours: Int64s = np.union1d(required, [_UNKNOWN])
        self.required: Bools = np.isin(self.hours, required)
        ranks = _ranks(rows)
        places = np.minimum(np.searchsorted(self.hours, numbers), len(self.hours) - 1)
        inside = self.hours[places] == numbers
        worst = np.full((len(names), len(self.hours)), RANKS["missing"], dtype=np.uint8)
        # A computed hour is not missing.
        worst[codes[inside], places[inside]] = RANKS["published"]
        np.minimum.at(worst, (codes[inside], places[inside]), ranks[inside])
        self._worst: dict[str, Ranks] = dict(zip(names, worst, strict=True))
        self._missing: Ranks = np.full(len(self.hours), RANKS["missing"], dtype=np.uint8)

        def counts_of(table: str) -> Int64s:
            which = inside & _bools(pc.and_(of_source, pc.equal(rows["table"], table)))
            counts: Int64s = np.full(len(self.hours), -1, dtype=np.int64)
            counts[places[which]] = rows["rows"].to_numpy()[which]
            return counts

        counts = counts_of(EVENTS)
        self.without_events: Bools = counts == 0
        self.without_files: Bools = counts_of("files") == 0
        known = self.hours[(counts > 0) & self.required & (self.hours != _UNKNOWN)]
        self.newest: int | None = known[-1].item() if len(known) else None
        troubled = inside & (ranks < RANKS["published"])
        rows = rows.append_column("number", pa.array(numbers)).append_column("rank", pa.array(ranks))
        rows = rows.filter(pc.and_(pa.array(troubled), pc.is_valid(rows["reason"])))
        # So that the first reason does not depend on the order of rows in the files.
        self._reasons = rows.sort_by([(name, "ascending") for name in ("block", "table", "number")])

    def of(self, stage: str) -> Ranks:
        """Return the worst state of a stage in each hour."""
        return self._worst.get(stage, self._missing)

    def of_unknown_hour(self, stage: str) -> Bools:
        """Return which hours are `UNKNOWN_HOUR`, if its files are in trouble: they may belong to any hour."""
        ranks = self.of(stage)
        in_trouble = (ranks < RANKS["published"]) & (ranks != RANKS["missing"])
        which: Bools = in_trouble & (self.hours == _UNKNOWN)
        return which

    def reasons(self, stage: str, first: int, end: int) -> dict[tuple[int, int], str]:
        """Return why hours of a stage are not published or incomplete, by hour and state.

        Args:
            stage: the stage.
            first: the first hour; `UNKNOWN_HOUR` is included.
            end: the end of the hours, exclusive.
        """
        rows = self._reasons
        number = rows["number"]
        within = pc.and_(pc.greater_equal(number, first), pc.less(number, end))
        chosen = pc.and_(pc.equal(rows["stage"], stage), pc.or_(within, pc.equal(number, _UNKNOWN)))
        rows = rows.filter(chosen)
        reasons: dict[tuple[int, int], str] = {}
        for *key, reason in zip(
            *(rows[name].to_pylist() for name in ("number", "rank", "reason")), strict=True
        ):
            reasons.setdefault((key[0], key[1]), reason)
        return reasons


def _ranks(rows: pa.Table) -> Ranks:
    """Return the state of each partition. Hours that retention has deleted count as published."""
    statuses = _encoded(rows["status"])
    of_status = np.array([RANKS.get(name, RANKS["published"]) for name in statuses.dictionary.to_pylist()])
    ranks: Ranks = of_status.astype(np.uint8)[statuses.indices.to_numpy()]
    lacking = pc.and_(pc.equal(rows["status"], "published"), pc.invert(rows["complete"]))
    ranks[_bools(lacking)] = RANKS["incomplete"]
    return ranks


def _encoded(column: pa.ChunkedArray) -> pa.DictionaryArray:
    return column.combine_chunks().dictionary_encode()


def _bools(values: pa.ChunkedArray) -> Bools:
    result: Bools = values.to_numpy()
    return result
