"""Progress and warnings of jobs, gates and commands in a terminal, in one form."""

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class _TerminalHandler(logging.Handler):
    """Prints messages alone, as people read them; the level only says where."""

    def __init__(self, prefix: str, to_stderr: bool, rewrite: Callable[[str], str]) -> None:
        super().__init__()
        self._prefix, self._to_stderr, self._rewrite = prefix, to_stderr, rewrite

    def emit(self, record: logging.LogRecord) -> None:
        to_stderr = self._to_stderr or record.levelno >= logging.ERROR
        text = self._prefix + self._rewrite(self.format(record))
        print(text, file=sys.stderr if to_stderr else sys.stdout, flush=True)


@contextmanager
def terminal_log(
    prefix: str = "", to_stderr: bool = False, rewrite: Callable[[str], str] = str
) -> Iterator[None]:
    """Print what the package logs to the terminal, and nowhere else.

    Args:
        to_stderr: whether all messages go to standard error, and not errors alone.
        rewrite: changes each message, which then follows the prefix.
    """
    logger = logging.getLogger("transom")
    handlers, level, propagate = logger.handlers, logger.level, logger.propagate
    logger.handlers, logger.propagate = [_TerminalHandler(prefix, to_stderr, rewrite)], False
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.handlers, logger.propagate = handlers, propagate
        logger.setLevel(level)
