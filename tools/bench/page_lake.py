"""Generate a lake for the page: the ledger of ten streams over three years, and rows of one of them. No run.

A few hours of each stream are incomplete, quarantined, blocked or stale.
"""

import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from bench.draw import FIRST
from transom.app.definitions import definitions_of
from transom.app.freshness import freshness_of
from transom.core.intervals import HOUR, Interval, number_of
from transom.core.partitions import PartitionKey, TableKey, input_hashes_text
from transom.core.reasons import Reason, write
from transom.features.ingest.expected_inputs import BLOCK, STAGE, ExpectedInputs
from transom.features.ingest.tables import Tables
from transom.findings.store import NAME
from transom.ledger.columnar_state import StoredPartitions
from transom.ledger.ledger import Ledger
from transom.ledger.snapshot import LedgerSnapshot
from transom.storage.tables import Table, create
from transom.stream import Stream, load

STREAMS, HOURS = 10, 26_280
CLIENTS = 20
"""Number of clients of the stream with rows; each has one event and one window an hour."""
MONTH = 730
"""Number of hours of a commit."""
SPEC: Mapping[str, Any] = {
    "preset": "apache/combined",
    "source": {"path": "no/%Y-%m-%d/%H.log", "expected_files": 1},
    "key": ["client"],
    "aggregates": {
        "traffic": {
            "measures": {"n": "count", "sent": "sum(bytes)"},
            "levels": "RANGES 24 HOURS, 1 HOUR SLIDES 1 HOUR, 1 HOUR",
        }
    },
    "patterns": {
        "back": {
            "within": "1 day",
            "steps": [{"id": "one", "where": "status = 404"}, {"id": "other", "where": "status = 200"}],
        }
    },
    "frames": {"busy": {"kind": "threshold", "where": "status = 200", "value": "bytes",
                        "on_duplicate_time": "sum", "idle": "2 hours"}},
    "fills": {"before": {"frame": "busy", "shift": ["1 day"], "measures": {"sent": "sum(bytes)"}}},
    "persistence": {"regulars": {"item": ["client"], "slot": "1 hour", "window": "1 day", "alpha": 0.7,
                                 "epsilon": 0.2}},
    "frequency": {"pages": {"item": ["path"], "window": "1 day", "tick": "30 minutes", "epsilon": 0.1,
                            "delta": 0.1}},
}  # fmt: skip
EDITED = {"patterns": {"back": {**SPEC["patterns"]["back"], "within": "2 days"}}}
"""An edit that makes every hour of a stage stale."""
OTHER = {"source": {**SPEC["source"], "event_time_range": {"before": "2 hours"}}}
"""An edit that makes every hour of every stage stale."""


def name_of(number: int) -> str:
    """Return the name of a stream; that with number 0 has rows."""
    return f"drawn{number}"


def spec_file(folder: Path, number: int, edit: Mapping[str, Any] | None = None) -> Path:
    """Write the file of a stream, and return it."""
    file = folder / f"{name_of(number)}.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"name": name_of(number), **SPEC, **(edit or {})}))
    return file


def create_lake(folder: Path, streams: int = STREAMS, hours: int = HOURS) -> Path:
    """Return a lake with the streams; create it if it does not exist."""
    lake = folder / "lake"
    if not (folder / "whole").exists():
        shutil.rmtree(folder, ignore_errors=True)
        interval = Interval(FIRST, FIRST + hours * HOUR)
        stream = load(spec_file(folder / "streams", 0))
        _write_ledger(f"{lake}/{name_of(0)}", stream, interval)
        for number in range(1, streams):
            spec_file(folder / "streams", number)
            # Hashes of inputs do not depend on the name of the stream.
            shutil.copytree(lake / name_of(0), lake / name_of(number))
        _write_rows(f"{lake}/{name_of(0)}", stream, interval)
        (folder / "whole").touch()
    return lake


def _write_ledger(root: str, stream: Stream, interval: Interval) -> None:
    ledger = Ledger(root)
    rows = _states(stream, interval)
    # The input hashes depend on the digests and the states alone.
    snapshot = LedgerSnapshot({}, stored=StoredPartitions(rows))
    freshness = freshness_of(stream, snapshot)
    source = input_hashes_text(ExpectedInputs(stream).expected(interval.start))
    outdated = set(range(9, len(interval), 2003))
    texts: list[str] = []
    for table in _tables(stream):
        for number, hour in enumerate(interval.hours()):
            if table[0] == STAGE:
                texts.append(source)
            else:
                partition = PartitionKey(*table, hour)
                inputs = dict(freshness.recorded_inputs(partition, snapshot[partition].status))
                if table[0] == "aggregates" and table[2] == "aggregates" and number in outdated:
                    inputs["specification"] = "older"
                texts.append(input_hashes_text(inputs))
    place = rows.schema.get_field_index("input_hashes")
    rows = rows.set_column(place, "input_hashes", pa.array(texts, pa.string()))
    write_deltalake(ledger.open("ledger"), rows, mode="append")


