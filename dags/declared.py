"""The stream files: schemas/streams, or the folder that TRANSOM_STREAMS names."""

import os
from pathlib import Path

from transom.stream import SpecificationError, Stream, load


def folder() -> Path:
    """Where the stream files are."""
    named = os.environ.get("TRANSOM_STREAMS")
    return Path(named) if named else Path(__file__).resolve().parents[1] / "schemas" / "streams"


def streams() -> tuple[dict[Path, Stream], list[SpecificationError]]:
    """Every stream that is sound, by its file, and what is wrong with the others."""
    sound: dict[Path, Stream] = {}
    wrong = []
    for file in sorted(folder().glob("*.yaml")):
        try:
            sound[file] = load(file)
        except SpecificationError as error:
            wrong.append(error)
    return sound, wrong
