"""Time of the pages, on the ledger of ten streams over three years of hours."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench import page_lake
from bench.page_lake import HOURS, STREAMS
from bench.version import WRITING, folder
from bench.ways import gone, taken

START = "what a server prepares for ten streams"
GRID, ALL = "hours of a stream", "the list of ten streams"
STALE = "which hours of a stream are stale"
EDITED, OLD = f"{STALE}, file edited", f"{STALE}: all"
WEEK, KEY, REPORT = "a week of a stream, all pages", "92 days of a key", "the report of a week"
VIEWS = {
    START: "start",
    GRID: "hours",
    ALL: "all",
    WEEK: "week",
    KEY: "key",
    REPORT: "report",
    STALE: "stale",
    EDITED: "stale",
    OLD: "stale",
}
PASSES = 4
MADE_BY = (Path(page_lake.__file__), *WRITING)


def bench(cache: Path, repetitions: int) -> Iterator[dict[str, Any]]:
    """Yield a row per view: the first time in a process, and the best of later ones.

    The process of a page is a server that has started; its memory is that of ten open streams.
    """
    place = folder(cache / "page", MADE_BY)
    lake = page_lake.create_lake(place)
    edited, old = place / "edited", place / "old"
    page_lake.spec_file(edited, 0, page_lake.EDITED)
    page_lake.spec_file(old, 0, page_lake.OTHER)
    streams = {EDITED: edited, OLD: old}
    for who, view in VIEWS.items():
        result = place / "results" / f"{who.replace(' ', '-')}.json"
        # A server starts once.
        passes = 1 if who == START else PASSES
        arguments = (view, lake, streams.get(who, place / "streams"), passes)
        runs = [gone("page_views.py", result, *arguments) for _ in range(repetitions)]
        count = STREAMS if who in (START, ALL) else 1
        yield {"bench": "page", "hours": HOURS, "streams": count, "who": who, **taken(runs)}
