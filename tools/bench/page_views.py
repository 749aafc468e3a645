"""Compute one view of the page several times in a process, and write the seconds of each time.

Usage: page_views.py VIEW LAKE STREAMS PASSES RESULT
"""

import json
import sys
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial
from pathlib import Path

from bench.draw import FIRST
from bench.page_lake import HOURS, name_of
from bench.ways import timed
from transom.core.intervals import HOUR, Interval
from transom.stream import load
from transom.views.open_stream import OpenStream
from transom.views.stream_hours import PATIENCE, StreamHours
from transom.views.view import view_of

DAY = timedelta(days=1)
ALL = Interval(FIRST, FIRST + HOURS * HOUR)


class Opened:
    """A stream of the page, which stays open from view to view."""

    def __init__(self, lake: str, streams: Path, number: int) -> None:
        self.lake, self.stream = lake, load(streams / f"{name_of(number)}.yaml")
        self._hours: StreamHours | None = None

    def grid(self, patience: float = PATIENCE) -> int:
        """Compute the grid of all hours as the page does, and return the number of its cells."""
        if self._hours is None:
            self._hours = self._opened()
        return sum(map(len, self._hours.grid(ALL, patience).stages.values()))

    def stale(self) -> int:
        """Compute which hours are stale, as after a commit of a run, and return the number of cells."""
        return sum(map(len, self._opened().grid(ALL, patience=None).stages.values()))

    def _opened(self) -> StreamHours:
        return StreamHours(OpenStream(self.lake, self.stream))

    def last(self, length: timedelta, key: str | None = None) -> int:
        """Compute the page of the last hours, and return the number of its sections."""
        view = view_of(self.lake, self.stream, Interval(ALL.end - length, ALL.end), key)
        return len(view.results)


def views(lake: str, streams: Path) -> Mapping[str, Callable[[], int]]:
    """Return the views by name."""
    files = len(list(streams.glob("*.yaml")))
    opened = [Opened(lake, streams, number) for number in range(files)]
    return {
        "hours": opened[0].grid,
        "stale": opened[0].stale,
        "all": lambda: sum(one.grid(patience=0) for one in opened),
        "week": partial(opened[0].last, 7 * DAY),
        "key": partial(opened[0].last, 92 * DAY, "10.0.0.1"),
    }


def main(view: str, lake: str, streams: str, passes: str, result: str) -> None:
    """Run the passes of a view."""
    counts: list[int] = []
    compute = views(lake, Path(streams))[view]
    seconds = timed(passes, lambda number: counts.append(compute()))
    Path(result).write_text(json.dumps({"seconds": seconds, "count": counts[-1]}))


if __name__ == "__main__":
    main(*sys.argv[1:])
