"""Run a stage over an interval, chunk by chunk, and record the run.

Only the interval determines what is computed. The clock is read only for `runs`.
"""

import logging
import resource
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pkgutil import resolve_name
from typing import Any

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from pyspark.sql import SparkSession

from transom import __version__
from transom.app.definitions import definition, shared_state, stage_names
from transom.core.intervals import Interval
from transom.core.partitions import SOURCE_STAGE, PartitionKey, PartitionState
from transom.core.terminal import counted
from transom.engine.check_builders import waivers_of
from transom.engine.compaction import compact
from transom.engine.run_outcome import Outcome
from transom.engine.runner import drop_removed_blocks, run_steps
from transom.features.ingest.stage import ingest
from transom.features.ingest.tables import Tables
from transom.features.registry import INGEST_COUNTERS
from transom.findings import store as findings
from transom.findings import sync
from transom.ledger.ledger import Ledger, Run
from transom.ledger.run_details import FindingChanges, written_ranges
from transom.spec.stream import Stream
from transom.storage.session_on_demand import SessionOnDemand
from transom.storage.store import Store
from transom.storage.tables import LakeError, one_line_message

LOG = logging.getLogger(__name__)


@dataclass
class Context:
    """The context of a run for a stage.

    Attributes:
        store: the store of the tables.
        ledger: the ledger of the stream.
        stream: the stream.
        interval: the interval of the run.
        run_id: the run, with the number of the chunk if there are several.
        chunk: the part of the interval to compute.
        seconds: the duration of each phase of the run so far, in seconds.
        recompute: whether fresh hours of the chunk are computed and written, too.
    """

    store: Store
    ledger: Ledger
    stream: Stream
    interval: Interval
    run_id: str
    chunk: Interval
    seconds: dict[str, float] = field(default_factory=dict)
    recompute: bool = False


def root_of(lake: str, stream: Stream) -> str:
    """Return the folder of a stream's tables."""
    return f"{lake.rstrip('/')}/{stream.name}"


def require_inputs(stage: str, stream: Stream, lake: str) -> None:
    """Check that a stage's input exists, before anything is created in the lake.

    Raises:
        LakeError: the upstream stage has never run in the lake, or the lake cannot be read.
    """
    upstream, root = stream.upstream_stage(stage), root_of(lake, stream)
    if upstream is None:
        return
    table = {feature.name: feature.input_table for feature in stream.features}.get(upstream) or "events"
    try:
        exists = DeltaTable.is_deltatable(f"{root}/{table}")
    except (DeltaError, OSError) as error:
        raise LakeError(f"lake: {root} cannot be read: {one_line_message(error)}") from error
    if not exists:
        raise LakeError(
            f"lake: {stage} reads the table {table}, and {upstream} of {stream.name} has never run in "
            f"{root}; run jobs/{upstream}.py over the interval first, or jobs/run.py, which runs them all"
        )


def run_chunk(stage: str, context: Context) -> Outcome:
    """Bring a chunk of a stage up to date, and add its time to the phases of the run."""
    store, ledger, stream, run_id = context.store, context.ledger, context.stream, context.run_id
    chunk, interval, recompute = context.chunk, context.interval, context.recompute
    is_source = stage == SOURCE_STAGE
    steps = () if is_source else definition(stream, stage).steps
    store.create(*(Tables.of(stream) if is_source else [step.table for step in steps if step.outputs]))
    start, session = time.monotonic(), store.session_seconds
    if is_source:
        outcome = ingest(store, ledger, stream, chunk, run_id, interval, recompute)
        # Stages that the stream no longer has do not run, so their rows are dropped here.
        removed = [name for name in stage_names(stream) if name not in stream.stages]
        if removed and ledger.snapshot(removed):
            for name in removed:
                drop_removed_blocks(store, ledger, definition(stream, name), run_id)
    else:
        outcome = run_steps(
            store, ledger, definition(stream, stage), chunk, stream.repair_window, run_id, waivers_of(stream),
            interval, stream.retention, shared_state(stream, stage), recompute,
        )  # fmt: skip
    session = store.session_seconds - session
    spent = {"session": session, stage: time.monotonic() - start - session}
    for phase, seconds in spent.items():
        context.seconds[phase] = round(context.seconds.get(phase, 0.0) + seconds, 3)
    return outcome


