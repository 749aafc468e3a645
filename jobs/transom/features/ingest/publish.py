"""Publish the hours of a run of ingest by the engine."""

from collections.abc import Callable, Collection, Mapping
from contextlib import nullcontext
from dataclasses import replace
from datetime import datetime
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame

from transom.core.partitions import PartitionKey, PartitionState
from transom.engine.damage_marks import publish_marks
from transom.engine.publisher import Metrics, States
from transom.engine.run_outcome import Outcome
from transom.features.ingest.expected_inputs import BLOCK, STAGE, partition_of
from transom.features.ingest.file_decisions import Decisions
from transom.features.ingest.file_records import with_duplicates
from transom.features.ingest.hour_plan import IngestDecision, plan_hours, stale_after
from transom.features.ingest.hour_rows import HourRows, Read
from transom.features.ingest.inventory import Inventory
from transom.features.ingest.parsed_rows import ParsedRows
from transom.features.ingest.snapshot import IngestSnapshot
from transom.features.ingest.tables import Tables, file_rows
from transom.ledger.ledger import Ledger
from transom.ledger.snapshot import LedgerSnapshot
from transom.storage.session import frame_of, suited_to
from transom.storage.store import in_hours
from transom.storage.write import Write


def publish_hours(
    ledger: Ledger,
    tables: Tables,
    snapshot: IngestSnapshot,
    decision: IngestDecision,
    rows: ParsedRows,
    run_id: str,
) -> Outcome:
    """Publish every hour that changes, is stale, or is requested for the first time; raise as `ingest`."""
    step, forgotten = plan_hours(rows.stream, tables, snapshot, decision, run_id)
    hours = sorted(forgotten.union(step.plan.hours[BLOCK]))
    if not hours:
        return Outcome(stale=stale_after(snapshot, decision.files, {}))
    decisions, known, published = decision.decisions, snapshot.recorded, set(step.plan.hours[BLOCK])
    before = (snapshot.ledger_state.get(partition_of(table.name, hour)) for table in tables for hour in hours)
    concerned = [*(state.rows for state in before if state), *(read.rows for read in decision.reads.values())]
    stored = {table.name: _with_rows(snapshot.ledger_state, table.name, hours) for table in tables}
    hour_rows = HourRows(tables, snapshot.pins, decisions, decision.reads, rows, stored)
    # Without need of a session, none is created.
    with suited_to(rows.store.spark, sum(concerned)) if hour_rows.needs_spark else nullcontext():
        frames, deltas = hour_rows.by_table(decision.files)
        files = with_duplicates(decision.files, known, decisions.added, deltas)
        # In hours of files whose number of duplicates alone changes, only rows of `files` are published.
        recounted = {file.hour for path, file in files.items() if file != known.get(path)}
        recounted -= published.union(key.hour for key in snapshot.kept_damage if key.table == "files")
        # The rows of an hour are replaced together, also those of files that do not concern this run.
        rewritten = recounted | published
        snapshot = snapshot.select(Inventory.select_files_of_hours, rewritten)
        files = {**decisions.applied_to(snapshot.recorded), **files}
        new_files = file_rows(tables.files, [file for file in files.values() if file.hour in rewritten])
        frames["files"] = lambda: frame_of(rows.store.spark, new_files)
        partitions = [partition_of(table.name, hour) for table in tables for hour in hours]
        partitions += [partition_of("files", hour) for hour in sorted(recounted)]
        results = [result for result in decision.results if result.partition.hour in published]
        # Results of earlier runs for files that still exist and were not read again.
        unread = files.keys() - decision.reads.keys()
        earlier = ledger.checks(snapshot.ledger_state, STAGE, published)
        results += [result for result in earlier if result.file in unread]
        states = replace(
            step,
            rows=hour_rows.aggregated(frames, new_files),
            partitions=partitions,
            writes=partial(_writes, hour_rows, frames, new_files),
            all_states=partial(states_of_tables, snapshot, forgotten, run_id),
            forced=forced_partitions(tables, snapshot, decisions, partitions),
            results=results,
            pinned=snapshot.pins.versions,
            still_valid=_still_valid(snapshot, decisions),
        ).publish(rows.store, ledger)
    of_events = {key: state for key, state in states.items() if key.table == "events"}
    outcome = Outcome.of(of_events, step.plan.repaired, snapshot.ledger_state)
    # Rows of quarantined hours are published, too.
    outcome.rows_out = sum(state.rows for state in of_events.values() if state)
    outcome.stale = stale_after(snapshot, files, states)
    return outcome


