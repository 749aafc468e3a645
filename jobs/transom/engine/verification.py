"""Compares what the tables hold with what the ledger says of them, node by node."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
from transom.storage.file_faults import fault_of, files_of, files_that_do_not_open, folder_of, size_fault
from transom.storage.recount import Recount, Total, digest_text, recount
from transom.storage.store import Store
from transom.storage.tables import Table

MAX_NAMED_FILES = 3
"""Files of an hour that are named where none of them can be told to be the cause."""


@dataclass(frozen=True)
class TableLayout:
    """What is known of a table that a stage writes.

    Attributes:
        blocks: the columns that the digest of each block is over, by block.
        comparable: whether the digest of a node is over these columns: the specification has not changed
            since. Of others the number of rows is compared.
    """

    stage: str
    table: Table
    blocks: Mapping[str, Sequence[str]]
    comparable: Callable[[PartitionKey, PartitionState], bool]


@dataclass
class Verification:
    """What was found.

    Attributes:
        damages: everything that is wrong.
        reasons: what is wrong with each node that has to be made again, in words.
        surplus: blocks and hours of a table of which the ledger knows nothing, by the table; an hour is None
            where rows have none.
        broken: tables that cannot be opened, or are not there.
        nodes: how many nodes were compared.
    """

    damages: list[Damage] = field(default_factory=list)
    reasons: dict[PartitionKey, str] = field(default_factory=dict)
    surplus: dict[str, set[tuple[str, datetime | None]]] = field(default_factory=dict)
    broken: dict[str, str] = field(default_factory=dict)
    nodes: int = 0

    def add(self, damage: Damage, nodes: Iterable[PartitionKey] = ()) -> None:
        """Adds what is wrong, and the nodes that have to be made again for it."""
        self.damages.append(damage)
        words = f"{damage.file} {damage.detail}" if damage.file else damage.detail
        for node in nodes:
            self.reasons.setdefault(node, words)


def verify(
    store: Store, ledger: Ledger, layouts: Sequence[TableLayout], interval: Interval | None = None
) -> Verification:
    """Compares the tables of some stages with the ledger.

    Args:
        interval: only its hours, and what has no hour; None is everything.
    """
    found = Verification()
    while True:
        book = ledger.snapshot()
        tables = {layout.table.name: _opened(store.root, layout.table.name) for layout in layouts}
        if ledger.snapshot() == book:
            break
    counts: list[Recount] = []
    looks: list[tuple[TableLayout, Mapping[datetime, PartitionState] | None]] = []
    for layout in layouts:
        name, table = layout.table.name, tables[layout.table.name]
        if not isinstance(table, DeltaTable):
            _whole_table(found, layout, book, table)
            continue
        counts.append(Recount(layout.table, store.uri(name), files_of(table, interval), layout.blocks))
        looks.append((layout, None))
        for version, hours in _torn(book, name, interval).items():
            try:
                files = files_of(DeltaTable(f"{store.root}/{name}", version=version))
            except (DeltaError, OSError):
                continue  # the version is gone: whoever reads the hours says so
            of_hours = [file for file in files if file.hour in hours]
            counts.append(Recount(layout.table, store.uri(name), of_hours, layout.blocks))
            looks.append((layout, hours))
    for (layout, torn), totals in zip(looks, recount(store.spark, counts), strict=True):
        nodes = {
            node: entry
            for node, entry in _of_table(book, layout.table.name, interval)
            if (entry.status == "writing") == (torn is not None) and (torn is None or node.hour in torn)
        }
        _compare(found, layout, nodes, totals, book, whole=torn is None)
    found.damages.sort(key=lambda damage: (damage.stage, damage.table, damage.hours, str(damage)))
    return found


def unreadable(root: str, layouts: Sequence[TableLayout], book: LedgerSnapshot, decode: bool) -> Verification:
    """The tables and files that cannot be read, and the nodes that have rows in them. No Spark.

    Args:
        root: the stream's folder in the lake.
        decode: whether files are decoded whose sizes are right.
    """
    found = Verification()
    for layout in layouts:
        name = layout.table.name
        table = _opened(root, name)
        if not isinstance(table, DeltaTable):
            _whole_table(found, layout, book, table)
            continue
        system, folder = folder_of(root, name)
        for file in files_of(table):
            fault = fault_of(system, folder, file) if decode else size_fault(system, folder, file)
            if fault is not None:
                nodes = [
                    node
                    for node, entry in book.items()
                    if (node.table, node.hour) == (name, file.hour) and entry.status != "expired"
                ]
                hours = () if file.hour is None else (file.hour,)
                kind: Kind = "missing" if fault == "is not there" else "unreadable"
                found.add(Damage(layout.stage, name, None, hours, kind, file.path, fault), nodes)
    return found


def _opened(root: str, name: str) -> DeltaTable | str | None:
    """A table; or why it cannot be opened; or None where there is none."""
    fault = files_that_do_not_open(root, name)
    if fault is not None:
        return fault
    uri = f"{root}/{name}"
    return DeltaTable(uri) if DeltaTable.is_deltatable(uri) else None


def _of_table(
    book: LedgerSnapshot, table: str, interval: Interval | None
) -> Iterator[tuple[PartitionKey, PartitionState]]:
    for node, entry in book.items():
        if node.table == table and (interval is None or node.hour == UNKNOWN_HOUR or node.hour in interval):
            yield node, entry


def _torn(
    book: LedgerSnapshot, table: str, interval: Interval | None
) -> dict[int, dict[datetime, PartitionState]]:
    """Hours that a run has begun to replace, by the version of the table in which their rows stand."""
    found: dict[int, dict[datetime, PartitionState]] = {}
    for node, entry in _of_table(book, table, interval):
        if entry.status == "writing" and entry.previous_version is not None:
            found.setdefault(entry.previous_version, {})[node.hour] = entry
    return found


def _whole_table(found: Verification, layout: TableLayout, book: LedgerSnapshot, fault: str | None) -> None:
    """A table that is not there, or cannot be opened."""
    name = layout.table.name
    nodes = {node: entry for node, entry in book.items() if node.table == name}
    lost = [node for node, entry in nodes.items() if entry.rows or entry.digest != EMPTY_DIGEST]
    if fault is None and not lost:
        return  # no run has made it
    kind: Kind = "missing" if fault is None else "unreadable"
    detail = "the table is not there" if fault is None else f"the table cannot be opened: {fault}"
    found.broken[name] = detail
    found.add(
        Damage(layout.stage, name, None, tuple(sorted({node.hour for node in lost})), kind, None, detail),
        (node for node, entry in nodes.items() if entry.status != "expired"),
    )


def _compare(
    found: Verification,
    layout: TableLayout,
    nodes: Mapping[PartitionKey, PartitionState],
    totals: Iterable[Total],
    book: LedgerSnapshot,
    whole: bool,
) -> None:
    """Compares one table at one version.

    Args:
        nodes: those that stand at that version.
        whole: whether the version has to hold these nodes alone.
    """
    stage, name = layout.stage, layout.table.name
    by_node: dict[tuple[str, datetime | None], list[Total]] = {}
    unreadable: dict[datetime | None, list[Total]] = {}
    for total in totals:
        if total.rows is None:
            unreadable.setdefault(total.file.hour, []).append(total)
        else:
            by_node.setdefault((str(total.block), total.file.hour), []).append(total)
    for hour, broken in unreadable.items():
        # A file may hold rows of every block.
        of_hour = [node for node, entry in nodes.items() if node.hour == hour and entry.status != "expired"]
        of_hour = [node for node in of_hour if not nodes[node].damaged]
        for total in sorted(broken, key=lambda total: total.file.path):
            fault = str(total.fault)
            kind: Kind = "missing" if fault == "is not there" else "unreadable"
            hours = () if hour is None else (hour,)
            found.add(Damage(stage, name, None, hours, kind, total.file.path, fault), of_hour)
        if whole:
            # The hour is replaced whole: what stays of it could not be read.
            found.surplus.setdefault(name, set()).update((block, hour) for block in layout.blocks)
    marked: dict[tuple[str, str], list[datetime]] = {}
    for node, entry in sorted(nodes.items()):
        found.nodes += 1
        held = by_node.pop((node.block, node.hour), [])
        if entry.damaged:
            if whole:
                marked.setdefault((node.block, entry.reason or ""), []).append(node.hour)
        elif node.hour not in unreadable:
            detail, file = _difference(layout, node, entry, held)
            if detail:
                damage = Damage(stage, name, node.block, (node.hour,), "different", file, detail)
                found.add(damage, () if entry.status == "expired" else (node,))
                if entry.status == "expired":
                    found.surplus.setdefault(name, set()).add((node.block, node.hour))
    for (block, cause), of_cause in marked.items():
        detail = f"marked, and no run has made it again yet: {cause}"
        found.add(Damage(stage, name, block, tuple(of_cause), "marked", None, detail))
    if whole:
        _surplus(found, layout, by_node, book)


def _surplus(
    found: Verification,
    layout: TableLayout,
    by_node: Mapping[tuple[str, datetime | None], Sequence[Total]],
    book: LedgerSnapshot,
) -> None:
    """Rows of which the ledger knows nothing."""
    name = layout.table.name
    for (block, hour), totals in sorted(by_node.items(), key=str):
        if hour is not None and PartitionKey(layout.stage, block, name, hour) in book:
            continue  # a run is writing it
        rows = sum(total.rows or 0 for total in totals)
        detail = f"{counted(rows, 'row')} of which the ledger knows nothing"
        hours = () if hour is None else (hour,)
        found.add(Damage(layout.stage, name, block, hours, "different", _names(totals), detail))
        found.surplus.setdefault(name, set()).add((block, hour))


def _difference(
    layout: TableLayout, node: PartitionKey, entry: PartitionState, held: Sequence[Total]
) -> tuple[str | None, str | None]:
    """How the rows of a node differ from what the ledger says, and which file is meant."""
    rows = sum(total.rows or 0 for total in held)
    expected = 0 if entry.status == "expired" else _rows_of(entry)
    comparable = node.block in layout.blocks and layout.comparable(node, entry.state_before_claim())
    wanted = EMPTY_DIGEST if entry.status == "expired" else entry.digest
    if rows == expected and (not comparable or digest_text(held) == wanted):
        return None, None
    file = _names(held)
    if comparable:
        for total in held:
            if digest_text(other for other in held if other is not total) == wanted:
                return f"{counted(total.rows or 0, 'row')} that the ledger does not have", total.file.path
    if rows != expected:
        return f"{counted(rows, 'row')}, {expected} by the ledger", file
    return f"{counted(rows, 'row')}, and not those that the ledger has the digest of", file


def _rows_of(entry: PartitionState) -> int:
    """How many rows a digest is of."""
    count = entry.digest.partition(":")[0]
    return int(count) if count.isdigit() else entry.rows


def _names(totals: Sequence[Total]) -> str | None:
    """The files of some rows."""
    names = sorted({total.file.path for total in totals})
    more = f" and {len(names) - MAX_NAMED_FILES} more" if len(names) > MAX_NAMED_FILES else ""
    return ", ".join(names[:MAX_NAMED_FILES]) + more if names else None
