"""Publication of a run's decisions: the rows of each hour and its state in the ledger."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from transom.core.intervals import UNKNOWN_HOUR
from transom.core.partitions import EMPTY_DIGEST, CheckResult, PartitionKey, PartitionState
from transom.engine.check_builders import waivers_of
from transom.engine.damage_marks import publish_marks
from transom.engine.failing_rows import SAMPLE
from transom.engine.measurement import evaluate, measure
from transom.engine.outcomes import NO_ROWS, resolve_outcomes
from transom.engine.planner import Plan, left_stale
from transom.engine.publisher import is_published, publish
from transom.engine.runner import Outcome
from transom.features.ingest.checks import hour_checks
from transom.features.ingest.equal_files import equal_files
from transom.features.ingest.file_decisions import Decisions
from transom.features.ingest.file_records import FileContent, FileRecord, with_duplicates
from transom.features.ingest.hour_states import HourState, Periods, hour_states
from transom.features.ingest.read_files import FileReadResult
from transom.features.ingest.snapshot import IngestSnapshot
from transom.features.ingest.specified import BLOCK, STAGE, partition_of, scheduled
from transom.features.ingest.staged_rows import StagedRows
from transom.features.ingest.tables import HourRows, Tables, file_rows, hashed_rows
from transom.ledger.ledger import Ledger
from transom.ledger.snapshot import LedgerSnapshot
from transom.ledger.stage import BlockOutput, StepResult, TableStep
from transom.spec.stream import Stream
from transom.storage.store import Write, in_hours

SCATTERED = 4
"""Average number of files of an hour, up to which each writes its own part; more are gathered first."""


@dataclass(frozen=True)
class IngestDecision:
    """The decisions of a run, and what they are based on.

    Attributes:
        files: the new rows of `files` that concern the run, by path.
        contents: of the files that were read, by path.
        reads: results of reading, by path.
        results: of the checks of these files.
    """

    decisions: Decisions
    files: Mapping[str, FileRecord]
    contents: Mapping[str, FileContent]
    reads: Mapping[str, FileReadResult]
    results: Sequence[CheckResult]


def publish_decision(
    ledger: Ledger,
    tables: Tables,
    snapshot: IngestSnapshot,
    found: IngestDecision,
    rows: StagedRows,
    run_id: str,
) -> Outcome:
    """Publish every hour that changes, is stale, or is requested for the first time.

    Raises:
        LakeError: staged rows are missing.
        RunSuperseded: another run claimed or wrote the same.
    """
    decisions, stream = found.decisions, rows.stream
    # The numbers of duplicates are computed below; they decide nothing here.
    due, results = _required_hours(stream, tables, snapshot, decisions, found.files, run_id)
    files = with_duplicates(found.files, snapshot.recorded, decisions.added, {})
    if not due:
        return Outcome(stale=_left_stale(snapshot, files, {}))
    published = {hour for hour, state in due.items() if state is not None}
    stored = {
        table.name: [
            hour
            for hour in due
            if (state := snapshot.ledger_state.get(partition_of(table.name, hour))) and state.rows
        ]
        for table in tables
    }
    hour_rows = HourRows(tables, snapshot.pins, decisions, found.reads, rows, stored)
    frames, deltas = hour_rows.by_table(files)
    if deltas is not None:
        files = with_duplicates(found.files, snapshot.recorded, decisions.added, deltas)
    # Hours of files whose number of duplicates changes: only their rows of `files` are published.
    recounted = {file.hour for path, file in files.items() if file != snapshot.recorded.get(path)}
    recounted -= published | {key.hour for key in snapshot.files_kept if key.table == "files"}
    rewritten = published | recounted
    if snapshot.inventory is not None:
        # The rows of an hour are replaced together, with those of files that do not concern this run.
        snapshot.inventory.of_hours(rewritten)
        kept = {path: file for path, file in snapshot.recorded.items() if path not in decisions.dropped}
        files = {**kept, **files}
    new_files = file_rows(tables.files, [file for file in files.values() if file.hour in rewritten])
    frames["files"] = rows.store.spark.createDataFrame(new_files)
    partitions = [partition_of(table.name, hour) for table in tables for hour in due]
    partitions += [partition_of("files", hour) for hour in sorted(recounted)]
    step, hashes = step_of(stream, tables), hashed_rows(tables, frames)
    metrics = measure(step, hashes, StepResult(()), partitions, {}, by="table")
    states = _with_rows(due, metrics, snapshot.ledger_state, run_id)
    gathered = deltas is None and _few_files_per_hour(decisions, files)
    parts = [part for path in decisions.added.values() for part in found.reads[path].events]
    # Staged parts become part of `events` as they are, if nothing changes their rows and each is of one hour.
    as_staged = gathered and not stored["events"] and not stream.derived and all(part.hour for part in parts)
    writes = []
    changed = _rewritten_hours(tables, snapshot, decisions, metrics)
    for table in tables:
        if not (hours := changed.get(table.name)):
            continue
        new = new_files if table is tables.files else frames[table.name].where(in_hours(hours))
        size = sum(metrics[partition_of(table.name, hour)]["bytes"] for hour in hours)
        write = Write(table, new, {None: hours}, bytes=size)
        if table is tables.events:
            own = [part for part in parts if part.hour in set(hours)] if as_staged else None
            rows.taken[table.name] = own or ()
            write = replace(write, gathered=gathered, parts=own)
        writes.append(write)
    reported = [result for result in [*found.results, *results] if result.partition.hour in published]
    # Results of earlier runs on files that are still there and were not read again.
    earlier = ledger.checks(snapshot.ledger_state, STAGE, published)
    reported += [result for result in earlier if result.file in files.keys() - found.reads.keys()]
    publish(
        rows.store, ledger, STAGE, run_id, writes, states, snapshot.ledger_state, reported,
        snapshot.pins.versions, _still_valid(snapshot, decisions),
    )  # fmt: skip
    of_events = [state for partition, state in states.items() if state and partition.table == "events"]
    outcome = Outcome.of(of_events, len(published - snapshot.scope.requested))
    # Rows of quarantined hours are published, too.
    outcome.rows_out = sum(state.rows for state in of_events)
    outcome.stale = _left_stale(snapshot, files, states)
    return outcome


def publish_kept_damage(ledger: Ledger, snapshot: IngestSnapshot, run_id: str) -> None:
    """Publish why partitions stay damaged; their digest does not change.

    Raises:
        RunSuperseded: another run has written one of them in the meantime.
    """
    states = {}
    for partition, cause in snapshot.files_kept.items():
        state = snapshot.ledger_state[partition]
        rows = state.rows if state.damaged else 0
        requested = state.requested or partition.hour in snapshot.scope.requested
        before = state.state_before_claim()
        after = replace(before, status="damaged", reason=cause, rows=rows, requested=requested)
        if after != state:
            states[partition] = replace(after, run_id=run_id)
    publish_marks(ledger, STAGE, run_id, states, snapshot.ledger_state)


def _required_hours(
    stream: Stream,
    tables: Tables,
    snapshot: IngestSnapshot,
    decisions: Decisions,
    files: Mapping[str, FileRecord],
    run_id: str,
) -> tuple[dict[datetime, PartitionState | None], list[CheckResult]]:
    """Return the new state, but for the rows, of each hour to publish, and the results of its checks. None is
    an hour to forget: it has no file left, and was never requested."""
    affected = _affected(snapshot.recorded, files, decisions)
    changed = changed_hours(snapshot, files, decisions)
    touched = snapshot.scope.requested.union(*(file.touched for file in files.values()))
    forgotten = {hour for hour in changed - touched if not snapshot.was_requested(hour)}
    equal = equal_files(files.values(), snapshot.rules.name_of)
    hours, periods = changed - forgotten, Periods.of(stream)
    by_files = hour_states(files.values(), hours, snapshot.rules.shape, snapshot.listed, equal, periods)
    states, results = _hour_outcomes(stream, tables, snapshot, by_files, run_id)
    # A requested hour whose state does not change is not published.
    due: dict[datetime, PartitionState | None] = {
        hour: state
        for hour, state in states.items()
        if hour in affected | snapshot.recompute
        or not _as_published(snapshot.ledger_state, tables, hour, state)
    }
    return dict(sorted((due | dict.fromkeys(forgotten)).items())), results


def changed_hours(
    snapshot: IngestSnapshot, files: Mapping[str, FileRecord], decisions: Decisions
) -> set[datetime]:
    """Return the hours that a run checks: those that change, are requested, or are stale within its scope."""
    stale = (hour for hour in snapshot.stale() if hour == UNKNOWN_HOUR or snapshot.scope.covers(hour))
    changed = _affected(snapshot.recorded, files, decisions)
    return changed.union(snapshot.scope.requested, stale) - snapshot.kept_hours


def _with_rows(
    due: Mapping[datetime, PartitionState | None],
    metrics: Mapping[PartitionKey, Mapping[str, Any]],
    ledger: LedgerSnapshot,
    run_id: str,
) -> dict[PartitionKey, PartitionState | None]:
    """Return the new state of each partition.

    Args:
        due: the new states but for the rows. Other hours keep their state, that before an unfinished claim.
        metrics: `count` and `digest` of the rows.
    """
    states: dict[PartitionKey, PartitionState | None] = {}
    for key, metric in metrics.items():
        state = due[key.hour] if key.hour in due else replace(ledger[key].state_before_claim(), run_id=run_id)
        states[key] = state and replace(state, digest=metric["digest"], rows=metric["count"])
    return states


def _rewritten_hours(
    tables: Tables,
    snapshot: IngestSnapshot,
    decisions: Decisions,
    metrics: Mapping[PartitionKey, Mapping[str, Any]],
) -> dict[str, list[datetime]]:
    """Return the hours of each table whose rows change.

    Columns that are excluded from the digest may change under an equal one: those of `files` always, others
    where rows are removed.
    """
    removed: set[datetime] = set().union(*decisions.removed.values())
    excluding = {table.name for table in tables if table.excluded_from_digest}
    changed: dict[str, list[datetime]] = {}
    for partition, metric in metrics.items():
        hour, table = partition.hour, partition.table
        unseen = table == "files" or (hour in removed and table in excluding)
        if (
            unseen
            or hour in snapshot.recompute
            or not is_published(snapshot.ledger_state, partition, metric["digest"])
        ):
            changed.setdefault(table, []).append(hour)
    return changed


def _still_valid(snapshot: IngestSnapshot, decisions: Decisions) -> Callable[[LedgerSnapshot], bool]:
    """Return whether a run's decisions are valid for a later ledger, beside the partitions that it claims.

    Two runs that read one content under two paths both claim the hours of its events. Contents without events
    have only the hours of their files, so any change of `files` makes decisions on them invalid.
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


