"""Find damage in a stream's tables, and mark it, so that the next run computes these partitions again."""

import uuid
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime
from errno import EIO
from functools import partial

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError, DeltaError
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from transom.app.definitions import all_definitions, definition, stage_names
from transom.core.intervals import UNKNOWN_HOUR, Interval
from transom.core.partitions import PartitionKey, PartitionState
from transom.engine.damage_marks import repair
from transom.engine.ledger_repair import LedgerDamage, examine, repair_ledger
from transom.engine.verification import TableLayout, Verification, unreadable, verify
from transom.features.ingest.damaged_rows import comes_back
from transom.features.ingest.expected_inputs import BLOCK, STAGE, ExpectedInputs
from transom.features.ingest.file_records import FileRecord, ListedFile
from transom.features.ingest.landing import LandingError, list_files
from transom.features.ingest.tables import Tables
from transom.ledger.damage import Damage
from transom.ledger.input_hashes import is_defined_as
from transom.ledger.ledger import Ledger
from transom.ledger.stage import TableStep
from transom.spec.stream import Stream
from transom.storage.file_faults import DamagedFile
from transom.storage.store import Store
from transom.storage.tables import LakeError, in_hours_sql, read_rows

DECLARED_TABLES = ("events", "duplicates")
"""The tables of the source stage whose columns the stream declares."""
SIGNS = (
    "failed_read_file", "filenotfound", "file_not_found", "path_not_found", "path_does_not_exist",
    "not a parquet file", "parquetdecoding", "corrupt", "not_contiguous", "truncated_transaction_log",
    "state_recover", "arrowinvalid", "damagedfile",
)  # fmt: skip
"""Parts of Spark's messages about unreadable files and logs, in lower case. These errors have no class."""


@dataclass
class StreamDamage:
    """The damage of a stream.

    Attributes:
        ledger: the damage of the ledger.
        tables: the damage of other tables; None if the ledger must be repaired first.
        gone: the number of lines that became rows, by path, of files of damaged hours that the landing folder
            lacks or has in another version.
    """

    ledger: LedgerDamage
    tables: Verification | None = None
    gone: dict[str, int] = field(default_factory=dict)

    @property
    def damages(self) -> list[Damage]:
        """All damage, first that of the ledger."""
        return [*self.ledger.damages, *(self.tables.damages if self.tables else ())]


def layouts_of(stream: Stream) -> list[TableLayout]:
    """Return every table that the stages of a stream write."""
    expected = ExpectedInputs(stream).spec_hash

    def is_ingested(partition: PartitionKey, state: PartitionState) -> bool:
        shape = (state.input_hashes or {}).get("specification")
        same_columns = partition.table not in DECLARED_TABLES or shape == expected(partition.hour)
        return state.digest_is_current and same_columns

    def is_computed(step: TableStep, version: int, partition: PartitionKey, state: PartitionState) -> bool:
        part = step.outputs.get(partition.block)
        return part is not None and is_defined_as(part, version, partition.hour, state.input_hashes or {})

    ingested = [
        TableLayout(STAGE, table, {BLOCK: table.digest_columns()}, is_ingested) for table in Tables.of(stream)
    ]
    return ingested + [
        TableLayout(
            stage,
            step.table,
            {block: part.columns for block, part in step.outputs.items()},
            partial(is_computed, step, defined.version),
        )
        for stage, defined in all_definitions(stream).items()
        for step in defined.steps
    ]


def find(spark: SparkSession, stream: Stream, root: str, interval: Interval | None = None) -> StreamDamage:
    """Return the damage of a stream's tables.

    Args:
        spark: the session.
        stream: the stream.
        root: the stream's folder in the lake.
        interval: the hours to examine. Default: all. The ledger is always examined as a whole.
    """
    layouts = layouts_of(stream)
    damage = StreamDamage(examine(root, stage_names(stream), [layout.table.name for layout in layouts]))
    if not any(damage.ledger.stages.values()):
        damage.tables = verify(Store(spark, root), Ledger(root), layouts, interval)
        damage.gone = _lost_files(stream, root, damage.tables)
    return damage


def mark(spark: SparkSession, stream: Stream, root: str, interval: Interval | None = None) -> "MarkedDamage":
    """Repair the ledger, and mark the damage of the other tables.

    Args:
        spark: as of `find`.
        stream: as of `find`.
        root: as of `find`.
        interval: as of `find`.

    Raises:
        RunSuperseded: a concurrent run changed the ledger.
        LakeError: a table that cannot be opened cannot be moved, either.
    """
    store, layouts, stages = Store(spark, root), layouts_of(stream), stage_names(stream)
    run_id = f"verify {uuid.uuid4().hex[:12]}"
    ledger_damage = examine(root, stages, [layout.table.name for layout in layouts])
    notes = []
    if ledger_damage.damages:
        notes = repair_ledger(store, ledger_damage, layouts, stages, stream.repair_window, run_id)
    ledger = Ledger(root)
    damage = verify(store, ledger, layouts, interval)
    gone = _lost_files(stream, root, damage)
    repair(store, ledger, layouts, damage, run_id)
    marked = {key for key, state in ledger.snapshot().items() if state.damaged or state.input_hashes is None}
    landed = _landed(stream)
    files = _touching(root, {partition.hour for partition in marked if partition.stage == STAGE})
    touched = (file.touched for file in files if comes_back(file, landed))
    hours = frozenset(partition.hour for partition in marked).union(*touched) - {UNKNOWN_HOUR}
    return MarkedDamage(notes, sorted(marked), gone, hours)


