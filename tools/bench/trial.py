"""`transom try` on a plain conn.log, as for a new user: time until the first findings."""

import shutil
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.draw import LOGS, drawn
from bench.measure import Failed, run

LINES = 100_000
FINDINGS = "findings in "
"""The text that `try` prints before it lists findings."""
TRANSOM = (sys.executable, "-m", "transom.cli")


def bench(cache: Path, repetitions: int) -> Iterator[dict[str, Any]]:
    """Yield one row, for the unchanged stream file that `transom init` writes."""
    log = drawn(cache / "logs", "zeek", LINES) / LOGS["zeek"].plain
    folder = cache / "try"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    stream = folder / "conn.yaml"
    init = run([*TRANSOM, "init", log, "--name", "conn", "--output", stream], folder / "init.log")
    runs = [
        run([*TRANSOM, "try", stream, log], folder / "try.log", says=FINDINGS) for _ in range(repetitions)
    ]
    if f"{LINES} " not in (folder / "try.log").read_text():
        raise Failed(f"try: not all lines are events (see {folder / 'try.log'})")
    first = [one.said for one in runs if one.said is not None]
    yield {
        "bench": "try", "log": "zeek", "lines": LINES, "who": "transom try", "seconds": min(first),
        "whole_s": min(one.seconds for one in runs), "init_s": init.seconds,
        "cpu_s": min(one.cpu_s for one in runs), "peak_mib": max(one.peak_mib for one in runs),
        "all": [asdict(one) for one in runs],
    }  # fmt: skip
