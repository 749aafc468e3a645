"""Episodes of the widen stage: matches of one pattern and key that overlap, or lie at most `merge` apart.

A chain: an hour is made of its matches and of what the hours before it say, as far back as an episode may
still be open (`transom.features.patterns.algorithm.episodes`), by one vectorised pass over each partition
of keys.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from transom.arrays.arrow import as_type, codes, gathered, int64s, ranks
from transom.core.durations import microseconds
from transom.core.exact_sums import Int64s
from transom.core.intervals import micros
from transom.engine.hours import quoted, reached
from transom.features.check_builders import built_in
from transom.features.patterns import fingerprints
from transom.features.patterns.algorithm.episodes import FINAL, NONE, PARTIAL, STATES, Merging, Rows, episodes
from transom.features.patterns.resolve import PatternBlock, of_one_key, union
from transom.features.patterns.spec import Pattern
from transom.ledger.stage import Computed, Part, Reads, Request, Share, Step
from transom.spec.stream import Stream
from transom.storage.tables import ARROW_TYPES, Table

TABLE = "episodes"


def merging_of(stream: Stream, block: PatternBlock) -> Merging:
    """What makes matches of a pattern one episode."""
    merge = microseconds(stream.blocks(Pattern)[block.name].merge)
    return Merging(merge, block.widening.longest, block.widening.top)


def step_of(stream: Stream, blocks: Mapping[str, PatternBlock]) -> Step:
    """The step of the table, less the columns by which Spark measures it (`measured`)."""
    table = Table.load(TABLE).declare(
        key={name: kind for block in blocks.values() for name, kind in block.key.items()}
    )
    mergings = {name: merging_of(stream, block) for name, block in blocks.items()}
    parts = {
        name: Part(
            (
                Reads("widen", name, "matches"),
                Reads("widen", name, TABLE, back=mergings[name].reach, forward=-1),
            ),
            fingerprints.episodes(stream, name),
            tuple(_schema(block.key).names),
        )
        for name, block in blocks.items()
    }
    return Step(
        table,
        parts,
        lambda request: episodes_of(request, blocks, mergings),
        checks=(
            *built_in(stream, "episodes_inside_hour", metric="episodes_beyond", at_most=0),
            *built_in(stream, "matches_in_episodes", metric="matches_untaken", at_least=0, at_most=0),
        ),
        derived={"matches_untaken": lambda row: row.get("matches_read", 0) - (row["matches_taken"] or 0)},
    )


def measured(step: Step) -> Step:
    """The step with the columns by which Spark measures it."""
    return replace(
        step,
        figures={
            "matches_taken": F.sum("new_matches"),
            "episodes_beyond": F.sum(_beyond().cast("bigint")),
        },
        faults={"episodes_inside_hour": _beyond()},
    )


def _beyond() -> Column:
    # A match is detected after its last record.
    return (F.col("end") >= F.col("hour") + F.expr("INTERVAL 1 HOUR")) | (F.col("end") < F.col("start"))


def episodes_of(
    request: Request, blocks: Mapping[str, PatternBlock], mergings: Mapping[str, Merging]
) -> Computed:
    """What every pattern's target hours say of its episodes."""
    shares: list[Share] = []
    known: dict[tuple[str, datetime], dict[str, float]] = {}
    for name, targets in request.targets.items():
        block, merging = blocks[name], mergings[name]
        matches = request.pins.read("matches", targets).where(F.col("block") == name)
        told = request.rows.get((name, TABLE), {})
        earlier = reached(targets, merging.reach).intersection(told).difference(targets)
        own = request.pins.read(TABLE, earlier).where(F.col("block") == name)
        rows = of_one_key(union([_as_episodes(matches, block), _told(own, block)]), block)
        shares.append(Share(name, rows, Episodes(block.key, tuple(map(micros, targets)), merging)))
        standing = request.rows.get((name, "matches"), {})
        known |= {(name, hour): {"matches_read": standing.get(hour, 0)} for hour in targets}
    return Computed(shares, known=known)


def _as_episodes(matches: DataFrame, block: PatternBlock) -> DataFrame:
    return matches.select(
        "hour",
        F.col("match_id").alias("episode_id"),
        *quoted(block.key),
        F.col("first_time").alias("start"),
        F.col("last_time").alias("end"),
        F.lit(1).cast("bigint").alias("matches"),
        "detected_at",
        "level",
        F.lit(None).cast("string").alias("state"),
    )


def _told(rows: DataFrame, block: PatternBlock) -> DataFrame:
    return rows.select(
        "hour", "episode_id", *quoted(block.key), "start", "end", "matches", "detected_at", "level", "state"
    )


@dataclass(frozen=True)
class Episodes:
    """What a task makes of its partition's matches, which have no state, and of what hours say.

    Attributes:
        hours: to be computed, in microseconds, ascending.
    """

    key: Mapping[str, str]
    hours: Sequence[int]
    merging: Merging

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """What the hours say of some keys, of which these are all rows."""
        table = gathered(batches)
        if table is None:
            return
        keys, firsts = codes(table, list(self.key))
        ids = ranks(table["episode_id"])
        names = table["episode_id"].take(pa.array(np.unique(ids, return_index=True)[1]))
        rows = _rows(table, keys, ids)
        stored = pc.is_valid(table["state"]).to_numpy(zero_copy_only=False)
        found = episodes(rows.taken(~stored), rows.taken(stored), self.hours, self.merging)
        of_key = table.select(list(self.key)).take(pa.array(firsts[found.key]))
        columns = {
            "hour": found.hour,
            "episode_id": names.take(pa.array(found.id)),
            **{name: of_key[name] for name in self.key},
            "start": found.start,
            "end": found.end,
            "matches": found.matches,
            "new_matches": found.new,
            "detected_at": found.detected_at,
            "level": found.level,
            "state": pa.array(STATES).take(pa.array(found.state)),
            "joined": names.take(pa.array(found.joined, mask=found.joined == NONE)),
        }
        schema = _schema(self.key)
        arrays = [as_type(columns[field.name], field.type) for field in schema]
        yield from pa.Table.from_arrays(arrays, schema=schema).to_batches(max_chunksize=65536)


def _rows(table: pa.Table, keys: Int64s, ids: Int64s) -> Rows:
    state = table["state"].combine_chunks().fill_null(STATES[PARTIAL])
    is_open = pc.equal(state, STATES[PARTIAL]).to_numpy(zero_copy_only=False)
    read = ("hour", "start", "end", "matches", "detected_at", "level")
    return Rows(
        id=ids,
        key=keys,
        new=np.ones(len(ids), dtype=np.int64),
        # What is closed is nothing to later hours, in whichever way.
        state=np.where(is_open, PARTIAL, FINAL),
        joined=np.full(len(ids), NONE),
        **{name: int64s(table[name]) for name in read},
    )


def _schema(key: Mapping[str, str]) -> pa.Schema:
    columns = {
        "hour": "timestamp",
        "episode_id": "string",
        **key,
        **dict.fromkeys(("start", "end"), "timestamp"),
        **dict.fromkeys(("matches", "new_matches"), "bigint"),
        "detected_at": "timestamp",
        "level": "int",
        **dict.fromkeys(("state", "joined"), "string"),
    }
    return pa.schema([(name, ARROW_TYPES[kind]) for name, kind in columns.items()])
