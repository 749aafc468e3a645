"""The items that an hour's report names, in the form in which people read it."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from transom.arrays.arrow import build_batches, concat_batches
from transom.core.intervals import HOUR_LENGTH
from transom.engine.hours import quoted
from transom.features.items.bytes import rows_of
from transom.features.items.columns import is_among
from transom.features.items.tables import item_table
from transom.features.persistence import tables_tuples as tuples
from transom.features.persistence.algorithm.vectorised import WATCHED
from transom.features.persistence.resolve import PersistenceBlock
from transom.ledger.stage import BlockTask, StepRequest, StepResult

TABLE = "persistent_items"
UNKNOWN = ord("?")


def persistent_items_of(request: StepRequest, blocks: Mapping[str, PersistenceBlock]) -> StepResult:
    """What every block's target hours tell."""
    shares = []
    for name, targets in request.targets.items():
        block = blocks[name]
        rows = request.pins.read(tuples.TABLE, targets)
        rows = rows.where((F.col("block") == name) & F.col("row_kind").isin(tuples.ITEM, tuples.EXITED))
        rows = rows.where(~is_among(block.item, block.ignored))
        if block.known_table is not None:
            known = request.pins.read_filler(block.known_table, targets)
            read = [column.name for column in block.known_table.columns]
            rows = rows.join(known.select(*quoted(read)).distinct(), read, "left_anti")
        shares.append(BlockTask(name, _to_output(rows, block), compute=SlotRenderer(block, _schema(block))))
    return StepResult(shares)


def _to_output(rows: DataFrame, block: PersistenceBlock) -> DataFrame:
    tracking, asked = block.tracking, block.tracking.params
    end = F.unix_micros("hour") + F.lit(HOUR_LENGTH)
    begin = f"unix_micros(hour) + {HOUR_LENGTH - asked.slots * tracking.length}L"
    unknown = F.expr(f"(unix_micros(start) - ({begin})) div {tracking.length}L")
    watched, counted, since = F.col("instance") == WATCHED, F.col("counted"), F.col("since")
    high = F.when(watched, counted).otherwise(counted + unknown)
    # As `PersistenceParams.estimate_within`; of one that is watched both are the same.
    estimate = F.least(counted + F.lit(float(1 / asked.tau)), high.cast("double"))
    gaps, span = (counted - 1).cast("double"), (F.col("last") - F.col("first")).cast("double")
    spread = F.sqrt(F.greatest(gaps * F.col("gap_squares").cast("double") - span * span, F.lit(0.0)))
    left = F.col("row_kind") == tuples.EXITED
    named = F.when(F.unix_micros(since) == end, "entered").otherwise("stays")
    change = F.when(left, "left").when(since.isNotNull(), named)
    of_item = [
        F.unix_micros(f"`{name}`") if kind == "timestamp" else F.col(f"`{name}`")
        for name, kind in block.item.items()
    ]
    identity = F.to_json(
        F.struct(F.lit(block.name), F.struct(*of_item), F.unix_micros(since)), {"ignoreNullFields": "false"}
    )
    return rows.select(
        "hour",
        F.timestamp_micros(end).alias("window_end"),
        *quoted(block.item),
        F.when(since.isNotNull(), F.substring(F.sha2(identity, 256), 1, 32)).alias("spell_id"),
        counted.alias("low"),
        high.alias("high"),
        estimate.alias("estimate"),
        (~left & (counted >= asked.min_certain)).alias("is_certain"),
        is_among(block.item, block.watched).alias("watched"),
        change.alias("change"),
        F.when(left, "final").when(since.isNotNull(), "partial").alias("state"),
        (F.coalesce(change == "entered", F.lit(False))).cast("bigint").alias("entered"),
        "since",
        unknown.alias("unknown"),
        "bits",
        F.col("start").alias("first_slot"),
        F.col("latest").alias("last_slot"),
        "records",
        F.when(gaps > 0, span * tracking.unit / 1e6 / gaps).alias("gap_mean_s"),
        F.when((gaps > 0) & (span > 0), spread / span).alias("gap_cv"),
    )


@dataclass(frozen=True)
class SlotRenderer:
    """What a task makes of its rows: those of no network that is known, with a character for each slot."""

    block: PersistenceBlock
    schema: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of some batches."""
        table = concat_batches(batches)
        if table is None:
            return
        for column, networks in self.block.networks.items():
            table = table.filter(pa.array(~_inside(table[column], networks)))
        columns: dict[str, Any] = {name: table[name] for name in table.column_names}
        columns["slots"] = self._slots(table)
        yield from build_batches(table.num_rows, columns, self.schema)

    def _slots(self, table: pa.Table) -> pa.Array:
        many = self.block.tracking.params.slots
        bits, unknown = (table[name].combine_chunks() for name in ("bits", "unknown"))
        there = bits.is_valid().to_numpy(zero_copy_only=False)
        rows = rows_of(bits.drop_null(), self.block.tracking.width)
        seen = np.unpackbits(rows, axis=1, bitorder="little")[:, :many] + ord("0")
        missing = unknown.drop_null().to_numpy(zero_copy_only=False)[:, None]
        before = np.where(table["watched"].filter(bits.is_valid()).to_numpy().astype(bool), ord("0"), UNKNOWN)
        # Bits count from where an item is remembered; a character stands for its slot of the window.
        place = np.arange(many) - missing
        drawn = np.where(place < 0, before[:, None], np.take_along_axis(seen, np.maximum(place, 0), axis=1))
        texts = drawn.astype(np.uint8).view(f"S{many}").reshape(-1).astype(str)
        found = np.full(len(there), None, dtype=object)
        found[there] = texts
        return pa.array(found, pa.string())


def _inside(column: pa.ChunkedArray, networks: Iterable[str]) -> Any:
    """Whether each text is an address of one of some networks."""
    encoded = column.combine_chunks().dictionary_encode()
    known = [ip_network(text) for text in networks]
    inside = np.array([_is_in(text, known) for text in encoded.dictionary.to_pylist()], dtype=bool)
    return inside[encoded.indices.to_numpy(zero_copy_only=False)]


def _is_in(text: str, networks: Iterable[Any]) -> bool:
    try:
        address = ip_address(text)
    except ValueError:
        return False
    return any(address in network for network in networks)


def _schema(block: PersistenceBlock) -> pa.Schema:
    return item_table(TABLE, [block.item]).block_schema()
