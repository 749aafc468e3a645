"""The task `notify`: what a notifier of Airflow gets, and what happens if it fails."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event
from time import monotonic
from typing import Any

import pytest
import yaml
from deltalake import write_deltalake

from tests.dags.dag_runs import execute, run_of, web_dag
from tests.support.alert_lake import AlertLake
from tests.support.ledger_factories import at
from transom.alerts.store import deliveries
from transom.findings import store

# With the DAGs imported before: Airflow removes the existing log handlers on import.
pytestmark = pytest.mark.usefixtures("dags")

STREAM = {
    "name": "web",
    "preset": "apache/combined",
    "source": {"path": "landing/%Y-%m-%d/access.%H*.log"},
    "key": ["client"],
}
NOTIFIERS = "tests.support.file_notifier"
HOSTILE = '{{ 7 * 7 }} {% for x in y %} <script>"\u202e\x1b[31m=cmd()'


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AlertLake:
    """Return the lake of the stream `web`, with two findings of different keys; texts of one are hostile."""
    monkeypatch.setenv("TRANSOM_LAKE", str(tmp_path))
    lake = AlertLake(str(tmp_path / "web"))
    lake.landing = {"b": (1, 12), "d": (3, 12), "e": (4, 1)}
    lake.run(range(5))
    first, second = lake.findings()
    rows = store.to_arrow([replace(first, title=HOSTILE, key=HOSTILE), second])
    write_deltalake(lake.ledger.open("findings"), rows, mode="overwrite")
    return lake


class Task:
    """A task instance: its XComs, and the numbers of other runs that Airflow's API returns."""

    def __init__(self, waiting: int = 0, created: int = 0) -> None:
        self.waiting, self.created = waiting, created
        self.notes: dict[str, Any] = {}
        self.dates: list[datetime] = []

    def xcom_push(self, key: str, value: Any) -> None:
        self.notes[key] = value

    def get_ti_count(self, dag_id: str, task_ids: list[str], states: list[str]) -> int:
        assert (dag_id, task_ids) == ("web", ["notify"])
        assert "running" not in states
        return self.waiting

    def get_dr_count(self, dag_id: str, logical_dates: list[datetime]) -> int:
        self.dates += logical_dates
        return self.created


def notify(folder: Path, task: Task | None = None, **recipients: Any) -> Any:
    """Execute the task of a stream with some recipients."""
    from stream_dag import build
    from transom.stream import load

    file = folder / "web.yaml"
    file.write_text(yaml.safe_dump({**STREAM, "notify": recipients}, sort_keys=False))
    dag = build(load(file), file)
    run = run_of(at(0), at(5))
    context = {"run_id": "r", "dag": dag, "params": {}, "ti": task or Task(), "dag_run": run}
    return execute(dag.get_task("notify"), context)


def lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_notifier_gets_each_message_once_with_texts_of_logs_as_they_are(
    lake: AlertLake, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    recipient = {
        "notifier": f"{NOTIFIERS}.FileNotifier",
        "arguments": {"text": "{{ transom.state }} {{ transom.title }} {{ transom.html }}", "path": str(out)},
    }
    assert notify(tmp_path, ops=recipient) == ["page: 2 sent", "ops: 2 sent"]
    assert notify(tmp_path, ops=recipient) == ["page: nothing due", "ops: nothing due"]
    other, text = sorted(lines(out), key=lambda line: "script" in line)
    assert other.startswith("raised raised: low episode: web: busy of 10.0.0.1")
    plain = '{{ 7 * 7 }} {% for x in y %} <script>"\\u202e\\x1b[31m=cmd()'
    assert text.startswith(f"raised raised: low episode: {plain}")
    assert "&lt;script&gt;" in text


def test_message_as_json_has_all_values(lake: AlertLake, tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = {"text": "{{ transom | tojson }}", "path": str(out)}
    notify(tmp_path, ops={"notifier": f"{NOTIFIERS}.FileNotifier", "arguments": arguments})
    message = next(json.loads(line) for line in lines(out) if "script" in line)
    assert message["number"] == 1
    assert message["findings"][0]["start_time"] == "2015-05-17T01:00:00+00:00"


def test_notifier_that_raises_is_reported_and_the_others_get_their_messages(
    lake: AlertLake, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    out = tmp_path / "out"
    good = {
        "notifier": f"{NOTIFIERS}.FileNotifier",
        "arguments": {"text": "{{ transom.title }}", "path": str(out)},
    }
    bad = {"notifier": f"{NOTIFIERS}.RefusingNotifier"}
    assert notify(tmp_path, bad=bad, good=good) == ["page: 2 sent", "bad: 2 pending", "good: 2 sent"]
    # Each is tried once, and once more.
    refused = "bad: a message was not sent: ConnectionError: refused by \\x1b[31mthe receiver"
    assert caplog.messages.count(refused) == 4
    assert notify(tmp_path, bad=bad, good=good)[-1] == "bad: 2 pending"
    # A template with an error is an error of the notifier.
    wrong = {**good, "arguments": {"text": "{{ transom.unknown.part }}", "path": str(out)}}
    assert notify(tmp_path, bad=wrong)[1] == "bad: 2 pending"
    assert len(lines(out)) == 2
    assert notify(tmp_path, bad=good)[1] == "bad: 2 sent"
    assert len(lines(out)) == 4
    assert {row.status for row in deliveries(lake.ledger)} == {"sent"}


@pytest.mark.full
def test_notifier_that_does_not_answer_costs_its_limit_and_fails_nothing(
    lake: AlertLake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its messages are tried after those of the others, also in the next run."""
    from tests.support import file_notifier
    from transom.alerts import attempts

    order: list[str] = []
    answer = Event()

    def hang(*of: Any) -> None:
        order.append("bad")
        answer.wait()

    add = file_notifier.FileNotifier.notify
    monkeypatch.setattr(file_notifier.RefusingNotifier, "notify", hang)
    monkeypatch.setattr(file_notifier.FileNotifier, "notify", lambda *of: order.append("good") or add(*of))
    monkeypatch.setattr(attempts.Attempts.__init__, "__defaults__", (timedelta(seconds=4),))
    recipients = {
        "bad": {"notifier": f"{NOTIFIERS}.RefusingNotifier"},
        "good": {
            "notifier": f"{NOTIFIERS}.FileNotifier",
            "arguments": {"text": "x", "path": str(tmp_path / "out")},
        },
    }
    start = monotonic()
    assert notify(tmp_path, **recipients) == ["page: 2 sent", "bad: 2 pending", "good: 2 sent"]
    assert order == ["bad", "good", "good", "bad"]
    lake.landing["x"] = (2, 12)
    lake.run([2])
    order.clear()
    assert notify(tmp_path, **recipients)[1].startswith("good: ")
    assert order[0] == "good"
    assert monotonic() - start < 60
    answer.set()


@pytest.mark.parametrize(("waiting", "state"), [(0, "summary"), (3, None)])
def test_old_findings_wait_for_the_last_run_of_a_backfill(
    lake: AlertLake, tmp_path: Path, waiting: int, state: str | None
) -> None:
    out = tmp_path / "out"
    lake.landing["last"] = (100, 1)
    lake.run([100])
    arguments = {"text": "{{ transom.state }}", "path": str(out)}
    notify(tmp_path, Task(waiting), ops={"notifier": f"{NOTIFIERS}.FileNotifier", "arguments": arguments})
    assert lines(out) == ([state] if state else [])


@pytest.mark.parametrize(
    ("kind", "catchup", "hours_ago", "delay", "created", "expected"),
    [
        # The schedule creates the next run of a stream that catches up after this one.
        ("scheduled", True, 5, 0, 0, False),
        ("scheduled", True, 5, 0, 1, True),
        ("scheduled", False, 5, 0, 0, True),
        ("manual", True, 5, 0, 0, True),
        ("scheduled", True, 0, 0, 0, True),
        # Each run waits for its files until the next hour is over.
        ("scheduled", True, 3, 6, 0, True),
    ],
)
def test_run_of_a_schedule_is_the_last_one_if_the_next_hour_is_not_over(
    kind: str, catchup: bool, hours_ago: int, delay: int, created: int, expected: bool
) -> None:
    from transom_notify import is_last_run

    end = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(hours=hours_ago)
    task = Task(created=created)
    dag = web_dag(catchup=catchup, until=None)
    context = {"ti": task, "dag": dag, "dag_run": run_of(end - timedelta(hours=1), end, kind)}
    assert is_last_run(context, "notify", timedelta(hours=delay)) == expected
    assert task.dates in ([], [end])


def test_run_with_high_findings_leaves_a_note_without_texts_of_logs(lake: AlertLake, tmp_path: Path) -> None:
    task = Task()
    notify(tmp_path, task)
    assert task.notes == {}
    first, second = lake.findings()
    rows = [
        replace(first, title=HOSTILE, key=HOSTILE, severity="high"), second,
        replace(second, finding_id="b", severity="high"),
        replace(second, finding_id="c", severity="high", kind="incomplete", block=None),
    ]  # fmt: skip
    write_deltalake(lake.ledger.open("findings"), store.to_arrow(rows), mode="overwrite")
    notify(tmp_path, task)
    assert task.notes == {"transom_note": "transom: 3 high findings: 2 episode of busy, 1 incomplete"}


def test_stream_that_never_ran_has_no_messages_and_no_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRANSOM_LAKE", str(tmp_path / "lake"))
    assert notify(tmp_path) == []
    assert not (tmp_path / "lake").exists()


@pytest.mark.parametrize(
    ("path", "cause"),
    [
        ("no_such.Notifier", "which cannot be imported: ModuleNotFoundError: No module named 'no_such'"),
        (f"{NOTIFIERS}.Missing", "which cannot be imported: AttributeError"),
        ("pathlib.Path", "which is type Path"),
    ],
)
def test_path_that_is_no_notifier_fails_the_task_after_the_others(
    lake: AlertLake, tmp_path: Path, path: str, cause: str
) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    out = tmp_path / "out"
    good = {"notifier": f"{NOTIFIERS}.FileNotifier", "arguments": {"text": "x", "path": str(out)}}
    rule = f"notify.bad.notifier: must be the path of a notifier class of Airflow; got '{path}', {cause}"
    with pytest.raises(AirflowFailException) as error:
        notify(tmp_path, bad={"notifier": path}, good=good)
    assert str(error.value).startswith(rule)
    assert lines(out) == ["x", "x"]


def test_task_runs_after_failures_and_does_not_change_the_state_of_the_run(dags: dict[str, Any]) -> None:
    for dag in dags.values():
        task = dag.get_task("notify")
        assert task.is_teardown
        assert not task.on_failure_fail_dagrun
        assert task.trigger_rule == "all_done_setup_success"
