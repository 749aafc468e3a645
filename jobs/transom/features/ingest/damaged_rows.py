"""Damaged rows: lost rows, rows that wait for their file, and kept rows that were changed.

Rows are lost if their file cannot be read again. The file's record notes it, so the hours are incomplete. The
rows return once the landing folder has the content again. If the file exists but touches hours out of the
run's reach, the hour stays damaged until a run ingests the whole file.

Only the digest in the ledger proves that kept rows are those of their file. A new digest would hide a change,
so the rows of recomputed hours are first compared with the digest.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

from pyspark.sql import DataFrame

from transom.core.intervals import format_hour
from transom.core.partitions import PartitionKey, PartitionState
from transom.engine.measurement import RunRows, measure
from transom.features.ingest.expected_inputs import partition_of
from transom.features.ingest.file_decisions import Decisions
from transom.features.ingest.file_records import OWNS_ROWS, FileRecord, ListedFile
from transom.features.ingest.hour_plan import IngestDecision, step_of
from transom.features.ingest.hour_rows import hashed_rows
from transom.features.ingest.hour_states import format_span
from transom.features.ingest.snapshot import IngestSnapshot
from transom.features.ingest.tables import Tables
from transom.ledger.stage import StepResult
from transom.spec.stream import Stream
from transom.storage.store import cast_to_table
from transom.storage.tables import Table

LOST = "rows were damaged and are lost until the landing folder holds the same file again"
"""The text for a file with lost rows; the hours follow."""
WAITS = "; its rows come back with "
"""The text for a damaged hour that waits; the files follow."""
DIFFERENT = "its rows do not have the digest in the ledger"
GONE = "has changed or is gone, so they cannot be read again"


def comes_back(file: FileRecord, listed: Mapping[str, ListedFile]) -> bool:
    """Return whether a run over all hours that a file touches would read its published content again."""
    again = file.status in (*OWNS_ROWS, "waiting", "missing")
    return again and file.source_id is not None and file.path in listed


def waiting_partitions(snapshot: IngestSnapshot) -> dict[PartitionKey, str]:
    """Return the damaged partitions that wait for a file that this run may not ingest, with the cause.

    A file is ingested as a whole. So if it touches a waiting hour, its other damaged hours wait, too.
    """
    lost_hours = _lost_hours(snapshot)
    losing = [
        (file, hours)
        for _, file in sorted(snapshot.recorded.items())
        if (hours := lost_hours(file)) and comes_back(file, snapshot.listed)
    ]
    waiting: dict[datetime, list[FileRecord]] = {}
    while True:
        free = []
        for file, hours in losing:
            if waiting.keys().isdisjoint(file.touched) and all(map(snapshot.rules.permitted, file.touched)):
                free.append((file, hours))
            else:
                for hour in hours:
                    waiting.setdefault(hour, []).append(file)
        if len(free) == len(losing):
            break
        losing = free
    return {
        partition: (state.reason or "").partition(WAITS)[0] + WAITS + format_files(waiting[partition.hour])
        for partition, state in snapshot.ledger_state.troubled()
        if partition.hour in waiting and state.damaged
    }


def format_files(files: Sequence[FileRecord]) -> str:
    """Return as text the files that an hour waits for, and the run that ingests them."""
    touched = frozenset().union(*(file.touched for file in files))
    others = " and others" if len(files) > 1 else ""
    return f"{files[0].path}{others}, by a run from {format_span(touched)}"


def with_losses(snapshot: IngestSnapshot, decisions: Decisions) -> Decisions:
    """Return decisions in which files record their lost rows.

    A file loses its rows of a recomputed hour if no row of the table can be read and its content is not
    ingested again.
    """
    lost_hours, losing = _lost_hours(snapshot), {}
    for path, file in {**snapshot.recorded, **decisions.files}.items():
        hours = lost_hours(file)
        published = file.source_id is not None and file.status != "duplicate"
        if hours and published and file.source_id not in decisions.added and path not in decisions.dropped:
            losing[path] = replace(file, incomplete_reason=f"{LOST}: {', '.join(map(format_hour, hours))}")
    return replace(decisions, files={**decisions.files, **losing})


def _lost_hours(snapshot: IngestSnapshot) -> Callable[[FileRecord], list[datetime]]:
    """Return the function that returns the hours in which a file's rows are lost, ascending."""
    events, rejected = snapshot.lost("events") | snapshot.lost("duplicates"), snapshot.lost("rejected")
    return lambda file: sorted(
        events.intersection(file.hours) | ({file.hour} & rejected if file.rejected else frozenset())
    )


