"""The error line of a job: for arguments rejected before Spark starts, and for failures later."""

import argparse
import atexit
import gc
import importlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from pyspark.errors import PythonException

import ingest
from transom.app import main as application
from transom.app import pipeline as together
from transom.app import run_stage as job
from transom.app.command_lines import submit
from transom.core.intervals import Interval
from transom.core.partitions import PartitionKey, PartitionState
from transom.engine.run_outcome import Outcome
from transom.features.registry import OUTLETS
from transom.findings.store import findings
from transom.ledger.ledger import Ledger
from transom.storage.fencing import RunSuperseded
from transom.storage.tables import LakeError
from transom.stream import load

ROOT = Path(__file__).resolve().parents[2]
WEB = str(ROOT / "schemas/streams/web.yaml")


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    """A job changes Python's collector for the rest of its process, which here is that of all tests."""
    thresholds = gc.get_threshold()
    yield
    gc.set_threshold(*thresholds)
    atexit.unregister(gc.freeze)


@pytest.mark.parametrize(
    ("stream", "start", "end", "texts"),
    [
        (WEB, "2015-05-17T12:00", "2015-05-17T10:00", "ingest: from: must be before to"),
        (WEB, "2015-05-17T10:30", "2015-05-17T12:00", "ingest: from: must be on the hour.*10:30"),
        (WEB, "yesterday", "2015-05-17T12:00", "ingest: from: must be a time.*'yesterday'"),
        ("nowhere.yaml", "2015-05-17T10:00", "2015-05-17T12:00", "ingest: .*nowhere.yaml"),
    ],
)
def test_wrong_arguments_are_refused(
    monkeypatch: pytest.MonkeyPatch, stream: str, start: str, end: str, texts: str
) -> None:
    def no_session(name: str) -> None:
        raise AssertionError("a session was started")

    monkeypatch.setattr(application, "session", no_session)
    parser: argparse.ArgumentParser = application.arg_parser("a job")
    arguments = parser.parse_args(["--stream", stream, "--lake", "x", "--from", start, "--to", end])
    with pytest.raises(SystemExit, match=texts) as refused:
        application.run("ingest", arguments, ["ingest"])
    assert "\n" not in str(refused.value)


RAISED_IN_A_WORKER = """\
An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "jobs/transom/features/aggregates/stage.py", line 228, in run
    raise ValueError("column n: must be a number;\\ngot 'x'")
ValueError: column n: must be a number;
got 'x'
"""


@pytest.mark.parametrize(
    ("error", "texts"),
    [
        (PythonException(RAISED_IN_A_WORKER), "PythonException: ValueError: column n: must be a number;"),
        (RuntimeError("[DIVIDE_BY_ZERO] Division by zero.\nat line 1"), "RuntimeError: [DIVIDE_BY_ZERO] "),
        (MemoryError(), "MemoryError: "),
    ],
)
def test_cause_of_a_stopped_run_is_printed_first(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    error: Exception,
    texts: str,
) -> None:
    monkeypatch.setattr(application, "session", Mock())
    monkeypatch.setattr(application, "preload", Mock())
    monkeypatch.setattr(together, "run_stage", Mock(side_effect=error))
    hours = ["--from", "2015-05-17T10:00", "--to", "2015-05-17T12:00"]
    arguments = application.arg_parser("a job").parse_args(["--stream", WEB, "--lake", str(tmp_path), *hours])
    with pytest.raises(type(error)):
        application.run("run", arguments)
    text = capsys.readouterr().err.splitlines()[0]
    assert text.startswith(f"run: failed: {texts}")
    assert text.endswith(" (in stage ingest of web, [2015-05-17T10:00, 2015-05-17T12:00))")


def test_unwritable_lake_is_reported_in_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(application, "session", Mock())
    monkeypatch.setattr(application, "preload", Mock())
    lake = tmp_path / "file" / "lake"
    lake.parent.write_text("no folder")
    hours = ["--from", "2015-05-17T10:00", "--to", "2015-05-17T12:00"]
    monkeypatch.setattr("sys.argv", ["ingest.py", "--stream", WEB, "--lake", str(lake), *hours])
    with pytest.raises(SystemExit) as refused:
        ingest.JOB.main()
    text = str(refused.value)
    assert text.startswith(f"ingest: lake: {lake}/web/ledger cannot be opened or created: ")
    assert "Not a directory" in text
    assert "\n" not in text


@pytest.mark.parametrize("requested", [["aggregates"], ["run", "--stages", "aggregates"]])
def test_required_earlier_stage_is_reported_before_spark_starts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, requested: list[str]
) -> None:
    monkeypatch.setattr(application, "session", Mock(side_effect=AssertionError("a session was started")))
    arguments = ["--stream", WEB, "--lake", str(tmp_path / "lake"), *HOURS, *requested[1:]]
    monkeypatch.setattr("sys.argv", [f"{requested[0]}.py", *arguments])
    with pytest.raises(SystemExit) as refused:
        importlib.import_module(requested[0]).JOB.main()
    root = f"{tmp_path}/lake/web"
    texts = (
        f"lake: aggregates reads the table events, and ingest of web has never run in {root}; run "
        "jobs/ingest.py over the interval first, or jobs/run.py, which runs them all"
    )
    assert str(refused.value) == f"{requested[0]}: {texts}"
    with pytest.raises(LakeError) as again:
        job.run_stage(Mock(), "aggregates", load(WEB), TWO_HOURS, lake=str(tmp_path / "lake"))
    assert str(again.value) == texts
    assert not (tmp_path / "lake").exists()