def publish_kept_damage(ledger: Ledger, snapshot: IngestSnapshot, run_id: str) -> None:
    """Publish why partitions stay damaged, without a change of their digests; raise as `publish_marks`."""
    states = {}
    for partition, cause in snapshot.kept_damage.items():
        state = snapshot.ledger_state[partition]
        rows = state.rows if state.damaged else 0
        requested = state.requested or partition.hour in snapshot.scope.requested
        before = state.state_before_claim()
        after = replace(before, status="damaged", reason=cause, rows=rows, requested=requested)
        if after != state:
            states[partition] = replace(after, run_id=run_id)
    publish_marks(ledger, STAGE, run_id, states, snapshot.ledger_state)


def states_of_tables(
    snapshot: IngestSnapshot, forgotten: Collection[datetime], run_id: str, states: States, metrics: Metrics
) -> dict[PartitionKey, PartitionState | None]:
    """Return the new state of each partition, with its own digest and number of rows.

    All tables of an hour share the state of its events. Hours of recounted files keep their state, which is
    that before an unfinished claim.

    Args:
        snapshot: the snapshot of the run.
        forgotten: the hours whose partitions are deleted.
        run_id: the run.
        states: the states of the partitions of `events`.
        metrics: `digest` and `count` of each partition's rows.
    """
    new: dict[PartitionKey, PartitionState | None] = {}
    for key, metric in metrics.items():
        state = states.get(partition_of("events", key.hour))
        if state is not None:
            state = replace(state, requested=snapshot.is_requested(key.hour))
        elif key.hour not in forgotten:
            state = replace(snapshot.ledger_state[key].state_before_claim(), run_id=run_id)
        new[key] = state and replace(state, digest=metric["digest"], rows=metric["count"])
    return new


def forced_partitions(
    tables: Tables, snapshot: IngestSnapshot, decisions: Decisions, partitions: Collection[PartitionKey]
) -> set[PartitionKey]:
    """Return the partitions that are written even if their digest stays.

    Columns that are excluded from the digest may change under an equal digest: those of `files` always, those
    of other tables if rows are removed.
    """
    removed: set[datetime] = set().union(*decisions.removed.values())
    excluding = {table.name for table in tables if table.excluded_from_digest}
    return {
        key
        for key in partitions
        if key.table == "files"
        or key.hour in snapshot.recompute
        or (key.hour in removed and key.table in excluding)
    }


def _with_rows(ledger: LedgerSnapshot, table: str, hours: Collection[datetime]) -> list[datetime]:
    """Return the hours in which a table has rows."""
    states = {hour: ledger.get(partition_of(table, hour)) for hour in hours}
    return [hour for hour, state in states.items() if state is not None and state.rows]


def _still_valid(snapshot: IngestSnapshot, decisions: Decisions) -> Callable[[LedgerSnapshot], bool]:
    """Return the function that returns whether a run's decisions are still valid for a later ledger.

    Claims protect most decisions: two runs that read one content under two paths both claim the hours of its
    events. Contents without events have only the hours of their files. So any change of `files` makes
    decisions on them invalid.
    """
    paths = decisions.files.keys() | decisions.dropped
    concerned = [
        files[path] for files in (snapshot.recorded, decisions.files) for path in paths & files.keys()
    ]
    eventless = any(file.source_id is not None and not file.hours for file in concerned)

    def is_valid(ledger: LedgerSnapshot) -> bool:
        before, now = (each.series(STAGE, BLOCK, "files") for each in (snapshot.ledger_state, ledger))
        return snapshot.scope.still_valid(ledger, STAGE) and not (eventless and before != now)

    return is_valid


def _writes(
    hour_rows: HourRows,
    frames: Mapping[str, Read],
    new_files: pa.Table,
    states: States,
    sizes: Mapping[PartitionKey, int],
) -> list[Write]:
    """Return the write of each table with partitions to write."""
    writes = []
    for table in hour_rows.tables:
        hours = [key.hour for key in sizes if key.table == table.name]
        if not hours:
            continue
        new: pa.Table | Read = new_files
        if table is not hour_rows.tables.files:
            new = partial(_in_hours, frames[table.name], hours)
        write = Write(table, new, {None: hours}, bytes=sum(sizes[partition_of(table.name, h)] for h in hours))
        if table is hour_rows.tables.events:
            files = hour_rows.adopt_files(hours)
            write = replace(write, gathered=hour_rows.gathered, data_files=files)
        writes.append(write)
    return writes


def _in_hours(read: Read, hours: Collection[datetime]) -> DataFrame:
    return read().where(in_hours(hours))
