"""Finds what is damaged in a stream's tables, and marks it so that the next run makes it again."""

import uuid
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime
from errno import EIO
from functools import cache, partial

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError, DeltaError
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from transom.app.definitions import all_definitions, definition, stage_names
from transom.core.intervals import UNKNOWN_HOUR, Interval
from transom.core.partitions import PartitionKey, PartitionState
from transom.engine.damage_marks import mark_unreadable, repair
from transom.engine.ledger_repair import LedgerDamage, examine, repair_ledger
from transom.engine.verification import TableLayout, Verification, unreadable, verify
from transom.features.ingest.file_records import FileRecord, ListedFile
from transom.features.ingest.landing import LandingError, list_files
from transom.features.ingest.lost_rows import comes_back
from transom.features.ingest.specified import BLOCK, STAGE, file_shape
from transom.features.ingest.tables import Tables
from transom.ledger.damage import Damage
from transom.ledger.ledger import Ledger
from transom.ledger.stage import TableStep
from transom.ledger.staleness import is_defined_as
from transom.spec.stream import Stream
from transom.storage.file_faults import DamagedFile
from transom.storage.store import Store
from transom.storage.tables import LakeError, in_hours_sql, read_rows

OF_STREAM = ("events", "duplicates")
"""The tables of the first stage whose columns the stream declares."""
SIGNS = (
    "failed_read_file", "filenotfound", "file_not_found", "path_does_not_exist", "not a parquet file",
    "parquetdecoding", "corrupt", "not_contiguous", "truncated_transaction_log", "state_recover",
    "arrowinvalid", "damagedfile",
)  # fmt: skip
"""What Spark says of a file or a log that it cannot read, in small letters: it gives no class of its own."""


@dataclass
class StreamDamage:
    """What is damaged of a stream.

    Attributes:
        tables: None where the ledger has to be repaired first.
        gone: files of the landing folder that are no longer what damaged hours were made of, by path, with
            the number of their lines that became rows.
    """

    ledger: LedgerDamage
    tables: Verification | None = None
    gone: dict[str, int] = field(default_factory=dict)

    @property
    def damages(self) -> list[Damage]:
        """All of it."""
        return [*self.ledger.damages, *(self.tables.damages if self.tables else ())]


def layouts_of(stream: Stream) -> list[TableLayout]:
    """Every table that the stages of a stream write."""
    expected = cache(lambda hour: file_shape(stream, hour))

    def ingested(node: PartitionKey, entry: PartitionState) -> bool:
        if node.table not in OF_STREAM:
            return True
        return (entry.input_hashes or {}).get("specification") == expected(node.hour)

    found = [
        TableLayout(STAGE, table, {BLOCK: table.digest_columns()}, ingested) for table in Tables.of(stream)
    ]
    for stage, defined in all_definitions(stream).items():
        for step in defined.steps:
            computed = partial(_is_computed, step, defined.version)
            blocks = {block: part.columns for block, part in step.parts.items()}
            found.append(TableLayout(stage, step.table, blocks, computed))
    return found


def _is_computed(step: TableStep, version: int, node: PartitionKey, entry: PartitionState) -> bool:
    """Whether a node was computed by the present specification and code."""
    part = step.parts.get(node.block)
    return part is not None and is_defined_as(part, version, entry.input_hashes or {})


def find(spark: SparkSession, stream: Stream, root: str, interval: Interval | None = None) -> StreamDamage:
    """What is damaged of a stream's tables.

    Args:
        root: the folder of its tables.
        interval: only hours of it; None is everything. The ledger is looked at whole.
    """
    layouts = layouts_of(stream)
    found = StreamDamage(examine(root, stage_names(stream), [layout.table.name for layout in layouts]))
    if not (found.ledger.broken or found.ledger.files or found.ledger.rows):
        store, ledger = Store(spark, root), Ledger(root)
        found.tables = verify(store, ledger, layouts, interval)
        found.gone = _gone(stream, root, found.tables)
    return found


def mark(spark: SparkSession, stream: Stream, root: str, interval: Interval | None = None) -> "MarkedDamage":
    """Marks what is damaged, the ledger first.

    Args:
        root, interval: as of `find`.

    Raises:
        Overtaken: a run has come in between.
        LakeError: a table that cannot be opened cannot be moved aside.
    """
    store, layouts, stages = Store(spark, root), layouts_of(stream), stage_names(stream)
    run_id = f"verify {uuid.uuid4().hex[:12]}"
    ledger_damage = examine(root, stages, [layout.table.name for layout in layouts])
    notes = []
    if ledger_damage.damages:
        notes = repair_ledger(store, ledger_damage, layouts, stages, stream.repair_window, run_id)
    ledger = Ledger(root)
    found = verify(store, ledger, layouts, interval)
    gone = _gone(stream, root, found)
    repair(store, ledger, layouts, found, run_id)
    waiting = {
        node for node, entry in ledger.snapshot().items() if entry.damaged or entry.input_hashes is None
    }
    there = _landed(stream)
    files = _touching(root, {node.hour for node in waiting if node.stage == STAGE})
    taken = (file.touched for file in files if comes_back(file, there))
    hours = frozenset(node.hour for node in waiting).union(*taken) - {UNKNOWN_HOUR}
    return MarkedDamage(notes, sorted(waiting), gone, hours)


