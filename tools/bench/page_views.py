"""Open pages several times in a process, as a server does, and write the seconds of each time.

The first time of a page is that of the first request to a server that has started. What it prepares when it
starts is a view of its own.

Usage: page_views.py VIEW LAKE STREAMS PASSES RESULT
"""

import asyncio
import json
import os
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path

import httpx

from bench.draw import FIRST
from bench.page_lake import HOURS, name_of
from bench.ways import timed
from transom.core.intervals import HOUR, Interval
from transom.stream import load
from transom.views.open_stream import OpenStream
from transom.views.stream_hours import StreamHours
from transom.views.view import view_of
from transom.web.app import Access, application
from transom.web.links import Links, address, hours_of
from transom.web.prepare import THREAD

DAY = timedelta(days=1)
ALL = Interval(FIRST, FIRST + HOURS * HOUR)
KEY = {"key.client": "10.0.0.1"}
WITHOUT_SERVER = ("start", "stale", "report")
"""The views that need no started server."""


class Pages:
    """The pages of a lake, which stay open from view to view; every user may read every stream.

    Args:
        lake: the lake, also in TRANSOM_LAKE.
        streams: the folder of the stream files, also in TRANSOM_STREAMS.
    """

    def __init__(self, lake: str, streams: Path) -> None:
        self._lake, self._stream = lake, load(streams / f"{name_of(0)}.yaml")
        self._app = application(Access(lambda: "reader", lambda: None, lambda user, names: names))

    def start(self) -> int:
        """Start the server, wait until all is prepared, and return the number of threads that prepared it."""

        async def started() -> int:
            async with self._app.router.lifespan_context(self._app):
                threads = [thread for thread in threading.enumerate() if thread.name == THREAD]
                for thread in threads:
                    await asyncio.to_thread(thread.join)
                return len(threads)

        return asyncio.run(started())

    def of_all(self) -> int:
        """Return the size of the first page, which lists the streams."""
        return self._size(address("", ""))

    def of_stream(self, length: timedelta, *pages: Sequence[str], **parameters: str) -> int:
        """Return the size of pages of the last hours of a stream.

        Args:
            length: the length of the hours.
            pages: the segments of the address of each page, below that of the stream.
            parameters: further parameters of the address.
        """
        links = Links("", "", self._stream.name, hours_of(Interval(ALL.end - length, ALL.end)))
        return sum(self._size(links(*page, **parameters)) for page in pages)

    def of_week(self) -> int:
        """Return the size of all pages of a week: findings, hours, the results of each block, checks."""
        blocks = [
            ("results", feature.name, name)
            for feature in self._stream.features
            if feature.view is not None
            for name in self._stream.blocks(feature.block)
        ]
        return self.of_stream(7 * DAY, (), ("hours",), *blocks, ("quality",))

    def stale(self) -> int:
        """Compute which hours are stale, as after a commit of a run, and return the number of cells."""
        grid = StreamHours(OpenStream(self._lake, self._stream)).grid(ALL, patience=None)
        return sum(map(len, grid.stages.values()))

    def report(self) -> int:
        """Return the size of the report of a week, which computes itself which hours are stale."""
        return len(view_of(self._lake, self._stream, Interval(ALL.end - 7 * DAY, ALL.end)).page())

    def _size(self, page: str) -> int:
        async def response() -> httpx.Response:
            transport = httpx.ASGITransport(self._app)
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
                return await client.get(page)

        return len(asyncio.run(response()).raise_for_status().text)


def views(lake: str, streams: Path) -> Mapping[str, Callable[[], int]]:
    """Return the views by name."""
    pages = Pages(lake, streams)
    return {
        "start": pages.start,
        "hours": partial(pages.of_stream, ALL.end - ALL.start, ("hours",)),
        "all": pages.of_all,
        "stale": pages.stale,
        "week": pages.of_week,
        "key": partial(pages.of_stream, 92 * DAY, ("key",), **KEY),
        "report": pages.report,
    }


def main(view: str, lake: str, streams: str, passes: str, result: str) -> None:
    """Run the passes of a view."""
    # The application reads them of each page.
    os.environ |= {"TRANSOM_LAKE": lake, "TRANSOM_STREAMS": streams}
    counts: list[int] = []
    of = views(lake, Path(streams))
    compute = of[view]
    if view not in WITHOUT_SERVER:
        of["start"]()
    seconds = timed(passes, lambda number: counts.append(compute()))
    Path(result).write_text(json.dumps({"seconds": seconds, "count": counts[-1]}))


if __name__ == "__main__":
    main(*sys.argv[1:])
