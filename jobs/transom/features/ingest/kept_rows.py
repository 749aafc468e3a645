"""Rows of hours that a user has computed again, where a file cannot be read again and its rows stay.

Nothing says that such rows are those of the file but the digest in the ledger. A new digest of them would
hide that somebody has changed them. So they are compared first.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from transom.core.partitions import PartitionKey, PartitionState
from transom.engine.metrics import measure
from transom.features.ingest.file_records import FileRecord
from transom.features.ingest.lost_rows import WAITS, comes_back, format_awaited_files
from transom.features.ingest.publish import IngestDecision, step_of
from transom.features.ingest.snapshot import IngestSnapshot
from transom.features.ingest.specified import node_of
from transom.features.ingest.tables import Tables, hashed_rows
from transom.ledger.stage import StepResult
from transom.spec.stream import Stream
from transom.storage.store import cast_to_table

DIFFERENT = "rows stand that are not those of the digest in the ledger"
GONE = "has changed or is gone, so they cannot be read again"


def hours_with_kept_rows(scene: IngestSnapshot, found: IngestDecision) -> dict[datetime, list[FileRecord]]:
    """Return the hours to compute again in which rows of files stay as they are, with these files."""
    hours: dict[datetime, list[FileRecord]] = {}
    for _, file in sorted(found.files.items() if scene.recompute else ()):
        stays = file.source_id is not None and file.source_id not in found.decisions.added
        if stays and file.status != "duplicate":
            for hour in file.touched & scene.recompute:
                hours.setdefault(hour, []).append(file)
    return hours


def damaged_partitions(
    stream: Stream, tables: Tables, scene: IngestSnapshot, found: IngestDecision
) -> dict[PartitionKey, str]:
    """Return the nodes of such hours whose rows are not those of their digest, with the cause."""
    files = hours_with_kept_rows(scene, found)
    nodes = [node_of(table.name, hour) for table in tables for hour in files]
    held = {node: scene.ledger_state[node] for node in nodes if node in scene.ledger_state}
    held = {node: entry for node, entry in held.items() if not entry.damaged and entry.status != "expired"}
    if not held:
        return {}
    frames = {
        table.name: cast_to_table(
            scene.pins.read(table.name, [node.hour for node in held if node.table == table.name]), table
        )
        for table in tables
    }
    rows, step = hashed_rows(tables, frames), step_of(stream, tables)
    wrong = differing(scene, held, measure(step, rows, StepResult(()), held, {}, by="table"))
    return {node: cause_of(files[node.hour], scene) for node in wrong}


def differing(
    scene: IngestSnapshot,
    held: Mapping[PartitionKey, PartitionState],
    figures: Mapping[PartitionKey, Mapping[str, Any]],
) -> list[PartitionKey]:
    """Return the nodes whose rows differ from what the ledger says of them.

    Args:
        figures: number and digest of the rows that stand. A digest of columns that the stream declares is
            comparable only under the specification that it was made under.
    """
    wrong = []
    for node, entry in held.items():
        made_by = (entry.state_before_claim().input_hashes or {}).get("specification")
        same_columns = made_by == scene.expected(node.hour)["specification"]
        comparable = same_columns or node.table not in ("events", "duplicates")
        stands = figures[node]
        if stands["digest"] != entry.digest if comparable else stands["count"] != entry.rows:
            wrong.append(node)
    return wrong


def cause_of(files: list[FileRecord], scene: IngestSnapshot) -> str:
    """Return why rows are damaged that stay of some files."""
    back = [file for file in files if comes_back(file, scene.listed)]
    lost = [file for file in files if file not in back]
    gone = f"; {lost[0].path} {GONE}" if lost else ""
    return f"{DIFFERENT}{gone}{WAITS + format_awaited_files(back) if back else ''}"
