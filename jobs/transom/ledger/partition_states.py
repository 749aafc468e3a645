"""The table `ledger`: the state of every partition, in snapshots that follow the commits of this process."""

import threading
from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable

from transom.core.partitions import PartitionKey, PartitionState
from transom.ledger.columnar_state import DELETED, StoredPartitions, state_row
from transom.ledger.snapshot import LedgerSnapshot
from transom.storage.tables import Table, TableFolder, query, retry

NAME = "ledger"
TOKENS_FROM = "transom.tokens_from"
"""A property of `ledger`: a token is this number plus the table's version. Repair sets it above all tokens in
use."""
States = Mapping[PartitionKey, PartitionState | None]


class PartitionStates:
    """The states of the partitions of a stream.

    Threads may share it. Then the commits of one do not conflict with those of another, and none of them
    reads the table again after a commit of another. Nothing else may use the open table: an update between
    the check of a commit's assumptions and the commit would hide a conflict.

    Args:
        root: the stream's folder in the lake.
        create: whether to create the table if it does not exist.
    """

    def __init__(self, root: str, create: bool) -> None:
        self._table = Table.load(NAME)
        self._tables = TableFolder(root)
        self._lock = threading.RLock()
        self._snapshots: dict[tuple[str, ...] | None, tuple[DeltaTable, int, LedgerSnapshot]] = {}
        if create:
            self._tables.create(self._table)

    def snapshot(self, stages: Sequence[str] | None = None) -> LedgerSnapshot:
        """Return the states of all partitions of some stages. Default: all stages."""
        with self._lock:
            return self._snapshot(self._tables.open(NAME), stages)

    def commit(self, stage: str, changes: Callable[[LedgerSnapshot], States], run_id: str) -> int:
        """Change the states of a stage's partitions, and return the token of the commit.

        Args:
            stage: the stage.
            changes: returns the new states, None for a partition to delete, from the current ones; it is
                called again if another process commits meanwhile. What it raises prevents the commit.
            run_id: the run, for the table's log.
        """
        # delta-rs must not retry: the assumptions must be checked again.
        properties = CommitProperties(custom_metadata={"run_id": run_id}, max_commit_retries=0)
        on = f"t.stage = '{stage}' and t.block = s.block and t.`table` = s.`table` and t.hour = s.hour"

        def commit() -> int:
            table = self._tables.open(NAME)
            version, states = table.version(), changes(self._snapshot(table, [stage]))
            rows = [state_row(*item) for item in states.items()]
            source = pa.Table.from_pylist(rows, schema=self._table.arrow_schema())
            merge = table.merge(source, on, source_alias="s", target_alias="t", commit_properties=properties)
            merge = merge.when_matched_delete(f"s.status = '{DELETED}'")
            merge.when_matched_update_all().when_not_matched_insert_all().execute()
            for key, (of, known, snapshot) in self._snapshots.items():
                if of is table and known == version == table.version() - 1:
                    # The commit changes only this stage.
                    new = snapshot.updated(states) if key is None or stage in key else snapshot
                    self._snapshots[key] = table, table.version(), new
            return table.version() + tokens_from(table)

        with self._lock:
            return retry(commit)

    def _snapshot(self, table: DeltaTable, stages: Sequence[str] | None) -> LedgerSnapshot:
        # Reading years of hours takes a second, and a run needs several snapshots.
        key = None if stages is None else tuple(sorted(stages))
        known, version, snapshot = self._snapshots.get(key, (None, -1, LedgerSnapshot({})))
        # A recreated ledger is another object.
        if known is not table or version != table.version():
            where = "TRUE" if stages is None else " OR ".join(f"stage = '{stage}'" for stage in stages)
            rows = query(table, f"SELECT * FROM t WHERE {where}")
            snapshot = LedgerSnapshot({}, stored=StoredPartitions(rows))
            self._snapshots[key] = table, table.version(), snapshot
        return snapshot


def tokens_from(table: DeltaTable) -> int:
    """Return the difference between the token of a claim and the version of `ledger`."""
    return int(table.metadata().configuration.get(TOKENS_FROM) or 0)