def _left_stale(
    snapshot: IngestSnapshot,
    files: Mapping[str, FileRecord],
    states: Mapping[PartitionKey, PartitionState | None],
) -> dict[PartitionKey, PartitionState | None]:
    """Return the partitions beyond the run's scope that are stale after it.

    Args:
        snapshot: before the run.
        files: after it.
        states: published by it; it publishes all hours of a changed file, wherever they are.
    """
    after = replace(snapshot, recorded=files, ledger_state=snapshot.ledger_state.updated(states))
    stale = (partition_of("events", hour) for hour in after.stale() if hour != UNKNOWN_HOUR)
    return left_stale(stale, after.ledger_state, snapshot.scope)


def _few_files_per_hour(decisions: Decisions, files: Mapping[str, FileRecord]) -> bool:
    """Return whether new rows of an hour come, on average, from few files: each is read by one task."""
    hours = [hour for path in decisions.added.values() for hour in files[path].hours]
    return len(hours) <= SCATTERED * len(set(hours))


def _affected(
    known: Mapping[str, FileRecord], files: Mapping[str, FileRecord], decisions: Decisions
) -> set[datetime]:
    """Return the hours whose tables change."""
    pairs = ((known.get(path), files.get(path)) for path in known.keys() | files.keys())
    changed = (file.touched for pair in pairs if pair[0] != pair[1] for file in pair if file)
    return set[datetime]().union(*changed, *decisions.removed.values())


