"""What a lake or a log was made by: something else made by other code is not measured in its place."""

import hashlib
import shutil
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DRAWING = (ROOT / "tools" / "bench" / "draw.py",)
"""What the drawn logs come from."""
WRITING = (
    *DRAWING,
    ROOT / "tools" / "bench" / "ingest.py",
    *(ROOT / "jobs" / name for name in ("ingest.py", "transom")),
)
"""What the rows of a lake come from: the code of the jobs, the tables' forms, the stream, the log."""


def version(places: Iterable[Path]) -> str:
    """A hash of some files, and of all Python and YAML files of some folders."""
    digest = hashlib.sha256()
    for place in places:
        files = [place] if place.is_file() else [*place.rglob("*.py"), *place.rglob("*.yaml")]
        for file in sorted(files):
            content = hashlib.sha256(file.read_bytes()).hexdigest()
            digest.update(f"{file.relative_to(place.parent)} {content}\n".encode())
    return digest.hexdigest()[:12]


def folder(place: Path, made_by: Iterable[Path]) -> Path:
    """The folder of what is made by some files: `place` and their version. Those of other versions go."""
    current = place.with_name(f"{place.name}-{version(made_by)}")
    for other in place.parent.glob(f"{place.name}-{'[0-9a-f]' * 12}"):
        if other != current:
            shutil.rmtree(other)
    return current
