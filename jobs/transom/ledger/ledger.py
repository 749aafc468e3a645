"""The ledger: the state of every partition, the results of its checks, and the runs.

A partition (`PartitionKey`) is an hour of a block's table. The ledger has its status, the digest of its rows
and the hashes of their inputs. It is stale if these differ from the hashes that a run would compute now.

delta-rs writes these tables: commits are small and must be fast, and a gate reads them without a JVM. If a
commit conflicts with another one, it checks its assumptions in the newer version and tries again.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
from deltalake import write_deltalake

from transom.core.intervals import HOUR, format_hour
from transom.core.partitions import (
    PREVIOUS_REASON,
    PREVIOUS_REASONS,
    PREVIOUS_RUN,
    PREVIOUS_STATUS,
    PREVIOUS_VERSION,
    CheckResult,
    PartitionKey,
    PartitionState,
)
from transom.core.reasons import write
from transom.ledger.partition_states import NAME as STATES
from transom.ledger.partition_states import PartitionStates, States
from transom.ledger.run_details import DETAILS, FileRead, Written, as_rows
from transom.ledger.snapshot import LedgerSnapshot
from transom.storage.fencing import Claim, RunSuperseded
from transom.storage.tables import Table, TableFolder, in_hours_sql, literal, query, read_rows, retry


@dataclass(frozen=True)
class Run:
    """A run of a stage: a row of `runs`. The description of the table has the attributes."""

    run_id: str
    trigger: str
    stage: str
    start: datetime
    end: datetime
    partitions_repaired: int
    stale_since: datetime | None
    rows_read: int
    rows_out: int
    phase_seconds: Mapping[str, float]
    peak_memory_mb: int
    code_version: str
    finished_at: datetime
    counters: Mapping[str, int] = field(default_factory=dict)
    counter_limits: Mapping[str, int] = field(default_factory=dict)
    written: Sequence[Written] = ()
    files: Sequence[FileRead] = ()
    findings: Sequence[Mapping[str, object]] = ()
    finding_counts: Mapping[str, int] = field(default_factory=dict)

    @property
    def row(self) -> dict[str, Any]:
        """The row of `runs`."""
        return {
            **vars(self),
            "from": self.start,
            "to": self.end,
            "first_hour": min((of.start for of in self.written), default=None),
            "last_hour": max((of.end - HOUR for of in self.written), default=None),
            "written": as_rows(self.written),
            "files": as_rows(self.files),
        }


class Ledger(TableFolder):
    """The ledger tables of a stream, in the folder `root`.

    Args:
        root: the folder.
        create: whether to create tables that do not exist. False for readers, which change nothing.
        other: another ledger of the stream, for another thread: both share the states of the partitions.
    """

    def __init__(self, root: str, create: bool = True, other: "Ledger | None" = None) -> None:
        super().__init__(root)
        self._created: set[str] = set()
        self.tables = {name: Table.load(name) for name in (STATES, "checks", "runs")}
        self._states: PartitionStates = PartitionStates(root, create) if other is None else other._states
        if create:
            self.create(self.tables["checks"], self.tables["runs"])

    def create(self, *tables: Table) -> None:
        """Create tables that do not exist, and add missing columns, once for each table."""
        super().create(*(table for table in tables if table.name not in self._created))
        self._created.update(table.name for table in tables)

    def snapshot(self, stages: Sequence[str] | None = None) -> LedgerSnapshot:
        """Return the states of all partitions of some stages. Default: all stages."""
        return self._states.snapshot(stages)

    def claim(
        self,
        stage: str,
        partitions: Iterable[PartitionKey],
        run_id: str,
        seen: LedgerSnapshot | None = None,
        versions: Mapping[str, int] | None = None,
        unrequested: Collection[PartitionKey] = (),
        holds: Callable[[LedgerSnapshot], bool] = lambda snapshot: True,
    ) -> Claim:
        """Mark partitions as being written by a run, in one commit.

        Args:
            stage: the stage of all partitions.
            partitions: the partitions.
            run_id: the run.
            seen: the ledger when the run read its inputs. Without it, rows that another run has published
                since could be lost.
            versions: the versions of the partitions' tables, read after `seen`. They have the previous rows,
                should this run be killed. The versions of an earlier killed run stay.
            unrequested: the partitions whose hours this run was not requested to compute.
            holds: returns whether all other assumptions of the run are true in a later ledger.

        Returns:
            The claim, for the run's writes.

        Raises:
            RunSuperseded: a state differs from `seen`, or an assumption is no longer true.
        """
        partitions = list(partitions)

        def claimed(current: LedgerSnapshot) -> States:
            if not holds(current):
                raise RunSuperseded(
                    f"{stage}: another run of other hours, which affect those of this one, was recorded "
                    f"meanwhile; run {run_id} wrote nothing, run the interval again"
                )
            for partition in partitions:
                state = current.get(partition)
                if seen is not None and state != seen.get(partition):
                    other = "another run" if state is None else f"run {state.run_id}"
                    raise RunSuperseded(
                        f"{stage} {partition.block} {format_hour(partition.hour)}: {other} was recorded "
                        f"meanwhile; run {run_id} wrote nothing, run the interval again"
                    )
            pairs = ((key, current.get(key)) for key in partitions)
            known = versions or {}
            return {key: _claimed(key, state, run_id, known, key not in unrequested) for key, state in pairs}

        return Claim(stage, run_id, self._commit(stage, claimed, run_id))

    def publish(self, stage: str, states: States, run_id: str) -> None:
        """Replace a run's claims by the final states; None deletes a partition.

        Raises:
            RunSuperseded: another run has claimed one of the partitions since.
        """

        def published(current: LedgerSnapshot) -> States:
            for partition in states:
                state = current.get(partition)
                if state is None or state.run_id != run_id or state.status != "writing":
                    other = "another run" if state is None else f"run {state.run_id} ({state.status})"
                    raise RunSuperseded(
                        f"{stage} {partition.block} {format_hour(partition.hour)}: run {run_id} was "
                        f"superseded by {other}; its rows are not fresh, run the interval again"
                    )
            return states

        self._commit(stage, published, run_id)

    def _commit(self, stage: str, changes: Callable[[LedgerSnapshot], States], run_id: str) -> int:
        return self._states.commit(stage, changes, run_id)

    def record_checks(self, stage: str, results: Sequence[CheckResult], run_id: str) -> None:
        """Append the check results of a run. Readers see only those of the run that wrote a partition."""
        if results:
            rows = [{**vars(result.partition), **vars(result), "run_id": run_id} for result in results]
            self._append("checks", rows)

    def record_run(self, run: Run) -> None:
        """Append a finished run."""
        self._append("runs", [run.row])

    def _append(self, name: str, rows: list[dict[str, Any]]) -> None:
        source = pa.Table.from_pylist(rows, schema=self.tables[name].arrow_schema())
        # Only a change of the table's metadata conflicts with added rows.
        retry(lambda: write_deltalake(self.open(name), source, mode="append"))

    def checks(self, snapshot: LedgerSnapshot, stage: str, hours: set[datetime]) -> list[CheckResult]:
        """Return the check results of some hours."""
        return self._results(snapshot, stage, in_hours_sql(hours)) if hours else []

    def failures(self, snapshot: LedgerSnapshot, stage: str) -> list[CheckResult]:
        """Return the failed checks of all hours."""
        return self._results(snapshot, stage, "NOT success")

    def accepted(self, snapshot: LedgerSnapshot, stage: str) -> list[CheckResult]:
        """Return the failed checks that are waived."""
        return self._results(snapshot, stage, "accepted IS NOT NULL")

    def _results(self, snapshot: LedgerSnapshot, stage: str, where: str) -> list[CheckResult]:
        """Return check results of the runs that wrote the partitions in the snapshot."""
        results = []
        names = CheckResult.__dataclass_fields__.keys() - {"partition"}
        for row in read_rows(self.open("checks"), f"stage = '{stage}' AND {where}"):
            partition = PartitionKey(stage, row["block"], row["table"], row["hour"].astimezone(UTC))
            if partition in snapshot and snapshot[partition].previous_run == row["run_id"]:
                result = CheckResult(partition, **{name: row[name] for name in names})
                results.append(result.with_failing_rows(row["failing_rows"] or ()))
        return sorted(
            results,
            key=lambda result: (result.partition, result.check, result.file or "", result.column or ""),
        )

    def idle_time(self, run_id: str) -> timedelta:
        """Return the time from a run's latest commit to the latest commit of any run.

        The times are those of the log, not of a clock. A run that is not in the log counts as idle since the
        log's first entry.
        """
        commits = self.open(STATES).history()
        own = next((commit for commit in commits if commit.get("run_id") == run_id), commits[-1])
        return timedelta(milliseconds=commits[0]["timestamp"] - own["timestamp"])

    def changed_at(self) -> datetime | None:
        """Return the time of the latest commit, by the log; None if the log no longer has it."""
        commits = self.open(STATES).history(1)
        return datetime.fromtimestamp(commits[0]["timestamp"] / 1000, UTC) if commits else None

    def runs(self, where: str = "TRUE", details: bool = False) -> list[dict[str, Any]]:
        """Return the finished runs that meet an SQL condition, oldest first.

        Args:
            where: the condition.
            details: whether to read the columns `DETAILS`, which may have thousands of values in a row.
        """
        table = self.open("runs")
        names = [of.name for of in table.schema().fields if details or of.name not in DETAILS]
        listed = ", ".join(f'"{name}"' for name in names)
        found = query(table, f"SELECT {listed} FROM t WHERE {where}")
        rows: list[dict[str, Any]] = found.to_pylist(maps_as_pydicts="strict")
        return sorted(rows, key=lambda row: (row["finished_at"], row["run_id"]))

    def end_of_run(self, run_id: str) -> datetime | None:
        """Return when a run ended; None if it has not. The id of a chunk is the run's id and a number."""
        run, _, _ = run_id.rpartition(" ")
        own = f"run_id = {literal(run_id)}"
        sql = f"SELECT finished_at FROM t WHERE {own} OR run_id = {literal(run)} ORDER BY {own}, finished_at"
        ends: list[datetime] = query(self.open("runs"), sql)["finished_at"].to_pylist()
        return ends[-1] if ends else None

    def triggers(self) -> set[str]:
        """Return what triggered the finished runs."""
        return set(query(self.open("runs"), "SELECT DISTINCT trigger FROM t")["trigger"].to_pylist())


def _claimed(
    partition: PartitionKey,
    state: PartitionState | None,
    run_id: str,
    versions: Mapping[str, int],
    requested: bool,
) -> PartitionState:
    """Return the state of a claimed partition; its input hashes contain the state that it replaces."""
    state = state or PartitionState("published", run_id, requested=requested)
    inputs = dict(state.input_hashes or {})
    inputs.setdefault(PREVIOUS_RUN, state.run_id)
    if state.status not in ("writing", "published"):
        inputs[PREVIOUS_STATUS] = state.status
    if state.reason:
        inputs |= {PREVIOUS_REASON: state.reason, PREVIOUS_REASONS: write(state.reasons)}
    if partition.table in versions:
        inputs.setdefault(PREVIOUS_VERSION, str(versions[partition.table]))
    state = replace(state, run_id=run_id, input_hashes=inputs, requested=requested or state.requested)
    return replace(state, status="writing", reason=None, reasons=())
