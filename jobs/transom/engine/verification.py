"""Compare the tables with the ledger, partition by partition."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from transom.core.intervals import UNKNOWN_HOUR, Interval
from transom.core.partitions import EMPTY_DIGEST, PartitionKey, PartitionState
from transom.core.terminal import counted
from transom.ledger.damage import Damage, Kind
from transom.ledger.ledger import Ledger
from transom.ledger.snapshot import LedgerSnapshot
from transom.storage.file_digests import FileDigest, FilesToDigest, digest_text, file_digests
from transom.storage.file_faults import fault_of, files_of, open_or_fault, size_fault
from transom.storage.filesystem import resolve_filesystem
from transom.storage.store import Store
from transom.storage.tables import Table

MAX_NAMED_FILES = 3
"""The maximum number of files of an hour that are named if the faulty one is unknown."""
States = Mapping[PartitionKey, PartitionState]


@dataclass(frozen=True)
class TableLayout:
    """A table that a stage writes.

    Attributes:
        stage: the name of the stage.
        table: the table.
        blocks: the columns of the digests, by block.
        comparable: returns whether a partition's digest covers these columns and is defined as now: neither
            its specification nor the definition has changed since. Of other partitions only the number of
            rows is compared.
    """

    stage: str
    table: Table
    blocks: Mapping[str, Sequence[str]]
    comparable: Callable[[PartitionKey, PartitionState], bool]

    def damage(
        self,
        kind: Kind,
        detail: str,
        file: str | None = None,
        hours: Iterable[datetime | None] = (),
        block: str | None = None,
    ) -> Damage:
        """Return a damage of the table, without hours that are None."""
        known = tuple(hour for hour in hours if hour is not None)
        return Damage(self.stage, self.table.name, block, known, kind, file, detail)


Layouts = Sequence[TableLayout]


@dataclass
class Verification:
    """The result of a comparison.

    Attributes:
        damages: every difference.
        reasons: the partitions that must be computed again, with the difference as text.
        surplus: blocks and hours with rows that are not in the ledger, by table; the hour is None for rows
            without one.
        broken: tables that cannot be opened or do not exist, with the fault.
        partitions: the number of compared partitions.
    """

    damages: list[Damage] = field(default_factory=list)
    reasons: dict[PartitionKey, str] = field(default_factory=dict)
    surplus: dict[str, set[tuple[str, datetime | None]]] = field(default_factory=dict)
    broken: dict[str, str] = field(default_factory=dict)
    partitions: int = 0

    def add(self, damage: Damage, partitions: Iterable[PartitionKey] = ()) -> None:
        """Add a damage, and the partitions that must be computed again because of it."""
        self.damages.append(damage)
        for partition in partitions:
            self.reasons.setdefault(partition, f"{damage.file or ''} {damage.detail}".lstrip())


def verify(store: Store, ledger: Ledger, layouts: Layouts, interval: Interval | None = None) -> Verification:
    """Compare the tables of some stages with the ledger.

    Args:
        store: the store of the tables.
        ledger: the ledger.
        layouts: the tables to compare.
        interval: the hours to compare, with rows without an hour. Default: all.
    """
    result = Verification()
    while True:
        snapshot = ledger.snapshot()
        tables = {layout.table.name: open_or_fault(store.root, layout.table.name) for layout in layouts}
        if ledger.snapshot() == snapshot:
            break
    requests: list[tuple[TableLayout, set[datetime] | None, FilesToDigest]] = []
    for layout in layouts:
        name, table = layout.table.name, tables[layout.table.name]
        if not isinstance(table, DeltaTable):
            _add_table(result, layout, snapshot, table)
            continue
        to_digest = partial(FilesToDigest, layout.table, store.uri(name), layout.blocks)
        requests.append((layout, None, to_digest(files_of(table, interval))))
        # If a run has begun to replace hours, their rows are in an earlier version.
        torn: dict[int, set[datetime]] = {}
        for key, state in _of_table(snapshot, name, interval).items():
            if state.status == "writing" and state.previous_version is not None:
                torn.setdefault(state.previous_version, set()).add(key.hour)
        for version, hours in torn.items():
            # If the version was vacuumed, readers of these hours fail.
            with suppress(DeltaError, OSError):
                files = files_of(DeltaTable(f"{store.root}/{name}", version=version))
                requests.append((layout, hours, to_digest([file for file in files if file.hour in hours])))
    digests = file_digests(store.spark, [files for _, _, files in requests])
    for (layout, torn_hours, _), of_files in zip(requests, digests, strict=True):
        states = {
            key: state
            for key, state in _of_table(snapshot, layout.table.name, interval).items()
            if (
                state.status != "writing"
                if torn_hours is None
                else key.hour in torn_hours and state.status == "writing"
            )
        }
        _compare(result, layout, states, of_files, snapshot, whole=torn_hours is None)
    result.damages.sort(key=lambda damage: (damage.stage, damage.table, damage.hours, str(damage)))
    return result


def unreadable(root: str, layouts: Layouts, snapshot: LedgerSnapshot, decode: bool) -> Verification:
    """Return the tables and files that cannot be read, and the partitions with rows in them. No Spark.

    Args:
        root: the stream's folder in the lake.
        layouts: the tables to read.
        snapshot: the ledger.
        decode: whether to decode files of the right size.
    """
    result = Verification()
    for layout in layouts:
        name = layout.table.name
        table = open_or_fault(root, name)
        if not isinstance(table, DeltaTable):
            _add_table(result, layout, snapshot, table)
            continue
        system, folder = resolve_filesystem(f"{root}/{name}")
        for file in files_of(table):
            fault = fault_of(system, folder, file) if decode else size_fault(system, folder, file)
            if fault is not None:
                damage = layout.damage(kind_of(fault), fault, file.path, [file.hour])
                result.add(damage, _of_hour(_of_table(snapshot, name, None), file.hour))
    return result


def kind_of(fault: str) -> Kind:
    """Return the kind of a file's fault."""
    return "missing" if fault == "is not there" else "unreadable"