def _tables(stream: Stream) -> Iterator[TableKey]:
    """Yield the tables of each stage: stage, block and table."""
    for table in ("events", "files", "rejected"):
        yield STAGE, BLOCK, table
    for name, stage in definitions_of(stream).items():
        for step in stage.steps:
            for block in step.outputs:
                yield name, block, step.table.name


def _states(stream: Stream, interval: Interval) -> pa.Table:
    """Return the rows of the ledger without input hashes."""
    hours = np.arange(number_of(interval.start), number_of(interval.end), dtype=np.int64)
    parts: list[pa.Table] = []
    for number, (stage, block, table) in enumerate(_tables(stream)):
        status = np.full(len(hours), "published", dtype=object)
        complete = np.ones(len(hours), dtype=bool)
        reason = np.full(len(hours), None, dtype=object)
        reasons = np.full(len(hours), write(()), dtype=object)
        if stage == STAGE:
            complete[3::500] = False
            reason[3::500] = "files_expected: 0 of 1"
            reasons[3::500] = write([Reason("check", "files_expected: 0 of 1", "files_expected")])
        if table == "aggregates":
            status[5::701] = "quarantined"
            reason[5::701] = "rows_plausible: 0"
            reasons[5::701] = write([Reason("check", "rows_plausible: 0", "rows_plausible")])
        if table == "fills":
            status[7::997] = "blocked"
            reason[7::997] = "waits for an hour"
        rng = np.random.default_rng(number)
        counts, sums = rng.integers(1, 500, len(hours)), rng.integers(0, 2**62, len(hours))
        columns = {
            "stage": np.full(len(hours), stage), "block": np.full(len(hours), block),
            "table": np.full(len(hours), table), "hour": _times(hours), "status": status,
            "complete": complete, "requested": np.ones(len(hours), dtype=bool),
            "digest": [f"{n}:{total}" for n, total in zip(counts, sums, strict=True)],
            "rows": counts, "reason": reason, "reasons": reasons, "run_id": np.full(len(hours), "drawn"),
        }  # fmt: skip
        parts.append(_rows(Table.load("ledger"), columns))
    return pa.concat_tables(parts).combine_chunks()


def _write_rows(root: str, stream: Stream, interval: Interval) -> None:
    """Write events, windows and findings: an event and a window of each client in each hour.

    The windows are those of the longest range, which the page of the block shows without a key.
    """
    declared = {
        step.table.name: step.table for stage in definitions_of(stream).values() for step in stage.steps
    }
    events = Tables.of(stream).events
    first = number_of(interval.start)
    for start in range(first, first + len(interval), MONTH):
        hours = np.arange(start, min(start + MONTH, first + len(interval))).repeat(CLIENTS)
        clients = [f"10.0.0.{n}" for n in range(CLIENTS)] * (len(hours) // CLIENTS)
        times = _times(hours)
        _append(root, events, {
            "hour": times, "event_time": times, "client": clients, "status": [200] * len(hours),
            "bytes": (hours * 7 % 1000), "path": ["/index.html"] * len(hours),
            "source_id": ["drawn"] * len(hours), "source_line": np.arange(len(hours)),
        })  # fmt: skip
        _append(root, declared["aggregates"], {
            "hour": times, "block": ["traffic"] * len(hours), "level": [1] * len(hours),
            "window_start": _times(hours - 23), "window_end": _times(hours + 1), "client": clients,
            "count": [24] * len(hours), "n": [24] * len(hours), "sent": hours * 7 % 1000,
            "complete": [True] * len(hours),
        })  # fmt: skip
    for table in (events, declared["aggregates"]):
        # A real lake has one every few commits. No commit follows this one.
        create(root, table).create_checkpoint()
    every = np.arange(first, first + len(interval), 6)
    keys = [f"10.0.0.{n % CLIENTS}" for n in range(len(every))]
    _append(root, Table.load(NAME), {
        "stage": ["patterns"] * len(every), "hour": _times(every), "first_hour": _times(every),
        "finding_id": [f"{n:016x}" for n in range(len(every))], "kind": ["episode"] * len(every),
        "block": ["back"] * len(every), "severity": ["medium"] * len(every),
        "title": [f"{key} came back" for key in keys], "key": [f"client={key}" for key in keys],
        "start_time": _times(every), "end_time": _times(every + 1), "ongoing": [False] * len(every),
        "exactness": ["exact"] * len(every), "evidence": [["one match"]] * len(every),
    })  # fmt: skip


def _append(root: str, table: Table, columns: Mapping[str, Any]) -> None:
    stored: DeltaTable = create(root, table)
    write_deltalake(stored, _rows(table, columns), mode="append")


def _rows(table: Table, columns: Mapping[str, Any]) -> pa.Table:
    """Return rows of a table; columns that are not given are null."""
    schema = table.arrow_schema()
    count = len(next(iter(columns.values())))
    arrays = [
        pa.array(columns[field.name], field.type) if field.name in columns else pa.nulls(count, field.type)
        for field in schema
    ]
    return pa.table(arrays, schema=schema)


def _times(hours: Any) -> pa.Array:
    """Return hours since the epoch as times."""
    return pa.array(np.asarray(hours, dtype=np.int64) * 3_600_000_000).cast(pa.timestamp("us", "UTC"))
