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
ROW_KINDS = {
    ("open_frames", "left"): "state", ("open_frames", "told"): "output", ("tuples", "told"): "item",
    ("tuples", "named"): "reported", ("tuples", "left"): "exited", ("tick_matrices", "rest"): "others",
}  # fmt: skip
PLAIN = ("specification", "completeness", "version", "checks")
"""Inputs that are not of tables."""
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
    if "row_kind" in now:
        now["row_kind"] = ROW_KINDS.get((table, now["row_kind"]), now["row_kind"])
    match table:
        case "findings":
            if now["kind"] in ("episode", "frame") and now["end_time"] is not None:
                now["end_time"] += timedelta(microseconds=1)
            now["kind"] = KINDS.get(now["kind"], now["kind"])
        case "files":
            now["status"] = STATUSES.get(now["status"], now["status"])
        case "fills" if now["shift_s"]:
            now["shift_s"] = abs(now["shift_s"])
        case "checks":
            if now["check"] == "items_short":
                now["check"] = {"tuples": "tracked_items_short"}.get(now["table"], "counted_items_short")
            now["expected"] = now["expected"].replace("`rest: keep`", "`extra_fields: keep`")
        case "runs":
            for column in ("counters", "counter_limits"):
                text = now[column].replace("files_gone", "files_missing")
                now[column] = [*json.loads(text).items()]
    return now


def comparable(table: str, row: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what can be compared of a row under its new names; None if nothing can."""
    left_out = LEFT_OUT.get(table, frozenset())
    kept = {column: value for column, value in row.items() if column not in left_out}
    match table:
        case "ledger":
            # Hashes of inputs contain names of stages; digests contain names of columns.
            inputs = json.loads(kept["input_hashes"] or "{}")
            kept["input_hashes"] = {name: inputs[name] if name in PLAIN else "" for name in sorted(inputs)}
            if (kept["block"], kept["table"]) == ("unusual", "open_frames"):
                # A shift of a baseline is positive now.
                kept["input_hashes"]["specification"] = ""
            if kept["table"] in COLUMNS:
                kept["digest"] = kept["digest"].partition(":")[0]
        case "runs":
            if kept["stage"] in ("sketch", "persistence", "frequency"):
                return None
            kept |= {column: sorted(kept[column] or ()) for column in ("counters", "counter_limits")}
        case "fills" if kept["shift_s"] == 0:
            kept["shift_s"] = 0.0
    return kept
