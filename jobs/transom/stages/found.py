"""Matches as rows of their table: which records serve which step, and what is told of them."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from transom.algorithms.exact import Int64s
from transom.algorithms.instances import smallest
from transom.algorithms.patterns import Instance, Pattern, Stretch
from transom.lake.tables import ARROW_TYPES, Table
from transom.stages.columns import as_type, hour_of_end
from transom.stages.patterns import RECORD, PatternBlock
from transom.stages.records import Records

SECOND = 1_000_000
_NESTED = {name: kind for name, kind in Table.load("matches").columns.items() if kind.startswith("array")}


@dataclass(frozen=True)
class Found:
    """Stretches of records in which there is a match, at one level.

    Attributes:
        places: the rows of the level's batches, among all records.
        first, last: of each match, where in `places` its first and its last record are.
        end: of the window, in microseconds.
    """

    level: int
    places: Int64s
    first: Int64s
    last: Int64s
    end: Int64s


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
        "window_delay_s": "double",
        "steps": _NESTED["steps"],
        "bindings": _NESTED["bindings"],
        **block.kept_columns(),
        "records": _NESTED["records"],
    }


def columns_of(
    found: Found, records: Records, block: PatternBlock, codes: Mapping[str, Int64s]
) -> Iterator[pa.RecordBatch]:
    """The rows of some matches."""
    assert block.pattern is not None
    instances = list(_instances(found, records, block.pattern, codes))
    many = np.array([len(one.places) for one in instances])
    begin = np.repeat(found.first, many)
    matched = found.places[np.concatenate([one.places for one in instances]) + begin]
    first, last = records.time[found.places[found.first]], records.time[found.places[found.last]]
    rows = records.table.take(pa.array(matched))
    offsets = np.concatenate([[0], np.cumsum(many)])
    keys = records.table.select(list(block.key)).take(pa.array(found.places[found.first]))
    of_step = _first_of_steps(instances, block.pattern) + offsets[:-1, None]
    columns = {
        "hour": hour_of_end(found.end),
        "match_id": _ids(block.name, keys, rows, offsets),
        **{name: keys[name] for name in block.key},
        "level": np.full(len(found.end), found.level, dtype=np.int32),
        "first_time": first,
        "last_time": last,
        "detected_at": found.end,
        "window_delay_s": (found.end - last) / SECOND,
        "steps": _steps(block.pattern, records.time[matched[of_step]]),
        "bindings": _bindings(block, rows, of_step),
        **{
            column: _lists(offsets, rows[block.held(name)].combine_chunks())
            for name, column in zip(block.keep, block.kept_columns(), strict=True)
        },
        "records": _lists(
            offsets,
            pa.StructArray.from_arrays([rows[name].combine_chunks() for name in RECORD], list(RECORD)),
        ),
    }
    schema = pa.schema([(name, ARROW_TYPES[kind]) for name, kind in kinds_of(block).items()])
    arrays = [as_type(columns[field.name], field.type) for field in schema]
    yield from pa.Table.from_arrays(arrays, schema=schema).to_batches(max_chunksize=65536)


def _instances(
    found: Found, records: Records, pattern: Pattern, codes: Mapping[str, Int64s]
) -> Iterator[Instance]:
    takes = records.takes
    for first, last in zip(found.first, found.last, strict=True):
        rows = found.places[first : last + 1]
        yield smallest(
            pattern,
            Stretch(
                records.time[rows].tolist(),
                takes[rows].tolist(),
                {name: code[rows].tolist() for name, code in codes.items()},
            ),
        )


def _first_of_steps(instances: list[Instance], pattern: Pattern) -> Int64s:
    """Which of its records is the first of each step, of each instance."""
    names = [step.name for step in pattern.steps]
    return np.array([[one.steps.index(name) for name in names] for one in instances], dtype=np.int64)


def _steps(pattern: Pattern, times: Int64s) -> pa.ListArray:
    """Every step with the time of its first record, and how many it has."""
    many = len(times)
    fields = [
        pa.array([step.name for step in pattern.steps] * many, pa.string()),
        pa.array(times.reshape(-1)).cast(ARROW_TYPES["timestamp"]),
        pa.array([step.times for step in pattern.steps] * many, pa.int64()),
    ]
    return _lists(
        np.arange(many + 1) * len(pattern.steps), pa.StructArray.from_arrays(fields, ["id", "time", "count"])
    )


def _bindings(block: PatternBlock, rows: pa.Table, of_step: Int64s) -> pa.ListArray:
    """What steps agree in, by name, with the values as text."""
    assert block.pattern is not None
    numbers = {step.name: number for number, step in enumerate(block.pattern.steps)}
    variables = sorted({(step, column) for s in block.pattern.steps for _, step, column in s.agrees})
    many = len(of_step)
    values = [
        rows[block.held(column)].take(pa.array(of_step[:, numbers[step]])).cast(pa.string()).combine_chunks()
        for step, column in variables
    ]
    # By match, and of each by name.
    order = np.arange(many * len(variables)).reshape(len(variables), many).T.reshape(-1)
    flat = pa.concat_arrays(values).take(pa.array(order)) if values else pa.array([], pa.string())
    names = pa.array([f"{step}.{column}" for step, column in variables] * many, pa.string())
    return _lists(
        np.arange(many + 1) * len(variables), pa.StructArray.from_arrays([names, flat], ["name", "value"])
    )


def _lists(offsets: Int64s, values: pa.Array) -> pa.ListArray:
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values)


def _ids(pattern: str, keys: pa.Table, rows: pa.Table, offsets: Int64s) -> pa.Array:
    """A hash of the pattern, the key and the records."""
    time, line = (rows[name].cast(pa.int64()).to_pylist() for name in ("event_time", "source_line"))
    records = list(zip(time, rows["source_id"].to_pylist(), line, strict=True))
    of_key = zip(*(keys[name].to_pylist() for name in keys.column_names), strict=True)
    told = list(of_key) if keys.num_columns else [()] * (len(offsets) - 1)
    texts = (
        json.dumps([pattern, key, records[a:b]], default=str)
        for key, a, b in zip(told, offsets[:-1], offsets[1:], strict=True)
    )
    return pa.array([hashlib.sha256(text.encode()).hexdigest()[:32] for text in texts], pa.string())
