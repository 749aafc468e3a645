"""From what a run of ingest decided to what stands: the rows of each hour, and what the ledger says of it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from transom.core.intervals import UNKNOWN_HOUR
from transom.core.partitions import EMPTY_DIGEST, CheckResult, PartitionKey, PartitionState
from transom.engine.check_builders import waivers_of
from transom.engine.damage_marks import publish_marks
from transom.engine.failing_rows import SAMPLE
from transom.engine.metrics import evaluate, measure
from transom.engine.outcomes import NO_ROWS, resolve_outcomes
from transom.engine.planner import Plan, left_stale
from transom.engine.publisher import is_published, publish
from transom.engine.runner import Outcome
from transom.features.ingest.checks import hour_checks
from transom.features.ingest.equal_files import equal_files
from transom.features.ingest.file_decisions import Decisions
from transom.features.ingest.file_records import FileContent, FileRecord, with_duplicates
from transom.features.ingest.hour_states import HourState, hour_states
from transom.features.ingest.periods import Periods
from transom.features.ingest.read_files import FileReadResult
from transom.features.ingest.snapshot import IngestSnapshot
from transom.features.ingest.specified import BLOCK, STAGE, node_of, scheduled
from transom.features.ingest.staged_rows import StagedRows
from transom.features.ingest.tables import HourRows, Tables, file_rows, hashed_rows
from transom.ledger.ledger import Ledger
from transom.ledger.snapshot import LedgerSnapshot
from transom.ledger.stage import BlockOutput, StepResult, TableStep
from transom.spec.stream import Stream
from transom.storage.data_files import DataFile
from transom.storage.store import Write, in_hours
from transom.storage.tables import Table

SCATTERED = 4
"""Files of an hour, on average, up to which each writes its part of it: more are brought together first."""


@dataclass(frozen=True)
class IngestDecision:
    """What a run found.

    Attributes:
        files: the rows of `files` as they will stand, by path: those that the run has to do with.
        contents: of the files that were read, by path.
        reads: where their rows are, by path.
        verdicts: what the checks saw in the files that were read.
    """

    decisions: Decisions
    files: Mapping[str, FileRecord]
    contents: Mapping[str, FileContent]
    reads: Mapping[str, FileReadResult]
    verdicts: Sequence[CheckResult]


def publish_decision(
    ledger: Ledger,
    tables: Tables,
    scene: IngestSnapshot,
    found: IngestDecision,
    rows: StagedRows,
    run_id: str,
) -> Outcome:
    """Publishes every hour that a new, changed or withdrawn file touches, and those that are stale or were
    asked for and do not stand yet.

    Raises:
        LakeError: what was written of the files cannot be found.
    """
    decisions, book, stream = found.decisions, scene.ledger_state, rows.stream
    # Duplicates are counted below: to count them anew changes nothing of an hour.
    due, verdicts = _required_hours(stream, tables, scene, decisions, found.files, run_id)
    files = with_duplicates(found.files, scene.recorded, decisions.added, {})
    if not due:
        return Outcome(stale=_left_stale(scene, files, {}))
    published = {hour for hour, entry in due.items() if entry is not None}
    stored = {table.name: _stored(book, table, due) for table in tables}
    frames, more = HourRows(tables, scene.pins, decisions, found.reads, rows, stored).by_table(files)
    if more is not None:
        files = with_duplicates(found.files, scene.recorded, decisions.added, more)
    # Where files have won or lost a duplicate, and nothing else: their rows alone are published.
    recounted = {file.hour for path, file in files.items() if file != scene.recorded.get(path)}
    recounted -= published | {node.hour for node in scene.files_kept if node.table == "files"}
    of_hours = published | recounted
    if scene.inventory is not None:
        # The rows of an hour are replaced together: those, too, that this run has nothing to do with.
        scene.inventory.of_hours(of_hours)
        files = {**{p: f for p, f in scene.recorded.items() if p not in decisions.dropped}, **files}
    in_file_rows = file_rows(tables.files, [file for file in files.values() if file.hour in of_hours])
    frames["files"] = rows.store.spark.createDataFrame(in_file_rows)
    nodes = [node_of(table.name, hour) for table in tables for hour in due]
    nodes += [node_of("files", hour) for hour in sorted(recounted)]
    figures = measure(
        step_of(stream, tables), hashed_rows(tables, frames), StepResult(()), nodes, {}, by="table"
    )
    entries = _with_rows(due, figures, book, run_id)
    changed = _rewritten_hours(tables, scene, decisions, figures)
    lie_together = more is None and _few_files_per_hour(decisions, files)
    taken = lie_together and not stored["events"] and not stream.derived
    parts = _parts(decisions, found.reads) if taken else None
    writes = []
    for table in tables:
        hours = changed.get(table.name)
        if not hours:
            continue
        new = in_file_rows if table is tables.files else frames[table.name].where(in_hours(hours))
        size = sum(figures[node_of(table.name, hour)]["bytes"] for hour in hours)
        write = Write(table, new, {None: hours}, bytes=size)
        if table is tables.events:
            if parts is not None:
                rows.taken[table.name] = parts = [part for part in parts if part.hour in set(hours)]
            write = replace(write, gathered=lie_together, parts=parts)
        writes.append(write)
    seen = [verdict for verdict in [*found.verdicts, *verdicts] if verdict.node.hour in published]
    # What earlier runs saw in files that are still there and were not read again.
    not_read = files.keys() - found.reads.keys()
    earlier = ledger.checks(book, STAGE, published)
    seen += [verdict for verdict in earlier if verdict.file in not_read]
    holds = _holding(scene, decisions)
    publish(rows.store, ledger, STAGE, run_id, writes, entries, book, seen, scene.pins.versions, holds)
    of_events = [entry for node, entry in entries.items() if entry and node.table == "events"]
    outcome = Outcome.of(of_events, len(published - scene.scope.requested))
    # The rows of quarantined hours are published, too.
    outcome.rows_out = sum(entry.rows for entry in of_events)
    outcome.stale = _left_stale(scene, files, entries)
    return outcome


def publish_kept_damage(ledger: Ledger, scene: IngestSnapshot, run_id: str) -> None:
    """Publishes the cause for which nodes are damaged and stay so; their digest stays as it is.

    Raises:
        Overtaken: another run has written one of them in the meantime.
    """
    entries = {}
    for node, cause in scene.files_kept.items():
        entry = scene.ledger_state[node]
        rows = entry.rows if entry.damaged else 0
        asked = entry.requested or node.hour in scene.scope.requested
        after = replace(
            entry.state_before_claim(), status="damaged", reason=cause, rows=rows, requested=asked
        )
        if after != entry:
            entries[node] = replace(after, run_id=run_id)
    publish_marks(ledger, STAGE, run_id, entries, scene.ledger_state)


def _required_hours(
    stream: Stream,
    tables: Tables,
    scene: IngestSnapshot,
    decisions: Decisions,
    files: Mapping[str, FileRecord],
    run_id: str,
) -> tuple[dict[datetime, PartitionState | None], list[CheckResult]]:
    """What the ledger will say, but for its rows, of each hour that a run has to publish: of those that it
    sees to, the ones that do not stand as they come out. None is of an hour as if there had never been a file
    of it. And what the checks of hours saw."""
    affected = _affected(scene.recorded, files, decisions)
    changed = changed_hours(scene, files, decisions)
    touched = scene.scope.requested.union(*(file.touched for file in files.values()))
    forgotten = {hour for hour in changed - touched if not scene.was_requested(hour)}
    equal = equal_files(files.values(), scene.rules.name_of)
    states = hour_states(
        files.values(), changed - forgotten, scene.rules.shape, scene.listed, equal, Periods.of(stream)
    )
    entries, verdicts = _entries(stream, tables, scene, states, run_id)
    # An hour that was asked for and comes out as it stands is left alone.
    to_publish: dict[datetime, PartitionState | None] = {
        hour: entry
        for hour, entry in entries.items()
        if hour in affected | scene.recompute or not _as_published(scene.ledger_state, tables, hour, entry)
    }
    return dict(sorted((to_publish | dict.fromkeys(forgotten)).items())), verdicts


def changed_hours(
    scene: IngestSnapshot, files: Mapping[str, FileRecord], decisions: Decisions
) -> set[datetime]:
    """The hours that a run looks at: those that something in it changes, that it was asked for, or that are
    out of date near it."""
    stale = (hour for hour in scene.stale() if hour == UNKNOWN_HOUR or scene.scope.covers(hour))
    return _affected(scene.recorded, files, decisions).union(scene.scope.requested, stale) - scene.kept_hours


def _with_rows(
    due: Mapping[datetime, PartitionState | None],
    figures: Mapping[PartitionKey, Mapping[str, Any]],
    book: LedgerSnapshot,
    run_id: str,
) -> dict[PartitionKey, PartitionState | None]:
    """What the ledger will say of each node.

    Args:
        figures: number and digest of its rows. Of hours that are not due nothing changes but the rows: they
            are withheld, incomplete or stale as they were, also where a killed run had begun to replace them.
    """
    entries = {
        node: due[node.hour] if node.hour in due else replace(book[node].state_before_claim(), run_id=run_id)
        for node in figures
    }
    return {
        node: entry and replace(entry, digest=figures[node]["digest"], rows=figures[node]["count"])
        for node, entry in entries.items()
    }


def _rewritten_hours(
    tables: Tables,
    scene: IngestSnapshot,
    decisions: Decisions,
    figures: Mapping[PartitionKey, Mapping[str, Any]],
) -> dict[str, list[datetime]]:
    """The hours of each table whose rows are others than stand."""
    leaving: set[datetime] = set().union(*decisions.removed.values())
    by_name = {table.name: table for table in tables}
    changed: dict[str, list[datetime]] = {}
    for node, of_node in figures.items():
        # The columns outside the promise change under an equal digest: of files always, of rows where
        # some leave that may hold something there.
        unseen = node.table == "files" or (
            node.hour in leaving and bool(by_name[node.table].excluded_from_digest)
        )
        rewritten = unseen or node.hour in scene.recompute
        if rewritten or not is_published(scene.ledger_state, node, of_node["digest"]):
            changed.setdefault(node.table, []).append(node.hour)
    return changed


def _holding(scene: IngestSnapshot, decisions: Decisions) -> Callable[[LedgerSnapshot], bool]:
    """Whether what a run has decided holds in a later ledger, beside the nodes that it claims.

    Two runs that meet one content, each under a name of its own, both claim the hours of its events. One
    without events has no hour in common but by its files.
    """
    paths = decisions.files.keys() | decisions.dropped
    met = [files[path] for files in (scene.recorded, decisions.files) for path in paths & files.keys()]
    anywhere = any(file.source_id is not None and not file.hours for file in met)

    def holds(book: LedgerSnapshot) -> bool:
        before, now = (of.series(STAGE, BLOCK, "files") for of in (scene.ledger_state, book))
        return scene.scope.still_valid(book, STAGE) and not (anywhere and before != now)

    return holds


def _parts(decisions: Decisions, reads: Mapping[str, FileReadResult]) -> list[DataFile] | None:
    """The parts of the files that enter; None where one of them is of several hours."""
    parts = [part for path in decisions.added.values() for part in reads[path].events]
    return None if any(part.hour is None for part in parts) else parts


def _left_stale(
    scene: IngestSnapshot,
    files: Mapping[str, FileRecord],
    results: Mapping[PartitionKey, PartitionState | None],
) -> dict[PartitionKey, PartitionState | None]:
    """Stale nodes that lie too far from the run, as it has left files and ledger: it publishes what a file of
    its hours touches, wherever that lies."""
    after = replace(scene, recorded=files, ledger_state=scene.ledger_state.updated(results))
    stale = (node_of("events", hour) for hour in after.stale() if hour != UNKNOWN_HOUR)
    return left_stale(stale, after.ledger_state, scene.scope)


def _few_files_per_hour(decisions: Decisions, files: Mapping[str, FileRecord]) -> bool:
    """Whether the rows that enter an hour come, on average, from few files, and so from few partitions: a
    task reads a file whole. What stays in the hour comes from the lake, in a partition or two of its own."""
    hours = [hour for path in decisions.added.values() for hour in files[path].hours]
    return len(hours) <= SCATTERED * len(set(hours))


def _stored(book: LedgerSnapshot, table: Table, hours: Iterable[datetime]) -> list[datetime]:
    """The hours of them in which a table holds rows."""
    held = {hour: book.get(node_of(table.name, hour)) for hour in hours}
    return [hour for hour, entry in held.items() if entry and entry.rows]


def _affected(
    known: Mapping[str, FileRecord], files: Mapping[str, FileRecord], decisions: Decisions
) -> set[datetime]:
    """The hours in whose tables something changes."""
    hours: set[datetime] = set()
    for path in known.keys() | files.keys():
        before, after = known.get(path), files.get(path)
        if before != after:
            hours |= before.touched if before else set()
            hours |= after.touched if after else set()
    return hours.union(*decisions.removed.values())


def _as_published(book: LedgerSnapshot, tables: Tables, hour: datetime, new: PartitionState) -> bool:
    """Whether an hour's files say of it what the ledger says, and no killed run has left part of it."""
    nodes = [book.get(node_of(table.name, hour)) for table in tables]
    if any(entry is not None and entry.status in ("writing", "damaged") for entry in nodes):
        return False
    held = book.get(node_of("events", hour))
    return held is not None and replace(held, digest=EMPTY_DIGEST, rows=0, run_id=new.run_id) == new


