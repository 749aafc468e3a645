"""Find and repair damage of the ledger's own tables and of `findings`.

These tables have no digests. Detected are: a log or a file that cannot be read, rows that no run can have
written, and a log that ends before a token that another table has.

Repair computes lost rows of `ledger` again: those of the first stage from its tables, from the hours of other
stages and from `runs`. Lost rows of `checks` return when their hours are computed again, those of `findings`
with the next run. Lost rows of `runs` stay lost; no other row depends on them.
"""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from transom.core.intervals import UNKNOWN_HOUR, Interval
from transom.core.partitions import NOT_PUBLISHED, SOURCE_STAGE, PartitionKey, PartitionState
from transom.core.terminal import counted
from transom.engine.damage_marks import publish_marks, set_aside
from transom.engine.verification import TableLayout, kind_of, table_fault
from transom.findings.store import NAME as FINDINGS
from transom.ledger.damage import LEDGER, Damage, Kind
from transom.ledger.ledger import Ledger
from transom.ledger.partition_states import TOKENS_FROM, tokens_from
from transom.ledger.scope import Scope
from transom.ledger.snapshot import LedgerSnapshot
from transom.storage.fencing import last_token
from transom.storage.file_digests import FileDigest, FilesToDigest, digest_text, file_digests
from transom.storage.file_faults import DamagedFile, StoredFile, batches, files_of, open_or_fault
from transom.storage.filesystem import resolve_filesystem
from transom.storage.store import Store
from transom.storage.tables import Table, create, query

KEYS = {
    "ledger": ("stage", "block", "table", "hour"),
    "checks": (
        "stage", "block", "table", "hour", "check", "column", "severity", "observed", "expected", "success",
        "file", "run_id",
    ),
    # Several runs may have one id.
    "runs": ("run_id", "finished_at"),
    FINDINGS: ("finding_id",),
}  # fmt: skip
"""The unique key of each table."""
STATUSES = ("writing", "published", *NOT_PUBLISHED)
DIGEST = re.compile(r"\d+:-?\d+(:v\d+)?")
LOST_ROW = "the row of the ledger was damaged"
"""The reason of a partition whose row was lost."""
Row = dict[str, Any]


@dataclass
class LedgerDamage:
    """The damage of the ledger.

    Attributes:
        damages: every damage, for messages.
        broken: the tables that do not exist or cannot be opened.
        stages: the stages with unreadable files or with rows that no run can have written, by table.
        highest_token: the highest token of any table for any stage; -1 if there is none.
        lost_commits: whether the log of `ledger` ends before that token.
    """

    damages: list[Damage] = field(default_factory=list)
    broken: set[str] = field(default_factory=set)
    stages: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    highest_token: int = -1
    lost_commits: bool = False

    def add(self, name: str, kind: Kind, file: str | None, detail: str) -> None:
        """Add what is wrong with a table."""
        self.damages.append(Damage(LEDGER, name, None, (), kind, file, detail))


def examine(root: str, stages: Sequence[str], tables: Sequence[str]) -> LedgerDamage:
    """Return what is wrong with the ledger of a stream.

    Args:
        root: the stream's folder in the lake.
        stages: the names of all stages.
        tables: the names of the stages' tables, which have tokens.
    """
    result = LedgerDamage()
    for name in KEYS:
        table = open_or_fault(root, name)
        if isinstance(table, DeltaTable):
            by_stage, faults = _read_rows(table, root, name)
            for file, fault in faults.items():
                result.stages[name].add(str(file.stage))
                result.add(name, kind_of(fault), file.path, f"(stage {file.stage}) {fault}")
            for stage, rows in by_stage.items():
                count = len(rows) - len(_valid_rows(name, stage, rows, stages))
                if count:
                    result.stages[name].add(stage)
                    detail = f"{counted(count, 'row')} of stage {stage}: written by no run, or there twice"
                    result.add(name, "different", None, detail)
        elif table is not None or name != FINDINGS:
            kind, detail = table_fault(table)
            result.broken.add(name)
            result.stages[name].update(stages)
            result.add(name, kind, None, detail)
    opened = [table for name in tables if isinstance(table := open_or_fault(root, name), DeltaTable)]
    tokens = (last_token(table, stage) for table in opened for stage in stages)
    result.highest_token = max(tokens, default=-1)
    if "ledger" not in result.broken:
        ledger = DeltaTable(f"{root}/ledger")
        if result.highest_token > ledger.version() + tokens_from(ledger):
            result.lost_commits = True
            detail = "its log ends before a commit that other tables know of: entries are missing"
            result.add("ledger", "missing", None, detail)
    return result


