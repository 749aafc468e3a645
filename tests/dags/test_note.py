"""The note of a run with high findings, in tables of Airflow's database."""

from collections.abc import Iterator
from typing import Any

import pytest

pytestmark = pytest.mark.usefixtures("dags")

NOTE = "transom: 1 high finding: 1 episode of busy"


@pytest.fixture
def run() -> Iterator[Any]:
    """Return a run in a session of a database in memory."""
    from airflow.models import import_all_models
    from airflow.models.base import Base
    from airflow.models.dagrun import DagRun
    from sqlalchemy import create_engine
    from sqlalchemy.orm import Session

    import_all_models()
    engine = create_engine("sqlite://")
    Base.metadata.create_all(engine)
    with Session(engine) as session:
        made = DagRun(dag_id="web", run_id="r", run_type="manual")
        session.add(made)
        session.commit()
        yield made


def leave(run: Any, text: object, task: str = "notify") -> None:
    """Leave a text as the XCom of a task, as the API server does."""
    from airflow.models.xcom import XComModel
    from sqlalchemy.orm import object_session

    session = object_session(run)
    session.add(
        XComModel(
            dag_run_id=run.id, task_id=task, map_index=-1, key="transom_note", dag_id="web", run_id="r",
            value=text,
        )
    )  # fmt: skip
    session.commit()


def ended(run: Any, succeeded: bool = True) -> str | None:
    """Let the run end as the scheduler does, and return its note in the database."""
    from airflow.listeners.listener import get_listener_manager
    from sqlalchemy.orm import object_session

    from transom_note import RunNotes

    manager = get_listener_manager()
    manager.add_listener(notes := RunNotes())
    hook = manager.hook.on_dag_run_success if succeeded else manager.hook.on_dag_run_failed
    hook(dag_run=run, msg="")
    manager.pm.unregister(notes)
    session = object_session(run)
    session.commit()
    session.refresh(run)
    note: str | None = run.note
    return note


@pytest.mark.parametrize("succeeded", [True, False])
def test_text_that_a_task_left_is_the_note_of_the_run(run: Any, succeeded: bool) -> None:
    leave(run, NOTE)
    assert ended(run, succeeded) == NOTE
    assert ended(run, succeeded) == NOTE


def test_run_without_high_findings_has_no_note(run: Any) -> None:
    assert ended(run) is None
    leave(run, NOTE, task="other")
    assert ended(run) is None


@pytest.mark.parametrize("text", ["s3://backend/key", {"a": 1}, 7])
def test_other_values_are_no_note(run: Any, text: object) -> None:
    """A backend of XComs may store them elsewhere."""
    leave(run, text)
    assert ended(run) is None


def test_note_of_an_earlier_try_is_removed(run: Any) -> None:
    run.note = NOTE
    assert ended(run) is None


def test_note_of_a_person_stays(run: Any) -> None:
    run.note = "asked the vendor"
    leave(run, NOTE)
    assert ended(run) == "asked the vendor"
