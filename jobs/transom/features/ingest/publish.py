"""From what a run of ingest decided to what stands: the rows of each hour, and what the ledger says of it."""

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from transom.core.intervals import UNKNOWN_HOUR
from transom.core.partitions import EMPTY_DIGEST, CheckResult, PartitionKey, PartitionState
from transom.core.reasons import Cause, format_causes
from transom.engine.check_builders import waivers_of
from transom.engine.checks import evaluate_checks
from transom.engine.damage_marks import publish_marks
from transom.engine.failing_rows import SAMPLE
from transom.engine.publisher import is_published, publish
from transom.engine.runner import Outcome
from transom.features.ingest.checks import hour_checks
from transom.features.ingest.deduplicate import IS_DUPLICATE, compares, mark_duplicates
from transom.features.ingest.equal_files import equal_files
from transom.features.ingest.file_decisions import Decisions
from transom.features.ingest.file_records import FileContent, FileRecord, with_duplicates
from transom.features.ingest.hour_states import HourState, hour_states
from transom.features.ingest.periods import Periods
from transom.features.ingest.read_files import FileReadResult
from transom.features.ingest.snapshot import IngestSnapshot
from transom.features.ingest.specified import BLOCK, STAGE, node_of, scheduled
from transom.features.ingest.staged_rows import StagedRows
from transom.features.ingest.tables import Tables, candidates, file_rows, rejected, repeated_before
from transom.ledger.ledger import Ledger
from transom.ledger.snapshot import LedgerSnapshot
from transom.ledger.waivers import check_result_of, format_failure
from transom.spec.stream import Stream
from transom.storage import digest as digests
from transom.storage import driver_io as small
from transom.storage.data_files import DataFile
from transom.storage.store import Store, Write, cast_to_table, in_hours
from transom.storage.tables import Table

SCATTERED = 4
"""Files of an hour, on average, up to which each writes its part of it: more are brought together first."""
NOTHING = (0, EMPTY_DIGEST, 0)
"""Number, digest and size of no rows."""


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
    store: Store,
    ledger: Ledger,
    stream: Stream,
    tables: Tables,
    scene: IngestSnapshot,
    found: IngestDecision,
    rows: StagedRows,
    keep: Callable[[DataFrame], DataFrame],
    run_id: str,
) -> Outcome:
    """Publishes every hour that a new, changed or withdrawn file touches, and those that are stale or were
    asked for and do not stand yet.

    Args:
        keep: persists rows that are read several times.

    Raises:
        LakeError: what was written of the files cannot be found.
    """
    decisions, reads, book = found.decisions, found.reads, scene.ledger_state
    # Duplicates are counted below: to count them anew changes nothing of an hour.
    due = _required_hours(stream, tables, scene, decisions, found.files, run_id)
    files = with_duplicates(found.files, scene.recorded, decisions.added, {})
    outcome = Outcome()
    if not due.hours:
        outcome.stale = _left_stale(scene, files, {})
        return outcome
    outcome.hours_healed = len(due.entries.keys() - scene.scope.requested)
    stored = {table.name: _stored(book, table, due.hours) for table in tables}
    frames, more = _frames(stream, tables, scene, found, files, rows, stored, keep)
    if more is not None:
        files = with_duplicates(found.files, scene.recorded, decisions.added, more)
    # Where files have won or lost a duplicate, and nothing else: their rows alone are published.
    recounted = {file.hour for path, file in files.items() if file != scene.recorded.get(path)}
    recounted -= due.entries.keys() | {node.hour for node in scene.files_kept if node.table == "files"}
    of_hours = due.entries.keys() | recounted
    if scene.inventory is not None:
        # The rows of an hour are replaced together: those, too, that this run has nothing to do with.
        scene.inventory.of_hours(of_hours)
        files = {**{p: f for p, f in scene.recorded.items() if p not in decisions.dropped}, **files}
    in_file_rows = file_rows(tables.files, [file for file in files.values() if file.hour in of_hours])
    frames["files"] = store.spark.createDataFrame(in_file_rows)
    figures = figures_of(tables, frames)
    results, changed = _results(tables, scene, due, recounted, decisions, figures, run_id)
    lie_together = more is None and _few_files_per_hour(decisions, files)
    parts = _parts(decisions, reads) if lie_together and not stored["events"] and not stream.derived else None
    writes = []
    for table in tables:
        hours = changed.get(table.name)
        if not hours:
            continue
        taken = None
        if table is tables.events and parts is not None:
            taken = rows.taken[table.name] = [part for part in parts if part.hour in set(hours)]
        size = sum(figures.get((table.name, hour), NOTHING)[2] for hour in hours)
        new = in_file_rows if table is tables.files else frames[table.name].where(in_hours(hours))
        gathered = table is tables.events and lie_together
        writes.append(Write(table, new, {None: hours}, bytes=size, gathered=gathered, parts=taken))
    outcome.rows_out = sum(entry.rows for node, entry in results.items() if entry and node.table == "events")
    outcome.quarantined = sum(entry.status == "quarantined" for entry in due.entries.values())
    outcome.published = len(due.entries) - outcome.quarantined
    outcome.incomplete = sum(e.status == "published" and not e.complete for e in due.entries.values())
    seen = [verdict for verdict in [*found.verdicts, *due.checks] if verdict.node.hour in due.entries]
    # What earlier runs saw in files that are still there and were not read again.
    not_read = files.keys() - reads.keys()
    earlier = ledger.checks(book, STAGE, set(due.entries))
    seen += [verdict for verdict in earlier if verdict.subject in not_read]
    holds = _holding(scene, decisions)
    publish(store, ledger, STAGE, run_id, writes, results, book, seen, scene.pins.versions, holds)
    outcome.stale = _left_stale(scene, files, results)
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
        asked = entry.asked or node.hour in scene.scope.requested
        after = replace(entry.state_before_claim(), status="damaged", cause=cause, rows=rows, asked=asked)
        if after != entry:
            entries[node] = replace(after, run_id=run_id)
    publish_marks(ledger, STAGE, run_id, entries, scene.ledger_state)


