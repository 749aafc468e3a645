"""Hourly aggregates and episodes from a log: files are ingested, checked, aggregated and searched.

Each stage is one spark-submit over the run's interval, or all stages are (`submit: single`). The gate after
a stage reads the ledger; what reads it runs only if the whole interval is published. Run it by its
schedule, with Trigger and `from` and `to` for any interval at once, or by `airflow backfill create`: the
tables come out the same.
"""

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, Asset, BaseOperator, CronDataIntervalTimetable, Param
from jinja2 import StrictUndefined

from transom.core.durations import format_duration
from transom.core.partitions import SOURCE_STAGE
from transom.features.registry import INGEST_OUTLETS
from transom.spec.stream import Stream
from transom_links import page_address
from transom_notify import Notify
from transom_operators import Gate, Report, Settle, SubmitStage, hour_text, trigger
from transom_schedule import HOURLY, HoursUntil

POOL = "transom"
NOTIFY = {"execution_timeout": timedelta(minutes=14)}
"""Settings of the task `notify`: it ends before another run may send its messages. A notifier that hangs does
not use up this time."""


@dataclass(frozen=True)
class Job:
    """A spark-submit of the DAG.

    Attributes:
        name: the id of the task.
        stages: the stages that it runs.
        doc: the text of the task's page, in Markdown.
        script: the job's script; None means `jobs/<name>.py`.
    """

    name: str
    stages: tuple[str, ...]
    doc: str
    script: Path | None = None


def jobs_of(stream: Stream) -> tuple[Job, ...]:
    """Return the spark-submits of a stream, in order."""
    if stream.submit == "single":
        doc = "Every stage in one application, as far as the gates between them pass."
        return (Job("run", stream.stages, doc),)
    features = [stream.feature(stage) for stage in stream.stages if stage != SOURCE_STAGE]
    return (
        Job(SOURCE_STAGE, (SOURCE_STAGE,), "Files become events, duplicates, rejections and file records."),
        *(Job(feature.name, (feature.name,), feature.doc, feature.script) for feature in features),
    )


def outlets(stream: Stream, stage: str) -> list[Asset]:
    """Return the assets of a stage: its tables of results, and `findings`."""
    if stage == SOURCE_STAGE:
        tables = [*INGEST_OUTLETS]
    else:
        feature = stream.feature(stage)
        optional = feature.optional_outlets
        tables = [table for table in feature.outlets if table not in optional or optional[table](stream)]
    return [Asset(f"transom://{stream.name}/{table}") for table in (*tables, "findings")]


def _hour_params(stream: Stream) -> dict[str, Param]:
    """Return the parameters of a manual run; the first task validates them."""
    if stream.schedule and stream.until is None:
        rule = "Leave both empty for the last full hour."
    else:
        rule = f"Fill in both: the stream has {'ended' if stream.schedule else 'no schedule'}."
    first = f"First hour to run, on the hour, such as 2015-05-17T10:00. {rule}"
    end = f"End of the hours to run, not included, such as 2015-05-17T12:00. {rule}"
    again = "Compute and write these hours again, even where they are fresh."
    return {
        "from": Param(
            None,
            title="From (UTC)",
            # With a plain description, too, the form does not show this one.
            description_md=f"{first} [The hours of the stream]({page_address(stream.name, 'hours')}).",
            type=["null", "string"],
        ),
        "to": Param(None, title="To (UTC)", description=end, type=["null", "string"]),
        "recompute": Param(False, title="Recompute", description=again, type="boolean"),
    }


def facts(stream: Stream) -> str:
    """Return the text of the DAG's page: this module's docstring, and facts about the stream."""
    rows = [
        ("files", f"`{stream.source.path}`"),
        ("repairs", f"stale hours up to {format_duration(stream.repair_window)} around its interval"),
    ]
    for feature in stream.features:
        blocks = stream.blocks(feature.block)
        rows += [(f"{feature.noun} {name}", feature.facts(stream, name)) for name in blocks]
    # A vertical bar would end a cell of the table.
    cells = [(name, value.replace("|", "\\|")) for name, value in rows]
    table = "\n".join(f"| {name} | {value} |" for name, value in cells)
    return f"{__doc__}\n{stream.description or ''}\n\n| | |\n|---|---|\n{table}\n"


def description(stream: Stream) -> str:
    """Return a line for the list of DAGs: the title, the first line of the description, or the path."""
    lines = (stream.description or "").strip().splitlines()
    return stream.title or (lines[0] if lines else f"Aggregates and findings from {stream.source.path}")


def _schedule(stream: Stream) -> Any:
    """Return the schedule of a DAG: every hour, to the end of the stream; None for a stream without one."""
    if not stream.schedule:
        return None
    # With a plain cron expression, runs have an empty interval.
    return HoursUntil(stream.until) if stream.until else CronDataIntervalTimetable(HOURLY, timezone="UTC")


def build(stream: Stream, file: Path) -> DAG:
    """Build the DAG of a stream: settle, the stages with a gate each, the report, the messages."""
    judged: dict[str, Any] = {
        "stream": stream.name,
        "stream_file": str(file),
        "repair_window": stream.repair_window,
        "waivers": stream.waivers,
    }
    dag = DAG(
        dag_id=stream.name,
        description=description(stream),
        doc_md=facts(stream),
        schedule=_schedule(stream),
        start_date=stream.start,
        catchup=stream.catchup,
        max_active_runs=1,
        template_undefined=StrictUndefined,
        user_defined_macros={"hour_text": hour_text, "trigger": trigger},
        tags={"transom", *stream.tags},
        params=_hour_params(stream),
        default_args={
            "owner": stream.owner or "transom",
            # Retries are for crashes: a killed driver, a lost machine. A job with quarantined hours succeeds,
            # and a gate fails without a retry.
            "retries": 2,
            "retry_delay": timedelta(minutes=1),
            "execution_timeout": timedelta(hours=6),
        },
    )
    with dag:
        settle = Settle(seconds=stream.source.arrival_delay.total_seconds(), doc_md=Settle.__doc__)
        gates: dict[str, BaseOperator] = {}
        for job in jobs_of(stream):
            submit = SubmitStage(
                job=job.name,
                stages=job.stages,
                stream=stream.name,
                stream_file=str(file),
                script=job.script,
                doc_md=job.doc,
                # The other tasks are in Airflow's default pool: a gate never waits for an application, and
                # the next application starts while the gate reads the ledger.
                pool=POOL,
                outlets=[asset for stage in job.stages for asset in outlets(stream, stage)],
            )
            for stage in job.stages:
                gate = gates[stage] = Gate(stage=stage, stages=stream.stages, doc_md=Gate.__doc__, **judged)
                upstream = stream.upstream_stage(stage)
                is_inside = upstream in job.stages
                if upstream is not None:
                    gates[upstream] >> (gate if is_inside else submit)
                if not is_inside:
                    submit >> gate
            if not submit.upstream_task_ids:
                settle >> submit
        last = [gate for gate in gates.values() if not gate.downstream_task_ids]
        report = Report(stages=stream.stages, doc_md=Report.__doc__, **judged)
        notify = Notify(stream=stream.name, stream_file=str(file), doc_md=Notify.__doc__, **NOTIFY)
        last >> report
        # A teardown runs also after a failure, and the state of the run does not depend on it. After a failed
        # gate, it waits for the other branches.
        [*last, report] >> notify.as_teardown()
    return dag
