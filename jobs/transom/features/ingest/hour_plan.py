"""Which hours a run of ingest publishes, and their states by the files. No Spark."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from transom.core.intervals import UNKNOWN_HOUR, number_of
from transom.core.partitions import EMPTY_DIGEST, CheckResult, PartitionKey, PartitionState
from transom.engine.check_builders import waivers_of
from transom.engine.planner import Plan, left_stale
from transom.engine.publisher import ComputedStep
from transom.features.ingest.checks import hour_checks
from transom.features.ingest.equal_files import equal_files
from transom.features.ingest.expected_inputs import BLOCK, STAGE, partition_of, scheduled
from transom.features.ingest.file_decisions import Decisions
from transom.features.ingest.file_records import FileContent, FileRecord
from transom.features.ingest.hour_states import HourState, Periods, hour_states
from transom.features.ingest.read_files import FileReadResult
from transom.features.ingest.snapshot import IngestSnapshot
from transom.features.ingest.tables import Tables
from transom.ledger.snapshot import LedgerSnapshot
from transom.ledger.stage import BlockOutput, TableStep
from transom.ledger.task_counters import NOTES, TaskCounters
from transom.spec.stream import Stream


@dataclass(frozen=True)
class IngestDecision:
    """The decisions of a run, and what they are based on.

    Attributes:
        decisions: the decisions on files.
        files: the new rows of `files` that concern the run, by path.
        contents: the contents of the files that were read, by path.
        reads: the results of reading, by path.
        results: the results of the checks of the files that were read.
    """

    decisions: Decisions
    files: Mapping[str, FileRecord]
    contents: Mapping[str, FileContent]
    reads: Mapping[str, FileReadResult]
    results: Sequence[CheckResult]


def plan_hours(
    stream: Stream, tables: Tables, snapshot: IngestSnapshot, decision: IngestDecision, run_id: str
) -> tuple[ComputedStep, set[datetime]]:
    """Plan every hour that changes, is stale, or is requested for the first time.

    Returns:
        The step of the hours of `events` to publish, without rows; and the hours whose partitions are
        deleted, which no file touches and no run requested.
    """
    files, rules, ledger = decision.files, snapshot.rules, snapshot.ledger_state
    changed = changed_hours(snapshot, files, decision.decisions)
    touched = snapshot.scope.requested.union(*(file.touched for file in files.values()))
    forgotten = {hour for hour in changed - touched if not snapshot.was_requested(hour)}
    equal, periods = equal_files(files.values(), rules.name_of), Periods.of(stream)
    by_files = hour_states(
        files.values(), changed - forgotten, rules.spec_hash, snapshot.listed, equal, periods
    )
    rewritten = _affected(snapshot.recorded, files, decision.decisions) | snapshot.recompute
    same_rows = {hour: state for hour, state in by_files.items() if hour not in rewritten}
    _, states, _ = step_by_files(stream, tables, snapshot, same_rows, run_id).resolve(is_plan=True)
    # An hour whose rows stay is published only if its state changes.
    for key, state in states.items():
        new = state and replace(state, requested=snapshot.is_requested(key.hour))
        if new is not None and _as_published(ledger, tables, key, new):
            del by_files[key.hour]
    return step_by_files(stream, tables, snapshot, by_files, run_id), forgotten


def changed_hours(
    snapshot: IngestSnapshot, files: Mapping[str, FileRecord], decisions: Decisions
) -> set[datetime]:
    """Return the hours that a run checks: those that change, are requested, or are stale within its scope."""
    stale = (hour for hour in snapshot.stale() if hour == UNKNOWN_HOUR or snapshot.scope.covers(hour))
    changed = _affected(snapshot.recorded, files, decisions)
    return changed.union(snapshot.scope.requested, stale) - snapshot.kept_hours


def stale_after(
    snapshot: IngestSnapshot,
    files: Mapping[str, FileRecord],
    states: Mapping[PartitionKey, PartitionState | None],
) -> dict[PartitionKey, PartitionState | None]:
    """Return the partitions out of the run's scope that are stale after it.

    Args:
        snapshot: the snapshot before the run.
        files: the rows of `files` after the run, by path.
        states: the states that the run published; it publishes all hours of a changed file, near or far.
    """
    after = replace(snapshot, recorded=files, ledger_state=snapshot.ledger_state.updated(states))
    stale = (partition_of("events", hour) for hour in after.stale() if hour != UNKNOWN_HOUR)
    return left_stale(stale, after.ledger_state, snapshot.scope)


def step_of(stream: Stream, tables: Tables) -> TableStep:
    """Return the step by which the engine publishes the hours of `events`."""
    output = BlockOutput((), "", ())
    return TableStep(tables.events, {BLOCK: output}, checks=hour_checks(stream), withholds=False)


def step_by_files(
    stream: Stream,
    tables: Tables,
    snapshot: IngestSnapshot,
    by_files: Mapping[datetime, HourState],
    run_id: str,
) -> ComputedStep:
    """Return the step of hours of `events` from their states by the files, without rows."""
    plan, counters = Plan(hours={BLOCK: [*by_files]}), TaskCounters()
    for hour, state in by_files.items():
        key, number = partition_of("events", hour), number_of(hour)
        plan.inputs[key] = snapshot.inputs(hour, state.mixed_specifications)
        plan.wrong[key], plan.missing[key] = state.wrong, state.missing
        for name, value in state.metrics(scheduled(stream, hour)).items():
            if value is not None:
                counters.maxima[number, name] = value
        counters.notes |= {(number, check): texts[:NOTES] for check, texts in state.at_fault.items()}
    repaired = len(by_files.keys() - snapshot.scope.requested)
    return ComputedStep(
        stage=STAGE, step=step_of(stream, tables), plan=replace(plan, repaired=repaired), rows=None,
        snapshot=snapshot.ledger_state, waivers=waivers_of(stream), run_id=run_id, partitions=plan.inputs,
        counted={BLOCK: counters}, by="table",
    )  # fmt: skip


def _as_published(ledger: LedgerSnapshot, tables: Tables, key: PartitionKey, new: PartitionState) -> bool:
    """Return whether an hour's state equals the ledger's, and no table of it is damaged or half written."""
    states = [ledger.get(partition_of(table.name, key.hour)) for table in tables]
    if any(state is not None and state.status in ("writing", "damaged") for state in states):
        return False
    state = ledger.get(key)
    return state is not None and replace(state, digest=EMPTY_DIGEST, rows=0, run_id=new.run_id) == new


def _affected(
    known: Mapping[str, FileRecord], files: Mapping[str, FileRecord], decisions: Decisions
) -> set[datetime]:
    """Return the hours whose tables change."""
    pairs = ((known.get(path), files.get(path)) for path in known.keys() | files.keys())
    changed = (file.touched for pair in pairs if pair[0] != pair[1] for file in pair if file)
    return set[datetime]().union(*changed, *decisions.removed.values())
