"""The order of stages in one application. Each stage is a function of the tests, without Spark."""

import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Barrier, BrokenBarrierError, Timer
from time import monotonic, sleep
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support.every_stage import EVERY_STAGE
from transom.app import pipeline
from transom.app.pipeline import run_stages
from transom.app.verify import DamagedInputsError
from transom.core.intervals import Interval, parse
from transom.core.partitions import PartitionKey, PartitionState
from transom.engine.gate import GateResult
from transom.engine.verification import Verification
from transom.ledger.damage import Damage
from transom.ledger.freshness import EVENTS
from transom.ledger.ledger import Ledger
from transom.storage.session import REQUIRED
from transom.storage.session_on_demand import AnySession, SessionOnDemand, session_of
from transom.stream import Stream, load

HOUR = Interval.of_hour(parse("2015-05-17T10:00"))
PASSED = GateResult((), (), "passes")
GONE = Damage("ingest", "events", None, (HOUR.start,), "missing", "part-0", "is not there")
StageFunction = Callable[[str, AnySession], GateResult]


@pytest.fixture
def stream(tmp_path: Path) -> Stream:
    """A stream with all stages; frames read aggregates, and fills read frames."""
    (tmp_path / "web.yaml").write_text(EVERY_STAGE)
    return load(tmp_path / "web.yaml")


@pytest.fixture
def run(stream: Stream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[GateResult]]:
    """A function that runs stages, by default all, each as a function of its name and session."""

    def run_all(
        stage_function: StageFunction,
        spark: AnySession | None = None,
        damage: Verification | None = None,
        stages: Sequence[str] | None = None,
    ) -> list[GateResult]:
        def one(session: AnySession, ledger: object, stage: str, *_: object, **__: object) -> GateResult:
            return stage_function(stage, session)

        monkeypatch.setattr(pipeline, "_run_and_judge", one)
        monkeypatch.setattr(pipeline, "explain_failure", lambda *_: damage)
        session = SessionOnDemand(_no_session) if spark is None else spark
        return run_stages(session, stream, HOUR, lake=str(tmp_path), command="again", stages=stages)

    return run_all


def _no_session() -> Any:
    raise AssertionError("a session was created")


def test_a_stage_runs_after_its_upstream_stage(run: Callable[..., Any], stream: Stream) -> None:
    done: list[str] = []

    def stage(name: str, session: AnySession) -> GateResult:
        upstream = stream.upstream_stage(name)
        assert upstream is None or upstream in done
        sleep(0.05)
        done.append(name)
        return GateResult((), (), name)

    assert [result.summary for result in run(stage)] == list(stream.stages)
    assert sorted(done) == sorted(stream.stages)


def test_two_stages_of_the_same_input_run_at_once_in_different_sessions(run: Callable[..., Any]) -> None:
    meeting, sessions = Barrier(2, timeout=60), dict[str, int]()

    def stage(name: str, session: AnySession) -> GateResult:
        sessions[name] = id(session)
        if name in ("patterns", "aggregates"):
            meeting.wait()
        return PASSED

    run(stage)
    assert sessions["patterns"] != sessions["aggregates"]
    assert len(set(sessions.values())) == 2


def test_stages_that_run_alone_run_in_the_first_session(run: Callable[..., Any]) -> None:
    """A second one would be created for nothing: on a server, with Python workers of its own."""
    first, sessions = SessionOnDemand(_no_session), list[AnySession]()

    def stage(name: str, session: AnySession) -> GateResult:
        sessions.append(session)
        return PASSED

    run(stage, first, stages=["ingest", "aggregates", "frames", "fills"])
    assert sessions == [first] * 4


def test_no_more_than_two_stages_run_at_once(run: Callable[..., Any]) -> None:
    meeting = Barrier(3, timeout=0.5)

    def stage(name: str, session: AnySession) -> GateResult:
        with pytest.raises(BrokenBarrierError):
            meeting.wait()
        return PASSED

    run(stage)


def test_where_one_stage_runs_at_once_they_run_in_their_order(
    run: Callable[..., Any], stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "AT_ONCE", 1)
    started, sessions = list[str](), set[int]()

    def stage(name: str, session: AnySession) -> GateResult:
        started.append(name)
        sessions.add(id(session))
        return PASSED

    run(stage)
    assert started == list(stream.stages)
    assert len(sessions) == 1


@pytest.mark.parametrize("second", [None, _no_session], ids=["one session", "two sessions"])
def test_on_a_spark_server_a_stage_runs_in_each_session_that_the_job_has(
    run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, second: Callable[[], Any] | None
) -> None:
    monkeypatch.setenv("SPARK_REMOTE", "sc://127.0.0.1:1")
    meeting, sessions = Barrier(1 if second is None else 2, timeout=60), dict[str, int]()

    def stage(name: str, session: AnySession) -> GateResult:
        sessions[name] = id(session)
        if name in ("patterns", "aggregates"):
            meeting.wait()
        return PASSED

    run(stage, SessionOnDemand(_no_session, second))
    assert len(set(sessions.values())) == meeting.parties


def test_after_a_failed_gate_the_stages_downstream_do_not_run(
    run: Callable[..., Any], stream: Stream, caplog: pytest.LogCaptureFixture
) -> None:
    started: list[str] = []

    def stage(name: str, session: AnySession) -> GateResult:
        started.append(name)
        return GateResult(("withheld",), (), name) if name == "aggregates" else PASSED

    results = run(stage)
    assert sorted(started) == sorted(set(stream.stages) - {"frames", "fills"})
    assert sum(not result.passed for result in results) == 1
    assert "not run, as the gate of aggregates does not pass: frames, fills" in caplog.text


