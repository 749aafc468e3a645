"""Damage of the ledger's own tables and of `findings`: what is wrong with them, and what can be made good.

Nothing holds a digest of these tables. What is found: a log or a file that cannot be read, rows that no run
has written, and a log that ends before a token that another table holds.

Repaired, what `ledger` has lost is computed again: of the first stage from what stands in its tables, and
from the hours that other stages have and that `runs` says were asked for. What `checks` has lost comes back
as its hours are computed again. The next run restores `findings`. What `runs`
has lost is lost; no row depends on it.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake

from transom.core.intervals import UNKNOWN_HOUR, Interval
from transom.core.partitions import NOT_PUBLISHED, SOURCE_STAGE, PartitionKey, PartitionState
from transom.core.terminal import counted
from transom.engine.damage_marks import publish_marks, set_aside
from transom.engine.verification import TableLayout
from transom.findings.store import NAME as FINDINGS
from transom.ledger.damage import LEDGER, Damage
from transom.ledger.ledger import TOKENS_FROM, Ledger, tokens_from
from transom.ledger.snapshot import LedgerSnapshot
from transom.ledger.staleness import Scope
from transom.storage.file_faults import StoredFile, fault_of, files_of, files_that_do_not_open, folder_of
from transom.storage.recount import Recount, Total, digest_text, recount
from transom.storage.store import Store
from transom.storage.tables import Table, create, query

NAMES = ("ledger", "checks", "runs", FINDINGS)
KEYS = {
    "ledger": ("stage", "block", "table", "hour"),
    "checks": (
        "stage", "block", "table", "hour", "check", "column", "severity", "observed", "expected", "success",
        "file", "run_id",
    ),
    # Several runs may be given one name.
    "runs": ("run_id", "finished_at"),
    FINDINGS: ("finding_id",),
}  # fmt: skip
"""What no two rows of a table have in common."""
STATUSES = ("writing", "published", *NOT_PUBLISHED)
DIGEST = re.compile(r"\d+:-?\d+")
WITHOUT = "the row of the ledger was damaged"
"""The cause of a node that is made anew."""


@dataclass
class LedgerDamage:
    """What is wrong with the ledger.

    Attributes:
        damages: all of it, for a person.
        broken: tables whose log cannot be read.
        files: files that cannot be read, by table.
        rows: stages of which a table has rows that no run has written, by table.
        token: the highest token that a table holds, where that is above what the ledger can give.
    """

    damages: list[Damage] = field(default_factory=list)
    broken: set[str] = field(default_factory=set)
    files: dict[str, list[StoredFile]] = field(default_factory=dict)
    rows: dict[str, set[str]] = field(default_factory=dict)
    token: int | None = None

    def stages(self, name: str, all_stages: Sequence[str]) -> set[str]:
        """The stages of which a table of the ledger may have lost rows."""
        if name in self.broken:
            return set(all_stages)
        return {str(file.stage) for file in self.files.get(name, ())} | self.rows.get(name, set())


def examine(root: str, stages: Sequence[str], tables: Sequence[str]) -> LedgerDamage:
    """What is wrong with the ledger of a stream.

    Args:
        root: the stream's folder in the lake.
        stages: every stage there is.
        tables: those that stages write, which hold tokens.
    """
    found = LedgerDamage()
    for name in NAMES:
        fault = files_that_do_not_open(root, name)
        if fault is None and not DeltaTable.is_deltatable(f"{root}/{name}"):
            fault = None if name == FINDINGS else "is not there"
            kind = "missing"
        else:
            kind = "unreadable"
        if fault is not None:
            found.broken.add(name)
            found.damages.append(
                Damage(LEDGER, name, None, (), "missing" if kind == "missing" else "unreadable", None,
                       f"the table {'is not there' if kind == 'missing' else f'cannot be opened: {fault}'}")
            )  # fmt: skip
        elif DeltaTable.is_deltatable(f"{root}/{name}"):
            _examine_rows(found, root, name, stages)
    if "ledger" not in found.broken:
        _examine_tokens(found, root, stages, tables)
    return found


def _examine_rows(found: LedgerDamage, root: str, name: str, stages: Sequence[str]) -> None:
    table = DeltaTable(f"{root}/{name}")
    system, folder = folder_of(root, name)
    for file in files_of(table):
        fault = fault_of(system, folder, file)
        if fault is not None:
            found.files.setdefault(name, []).append(file)
            kind = "missing" if fault == "is not there" else "unreadable"
            found.damages.append(
                Damage(LEDGER, name, None, (), "missing" if kind == "missing" else "unreadable", file.path,
                       f"(stage {file.stage}) {fault}")
            )  # fmt: skip
    wrong: Counter[str] = Counter()
    for stage, rows in _readable(table, root, name).items():
        wrong[stage] += len(rows) - len(_sound(name, stage, rows, stages))
    for stage, count in wrong.items():
        if count:
            found.rows.setdefault(name, set()).add(stage)
            found.damages.append(
                Damage(LEDGER, name, None, (), "different", None,
                       f"{counted(count, 'row')} of stage {stage}: written by no run, or there twice")
            )  # fmt: skip


def _readable(table: DeltaTable, root: str, name: str) -> dict[str, list[dict[str, Any]]]:
    """The rows of the files that can be read, by stage."""
    system, folder = folder_of(root, name)
    rows: dict[str, list[dict[str, Any]]] = {}
    for file in files_of(table):
        if fault_of(system, folder, file) is None:
            with pq.ParquetFile(f"{folder}/{file.path}", filesystem=system) as parquet:
                held = parquet.read().to_pylist()
            rows.setdefault(str(file.stage), []).extend({**row, "stage": file.stage} for row in held)
    return rows


def _sound(
    name: str, stage: str, rows: Sequence[dict[str, Any]], stages: Sequence[str]
) -> list[dict[str, Any]]:
    """The rows that a run may have written: of several with one key none where they differ."""
    by_key: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        by_key.setdefault(tuple(row.get(column) for column in KEYS[name]), []).append(row)
    sound = []
    for same in by_key.values():
        first, *others = same
        known = stage in stages and (
            name != "ledger"
            or (first["status"] in STATUSES and bool(DIGEST.fullmatch(first["digest"] or "")))
        )
        if known and all(other == first for other in others):
            sound.append(first)
    return sound


def _examine_tokens(found: LedgerDamage, root: str, stages: Sequence[str], tables: Sequence[str]) -> None:
    hours = DeltaTable(f"{root}/ledger")
    highest = highest_token(root, stages, tables)
    if highest > hours.version() + tokens_from(hours):
        found.token = highest
        detail = "its log ends before a commit that other tables know of: entries are missing"
        found.damages.append(Damage(LEDGER, "ledger", None, (), "missing", None, detail))


def highest_token(root: str, stages: Sequence[str], tables: Sequence[str]) -> int:
    """The highest token that a table holds of any stage; -1 where none does."""
    highest = -1
    for name in tables:
        if files_that_do_not_open(root, name) is None and DeltaTable.is_deltatable(f"{root}/{name}"):
            table = DeltaTable(f"{root}/{name}")
            held = (table.transaction_version(stage) for stage in stages)
            highest = max([highest, *(token for token in held if token is not None)])
    return highest


def repair_ledger(
    store: Store,
    found: LedgerDamage,
    layouts: Sequence[TableLayout],
    stages: Sequence[str],
    repair_window: timedelta,
    run_id: str,
) -> list[str]:
    """Makes good what is wrong with the ledger, as far as that can be.

    Args:
        layouts: the tables that stages write.
        repair_window: as the stream has it: shorter gaps between runs are asked for, too.

    Returns:
        What has been done, and what is lost, in words.
    """
    root, notes = store.root, []
    for name in sorted(found.broken):
        aside = set_aside(root, name)
        create(root, Table.load(name))
        notes.append(f"{name}: made anew{f'; the damaged one is in {aside}' if aside else ''}")
    for name in NAMES:
        affected = sorted({str(f.stage) for f in found.files.get(name, ())} | found.rows.get(name, set()))
        for stage in affected:
            _rewrite(root, name, stage, stages)
            notes.append(f"{name}: without the damaged rows of stage {stage}")
    tables = [layout.table.name for layout in layouts]
    if "ledger" in found.broken or found.token is not None:
        _raise_tokens(root, highest_token(root, stages, tables))
    ledger = Ledger(root)
    if SOURCE_STAGE in found.stages("ledger", stages):
        count = _recover(store, ledger, layouts, repair_window, run_id)
        notes.append(f"hours: {counted(count, 'row')} of {SOURCE_STAGE} made again from what its tables hold")
    for stage in sorted(found.stages("checks", stages)):
        count = _without_verdicts(ledger, stage, run_id)
        notes.append(
            f"checks: {counted(count, 'row')} of {stage}: the next run computes and checks these hours again"
        )
    if "runs" in found.broken or "runs" in found.files:
        notes.append("runs: what earlier runs did is lost; no row depends on it")
    if found.stages(FINDINGS, stages):
        notes.append(f"{FINDINGS}: the next run of each stage tells again what it has found")
    return notes


def _rewrite(root: str, name: str, stage: str, stages: Sequence[str]) -> None:
    """Replaces a stage's rows of a table by those that can be read and that a run may have written."""
    table = DeltaTable(f"{root}/{name}")
    rows = _readable(table, root, name).get(stage, [])
    # Findings are told again whole.
    kept = [] if name == FINDINGS else _sound(name, stage, rows, stages)
    schema = Table.load(name).arrow_schema()
    write_deltalake(
        table, pa.Table.from_pylist(kept, schema=schema), mode="overwrite", predicate=f"stage = '{stage}'"
    )


