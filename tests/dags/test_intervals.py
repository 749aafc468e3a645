"""The hours of a DAG's run: the form that asks for them, and the task that settles them."""

import re
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.dags.dag_runs import DAGS, execute, run_of, web_dag


@pytest.mark.parametrize(
    ("params", "texts"),
    [
        ({}, "from and to: a run by hand has no interval of its own; give both"),
        ({"from": "2015-05-17T10:00"}, "from and to: must be given together"),
        ({"from": "2015-05-17T10:30", "to": "2015-05-17T12:00"}, "from: must be on the hour"),
        ({"from": "2015-05-17T12:00", "to": "2015-05-17T10:00"}, "from: must be before to"),
        ({"from": "today", "to": "2015-05-17T10:00"}, "from: must be a time"),
        ({"from": "2015-05-17T12:00", "to": "2999-01-01T00:00"}, "to: must not lie in the future"),
    ],
)
def test_invalid_interval_is_refused_with_place_rule_and_value(params: Any, texts: str) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    from transom_operators import interval_of

    with pytest.raises(AirflowFailException, match=texts):
        interval_of(params, None, None)


@pytest.mark.parametrize("name", DAGS)
def test_form_describes_its_fields(dags: dict[str, Any], name: str) -> None:
    for side, texts in (("from", "First hour to run"), ("to", "End of the hours to run")):
        param = dags[name].params.get_param(side)
        assert "pattern" not in param.schema
        assert param.schema["title"].endswith("(UTC)")
        described = param.description or param.schema["description_md"]
        assert described.startswith(texts)
        assert "2015-05-17T1" in described
        why = "has no schedule" if name == "conn" else "has ended"
        assert f"Fill in both: the stream {why}." in described
        assert param.resolve(None) is None


def test_form_shows_a_link_to_the_hours() -> None:
    """Airflow shows Markdown only of a parameter without a plain description."""
    shown = web_dag().params.get_param("from")
    assert shown.description is None
    assert "/streams/web/hours)" in shown.schema["description_md"]


def test_form_of_a_current_stream_may_stay_empty() -> None:
    assert (
        web_dag(until=None)
        .params.get_param("to")
        .description.endswith("Leave both empty for the last full hour.")
    )


@pytest.mark.parametrize(
    ("params", "first"),
    [
        (
            {"from": "2015-05-20T12:00", "to": "2015-05-20T10:00"},
            "from: must be before to, which is exclusive; got from 2015-05-20T12:00 to 2015-05-20T10:00",
        ),
        (
            {"to": "2015-05-20T10:00"},
            "from and to: must be given together; got from None, to '2015-05-20T10:00'",
        ),
        (
            {"from": "2015-05-20T10:00", "to": "2015-05-20T12:00"},
            "interval [2015-05-20T10:00, 2015-05-20T12:00) UTC, the `from` and `to` of the trigger",
        ),
        ({}, "interval [2015-05-20T09:00, 2015-05-20T10:00) UTC, the run's own hours"),
    ],
)
def test_first_log_line_names_the_interval_or_its_error(
    dags: dict[str, Any], caplog: pytest.LogCaptureFixture, params: dict[str, str], first: str
) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    settle = dags["web"].get_task("settle")
    start = datetime(2015, 5, 20, 9, tzinfo=UTC)
    context = {"dag": dags["web"], "dag_run": run_of(start, start + timedelta(hours=1)), "params": params}
    caplog.set_level("INFO")
    caplog.clear()
    wrong = first.startswith("from")
    with pytest.raises(AirflowFailException, match=re.escape(first)) if wrong else nullcontext():
        execute(settle, context)
    assert [record.getMessage() for record in caplog.records if record.name == "transom_operators"] == [first]


def test_stream_of_the_past_has_no_latest_hour(dags: dict[str, Any]) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    settle = dags["web"].get_task("settle")
    now = datetime(2026, 5, 17, 10, tzinfo=UTC)
    context = {"dag": dags["web"], "dag_run": run_of(now, now + timedelta(hours=1)), "params": {}}
    texts = "from and to: the latest hour, 2026-05-17T10:00, is not one that the stream schedules"
    with pytest.raises(AirflowFailException, match=texts):
        settle.execute(context)
    requested = {"from": "2015-05-20T21:00", "to": "2015-05-20T23:00"}
    assert settle.execute({**context, "params": requested}) == "[2015-05-20T21:00, 2015-05-20T23:00)"
    last = datetime(2015, 5, 20, 21, tzinfo=UTC)
    assert settle.execute({**context, "dag_run": run_of(last, last + timedelta(hours=1))})
