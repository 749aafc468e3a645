"""Compares the tables with the ledger, partition by partition."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from transom.core.intervals import UNKNOWN_HOUR, Interval
from transom.core.partitions import EMPTY_DIGEST, PartitionKey, PartitionState
from transom.core.terminal import counted
from transom.ledger.damage import Damage, Kind
from transom.ledger.ledger import Ledger
from transom.ledger.snapshot import LedgerSnapshot
from transom.storage.file_digests import FileDigest, FilesToDigest, digest_text, file_digests
from transom.storage.file_faults import fault_of, files_of, files_that_do_not_open, folder_of, size_fault
from transom.storage.store import Store
from transom.storage.tables import Table

MAX_NAMED_FILES = 3
"""How many files of an hour are named if none of them is known to be the cause."""
States = Mapping[PartitionKey, PartitionState]


@dataclass(frozen=True)
class TableLayout:
    """A table that a stage writes.

    Attributes:
        blocks: the columns of each block's digests.
        comparable: whether a partition's digest is of these columns, as its specification has not changed
            since. Of others only the number of rows is compared.
    """

    stage: str
    table: Table
    blocks: Mapping[str, Sequence[str]]
    comparable: Callable[[PartitionKey, PartitionState], bool]


Layouts = Sequence[TableLayout]


@dataclass
class Verification:
    """The result of a comparison.

    Attributes:
        damages: everything that is wrong.
        reasons: what is wrong with each partition that has to be computed again, in words.
        surplus: blocks and hours with rows that are not in the ledger, by table; the hour of rows without one
            is None.
        broken: tables that cannot be opened or do not exist, with the fault.
        partitions: how many were compared.
    """

    damages: list[Damage] = field(default_factory=list)
    reasons: dict[PartitionKey, str] = field(default_factory=dict)
    surplus: dict[str, set[tuple[str, datetime | None]]] = field(default_factory=dict)
    broken: dict[str, str] = field(default_factory=dict)
    partitions: int = 0

    def add(self, damage: Damage, partitions: Iterable[PartitionKey] = ()) -> None:
        """Add a damage, and the partitions that have to be computed again for it."""
        self.damages.append(damage)
        for partition in partitions:
            self.reasons.setdefault(partition, f"{damage.file or ''} {damage.detail}".lstrip())


def verify(store: Store, ledger: Ledger, layouts: Layouts, interval: Interval | None = None) -> Verification:
    """Compare the tables of some stages with the ledger.

    Args:
        interval: compare only its hours, and rows without an hour; None for all.
    """
    result = Verification()
    while True:
        snapshot = ledger.snapshot()
        tables = {layout.table.name: _open(store.root, layout.table.name) for layout in layouts}
        if ledger.snapshot() == snapshot:
            break
    counts: list[FilesToDigest] = []
    counted_hours: list[tuple[TableLayout, set[datetime] | None]] = []
    for layout in layouts:
        name, table = layout.table.name, tables[layout.table.name]
        if not isinstance(table, DeltaTable):
            _add_table(result, layout, snapshot, table)
            continue
        counts.append(FilesToDigest(layout.table, store.uri(name), files_of(table, interval), layout.blocks))
        counted_hours.append((layout, None))
        # Hours that a run has begun to replace: their rows are in an earlier version.
        torn: dict[int, set[datetime]] = {}
        for key, state in _of_table(snapshot, name, interval).items():
            if state.status == "writing" and state.previous_version is not None:
                torn.setdefault(state.previous_version, set()).add(key.hour)
        for version, hours in torn.items():
            try:
                files = files_of(DeltaTable(f"{store.root}/{name}", version=version))
            except (DeltaError, OSError):
                continue  # the version is vacuumed, and readers of these hours fail
            of_hours = [file for file in files if file.hour in hours]
            counts.append(FilesToDigest(layout.table, store.uri(name), of_hours, layout.blocks))
            counted_hours.append((layout, hours))
    for (layout, hours_or_all), totals in zip(counted_hours, file_digests(store.spark, counts), strict=True):
        states = {
            key: state
            for key, state in _of_table(snapshot, layout.table.name, interval).items()
            if (state.status == "writing") == (hours_or_all is not None)
            and (hours_or_all is None or key.hour in hours_or_all)
        }
        _compare(result, layout, states, totals, snapshot, whole=hours_or_all is None)
    result.damages.sort(key=lambda damage: (damage.stage, damage.table, damage.hours, str(damage)))
    return result


def unreadable(root: str, layouts: Layouts, snapshot: LedgerSnapshot, decode: bool) -> Verification:
    """Return the tables and files that cannot be read, and the partitions with rows in them. No Spark.

    Args:
        root: the stream's folder in the lake.
        decode: whether to decode files of the right size.
    """
    result = Verification()
    for layout in layouts:
        name = layout.table.name
        table = _open(root, name)
        if not isinstance(table, DeltaTable):
            _add_table(result, layout, snapshot, table)
            continue
        system, folder = folder_of(root, name)
        for file in files_of(table):
            fault = fault_of(system, folder, file) if decode else size_fault(system, folder, file)
            if fault is not None:
                states = _of_table(snapshot, name, None)
                damage = Damage(layout.stage, name, None, _hours(file.hour), kind_of(fault), file.path, fault)
                result.add(damage, _of_hour(states, file.hour))
    return result


def kind_of(fault: str) -> Kind:
    """Return the kind of a file's fault."""
    return "missing" if fault == "is not there" else "unreadable"


