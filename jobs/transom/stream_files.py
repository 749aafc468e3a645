"""The stream files: in schemas/streams, or in the folder TRANSOM_STREAMS."""

from pathlib import Path

from transom.core.locations import stream_folder
from transom.spec.errors import Issue, SpecificationError
from transom.spec.stream import Stream
from transom.spec.yaml_file import declared_name
from transom.stream import load


def folder() -> Path:
    """Return the folder of the stream files."""
    return stream_folder()


def streams(name: str | None = None) -> tuple[dict[Path, Stream], list[SpecificationError]]:
    """Return the valid streams by file, and the errors of the other files.

    Files that declare the same name are all invalid: it is the stream's folder in the lake and the id of its
    DAG.

    Args:
        name: if given, files that declare another name are skipped.
    """
    valid: dict[Path, Stream] = {}
    errors = []
    for file in sorted(folder().glob("*.yaml")):
        if name is not None and _declared_name(file) not in (None, name):
            continue
        try:
            valid[file] = load(file)
        except SpecificationError as error:
            errors.append(error)
    for declared in dict.fromkeys(stream.name for stream in valid.values()):
        files = [file for file, stream in valid.items() if stream.name == declared]
        if len(files) > 1:
            rule = f"must be that of one stream alone; got {declared!r} in each of these files"
            paths = list(map(str, files))
            errors.append(SpecificationError(", ".join(paths), [Issue("name", rule)], paths))
            valid = {file: stream for file, stream in valid.items() if file not in files}
    return valid, errors


def names_of(error: SpecificationError) -> list[str]:
    """Return the names of the streams in invalid files: the declared names, else the files' names."""
    files = map(Path, error.files)
    return list(dict.fromkeys(_declared_name(file) or file.stem for file in files))


def _declared_name(file: Path) -> str | None:
    try:
        return declared_name(file.read_text())
    except (OSError, UnicodeDecodeError):
        return None
