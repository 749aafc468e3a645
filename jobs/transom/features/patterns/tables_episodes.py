"""The table `episodes`: matches of one pattern and key that overlap or are at most `merge_gap` apart.

Hours form a chain: an hour is computed from its matches and the rows of earlier hours, as far back as an
episode may still be open (`transom.features.patterns.algorithm.episodes`).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transom.arrays.arrow import build_batches, concat_batches, encode_keys, int64s, ranks
from transom.core.intervals import micros
from transom.engine.hours import extend_back
from transom.features.patterns.algorithm import episodes
from transom.features.patterns.resolve import PatternBlock
from transom.ledger.stage import BlockTask, StepRequest, StepResult
from transom.storage.block_rows import BlockRows, select

TABLE = "episodes"


def episodes_of(request: StepRequest, blocks: Mapping[str, PatternBlock]) -> StepResult:
    """Return the episodes of the target hours of each pattern, and the number of matches in these hours."""
    tasks: list[BlockTask] = []
    metrics: dict[tuple[str, datetime], dict[str, float]] = {}
    for name, targets in request.targets.items():
        block = blocks[name]
        requested = request.rows.get((name, TABLE), {})
        hours = extend_back(targets, block.merging.reach).intersection(requested).difference(targets)
        common = {of: of for of in ("hour", *block.key, "last_time", "detected_at", "level")}
        of_match = common | {"episode_id": "match_id", "start_time": "first_time"}
        of_episode = common | {of: of for of in ("episode_id", "start_time", "matches", "state")}
        # A match becomes an episode without a state.
        as_episode = {"matches": (1, "bigint"), "state": (None, "string")}
        matches = BlockRows("matches", name, targets, of_match, as_episode)
        earlier = BlockRows(TABLE, name, hours, of_episode)
        rows = select(request.pins, [matches, earlier])
        compute = partial(
            episode_rows, list(block.key), list(map(micros, targets)), block.merging, block.schema(TABLE)
        )
        tasks.append(BlockTask(name, rows, compute, by=[*block.key]))
        counts = request.rows.get((name, "matches"), {})
        metrics |= {(name, hour): {"matches_read": counts.get(hour, 0)} for hour in targets}
    return StepResult(tasks, precomputed_metrics=metrics)


def episode_rows(
    key: Sequence[str],
    hours: Sequence[int],
    merging: episodes.Merging,
    schema: pa.Schema,
    batches: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Yield the episodes of some keys, given all their rows: matches, which have no state, and episodes of
    earlier hours.

    Args:
        key: the columns of the key.
        hours: the hours to compute, in microseconds, ascending.
        merging: the parameters that join matches to episodes.
        schema: `PatternBlock.schema(TABLE)`.
    """
    table = concat_batches(batches)
    if table is None:
        return
    keys, firsts = encode_keys(table, key)
    ids = ranks(table["episode_id"])
    names = table["episode_id"].take(pa.array(np.unique(ids, return_index=True)[1]))
    partial_state = episodes.STATES[episodes.PARTIAL]
    is_open = pc.equal(table["state"].fill_null(partial_state), partial_state).to_numpy()
    stored = table["state"].is_valid().to_numpy()
    rows = np.empty(len(ids), episodes.DTYPE)
    for column in ("hour", "matches", "detected_at", "level"):
        rows[column] = int64s(table[column])
    rows["start"], rows["end"] = int64s(table["start_time"]), int64s(table["last_time"])
    rows["id"], rows["key"], rows["new"], rows["joined"] = ids, keys, 1, episodes.NONE
    # Later hours do not depend on whether an episode was final or joined.
    rows["state"] = np.where(is_open, episodes.PARTIAL, episodes.FINAL)
    output = episodes.episodes(rows[~stored], rows[stored], hours, merging)
    columns = {
        **{name: output[name] for name in ("hour", "matches", "detected_at", "level")},
        "episode_id": names.take(pa.array(output["id"])),
        **{name: table[name].take(pa.array(firsts[output["key"]])) for name in key},
        "start_time": output["start"],
        "last_time": output["end"],
        "new_matches": output["new"],
        "state": pa.array(episodes.STATES).take(pa.array(output["state"])),
        "joined": names.take(pa.array(output["joined"], mask=output["joined"] == episodes.NONE)),
    }
    yield from build_batches(len(output), columns, schema)
