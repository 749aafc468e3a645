"""Operators of transom's DAGs, and the interval of a run."""

import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowFailException, AirflowRescheduleException

from transom.core.intervals import Interval, format_hour
from transom.core.locations import PACKAGE, job_script, lake
from transom_connect import ConnectHook, is_connect
from transom_links import PageLink, RunLink
from transom_metrics import send_hours, send_run
from transom_schedule import last_hour

if TYPE_CHECKING:
    from transom.engine.gate import GateResult
    from transom.ledger.freshness import Freshness
    from transom.ledger.ledger import Ledger
    from transom.ledger.snapshot import LedgerSnapshot
    from transom.spec.checks import WaiverSpec
    from transom.stream import Stream

LOG = logging.getLogger(__name__)
CONNECTION = "transom_spark"


def interval_of(params: Any, start: datetime | None, end: datetime | None) -> Interval:
    """Return the interval of a run: its parameters `from` and `to`, or its data interval.

    Raises:
        AirflowFailException: both are missing, one parameter is missing, or the interval is invalid or not
            over yet.
    """
    bounds = (params.get("from"), params.get("to"))
    try:
        if all(bounds):
            interval = Interval.parse(*bounds)
        elif any(bounds):
            raise ValueError(f"from and to: must be given together; got from {bounds[0]!r}, to {bounds[1]!r}")
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


def run_interval(context: Any) -> Interval:
    """Return the interval of the run of a task; raises as `interval_of`."""
    run = context["dag_run"]
    return interval_of(context["params"], run.data_interval_start, run.data_interval_end)


def _require_scheduled(interval: Interval, context: Any) -> None:
    """Fail a run without `from` and `to` if its hours are outside of the stream's schedule."""
    first, last = context["dag"].start_date, last_hour(context["dag"])
    is_inside = (first is None or first <= interval.start) and (last is None or interval.start <= last)
    if not is_inside and not context["params"].get("from"):
        schedule = f"{first or 'any hour'} to {last or 'now'}"
        raise AirflowFailException(
            f"from and to: the latest hour, {format_hour(interval.start)}, is not one that the stream "
            f"schedules ({schedule}); give both"
        )


def hour_text(params: Any, run: Any, side: str) -> str:
    """Return the start (`side="from"`) or the end of a run's interval, for templates."""
    interval = interval_of(params, run.data_interval_start, run.data_interval_end)
    return format_hour(interval.start if side == "from" else interval.end)


def trigger(run: Any) -> str:
    """Return the trigger of a run for the ledger: `schedule`, `manual` or `backfill`."""
    kind = str(getattr(run.run_type, "value", run.run_type))
    return "schedule" if kind == "scheduled" else kind


class SubmitStage(SparkSubmitOperator):
    """Submit a job by the connection `transom_spark`: in client mode, or to a Spark Connect server."""

    operator_extra_links = (PageLink("hours"), RunLink())

    def __init__(
        self,
        *,
        job: str,
        stages: Sequence[str],
        stream: str,
        stream_file: str,
        script: Path | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            task_id=job,
            application=str(script or job_script(job)),
            name=f"transom {stream} {job}",
            # Without a connection, the operator uses YARN.
            conn_id=CONNECTION,
            deploy_mode="client",
            properties_file=os.environ.get("TRANSOM_SPARK_PROPERTIES"),
            env_vars={
                "PYSPARK_PYTHON": os.environ.get("PYSPARK_PYTHON", "python3"),
                "PYTHONPATH": str(PACKAGE.parent),
                "TZ": "UTC",
            },
            application_args=[
                "--stream", stream_file,
                "--lake", lake(),
                "--from", "{{ hour_text(params, dag_run, 'from') }}",
                "--to", "{{ hour_text(params, dag_run, 'to') }}",
                "--run-id", f"{{{{ run_id }}}} {job} {{{{ ti.try_number }}}}",
                "--trigger", "{{ trigger(dag_run) }}",
                "--recompute", "{{ params.recompute }}",
            ],
            **kwargs,
        )  # fmt: skip
        self.stages = tuple(stages)
        self.stream = stream

    def _get_hook(self) -> SparkSubmitHook:
        if not is_connect(CONNECTION):
            return super()._get_hook()
        return ConnectHook(conn_id=CONNECTION, application_args=self.application_args, env_vars=self.env_vars)

    def post_execute(self, context: Any, result: Any = None) -> None:
        """Add the run's interval and its published hours to each asset event, and send metrics."""
        from transom.ledger.ledger import Ledger

        interval = run_interval(context)
        snapshot = Ledger(f"{lake()}/{self.stream}").snapshot()
        for asset in self.outlets:
            table = asset.uri.rpartition("/")[2]
            context["outlet_events"][asset].extra = _asset_facts(self.stream, table, interval, snapshot)
        run_id = f"{context['run_id']} {self.task_id} {context['ti'].try_number}"
        send_run(self.stream, run_id, self.stages, interval)