def _read_rows(table: DeltaTable, root: str, name: str) -> tuple[dict[str, list[Row]], dict[StoredFile, str]]:
    """Return the rows of the readable files, by stage, and the faults of the other files."""
    system, folder = resolve_filesystem(f"{root}/{name}")
    rows: dict[str, list[Row]] = {}
    faults: dict[StoredFile, str] = {}
    for file in files_of(table):
        try:
            read = list(batches(system, folder, file, Table.load(name).arrow_schema()))
        except DamagedFile as error:
            faults[file] = str(error)
            continue
        of_file = (row for batch in read for row in batch.to_pylist())
        rows.setdefault(str(file.stage), []).extend({**row, "stage": file.stage} for row in of_file)
    return rows, faults


def _valid_rows(name: str, stage: str, rows: Sequence[Row], stages: Sequence[str]) -> list[Row]:
    """Return the rows that a run can have written: one for each key, and none if rows of a key differ."""
    by_key: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows if stage in stages else ():
        by_key.setdefault(tuple(row.get(column) for column in KEYS[name]), []).append(row)
    return [
        first
        for first, *others in by_key.values()
        if all(other == first for other in others)
        and (name != "ledger" or (first["status"] in STATUSES and DIGEST.fullmatch(first["digest"] or "")))
    ]


def repair_ledger(
    store: Store,
    damage: LedgerDamage,
    layouts: Sequence[TableLayout],
    stages: Sequence[str],
    repair_window: timedelta,
    run_id: str,
) -> list[str]:
    """Repair the ledger as far as possible.

    Args:
        store: the store of the tables.
        damage: the result of `examine`.
        layouts: the tables of the stages.
        stages: the names of all stages.
        repair_window: the stream's repair window; shorter gaps between runs count as requested.
        run_id: the id under which the repair claims partitions.

    Returns:
        What was done, and what is lost, as texts.
    """
    root, notes = store.root, []
    for name in sorted(damage.broken):
        aside = set_aside(root, name)
        create(root, Table.load(name))
        notes.append(f"{name}: rebuilt{f'; the damaged one is in {aside}' if aside else ''}")
    for name in KEYS:
        for stage in sorted(damage.stages[name]) if name not in damage.broken else ():
            table = DeltaTable(f"{root}/{name}")
            # Findings are written again as a whole.
            rows = [] if name == FINDINGS else _read_rows(table, root, name)[0].get(stage, [])
            valid = _valid_rows(name, stage, rows, stages)
            source = pa.Table.from_pylist(valid, schema=Table.load(name).arrow_schema())
            write_deltalake(table, source, mode="overwrite", predicate=f"stage = '{stage}'")
            notes.append(f"{name}: without the damaged rows of stage {stage}")
    if "ledger" in damage.broken or damage.lost_commits:
        # The next token is above all tokens of tables.
        alter = DeltaTable(f"{root}/ledger").alter
        alter.set_table_properties({TOKENS_FROM: str(damage.highest_token + 1)}, raise_if_not_exists=False)
    ledger = Ledger(root)
    if SOURCE_STAGE in damage.stages["ledger"]:
        count = _recover(store, ledger, layouts, repair_window, run_id)
        notes.append(
            f"hours: {counted(count, 'row')} of {SOURCE_STAGE} computed again from what its tables hold"
        )
    for stage in sorted(damage.stages["checks"]):
        count = _mark_unchecked(ledger, stage, run_id)
        rows_of = f"checks: {counted(count, 'row')} of {stage}"
        notes.append(f"{rows_of}: the next run computes and checks these hours again")
    if "runs" in damage.broken or any(of.table == "runs" and of.file for of in damage.damages):
        notes.append("runs: what earlier runs did is lost; no row depends on it")
    if damage.stages[FINDINGS]:
        notes.append(f"{FINDINGS}: the next run of each stage writes its findings again")
    return notes


