"""The task `notify`: what a notifier of Airflow gets, and what happens if it fails."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from deltalake import write_deltalake

from tests.dags.dag_runs import execute
from tests.support.alert_lake import AlertLake
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
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    lake = AlertLake(str(tmp_path / "web"))
    lake.landing = {"b": (1, 12), "d": (3, 12), "e": (4, 1)}
    lake.run(range(5))
    first, second = lake.findings()
    rows = store.to_arrow([replace(first, title=HOSTILE, key=HOSTILE), second])
    write_deltalake(lake.ledger.open("findings"), rows, mode="overwrite")
    return lake


def notify(folder: Path, **recipients: Any) -> Any:
    """Execute the task of a stream with some recipients."""
    from stream_dag import build
    from transom.stream import load

    file = folder / "web.yaml"
    file.write_text(yaml.safe_dump({**STREAM, "notify": recipients}, sort_keys=False))
    dag = build(load(file), file)
    context = {"run_id": "r", "dag": dag, "params": {}}
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
    assert "bad: a message was not sent: ConnectionError: refused by \\x1b[31mthe receiver" in caplog.messages
    assert notify(tmp_path, bad=bad, good=good)[-1] == "bad: 2 pending"
    # A template with an error is an error of the notifier.
    wrong = {**good, "arguments": {"text": "{{ transom.unknown.part }}", "path": str(out)}}
    assert notify(tmp_path, bad=wrong)[1] == "bad: 2 pending"
    assert len(lines(out)) == 2
    assert notify(tmp_path, bad=good)[1] == "bad: 2 sent"
    assert len(lines(out)) == 4
    assert {row.status for row in deliveries(lake.ledger)} == {"sent"}


def test_notifier_that_does_not_answer_does_not_keep_messages_from_others(
    lake: AlertLake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit of the task's time ends it; its next try, or the next run, begins with the others."""
    from airflow.sdk.exceptions import AirflowTaskTimeout

    from tests.support import file_notifier

    def hang(*of: Any) -> None:
        raise AirflowTaskTimeout

    monkeypatch.setattr(file_notifier.RefusingNotifier, "notify", hang)
    out = tmp_path / "out"
    recipients = {
        "bad": {"notifier": f"{NOTIFIERS}.RefusingNotifier"},
        "good": {"notifier": f"{NOTIFIERS}.FileNotifier", "arguments": {"text": "x", "path": str(out)}},
    }
    for expected in ([], ["x", "x"], ["x", "x"]):
        with pytest.raises(AirflowTaskTimeout):
            notify(tmp_path, **recipients)
        assert lines(out) == expected


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
