"""Versions of the code that created a lake or a log, so that no outdated one is measured."""

import hashlib
import shutil
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DRAWING = (ROOT / "tools" / "bench" / "draw.py",)
"""The code that generates logs."""
WRITING = (
    *DRAWING,
    ROOT / "tools" / "bench" / "ingest.py",
    *(ROOT / "jobs" / name for name in ("ingest.py", "transom")),
)
"""The code that determines the rows of a lake: jobs, tables, stream and log."""


def version(places: Iterable[Path]) -> str:
    """Return a hash of files, and of all Python and YAML files of folders."""
    digest = hashlib.sha256()
    for place in places:
        files = [place] if place.is_file() else [*place.rglob("*.py"), *place.rglob("*.yaml")]
        for file in sorted(files):
            content = hashlib.sha256(file.read_bytes()).hexdigest()
            digest.update(f"{file.relative_to(place.parent)} {content}\n".encode())
    return digest.hexdigest()[:12]


def folder(place: Path, made_by: Iterable[Path]) -> Path:
    """Return the folder `place` with the version of the files `made_by`; delete those of other versions."""
    current = place.with_name(f"{place.name}-{version(made_by)}")
    for other in place.parent.glob(f"{place.name}-{'[0-9a-f]' * 12}"):
        if other != current:
            shutil.rmtree(other)
    return current
