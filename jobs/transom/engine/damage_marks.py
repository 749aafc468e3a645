"""Marks what is damaged, so that the next run makes it again from its inputs.

A node that is marked keeps its digest and its inputs in the ledger: what is computed from it stays fresh
where it comes out as it was. Its rows leave the table at once: no reader meets a file that cannot be read.
The files themselves stay on the disk, as Delta keeps those of earlier versions.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from deltalake import DeltaTable
from pyarrow import fs

from transom.core.partitions import PartitionKey, PartitionState
from transom.engine.publisher import publish
from transom.engine.verification import TableLayout, Verification
from transom.ledger.ledger import Ledger
from transom.ledger.snapshot import LedgerSnapshot
from transom.storage.filesystem import resolve_filesystem
from transom.storage.store import Store, Write
from transom.storage.tables import LakeError

BESIDE = "another block of the hour is damaged"
ASIDE = ".damaged"
"""The folder, in that of a stream's tables, for tables that cannot be opened."""


def repair(
    store: Store, ledger: Ledger, layouts: Sequence[TableLayout], found: Verification, run_id: str
) -> list[PartitionKey]:
    """Marks the nodes that a verification has found damaged, and takes their rows away.

    Returns:
        The nodes that the next run has to make again.

    Raises:
        Overtaken: a run has come in between; nothing of its stage is marked.
        LakeError: a table that cannot be opened cannot be moved aside.
    """
    marked: list[PartitionKey] = []
    by_table = {layout.table.name: layout for layout in layouts}
    for name in found.broken:
        set_aside(store.root, name)
        store.create([by_table[name].table])
    for stage in dict.fromkeys(layout.stage for layout in layouts):
        of_stage = [layout for layout in layouts if layout.stage == stage]
        book = ledger.snapshot()
        entries: dict[PartitionKey, PartitionState | None] = {
            node: damaged(book[node], run_id, cause)
            for node, cause in found.reasons.items()
            if node.stage == stage and node in book
        }
        marked += entries
        writes = []
        for layout in of_stage:
            name = layout.table.name
            surplus = found.surplus.get(name, set())
            if any(hour is None for _, hour in surplus):
                DeltaTable(f"{store.root}/{name}").delete("hour IS NULL")
            unknown = [PartitionKey(stage, block, name, hour) for block, hour in surplus if hour is not None]
            # A node that has expired stays so; one that nobody knows is forgotten again.
            entries |= {node: book.get(node) for node in unknown if node not in entries}
            beside = _beside(book, stage, name, entries)
            # What has no rows, as an expired node, stays as it is.
            with_rows = [node for node in beside if book[node].rows or book[node].status == "writing"]
            entries |= {node: book[node] for node in beside}
            entries |= {node: damaged(book[node], run_id, BESIDE) for node in with_rows}
            marked += with_rows
            targets = _targets(layout, [node for node in entries if node.table == name])
            if targets:
                writes.append(Write(layout.table, layout.table.arrow_schema().empty_table(), targets))
        publish(store, ledger, stage, run_id, writes, entries, book)
    return sorted(marked)


def _beside(
    book: LedgerSnapshot, stage: str, table: str, entries: Collection[PartitionKey]
) -> list[PartitionKey]:
    """Return the other blocks of hours of which some blocks are damaged, where other hours go as a whole.

    Delta looks for rows to keep in every file that a condition on blocks does not rule out, in those of other
    hours, too, which may be missing.
    """
    present = [node for node in book if (node.stage, node.table) == (stage, table) and not book[node].damaged]
    damaged_hours = {node.hour for node in entries if node.table == table}
    beside = [node for node in present if node.hour in damaged_hours and node not in entries]
    return sorted(beside) if damaged_hours - {node.hour for node in beside} else []


def publish_marks(
    ledger: Ledger,
    stage: str,
    run_id: str,
    entries: Mapping[PartitionKey, PartitionState | None],
    book: LedgerSnapshot,
) -> None:
    """Publishes what the ledger is to say of nodes whose rows stay as they are.

    Args:
        book: the ledger as it was when the entries were made.

    Raises:
        Overtaken: a run has come in between; nothing is published.
    """
    if entries:
        ledger.claim(stage, entries, run_id, book)
        ledger.publish(stage, entries, run_id)


def mark_unreadable(ledger: Ledger, found: Verification, run_id: str) -> list[PartitionKey]:
    """Marks the nodes whose files cannot be read, and leaves the files where they are.

    Returns:
        The nodes that are marked now and were not before.
    """
    marked: list[PartitionKey] = []
    for stage in sorted({node.stage for node in found.reasons}):
        book = ledger.snapshot()
        entries = {
            node: damaged(book[node], run_id, cause)
            for node, cause in found.reasons.items()
            if node.stage == stage and node in book and not book[node].damaged
        }
        publish_marks(ledger, stage, run_id, entries, book)
        marked += entries
    return sorted(marked)


def damaged(entry: PartitionState, run_id: str, cause: str) -> PartitionState:
    """The entry of a node whose rows are damaged."""
    before = entry.state_before_claim()
    return replace(before, status="damaged", run_id=run_id, rows=0, reason=cause)


def _targets(layout: TableLayout, nodes: Iterable[PartitionKey]) -> Mapping[str | None, Collection[datetime]]:
    """What a write replaces: hours by block, of a table without blocks simply hours."""
    blocked = "block" in layout.table.columns
    targets: dict[str | None, set[datetime]] = {}
    for node in nodes:
        targets.setdefault(node.block if blocked else None, set()).add(node.hour)
    return targets


def set_aside(root: str, name: str) -> str:
    """Moves a table that cannot be opened into a folder where no reader looks.

    Returns:
        Where it is now.

    Raises:
        LakeError: it cannot be moved.
    """
    system, folder = resolve_filesystem(root)
    if system.get_file_info(f"{folder}/{name}").type == fs.FileType.NotFound:
        return ""
    aside = f"{folder}/{ASIDE}"
    try:
        system.create_dir(aside)
        taken = {entry.base_name for entry in system.get_file_info(fs.FileSelector(aside))}
        number = next(n for n in range(1, len(taken) + 2) if f"{name}-{n}" not in taken)
        system.move(f"{folder}/{name}", f"{aside}/{name}-{number}")
    except (OSError, NotImplementedError) as error:
        raise LakeError(
            f"lake: {root}/{name} cannot be opened, and not moved to {aside}: {error}; move it away, then "
            "repair again"
        ) from error
    return f"{aside}/{name}-{number}"
