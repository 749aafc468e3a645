"""The operators of transom's DAGs, and how a run finds its interval."""

import logging
import os
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowFailException, AirflowRescheduleException

from transom.intervals import Interval, format_hour

if TYPE_CHECKING:
    from transom.lake.gate import Judgement

CONNECTION = "transom_spark"


def home() -> Path:
    """The checkout."""
    return Path(os.environ.get("TRANSOM_HOME", str(Path(__file__).resolve().parents[1])))


def lake() -> str:
    """Where the tables are: TRANSOM_LAKE, else inside the checkout."""
    return os.environ.get("TRANSOM_LAKE", str(home() / ".transom" / "lake"))


def interval_of(params: Any, start: datetime | None, end: datetime | None) -> Interval:
    """The interval of a run: `from` and `to` where both are given, else its data interval.

    Raises:
        AirflowFailException: neither, one alone, or an interval that is not one or lies in the future.
    """
    asked = (params.get("from"), params.get("to"))
    try:
        if all(asked):
            interval = Interval.parse(*asked)
        elif any(asked):
            raise ValueError(f"from and to: must be given together; got from {asked[0]!r}, to {asked[1]!r}")
        elif start is not None and end is not None and start < end:
            interval = Interval(start, end)
        else:
            raise ValueError("from and to: a run by hand has no interval of its own; give both")
    except ValueError as error:
        raise AirflowFailException(str(error)) from None
    now = datetime.now(UTC)
    if interval.end > now:
        raise AirflowFailException(
            f"to: must not lie in the future; got {format_hour(interval.end)}, it is {now:%Y-%m-%dT%H:%M} UTC"
        )
    return interval


def _of_context(context: Any) -> Interval:
    run = context["dag_run"]
    return interval_of(context["params"], run.data_interval_start, run.data_interval_end)


def _require_scheduled(interval: Interval, context: Any) -> None:
    """A trigger without `from` and `to` means the latest hour, which a stream of the past does not have."""
    first, last = context["dag"].start_date, context["dag"].end_date
    inside = (first is None or first <= interval.start) and (last is None or interval.start <= last)
    if not inside and not context["params"].get("from"):
        stretch = f"{first or 'any hour'} to {last or 'now'}"
        raise AirflowFailException(
            f"from and to: the latest hour, {format_hour(interval.start)}, is not one that the stream "
            f"schedules ({stretch}); give both"
        )


def hour_text(params: Any, run: Any, side: str) -> str:
    """One end of a run's interval, for templates."""
    interval = interval_of(params, run.data_interval_start, run.data_interval_end)
    return format_hour(interval.start if side == "from" else interval.end)


def cause(run: Any) -> str:
    """Why a run runs, for the ledger: schedule, trigger or backfill."""
    kind = str(getattr(run.run_type, "value", run.run_type))
    return {"scheduled": "schedule", "manual": "trigger", "backfill": "backfill"}.get(kind, kind)


class SubmitStage(SparkSubmitOperator):
    """The house's spark-submit of a job: client mode, connection and Python named, nothing forced on a
    cluster."""

    def __init__(self, *, job: str, stream: str, stream_file: str, **kwargs: Any) -> None:
        super().__init__(
            task_id=job,
            application=str(home() / "jobs" / f"{job}.py"),
            name=f"transom {stream} {job}",
            # A missing connection would silently mean YARN.
            conn_id=CONNECTION,
            deploy_mode="client",
            properties_file=os.environ.get("TRANSOM_SPARK_PROPERTIES"),
            env_vars={
                "PYSPARK_PYTHON": os.environ.get("PYSPARK_PYTHON", "python3"),
                "PYTHONPATH": str(home() / "jobs"),
                "TZ": "UTC",
            },
            application_args=[
                "--stream", stream_file,
                "--lake", lake(),
                "--from", "{{ hour_text(params, dag_run, 'from') }}",
                "--to", "{{ hour_text(params, dag_run, 'to') }}",
                "--run-id", f"{{{{ run_id }}}} {job} {{{{ ti.try_number }}}}",
                "--cause", "{{ cause(dag_run) }}",
            ],
            **kwargs,
        )  # fmt: skip


def _judged(
    stage: str, job: str, stream: str, stream_file: str, heal: timedelta, context: Any
) -> "Judgement":
    """What the ledger says of one stage of a run, which `job` has run; its warnings are logged."""
    from transom.commands import submit
    from transom.lake.gate import judge
    from transom.lake.ledger import Ledger

    command = f"{submit(job, stream_file, lake())}   (or Trigger the DAG with these `from` and `to`)"
    judgement = judge(Ledger(f"{lake()}/{stream}"), stage, stream, _of_context(context), command, heal)
    for warning in judgement.warnings:
        logging.getLogger(__name__).warning(warning)
    return judgement


class Gate(BaseOperator):
    """Reads the ledger and fails, without a retry, where something of the interval is withheld."""

    def __init__(
        self, *, stage: str, job: str, stream: str, stream_file: str, heal: timedelta, **kwargs: Any
    ) -> None:
        super().__init__(task_id=f"{stage}_gate", **kwargs)
        self.stage = stage
        self.job = job
        self.stream = stream
        self.stream_file = stream_file
        self.heal = heal

    def execute(self, context: Any) -> str:
        """Judges the run's interval; its one line is the task's result."""
        judgement = _judged(self.stage, self.job, self.stream, self.stream_file, self.heal, context)
        if judgement.failures:
            raise AirflowFailException("\n" + "\n".join(judgement.failures))
        return judgement.summary


class Settle(BaseOperator):
    """Checks the run's interval, and waits until its files have had their time to arrive."""

    def __init__(self, *, seconds: float, **kwargs: Any) -> None:
        super().__init__(task_id="settle", **kwargs)
        self.seconds = seconds

    def execute(self, context: Any) -> str:
        """Comes back later, without holding a slot, while it is too early."""
        interval = _of_context(context)
        _require_scheduled(interval, context)
        ready = interval.end + timedelta(seconds=self.seconds)
        if ready > datetime.now(UTC):
            # Airflow gives its constructor no types.
            raise AirflowRescheduleException(ready)  # type: ignore[no-untyped-call]
        return str(interval)


MOST = 100
"""Findings that a report tells one by one."""


class Report(BaseOperator):
    """What stands of the run's interval after all stages, a line each; and what has been found in it, the
    worst first."""

    def __init__(
        self, *, jobs: Mapping[str, str], stream: str, stream_file: str, heal: timedelta, **kwargs: Any
    ) -> None:
        super().__init__(task_id="report", **kwargs)
        self.jobs = jobs
        self.stream = stream
        self.stream_file = stream_file
        self.heal = heal

    def execute(self, context: Any) -> list[str]:
        """Logs and returns the lines."""
        from transom.lake.findings import findings, how_many

        lines = [
            _judged(stage, job, self.stream, self.stream_file, self.heal, context).summary
            for stage, job in self.jobs.items()
        ]
        root, interval = f"{lake()}/{self.stream}", _of_context(context)
        found, many = findings(root, interval, most=MOST), how_many(root, interval)
        lines += map(str, found)
        if many > len(found):
            lines.append(f"... and {many - len(found)} more in the table findings")
        for line in lines:
            logging.getLogger(__name__).info(line)
        return lines
