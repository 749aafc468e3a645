"""Clocks that jump, on the machine that runs the jobs and on those that write the files."""

import ast
import os
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import count, cycle
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyspark.sql import SparkSession

import transom
from tests.support.stream_harness import StreamHarness, line
from transom.app import run_stage

Make = Callable[..., StreamHarness]
TRANSOM = Path(transom.__file__).parent
TEXT = """
name: web
preset: apache/combined
source: {path: "landing/web/%Y-%m-%d/access.%H*.log.gz", expected_files: 1}
key: [client]
aggregates: {traffic: {measures: {n: count}, levels: RANGES 2 HOURS SLIDES 1 HOUR}}
"""


class Jumping(datetime):
    """A clock that jumps a century back and forth."""

    years: Iterator[int] = cycle((2120, 1971))

    @classmethod
    def now(cls, tz: object = None) -> "Jumping":
        return cls(next(cls.years), 1, 1, tzinfo=UTC)


@pytest.mark.full
def test_jumping_clock_changes_no_row(
    spark: SparkSession, make_stream: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slow (20 seconds): several runs of all stages."""
    steady, jumping = make_stream(TEXT, "steady"), make_stream(TEXT, "jumping")

    def performed(day: StreamHarness, start: int, end: int) -> None:
        for stage in day.stream.stages:
            lake, interval = str(Path(day.root).parent), day.context(start, end).interval
            run_stage.run_stage(spark, stage, day.stream, interval, lake=lake)

    files = [steady.land(number, [line(3600 * number + 5, f"10.0.0.{number}")]) for number in range(2)]
    performed(steady, 0, 2)
    # Modification times long before the log's epoch, long after it, and both at one time.
    for file, moment in zip(files, (-(10**9), 10**10), strict=True):
        os.utime(file, (moment, moment))
    seconds = count(10**6, -1000)
    monkeypatch.setattr(run_stage, "time", SimpleNamespace(monotonic=lambda: float(next(seconds))))
    monkeypatch.setattr(run_stage, "datetime", Jumping)
    performed(jumping, 0, 1)
    performed(jumping, 0, 2)
    jumping.assert_same(steady)
    # The files are read again with the same result. Grown files are read, however old they look.
    for file in files:
        os.utime(file, (0, 0))
    steady.land(1, [line(3605, "10.0.0.1"), line(3606, "10.0.0.2")])
    os.utime(files[1], (0, 0))
    performed(jumping, 1, 2)
    monkeypatch.undo()
    monkeypatch.setenv("TRANSOM_HOME", str(steady.folder))
    fresh = make_stream(TEXT, "fresh")
    fresh.run(0, 2)
    jumping.assert_same(fresh)
    assert {run["finished_at"].year for run in jumping.ledger.runs()} == {2120, 1971}


@pytest.mark.full
def test_file_with_unchanged_size_and_mtime_is_not_read_again(make_stream: Make) -> None:
    """A known limit: a file counts as changed if its size or modification time differs. If a user edits a
    file and restores its time, they must `touch` it.
    """
    day = make_stream(
        TEXT.replace("expected_files: 1", "expected_files: 1, on_conflict: replace").replace(
            ".log.gz", ".log"
        )
    )
    path = day.folder / "landing/web/2015-05-17/access.00.log"
    path.parent.mkdir(parents=True)
    for client, moment in (("10.0.0.1", 5), ("10.0.0.2", 5), ("10.0.0.2", 4)):
        path.write_text(line(1, client) + "\n")
        os.utime(path, (moment, moment))
        day.stage("ingest", 0, 1)
        (row,) = day.table("events").select("client").collect()
        assert row.client == ("10.0.0.2" if moment == 4 else "10.0.0.1")


CLOCKS = {
    "now", "utcnow", "today", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns",
    "localtime", "gmtime", "ctime", "asctime", "clock_gettime", "clock_gettime_ns",
    "current_timestamp", "current_date", "current_time", "curdate", "localtimestamp",
}  # fmt: skip
"""Calls of Python, Arrow and Spark that return the current time, by their last name; `time.time` is apart."""
IN_SQL = re.compile(
    r"\b(now|unix_timestamp)\(\s*\)|\b(current_(timestamp|date|time)|curdate|localtimestamp)\b", re.I
)


def clocks(source: str) -> list[int]:
    """Return the lines of a module that read a clock or import one under any name."""
    nodes = list(ast.walk(ast.parse(source)))
    imported = [node for node in nodes if isinstance(node, ast.Import)]
    times = {alias.asname or "time" for node in imported for alias in node.names if alias.name == "time"}
    docs = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}

    def asks(node: ast.AST) -> bool:
        match node:
            case ast.ImportFrom():
                # `import *` imports the module's clocks too.
                named = {alias.name for alias in node.names}
                return bool(named & CLOCKS) or (node.module == "time" and bool(named & {"time", "*"}))
            case ast.Attribute(value=ast.Name(id=name), attr="time") if name in times:
                return True
            case ast.Attribute(attr=name):
                return name in CLOCKS
            case ast.Constant(value=str(text)):
                return id(node) not in docs and IN_SQL.search(text) is not None
        return False

    return sorted(node.lineno for node in nodes if isinstance(node, ast.expr | ast.ImportFrom) and asks(node))


@pytest.mark.parametrize(
    "code",
    [
        "import time\ntime.time()",
        "import time as clock\nclock.time()",
        "import time\nask = time.monotonic",
        "import time as t\nt.gmtime()",
        "\nfrom time import time",
        "\nfrom time import perf_counter as seconds",
        "\nfrom time import *",
        "from datetime import datetime\ndatetime.now(UTC)",
        "from datetime import date as day\nday.today()",
        "import datetime as d\nd.datetime.utcnow()",
        "\nfrom pyspark.sql.functions import current_timestamp, lit",
        "from pyspark.sql import functions as F\nF.current_date()",
        "\nrows.selectExpr('now() - event_time')",
        "\nF.expr('unix_timestamp( ) > 5')",
        "\nF.expr(f'CURRENT_TIMESTAMP < {end}')",
    ],
)
def test_call_of_a_clock_is_detected(code: str) -> None:
    assert clocks(code) == [2]


def test_time_passed_as_argument_is_no_clock() -> None:
    reported = (
        '"""Asks no current_timestamp, nor now()."""\nimport time\nfrom datetime import time as at\n'
        "time.tzset()\ndatetime.fromtimestamp(5)\nrow.time\nF.expr('unix_timestamp(x)')\ntime = a.time\n"
    )
    assert clocks(reported) == []


def test_code_that_computes_rows_reads_no_clock() -> None:
    """Jobs read a clock to record durations and end times; command line and pages read it for the user."""
    modules = {str(path.relative_to(TRANSOM)): clocks(path.read_text()) for path in TRANSOM.rglob("*.py")}
    people = ("cli/", "installation/", "web/")
    asking = {module for module, lines in modules.items() if lines and not module.startswith(people)}
    jobs = {"app/audit.py", "app/main.py", "app/run_stage.py", "storage/session_on_demand.py"}
    # None of these computes rows: a silence ends by the clock, and a page waits for a limited time.
    assert asking == jobs | {"alerts/deliver.py", "views/silences.py", "views/stream_hours.py"}
