"""The schedule of a stream that has ended, as Airflow's scheduler reads it."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from airflow.serialization.serialized_objects import DagSerialization
from airflow.timetables.base import DagRunInfo
from pendulum import instance

from tests.dags.dag_runs import web_dag

END = datetime(2015, 5, 21, tzinfo=UTC)


def scheduled(**changes: object) -> Any:
    """Return the DAG of `web` as the scheduler reads it from the database."""
    return DagSerialization.from_dict(DagSerialization.to_dict(web_dag(schedule=True, **changes)))


def test_tasks_of_a_stream_that_has_ended_exist_in_a_run_of_today() -> None:
    """Airflow leaves out tasks whose `end_date` is before the logical date, which the form fills in."""
    dag = scheduled(until=END)
    assert [task.task_id for task in dag.tasks if task.end_date is not None] == []


@pytest.mark.parametrize(("hours_before", "follows"), [(2, True), (1, True), (0, False)])
def test_schedule_goes_to_the_last_hour_before_the_end(hours_before: int, follows: bool) -> None:
    dag = scheduled(until=END, catchup=True)
    last = END - timedelta(hours=hours_before)
    info = dag.next_dagrun_info(
        last_automated_run_info=DagRunInfo.interval(instance(last - timedelta(hours=1)), instance(last))
    )
    assert (info is not None) == follows
    assert info is None or info.data_interval.start == last


def test_stream_that_has_ended_and_catches_up_on_nothing_has_no_next_run() -> None:
    assert scheduled(until=END, catchup=False).next_dagrun_info(last_automated_run_info=None) is None