def test_lake_is_given_by_argument_or_environment(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--stream", str(WEB), "--from", "2015-05-17T10:00", "--to", "2015-05-17T11:00"]
    monkeypatch.setenv("TRANSOM_LAKE", "there")
    assert application.arg_parser("a job").parse_args(arguments).lake == "there"
    assert application.arg_parser("a job").parse_args([*arguments, "--lake", "here"]).lake == "here"
    monkeypatch.delenv("TRANSOM_LAKE")
    with pytest.raises(SystemExit):
        application.arg_parser("a job").parse_args(arguments)
    assert "--lake" in capsys.readouterr().err


TEN = datetime(2015, 5, 17, 10, tzinfo=UTC)
TWO_HOURS = Interval(TEN, TEN + timedelta(hours=2))
HOURS = ["--from", "2015-05-17T10:00", "--to", "2015-05-17T12:00"]


def performed(
    monkeypatch: pytest.MonkeyPatch, quarantined: tuple[str, datetime] | None
) -> list[tuple[str, str]]:
    """Let stages publish the two hours, of which one may be quarantined; return stage and run id of
    each run.
    """
    ran = []

    def perform(
        spark: Any,
        stage: str,
        stream: Any,
        interval: Interval,
        *,
        lake: str,
        run_id: str,
        **how: Any,
    ) -> None:
        ran.append((stage, run_id))
        ledger = Ledger(f"{lake}/{stream.name}")
        nodes = [
            PartitionKey(stage, "b", "events" if stage == "ingest" else OUTLETS[stage][0], hour)
            for hour in interval.hours()
        ]
        entries = {
            node: PartitionState("quarantined", run_id, False, reason="rejected_share 0.5")
            if (stage, node.hour) == quarantined
            else PartitionState("published", run_id)
            for node in nodes
        }
        ledger.claim(stage, nodes, run_id)
        ledger.publish(stage, entries, run_id)

    monkeypatch.setattr(together, "run_stage", perform)
    # These partitions belong to no block of the stream.
    monkeypatch.setattr(together, "stale_hours", lambda *of: {})
    for name in ("session", "preload"):
        monkeypatch.setattr(application, name, Mock())
    return ran


REPORTS = {"aggregates": 2, "frames": 2, "fills": 2}
SKETCHES = {"persistence": 2, "frequency": 2}
STAGES_BEHIND_GATES = [
    (["run"], None, {"ingest": 2, "patterns": 2, **REPORTS, **SKETCHES}),
    (["run"], ("ingest", TEN), {"ingest": 1}),
    # Neither reads the rows that the other publishes.
    (
        ["run"],
        ("patterns", TEN),
        {"ingest": 2, "patterns": 1, "aggregates": 2, "frames": 2, "fills": 2, **SKETCHES},
    ),
    (["run"], ("aggregates", TEN), {"ingest": 2, "patterns": 2, "aggregates": 1, **SKETCHES}),
    (["run"], ("frames", TEN), {"ingest": 2, "patterns": 2, "aggregates": 2, "frames": 1, **SKETCHES}),
    (["run", "--stages", "aggregates,ingest"], None, {"ingest": 2, "aggregates": 2}),
    (["run", "--stages", "ingest"], ("ingest", TEN), {"ingest": 1}),
    (["ingest"], ("ingest", TEN), {"ingest": 1}),
]
"""A job, the quarantined hour, and the good hours that each of its runs leaves."""


@pytest.mark.parametrize(("job", "quarantined", "runs"), STAGES_BEHIND_GATES)
def test_job_prints_each_gate_and_runs_no_stage_after_a_failed_one(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    job: list[str],
    quarantined: tuple[str, datetime] | None,
    runs: dict[str, int],
) -> None:
    ran = performed(monkeypatch, quarantined)
    arguments = ["--stream", WEB, "--lake", str(tmp_path), *HOURS, "--run-id", "r", *job[1:]]
    monkeypatch.setattr("sys.argv", [f"{job[0]}.py", *arguments])
    importlib.import_module(job[0]).JOB.main()
    alone = job[0] == "ingest" or job[1:] == ["--stages", "ingest"]
    # Stages that do not need each other run at once, in either order.
    assert sorted(ran) == sorted((stage, "r" if alone else f"r {stage}") for stage in runs)
    again = submit(job[0], WEB, str(tmp_path)).partition(" --from")[0]
    assert f"/jobs/{job[0]}.py --stream {WEB} --lake {tmp_path}" in again
    printed = capsys.readouterr().out
    expected = []
    for stage, hours in runs.items():
        if (stage, TEN) == quarantined:
            paragraph = [
                f"quarantined: {stage} b, 2015-05-17T10:00: rejected_share 0.5",
                "  what was published before stays; fix the data (or accept the value), then:",
                f"  {again} --from 2015-05-17T10:00 --to 2015-05-17T11:00",
            ]
            assert "\n".join(paragraph) in printed
            expected += paragraph
        expected.append(f"{stage} web {TWO_HOURS}: {hours} of 2 hours published, 0 warnings")
    later = {
        "ingest": "patterns, aggregates, frames, fills, persistence, frequency",
        "aggregates": "frames, fills",
        "frames": "fills",
    }
    if quarantined and quarantined[0] in later and not alone:
        expected.append(f"not run, as the gate of {quarantined[0]} does not pass: {later[quarantined[0]]}")
        assert printed.splitlines()[-1] == expected[-1]
    assert sorted(printed.splitlines()) == sorted(expected)


@pytest.mark.parametrize(
    ("stages", "texts"),
    [
        ("ingest,agregates", "got 'agregates'; nearest: aggregates"),
        ("", "got ''; known: ingest, patterns, aggregates, frames, fills, persistence, frequency"),
    ],
)
def test_unknown_stages_are_refused(monkeypatch: pytest.MonkeyPatch, stages: str, texts: str) -> None:
    ran = performed(monkeypatch, None)
    monkeypatch.setattr("sys.argv", ["run.py", "--stream", WEB, "--lake", "x", *HOURS, "--stages", stages])
    with pytest.raises(SystemExit) as refused:
        importlib.import_module("run").JOB.main()
    assert str(refused.value) == f"run: stages: must be stages of web, with commas between them; {texts}"
    assert ran == []


def test_job_without_its_stage_in_the_stream_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ran = performed(monkeypatch, None)
    file = tmp_path / "bare.yaml"
    file.write_text("name: bare\npreset: apache/combined\nsource: {path: landing/x.log}\n")
    arguments = application.arg_parser("a job").parse_args(["--stream", str(file), "--lake", "x", *HOURS])
    with pytest.raises(SystemExit, match=r"aggregates: stages: must be stages of bare, .*; known: ingest"):
        application.run("aggregates", arguments, ["aggregates"])
    assert ran == []


def test_run_in_chunks_sums_its_work_and_reports_published_hours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "transom")
    steps: list[str] = []
    monkeypatch.setattr(job, "compact", lambda ledger, stage: steps.append(f"{stage} tidied"))
    chunks = iter([{"files_waiting": 2, "files_listed": 9}, {"files_waiting": 1, "files_listed": 9}])

    # A later chunk may have published hours that a chunk leaves stale.
    hours = iter([TEN - timedelta(days=9), TEN])

    def work(stage: str, context: job.Context) -> Outcome:
        steps.append(context.run_id)
        remaining: dict[PartitionKey, PartitionState | None] = {
            PartitionKey("ingest", "events", "events", next(hours)): None
        }
        counts = {"published": 4, "incomplete": 1, "quarantined": 2, "partitions_repaired": 1}
        return Outcome(
            rows_out=5, **counts, counters={"lines_rejected": 3}, gauges=next(chunks), stale=remaining
        )

    days = Interval(TEN, TEN + timedelta(days=8))
    monkeypatch.setattr(job, "run_chunk", work)
    job.run_stage(Mock(), "ingest", load(WEB), days, lake=str(tmp_path))
    assert caplog.messages == [
        f"ingest web {days}: 8 partitions published (2 incomplete), 4 quarantined, 0 blocked, of which 2 "
        "outside the interval; 10 rows written, 6 lines rejected, 1 file waiting"
    ]
    [run] = Ledger(str(tmp_path / "web")).runs()
    assert run["counters"] == {"files_listed": 9, "files_waiting": 1, "lines_rejected": 6}
    # Chunks have run ids of their own, and their results are combined.
    assert steps == [f"{run['run_id']} 0", "ingest tidied", f"{run['run_id']} 1", "ingest tidied"]
    assert run["stale_since"] == TEN
    (reported,) = findings(str(tmp_path / "web"))
    assert (reported.kind, reported.start_time) == ("stale", TEN)


def test_concurrent_runs_with_one_name_keep_their_results_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A retry begins while the first attempt is still working."""
    node = PartitionKey("ingest", "events", "events", TEN)

    def tries(times: int) -> None:
        def work(stage: str, context: job.Context) -> Outcome:
            context.ledger.claim("ingest", [node], context.run_id)
            if times > 1:
                tries(times - 1)
            context.ledger.publish(
                "ingest", {node: PartitionState("published", context.run_id)}, context.run_id
            )
            return Outcome()

        monkeypatch.setattr(job, "run_chunk", work)
        job.run_stage(Mock(), "ingest", load(WEB), TWO_HOURS, lake=str(tmp_path), run_id="daily 1")

    with pytest.raises(
        RunSuperseded, match=r"run daily 1 [0-9a-f]+ was superseded by run daily 1 [0-9a-f]+ "
    ):
        tries(2)
    ledger = Ledger(str(tmp_path / "web"))
    [run] = ledger.runs()
    assert run["run_id"].startswith("daily 1 ")
    assert ledger.snapshot() == {node: PartitionState("published", run["run_id"])}