def _entries(
    stream: Stream, tables: Tables, scene: IngestSnapshot, states: Mapping[datetime, HourState], run_id: str
) -> tuple[dict[datetime, PartitionState], list[CheckResult]]:
    """What the ledger will say of each hour but for its rows, and what the checks of hours saw."""
    step = step_of(stream, tables)
    of_nodes = {node_of("events", hour): state for hour, state in states.items()}
    todo = Plan(
        hours={BLOCK: [*states]},
        inputs={n: scene.inputs(n.hour, state.mixed_specifications) for n, state in of_nodes.items()},
        wrong={node: state.wrong for node, state in of_nodes.items()},
        missing={node: state.missing for node, state in of_nodes.items()},
    )
    figures = {n: {**NO_ROWS, **state.metrics(scheduled(stream, n.hour))} for n, state in of_nodes.items()}
    verdicts = [
        v if v.success else v.with_failing_rows(of_nodes[v.node].at_fault.get(v.check, ())[:SAMPLE])
        for v in evaluate(step, figures, waivers_of(stream))
    ]
    entries = resolve_outcomes(STAGE, step, todo, scene.ledger_state, figures, verdicts, "", run_id)
    return {
        node.hour: replace(
            entry, requested=node.hour in scene.scope.requested or scene.was_requested(node.hour)
        )
        for node, entry in entries.items()
    }, verdicts


def step_of(stream: Stream, tables: Tables) -> TableStep:
    """Return what the engine has to know of the stage: its hours are those of `events`."""
    output = BlockOutput((), "", ())
    return TableStep(tables.events, {BLOCK: output}, checks=hour_checks(stream), withholds=False)
