"""The table `frequencies`: the most frequent items in the window of each hour, and the watched ones.

The candidates of a window are the items that its hours have kept. Hours form a chain, as each needs the heavy
items of the previous report.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from transom.arrays.arrow import build_batches
from transom.core.exact_sums import Int64s
from transom.core.intervals import HOUR_LENGTH
from transom.engine.hour_chains import ChainTask, hour_runs
from transom.engine.hours import extend_back
from transom.features.frequency.algorithm.top_items import NO_ITEMS
from transom.features.frequency.check_metrics import TOTALS
from transom.features.frequency.resolve import FrequencyBlock
from transom.features.frequency.windows import HEAVY, Hours, rows_of_windows
from transom.features.items.columns import columns_by_name
from transom.features.items.tables import item_schema
from transom.ledger.stage import BlockTask, StepRequest
from transom.ledger.task_counters import TaskCounters
from transom.storage.block_rows import BlockRows

TABLE = "frequencies"
NONE = -1
"""The time `since` of an item that is not heavy."""


def frequencies_of(request: StepRequest, block: FrequencyBlock, targets: Sequence[datetime]) -> BlockTask:
    """Return the frequencies of each target hour of a block."""
    runs, stored = hour_runs(request, block.name, TABLE, targets, block.hours)
    columns = {of: of for of in ("hour", "since", *block.item)}
    heavy = BlockRows(
        TABLE, block.name, stored, columns, {"row_kind": (HEAVY, "string")}, {"state": ["partial"]}
    )
    rows = rows_of_windows(request.pins, block, extend_back(targets, block.back), targets, [heavy])
    reporter = FrequencyReporter(block, runs, item_schema(TABLE, block.item))
    return BlockTask(block.name, rows, compute_counting=reporter, by=())


@dataclass(frozen=True)
class FrequencyReporter(ChainTask):
    """Reports the items of a block hour by hour."""

    block: FrequencyBlock

    def rows(self, table: pa.Table, tally: TaskCounters) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the hours, from all rows of their windows."""
        hours = Hours(self.block, table)
        last: dict[int | None, Mapping[int, int]] = {}
        for run in self.runs:
            heavy = (hours.heavy | last).get(run.ahead, {})
            for hour in run.hours:
                rows, heavy = self._report(hours, hour, heavy)
                tally.add(TOTALS, [hour], [hours.totals_off(hour)])
                yield from rows
            last = {run.until - 1: heavy}

    def _report(
        self, hours: Hours, hour: int, heavy: Mapping[int, int]
    ) -> tuple[Iterator[pa.RecordBatch], dict[int, int]]:
        """Return an hour's rows, and the time since when each of its heavy items is heavy.

        Args:
            hours: the hours and their items.
            hour: the number of the hour.
            heavy: the same times of the previous hour.
        """
        block, end = self.block, (hour + 1) * HOUR_LENGTH
        # Vanilla still counts an item after it has left the window.
        previous = np.array([*heavy], dtype=np.int64) if block.variant == "vanilla" else NO_ITEMS
        window = hours.window(hour, previous).ranked()
        rank = np.arange(1, len(window.item) + 1)
        # Exact: the product is a fraction.
        is_heavy = window.estimate >= math.ceil(window.records * block.min_share)
        shown = (rank <= block.top) | np.isin(window.item, hours.watched) | is_heavy
        now = {item: heavy.get(item, end) for item in window.item[is_heavy].tolist()}
        since = np.array([now.get(item, NONE) for item in window.item[shown].tolist()], dtype=np.int64)
        change = np.full(len(since), None, dtype=object)
        change[since != NONE], change[since == end] = "stays", "entered"
        rows = self._rows(hours, hour, window.item[shown], since, {
            "rank": rank[shown],
            "estimate": window.estimate[shown],
            "low": window.low[shown],
            "high": window.high[shown],
            "window_records": window.records,
            "error_bound": None if window.margin is None else window.margin[shown],
            "max_unreported": max(window.unseen, int(window.high[~shown].max(initial=0))),
            "change": change.tolist(),
            "state": np.where(since == NONE, np.array(None), "partial").tolist(),
            "entered": (since == end).astype(np.int64),
        })  # fmt: skip
        gone = np.array([pair for pair in heavy.items() if pair[0] not in now], np.int64).reshape(-1, 2)
        left = {"change": "left", "state": "final", "entered": 0}
        return chain(rows, self._rows(hours, hour, gone[:, 0], gone[:, 1], left)), now

    def _rows(
        self, hours: Hours, hour: int, item: Int64s, since: Int64s, columns: dict[str, Any]
    ) -> Iterator[pa.RecordBatch]:
        name = self.block.name.encode()
        ids = [
            None if time == NONE else sha256(b"%b/%d/%b" % (name, time, key)).hexdigest()[:32]
            for key, time in zip(hours.keys_of(item), since.tolist(), strict=True)
        ]
        common = {
            "hour": hour * HOUR_LENGTH,
            "window_end": (hour + 1) * HOUR_LENGTH,
            "watched": np.isin(item, hours.watched),
            "spell_id": pa.array(ids, pa.string()),
            "since": pa.array(since, mask=since == NONE),
        }
        arrays = columns_by_name(hours.items.take(pa.array(item))) | columns | common
        yield from build_batches(len(item), arrays, self.schema)
