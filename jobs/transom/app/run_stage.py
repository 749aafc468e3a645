"""A stage's run over an interval: chunk by chunk, with its row in the ledger.

It is told its interval and asks no clock what to compute; the clock is read once, for `runs`.
"""

import logging
import resource
import time
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from pkgutil import resolve_name

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from pyspark.sql import SparkSession

from transom import __version__
from transom.app.run_chunk import Context, run_chunk
from transom.core.intervals import Interval
from transom.core.partitions import SOURCE_STAGE, PartitionKey, PartitionState
from transom.core.terminal import counted
from transom.engine.compaction import compact
from transom.engine.runner import Outcome
from transom.features.registry import INGEST_COUNTERS
from transom.findings import store as findings
from transom.findings import sync
from transom.ledger.ledger import Ledger, Run
from transom.spec.stream import Stream
from transom.storage.store import Store
from transom.storage.tables import LakeError, one_line_message

LOG = logging.getLogger(__name__)


def root_of(lake: str, stream: Stream) -> str:
    """Where the tables of a stream are."""
    return f"{lake.rstrip('/')}/{stream.name}"


def _counted(stream: Stream, outcome: Outcome, figures: Mapping[str, int]) -> str:
    """What a run has counted that a person sees."""
    words = {**INGEST_COUNTERS, **{name: of for f in stream.features for name, of in f.counters.items()}}
    text = ""
    for name in filter(figures.get, words):
        limit = f" of at most {outcome.limits[name]}" if name in outcome.limits else ""
        text += f", {counted(figures[name], *words[name])}{limit}"
    return text


def require_inputs(stage: str, stream: Stream, lake: str) -> None:
    """Looks for what a stage reads, before it makes anything in the lake.

    Raises:
        LakeError: the stage whose rows it reads has never run there.
    """
    before, root = stream.upstream_stage(stage), root_of(lake, stream)
    if before is None:
        return
    tables = {feature.name: feature.input_table for feature in stream.features}
    table = tables.get(before) or "events"
    try:
        there = DeltaTable.is_deltatable(f"{root}/{table}")
    except (DeltaError, OSError) as error:
        raise LakeError(f"lake: {root} cannot be read: {one_line_message(error)}") from error
    if not there:
        raise LakeError(
            f"lake: {stage} reads the table {table}, and {before} of {stream.name} has never run in {root}; "
            f"run jobs/{before}.py over the interval first, or jobs/run.py, which runs them all"
        )


def run_stage(
    spark: SparkSession,
    stage: str,
    stream: Stream,
    interval: Interval,
    *,
    lake: str,
    ledger: Ledger | None = None,
    run_id: str | None = None,
    trigger: str = "by hand",
    began: float | None = None,
    recompute: bool = False,
) -> Outcome:
    """Run a stage over an interval, chunk by chunk, record the run, and log in a line what was done.

    Args:
        run_id: a name for the run, None is the stage's. In the ledger it is followed by a mark that no other
            run has: claims go by it, and two runs may be given one name, a retry beside the first try say.
        ledger: the stream's, where there is one at hand.
        began: when the run began on the monotonic clock, where that was before its session.
        recompute: whether the interval's hours are computed and written even where they are fresh.

    Raises:
        LakeError: the lake cannot be used, or a stage that this one builds on has never run there.
    """
    require_inputs(stage, stream, lake)
    entered = time.monotonic()
    began = entered if began is None else began
    run_id = f"{run_id or stage} {uuid.uuid4().hex[:12]}"
    root = root_of(lake, stream)
    seconds = {"session": round(entered - began, 3)}
    total = Outcome()
    ledger = ledger or Ledger(root)
    chunks = list(interval.chunks(stream.chunk))
    # What a chunk's checks saw is told from what an earlier chunk's saw in the same hour.
    names = [run_id] if len(chunks) == 1 else [f"{run_id} {number}" for number in range(len(chunks))]
    for name, chunk in zip(names, chunks, strict=True):
        of_chunk = Context(Store(spark, root), ledger, stream, interval, name, chunk, seconds, recompute)
        total.add(run_chunk(stage, of_chunk))
        compact(ledger, stage)
    found = time.monotonic()
    sync_findings(ledger, stream, stage, total.stale)
    seconds["findings"] = round(time.monotonic() - found, 3)
    gauges = {} if stage == SOURCE_STAGE else stream.feature(stage).gauges(stream)
    figures = {**total.counters, **total.gauges, **gauges}
    published = f"{total.published} published"
    if total.incomplete:
        published += f" ({total.incomplete} of them incomplete)"
    ledger.record_run(
        Run(
            run_id=run_id,
            trigger=trigger,
            stage=stage,
            start=interval.start,
            end=interval.end,
            partitions_repaired=total.partitions_repaired,
            stale_since=total.stale_since,
            rows_read=total.counters.get("lines_read", 0),
            rows_out=total.rows_out,
            phase_seconds={**seconds, "total": round(time.monotonic() - began, 3)},
            peak_memory_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
            code_version=__version__,
            finished_at=datetime.now(UTC),
            counters=figures,
            counter_limits=total.limits,
        )
    )
    LOG.info(
        f"{stage} {stream.name} {interval}: {published}, {total.quarantined} quarantined, "
        f"{total.blocked} blocked, {total.partitions_repaired} of them repaired (tables' hours); "
        f"{counted(total.rows_out, 'row')}" + _counted(stream, total, figures)
    )
    return total


def sync_findings(
    ledger: Ledger, stream: Stream, stage: str, stale: Mapping[PartitionKey, PartitionState | None]
) -> None:
    """Bring the findings of a stage up to date, and with the first stage those of stages that are no more.

    Args:
        stale: as in `findings.publish`.
    """
    nouns = {feature.name: feature.rows for feature in stream.features}
    noun = nouns.get(stage, "events")
    findings.publish(ledger, stream.name, stage, stale, stream.built_in, noun)
    gone = findings.stages(ledger.root) - {*stream.stages, stage} if stage == SOURCE_STAGE else set()
    for name in gone:
        findings.publish(ledger, stream.name, name, {}, stream.built_in, nouns.get(name, "rows"))
    for feature in stream.features:
        if feature.name in {stage, *gone} and feature.findings is not None:
            sync.publish(ledger, stream, resolve_name(feature.findings))