def _hours(hour: datetime | None) -> tuple[datetime, ...]:
    return () if hour is None else (hour,)


def _of_hour(states: States, hour: datetime | None) -> list[PartitionKey]:
    return [key for key, state in states.items() if key.hour == hour and state.status != "expired"]


def _open(root: str, name: str) -> DeltaTable | str | None:
    """Return a table, or its fault if it cannot be opened, or None if it does not exist."""
    fault = files_that_do_not_open(root, name)
    if fault is not None:
        return fault
    uri = f"{root}/{name}"
    return DeltaTable(uri) if DeltaTable.is_deltatable(uri) else None


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
    kind: Kind = "missing" if fault is None else "unreadable"
    detail = "the table is not there" if fault is None else f"the table cannot be opened: {fault}"
    to.broken[name] = detail
    damage = Damage(layout.stage, name, None, tuple(sorted(lost)), kind, None, detail)
    to.add(damage, (key for key, state in states.items() if state.status != "expired"))


def _compare(
    result: Verification,
    layout: TableLayout,
    states: States,
    totals: Iterable[FileDigest],
    snapshot: LedgerSnapshot,
    whole: bool,
) -> None:
    """Compare a version of a table with the partitions that have their rows in it.

    Args:
        whole: whether the version must have no other rows.
    """
    stage, name = layout.stage, layout.table.name
    surplus = result.surplus.setdefault(name, set())
    by_partition: dict[tuple[str, datetime | None], list[FileDigest]] = {}
    unreadable: dict[datetime | None, list[FileDigest]] = {}
    for total in totals:
        if total.rows is None:
            unreadable.setdefault(total.file.hour, []).append(total)
        else:
            by_partition.setdefault((str(total.block), total.file.hour), []).append(total)
    for hour, broken in unreadable.items():
        # A file may have rows of every block.
        of_hour = [key for key in _of_hour(states, hour) if not states[key].damaged]
        for total in sorted(broken, key=lambda total: total.file.path):
            fault = str(total.fault)
            damage = Damage(stage, name, None, _hours(hour), kind_of(fault), total.file.path, fault)
            result.add(damage, of_hour)
        if whole:
            # The whole hour is deleted: rows that stayed could not be read.
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
                damage = Damage(stage, name, key.block, (key.hour,), "different", file, detail)
                result.add(damage, () if expired else (key,))
                surplus |= {(key.block, key.hour)} if expired else set()
    for (block, reason), hours in marked.items():
        detail = f"marked, and no run has made it again yet: {reason}"
        result.add(Damage(stage, name, block, tuple(hours), "marked", None, detail))
    for (block, hour), rows in sorted(by_partition.items(), key=str) if whole else ():
        # Unless a run is writing it.
        if hour is None or PartitionKey(stage, block, name, hour) not in snapshot:
            number = sum(total.rows or 0 for total in rows)
            detail = f"{counted(number, 'row')} of which the ledger knows nothing"
            result.add(Damage(stage, name, block, _hours(hour), "different", _names(rows), detail))
            surplus.add((block, hour))


def _difference(
    layout: TableLayout, partition: PartitionKey, state: PartitionState, totals: Sequence[FileDigest]
) -> tuple[str | None, str | None]:
    """Return how the rows of a partition differ from the ledger, and in which file."""
    rows = sum(total.rows or 0 for total in totals)
    digest = EMPTY_DIGEST if state.status == "expired" else state.digest
    # A digest begins with the number of rows.
    count = digest.partition(":")[0]
    expected = int(count) if count.isdigit() else state.rows
    comparable = partition.block in layout.blocks and layout.comparable(partition, state.state_before_claim())
    if rows == expected and (not comparable or digest_text(totals) == digest):
        return None, None
    for total in totals if comparable else ():
        if digest_text(other for other in totals if other is not total) == digest:
            return f"{counted(total.rows or 0, 'row')} that the ledger does not have", total.file.path
    if rows != expected:
        return f"{counted(rows, 'row')}, {expected} by the ledger", _names(totals)
    return f"{counted(rows, 'row')}, and not those that the ledger has the digest of", _names(totals)


def _names(totals: Sequence[FileDigest]) -> str | None:
    names = sorted({total.file.path for total in totals})
    more = f" and {len(names) - MAX_NAMED_FILES} more" if len(names) > MAX_NAMED_FILES else ""
    return ", ".join(names[:MAX_NAMED_FILES]) + more if names else None
