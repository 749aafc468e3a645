"""The ledger: what each stage did to each hour, and what its gate saw.

A *node* is a block's table and its hour, as in a build system. The ledger keeps, for every node, its
status, the digest of its rows and the inputs they were computed from; a node is stale when its
recorded inputs differ from the expected ones.

The ledger is written through delta-rs, the other tables mostly through Spark: its commits are small and must
be quick, and a gate has to read it without a JVM. A commit that meets another one is tried again on
the newer version, after looking again at what it assumes.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError

from transom.core.partitions import (
    EMPTY_DIGEST,
    PREVIOUS_REASON,
    PREVIOUS_REASONS,
    PREVIOUS_RUN,
    PREVIOUS_STATUS,
    PREVIOUS_VERSION,
    CheckResult,
    PartitionKey,
    PartitionState,
    input_hashes_text,
)
from transom.core.reasons import write
from transom.ledger.columnar_state import StoredPartitions
from transom.ledger.snapshot import LedgerSnapshot
from transom.storage.tables import ATTEMPTS, RunSuperseded, Table, create, in_hours_sql, query, read_rows

DELETED = "forgotten"
"""What a commit is told of a row that is to be deleted; it stands in no table."""


TOKENS_FROM = "transom.tokens_from"
"""A property of `ledger`: what is added to its version to give a token. A ledger that was made anew after
damage begins above the tokens that the tables hold."""


@dataclass(frozen=True)
class Run:
    """One run of a stage, for the table `runs`."""

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


class Ledger:
    """The ledger tables of one stream, under `root`."""

    def __init__(self, root: str) -> None:
        self.root = root
        self._books: dict[tuple[str, ...] | None, tuple[int, LedgerSnapshot]] = {}
        self._opened: dict[str, DeltaTable] = {}
        self.tables = {name: Table.load(name) for name in ("ledger", "checks", "runs")}
        for table in self.tables.values():
            self.create(table)

    def create(self, table: Table) -> None:
        """Creates a table beside those of the ledger where there is none."""
        if table.name not in self._opened:
            self._opened[table.name] = create(self.root, table)

    def open(self, name: str) -> DeltaTable:
        """A table of the ledger, as it stands; the next call may bring it up to date."""
        # A run looks some dozen times: what is new since is read in a tenth of the time of the whole log.
        if name in self._opened:
            self._opened[name].update_incremental()
        else:
            self._opened[name] = DeltaTable(f"{self.root}/{name}")
        return self._opened[name]

    def _schema(self, name: str) -> pa.Schema:
        return self.tables[name].arrow_schema()

    def snapshot(self, stages: Sequence[str] | None = None) -> LedgerSnapshot:
        """All nodes, of some stages or of all."""
        return self._book(self.open("ledger"), stages)

    def _book(self, table: DeltaTable, stages: Sequence[str] | None) -> LedgerSnapshot:
        # Years of hours take a second to read, and a run looks at them several times.
        which = None if stages is None else tuple(stages)
        version, book = self._books.get(which, (-1, LedgerSnapshot({})))
        if version != table.version():
            book = _book(table, stages)
            self._books[which] = table.version(), book
        return book

    def claim(
        self,
        stage: str,
        nodes: Iterable[PartitionKey],
        run_id: str,
        seen: LedgerSnapshot | None = None,
        versions: Mapping[str, int] | None = None,
        unasked: Collection[PartitionKey] = (),
        holds: Callable[[LedgerSnapshot], bool] = lambda book: True,
    ) -> int:
        """Marks nodes as being written by a run, in one commit.

        Args:
            seen: the ledger as it was when the run read what its rows are computed from; rows that
                another run has published or begun since would be lost otherwise.
            versions: of the nodes' tables, read after `seen`: where what the nodes hold can be found
                again if this run is killed. A node that a killed run held keeps what that one noted.
            unasked: nodes of hours that this run was not asked for.
            holds: whether all else that the run went by is, in a later ledger, as it was seen.

        Returns:
            The fencing token that every table write of this claim carries: the commit's version, and
            `tokens_from`.

        Raises:
            Overtaken: a node is no longer as it was seen, or what the run went by does not hold.
        """
        nodes = list(nodes)

        def entries(book: LedgerSnapshot) -> Mapping[PartitionKey, PartitionState | None]:
            if not holds(book):
                raise RunSuperseded(
                    f"{stage}: another run of other hours, which bear on those of this one, came in between; "
                    f"run {run_id} wrote nothing, run the interval again"
                )
            for node in nodes:
                held = book.get(node)
                if seen is not None and held != seen.get(node):
                    other = "another run" if held is None else f"run {held.run_id}"
                    raise RunSuperseded(
                        f"{stage} {node.block} {node.hour:%Y-%m-%dT%H:%M}: {other} came in between; "
                        f"run {run_id} wrote nothing, run the interval again"
                    )
            return {
                node: _claimed(node, book.get(node), run_id, versions or {}, node not in unasked)
                for node in nodes
            }

        return self._commit(stage, entries, run_id)

    def publish(self, stage: str, results: Mapping[PartitionKey, PartitionState | None], run_id: str) -> int:
        """Turns a run's claimed nodes into what came out; those that are None are forgotten.

        Raises:
            Overtaken: another run has claimed one of the nodes since.
        """

        def entries(book: LedgerSnapshot) -> Mapping[PartitionKey, PartitionState | None]:
            for node in results:
                held = book.get(node)
                if held is None or held.run_id != run_id or held.status != "writing":
                    other = "nobody" if held is None else f"{held.run_id} ({held.status})"
                    raise RunSuperseded(
                        f"{stage} {node.block} {node.hour:%Y-%m-%dT%H:%M}: run {run_id} was overtaken by "
                        f"run {other}; its rows are not called fresh, run the interval again"
                    )
            return results

        return self._commit(stage, entries, run_id)

    def _commit(
        self,
        stage: str,
        entries: Callable[[LedgerSnapshot], Mapping[PartitionKey, PartitionState | None]],
        run_id: str,
    ) -> int:
        for attempt in range(ATTEMPTS):
            table = self.open("ledger")
            read_at, changed = table.version(), entries(self._book(table, [stage]))
            rows = [_row(node, entry) for node, entry in changed.items()]
            source = pa.Table.from_pylist(rows, schema=self._schema("ledger"))
            try:
                (
                    table.merge(
                        source,
                        f"t.stage = '{stage}' and t.block = s.block and t.`table` = s.`table` "
                        "and t.hour = s.hour",
                        source_alias="s",
                        target_alias="t",
                        # Our own loop tries again, because it has to look again at who holds the nodes.
                        commit_properties=CommitProperties(
                            custom_metadata={"run_id": run_id}, max_commit_retries=0
                        ),
                    )
                    .when_matched_delete(f"s.status = '{DELETED}'")
                    .when_matched_update_all()
                    .when_not_matched_insert_all()
                    .execute()
                )
                self._remember(stage, changed, read_at, table.version())
                return table.version() + tokens_from(table)
            except CommitFailedError:
                if attempt == ATTEMPTS - 1:
                    raise
        raise AssertionError("unreachable")

    def _remember(
        self, stage: str, changed: Mapping[PartitionKey, PartitionState | None], before: int, after: int
    ) -> None:
        for which, (version, book) in self._books.items():
            if (version, after) == (before, before + 1) and (which is None or stage in which):
                self._books[which] = after, book.updated(changed)

    def record_checks(self, stage: str, verdicts: Sequence[CheckResult], run_id: str) -> None:
        """Appends what the checks of a run saw; `checks` shows only those of the run a node stands by."""
        rows: list[dict[str, object]] = [
            {
                "stage": v.node.stage,
                "block": v.node.block,
                "table": v.node.table,
                "hour": v.node.hour,
                "check": v.check,
                "column": v.column,
                "severity": v.severity,
                "observed": v.observed,
                "expected": v.expected,
                "success": v.success,
                "file": v.file,
                "failing_rows": list(v.failing_rows),
                "accepted": v.accepted,
                "run_id": run_id,
            }
            for v in verdicts
        ]
        if rows:
            self._append("checks", rows)

    def record_run(self, run: Run) -> None:
        """Appends a finished run."""
        row = {**run.__dict__, "from": run.start, "to": run.end}
        del row["start"], row["end"]
        self._append("runs", [row])

    def _append(self, name: str, rows: list[dict[str, object]]) -> None:
        source = pa.Table.from_pylist(rows, schema=self._schema(name))
        for attempt in range(ATTEMPTS):
            try:
                return write_deltalake(self.open(name), source, mode="append")
            except CommitFailedError:
                # Rows that are added conflict with nothing but a change of the table itself.
                if attempt == ATTEMPTS - 1:
                    raise

    def checks(self, book: LedgerSnapshot, stage: str, hours: set[datetime]) -> list[CheckResult]:
        """What the checks saw in some hours, by the run that each node now stands by."""
        if not hours:
            return []
        return self._verdicts(book, stage, in_hours_sql(hours))

    def failures(self, book: LedgerSnapshot, stage: str) -> list[CheckResult]:
        """The checks that failed in any hour, by the run that each node now stands by."""
        return self._verdicts(book, stage, "NOT success")

    def accepted(self, book: LedgerSnapshot, stage: str) -> list[CheckResult]:
        """Return the failed checks that somebody lets pass, by the run that each node now stands by."""
        return self._verdicts(book, stage, "accepted IS NOT NULL")

    def _verdicts(self, book: LedgerSnapshot, stage: str, where: str) -> list[CheckResult]:
        verdicts = []
        for row in read_rows(self.open("checks"), f"stage = '{stage}' AND {where}"):
            node = PartitionKey(row["stage"], row["block"], row["table"], _utc(row["hour"]))
            if node in book and book[node].previous_run == row["run_id"]:
                verdicts.append(
                    CheckResult(
                        node,
                        row["check"],
                        row["severity"],
                        row["observed"],
                        row["expected"],
                        row["success"],
                        row["column"],
                        row["file"],
                        tuple(row["failing_rows"] or ()),
                        row["accepted"],
                    )
                )
        return sorted(verdicts, key=lambda v: (v.node, v.check, v.file or "", v.column or ""))

    def idle_time(self, run_id: str) -> timedelta:
        """How long before the latest commit about hours a run made its own latest one.

        By the times in the table's log: a run that is at work commits, and no clock is asked. A run of which
        the log knows nothing is as silent as it goes back.
        """
        commits = self.open("ledger").history()
        own = next((commit for commit in commits if commit.get("run_id") == run_id), commits[-1])
        return timedelta(milliseconds=commits[0]["timestamp"] - own["timestamp"])

    def runs(self, where: str = "TRUE") -> list[dict[str, Any]]:
        """Every finished run that meets an SQL condition, oldest first."""
        return sorted(
            read_rows(self.open("runs"), where), key=lambda row: (row["finished_at"], row["run_id"])
        )


def tokens_from(table: DeltaTable) -> int:
    """What is added to the version of `ledger` to give the token of a claim."""
    return int(table.metadata().configuration.get(TOKENS_FROM) or 0)


def _claimed(
    node: PartitionKey, held: PartitionState | None, run_id: str, versions: Mapping[str, int], asked: bool
) -> PartitionState:
    held = held or PartitionState("published", run_id, requested=asked)
    inputs = dict(held.input_hashes or {})
    inputs.setdefault(PREVIOUS_RUN, held.run_id)
    if held.status not in ("writing", "published"):
        inputs[PREVIOUS_STATUS] = held.status
    if held.reason:
        inputs[PREVIOUS_REASON] = held.reason
        inputs[PREVIOUS_REASONS] = write(held.reasons)
    if node.table in versions:
        inputs.setdefault(PREVIOUS_VERSION, str(versions[node.table]))
    return PartitionState(
        "writing", run_id, held.complete, held.digest, inputs, held.rows, requested=asked or held.requested
    )


def _utc(moment: datetime) -> datetime:
    return moment.astimezone(UTC)


def _row(node: PartitionKey, entry: PartitionState | None) -> dict[str, object]:
    if entry is None:
        return {
            "stage": node.stage, "block": node.block, "table": node.table, "hour": node.hour,
            "status": DELETED, "complete": False, "digest": EMPTY_DIGEST, "rows": 0, "requested": False,
        }  # fmt: skip
    return {
        "stage": node.stage,
        "block": node.block,
        "table": node.table,
        "hour": node.hour,
        "status": entry.status,
        "complete": entry.complete,
        "requested": entry.requested,
        "digest": entry.digest,
        "input_hashes": None if entry.input_hashes is None else input_hashes_text(entry.input_hashes),
        "rows": entry.rows,
        "reason": entry.reason,
        "reasons": write(entry.reasons),
        "run_id": entry.run_id,
    }


def _book(table: DeltaTable, stages: Sequence[str] | None) -> LedgerSnapshot:
    where = "TRUE" if stages is None else " OR ".join(f"stage = '{stage}'" for stage in stages)
    return LedgerSnapshot({}, stored=StoredPartitions(query(table, f"SELECT * FROM t WHERE {where}")))
