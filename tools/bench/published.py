"""Checked-in results, from which the site makes its tables of benchmarks and reproductions."""

import json
import os
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.version import ROOT

DATA = ROOT / "docs" / "benchmarks" / "data"
OMITTED = ("bench", "warm")


def publish(name: str, results: Mapping[str, Any], folder: Path = DATA) -> Path:
    """Replace the file of a benchmark or a reproduction, and return it.

    Args:
        results: the values of the file, which also has the date, the commit and the number of cores.
    """
    now = datetime.now(UTC).date().isoformat()
    file = folder / f"{name}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(_by_line({"date": now, "commit": _commit(), "cores": os.cpu_count(), **results}))
    return file


def facts(rows: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the numbers and texts of judged rows; lists and mappings are left to `.transom/bench`."""
    for row in rows:
        aims = row.get("aims")
        judged = {"aim": "; ".join(aims), "met": all(aims.values())} if aims else {}
        yield {
            name: value
            for name, value in {**row, **judged}.items()
            if isinstance(value, str | int | float) and name not in OMITTED
        }


def _by_line(made: Mapping[str, Any]) -> str:
    """Return JSON with a line per value, and per item of a list."""
    parts = []
    for name, value in made.items():
        text = json.dumps(value, ensure_ascii=False)
        if isinstance(value, list) and value:
            items = ",\n  ".join(json.dumps(item, ensure_ascii=False) for item in value)
            text = f"[\n  {items}\n ]"
        parts.append(f" {json.dumps(name)}: {text}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _commit() -> str:
    """Return the short hash of the commit, with `-dirty` if the code differs from it."""

    def git(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True, check=False)

    dirty = git("diff", "--quiet", "HEAD", "--", "jobs", "tools").returncode
    return git("rev-parse", "--short=8", "HEAD").stdout.strip() + ("-dirty" if dirty else "")
