"""What of a stream is up to date, for every command that says so: without a JVM."""

from collections.abc import Mapping
from datetime import datetime

from transom.app.definitions import definitions_of
from transom.core.intervals import Interval
from transom.engine.check_builders import waivers_of
from transom.engine.external import ExternalSources
from transom.engine.gate_text import format_roots
from transom.features.ingest.specified import STAGE, Specified
from transom.ledger.freshness import Freshness
from transom.ledger.ledger import Ledger
from transom.ledger.snapshot import LedgerSnapshot
from transom.ledger.stage import Stage
from transom.spec.stream import Stream


def snapshot_of(stream: Stream, ledger: Ledger, stage: str | None = None) -> LedgerSnapshot:
    """Return what the ledger says, with what the stream reads that is not its own.

    Args:
        stage: this stage and what it is computed from is enough; None is everything.

    Raises:
        LakeError: what it reads is not there, or is not as the stream's file says.
    """
    stages = definitions_of(stream)
    fillers = tuple(filler for name, of in stages.items() if stage in (None, name) for filler in of.fillers)
    of_ledger = ledger.snapshot(None if stage is None else _upstream(stages, stage))
    return ExternalSources(ledger.root, fillers).beside(of_ledger)


def freshness_of(stream: Stream, snapshot: LedgerSnapshot) -> Freshness:
    """Return what of a stream is fresh, and why the rest is not."""
    return Freshness(snapshot, definitions_of(stream).values(), waivers_of(stream), Specified(stream))


def stale_hours(stream: Stream, ledger: Ledger, stage: str, interval: Interval) -> dict[str, list[datetime]]:
    """Return the hours of an interval that are not up to date in a stage, by the reason in words.

    Raises:
        LakeError: what the stage reads that is not the stream's own is not there, or is not as declared.
    """
    book = snapshot_of(stream, ledger, stage)
    stale = freshness_of(stream, book).stale(stage)
    return format_roots({hour: root for hour, root in stale.items() if hour in interval}, book)


def _upstream(stages: Mapping[str, Stage], stage: str) -> tuple[str, ...]:
    """A stage and all that it is made of."""
    found = {STAGE, stage}
    for name in reversed(list(stages)):
        if name in found:
            found.update(stages[name].ledger_stages)
    return tuple(sorted(found))