@dataclass(frozen=True)
class _RequiredHours:
    """The hours that a run publishes.

    Attributes:
        entries: what the ledger will say of each, but for its rows.
        checks: what the checks of hours saw.
        forgotten: hours as if there had never been a file of them.
    """

    entries: Mapping[datetime, PartitionState]
    checks: Sequence[CheckResult]
    forgotten: Set[datetime]

    @property
    def hours(self) -> list[datetime]:
        """All of them, in order."""
        return sorted(self.entries.keys() | self.forgotten)


def _required_hours(
    stream: Stream,
    tables: Tables,
    scene: IngestSnapshot,
    decisions: Decisions,
    files: Mapping[str, FileRecord],
    run_id: str,
) -> _RequiredHours:
    """What a run has to publish: of the hours that it sees to, those that do not stand as they come out."""
    asked = scene.scope.requested
    affected = _affected(scene.recorded, files, decisions)
    changed = changed_hours(scene, files, decisions)
    touched = asked.union(*(file.touched for file in files.values()))
    forgotten = {hour for hour in changed - touched if not scene.was_requested(hour)}
    equal = equal_files(files.values(), scene.rules.name_of)
    states = hour_states(
        files.values(), changed - forgotten, scene.rules.shape, scene.listed, equal, Periods.of(stream)
    )
    entries, checks = _entries(stream, scene, states, run_id)
    # An hour that was asked for and comes out as it stands is left alone.
    to_publish = {
        hour: entry
        for hour, entry in entries.items()
        if hour in affected | scene.recompute or not _as_published(scene.ledger_state, tables, hour, entry)
    }
    return _RequiredHours(to_publish, checks, forgotten)


def changed_hours(
    scene: IngestSnapshot, files: Mapping[str, FileRecord], decisions: Decisions
) -> set[datetime]:
    """The hours that a run looks at: those that something in it changes, that it was asked for, or that are
    out of date near it."""
    stale = (hour for hour in scene.stale() if hour == UNKNOWN_HOUR or scene.scope.covers(hour))
    return _affected(scene.recorded, files, decisions).union(scene.scope.requested, stale) - scene.kept_hours


