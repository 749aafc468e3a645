"""Results as Markdown and JSON, each figure beside its peers and what is aimed at."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.measure import machine

Row = Mapping[str, Any]
AIMS = {
    "ingest": "not slower than Spark's own scan, at a ratio of at least 1",
    "aggregate": "at least 10 times as fast as window(), in at most twice the floor's time",
    "hour": "from trigger to report in under 60 s with `each`, in under 35 s with `together`",
}


def written(rows: Sequence[Row], folder: Path) -> str:
    """Writes results.json and results.md; the Markdown."""
    text = f"# Benchmarks\n\n{machine()}. Drawn logs; seconds, best of all repetitions.\n"
    for bench, aim in AIMS.items():
        some = [row for row in rows if row["bench"] == bench]
        if some:
            text += f"\n## {bench.capitalize()}\n\nAim: {aim}.\n\n" + SECTIONS[bench](some)
    folder.mkdir(parents=True, exist_ok=True)
    made = {"machine": machine(), "made_at": datetime.now(UTC).isoformat(timespec="seconds"), "rows": rows}
    (folder / "results.json").write_text(json.dumps(made, indent=1) + "\n")
    (folder / "results.md").write_text(text)
    return text


def _table(columns: Sequence[str], lines: Sequence[Sequence[object]]) -> str:
    def line(cells: Sequence[object]) -> str:
        return "| " + " | ".join("" if cell is None else str(cell) for cell in cells) + " |\n"

    return line(columns) + line(["---"] * len(columns)) + "".join(map(line, lines))


def _ratio(peer: float, ours: float) -> str:
    """How many times as fast ours is."""
    return f"{peer / ours:.2f}" if ours else ""


def ingest(rows: Sequence[Row]) -> str:
    """A line a way; the ratio is Spark's time to transom's."""
    ours = {(row["log"], row["layout"]): row["seconds"] for row in rows if row["who"] == "transom"}
    return _table(
        ["log", "files", "lines", "who", "seconds", "transom is times as fast", "peak MiB", "all"],
        [
            [
                row["log"], row["layout"], f"{row['lines']:,}", row["who"], row["seconds"],
                None if row["who"] == "transom"
                else _ratio(row["seconds"], ours[row["log"], row["layout"]]),
                row["peak_mib"], " ".join(str(one["seconds"]) for one in row["all"]),
            ]
            for row in rows
        ],
    )  # fmt: skip


def aggregate(rows: Sequence[Row]) -> str:
    """A line a way; the ratio is that way's time to transom's, computed only."""
    ours = {row["log"]: row["seconds"] for row in rows if row["who"] == "transom, computed"}
    return _table(
        ["log", "events", "who", "cold", "warm", "transom, computed, is times as fast", "peak MiB", "all"],
        [
            [
                row["log"], f"{row['events']:,}", row["who"], row["cold"], row["seconds"],
                _ratio(row["seconds"], ours[row["log"]]), row["peak_mib"], " ".join(map(str, row["all"])),
            ]
            for row in rows
        ],
    )  # fmt: skip


def hour(rows: Sequence[Row]) -> str:
    """A table a way of submitting: what came when, from the trigger on."""
    text = ""
    for row in rows:
        text += f"`{row['who']}`, {row['lines']} lines: {row['seconds']} s from trigger to report"
        text += f" (all: {' '.join(map(str, row['all']))})\n\n"
        text += _table(["where", "seconds"], list(row["phases"].items())) + "\n"
    return text


SECTIONS = {"ingest": ingest, "aggregate": aggregate, "hour": hour}
