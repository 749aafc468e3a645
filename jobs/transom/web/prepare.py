"""Preparation of the pages when a server starts, so that the first reader does not wait for it."""

import logging
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from transom.web import render
from transom.web.open_streams import OpenStreams
from transom.web.summary import summary_of

LOG = logging.getLogger(__name__)
THREAD = "transom-prepare"


def preparing(streams: OpenStreams) -> Callable[[Any], AbstractAsyncContextManager[None]]:
    """Return the lifespan of an application, in which a thread prepares all that the list of streams shows.

    A server with several processes starts it in each: the library of charts must not be loaded before a fork.
    """

    @asynccontextmanager
    async def lifespan(app: Any) -> AsyncIterator[None]:
        stopped = threading.Event()
        # No daemon: the process must not exit while a library of another language runs.
        threading.Thread(target=_prepare, args=(streams, stopped), name=THREAD).start()
        yield
        stopped.set()

    return lifespan


def _prepare(streams: OpenStreams, stopped: threading.Event) -> None:
    try:
        render.prepare()
        for name in streams.names():
            if stopped.is_set():
                return
            summary_of(streams, name, patience=None)
    except Exception:
        # The page that needs it shows the error.
        LOG.exception("preparing the pages failed")