def table_fault(fault: str | None) -> tuple[Kind, str]:
    """Return the kind and the detail of a table's damage, from the result of `open_or_fault`."""
    if fault is None:
        return "missing", "the table is not there"
    return "unreadable", f"the table cannot be opened: {fault}"


def _of_hour(states: States, hour: datetime | None) -> list[PartitionKey]:
    return [key for key, state in states.items() if key.hour == hour and state.status != "expired"]


def _of_table(snapshot: LedgerSnapshot, table: str, interval: Interval | None) -> States:
    return {
        key: state
        for key, state in snapshot.items()
        if key.table == table and (interval is None or key.hour == UNKNOWN_HOUR or key.hour in interval)
    }


def _add_table(to: Verification, layout: TableLayout, snapshot: LedgerSnapshot, fault: str | None) -> None:
    """Add a table that does not exist or cannot be opened."""
    name = layout.table.name
    states = _of_table(snapshot, name, None)
    lost = {key.hour for key, state in states.items() if state.rows or state.digest != EMPTY_DIGEST}
    if fault is None and not lost:
        return  # no run has created it
    kind, detail = table_fault(fault)
    to.broken[name] = detail
    present = (key for key, state in states.items() if state.status != "expired")
    to.add(layout.damage(kind, detail, hours=sorted(lost)), present)


def _compare(
    result: Verification,
    layout: TableLayout,
    states: States,
    digests: Iterable[FileDigest],
    snapshot: LedgerSnapshot,
    whole: bool,
) -> None:
    """Compare a version of a table with the partitions that have their rows in it.

    Args:
        result: gets the differences.
        layout: the table.
        states: the partitions with rows in the version, and their states.
        digests: the digests of the files of the version.
        snapshot: the ledger.
        whole: whether the version must have no other rows.
    """
    surplus = result.surplus.setdefault(layout.table.name, set())
    by_partition: dict[tuple[str, datetime | None], list[FileDigest]] = {}
    unreadable: dict[datetime | None, list[FileDigest]] = {}
    for digest in digests:
        if digest.rows is None:
            unreadable.setdefault(digest.file.hour, []).append(digest)
        else:
            by_partition.setdefault((str(digest.block), digest.file.hour), []).append(digest)
    for hour, broken in unreadable.items():
        # A file may have rows of every block.
        of_hour = [key for key in _of_hour(states, hour) if not states[key].damaged]
        for digest in sorted(broken, key=lambda digest: digest.file.path):
            fault = str(digest.fault)
            result.add(layout.damage(kind_of(fault), fault, digest.file.path, [hour]), of_hour)
        if whole:
            # The whole hour is deleted: rows that stay could not be read.
            surplus.update((block, hour) for block in layout.blocks)
    marked: dict[tuple[str, str], list[datetime]] = {}
    for key, state in sorted(states.items()):
        result.partitions += 1
        of_partition = by_partition.pop((key.block, key.hour), [])
        if state.damaged:
            if whole:
                marked.setdefault((key.block, state.reason or ""), []).append(key.hour)
        elif key.hour not in unreadable:
            detail, file = _difference(layout, key, state, of_partition)
            if detail:
                expired = state.status == "expired"
                damage = layout.damage("different", detail, file, [key.hour], key.block)
                result.add(damage, () if expired else (key,))
                surplus |= {(key.block, key.hour)} if expired else set()
    for (block, reason), hours in marked.items():
        detail = f"marked, and no run has computed it again yet: {reason}"
        result.add(layout.damage("marked", detail, None, hours, block))
    for (block, hour), rows in sorted(by_partition.items(), key=str) if whole else ():
        # No surplus if a run is writing it.
        if hour is None or PartitionKey(layout.stage, block, layout.table.name, hour) not in snapshot:
            number = sum(digest.rows or 0 for digest in rows)
            detail = f"{counted(number, 'row')} of which the ledger knows nothing"
            result.add(layout.damage("different", detail, _names(rows), [hour], block))
            surplus.add((block, hour))


def _difference(
    layout: TableLayout, partition: PartitionKey, state: PartitionState, digests: Sequence[FileDigest]
) -> tuple[str | None, str | None]:
    """Return how the rows of a partition differ from the ledger, and in which file; None for equal rows."""
    rows = sum(of_file.rows or 0 for of_file in digests)
    digest = EMPTY_DIGEST if state.status == "expired" else state.digest
    # A digest begins with the number of rows.
    count = digest.partition(":")[0]
    expected = int(count) if count.isdigit() else state.rows
    comparable = partition.block in layout.blocks and layout.comparable(partition, state.state_before_claim())
    if rows == expected and (not comparable or digest_text(digests) == digest):
        return None, None
    for of_file in digests if comparable else ():
        if digest_text(other for other in digests if other is not of_file) == digest:
            return f"{counted(of_file.rows or 0, 'row')} that the ledger does not have", of_file.file.path
    if rows != expected:
        return f"{counted(rows, 'row')}, {expected} by the ledger", _names(digests)
    return f"{counted(rows, 'row')}, and not those that the ledger has the digest of", _names(digests)


def _names(digests: Sequence[FileDigest]) -> str | None:
    names = sorted({of_file.file.path for of_file in digests})
    more = f" and {len(names) - MAX_NAMED_FILES} more" if len(names) > MAX_NAMED_FILES else ""
    return ", ".join(names[:MAX_NAMED_FILES]) + more if names else None
