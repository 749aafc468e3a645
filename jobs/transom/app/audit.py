"""Compare the published rows of a stage with an exact count of the same windows."""

import logging
import sys
import time
import uuid
from collections.abc import Sequence

from pyspark.sql import SparkSession

from transom.app.freshness import freshness_of, snapshot_of
from transom.app.run_stage import finished_run
from transom.core.intervals import Interval
from transom.ledger.ledger import Ledger
from transom.spec.feature import Feature
from transom.stream import Stream

LOG = logging.getLogger(__name__)


def audit(
    stages: Sequence[str] | None, spark: SparkSession, stream: Stream, interval: Interval, root: str
) -> None:
    """Count the windows of some stages exactly, log the comparison, and record it in `runs`.

    Hours that are stale or not published are skipped.

    Args:
        stages: the stages; those without an audit are skipped. Default: all.
        spark: the session.
        stream: the stream.
        interval: the hours to audit.
        root: the stream's folder in the lake.

    Raises:
        SystemExit: a row violates the guarantee of its sketch.
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
    """Return whether every row of a feature satisfies its guarantee."""
    began = time.monotonic()
    assert feature.audit is not None
    ledger = Ledger(root)
    freshness = freshness_of(stream, snapshot_of(stream, ledger, feature.name))
    results = list(feature.audit(spark, stream, interval, root, freshness))
    counters: dict[str, int] = {}
    for result in results:
        # The ledger's counters are integers.
        rates = {f"{name}_millionths": round(rate * 1e6) for name, rate in result.rates.items()}
        counters |= {f"{result.block}.{name}": count for name, count in {**result.counts, **rates}.items()}
    run = finished_run(
        f"{feature.name} audit {uuid.uuid4().hex[:12]}", "audit", feature.name, interval, began,
        partitions_repaired=0, stale_since=None, rows_read=0, rows_out=0,
        counters=counters, counter_limits={},
    )  # fmt: skip
    ledger.record_run(run)
    for result in results:
        LOG.info("audit of %s", result)
    audited = {result.block for result in results}
    for name in (name for name in stream.blocks(feature.block) if name not in audited):
        LOG.info("audit of %s: no hour of %s is published, up to date, and reports a window", name, interval)
    return all(result.sound for result in results)
