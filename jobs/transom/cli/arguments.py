"""What a command is asked about, and how it says that something is wrong with that.

Every command ends with one of three exit codes:

- 0: what it looked at is as it should be;
- 1: it could look, and something is not: a check withholds rows, an hour is not fresh or was never run, no
  line is an event, `check` finds a stream file wrong;
- 2: it could not look: an argument is wrong; a file, a stream, the lake or Spark is missing or cannot be
  read; the stream file is wrong, for all commands but `check`.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import typer

from transom.core.terminal_log import terminal_log
from transom.spec.errors import did_you_mean
from transom.stream import SpecificationError, Stream, load
from transom.stream_files import folder, streams

LOG = logging.getLogger(__name__)
NOT_WELL, CANNOT_LOOK = 1, 2
"""Exit codes: what was looked at is not as it should be; it could not be looked at."""


class UsageError(ValueError):
    """Something is wrong with what was asked about: place, rule and value, for a person."""

    code = CANNOT_LOOK


class NoEventsError(UsageError):
    """A file was read, and nothing in it can be used."""

    code = NOT_WELL


def command_log(rewrite: Callable[[str], str] = str) -> AbstractContextManager[None]:
    """Print what is logged beside the results of a command.

    Args:
        rewrite: changes each message.
    """
    return terminal_log("transom: ", to_stderr=True, rewrite=rewrite)


@contextmanager
def cli_errors(*others: type[Exception]) -> Iterator[None]:
    """Says in one message what is wrong, and ends the command with its exit code.

    Args:
        others: further exceptions whose text is such a message.
    """
    expected: tuple[type[Exception], ...] = (UsageError, SpecificationError, *others)
    with command_log():
        try:
            yield
        except expected as error:
            LOG.error(error)
            raise typer.Exit(error.code if isinstance(error, UsageError) else CANNOT_LOOK) from None


def stream_file(named: str) -> Path:
    """The file of a stream, by its path or by its name.

    Raises:
        typer.BadParameter: there is neither such a file nor such a stream.
    """
    if Path(named).is_file():
        return Path(named)
    if Path(named).suffix in (".yaml", ".yml") or "/" in named:
        raise typer.BadParameter(f"no stream file {named!r}", param_hint="STREAM")
    by_name = {stream.name: file for file, stream in streams()[0].items()}
    # The file of a stream with a mistake is named as its stream would be.
    by_name = {file.stem: file for file in sorted(folder().glob("*.yaml"))} | by_name
    if named in by_name:
        return by_name[named]
    hint = did_you_mean(named, sorted(by_name))
    raise typer.BadParameter(f"no stream {named!r} in {folder()}{hint}", param_hint="STREAM")


def stream_of(named: str) -> tuple[Path, Stream]:
    """A stream and its file, by the file's path or by the stream's name.

    Raises:
        typer.BadParameter: as `stream_file`.
        SpecificationError: its file is wrong.
    """
    file = stream_file(named)
    return file, load(file)
