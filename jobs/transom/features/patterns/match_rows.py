"""Matches as rows of their table: which records serve which step, and what is told of them."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from transom.arrays.arrow import as_type, hour_of_end
from transom.core.exact_sums import Int64s
from transom.features.patterns.algorithm.detected_matches import DetectedMatches
from transom.features.patterns.algorithm.instance_search import smallest
from transom.features.patterns.algorithm.pattern import EventPattern, RecordSequence
from transom.features.patterns.records import PatternRecords
from transom.features.patterns.resolve import RECORD, PatternBlock
from transom.storage.tables import ARROW_TYPES

SECOND = 1_000_000
# As `schemas/tables` has them, which tasks do not.
STEPS = "array<struct<id:string,time:timestamp,count:bigint>>"
BINDINGS = "array<struct<name:string,value:string>>"
RECORDS = "array<struct<event_time:timestamp,source_id:string,source_line:bigint>>"


@dataclass(frozen=True)
class LevelMatches:
    """Matches of one level.

    Attributes:
        end: of the window of each, in microseconds.
        matched: the rows of their records, match by match.
        first: of each match where in `matched` its first record is, and behind all of them their number.
        of_step: of each match, a column for each step: where in `matched` the step's first record is.
    """

    level: int
    end: Int64s
    matched: Int64s
    first: Int64s
    of_step: Int64s

    @classmethod
    def of(cls, level: int, end: Sequence[int], matches: Sequence[Int64s]) -> "LevelMatches":
        """Matches by the rows of their records, of which no steps are known."""
        rows = np.concatenate([np.empty(0, dtype=np.int64), *matches])
        first = np.concatenate([[0], np.cumsum([len(match) for match in matches], dtype=np.int64)])
        no_steps = np.empty((len(matches), 0), dtype=np.int64)
        return cls(level, np.array(end, dtype=np.int64), rows, first, no_steps)

    @classmethod
    def of_sightings(
        cls,
        level: int,
        seen: DetectedMatches,
        places: Int64s,
        records: PatternRecords,
        pattern: EventPattern,
        codes: Mapping[str, Int64s],
    ) -> "LevelMatches":
        """The minimal instances of some stretches.

        Args:
            places: the rows of the level's batches, among all records.
        """
        matches, steps = [], []
        names = [step.name for step in pattern.steps]
        for first, last in zip(seen.first, seen.last, strict=True):
            rows = places[first : last + 1]
            compared = {name: code[rows].tolist() for name, code in codes.items()}
            stretch = RecordSequence(records.time[rows].tolist(), records.takes[rows].tolist(), compared)
            instance = smallest(pattern, stretch)
            matches.append(rows[list(instance.places)])
            steps.append([instance.steps.index(name) for name in names])
        found = cls.of(level, seen.end.tolist(), matches)
        of_step = np.array(steps, dtype=np.int64).reshape(len(matches), len(names))
        return replace(found, of_step=of_step + found.first[:-1, None])


def kinds_of(block: PatternBlock) -> dict[str, str]:
    """The columns of `matches` that a pattern fills, with their types."""
    return {
        "hour": "timestamp",
        "match_id": "string",
        **block.key,
        "level": "int",
        "first_time": "timestamp",
        "last_time": "timestamp",
        "detected_at": "timestamp",
        "detection_delay_s": "double",
        "steps": STEPS,
        "bindings": BINDINGS,
        **block.kept_columns(),
        "records": RECORDS,
    }


def rows_of(found: LevelMatches, records: PatternRecords, block: PatternBlock) -> Iterator[pa.RecordBatch]:
    """The rows of some matches."""
    first = records.time[found.matched[found.first[:-1]]]
    last = records.time[found.matched[found.first[1:] - 1]]
    rows = records.table.take(pa.array(found.matched))
    keys = rows.select(list(block.key)).take(pa.array(found.first[:-1]))
    identities = [rows[name].combine_chunks() for name in RECORD]
    columns = {
        "hour": hour_of_end(found.end),
        "match_id": _ids(block.name, keys, rows, found.first),
        **{name: keys[name] for name in block.key},
        "level": np.full(len(found.end), found.level, dtype=np.int32),
        "first_time": first,
        "last_time": last,
        "detected_at": found.end,
        "detection_delay_s": (found.end - last) / SECOND,
        "steps": _steps(block.pattern, records.time[found.matched[found.of_step]]),
        "bindings": _bindings(block, rows, found.of_step),
        **{
            column: _lists(found.first, rows[block.record_column(name)].combine_chunks())
            for name, column in zip(block.keep, block.kept_columns(), strict=True)
        },
        "records": _lists(found.first, pa.StructArray.from_arrays(identities, list(RECORD))),
    }
    schema = pa.schema([(name, ARROW_TYPES[kind]) for name, kind in kinds_of(block).items()])
    arrays = [as_type(columns[field.name], field.type) for field in schema]
    yield from pa.Table.from_arrays(arrays, schema=schema).to_batches(max_chunksize=65536)


def _steps(pattern: EventPattern | None, times: Int64s) -> pa.ListArray:
    """Every step with the time of its first record, and how many it has; none of a detector's matches.

    Args:
        times: a row for each match.
    """
    steps = pattern.steps if pattern else ()
    many = len(times)
    fields = [
        pa.array([step.name for step in steps] * many, pa.string()),
        pa.array(times.reshape(-1)).cast(ARROW_TYPES["timestamp"]),
        pa.array([step.times for step in steps] * many, pa.int64()),
    ]
    bounds = np.arange(many + 1) * len(steps)
    return _lists(bounds, pa.StructArray.from_arrays(fields, ["id", "time", "count"]))


def _bindings(block: PatternBlock, rows: pa.Table, of_step: Int64s) -> pa.ListArray:
    """What steps agree in, by name, with the values as text."""
    steps = block.pattern.steps if block.pattern else ()
    numbers = {step.name: number for number, step in enumerate(steps)}
    variables = sorted({(step, column) for s in steps for _, step, column in s.agrees})
    many = len(of_step)
    values = [
        rows[block.record_column(column)]
        .take(pa.array(of_step[:, numbers[step]]))
        .cast(pa.string())
        .combine_chunks()
        for step, column in variables
    ]
    # By match, and of each by name.
    order = np.arange(many * len(variables)).reshape(len(variables), many).T.reshape(-1)
    flat = pa.concat_arrays(values).take(pa.array(order)) if values else pa.array([], pa.string())
    names = pa.array([f"{step}.{column}" for step, column in variables] * many, pa.string())
    bounds = np.arange(many + 1) * len(variables)
    return _lists(bounds, pa.StructArray.from_arrays([names, flat], ["name", "value"]))


def _lists(bounds: Int64s, values: pa.Array) -> pa.ListArray:
    return pa.ListArray.from_arrays(pa.array(bounds, pa.int32()), values)


def _ids(pattern: str, keys: pa.Table, rows: pa.Table, first: Int64s) -> pa.Array:
    """A hash of the pattern, the key and the records of each match."""
    time, line = (rows[name].cast(pa.int64()).to_pylist() for name in ("event_time", "source_line"))
    records = list(zip(time, rows["source_id"].to_pylist(), line, strict=True))
    of_key = zip(*(keys[name].to_pylist() for name in keys.column_names), strict=True)
    told = list(of_key) if keys.num_columns else [()] * (len(first) - 1)
    texts = (
        json.dumps([pattern, key, records[a:b]], default=str)
        for key, a, b in zip(told, first[:-1], first[1:], strict=True)
    )
    return pa.array([hashlib.sha256(text.encode()).hexdigest()[:32] for text in texts], pa.string())
