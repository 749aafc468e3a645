"""The stream files: schemas/streams, or the folder that TRANSOM_STREAMS names."""

import os
import re
from pathlib import Path

from transom.stream.errors import Problem, SpecificationError
from transom.stream.model import Stream
from transom.stream.reading import load

# The whole value: of `web-site`, which is no name, the stream `web` is another one.
_NAME = re.compile(
    r"""^name[ ]*:[ ]*(?P<quote>["']?)(?P<name>[^"'#\s\[\]{}]+)(?P=quote)[ \t]*(?:\#.*)?\r?$""", re.M | re.X
)


def folder() -> Path:
    """Where the stream files are."""
    named = os.environ.get("TRANSOM_STREAMS")
    return Path(named) if named else Path(__file__).resolve().parents[3] / "schemas" / "streams"


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
            wrong.append(SpecificationError(", ".join(map(str, named)), [Problem("name", rule)]))
            for file in named:
                del sound[file]
    return sound, wrong


def names_of(error: SpecificationError) -> list[str]:
    """Return the names of the streams whose files are wrong: what they declare, else their files' names."""
    return list(dict.fromkeys(_name_in(Path(file)) for file in error.name.split(", ")))


def _name_in(file: Path) -> str:
    """The name that a stream file declares, however wrong the rest of it is."""
    try:
        found = _NAME.search(file.read_text())
    except (OSError, UnicodeDecodeError):
        found = None
    return found["name"] if found else file.stem
