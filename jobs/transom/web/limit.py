"""A limit of the pages that are made at once: they share the threads of Airflow's API server."""

import asyncio
from collections.abc import AsyncIterator

AT_ONCE = 8
"""How many pages are made at once. Airflow's API server has 40 threads, for its own pages, too."""
PATIENCE = 5.0
"""How long a request waits for another one to end, in seconds; it takes no thread meanwhile."""
RETRY_AFTER = 10
"""After how many seconds a refused request should come again."""


class TooBusy(Exception):
    """As many pages as the limit allows are being made."""

    def __str__(self) -> str:
        """Return the text for a reader."""
        return (
            f"{AT_ONCE} pages are being made, which is the limit of an API server. "
            f"Open this one again in {RETRY_AFTER} seconds."
        )


class Limit:
    """A dependency of routes: a request has a place from before its page is made until it is sent."""

    def __init__(self) -> None:
        self._places = asyncio.BoundedSemaphore(AT_ONCE)

    async def __call__(self) -> AsyncIterator[None]:
        """Wait for a place, and give it back.

        Raises:
            TooBusy: there was none for `PATIENCE`.
        """
        try:
            async with asyncio.timeout(PATIENCE):
                await self._places.acquire()
        except TimeoutError:
            raise TooBusy from None
        try:
            yield
        finally:
            self._places.release()