def hours_with_kept_rows(snapshot: IngestSnapshot, found: IngestDecision) -> dict[datetime, list[FileRecord]]:
    """Return the recomputed hours that keep rows of files, with these files."""
    hours: dict[datetime, list[FileRecord]] = {}
    for _, file in sorted(found.files.items() if snapshot.recompute else ()):
        stays = file.source_id is not None and file.source_id not in found.decisions.added
        if stays and file.status != "duplicate":
            for hour in file.touched & snapshot.recompute:
                hours.setdefault(hour, []).append(file)
    return hours


def damaged_partitions(
    stream: Stream, tables: Tables, snapshot: IngestSnapshot, found: IngestDecision
) -> dict[PartitionKey, str]:
    """Return the partitions of hours with kept rows whose rows differ from their digest, with the cause."""
    files, ledger = hours_with_kept_rows(snapshot, found), snapshot.ledger_state
    partitions = (partition_of(table.name, hour) for table in tables for hour in files)
    states = {partition: ledger[partition] for partition in partitions if partition in ledger}
    states = {p: state for p, state in states.items() if not state.damaged and state.status != "expired"}
    if not states:
        return {}
    hours = {table.name: [key.hour for key in states if key.table == table.name] for table in tables}
    frames = {table.name: partial(_stored, snapshot, table, hours[table.name]) for table in tables}
    rows, step = RunRows(lambda: hashed_rows(tables, frames)), step_of(stream, tables)
    wrong = differing(snapshot, states, measure(step, rows, StepResult(()), states, {}, by="table"))
    return {partition: cause_of(files[partition.hour], snapshot) for partition in wrong}


def _stored(snapshot: IngestSnapshot, table: Table, hours: Sequence[datetime]) -> DataFrame:
    return cast_to_table(snapshot.pins.read(table.name, hours), table)


def differing(
    snapshot: IngestSnapshot,
    states: Mapping[PartitionKey, PartitionState],
    metrics: Mapping[PartitionKey, Mapping[str, Any]],
) -> list[PartitionKey]:
    """Return the partitions whose rows differ from the ledger.

    Digests of declared columns are compared only if the specification is that of the ledger, and digests only
    if an earlier version of transom did not define them otherwise. Else the numbers of rows are compared.

    Args:
        states: the ledger's state of each partition.
        metrics: `count` and `digest` of the rows as read, by partition.
    """
    wrong = []
    for partition, state in states.items():
        before = state.state_before_claim()
        recorded = (before.input_hashes or {}).get("specification")
        same_columns = recorded == snapshot.expected(partition.hour)["specification"]
        same_columns = same_columns or partition.table not in ("events", "duplicates")
        comparable = before.digest_is_current and same_columns
        actual = metrics[partition]
        if actual["digest"] != state.digest if comparable else actual["count"] != state.rows:
            wrong.append(partition)
    return wrong


def cause_of(files: list[FileRecord], snapshot: IngestSnapshot) -> str:
    """Return why kept rows of files are damaged."""
    back = [file for file in files if comes_back(file, snapshot.listed)]
    lost = [file for file in files if file not in back]
    gone = f"; {lost[0].path} {GONE}" if lost else ""
    return f"{DIFFERENT}{gone}{WAITS + format_files(back) if back else ''}"
