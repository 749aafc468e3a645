"""What a job says in a line: of what it refuses before Spark is started, and of what stops it later."""

import argparse
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest.mock import Mock

import pytest
from pyspark.errors import PythonException

import ingest
from transom import job
from transom.intervals import Interval
from transom.lake.book import Entry, Node
from transom.lake.findings import findings
from transom.lake.ledger import Ledger
from transom.lake.refresh import Outcome
from transom.stream import load

ROOT = Path(__file__).resolve().parents[2]
WEB = str(ROOT / "schemas/streams/web.yaml")


@pytest.mark.parametrize(
    ("stream", "start", "end", "words"),
    [
        (WEB, "2015-05-17T12:00", "2015-05-17T10:00", "ingest: from: must be before to"),
        (WEB, "2015-05-17T10:30", "2015-05-17T12:00", "ingest: from: must be on the hour.*10:30"),
        (WEB, "yesterday", "2015-05-17T12:00", "ingest: from: must be a time.*'yesterday'"),
        ("nowhere.yaml", "2015-05-17T10:00", "2015-05-17T12:00", "ingest: .*nowhere.yaml"),
    ],
)
def test_wrong_arguments(
    monkeypatch: pytest.MonkeyPatch, stream: str, start: str, end: str, words: str
) -> None:
    def no_session(name: str) -> None:
        raise AssertionError("a session was started")

    monkeypatch.setattr(job, "session", no_session)
    parser: argparse.ArgumentParser = job.arg_parser("a job")
    arguments = parser.parse_args(["--stream", stream, "--lake", "x", "--from", start, "--to", end])
    with pytest.raises(SystemExit, match=words) as refused:
        job.run("ingest", arguments, lambda context: pytest.fail("it ran"))
    assert "\n" not in str(refused.value)


RAISED_IN_A_WORKER = """\
An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "jobs/transom/stages/aggregate.py", line 228, in run
    raise ValueError("column n: must be a number;\\ngot 'x'")
ValueError: column n: must be a number;
got 'x'
"""


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (PythonException(RAISED_IN_A_WORKER), "PythonException: ValueError: column n: must be a number;"),
        (RuntimeError("[DIVIDE_BY_ZERO] Division by zero.\nat line 1"), "RuntimeError: [DIVIDE_BY_ZERO] "),
        (MemoryError(), "MemoryError: "),
    ],
)
def test_what_stops_a_run_is_said_first(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: Exception, words: str
) -> None:
    monkeypatch.setattr(job, "session", Mock())
    monkeypatch.setattr(job, "preload", Mock())
    monkeypatch.setattr(job, "perform", Mock(side_effect=error))
    hours = ["--from", "2015-05-17T10:00", "--to", "2015-05-17T12:00"]
    arguments = job.arg_parser("a job").parse_args(["--stream", WEB, "--lake", "x", *hours])
    with pytest.raises(type(error)):
        job.run("ingest", arguments, Mock())
    assert capsys.readouterr().err.startswith(f"ingest: failed: {words}")


def test_a_lake_that_cannot_be_written_is_said_in_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(job, "session", Mock())
    monkeypatch.setattr(job, "preload", Mock())
    lake = tmp_path / "file" / "lake"
    lake.parent.write_text("no folder")
    hours = ["--from", "2015-05-17T10:00", "--to", "2015-05-17T12:00"]
    monkeypatch.setattr("sys.argv", ["ingest.py", "--stream", WEB, "--lake", str(lake), *hours])
    with pytest.raises(SystemExit) as refused:
        ingest.main()
    said = str(refused.value)
    assert said.startswith(f"ingest: lake: {lake}/web/hours cannot be opened or created: ")
    assert "Not a directory" in said
    assert "\n" not in said


def test_the_lake_is_named_by_the_argument_or_the_environment(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--stream", str(WEB), "--from", "2015-05-17T10:00", "--to", "2015-05-17T11:00"]
    monkeypatch.setenv("TRANSOM_LAKE", "there")
    assert job.arg_parser("a job").parse_args(arguments).lake == "there"
    assert job.arg_parser("a job").parse_args([*arguments, "--lake", "here"]).lake == "here"
    monkeypatch.delenv("TRANSOM_LAKE")
    with pytest.raises(SystemExit):
        job.arg_parser("a job").parse_args(arguments)
    assert "--lake" in capsys.readouterr().err


TEN = datetime(2015, 5, 17, 10, tzinfo=UTC)


def test_a_job_ends_with_what_its_gate_says(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ledger = Ledger(str(tmp_path / "web"))
    bad, good = (Node("ingest", "events", "events", TEN + timedelta(hours=n)) for n in (0, 1))
    ledger.claim("ingest", [bad, good], "a")
    entries = {
        bad: Entry("quarantined", "a", False, cause="rejected_share 0.5"),
        good: Entry("published", "a"),
    }
    ledger.publish("ingest", entries, "a")
    for name in ("session", "preload", "perform"):
        monkeypatch.setattr(job, name, Mock())
    hours = ["--from", "2015-05-17T10:00", "--to", "2015-05-17T12:00"]
    job.run(
        "ingest",
        job.arg_parser("a job").parse_args(["--stream", WEB, "--lake", str(tmp_path), *hours]),
        Mock(),
    )
    said = capsys.readouterr().out
    assert "quarantined: ingest events, 2015-05-17T10:00: rejected_share 0.5\n" in said
    settings = '--properties-file "$TRANSOM_SPARK_PROPERTIES"'
    again = f"spark-submit {settings} jobs/ingest.py --stream {WEB} --lake {tmp_path}"
    assert f"  {again} --from 2015-05-17T10:00 --to 2015-05-17T11:00\n" in said
    assert said.endswith("2015-05-17T12:00): 1 of 2 hours published, 0 warnings\n")


def test_a_run_in_chunks_counts_its_work_and_says_what_stands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chunks = iter([{"files_waiting": 2, "files_listed": 9}, {"files_waiting": 1, "files_listed": 9}])

    def work(context: job.Context) -> Outcome:
        left: dict[Node, Entry | None] = {Node("ingest", "events", "events", TEN): None}
        return Outcome(rows_out=5, work={"lines_rejected": 3}, standing=next(chunks), stale=left)

    days = Interval(TEN, TEN + timedelta(days=8))
    job.perform(Mock(), "ingest", load(WEB), days, work, lake=str(tmp_path))
    assert capsys.readouterr().out.endswith("; 10 rows, 6 lines rejected, 1 files waiting\n")
    [run] = Ledger(str(tmp_path / "web")).runs()
    assert '"files_listed": 9, "files_waiting": 1, "lines_rejected": 6' in run["work"]
    assert run["stale_since"] == TEN
    (told,) = findings(str(tmp_path / "web"))
    assert (told.kind, told.start) == ("stale", TEN)