def _recover(
    store: Store, ledger: Ledger, layouts: Sequence[TableLayout], repair_window: timedelta, run_id: str
) -> int:
    """Add lost ledger rows of the first stage as damaged, and return their number.

    The next run reads the files of these hours again.
    """
    snapshot = ledger.snapshot()
    layouts = [layout for layout in layouts if layout.stage == SOURCE_STAGE]
    to_digest = [
        FilesToDigest(layout.table, store.uri(layout.table.name), layout.blocks, files_of(table))
        for layout in layouts
        if isinstance(table := open_or_fault(store.root, layout.table.name), DeltaTable)
    ]
    by_hour: dict[tuple[str, datetime], list[FileDigest]] = {}
    for files, digests in zip(to_digest, file_digests(store.spark, to_digest), strict=True):
        for digest in digests:
            if digest.file.hour is not None:
                by_hour.setdefault((files.table.name, digest.file.hour), []).append(digest)
    requested = _requested_hours(ledger, snapshot, repair_window)
    hours = requested | {hour for _, hour in by_hour}
    states: dict[PartitionKey, PartitionState | None] = {}
    keys = ((layout.table.name, block) for layout in layouts for block in layout.blocks)
    for (name, block), hour in product(keys, hours):
        partition, digests = PartitionKey(SOURCE_STAGE, block, name, hour), by_hour.get((name, hour), [])
        if partition not in snapshot:
            rows = [digest.rows for digest in digests]
            states[partition] = PartitionState(
                "damaged",
                run_id,
                digest=digest_text(digests),
                rows=0 if None in rows else sum(filter(None, rows)),
                reason=LOST_ROW,
                requested=hour in requested,
            )
    publish_marks(ledger, SOURCE_STAGE, run_id, states, snapshot)
    return len(states)


def _requested_hours(ledger: Ledger, snapshot: LedgerSnapshot, repair_window: timedelta) -> set[datetime]:
    """Return the requested hours, as far as known.

    They are the hours that any stage has, the hours of the first stage's runs, and gaps between these that
    are shorter than `repair_window`.
    """
    hours = {key.hour for key, state in snapshot.items() if state.requested and key.hour != UNKNOWN_HOUR}
    runs = query(ledger.open("runs"), f'SELECT "from", "to" FROM t WHERE stage = \'{SOURCE_STAGE}\'')
    for start, end in sorted({(row["from"], row["to"]) for row in runs.to_pylist()}):
        interval = Interval(start.astimezone(UTC), end.astimezone(UTC))
        hours |= Scope.of(interval, interval, repair_window, hours).requested
    return hours


def _mark_unchecked(ledger: Ledger, stage: str, run_id: str) -> int:
    """Mark the partitions of a stage without recorded checks, and return their number.

    They are computed and checked again. Their rows stay.
    """
    snapshot = ledger.snapshot()
    of_stage = f"SELECT DISTINCT block, \"table\", hour, run_id FROM t WHERE stage = '{stage}'"
    checked = {
        (row["block"], row["table"], row["hour"].astimezone(UTC), row["run_id"])
        for row in query(ledger.open("checks"), of_stage).to_pylist()
    }
    states: dict[PartitionKey, PartitionState | None] = {}
    for key, state in snapshot.items():
        # Checks of the first stage are recorded with the events.
        own = key.stage == stage and (stage != SOURCE_STAGE or key.table == "events")
        is_checked = (key.block, key.table, key.hour, state.previous_run) in checked
        if not own or is_checked or state.status not in ("published", "quarantined"):
            continue
        if stage == SOURCE_STAGE:
            states[key] = replace(state, status="damaged", reason="the results of its checks were damaged")
        else:
            states[key] = replace(state, input_hashes=None)
    publish_marks(ledger, stage, run_id, states, snapshot)
    return len(states)
