"""Hourly figures and episodes from a log: files are ingested, checked, aggregated, searched, checked again.

Each stage is one spark-submit over the run's interval, or all stages are (`submit: single`). The gate after
a stage reads the ledger; what reads it runs only where nothing of the interval is withheld. Run it by its
schedule, with Trigger and `from` and `to` for any stretch at once, or by `airflow backfill create`: the
tables come out the same.
"""

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from airflow.sdk import DAG, Asset, BaseOperator, CronDataIntervalTimetable, Param
from jinja2 import StrictUndefined

from transom.core.durations import format_duration
from transom.features.registry import INGEST_OUTLETS
from transom.spec.stream import Stream
from transom_operators import Gate, Report, Settle, SubmitStage, hour_text, trigger

POOL = "transom"


@dataclass(frozen=True)
class Job:
    """A spark-submit of the DAG.

    Attributes:
        name: the task.
        stages: the stages that it runs.
        script: None is `jobs/<name>.py`.
    """

    name: str
    stages: tuple[str, ...]
    doc: str
    script: Path | None = None


def jobs_of(stream: Stream) -> tuple[Job, ...]:
    """The spark-submits of a stream, in order."""
    if stream.submit == "single":
        doc = "Every stage in one application, as far as the gates between them pass."
        return (Job("run", stream.stages, doc),)
    features = [stream.feature(stage) for stage in stream.stages if stage != "ingest"]
    return (
        Job("ingest", ("ingest",), "Files become events, duplicates, rejections and file records."),
        *(Job(feature.name, (feature.name,), feature.doc, feature.script) for feature in features),
    )


def outlets(stream: Stream, stage: str) -> list[Asset]:
    """The tables of results that a stage of a stream writes."""
    if stage == "ingest":
        tables = [*INGEST_OUTLETS]
    else:
        feature = stream.feature(stage)
        asked = feature.optional_outlets
        tables = [table for table in feature.outlets if table not in asked or asked[table](stream)]
    return [Asset(f"transom://{stream.name}/{table}") for table in (*tables, "findings")]


def _hour_params(stream: Stream) -> dict[str, Param]:
    """The interval of a run by hand; what is wrong with one, the first task says in its first line."""
    runs_now = stream.schedule and stream.until is None
    empty = "Leave both empty for the last full hour." if runs_now else f"Fill in both: {_why_both(stream)}."
    words = {
        "from": ("From (UTC)", "First hour to run, on the hour, such as 2015-05-17T10:00."),
        "to": ("To (UTC)", "End of the hours to run, not included, such as 2015-05-17T12:00."),
    }
    again = "Compute and write these hours again, even where they are fresh."
    return {
        **{
            name: Param(None, title=title, description=f"{said} {empty}", type=["null", "string"])
            for name, (title, said) in words.items()
        },
        "recompute": Param(False, title="Recompute", description=again, type="boolean"),
    }


def _why_both(stream: Stream) -> str:
    """Why the last full hour is no interval of a stream."""
    return "the stream has ended" if stream.schedule else "the stream has no schedule"


def facts(stream: Stream) -> str:
    """The stream's facts, below the module's text, for the DAG's page."""
    rows = [
        ("files", f"`{stream.source.path}`"),
        ("repairs", f"stale hours up to {format_duration(stream.repair_window)} around its interval"),
    ]
    for feature in stream.features:
        blocks = stream.blocks(feature.block)
        rows += [(f"{feature.noun} {name}", feature.facts(stream, name)) for name in blocks]
    # A bar would end the cell of the table.
    cells = [(name, value.replace("|", "\\|")) for name, value in rows]
    table = "\n".join(f"| {name} | {value} |" for name, value in cells)
    return f"{__doc__}\n{stream.description or ''}\n\n| | |\n|---|---|\n{table}\n"


def description(stream: Stream) -> str:
    """What the list of DAGs says of a stream: its title, the first line of its description, or its files."""
    said = (stream.description or "").strip().splitlines()
    return stream.title or (said[0] if said else f"Figures and findings from {stream.source.path}")


def build(stream: Stream, file: Path) -> DAG:
    """The DAG of a stream: settle, then the stages, each with its gate, then the report."""
    stream_file = str(file)
    dag = DAG(
        dag_id=stream.name,
        description=description(stream),
        doc_md=facts(stream),
        # A plain cron text gives runs an empty interval.
        schedule=CronDataIntervalTimetable("0 * * * *", timezone="UTC") if stream.schedule else None,
        start_date=stream.start,
        end_date=stream.until - timedelta(hours=1) if stream.until else None,
        catchup=stream.catchup,
        max_active_runs=1,
        template_undefined=StrictUndefined,
        user_defined_macros={"hour_text": hour_text, "trigger": trigger},
        tags={"transom", *stream.tags},
        params=_hour_params(stream),
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
        settle = Settle(seconds=stream.source.arrival_delay.total_seconds(), doc_md=Settle.__doc__)
        gates: dict[str, BaseOperator] = {}
        jobs = jobs_of(stream)
        for job in jobs:
            submit = SubmitStage(
                job=job.name,
                stream=stream.name,
                stream_file=stream_file,
                script=job.script,
                doc_md=job.doc,
                outlets=[asset for stage in job.stages for asset in outlets(stream, stage)],
            )
            for stage in job.stages:
                gate = gates[stage] = Gate(
                    stage=stage,
                    stream=stream.name,
                    stream_file=stream_file,
                    repair_window=stream.repair_window,
                    waivers=stream.waivers,
                    doc_md=Gate.__doc__,
                )
                before = stream.upstream_stage(stage)
                inside = before in job.stages
                if before is not None:
                    gates[before] >> (gate if inside else submit)
                if not inside:
                    submit >> gate
            if not submit.upstream_task_ids:
                settle >> submit
        last = [gate for gate in gates.values() if not gate.downstream_task_ids]
        report = Report(
            stages=stream.stages,
            stream=stream.name,
            stream_file=stream_file,
            repair_window=stream.repair_window,
            arrival_delay=stream.source.arrival_delay,
            waivers=stream.waivers,
            doc_md=Report.__doc__,
        )
        for ending in last:
            ending >> report
    return dag