def _asset_facts(stream: str, table: str, interval: Interval, snapshot: "LedgerSnapshot") -> dict[str, Any]:
    """Return the facts of an asset event: the interval, and the hours and rows published in it."""
    from transom.findings.store import NAME, count_findings

    facts: dict[str, Any] = {"from": format_hour(interval.start), "to": format_hour(interval.end)}
    if table == NAME:
        return {**facts, "findings": count_findings(f"{lake()}/{stream}", interval)}
    states = [
        (partition.hour, state)
        for partition, state in snapshot.items()
        if partition.table == table and partition.hour in interval
    ]
    published = {hour for hour, state in states if state.status == "published"}
    return {
        **facts,
        "hours_published": len(published),
        "hours_withheld": len({hour for hour, _ in states} - published),
        "rows": sum(state.rows for _, state in states if state.status == "published"),
    }


@dataclass
class _Judgement:
    """The gates of some stages.

    Attributes:
        ledger: the ledger of the stream.
        stream: the stream; None if its file is wrong.
        results: the result of each stage's gate.
        freshness: the freshness of each stage of which it could be found out.
    """

    ledger: "Ledger"
    stream: "Stream | None"
    results: "list[GateResult]" = field(default_factory=list)
    freshness: "dict[str, Freshness]" = field(default_factory=dict)