def _as_published(ledger: LedgerSnapshot, tables: Tables, hour: datetime, new: PartitionState) -> bool:
    """Return whether an hour's state equals the ledger's, and no table of it is damaged or half written."""
    states = [ledger.get(partition_of(table.name, hour)) for table in tables]
    if any(state is not None and state.status in ("writing", "damaged") for state in states):
        return False
    state = ledger.get(partition_of("events", hour))
    return state is not None and replace(state, digest=EMPTY_DIGEST, rows=0, run_id=new.run_id) == new


def _hour_outcomes(
    stream: Stream,
    tables: Tables,
    snapshot: IngestSnapshot,
    by_files: Mapping[datetime, HourState],
    run_id: str,
) -> tuple[dict[datetime, PartitionState], list[CheckResult]]:
    """Return the new state of each hour but for its rows, and the results of its checks."""
    step, hours = step_of(stream, tables), {partition_of("events", hour): of for hour, of in by_files.items()}
    plan = Plan(
        hours={BLOCK: [*by_files]},
        inputs={key: snapshot.inputs(key.hour, of.mixed_specifications) for key, of in hours.items()},
        wrong={key: of.wrong for key, of in hours.items()},
        missing={key: of.missing for key, of in hours.items()},
    )
    metrics = {key: {**NO_ROWS, **of.metrics(scheduled(stream, key.hour))} for key, of in hours.items()}
    results = [
        result
        if result.success
        else result.with_failing_rows(hours[result.partition].at_fault.get(result.check, ())[:SAMPLE])
        for result in evaluate(step, metrics, waivers_of(stream))
    ]
    states = resolve_outcomes(STAGE, step, plan, snapshot.ledger_state, metrics, results, "", run_id)

    def requested(hour: datetime) -> bool:
        return hour in snapshot.scope.requested or snapshot.was_requested(hour)

    return {key.hour: replace(state, requested=requested(key.hour)) for key, state in states.items()}, results


def step_of(stream: Stream, tables: Tables) -> TableStep:
    """Return the step by which the engine judges the hours of `events`."""
    output = BlockOutput((), "", ())
    return TableStep(tables.events, {BLOCK: output}, checks=hour_checks(stream), withholds=False)
