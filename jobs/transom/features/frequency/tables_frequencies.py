"""How often the most frequent items were seen in each hour's window, and those that are watched.

A window is a sum of the matrices of hours, or what cells hold; which items are asked for is known from those
that each hour has kept. Of an hour before the targets it is read which items were heavy: a chain."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F

from transom.arrays.arrow import build_batches, concat_batches
from transom.core.exact_sums import Int64s
from transom.core.intervals import HOUR_LENGTH
from transom.engine.hour_chains import HourRun, hour_runs
from transom.engine.hours import extend_back, hour_number, quoted
from transom.features.frequency.algorithm.top_items import NO_ITEMS
from transom.features.frequency.checks import TOTALS
from transom.features.frequency.resolve import FrequencyBlock
from transom.features.frequency.windows import HEAVY, Hours, rows_of_windows
from transom.features.items.tables import item_table
from transom.ledger.stage import BlockTask, StepRequest, StepResult
from transom.ledger.task_counters import TaskCounters

TABLE = "frequencies"
NONE = -1


def frequencies_of(request: StepRequest, blocks: Mapping[str, FrequencyBlock]) -> StepResult:
    """What every block's target hours tell."""
    found = []
    for name, targets in request.targets.items():
        block = blocks[name]
        rows = rows_of_windows(request.pins, block, extend_back(targets, block.back), targets)
        stretches, stored = hour_runs(request, name, TABLE, targets, block.hours)
        if stored:
            earlier = request.pins.read(TABLE, stored)
            earlier = earlier.where((F.col("block") == name) & (F.col("state") == "partial"))
            since = F.unix_micros("since").alias("since")
            earlier = earlier.select(
                hour_number(), F.lit(HEAVY).alias("row_kind"), since, *quoted(block.item)
            )
            rows = rows.unionByName(earlier, allowMissingColumns=True)
        made = FrequencyReporter(block, stretches, schema_of(block))
        found.append(BlockTask(name, rows.repartition(1), compute_counting=made))
    return StepResult(found)


@dataclass(frozen=True)
class FrequencyReporter:
    """What a task tells of the hours of a block.

    Attributes:
        ranges: the hours that are wanted.
        schema: of what comes out.
    """

    block: FrequencyBlock
    ranges: Sequence[HourRun]
    schema: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch], tally: TaskCounters) -> Iterator[pa.RecordBatch]:
        """The rows of the wanted hours."""
        table = concat_batches(batches)
        if table is None:
            return
        hours = Hours.of(self.block, table)
        last: tuple[int, dict[int, int]] | None = None
        for stretch in self.ranges:
            heavy = stretch.state(last, hours.heavy, {})
            for hour in stretch.hours:
                rows, heavy = self._output(hours, hour, heavy)
                tally.add(TOTALS, [hour], [hours.totals_off(hour)])
                yield from rows
                last = hour, heavy

    def _output(
        self, hours: Hours, hour: int, heavy: dict[int, int]
    ) -> tuple[Iterator[pa.RecordBatch], dict[int, int]]:
        """An hour's rows, and since when which items are heavy.

        Args:
            heavy: the same of the report before.
        """
        block, end = self.block, (hour + 1) * HOUR_LENGTH
        # What vanilla has counted of an item stays, whether or not the window has it.
        before = np.array([*heavy], dtype=np.int64) if block.variant == "vanilla" else NO_ITEMS
        window = hours.window(hour, before).ranked()
        item, low, high = window.seen.item, window.seen.low, window.seen.high
        # Exactly, and beyond 64 bits on the way.
        is_heavy = window.estimate >= math.ceil(window.records * block.min_share)
        rank = np.arange(1, len(item) + 1)
        told = (rank <= block.top) | np.isin(item, hours.watched) | is_heavy
        now = {one: heavy.get(one, end) for one in item[told & is_heavy].tolist()}
        since = np.array([now.get(one, NONE) for one in item[told].tolist()], dtype=np.int64)
        change = np.full(len(since), None, dtype=object)
        change[since != NONE], change[since == end] = "stays", "entered"
        rows = self._rows(hours, hour, item[told], since, {
            "rank": rank[told],
            "estimate": window.estimate[told],
            "low": low[told],
            "high": high[told],
            "window_records": window.records,
            "error_bound": None if window.margin is None else window.margin[told],
            "max_unreported": max(window.seen.unseen, int(high[~told].max(initial=0))),
            "change": change.tolist(),
            "state": np.where(since == NONE, np.array(None), "partial").tolist(),
            "entered": (since == end).astype(np.int64),
        })  # fmt: skip
        gone = {one: since for one, since in heavy.items() if one not in now}
        items, sinces = (np.array([*some], dtype=np.int64) for some in (gone.keys(), gone.values()))
        left = self._rows(hours, hour, items, sinces, {
            "change": "left",
            "state": "final",
            "entered": 0,
        })  # fmt: skip
        return chain(rows, left), now

    def _rows(
        self, hours: Hours, hour: int, item: Int64s, since: Int64s, columns: dict[str, Any]
    ) -> Iterator[pa.RecordBatch]:
        many = len(item)
        of = hours.of_item.take(pa.array(item))
        ids = [None if s == NONE else spell_id(self.block.name, key, s) for key, s in
               zip(hours.keys_of(item), since.tolist(), strict=True)]  # fmt: skip
        given = {
            "hour": hour * HOUR_LENGTH,
            "window_end": (hour + 1) * HOUR_LENGTH,
            **{name: of[name] for name in of.column_names},
            **columns,
            "watched": np.isin(item, hours.watched),
            "spell_id": pa.array(ids, pa.string()),
            "since": pa.array(since, mask=since == NONE),
        }
        yield from build_batches(many, given, self.schema)


def spell_id(block: str, key: bytes, since: int) -> str:
    """An item that is heavy since a moment, as a hash."""
    text = b"/".join([block.encode(), str(since).encode(), key])
    return sha256(text).hexdigest()[:32]


def schema_of(block: FrequencyBlock) -> pa.Schema:
    """Of the rows of a block."""
    return item_table(TABLE, [block.item]).block_schema()
