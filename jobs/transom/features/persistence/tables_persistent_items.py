"""The table `persistent_items`: the items of each hour's report, in the units of the stream file."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import partial, reduce
from ipaddress import ip_address, ip_network
from operator import and_
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from transom.arrays.arrow import build_batches, concat_batches, int64s
from transom.core.exact_sums import Bools
from transom.core.intervals import HOUR_LENGTH, micros
from transom.engine.hours import quoted
from transom.features.items.bytes import rows_of
from transom.features.items.columns import columns_by_name, flags, is_among
from transom.features.items.tables import item_schema
from transom.features.persistence import tables_tuples as tuples
from transom.features.persistence.algorithm.vectorised import WATCHED, estimates
from transom.features.persistence.resolve import PersistenceBlock
from transom.ledger.stage import BlockTask, StepRequest
from transom.storage.block_rows import BlockRows

TABLE = "persistent_items"


def persistent_items_of(
    request: StepRequest, block: PersistenceBlock, targets: Sequence[datetime]
) -> BlockTask:
    """Return the persistent items of each target hour of a block."""
    kinds = {"row_kind": [tuples.ITEM, tuples.EXITED]}
    stored = {of: of for of in ("hour", *block.item, *tuples.STATE)}
    rows = BlockRows(tuples.TABLE, block.name, targets, stored, only=kinds).frame(request.pins)
    for ignored in block.ignored:
        is_before = _is_before(ignored.until, block)
        rows = rows.where(~(is_among(block.item, ignored.items) & is_before))
        if ignored.table is not None:
            columns = [column.name for column in ignored.table.columns]
            known = request.pins.read_filler(ignored.table, targets).select(
                *(
                    column.alias(f"known {name}")
                    for name, column in zip(columns, quoted(columns), strict=True)
                )
            )
            same = (F.col(f"`{name}`") == F.col(f"`known {name}`") for name in columns)
            rows = rows.join(known.distinct(), reduce(and_, same) & is_before, "left_anti")
    compute = partial(add_slots, block, item_schema(TABLE, block.item))
    return BlockTask(block.name, _to_output(rows, block), compute=compute)


def _is_before(until: datetime | None, block: PersistenceBlock) -> Column:
    """Return whether a report is before an end. A row of an item that has left is of the report before."""
    if until is None:
        return F.lit(True)
    earlier = F.when(F.col("row_kind") == tuples.EXITED, F.lit(block.period * HOUR_LENGTH)).otherwise(
        F.lit(0)
    )
    return F.unix_micros("hour") - earlier < F.lit(micros(until))


def _to_output(rows: DataFrame, block: PersistenceBlock) -> DataFrame:
    tracking, params = block.tracking, block.tracking.params
    end = F.unix_micros("hour") + F.lit(HOUR_LENGTH)
    begin = f"unix_micros(hour) + {HOUR_LENGTH - params.slots * tracking.length}L"
    unknown = F.expr(f"(unix_micros(start) - ({begin})) div {tracking.length}L")
    counted, since = F.col("counted"), F.col("since")
    high = F.when(F.col("instance") == WATCHED, counted).otherwise(counted + unknown)
    gaps, span = (counted - 1).cast("double"), (F.col("last") - F.col("first")).cast("double")
    spread = F.sqrt(F.greatest(gaps * F.col("gap_squares").cast("double") - span * span, F.lit(0.0)))
    exited = F.col("row_kind") == tuples.EXITED
    named = F.when(F.unix_micros(since) == end, "entered").otherwise("stays")
    change = F.when(exited, "left").when(since.isNotNull(), named)
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
        (~exited & (counted >= params.min_certain)).alias("is_certain"),
        is_among(block.item, block.watched).alias("watched"),
        change.alias("change"),
        F.when(exited, "final").when(since.isNotNull(), "partial").alias("state"),
        F.coalesce(change == "entered", F.lit(False)).cast("bigint").alias("entered"),
        "since",
        unknown.alias("unknown"),
        "bits",
        F.col("start").alias("first_slot"),
        F.col("latest").alias("last_slot"),
        "records",
        F.when(gaps > 0, span * tracking.unit / 1e6 / gaps).alias("gap_mean_s"),
        F.when((gaps > 0) & (span > 0), spread / span).alias("gap_cv"),
    )


def add_slots(
    block: PersistenceBlock, schema: pa.Schema, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield rows with the estimate and a character for each slot, without addresses of ignored networks."""
    table = concat_batches(batches)
    if table is None:
        return
    for ignored in block.ignored:
        for column, networks in ignored.networks.items():
            known = _inside(table[column], networks)
            if ignored.until is not None:
                earlier = np.where(_has_left(table), block.period * HOUR_LENGTH, 0)
                known &= int64s(table["hour"]) - earlier < micros(ignored.until)
            table = table.filter(pa.array(~known))
    # Items that exited have no tuple.
    valid = table["bits"].is_valid().to_numpy()
    count, rows = block.tracking.params.slots, table.filter(pa.array(valid))
    bits = rows_of(rows["bits"].combine_chunks(), block.tracking.width)
    seen = np.unpackbits(bits, axis=1, bitorder="little")[:, :count] + ord("0")
    # Bits count from the start of the tuple, characters from the start of the window.
    place = np.arange(count) - rows["unknown"].to_numpy()[:, None]
    earlier = np.where(flags(rows["watched"]), ord("0"), ord("?"))[:, None]
    drawn = np.where(place < 0, earlier, np.take_along_axis(seen, np.maximum(place, 0), axis=1))
    texts = np.full(table.num_rows, None, dtype=object)
    texts[valid] = drawn.astype(np.uint8).view(f"S{count}").reshape(-1).astype(str)
    estimate = estimates(block.tracking.params, int64s(table["low"]), int64s(table["high"]))
    computed = {"estimate": pa.array(estimate, mask=~valid), "slots": pa.array(texts, pa.string())}
    yield from build_batches(table.num_rows, columns_by_name(table) | computed, schema)


def _has_left(rows: pa.Table) -> Bools:
    return flags(pc.equal(rows["change"], "left"))


def _inside(column: pa.ChunkedArray, networks: Iterable[str]) -> Any:
    """Return whether each text is an address in one of the networks."""
    known = [ip_network(text) for text in networks]

    def is_in(text: str) -> bool:
        try:
            address = ip_address(text)
        except ValueError:
            return False
        return any(address in network for network in known)

    encoded = column.combine_chunks().dictionary_encode()
    inside = np.array([is_in(text) for text in encoded.dictionary.to_pylist()], dtype=bool)
    return inside[encoded.indices.to_numpy(zero_copy_only=False)]
