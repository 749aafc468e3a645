"""Matches as rows of their table."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from transom.arrays.arrow import build_batches, hour_of_end
from transom.core.exact_sums import Int64s
from transom.features.patterns.algorithm.detected_matches import DetectedMatches
from transom.features.patterns.algorithm.instance_search import smallest
from transom.features.patterns.algorithm.pattern import EventPattern, RecordSequence
from transom.features.patterns.records import PatternRecords
from transom.features.patterns.resolve import RECORD, PatternBlock


class LevelMatches(NamedTuple):
    """Matches of one level.

    Attributes:
        end: the end of each match's window, in microseconds.
        places: the places of each match's records.
        steps: for each match and each step of the pattern, which of the match's records is the step's first.
    """

    level: int
    end: Int64s
    places: Sequence[Int64s]
    steps: Sequence[Sequence[int]]


def find_instances(
    pattern: EventPattern, detected: DetectedMatches, time: Int64s, bits: Int64s, codes: Mapping[str, Int64s]
) -> tuple[list[Int64s], list[list[int]]]:
    """Find the records of each detected match.

    Args:
        time, bits, codes: columns of the level's rows, as in `RecordWindows`.

    Returns:
        The rows of each match, and `LevelMatches.steps`.
    """
    places, steps = [], []
    for first, last in zip(detected.first, detected.last, strict=True):
        rows = slice(first, last + 1)
        compared = {name: code[rows].tolist() for name, code in codes.items()}
        instance = smallest(pattern, RecordSequence(time[rows].tolist(), bits[rows].tolist(), compared))
        places.append(first + np.array(instance.places))
        steps.append([instance.steps.index(step.name) for step in pattern.steps])
    return places, steps


def rows_of(
    matches: LevelMatches, records: PatternRecords, block: PatternBlock, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Return rows of the table `matches`; `schema` is `block.schema("matches")`."""
    count = len(matches.end)
    if not count:
        return
    bounds = np.cumsum([0, *map(len, matches.places)])
    matched = np.concatenate(matches.places)
    rows, time = records.table.take(pa.array(matched)), records.time[matched]
    keys = rows.select(list(block.key)).take(pa.array(bounds[:-1]))
    steps = block.pattern.steps if block.pattern else ()
    first_of = {
        step.name: bounds[:-1] + [places[number] for places in matches.steps]
        for number, step in enumerate(steps)
    }
    times = {name: time[at].tolist() for name, at in first_of.items()}
    agreed = sorted({(earlier, column) for step in steps for _, earlier, column in step.agrees})
    texts = {
        f"{step}.{column}": rows[block.record_column(column)].take(pa.array(first_of[step])).cast(pa.string())
        for step, column in agreed
    }
    values = {name: column.to_pylist() for name, column in texts.items()}

    def lists(array: pa.Array) -> pa.ListArray:
        return pa.ListArray.from_arrays(pa.array(bounds, pa.int32()), array)

    columns = {
        "hour": hour_of_end(matches.end),
        "match_id": _ids(block.name, keys, rows, bounds),
        **{name: keys[name] for name in block.key},
        "level": matches.level,
        "first_time": time[bounds[:-1]],
        "last_time": time[bounds[1:] - 1],
        "detected_at": matches.end,
        "detection_delay_s": (matches.end - time[bounds[1:] - 1]) / 1_000_000,
        "steps": pa.array(
            [
                [{"id": s.name, "time": times[s.name][i], "count": s.times} for s in steps]
                for i in range(count)
            ],
            schema.field("steps").type,
        ),
        "bindings": pa.array(
            [[{"name": name, "value": of[i]} for name, of in values.items()] for i in range(count)],
            schema.field("bindings").type,
        ),
        **{
            column: lists(rows[block.record_column(name)].combine_chunks())
            for name, column in zip(block.keep, block.kept_columns(), strict=True)
        },
        "records": lists(rows.select(list(RECORD)).to_struct_array().combine_chunks()),
    }
    yield from build_batches(count, columns, schema)


def _ids(pattern: str, keys: pa.Table, rows: pa.Table, bounds: Int64s) -> pa.Array:
    """Return a hash of the pattern, the key and the records of each match."""
    time, line = (rows[name].cast(pa.int64()).to_pylist() for name in ("event_time", "source_line"))
    records = list(zip(time, rows["source_id"].to_pylist(), line, strict=True))
    # A table without columns loses its number of rows.
    of_key = keys.to_pylist() if keys.num_columns else [{}] * (len(bounds) - 1)
    texts = (
        json.dumps([pattern, list(key.values()), records[first:stop]], default=str)
        for key, first, stop in zip(of_key, bounds[:-1], bounds[1:], strict=True)
    )
    return pa.array([hashlib.sha256(text.encode()).hexdigest()[:32] for text in texts], pa.string())