def _raise_tokens(root: str, highest: int) -> None:
    """Sees to it that the next claim gets a token above all that tables hold."""
    table = DeltaTable(f"{root}/ledger")
    table.alter.set_table_properties({TOKENS_FROM: str(highest + 1)}, raise_if_not_exists=False)


def _recover(
    store: Store, ledger: Ledger, layouts: Sequence[TableLayout], repair_window: timedelta, run_id: str
) -> int:
    """Makes rows of the ledger for hours of the first stage that have lost theirs: they are damaged, so the
    next run reads their files again."""
    book = ledger.snapshot()
    of_first = [layout for layout in layouts if layout.stage == SOURCE_STAGE]
    opened = [of for of in of_first if DeltaTable.is_deltatable(f"{store.root}/{of.table.name}")]
    counts = [
        Recount(
            of.table,
            store.uri(of.table.name),
            files_of(DeltaTable(f"{store.root}/{of.table.name}")),
            of.blocks,
        )
        for of in opened
        if files_that_do_not_open(store.root, of.table.name) is None
    ]  # fmt: skip
    held: dict[tuple[str, datetime], list[Total]] = {}
    for of, totals in zip(counts, recount(store.spark, counts), strict=True):
        for total in totals:
            if total.file.hour is not None:
                held.setdefault((of.table.name, total.file.hour), []).append(total)
    asked = _requested_hours(ledger, book, repair_window)
    entries: dict[PartitionKey, PartitionState | None] = {}
    for layout in of_first:
        for block in layout.blocks:
            for hour in asked | {hour for _, hour in held}:
                node = PartitionKey(SOURCE_STAGE, block, layout.table.name, hour)
                if node not in book:
                    totals = held.get((layout.table.name, hour), [])
                    readable = all(total.rows is not None for total in totals)
                    entries[node] = PartitionState(
                        "damaged",
                        run_id,
                        digest=digest_text(totals),
                        rows=sum(total.rows or 0 for total in totals) if readable else 0,
                        reason=WITHOUT,
                        requested=hour in asked,
                    )
    publish_marks(ledger, SOURCE_STAGE, run_id, entries, book)
    return len(entries)