def _frames(
    stream: Stream,
    tables: Tables,
    scene: IngestSnapshot,
    found: IngestDecision,
    files: Mapping[str, FileRecord],
    rows: StagedRows,
    stored: Mapping[str, Sequence[datetime]],
    keep: Callable[[DataFrame], DataFrame],
) -> tuple[dict[str, DataFrame], dict[str, int] | None]:
    """The rows of every table but `files`; and how many duplicates more each source has, None where the
    stream compares no records."""
    decisions, reads, pins = found.decisions, found.reads, scene.pins
    records = candidates(tables, pins, decisions, reads, rows, stored)
    refused = rejected(tables.rejected, pins, decisions, reads, rows, stored, files)
    if not compares(stream) and not stored["duplicates"]:
        return {"events": records, "duplicates": records.where(F.lit(False)), "rejected": refused}, None
    records = keep(mark_duplicates(records, stream))
    repeats = cast_to_table(records.where(IS_DUPLICATE), tables.duplicates)
    more = _duplicate_deltas(repeats, repeated_before(tables, pins, decisions, stored))
    events = records.where(~F.col(IS_DUPLICATE)).drop(IS_DUPLICATE)
    return {"events": events, "duplicates": repeats, "rejected": refused}, more


def _results(
    tables: Tables,
    scene: IngestSnapshot,
    due: _RequiredHours,
    recounted: Set[datetime],
    decisions: Decisions,
    figures: Mapping[tuple[str, datetime], tuple[int, str, int]],
    run_id: str,
) -> tuple[dict[PartitionKey, PartitionState | None], dict[str, list[datetime]]]:
    """What the ledger will say of each node; and the hours of each table whose rows are others than stand."""
    book = scene.ledger_state
    leaving: set[datetime] = set().union(*decisions.removed.values())
    results: dict[PartitionKey, PartitionState | None] = {}
    changed: dict[str, list[datetime]] = {}
    for table in tables:
        for hour in [*due.hours, *(sorted(recounted) if table is tables.files else ())]:
            count, digest, _ = figures.get((table.name, hour), NOTHING)
            node = node_of(table.name, hour)
            entry = _as_recorded(book[node], run_id) if hour in recounted else due.entries.get(hour)
            results[node] = replace(entry, digest=digest, rows=count) if entry else None
            # The columns outside the promise change under an equal digest: of files always, of rows where
            # some leave that may hold something there.
            unseen = table is tables.files or (hour in leaving and bool(table.excluded_from_digest))
            if unseen or hour in scene.recompute or not is_published(book, node, digest):
                changed.setdefault(table.name, []).append(hour)
    return results, changed


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
    far = [hour for hour in after.stale() if hour != UNKNOWN_HOUR and scene.scope.out_of_reach(hour)]
    return {node: after.ledger_state.get(node) for node in (node_of("events", hour) for hour in far)}


def _few_files_per_hour(decisions: Decisions, files: Mapping[str, FileRecord]) -> bool:
    """Whether the rows that enter an hour come, on average, from few files, and so from few partitions: a
    task reads a file whole. What stays in the hour comes from the lake, in a partition or two of its own."""
    hours = [hour for path in decisions.added.values() for hour in files[path].hours]
    return len(hours) <= SCATTERED * len(set(hours))


def _stored(book: LedgerSnapshot, table: Table, hours: Iterable[datetime]) -> list[datetime]:
    """The hours of them in which a table holds rows."""
    held = {hour: book.get(node_of(table.name, hour)) for hour in hours}
    return [hour for hour, entry in held.items() if entry and entry.rows]


def _duplicate_deltas(now: DataFrame, before: DataFrame) -> dict[str, int]:
    """How many duplicates more each source has than before."""
    signed = [rows.select("source_id", F.lit(sign).alias("sign")) for rows, sign in ((now, 1), (before, -1))]
    counts = reduce(DataFrame.unionByName, signed).groupBy("source_id").agg(F.sum("sign").alias("more"))
    return {row["source_id"]: row["more"] for row in counts.toArrow().to_pylist()}