class DamagedInputsError(LakeError):
    """Tables that a stage reads are damaged. The message has lines with the place and the remedy."""


def explain_failure(stream: Stream, root: str, stage: str, error: Exception) -> Verification | None:
    """Return the damage of the tables that a stage reads; None if the error has another cause. No Spark.

    Files are decoded only if all sizes are right.
    """
    if not of_reading(error):
        return None
    try:
        tables = read_by(stream, stage)
        layouts = [layout for layout in layouts_of(stream) if layout.table.name in tables]
        damages = examine(root, stage_names(stream), ()).damages
        if any(damage.kind == "unreadable" or damage.file for damage in damages):
            return Verification(damages, broken={damage.table: damage.detail for damage in damages})
        snapshot = Ledger(root).snapshot()
        # Comparing sizes is fast, decoding every file is slow.
        results = (unreadable(root, layouts, snapshot, decode) for decode in (False, True))
        return next((result for result in results if result.damages), None)
    except (DeltaError, pa.ArrowException, OSError):
        return None  # the first error is more useful


def of_reading(error: BaseException | None) -> bool:
    """Return whether an error means that a file or a table of the lake cannot be read."""
    match error:
        case LandingError() | CommitFailedError() | ConnectionError() | TimeoutError():
            return False
        case LakeError():
            return of_reading(error.__cause__)
        case DeltaError() | pa.ArrowInvalid() | DamagedFile() | FileNotFoundError():
            return True
        case OSError():
            return error.errno is None or error.errno == EIO  # decoding errors of Arrow have no number
        case PySparkException() | Py4JError():
            return any(sign in str(error).lower() for sign in SIGNS)
    return False


def read_by(stream: Stream, stage: str) -> set[str]:
    """Return the tables that a stage reads: its own tables and their inputs."""
    tables = {layout.table.name for layout in layouts_of(stream) if layout.stage == stage}
    steps = () if stage == STAGE else definition(stream, stage).steps
    return tables.union(read.table for step in steps for part in step.outputs.values() for read in part.reads)


@dataclass(frozen=True)
class MarkedDamage:
    """The result of `mark`.

    Attributes:
        notes: the repairs of the ledger, as texts.
        partitions: the partitions that the next run computes again.
        gone: as of `StreamDamage`.
        hours: the hours that this run must cover: those of `partitions`, and all hours of their files, as
            files are ingested as a whole.
    """

    notes: Sequence[str]
    partitions: Sequence[PartitionKey]
    gone: dict[str, int]
    hours: frozenset[datetime]


def _lost_files(stream: Stream, root: str, damage: Verification) -> dict[str, int]:
    """Return the files of damaged hours that cannot be read again, as `StreamDamage.gone`."""
    if "files" in damage.broken:
        return {}
    damaged = [partition for partition in damage.reasons if partition.stage == STAGE]
    unreadable_hours = {partition.hour for partition in damaged if partition.table == "files"}
    # Also hours that were marked before and still cannot be read.
    unreadable_hours |= {hour for _, hour in damage.surplus.get("files", ()) if hour is not None}
    landed, lost = _landed(stream), {}
    for file in _touching(root, {partition.hour for partition in damaged}, unreadable_hours):
        if file.source_id is None or file.status == "duplicate":
            continue
        current = landed.get(file.path)
        if current is None or file.status == "conflict" or current.size != file.size:
            lost[file.path] = file.parsed + file.rejected
    return lost


def _landed(stream: Stream) -> Mapping[str, ListedFile]:
    """Return the files of the landing folder; none if it does not exist."""
    try:
        return list_files(stream.source.pattern)
    except LandingError:
        return {}


def _touching(root: str, hours: Set[datetime], excluded: Set[datetime] = frozenset()) -> list[FileRecord]:
    """Return the recorded files with lines in some hours.

    Args:
        root: the stream's folder in the lake.
        hours: the hours.
        excluded: the hours whose rows of `files` cannot be read.
    """
    if not hours or not DeltaTable.is_deltatable(f"{root}/files"):
        return []
    where = f"NOT {in_hours_sql(excluded)}" if excluded else "TRUE"
    files = map(FileRecord.of_row, read_rows(DeltaTable(f"{root}/files"), where))
    return [file for file in files if not file.touched.isdisjoint(hours)]