def run_stage(
    spark: SparkSession | SessionOnDemand,
    stage: str,
    stream: Stream,
    interval: Interval,
    *,
    lake: str,
    run_id: str | None = None,
    trigger: str = "by hand",
    ledger: Ledger | None = None,
    began: float | None = None,
    recompute: bool = False,
) -> Outcome:
    """Run a stage over an interval, chunk by chunk, record the run, and log a line of counts.

    Args:
        spark: the session.
        stage: the name of the stage.
        stream: the stream.
        interval: the interval.
        lake: the path or URI of the lake.
        run_id: the name of the run. Default: the stage. A unique suffix is added, as the id identifies
            claims, and two runs can have the same name, such as a task and its retry.
        trigger: what started the run, for `runs`.
        ledger: the ledger of the stream, if it is already open.
        began: the start of the run on the monotonic clock, if it was before the session's start.
        recompute: whether fresh hours of the interval are computed and written, too.

    Raises:
        LakeError: the lake cannot be used, or the upstream stage has never run there.
    """
    require_inputs(stage, stream, lake)
    now = time.monotonic()
    began = now if began is None else began
    run_id = f"{run_id or stage} {uuid.uuid4().hex[:12]}"
    root = root_of(lake, stream)
    seconds = {"session": round(now - began, 3)}
    total = Outcome()
    ledger = ledger or Ledger(root)
    chunks = list(interval.chunks(stream.chunk))
    for number, chunk in enumerate(chunks):
        # A chunk has its own id: its check results must not mix with those of another chunk on the same hour.
        name = run_id if len(chunks) == 1 else f"{run_id} {number}"
        store = Store(spark, root, ledger)
        context = Context(store, ledger, stream, interval, name, chunk, seconds, recompute)
        total.add(run_chunk(stage, context))
        compact(ledger, stage)
    start = time.monotonic()
    changes = sync_findings(ledger, stream, stage, total.stale)
    seconds["findings"] = round(time.monotonic() - start, 3)
    gauges = {} if stage == SOURCE_STAGE else stream.feature(stage).gauges(stream)
    counters = {**total.counters, **total.gauges, **gauges}
    run = finished_run(
        run_id, trigger, stage, interval, began,
        partitions_repaired=total.partitions_repaired, stale_since=total.stale_since,
        rows_read=total.counters.get("lines_read", 0), rows_out=total.rows_out, phase_seconds=seconds,
        counters=counters, counter_limits=total.limits,
        written=written_ranges(total.written), files=total.files, findings=changes.rows,
        finding_counts=changes.counts,
    )  # fmt: skip
    ledger.record_run(run)
    incomplete = f" ({total.incomplete} incomplete)" if total.incomplete else ""
    outside = total.partitions_repaired
    repaired = f", of which {outside} outside the interval" if outside else ""
    LOG.info(
        f"{stage} {stream.name} {interval}: {counted(total.published, 'partition')} published{incomplete}, "
        f"{total.quarantined} quarantined, {total.blocked} blocked{repaired}; "
        f"{counted(total.rows_out, 'row')} written" + _format_counters(stream, counters, total.limits)
    )
    return total


def finished_run(
    run_id: str, trigger: str, stage: str, interval: Interval, began: float, **fields: Any
) -> Run:
    """Return the row of `runs` of a run that ends now.

    Args:
        run_id: as of `Run`.
        trigger: as of `Run`.
        stage: as of `Run`.
        interval: the interval of the run.
        began: the start of the run on the monotonic clock.
        fields: further fields of `Run`; the phase `total` is added.
    """
    return Run(
        run_id=run_id,
        trigger=trigger,
        stage=stage,
        start=interval.start,
        end=interval.end,
        peak_memory_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        code_version=__version__,
        finished_at=datetime.now(UTC),
        phase_seconds={**fields.pop("phase_seconds", {}), "total": round(time.monotonic() - began, 3)},
        **fields,
    )


def _format_counters(stream: Stream, counters: Mapping[str, int], limits: Mapping[str, int]) -> str:
    """Return as text the counters that have a noun, each after a comma."""
    nouns = {**INGEST_COUNTERS, **{name: noun for f in stream.features for name, noun in f.counters.items()}}
    return "".join(
        f", {counted(counters[name], *nouns[name])}"
        + (f" of at most {limits[name]}" if name in limits else "")
        for name in filter(counters.get, nouns)
    )


def sync_findings(
    ledger: Ledger, stream: Stream, stage: str, stale: Mapping[PartitionKey, PartitionState | None]
) -> FindingChanges:
    """Update the findings of a stage, and after the source stage those of removed stages.

    Returns:
        The findings that are new, updated or withdrawn.

    Args:
        ledger: the ledger of the stream.
        stream: the stream.
        stage: the name of the stage.
        stale: as of `findings.sync_ledger_findings`.
    """
    nouns, changes = {feature.name: feature.rows for feature in stream.features}, FindingChanges()
    noun = nouns.get(stage, "events")
    findings.sync_ledger_findings(ledger, stream.name, stage, stale, stream.built_in, noun, changes)
    removed = findings.stages(ledger) - {*stream.stages, stage} if stage == SOURCE_STAGE else set()
    for name in removed:
        noun = nouns.get(name, "rows")
        findings.sync_ledger_findings(ledger, stream.name, name, {}, stream.built_in, noun, changes)
    for feature in stream.features:
        if feature.name in {stage, *removed} and feature.findings is not None:
            sync.sync_table_findings(ledger, stream, resolve_name(feature.findings), changes)
    return changes
