"""Metrics of transom's tasks, through Airflow's own: StatsD, Datadog or OpenTelemetry.

Nothing is read or sent while Airflow's metrics are off. An error is a warning in the task's log, never a
failure of the task.
"""

import logging
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import wraps
from typing import TYPE_CHECKING, Any

from transom.core.intervals import Interval
from transom.core.locations import lake

if TYPE_CHECKING:
    from transom.ledger.freshness import Freshness

LOG = logging.getLogger(__name__)


def _if_on(send: Callable[..., None]) -> Callable[..., None]:
    """Return the function as one that does nothing while metrics are off, and never raises."""

    @wraps(send)
    def send_or_warn(*arguments: Any) -> None:
        try:
            if any(_is_set(name) for name in ("statsd_on", "statsd_datadog_enabled", "otel_on")):
                send(*arguments)
        except Exception as error:
            LOG.warning("metrics were not sent: %s", error)

    return send_or_warn


@_if_on
def send_run(stream: str, run_id: str, stages: Sequence[str], interval: Interval) -> None:
    """Send the rows and the duration of each stage of a job, and its findings by severity.

    Args:
        stream: the name of the stream.
        run_id: the prefix of the run ids of the job's stages in the ledger.
        stages: the stages of the job.
        interval: the interval of the run, whose findings are counted.
    """
    from airflow.sdk.observability import stats

    from transom.findings.store import count_by_severity
    from transom.ledger.ledger import Ledger
    from transom.storage.tables import literal

    root = f"{lake()}/{stream}"
    for run in Ledger(root).runs(f"starts_with(run_id, {literal(f'{run_id} ')})"):
        stage = {"stream": stream, "stage": run["stage"]}
        _emit(stats.incr, "runs", 1, stage)
        _emit(stats.incr, "rows", run["rows_out"], stage)
        _emit(stats.timing, "duration", timedelta(seconds=dict(run["phase_seconds"])["total"]), stage)
    for (name, severity), count in count_by_severity(root, stages, interval).items():
        _emit(stats.gauge, "findings", count, {"stream": stream, "stage": name, "severity": severity})


@_if_on
def send_hours(stream: str, stages: Sequence[str], look: "Callable[[], Freshness]") -> None:
    """Send the number of stale and of quarantined hours of stages.

    Args:
        stream: the name of the stream.
        stages: the stages.
        look: returns the freshness of these stages.
    """
    from airflow.sdk.observability import stats

    freshness = look()
    quarantined = {
        (partition.stage, partition.hour)
        for partition, state in freshness.snapshot.troubled()
        if state.status == "quarantined"
    }
    for stage in stages:
        tags = {"stream": stream, "stage": stage}
        _emit(stats.gauge, "stale_hours", len(freshness.stale(stage)), tags)
        _emit(stats.gauge, "quarantined_hours", sum(of == stage for of, _ in quarantined), tags)


def _emit(send: Callable[..., None], name: str, value: Any, tags: dict[str, str]) -> None:
    """Send a value; without tags in Airflow's StatsD, their values are parts of the name."""
    if _is_set("statsd_datadog_enabled"):
        tagged = _is_set("statsd_datadog_metrics_tags")
    else:
        tagged = _is_set("statsd_influxdb_enabled") or not _is_set("statsd_on")
    if tagged:
        send(f"transom.{name}", value, tags=tags)
    else:
        send(".".join(["transom", name, *tags.values()]), value)


def _is_set(name: str) -> bool:
    from airflow.sdk.configuration import conf

    return bool(conf.getboolean("metrics", name, fallback=False))
