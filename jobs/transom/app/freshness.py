"""The freshness of a stream's partitions, for commands and gates, without a JVM."""

from collections.abc import Mapping
from datetime import datetime

from transom.app.definitions import definitions_of
from transom.core.intervals import Interval
from transom.engine.check_builders import waivers_of
from transom.engine.external import ExternalSources
from transom.engine.gate_text import format_roots
from transom.features.ingest.expected_inputs import STAGE, ExpectedInputs
from transom.ledger.freshness import Freshness
from transom.ledger.ledger import Ledger
from transom.ledger.snapshot import LedgerSnapshot
from transom.ledger.stage import Stage
from transom.spec.stream import Stream


def snapshot_of(stream: Stream, ledger: Ledger, stage: str | None = None) -> LedgerSnapshot:
    """Return a snapshot of the ledger, with the external sources of the stream.

    Args:
        stream: the stream.
        ledger: the ledger of the stream.
        stage: if given, only this stage and its inputs.

    Raises:
        LakeError: an external source does not exist, or differs from its declaration.
    """
    stages = definitions_of(stream)
    fillers = tuple(filler for name, of in stages.items() if stage in (None, name) for filler in of.fillers)
    snapshot = ledger.snapshot(None if stage is None else _upstream(stages, stage))
    return ExternalSources(ledger.root, fillers).beside(snapshot)


def freshness_of(stream: Stream, snapshot: LedgerSnapshot) -> Freshness:
    """Return the freshness of a stream's partitions."""
    return Freshness(snapshot, definitions_of(stream).values(), waivers_of(stream), ExpectedInputs(stream))


def stale_hours(stream: Stream, ledger: Ledger, stage: str, interval: Interval) -> dict[str, list[datetime]]:
    """Return `stale_hours_of` for the ledger as it is now; raise as `snapshot_of`."""
    return stale_hours_of(freshness_of(stream, snapshot_of(stream, ledger, stage)), stage, interval)


def stale_hours_of(freshness: Freshness, stage: str, interval: Interval) -> dict[str, list[datetime]]:
    """Return the stale hours of a stage in an interval, by the reason as text."""
    stale = {hour: root for hour, root in freshness.stale(stage).items() if hour in interval}
    return format_roots(stale, freshness.snapshot)


def _upstream(stages: Mapping[str, Stage], stage: str) -> tuple[str, ...]:
    """Return a stage and all its upstream stages."""
    upstream = {STAGE, stage}
    for name in reversed(list(stages)):
        if name in upstream:
            upstream.update(stages[name].ledger_stages)
    return tuple(sorted(upstream))