class DamagedInputsError(LakeError):
    """A stage cannot go on, as tables that it reads are damaged: place and remedy, in lines."""


def explain_failure(stream: Stream, root: str, stage: str, error: Exception) -> Verification | None:
    """What is damaged of the tables that a stage reads, where that is why it has failed. No Spark.

    Sizes of files are compared; files are decoded where the error speaks of reading one.
    """
    if not of_reading(error):
        return None
    try:
        return _failed_by(stream, root, stage)
    except (DeltaError, pa.ArrowException, OSError):
        return None  # what has failed first says more


def of_reading(error: BaseException | None) -> bool:
    """Return whether an error says that a file or a table of the lake cannot be read."""
    match error:
        case LandingError() | CommitFailedError() | ConnectionError() | TimeoutError():
            return False
        case LakeError():
            return of_reading(error.__cause__)
        case DeltaError() | pa.ArrowInvalid() | DamagedFile() | FileNotFoundError():
            return True
        case OSError():
            return error.errno is None or error.errno == EIO  # Arrow gives no number to what it cannot decode
        case PySparkException() | Py4JError():
            return any(sign in str(error).lower() for sign in SIGNS)
    return False


def read_by(stream: Stream, stage: str) -> set[str]:
    """Return the tables that a stage reads: its own, and what these are computed from."""
    tables = {layout.table.name for layout in layouts_of(stream) if layout.stage == stage}
    steps = () if stage == STAGE else definition(stream, stage).steps
    return tables.union(of.table for step in steps for part in step.parts.values() for of in part.reads)


def _failed_by(stream: Stream, root: str, stage: str) -> Verification | None:
    tables = read_by(stream, stage)
    layouts = [layout for layout in layouts_of(stream) if layout.table.name in tables]
    broken = examine(root, stage_names(stream), ())
    if any(damage.kind == "unreadable" or damage.file for damage in broken.damages):
        return Verification(broken.damages, broken={damage.table: damage.detail for damage in broken.damages})
    ledger = Ledger(root)
    # Sizes are soon compared; to decode every file takes long.
    for decode in (False, True):
        found = unreadable(root, layouts, ledger.snapshot(), decode)
        if found.damages:
            return found
    return None


def mark_failure(root: str, found: Verification) -> bool:
    """Marks the hours whose files cannot be read.

    Returns:
        Whether any is marked that was not: the stage may go on with what does not need them.
    """
    return bool(mark_unreadable(Ledger(root), found, f"damage {uuid.uuid4().hex[:12]}"))


@dataclass(frozen=True)
class MarkedDamage:
    """What has been marked.

    Attributes:
        notes: what was done to the ledger, in words.
        nodes: what the next run makes again.
        gone: as in `StreamDamage`.
        hours: what a run has to be over so that it makes them again: theirs, and all that the files of those
            of the first stage touch, as a file is taken whole.
    """

    notes: Sequence[str]
    nodes: Sequence[PartitionKey]
    gone: dict[str, int]
    hours: frozenset[datetime]


def _gone(stream: Stream, root: str, found: Verification) -> dict[str, int]:
    """The files of damaged hours of the first stage that the landing folder does not hold any more."""
    damaged = {node for node in found.reasons if node.stage == STAGE}
    hours = {node.hour for node in damaged}
    unread = {node.hour for node in damaged if node.table == "files"}
    # Those that a job has marked are known already, and still cannot be read.
    unread |= {hour for _, hour in found.surplus.get("files", ()) if hour is not None}
    if "files" in found.broken:
        return {}
    there, gone = _landed(stream), {}
    for file in _touching(root, hours, unread):
        if file.source_id is None or file.status == "duplicate":
            continue
        now = there.get(file.path)
        if now is None or (now.size != file.size and file.status != "conflict") or file.status == "conflict":
            gone[file.path] = file.parsed + file.rejected
    return gone


def _landed(stream: Stream) -> Mapping[str, ListedFile]:
    """The files of the landing folder; none where it is not there."""
    try:
        return list_files(stream.path_pattern)
    except LandingError:
        return {}


def _touching(root: str, hours: Set[datetime], unread: Set[datetime] = frozenset()) -> list[FileRecord]:
    """The known files that touch some hours.

    Args:
        unread: hours whose rows of `files` cannot be read.
    """
    if not hours or not DeltaTable.is_deltatable(f"{root}/files"):
        return []
    where = f"NOT {in_hours_sql(unread)}" if unread else "TRUE"
    files = map(FileRecord.of_row, read_rows(DeltaTable(f"{root}/files"), where))
    return [file for file in files if not file.touched.isdisjoint(hours)]
