"""Resolve arguments of commands, and turn errors into messages and exit codes.

Every command ends with one of three exit codes:

- 0: everything is as it should be;
- 1: something is not: a check quarantines rows, an hour is stale or was never run, no line is an event, or
  `check` finds an error in a stream file;
- 2: the command could not run: an argument is wrong; a file, a stream, the lake or Spark is missing or
  unreadable; the stream file is wrong (except for `check`).
"""

import json
import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from transom.core.terminal_log import terminal_log
from transom.spec.errors import did_you_mean
from transom.stream import SpecificationError, Stream, load
from transom.stream_files import folder, streams

LOG = logging.getLogger(__name__)
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document, for programs.")]
StreamArgument = Annotated[str, typer.Argument(metavar="STREAM", help="A stream file, or a stream's name.")]


class UsageError(ValueError):
    """An argument, or what it names, is wrong. The message has the place, the rule and the value."""

    code = 2


class NoEventsError(UsageError):
    """A file was read, and no line of it is an event."""

    code = 1


def print_json(document: object) -> None:
    """Print a JSON document, in place of the text of a command."""

    def plain(value: object) -> object:
        if isinstance(value, datetime):
            return value.isoformat()
        return {name: part for name, part in vars(value).items() if part is not None}

    typer.echo(json.dumps(document, indent=1, ensure_ascii=False, default=plain))


def command_log(rewrite: Callable[[str], str] = str) -> AbstractContextManager[None]:
    """Print log messages on standard error, apart from the results of a command.

    Args:
        rewrite: changes each message.
    """
    return terminal_log("transom: ", to_stderr=True, rewrite=rewrite)


@contextmanager
def cli_errors(*others: type[Exception]) -> Iterator[None]:
    """Log the message of an exception, and end the command with its exit code.

    Args:
        others: exceptions to handle besides `UsageError` and `SpecificationError`.
    """
    expected: tuple[type[Exception], ...] = (UsageError, SpecificationError, *others)
    with command_log():
        try:
            yield
        except expected as error:
            LOG.error(error)
            raise typer.Exit(error.code if isinstance(error, UsageError) else 2) from None


def stream_file(argument: str) -> Path:
    """Return the file of a stream by its path or by the stream's name.

    Raises:
        typer.BadParameter: there is neither such a file nor such a stream.
    """
    file = Path(argument)
    if file.is_file():
        return file
    if file.suffix in (".yaml", ".yml") or "/" in argument:
        raise typer.BadParameter(f"no stream file {argument!r}", param_hint="STREAM")
    # The file of an invalid stream is found by the file's name.
    by_name = {file.stem: file for file in sorted(folder().glob("*.yaml"))}
    by_name |= {stream.name: file for file, stream in streams()[0].items()}
    if argument in by_name:
        return by_name[argument]
    hint = did_you_mean(argument, sorted(by_name))
    raise typer.BadParameter(f"no stream {argument!r} in {folder()}{hint}", param_hint="STREAM")


def stream_of(argument: str) -> tuple[Path, Stream]:
    """Return the file of a stream, as `stream_file`, and the stream.

    Raises:
        typer.BadParameter: as `stream_file`.
        SpecificationError: the file is wrong.
    """
    file = stream_file(argument)
    return file, load(file)