def test_damage_closes_the_stages_downstream_alone(run: Callable[..., Any], stream: Stream) -> None:
    started: list[str] = []

    def stage(name: str, session: AnySession) -> GateResult:
        started.append(name)
        if name in ("aggregates", "patterns"):
            raise DamagedInputsError(f"{name} is damaged")
        return PASSED

    with pytest.raises(DamagedInputsError, match="patterns is damaged\naggregates is damaged"):
        run(stage)
    assert sorted(started) == sorted(set(stream.stages) - {"frames", "fills"})


@pytest.mark.parametrize("at_once", [True, False])
def test_each_stage_that_found_the_same_damage_runs_once_more(
    run: Callable[..., Any], stream: Stream, tmp_path: Path, at_once: bool
) -> None:
    """Both have read the damaged hour; one of them marks it, perhaps before the other has failed."""
    ledger, events = Ledger(f"{tmp_path}/{stream.name}"), PartitionKey(*EVENTS, HOUR.start)
    ledger.claim("ingest", [events], "one")
    ledger.publish("ingest", {events: PartitionState("published", "one")}, "one")
    meeting, started = Barrier(2, timeout=60), list[str]()

    def stage(name: str, session: AnySession) -> GateResult:
        started.append(name)
        if name in ("patterns", "aggregates") and started.count(name) == 1:
            meeting.wait()
            while not at_once and name == "aggregates" and not ledger.snapshot()[events].damaged:
                sleep(0.01)
            raise FileNotFoundError(name)
        return PASSED

    run(stage, damage=Verification([GONE], {events: "is not there"}))
    assert sorted(started) == sorted([*stream.stages, "aggregates", "patterns"])
    assert ledger.snapshot()[events].damaged


def test_damage_that_is_already_marked_is_an_error(
    run: Callable[..., Any], stream: Stream, tmp_path: Path
) -> None:
    started = list[str]()

    def stage(name: str, session: AnySession) -> GateResult:
        started.append(name)
        if name == "patterns":
            raise FileNotFoundError(name)
        return PASSED

    with pytest.raises(DamagedInputsError):
        run(stage, damage=Verification([GONE]))
    assert started.count("patterns") == 1


def test_after_an_error_no_further_stage_begins_and_each_error_is_reported(
    run: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    """One is raised, and the other one is in the log."""
    started: list[str] = []
    meeting = Barrier(2, timeout=60)

    def stage(name: str, session: AnySession) -> GateResult:
        started.append(name)
        if name in ("patterns", "aggregates"):
            meeting.wait()
            raise ValueError(name)
        return PASSED

    with pytest.raises(ValueError, match=r"patterns|aggregates") as raised:
        run(stage)
    assert sorted(started) == ["aggregates", "ingest", "patterns"]
    (note,) = raised.value.__notes__
    assert f"in stage {raised.value}" in note
    (record,) = [record for record in caplog.records if record.levelname == "ERROR"]
    other = {"patterns", "aggregates"} - {str(raised.value)}
    assert record.getMessage() == f"{other.pop()} of web failed, too"
    assert f"ValueError: {record.getMessage().split()[0]}" in caplog.text


def test_interrupt_cancels_the_jobs_of_running_stages_and_ends_soon(
    run: Callable[..., Any], spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    """Also a job that a stage begins after its first one was cancelled."""
    cancelled: list[str] = []

    def stage(name: str, session: AnySession) -> GateResult:
        if name == "ingest":
            return PASSED
        for _ in range(2):
            interrupt = Timer(1, os.kill, (os.getpid(), signal.SIGINT))
            if name == "patterns" and not cancelled:
                interrupt.start()
            # It takes hours.
            with pytest.raises(Exception, match="cancelled"):
                session_of(session).range(0, 10**13, 1, 1).selectExpr("sum(id % 7)").collect()
            cancelled.append(name)
        raise ValueError("cancelled")

    start = monotonic()
    with pytest.raises(KeyboardInterrupt):
        run(stage, spark)
    assert monotonic() - start < 60
    assert sorted(cancelled) == ["aggregates", "aggregates", "patterns", "patterns"]
    assert "interrupted: the Spark jobs of the running stages are cancelled" in caplog.text
    # Nothing else of the session is changed.
    assert spark.range(3).count() == 3


def test_interrupt_without_a_session_ends_after_the_running_stages(run: Callable[..., Any]) -> None:
    def stage(name: str, session: AnySession) -> GateResult:
        os.kill(os.getpid(), signal.SIGINT)
        sleep(0.1)
        return PASSED

    with pytest.raises(KeyboardInterrupt):
        run(stage)


def test_the_second_session_has_the_required_settings_and_others_of_its_own(
    run: Callable[..., Any], spark: SparkSession
) -> None:
    sessions: dict[int, SparkSession] = {}

    def stage(name: str, session: AnySession) -> GateResult:
        sessions[id(session)] = session_of(session)
        return PASSED

    run(stage, spark)
    first, second = sessions.values()
    names = [name for name in REQUIRED if name != "spark.sql.extensions"]
    assert {name: second.conf.get(name) for name in names} == {name: REQUIRED[name] for name in names}
    second.conf.set("spark.sql.shuffle.partitions", "3")
    assert first.conf.get("spark.sql.shuffle.partitions") != "3"
