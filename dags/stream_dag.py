"""Hourly figures from a log: files are ingested, checked, aggregated and checked again.

Each stage is one spark-submit over the run's interval; the gate after it reads the ledger and lets the
next stage run only where nothing of the interval is withheld. Run it by its schedule, with Trigger and
`from` and `to` for any stretch at once, or by `airflow backfill create`: the tables come out the same.
"""

import logging
import os
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import DAG, Asset, BaseOperator, CronDataIntervalTimetable, Param
from airflow.sdk.exceptions import AirflowFailException, AirflowRescheduleException
from jinja2 import StrictUndefined

from transom.intervals import Interval, format_hour
from transom.stream import Stream

SPARK = "transom_spark"
POOL = "transom"


@dataclass(frozen=True)
class StageTask:
    """A stage as the DAG runs it: facts first, operators from them.

    Attributes:
        after: the stages whose gates have to pass first.
        outlets: the result tables that it writes.
    """

    stage: str
    after: tuple[str, ...]
    outlets: tuple[str, ...]
    doc: str


STAGES = (
    StageTask(
        "ingest", (), ("events", "rejected", "files"), "Files become events, rejections and file records."
    ),
    StageTask("aggregate", ("ingest",), ("aggregates",), "Events become figures over sliding windows."),
)


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


def hour_text(params: Any, run: Any, side: str) -> str:
    """One end of a run's interval, for templates."""
    interval = interval_of(params, run.data_interval_start, run.data_interval_end)
    return format_hour(interval.start if side == "from" else interval.end)


def cause(run: Any) -> str:
    """Why a run runs, for the ledger: schedule, trigger or backfill."""
    kind = str(getattr(run.run_type, "value", run.run_type))
    return {"scheduled": "schedule", "manual": "trigger", "backfill": "backfill"}.get(kind, kind)


class SubmitStage(SparkSubmitOperator):
    """The house's spark-submit: client mode, connection and Python named, nothing forced on a cluster."""

    def __init__(self, *, stage: str, stream: str, stream_file: str, **kwargs: Any) -> None:
        super().__init__(
            task_id=stage,
            application=str(home() / "jobs" / f"{stage}.py"),
            name=f"transom {stream} {stage}",
            # A missing connection would silently mean YARN.
            conn_id=SPARK,
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
                "--run-id", f"{{{{ run_id }}}} {stage} {{{{ ti.try_number }}}}",
                "--cause", "{{ cause(dag_run) }}",
            ],
            **kwargs,
        )  # fmt: skip


class Gate(BaseOperator):
    """Reads the ledger and fails, without a retry, where something of the interval is withheld."""

    def __init__(self, *, stage: str, stream: str, stream_file: str, **kwargs: Any) -> None:
        super().__init__(task_id=f"{stage}_gate", **kwargs)
        self.stage = stage
        self.stream = stream
        self.stream_file = stream_file

    def execute(self, context: Any) -> str:
        """Judges the run's interval; its one line is the task's result."""
        from transom.lake.gate import judge
        from transom.lake.ledger import Ledger

        command = (
            f"spark-submit jobs/{self.stage}.py --stream {self.stream_file} --lake {lake()} "
            "--from {from} --to {to}   (or Trigger the DAG with these `from` and `to`)"
        )
        judgement = judge(
            Ledger(f"{lake()}/{self.stream}"), self.stage, self.stream, _of_context(context), command
        )
        for warning in judgement.warnings:
            logging.getLogger(__name__).warning(warning)
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
        ready = interval.end + timedelta(seconds=self.seconds)
        if ready > datetime.now(UTC):
            raise AirflowRescheduleException(ready)  # type: ignore[no-untyped-call]
        return str(interval)


class Report(BaseOperator):
    """One line for the run's end: what stands in the ledger for its interval."""

    def __init__(self, *, stream: str, **kwargs: Any) -> None:
        super().__init__(task_id="report", **kwargs)
        self.stream = stream

    def execute(self, context: Any) -> dict[str, int]:
        """Counts the interval's nodes by status."""
        from collections import Counter

        from transom.lake.ledger import Ledger

        interval = _of_context(context)
        book = Ledger(f"{lake()}/{self.stream}").book()
        found = Counter(entry.status for node, entry in book.items() if node.hour in interval)
        logging.getLogger(__name__).info("%s %s: %s", self.stream, interval, dict(found))
        return {str(status): count for status, count in found.items()}


def _hour_param(description: str) -> Param:
    return Param(None, description=description, type=["null", "string"])


def facts(stream: Stream) -> str:
    """The stream's facts, below the module's text, for the DAG's page."""
    rows = [
        ("files", f"`{stream.source.path}`"),
        ("heals", f"stale hours up to {stream.heal} around its interval"),
        *(
            (f"block {name}", f"key {', '.join(block.key) or 'none'}; " + "; ".join(map(str, block.levels)))
            for name, block in stream.aggregate.items()
        ),
    ]
    table = "\n".join(f"| {name} | {value} |" for name, value in rows)
    return f"{__doc__}\n{stream.description or ''}\n\n| | |\n|---|---|\n{table}\n"


def build(stream: Stream, file: Path) -> DAG:
    """The DAG of a stream: settle, then each stage with its gate, then the report."""
    stream_file = str(file)
    dag = DAG(
        dag_id=stream.name,
        description=stream.title,
        doc_md=facts(stream),
        # A plain cron text gives runs an empty interval.
        schedule=CronDataIntervalTimetable("0 * * * *", timezone="UTC") if stream.schedule else None,
        start_date=stream.start,
        end_date=stream.until - timedelta(hours=1) if stream.until else None,
        catchup=stream.catchup,
        max_active_runs=1,
        template_undefined=StrictUndefined,
        user_defined_macros={"hour_text": hour_text, "cause": cause},
        tags={"transom", *stream.tags},
        params={
            "from": _hour_param("first hour of the stretch, UTC, such as 2015-05-17T10:00; with `to`"),
            "to": _hour_param("end of the stretch, exclusive, UTC; with `from`"),
        },
        default_args={
            "owner": stream.owner or "transom",
            "pool": POOL,
            # A retry is for crashes: a killed driver, a lost machine. Withheld hours end a job well, and
            # a gate's verdict does not change by asking again.
            "retries": 2,
            "retry_delay": timedelta(minutes=1),
            "execution_timeout": timedelta(hours=6),
        },
    )
    with dag:
        settle = Settle(seconds=stream.source.settle.total_seconds(), doc_md=Settle.__doc__)
        gates: dict[str, BaseOperator] = {}
        for task in STAGES:
            if task.stage not in stream.stages:
                continue
            submit = SubmitStage(
                stage=task.stage,
                stream=stream.name,
                stream_file=stream_file,
                doc_md=task.doc,
                outlets=[Asset(f"transom://{stream.name}/{table}") for table in task.outlets],
            )
            gate = Gate(stage=task.stage, stream=stream.name, stream_file=stream_file, doc_md=Gate.__doc__)
            first: list[BaseOperator] = [gates[name] for name in task.after] or [settle]
            for before in first:
                before >> submit
            submit >> gate
            gates[task.stage] = gate
        last = [gate for gate in gates.values() if not gate.downstream_task_ids]
        report = Report(stream=stream.name, doc_md=Report.__doc__)
        for ending in last:
            ending >> report
    return dag
