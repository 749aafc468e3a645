"""Progress and warnings of jobs, gates and commands in a terminal, in one form."""

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def terminal_log(
    prefix: str = "", to_stderr: bool = False, rewrite: Callable[[str], str] = str
) -> Iterator[None]:
    """Print the log messages of the package to the terminal, and nowhere else.

    Args:
        prefix: the beginning of each line.
        to_stderr: whether all messages go to standard error, not only errors.
        rewrite: changes each message before the prefix is added.
    """

    class Handler(logging.Handler):
        """Prints only the messages; the level selects the output."""

        def emit(self, record: logging.LogRecord) -> None:
            file = sys.stderr if to_stderr or record.levelno >= logging.ERROR else sys.stdout
            print(prefix + rewrite(self.format(record)), file=file, flush=True)

    logger = logging.getLogger("transom")
    handlers, level, propagate = logger.handlers, logger.level, logger.propagate
    logger.handlers, logger.propagate = [Handler()], False
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.handlers, logger.propagate = handlers, propagate
        logger.setLevel(level)


@contextmanager
def progress(text: str) -> Iterator[None]:
    """Show a text and the elapsed time during long work, if standard error is a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    # Jobs and gates log, too, and need none of it.
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        bar.add_task(text, total=None)
        yield