class _LedgerOperator(BaseOperator):
    """A task that evaluates the gates of stages over the run's interval, from the ledger."""

    operator_extra_links = (PageLink("hours"), RunLink())

    def __init__(
        self,
        *,
        stream: str,
        stream_file: str,
        repair_window: timedelta,
        waivers: Sequence["WaiverSpec"] = (),
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.stream = stream
        self.stream_file = stream_file
        self.repair_window = repair_window
        self.waivers = tuple(waivers)

    def judge(self, stages: Sequence[str], context: Any) -> _Judgement:
        """Evaluate the gates of stages, log their warnings, and return their results."""
        from transom.app.command_lines import submit
        from transom.app.freshness import freshness_of, snapshot_of, stale_hours_of
        from transom.engine.gate import evaluate_gate
        from transom.features.registry import BUILT_IN, OUTLETS
        from transom.ledger.ledger import Ledger
        from transom.ledger.waivers import entries_of
        from transom.storage.tables import LakeError
        from transom.stream import SpecificationError, load

        command = (
            f"{submit('run', self.stream_file, lake())}   (or Trigger the DAG with these `from` and `to`)"
        )
        ledger, interval = Ledger(f"{lake()}/{self.stream}"), run_interval(context)
        judgement = _Judgement(ledger, None)
        try:
            judgement.stream = load(self.stream_file)
        except SpecificationError as error:
            LOG.warning("stale hours are not looked for: %s", error)
        for stage in stages:
            stale: dict[str, list[datetime]] = {}
            try:
                if (stream := judgement.stream) is not None:
                    freshness = freshness_of(stream, snapshot_of(stream, ledger, stage))
                    stale = stale_hours_of(freshness, stage, interval)
                    judgement.freshness[stage] = freshness
            except (LakeError, SpecificationError) as error:
                LOG.warning("stale hours are not looked for: %s", error)
            waivers = entries_of(self.waivers)
            result = evaluate_gate(
                ledger,
                stage,
                self.stream,
                interval,
                command,
                self.repair_window,
                waivers,
                stale,
                BUILT_IN,
                OUTLETS.get(stage),
            )
            for warning in result.warnings:
                LOG.warning(warning)
            judgement.results.append(result)
        return judgement


class Gate(_LedgerOperator):
    """Reads the ledger and fails, without a retry, if a part of the interval is not published."""

    def __init__(self, *, stage: str, stages: Sequence[str], **kwargs: Any) -> None:
        super().__init__(task_id=f"{stage}_gate", **kwargs)
        self.stage = stage
        self.stages = tuple(stages)

    def execute(self, context: Any) -> str:
        """Evaluate the gate, and return a line as the task's result.

        Raises:
            AirflowFailException: the gate has failures.
        """
        judgement = self.judge([self.stage], context)
        (result,) = judgement.results
        self._send_hours(judgement)
        for line in result.accepted:
            LOG.info(line)
        if result.failures:
            raise AirflowFailException("\n" + "\n".join(result.failures))
        return result.summary

    def _send_hours(self, judgement: _Judgement) -> None:
        """Send the metrics of the stage's hours, and after a failed gate those of all stages: no task of a
        later one sends them."""
        from transom.app.freshness import freshness_of, snapshot_of

        stream, ledger = judgement.stream, judgement.ledger
        if (freshness := judgement.freshness.get(self.stage)) is not None:
            send_hours(self.stream, [self.stage], lambda: freshness)
        if stream is not None and judgement.results[0].failures:
            others = [stage for stage in self.stages if stage != self.stage]
            send_hours(self.stream, others, lambda: freshness_of(stream, snapshot_of(stream, ledger)))


class Settle(BaseOperator):
    """Checks the run's interval, and waits until its files have had their time to arrive."""

    def __init__(self, *, seconds: float, **kwargs: Any) -> None:
        super().__init__(task_id="settle", **kwargs)
        self.seconds = seconds

    def execute(self, context: Any) -> str:
        """Reschedule the task, which frees its slot, until files of the interval have arrived.

        The first line of the log is the interval, or the error in it.
        """
        try:
            interval = run_interval(context)
            _require_scheduled(interval, context)
        except AirflowFailException as error:
            LOG.error(str(error))
            raise
        by_hand = context["params"].get("from")
        origin = "the `from` and `to` of the trigger" if by_hand else "the run's own hours"
        LOG.info("interval %s UTC, %s", interval, origin)
        ready = interval.end + timedelta(seconds=self.seconds)
        if ready > datetime.now(UTC):
            LOG.info(
                "waits until %s UTC, as long as files of the interval may arrive", f"{ready:%Y-%m-%dT%H:%M}"
            )
            # The constructor has no type annotations.
            raise AirflowRescheduleException(ready)  # type: ignore[no-untyped-call]
        return str(interval)


MAX_FINDINGS, MAX_OF_BLOCK = 100, 10
"""Maximum number of findings in a report: in total, and per kind and block."""


class Report(_LedgerOperator):
    """Shows the run's interval after all stages, a line each, what the run did, and the findings of the
    interval, the worst first."""

    operator_extra_links = (PageLink(), RunLink())

    def __init__(self, *, stages: Sequence[str], **kwargs: Any) -> None:
        super().__init__(task_id="report", **kwargs)
        self.stages = tuple(stages)

    def execute(self, context: Any) -> list[str]:
        """Log and return the lines."""
        from transom.alerts.silences import count_silenced
        from transom.app.run_report import format_run
        from transom.core.terminal import counted
        from transom.features.registry import FINDING_ORDER
        from transom.findings.store import select_findings
        from transom.ledger.ledger import Ledger

        judgement = self.judge(self.stages, context)
        root, interval = f"{lake()}/{self.stream}", run_interval(context)
        lines = [result.summary for result in judgement.results]
        lines += [line for result in judgement.results for line in result.accepted]
        lines += format_run(Ledger(root), str(context["run_id"]), interval)
        silences = judgement.stream.silence if judgement.stream is not None else ()
        if silenced := count_silenced(root, silences, datetime.now(UTC), interval):
            lines.append(f"silenced: {counted(silenced, 'finding')}, of which no message is sent")
        selected, rest = select_findings(root, MAX_FINDINGS, MAX_OF_BLOCK, FINDING_ORDER, interval)
        for line in lines:
            LOG.info(line)
        for finding in selected:
            LOG.log(logging.WARNING if finding.severity == "high" else logging.INFO, str(finding))
        more = [rest] if rest else []
        for line in more:
            LOG.info(line)
        return [*lines, *map(str, selected), *more]
