"""What a stage has published beside an exact count of the same windows."""

import logging
import resource
import sys
import time
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime

from pyspark.sql import SparkSession

from transom import __version__
from transom.app.freshness import freshness_of, snapshot_of
from transom.core.intervals import Interval
from transom.ledger.ledger import Ledger, Run
from transom.spec.feature import Feature
from transom.stream import Stream

LOG = logging.getLogger(__name__)


def audit(
    stages: Sequence[str] | None, spark: SparkSession, stream: Stream, interval: Interval, root: str
) -> None:
    """Count the windows of some stages exactly, print the comparison, and record it in `runs`.

    Hours that are not published, or out of date, are left out.

    Args:
        stages: those without an audit of their own are passed over; None is all.
        root: the folder of the stream's tables.

    Raises:
        SystemExit: a row breaks the guarantee of its sketch.
    """
    names = stream.stages if stages is None else stages
    features = [feature for feature in stream.features if feature.name in names and feature.audit]
    unsound = [feature.name for feature in features if not _audit(feature, spark, stream, interval, root)]
    if unsound:
        names = ", ".join(unsound)
        sys.exit(f"{names}: the audit has found items below the guarantee or outside their bounds")


def _audit(
    feature: Feature[Stream], spark: SparkSession, stream: Stream, interval: Interval, root: str
) -> bool:
    """Return whether every row of a feature keeps to its guarantee."""
    start = time.monotonic()
    assert feature.audit is not None
    freshness = freshness_of(stream, snapshot_of(stream, Ledger(root), feature.name))
    results = feature.audit(spark, stream, interval, root, freshness)
    # The ledger counts in whole numbers.
    work = {
        f"{result.block}.{name}": number
        for result in results
        for name, number in {
            **result.counts,
            **{f"{name}_millionths": round(rate * 1e6) for name, rate in result.rates.items()},
        }.items()
    }
    Ledger(root).record_run(
        Run(
            run_id=f"{feature.name} audit {uuid.uuid4().hex[:12]}",
            trigger="audit",
            stage=feature.name,
            start=interval.start,
            end=interval.end,
            partitions_repaired=0,
            stale_since=None,
            rows_read=0,
            rows_out=0,
            phase_seconds={"total": round(time.monotonic() - start, 3)},
            peak_memory_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
            code_version=__version__,
            finished_at=datetime.now(UTC),
            counters=work,
            counter_limits={},
        )
    )
    for result in results:
        LOG.info("audit of %s", result)
    for name in stream.blocks(feature.block):
        if name not in {result.block for result in results}:
            LOG.info(
                "audit of %s: no hour of %s is published, up to date, and reports a window", name, interval
            )
    return all(result.sound for result in results)
