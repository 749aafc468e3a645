"""Mark damaged partitions, so that the next run computes them again from their inputs.

A marked partition keeps its digest and input hashes in the ledger: its readers stay fresh if it gets the same
rows again. Its rows are deleted at once, so that no reader opens an unreadable file. The files stay on the
disk, as Delta keeps files of earlier versions.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from deltalake import DeltaTable
from pyarrow import fs

from transom.core.partitions import PartitionKey, PartitionState
from transom.engine.publisher import publish_partitions
from transom.engine.verification import TableLayout, Verification
from transom.ledger.ledger import Ledger
from transom.ledger.snapshot import LedgerSnapshot
from transom.storage.filesystem import resolve_filesystem
from transom.storage.store import Store
from transom.storage.tables import LakeError
from transom.storage.write import Write

OTHER_BLOCK = "another block of the hour is damaged"
ASIDE = ".damaged"
"""The folder below a stream's folder for tables that cannot be opened."""


def repair(
    store: Store, ledger: Ledger, layouts: Sequence[TableLayout], found: Verification, run_id: str
) -> list[PartitionKey]:
    """Mark the damaged partitions of a verification, and delete their rows.

    Returns:
        The partitions that the next run must compute.

    Raises:
        RunSuperseded: a concurrent run changed the ledger; nothing of its stage is marked.
        LakeError: a table that cannot be opened cannot be moved.
    """
    marked: list[PartitionKey] = []
    by_table = {layout.table.name: layout for layout in layouts}
    for name in found.broken:
        set_aside(store.root, name)
        store.create(by_table[name].table)
    for stage in dict.fromkeys(layout.stage for layout in layouts):
        snapshot = ledger.snapshot()
        states: dict[PartitionKey, PartitionState | None] = {
            key: damaged(snapshot[key], run_id, reason)
            for key, reason in found.reasons.items()
            if key.stage == stage and key in snapshot
        }
        marked += states
        writes = []
        for layout in (layout for layout in layouts if layout.stage == stage):
            name = layout.table.name
            surplus = found.surplus.get(name, set())
            if any(hour is None for _, hour in surplus):
                DeltaTable(f"{store.root}/{name}").delete("hour IS NULL")
            unknown = [PartitionKey(stage, block, name, hour) for block, hour in surplus if hour is not None]
            # An expired partition stays so; an unknown one is deleted again.
            states |= {key: snapshot.get(key) for key in unknown if key not in states}
            others = _other_blocks(snapshot, stage, name, states)
            # A partition without rows does not change.
            with_rows = [key for key in others if snapshot[key].rows or snapshot[key].status == "writing"]
            states |= {key: snapshot[key] for key in others}
            states |= {key: damaged(snapshot[key], run_id, OTHER_BLOCK) for key in with_rows}
            marked += with_rows
            targets: dict[str | None, set[datetime]] = {}
            for key in states:
                if key.table == name:
                    block = key.block if "block" in layout.table.columns else None
                    targets.setdefault(block, set()).add(key.hour)
            if targets:
                writes.append(Write(layout.table, layout.table.arrow_schema().empty_table(), targets))
        publish_partitions(store, ledger, stage, run_id, writes, states, snapshot)
    return sorted(marked)


def _other_blocks(
    snapshot: LedgerSnapshot, stage: str, table: str, states: Collection[PartitionKey]
) -> list[PartitionKey]:
    """Return the other blocks of partly damaged hours, if all blocks of some other hour are deleted.

    To delete rows by block, Delta reads all files that the condition does not exclude. Files of the other
    hours, which may be missing, are among them.
    """
    of_table = (key for key in snapshot if (key.stage, key.table) == (stage, table))
    present = [key for key in of_table if not snapshot[key].damaged]
    hours = {key.hour for key in states if key.table == table}
    others = [key for key in present if key.hour in hours and key not in states]
    return sorted(others) if hours - {key.hour for key in others} else []


def publish_marks(
    ledger: Ledger,
    stage: str,
    run_id: str,
    states: Mapping[PartitionKey, PartitionState | None],
    snapshot: LedgerSnapshot,
) -> None:
    """Publish new states of partitions whose rows stay.

    Args:
        ledger: records the states.
        stage: the stage of all partitions.
        run_id: the run.
        states: the new state of each partition; None deletes it.
        snapshot: the ledger that the states are derived from.

    Raises:
        RunSuperseded: a concurrent run changed the ledger; nothing is published.
    """
    if states:
        ledger.claim(stage, states, run_id, snapshot)
        ledger.publish(stage, states, run_id)


def mark_unreadable(ledger: Ledger, found: Verification, run_id: str) -> list[PartitionKey]:
    """Mark the partitions with unreadable files, and keep the files.

    Returns:
        The newly marked partitions.
    """
    marked: list[PartitionKey] = []
    for stage in sorted({key.stage for key in found.reasons}):
        snapshot = ledger.snapshot()
        states = {
            key: damaged(snapshot[key], run_id, reason)
            for key, reason in found.reasons.items()
            if key.stage == stage and key in snapshot and not snapshot[key].damaged
        }
        publish_marks(ledger, stage, run_id, states, snapshot)
        marked += states
    return sorted(marked)


def damaged(state: PartitionState, run_id: str, reason: str) -> PartitionState:
    """Return the state of a partition whose rows are damaged."""
    return replace(state.state_before_claim(), status="damaged", run_id=run_id, rows=0, reason=reason)


def set_aside(root: str, name: str) -> str:
    """Move a table that cannot be opened to a folder that no reader uses.

    Returns:
        Its new path; empty if there is no such table.

    Raises:
        LakeError: it cannot be moved.
    """
    system, folder = resolve_filesystem(root)
    if system.get_file_info(f"{folder}/{name}").type == fs.FileType.NotFound:
        return ""
    aside = f"{folder}/{ASIDE}"
    try:
        system.create_dir(aside)
        names = {file.base_name for file in system.get_file_info(fs.FileSelector(aside))}
        number = next(n for n in range(1, len(names) + 2) if f"{name}-{n}" not in names)
        system.move(f"{folder}/{name}", f"{aside}/{name}-{number}")
    except (OSError, NotImplementedError) as error:
        raise LakeError(
            f"lake: {root}/{name} cannot be opened, and not moved to {aside}: {error}; move it away, then "
            "repair again"
        ) from error
    return f"{aside}/{name}-{number}"
