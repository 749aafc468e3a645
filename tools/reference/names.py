"""What the earlier commit called things, by what they are called now."""

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

TABLES: Mapping[str, str] = {"hours": "ledger"}
COLUMNS: Mapping[str, Mapping[str, str]] = {
    "batches": {"takes": "step_mask", "cut": "truncated_after"},
    "cells": {
        "inits": "first_ticks", "lasts": "last_ticks", "wholes": "totals", "begun": "partly_expired",
    },
    "checks": {"subject": "file", "sample": "failing_rows"},
    "episodes": {"start": "start_time", "end": "last_time"},
    "files": {
        "seen_id": "last_read_source_id", "content": "content_sha256", "shape": "spec_hash",
        "held_back": "pending_hours", "lacks": "incomplete_reason", "detail": "status_reason",
    },
    "fills": {"start": "start_time", "end": "end_time", "covered": "coverage"},
    "findings": {"start": "start_time", "end": "end_time", "made_of": "source_hash"},
    "frames": {"start": "start_time", "end": "last_time"},
    "frequencies": {"heavy_id": "spell_id", "margin": "error_bound", "others": "max_unreported"},
    "hours": {"asked": "requested", "inputs": "input_hashes", "cause": "reason", "causes": "reasons"},
    "matches": {"window_delay_s": "detection_delay_s"},
    "open_frames": {"row": "row_kind"},
    "persistent_items": {"stay_id": "spell_id", "certain": "is_certain"},
    "runs": {
        "cause": "trigger", "hours_healed": "partitions_repaired", "work": "counters",
        "bound": "counter_limits", "seconds": "phase_seconds",
    },
    "tick_matrices": {"row": "row_kind", "items": "other_item_count"},
    "tuples": {"row": "row_kind", "squares": "gap_squares"},
}  # fmt: skip
STAGES = {"widen": "patterns", "aggregate": "aggregates", "frame": "frames", "fill": "fills"}
SKETCHES = {
    "tuples": "persistence", "persistent_items": "persistence", "persistent": "persistence",
    "tick_matrices": "frequency", "cells": "frequency", "frequencies": "frequency", "top": "frequency",
}  # fmt: skip
"""The stages that `sketch` is now, by table, and by kind of finding."""
KINDS = {
    "gate": "check_failed", "silent": "source_silent", "top": "heavy_hitter",
    "persistent": "persistent_item",
}  # fmt: skip
STATUSES = {"withheld": "quarantined", "gone": "missing"}
LEFT_OUT: Mapping[str, frozenset[str]] = {
    "ledger": frozenset({"run_id"}),
    "checks": frozenset({"run_id"}),
    "runs": frozenset({"run_id", "phase_seconds", "peak_memory_mb", "code_version", "finished_at"}),
    "files": frozenset({"last_read_source_id", "size", "modified"}),
    "findings": frozenset({"finding_id", "source_hash"}),
}
"""Columns that no promise is about, and hashes of what is named otherwise now."""


def table_now(table: str) -> str:
    """Return the new name of a table."""
    return TABLES.get(table, table)


def as_now(table: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row under the new names of columns, stages, kinds and statuses."""
    renamed = COLUMNS.get(table, {})
    now = {renamed.get(column, column): value for column, value in row.items()}
    if "stage" in now:
        part = now.get("table") or now.get("kind") or ""
        now["stage"] = STAGES.get(now["stage"]) or (
            SKETCHES.get(part, "sketch") if now["stage"] == "sketch" else now["stage"]
        )
    match table:
        case "findings":
            now["kind"] = KINDS.get(now["kind"], now["kind"])
        case "files":
            now["status"] = STATUSES.get(now["status"], now["status"])
        case "fills":
            now["shift_s"] = -now["shift_s"]
        case "runs":
            for column in ("counters", "counter_limits"):
                now[column] = [*json.loads(now[column]).items()]
    return now


HOUR = timedelta(hours=1)
