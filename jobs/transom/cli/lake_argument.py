"""Resolve the lake of a command, and open the ledgers in it. Nothing is created."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from transom.cli.arguments import UsageError
from transom.core import locations
from transom.spec.errors import did_you_mean

if TYPE_CHECKING:
    from transom.ledger.ledger import Ledger

LakeOption = Annotated[
    str | None,
    typer.Option("--lake", metavar="URI", help="The lake. Default: TRANSOM_LAKE, or .transom/lake."),
]


def lake(option: str | None) -> str:
    """Return the lake: the option, TRANSOM_LAKE, or that of the checkout, which may not exist yet.

    Raises:
        UsageError: the option or the variable names no lake, or one that cannot be read.
    """
    for place, uri in (("--lake", option), ("TRANSOM_LAKE", os.environ.get("TRANSOM_LAKE"))):
        if uri:
            folder = uri.removeprefix("file://")
            if "://" not in folder:
                _require_lake(place, Path(folder))
            return uri.rstrip("/") or "/"
    return locations.lake()


def _require_lake(place: str, folder: Path) -> None:
    rule = "must be a lake, the folder that holds those of streams"
    try:
        if not folder.exists():
            names = [path.name for path in folder.parent.iterdir()] if folder.parent.is_dir() else []
            hint = did_you_mean(folder.name, sorted(names))
            raise UsageError(f"{place}: there is no {folder}{hint if 'nearest' in hint else ''}")
        if not folder.is_dir():
            raise UsageError(f"{place}: {rule}; {folder} is a file")
        names = sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))
        if (folder / "ledger" / "_delta_log").is_dir():
            raise UsageError(f"{place}: {rule}; {folder} is that of a stream, take {folder.parent}")
        if names and not any((folder / name / "ledger").exists() for name in names):
            shown = ", ".join(names[:3]) + (", ..." if names[3:] else "")
            raise UsageError(f"{place}: {rule}; {folder} holds {shown} and no stream's hours")
    except OSError as error:
        raise UsageError(f"{place}: cannot read {error.filename}: {error.strerror}") from None


def streams_in(uri: str) -> list[str]:
    """Return the names of the streams that have a ledger in a lake."""
    from pyarrow import fs

    from transom.storage.filesystem import resolve_filesystem

    with reading(uri):
        system, folder = resolve_filesystem(uri)
        files = system.get_file_info(fs.FileSelector(folder, allow_not_found=True))
        names = sorted(file.base_name for file in files if file.type == fs.FileType.Directory)
        logs = system.get_file_info([f"{folder}/{name}/ledger/_delta_log" for name in names])
    return [name for name, log in zip(names, logs, strict=True) if log.type != fs.FileType.NotFound]


def ledger_of(root: str) -> "Ledger | None":
    """Return the ledger of a stream, or None if there is none.

    Raises:
        LakeError: the lake cannot be read.
    """
    from deltalake import DeltaTable
    from deltalake.exceptions import TableNotFoundError

    from transom.ledger.ledger import Ledger

    with reading(root):
        try:
            DeltaTable(f"{root}/ledger")
        except TableNotFoundError as error:
            if str(error).startswith("Unknown scheme"):
                raise
            return None
        return Ledger(root)


@contextmanager
def reading(root: str) -> Iterator[None]:
    """Replace exceptions of libraries by LakeError with a one-line message.

    Raises:
        LakeError: a table cannot be read.
    """
    import pyarrow as pa
    from deltalake.exceptions import DeltaError

    from transom.storage.tables import LakeError, one_line_message

    try:
        yield
    except (LakeError, BrokenPipeError):  # the latter comes from printing
        raise
    except (DeltaError, pa.ArrowException, OSError) as error:
        raise LakeError(f"lake: {root} cannot be read: {one_line_message(error)}") from error
