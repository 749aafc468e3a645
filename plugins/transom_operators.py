"""The operators of transom's DAGs, and how a run finds its interval."""

import logging
import os
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowFailException, AirflowRescheduleException

from transom.core.intervals import Interval, format_hour

if TYPE_CHECKING:
    from transom.engine.gate import GateResult
    from transom.ledger.snapshot import LedgerSnapshot
    from transom.spec.checks import WaiverSpec

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


def trigger(run: Any) -> str:
    """Why a run runs, for the ledger: schedule, manual or backfill."""
    kind = str(getattr(run.run_type, "value", run.run_type))
    return {"scheduled": "schedule", "backfill": "backfill"}.get(kind, kind)


class SubmitStage(SparkSubmitOperator):
    """The house's spark-submit of a job: client mode, connection and Python named, nothing forced on a
    cluster."""

    def __init__(
        self, *, job: str, stream: str, stream_file: str, script: Path | None = None, **kwargs: Any
    ) -> None:
        super().__init__(
            task_id=job,
            application=str(script or home() / "jobs" / f"{job}.py"),
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
                "--trigger", "{{ trigger(dag_run) }}",
                "--recompute", "{{ params.recompute }}",
            ],
            **kwargs,
        )  # fmt: skip
        self.stream = stream

    def post_execute(self, context: Any, result: Any = None) -> None:
        """Give each asset event the run's interval and what stands in it."""
        from transom.ledger.ledger import Ledger

        interval = _of_context(context)
        book = Ledger(f"{lake()}/{self.stream}").snapshot()
        for asset in self.outlets:
            table = asset.uri.rpartition("/")[2]
            context["outlet_events"][asset].extra = _asset_facts(self.stream, table, interval, book)


def _asset_facts(stream: str, table: str, interval: Interval, book: "LedgerSnapshot") -> dict[str, Any]:
    """What an asset event says of a table: the interval, and hours and rows that stand in it."""
    from transom.findings.store import NAME, count_findings

    facts: dict[str, Any] = {"from": format_hour(interval.start), "to": format_hour(interval.end)}
    if table == NAME:
        return {**facts, "findings": count_findings(f"{lake()}/{stream}", interval)}
    entries = [
        (node.hour, entry) for node, entry in book.items() if node.table == table and node.hour in interval
    ]
    standing = [(hour, entry) for hour, entry in entries if entry.status == "published"]
    return {
        **facts,
        "hours_published": len({hour for hour, _ in standing}),
        "hours_withheld": len({hour for hour, _ in entries} - {hour for hour, _ in standing}),
        "rows": sum(entry.rows for _, entry in standing),
    }


def _judged(
    stage: str,
    stream: str,
    stream_file: str,
    repair_window: timedelta,
    waivers: Sequence["WaiverSpec"],
    context: Any,
) -> "GateResult":
    """What the ledger says of one stage of a run; its warnings are logged."""
    from transom.app.command_lines import submit
    from transom.app.freshness import stale_hours
    from transom.engine.gate import evaluate_gate
    from transom.features.registry import BUILT_IN, OUTLETS
    from transom.ledger.ledger import Ledger
    from transom.ledger.waivers import entries_of
    from transom.storage.tables import LakeError
    from transom.stream import SpecificationError, load

    command = f"{submit('run', stream_file, lake())}   (or Trigger the DAG with these `from` and `to`)"
    ledger, interval, log = Ledger(f"{lake()}/{stream}"), _of_context(context), logging.getLogger(__name__)
    stale: dict[str, list[datetime]] = {}
    try:
        stale = stale_hours(load(stream_file), ledger, stage, interval)
    except (LakeError, SpecificationError) as error:
        log.warning("stale hours are not looked for: %s", error)
    judgement = evaluate_gate(
        ledger,
        stage,
        stream,
        interval,
        command,
        repair_window,
        entries_of(waivers),
        stale,
        BUILT_IN,
        OUTLETS.get(stage),
    )
    for warning in judgement.warnings:
        log.warning(warning)
    return judgement


