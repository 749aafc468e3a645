"""Attempts to send messages by foreign code, each with a time limit.

A notifier may hang, and a thread cannot be ended. So each attempt has a thread of its own, which the run
abandons when the time is up. Within a run, no second attempt begins before the first one has ended: a
receiver that is only slow gets the message once.
"""

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from contextvars import copy_context
from datetime import timedelta
from typing import Any

from transom.core.terminal import escape_control_chars

LIMIT = timedelta(seconds=30)
"""How long a run waits for a notifier to send a message."""
MAX_ERROR = 500
"""The maximum number of characters of an error of a notifier."""
Send = Callable[[Mapping[str, Any]], None]
"""Sends a message, and raises any exception if it could not."""


class Attempts:
    """The attempts of a run.

    Args:
        limit: how long to wait for each.
    """

    def __init__(self, limit: timedelta = LIMIT) -> None:
        self._limit = limit
        self._open: dict[str, Future[None]] = {}
        self._tried: set[str] = set()

    def send(self, send: Send, message: Mapping[str, Any]) -> str | None:
        """Send a message, or wait for an earlier attempt that had not ended.

        Args:
            send: sends it.
            message: the message, with its stable key as `message`.

        Returns:
            The error as text; None if the message was sent.
        """
        key = message["message"]
        self._tried.add(key)
        attempt = self._open.pop(key, None) or _begin(send, message)
        wait([attempt], self._limit.total_seconds())
        if not attempt.done():
            self._open[key] = attempt
            return f"no answer within {self._limit.total_seconds():g} seconds"
        try:
            attempt.result()
        # A notifier is foreign code.
        except Exception as error:
            return escape_control_chars(f"{type(error).__name__}: {error}"[:MAX_ERROR])
        return None

    def has_tried(self, key: str) -> bool:
        """Return whether the run has tried to send a message."""
        return key in self._tried

    def is_open(self, key: str) -> bool:
        """Return whether the attempt to send a message has not ended in its time."""
        return key in self._open


def _begin(send: Send, message: Mapping[str, Any]) -> Future[None]:
    attempt: Future[None] = Future()

    def run() -> None:
        try:
            send(message)
        except BaseException as error:
            attempt.set_exception(error)
        else:
            attempt.set_result(None)

    # As a daemon, it does not keep the process from ending.
    threading.Thread(target=copy_context().run, args=(run,), daemon=True).start()
    return attempt
