"""The stream files: schemas/streams, or the folder that TRANSOM_STREAMS names."""

import os
from pathlib import Path

from transom.spec.errors import Issue, SpecificationError
from transom.spec.stream import Stream
from transom.spec.yaml_file import declared_name
from transom.stream import load


def folder() -> Path:
    """Where the stream files are."""
    named = os.environ.get("TRANSOM_STREAMS")
    return Path(named) if named else Path(__file__).resolve().parents[2] / "schemas" / "streams"


def streams() -> tuple[dict[Path, Stream], list[SpecificationError]]:
    """Every stream that is sound, by its file, and what is wrong with the others.

    Of files that declare a stream of one name none is sound: it is the stream's folder in the lake and its
    DAG's id, and neither file is the better one.
    """
    sound: dict[Path, Stream] = {}
    wrong = []
    for file in sorted(folder().glob("*.yaml")):
        try:
            sound[file] = load(file)
        except SpecificationError as error:
            wrong.append(error)
    files: dict[str, list[Path]] = {}
    for file, stream in sound.items():
        files.setdefault(stream.name, []).append(file)
    for name, named in files.items():
        if len(named) > 1:
            rule = f"must be that of one stream alone; got {name!r} in each of these files"
            paths = [str(file) for file in named]
            wrong.append(SpecificationError(", ".join(paths), [Issue("name", rule)], paths))
            for file in named:
                del sound[file]
    return sound, wrong


def names_of(error: SpecificationError) -> list[str]:
    """Return the names of the streams whose files are wrong: what they declare, else their files' names."""
    return list(dict.fromkeys(_name_in(Path(file)) for file in error.files))


def _name_in(file: Path) -> str:
    """The name that a stream file declares, however wrong the rest of it is."""
    try:
        return declared_name(file.read_text()) or file.stem
    except (OSError, UnicodeDecodeError):
        return file.stem
