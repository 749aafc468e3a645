"""A clock that jumps: of the machine that runs the jobs, and of those that write the files."""

import ast
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import count, cycle
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyspark.sql import SparkSession

from house import House, line
from transom import job
from transom.work import WORKS

Make = Callable[..., House]
TRANSOM = Path(job.__file__).parent
TEXT = """
name: web
preset: apache/combined
source: {path: "landing/web/%Y-%m-%d/access.%H*.log.gz", expect: 1}
key: [client]
aggregate: {traffic: {measures: {n: count}, levels: RANGES 2 HOURS SLIDES 1 HOUR}}
"""


class Jumping(datetime):
    """A clock that goes a century back and forth."""

    years: Iterator[int] = cycle((2120, 1971))

    @classmethod
    def now(cls, tz: object = None) -> "Jumping":
        return cls(next(cls.years), 1, 1, tzinfo=UTC)


def test_a_clock_that_jumps_leaves_no_trace(
    spark: SparkSession, house: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    steady, jumping = house(TEXT, "steady"), house(TEXT, "jumping")

    def performed(day: House, start: int, end: int) -> None:
        for stage, work in WORKS.items():
            lake = str(Path(day.root).parent)
            job.perform(spark, stage, day.stream, day.context(start, end).interval, work, lake=lake)

    files = [steady.land(number, [line(3600 * number + 5, f"10.0.0.{number}")]) for number in range(2)]
    performed(steady, 0, 2)
    # Long before the epoch of the log, long after it, and both at one time.
    for file, moment in zip(files, (-(10**9), 10**10), strict=True):
        os.utime(file, (moment, moment))
    seconds = count(10**6, -1000)
    monkeypatch.setattr(job, "time", SimpleNamespace(monotonic=lambda: float(next(seconds))))
    monkeypatch.setattr(job, "datetime", Jumping)
    performed(jumping, 0, 1)
    performed(jumping, 0, 2)
    jumping.assert_same(steady)
    # They are read again, and are what they were; grown ones are taken, however old they seem.
    for file in files:
        os.utime(file, (0, 0))
    steady.land(1, [line(3605, "10.0.0.1"), line(3606, "10.0.0.2")])
    os.utime(files[1], (0, 0))
    performed(jumping, 1, 2)
    monkeypatch.undo()
    monkeypatch.setenv("TRANSOM_HOME", str(steady.folder))
    fresh = house(TEXT, "fresh")
    fresh.run(0, 2)
    jumping.assert_same(fresh)
    assert {run["finished_at"].year for run in jumping.ledger.runs()} == {2120, 1971}


def test_a_file_of_the_same_size_and_the_same_time_is_not_read_again(house: Make) -> None:
    """The known limit: size and time of change are what says that a file may have changed. Whoever changes
    one and puts its time back has to say so, by a new time (`touch`)."""
    day = house(TEXT.replace("expect: 1", "expect: 1, on_change: replace").replace(".log.gz", ".log"))
    path = day.folder / "landing/web/2015-05-17/access.00.log"
    path.parent.mkdir(parents=True)
    for client, moment in (("10.0.0.1", 5), ("10.0.0.2", 5), ("10.0.0.2", 4)):
        path.write_text(line(1, client) + "\n")
        os.utime(path, (moment, moment))
        day.ingest(0, 1)
        (row,) = day.table("events").select("client").collect()
        assert row.client == ("10.0.0.2" if moment == 4 else "10.0.0.1")


CLOCKS = {
    "now",
    "utcnow",
    "today",
    "monotonic",
    "perf_counter",
    "time_ns",
    "current_timestamp",
    "current_date",
}


@pytest.mark.parametrize("folder", ["algorithms", "expressions", "formats", "lake", "stages", "stream"])
def test_nothing_that_rows_come_from_asks_a_clock(folder: str) -> None:
    for module in (TRANSOM / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(module.read_text())):
            asked = isinstance(node, ast.Attribute) and (
                node.attr in CLOCKS or (node.attr, ast.unparse(node.value)) == ("time", "time")
            )
            assert not asked, f"{module}:{node.lineno}"