def _as_recorded(held: PartitionState, run_id: str) -> PartitionState:
    """An entry of which nothing changes but the rows: it is withheld, incomplete or stale as it was, also
    where a killed run had begun to replace it."""
    return replace(held.state_before_claim(), run_id=run_id)


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


def figures_of(
    tables: Tables, frames: Mapping[str, DataFrame]
) -> dict[tuple[str, datetime], tuple[int, str, int]]:
    """Return number, digest and size of the rows of each table and hour, in one aggregation."""
    hashed = [
        frames[table.name].select(
            F.lit(table.name).alias("table"),
            "hour",
            digests.row_hash(frames[table.name], table.digest_columns()).alias(digests.HASH),
            small.bytes_of(frames[table.name]).alias("bytes"),
        )
        for table in tables
    ]
    rows = (
        reduce(DataFrame.unionByName, hashed)
        .groupBy("table", "hour")
        .agg(
            F.count("*").alias("count"),
            digests.digest_of(F.count("*"), digests.total_hash(F.col(digests.HASH))).alias("digest"),
            F.sum("bytes").alias("bytes"),
        )
    )
    return {
        (row["table"], row["hour"].astimezone(UTC)): (row["count"], row["digest"], row["bytes"])
        for row in rows.toArrow().to_pylist()
    }


def _as_published(book: LedgerSnapshot, tables: Tables, hour: datetime, new: PartitionState) -> bool:
    """Whether an hour's files say of it what the ledger says, and no killed run has left part of it."""
    nodes = [book.get(node_of(table.name, hour)) for table in tables]
    if any(entry is not None and entry.status in ("writing", "damaged") for entry in nodes):
        return False
    held = book.get(node_of("events", hour))
    return held is not None and replace(held, digest=EMPTY_DIGEST, rows=0, run_id=new.run_id) == new


def _entries(
    stream: Stream, scene: IngestSnapshot, states: Mapping[datetime, HourState], run_id: str
) -> tuple[dict[datetime, PartitionState], list[CheckResult]]:
    """Status and completeness of each hour, as its files have it."""
    ordered, periods = sorted(states), Periods.of(stream)
    metrics = [
        {
            "files": states[hour].files if states[hour].files or scheduled(stream, hour) else None,
            "conflicts": len(states[hour].conflicts) or None,
            "equal": len(states[hour].equal) or None,
            "uncovered": len(states[hour].uncovered) if scheduled(stream, hour) else None,
        }
        for hour in ordered
    ]
    verdicts = []
    failed: dict[datetime, dict[str, list[Cause]]] = {hour: {} for hour in ordered}
    for finding in evaluate_checks(hour_checks(stream), metrics):
        hour = ordered[finding.row]
        verdict = check_result_of(node_of("events", hour), finding, waivers_of(stream))
        if not verdict.success:
            failed[hour].setdefault(verdict.severity, []).append(
                Cause("check", format_failure(verdict), verdict.check)
            )
            if verdict.check == "files_unchanged":
                verdict = verdict.with_sample(states[hour].conflicts[:SAMPLE])
            if verdict.check == "files_distinct":
                verdict = verdict.with_sample(states[hour].equal[:SAMPLE])
            if verdict.check == "periods_covered" and periods is not None:
                verdict = verdict.with_sample([*map(periods.words, states[hour].uncovered[:SAMPLE])])
        verdicts.append(verdict)
    entries = {}
    for hour in ordered:
        state = states[hour]
        wrong = [*state.withheld_for, *failed[hour].get("error", ())]
        missing = [*state.lacks, *failed[hour].get("incomplete", ())]
        entries[hour] = PartitionState(
            "quarantined" if wrong else "published",
            run_id,
            complete=not (wrong or missing),
            inputs=scene.inputs(hour, state.mixed_specifications),
            cause=format_causes(wrong or missing),
            causes=tuple(wrong or missing),
            asked=hour in scene.scope.requested or scene.was_requested(hour),
        )
    return entries, verdicts