class Gate(BaseOperator):
    """Reads the ledger and fails, without a retry, where something of the interval is withheld."""

    def __init__(
        self,
        *,
        stage: str,
        stream: str,
        stream_file: str,
        repair_window: timedelta,
        waivers: Sequence["WaiverSpec"] = (),
        **kwargs: Any,
    ) -> None:
        super().__init__(task_id=f"{stage}_gate", **kwargs)
        self.waivers = tuple(waivers)
        self.stage = stage
        self.stream = stream
        self.stream_file = stream_file
        self.repair_window = repair_window

    def execute(self, context: Any) -> str:
        """Judges the run's interval; its one line is the task's result."""
        judgement = _judged(
            self.stage, self.stream, self.stream_file, self.repair_window, self.waivers, context
        )
        for line in judgement.accepted:
            logging.getLogger(__name__).info(line)
        if judgement.failures:
            raise AirflowFailException("\n" + "\n".join(judgement.failures))
        return judgement.summary


class Settle(BaseOperator):
    """Checks the run's interval, and waits until its files have had their time to arrive."""

    def __init__(self, *, seconds: float, **kwargs: Any) -> None:
        super().__init__(task_id="settle", **kwargs)
        self.seconds = seconds

    def execute(self, context: Any) -> str:
        """Comes back later, without holding a slot, while it is too early.

        The first line of its log is the interval, or what is wrong with it.
        """
        log = logging.getLogger(__name__)
        try:
            interval = _of_context(context)
            _require_scheduled(interval, context)
        except AirflowFailException as error:
            log.error(str(error))
            raise
        by_hand = context["params"].get("from")
        chosen = "the `from` and `to` of the trigger" if by_hand else "the run's own hours"
        log.info("interval %s UTC, %s", interval, chosen)
        ready = interval.end + timedelta(seconds=self.seconds)
        if ready > datetime.now(UTC):
            log.info(
                "waits until %s UTC, as long as files of the interval may arrive", f"{ready:%Y-%m-%dT%H:%M}"
            )
            # Airflow gives its constructor no types.
            raise AirflowRescheduleException(ready)  # type: ignore[no-untyped-call]
        return str(interval)


MOST, EACH = 100, 10
"""Findings that a report names one by one, in all and of each kind and block."""


class Report(BaseOperator):
    """What stands of the run's interval after all stages, a line each; what the run did; and what has been
    found in the interval, the worst first."""

    def __init__(
        self,
        *,
        stages: Sequence[str],
        stream: str,
        stream_file: str,
        repair_window: timedelta,
        arrival_delay: timedelta = timedelta(0),
        waivers: Sequence["WaiverSpec"] = (),
        **kwargs: Any,
    ) -> None:
        super().__init__(task_id="report", **kwargs)
        self.waivers = tuple(waivers)
        self.arrival_delay = arrival_delay
        self.stages = tuple(stages)
        self.stream = stream
        self.stream_file = stream_file
        self.repair_window = repair_window

    def execute(self, context: Any) -> list[str]:
        """Logs and returns the lines."""
        from transom.engine.run_report import format_run
        from transom.features.registry import FINDING_ORDER
        from transom.findings.store import select_findings
        from transom.ledger.ledger import Ledger

        judged = [
            _judged(stage, self.stream, self.stream_file, self.repair_window, self.waivers, context)
            for stage in self.stages
        ]
        root, interval = f"{lake()}/{self.stream}", _of_context(context)
        lines = [judgement.summary for judgement in judged]
        lines += [line for judgement in judged for line in judgement.accepted]
        lines += format_run(Ledger(root), str(context["run_id"]), interval, self.arrival_delay)
        found = select_findings(root, MOST, EACH, FINDING_ORDER, interval)
        lines += map(str, found.findings)
        lines += [found.rest] if found.rest else []
        for line in lines:
            logging.getLogger(__name__).info(line)
        return lines