def _requested_hours(ledger: Ledger, book: LedgerSnapshot, repair_window: timedelta) -> set[datetime]:
    """The hours that the first stage was asked for, as far as can be told: those that it or another stage
    has, those of its runs, and gaps between these that are shorter than `repair_window`."""
    asked = {node.hour for node, entry in book.items() if entry.requested and node.hour != UNKNOWN_HOUR}
    of_first = f'SELECT "from", "to" FROM t WHERE stage = \'{SOURCE_STAGE}\''
    intervals = {
        (row["from"].astimezone(UTC), row["to"].astimezone(UTC))
        for row in query(ledger.open("runs"), of_first).to_pylist()
    }  # fmt: skip
    for start, end in sorted(intervals):
        interval = Interval(start, end)
        asked |= Scope.of(interval, interval, repair_window, asked).requested
    return asked


def _without_verdicts(ledger: Ledger, stage: str, run_id: str) -> int:
    """Marks the nodes of a stage of which no check is recorded, so that they are computed and checked again;
    their rows stay."""
    book = ledger.snapshot()
    checked = set(_checked(ledger, stage))
    entries: dict[PartitionKey, PartitionState | None] = {}
    for node, entry in book.items():
        key = (node.block, node.table, node.hour, entry.previous_run)
        # The checks of the first stage are of its hours, and recorded with the events.
        own = node.stage == stage and (stage != SOURCE_STAGE or node.table == "events")
        if not own or key in checked or entry.status not in ("published", "quarantined"):
            continue
        if stage == SOURCE_STAGE:
            entries[node] = replace(entry, status="damaged", reason="what its checks saw was damaged")
        else:
            entries[node] = replace(entry, input_hashes=None)
    publish_marks(ledger, stage, run_id, entries, book)
    return len(entries)


def _checked(ledger: Ledger, stage: str) -> Iterator[tuple[str, str, datetime, str]]:
    rows = query(
        ledger.open("checks"),
        f"SELECT DISTINCT block, \"table\", hour, run_id FROM t WHERE stage = '{stage}'",
    )
    for row in rows.to_pylist():
        yield row["block"], row["table"], row["hour"].astimezone(UTC), row["run_id"]
