"""What of a stream is up to date, for every command that says so: without a JVM."""

from collections.abc import Mapping
from datetime import datetime

from transom.app.definitions import definitions_of
from transom.core.intervals import Interval, format_hours
from transom.core.partitions import PartitionKey
from transom.engine.check_builders import waivers_of
from transom.engine.external import ExternalSources
from transom.features.ingest.specified import BLOCK, STAGE, Specified
from transom.ledger.ledger import Ledger
from transom.ledger.lineage import Lineage
from transom.ledger.snapshot import LedgerSnapshot
from transom.ledger.stage import Stage
from transom.ledger.staleness import Staleness
from transom.spec.stream import Stream


def snapshot_of(stream: Stream, ledger: Ledger) -> LedgerSnapshot:
    """The ledger's nodes, with what the stream reads that is not its own.

    Raises:
        LakeError: that is not there, or is not as the stream's file says.
    """
    fillers = tuple(filler for of in definitions_of(stream).values() for filler in of.fillers)
    return ExternalSources(ledger.root, fillers).beside(ledger.snapshot())


def staleness_of(stream: Stream, book: LedgerSnapshot) -> dict[str, Staleness]:
    """Return what is out of date of each stage that a stream has behind the first one."""
    accepted = waivers_of(stream)
    return {name: Staleness(stage, book, accepted) for name, stage in definitions_of(stream).items()}


def lineage_of(
    stream: Stream,
    book: LedgerSnapshot,
    specified: Specified | None = None,
    stages: Mapping[str, Staleness] | None = None,
) -> Lineage:
    """Return what of a stream is not up to date, as its ledger stands.

    Args:
        stages: as `staleness_of` has them, where they are known.
    """
    known = specified or Specified(stream)

    events = (STAGE, BLOCK, "events")
    stale = {
        node.hour
        for node, entry in book.troubled()
        if (node.stage, node.block, node.table) == events and (entry.status == "writing" or entry.in_old_form)
    }
    stale.update(
        book.required_hours.minus(book.hours_of(*events)),
        book.unlike(*events, known.expected, known.like(book)),
    )
    return Lineage(book, (stages or staleness_of(stream, book)).values(), stale.__contains__)


def stale_hours(stream: Stream, ledger: Ledger, stage: str, interval: Interval) -> dict[str, list[datetime]]:
    """Return the hours of an interval that are not up to date in a stage, by the reason in words.

    Raises:
        LakeError: what the stage reads that is not the stream's own is not there, or is not as declared.
    """
    of_stages = definitions_of(stream)
    fillers = of_stages[stage].fillers if stage in of_stages else ()
    book = ExternalSources(ledger.root, fillers).beside(ledger.snapshot(_upstream(of_stages, stage)))
    found = lineage_of(stream, book).of_stage(stage)
    return reasons({hour: root for hour, root in found.items() if hour in interval}, book)


def _upstream(stages: Mapping[str, Stage], stage: str) -> tuple[str, ...]:
    """A stage and all that it is made of."""
    found = {STAGE, stage}
    for name in reversed(list(stages)):
        if name in found:
            found.update(stages[name].ledger_stages)
    return tuple(sorted(found))


def reason(root: PartitionKey, book: LedgerSnapshot) -> str:
    """Return in words why what is computed from a node is not up to date."""
    (words,) = reasons({root.hour: root}, book)
    return words


def reasons(found: Mapping[datetime, PartitionKey], book: LedgerSnapshot) -> dict[str, list[datetime]]:
    """Return the hours of each reason in words: a block's table upstream, and what is the matter with it.

    Args:
        found: hours that are not up to date, each with the node for which.
    """
    grouped: dict[tuple[str, str, str, str], list[tuple[datetime, datetime]]] = {}
    for hour, root in found.items():
        group = root.stage, root.block, root.table, _state(root, book)
        grouped.setdefault(group, []).append((hour, root.hour))
    return {
        f"{stage} {block} ({table}) of {format_hours({of for _, of in hours})} is {state}": [
            h for h, _ in hours
        ]
        for (stage, block, table, state), hours in grouped.items()
    }


def _state(root: PartitionKey, book: LedgerSnapshot) -> str:
    entry = book.get(root)
    if entry is None:
        return "not computed"
    told = ("writing", "blocked", "quarantined", "damaged")
    return entry.status if entry.status in told else "out of date"
