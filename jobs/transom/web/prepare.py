"""Preparation of the pages when a server starts, so that the first reader does not wait for it."""

import logging
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import Any

from transom.web import render
from transom.web.open_streams import OpenStreams
from transom.web.summary import summary_of

LOG = logging.getLogger(__name__)
THREAD = "transom-prepare"


def preparing(streams: OpenStreams) -> Callable[[Any], AbstractAsyncContextManager[None]]:
    """Return the lifespan of an application, in which a thread prepares all that the list of streams shows.

    Each process of a server begins it after the fork: a process in which a chart was drawn must not fork.
    """

    @asynccontextmanager
    async def lifespan(app: Any) -> AsyncIterator[None]:
        stopped = threading.Event()
        # No daemon: a process that exits while a library of another language runs may crash. So its exit
        # waits for the stream that is read.
        threading.Thread(target=_prepare, args=(streams, stopped), name=THREAD).start()
        try:
            yield
        finally:
            stopped.set()

    return lifespan


def _prepare(streams: OpenStreams, stopped: threading.Event) -> None:
    with _reported("charts and templates", stopped):
        render.prepare()
    names = list[str]()
    with _reported("the stream files", stopped):
        names = streams.names()
    for name in names:
        if stopped.is_set():
            return
        with _reported(f"stream {name}", stopped):
            summary_of(streams, name, patience=None)


@contextmanager
def _reported(what: str, stopped: threading.Event) -> Iterator[None]:
    """Log an error and go on: the page that needs it shows it, too."""
    try:
        yield
    except Exception:
        # A process that exits accepts no further work.
        if not stopped.is_set():
            LOG.exception("preparing the pages: %s failed", what)
