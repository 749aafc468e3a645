"""The lake that a command is asked about: whether there is one, and the ledgers in it. Nothing is made."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from transom.app.command_lines import checkout
from transom.cli.arguments import UsageError
from transom.spec.errors import did_you_mean

if TYPE_CHECKING:
    from transom.ledger.ledger import Ledger

TRY_TRIGGER = "try"
"""How the ledger names why `transom try` runs."""


def lake(named: str | None) -> str:
    """The lake that is asked about: as named, else TRANSOM_LAKE, else the checkout's own.

    Raises:
        Refusal: it is named, and is no lake or cannot be read; the checkout's may not be there yet.
    """
    for place, uri in (("--lake", named), ("TRANSOM_LAKE", os.environ.get("TRANSOM_LAKE"))):
        if uri:
            folder = uri.removeprefix("file://")
            if "://" not in folder:
                _require_lake(place, Path(folder))
            return uri.rstrip("/") or "/"
    return f"{checkout()}/.transom/lake"


def _require_lake(place: str, folder: Path) -> None:
    rule = "must be a lake, the folder that holds those of streams"
    try:
        if not folder.exists():
            beside = sorted(path.name for path in folder.parent.iterdir()) if folder.parent.is_dir() else []
            hint = did_you_mean(folder.name, beside)
            raise UsageError(f"{place}: there is no {folder}{hint if 'nearest' in hint else ''}")
        if not folder.is_dir():
            raise UsageError(f"{place}: {rule}; {folder} is a file")
        held = sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))
        if (folder / "ledger" / "_delta_log").is_dir():
            raise UsageError(f"{place}: {rule}; {folder} is that of a stream, take {folder.parent}")
        if held and not any((folder / name / "ledger").exists() for name in held):
            more = ", ..." if held[3:] else ""
            raise UsageError(
                f"{place}: {rule}; {folder} holds {', '.join(held[:3])}{more} and no stream's hours"
            )
    except OSError as error:
        raise UsageError(f"{place}: cannot read {error.filename}: {error.strerror}") from None


def streams_in(uri: str) -> list[str]:
    """The names of the streams that a lake holds something of."""
    from pyarrow import fs

    from transom.storage.filesystem import resolve_filesystem

    with reading(uri):
        system, folder = resolve_filesystem(uri)
        inside = system.get_file_info(fs.FileSelector(folder, allow_not_found=True))
        names = sorted(entry.base_name for entry in inside if entry.type == fs.FileType.Directory)
        logs = system.get_file_info([f"{folder}/{name}/ledger/_delta_log" for name in names])
    return [name for name, log in zip(names, logs, strict=True) if log.type != fs.FileType.NotFound]


def ledger_of(root: str) -> "Ledger | None":
    """The ledger of a stream, where there is one: asking makes none.

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
    """Says in one line what a table cannot be read for.

    Raises:
        LakeError: instead of what a library raises.
    """
    import pyarrow as pa
    from deltalake.exceptions import DeltaError

    from transom.storage.tables import LakeError, one_line_message

    try:
        yield
    except (LakeError, BrokenPipeError):  # the latter is of what is printed
        raise
    except (DeltaError, pa.ArrowException, OSError) as error:
        raise LakeError(f"lake: {root} cannot be read: {one_line_message(error)}") from error
