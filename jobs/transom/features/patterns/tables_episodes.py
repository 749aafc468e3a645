"""Episodes of the widen stage: matches of one pattern and key that overlap, or lie at most `merge_gap` apart.

A chain: an hour is made of its matches and of what the hours before it say, as far back as an episode may
still be open (`transom.features.patterns.algorithm.episodes`), by one vectorised pass over each partition
of keys.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from transom.arrays.arrow import as_type, concat_batches, encode_keys, int64s, ranks
from transom.core.exact_sums import Int64s
from transom.core.intervals import micros
from transom.engine.hours import extend_back, quoted
from transom.features.patterns.algorithm.episodes import (
    FINAL,
    NONE,
    PARTIAL,
    STATES,
    EpisodeRows,
    Merging,
    episodes,
)
from transom.features.patterns.record_rows import of_one_key, union
from transom.features.patterns.resolve import PatternBlock
from transom.ledger.stage import BlockTask, StepRequest, StepResult
from transom.storage.tables import Table

TABLE = "episodes"


def episodes_of(
    request: StepRequest, blocks: Mapping[str, PatternBlock], mergings: Mapping[str, Merging]
) -> StepResult:
    """What every pattern's target hours say of its episodes."""
    shares: list[BlockTask] = []
    known: dict[tuple[str, datetime], dict[str, float]] = {}
    for name, targets in request.targets.items():
        block, merging = blocks[name], mergings[name]
        matches = request.pins.read("matches", targets).where(F.col("block") == name)
        told = request.rows.get((name, TABLE), {})
        earlier = extend_back(targets, merging.reach).intersection(told).difference(targets)
        own = request.pins.read(TABLE, earlier).where(F.col("block") == name)
        rows = of_one_key(union([_as_episodes(matches, block), _output(own, block)]), block)
        made = EpisodeBuilder(block.key, tuple(map(micros, targets)), merging, schema_of(block.key))
        shares.append(BlockTask(name, rows, made))
        standing = request.rows.get((name, "matches"), {})
        known |= {(name, hour): {"matches_read": standing.get(hour, 0)} for hour in targets}
    return StepResult(shares, precomputed_metrics=known)


def _as_episodes(matches: DataFrame, block: PatternBlock) -> DataFrame:
    return matches.select(
        "hour",
        F.col("match_id").alias("episode_id"),
        *quoted(block.key),
        F.col("first_time").alias("start_time"),
        F.col("last_time").alias("last_time"),
        F.lit(1).cast("bigint").alias("matches"),
        "detected_at",
        "level",
        F.lit(None).cast("string").alias("state"),
    )


def _output(rows: DataFrame, block: PatternBlock) -> DataFrame:
    return rows.select(
        "hour",
        "episode_id",
        *quoted(block.key),
        "start_time",
        "last_time",
        "matches",
        "detected_at",
        "level",
        "state",
    )


@dataclass(frozen=True)
class EpisodeBuilder:
    """What a task makes of its partition's matches, which have no state, and of what hours say.

    Attributes:
        hours: to be computed, in microseconds, ascending.
        schema: of what comes out, as `schemas/tables` has it, which tasks do not.
    """

    key: Mapping[str, str]
    hours: Sequence[int]
    merging: Merging
    schema: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """What the hours say of some keys, of which these are all rows."""
        table = concat_batches(batches)
        if table is None:
            return
        keys, firsts = encode_keys(table, list(self.key))
        ids = ranks(table["episode_id"])
        names = table["episode_id"].take(pa.array(np.unique(ids, return_index=True)[1]))
        rows = _rows(table, keys, ids)
        stored = pc.is_valid(table["state"]).to_numpy(zero_copy_only=False)
        found = episodes(rows.take(~stored), rows.take(stored), self.hours, self.merging)
        of_key = table.select(list(self.key)).take(pa.array(firsts[found.key]))
        columns = {
            "hour": found.hour,
            "episode_id": names.take(pa.array(found.id)),
            **{name: of_key[name] for name in self.key},
            "start_time": found.start,
            "last_time": found.end,
            "matches": found.matches,
            "new_matches": found.new,
            "detected_at": found.detected_at,
            "level": found.level,
            "state": pa.array(STATES).take(pa.array(found.state)),
            "joined": names.take(pa.array(found.joined, mask=found.joined == NONE)),
        }
        arrays = [as_type(columns[field.name], field.type) for field in self.schema]
        yield from pa.Table.from_arrays(arrays, schema=self.schema).to_batches(max_chunksize=65536)


def _rows(table: pa.Table, keys: Int64s, ids: Int64s) -> EpisodeRows:
    state = table["state"].combine_chunks().fill_null(STATES[PARTIAL])
    is_open = pc.equal(state, STATES[PARTIAL]).to_numpy(zero_copy_only=False)
    read = ("hour", "matches", "detected_at", "level")
    return EpisodeRows(
        id=ids,
        key=keys,
        new=np.ones(len(ids), dtype=np.int64),
        # What is closed is nothing to later hours, in whichever way.
        state=np.where(is_open, PARTIAL, FINAL),
        joined=np.full(len(ids), NONE),
        start=int64s(table["start_time"]),
        end=int64s(table["last_time"]),
        **{name: int64s(table[name]) for name in read},
    )


def schema_of(key: Mapping[str, str]) -> pa.Schema:
    """Return the schema of the episodes of a pattern with a key."""
    return Table.load(TABLE).declare(key=key).block_schema()
