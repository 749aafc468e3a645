"""Which hours a run computes: pure arithmetic on the ledger, as in a build system."""

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from transom.intervals import Interval
from transom.lake.ledger import EMPTY_DIGEST, STANDS, Book, Entry, Node
from transom.lake.stage import Part

HOUR = timedelta(hours=1)


def fingerprint(value: object) -> str:
    """A short stable hash of plain data."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:24]


def asked(interval: Interval, known: Iterable[datetime], heal: timedelta) -> list[datetime]:
    """The hours of an interval, and of a gap before it.

    A gap begins after an hour that has a row and is shorter than `heal`: a scheduler that slept. A
    longer one is a decision, and left alone.
    """
    hours = list(interval.hours())
    before = [hour for hour in known if hour < interval.start]
    if before:
        first = max(before) + HOUR
        if timedelta(0) < interval.start - first < heal:
            hours = [*Interval(first, interval.start).hours(), *hours]
    return hours


def reach(part: Part, hour: datetime) -> list[tuple[str, Node]]:
    """Every node that one hour of a block reads, with the name that its digests go under."""
    return [
        (reads.table, Node(reads.stage, reads.block, reads.table, hour + offset * HOUR))
        for reads in part.reads
        for offset in range(-reads.back, reads.forward + 1)
    ]


def expected_inputs(part: Part, version: int, hour: datetime, book: Book) -> dict[str, str]:
    """A hash for each thing that an hour of a block is computed from.

    An hour that nobody asked for has no row and counts as empty, exactly like an empty hour.
    """
    seen: dict[str, list[tuple[str, bool]]] = {}
    for name, node in reach(part, hour):
        entry = book.get(node)
        seen.setdefault(name, []).append((entry.digest, entry.complete) if entry else (EMPTY_DIGEST, True))
    return {
        **{name: fingerprint(digests) for name, digests in seen.items()},
        "specification": fingerprint(part.shape),
        "version": str(version),
    }


def is_stale(entry: Entry, inputs: Mapping[str, str], checks: str) -> bool:
    """Whether a node's recorded inputs differ from the expected ones.

    A quarantined hour is looked at again, too, when the checks that withheld it have changed.
    """
    match entry.status:
        case "published" | "expired":
            return entry.inputs != inputs
        case "quarantined":
            return entry.inputs != {**inputs, "checks": checks}
        case _:
            return True


@dataclass(frozen=True)
class Plan:
    """What a run does with the nodes of one table.

    Attributes:
        targets: hours to compute, by block.
        inputs: the expected inputs of every target.
        blocked: nodes that cannot be computed, with the cause.
        incomplete: incomplete hours in the reach of the targets, by block.
        healed: how many of the nodes lie outside the hours that were asked for.
        stale_since: the first stale hour that lies beyond `heal`, which this run leaves.
        expired: state that the targets read and that has been dropped: to be made again first.
    """

    targets: dict[str, list[datetime]]
    inputs: dict[Node, dict[str, str]]
    blocked: dict[Node, str]
    incomplete: dict[str, set[datetime]]
    healed: int
    stale_since: datetime | None
    expired: frozenset[Node]


def plan(
    stage: str,
    version: int,
    table: str,
    parts: Mapping[str, Part],
    book: Book,
    hours: list[datetime],
    window: Interval,
    checks: str,
    elsewhere: Interval | None = None,
    again: Collection[Node] = (),
) -> Plan:
    """Decides, node by node, what is computed.

    Args:
        hours: the hours that were asked for.
        window: where stale hours are healed.
        elsewhere: hours that another chunk of the same run will see to.
        checks: a hash of the checks.
        again: nodes to compute even where they are fresh.
    """
    result = Plan({}, {}, {}, {}, 0, None, frozenset())
    healed, stale_since = 0, None
    expired: set[Node] = set()
    wanted = set(hours)
    for block, part in parts.items():
        series = book.series(stage, block, table)
        for hour in sorted(wanted | set(series)):
            if hour not in wanted and elsewhere is not None and elsewhere.start <= hour < elsewhere.end:
                continue
            node, entry = Node(stage, block, table, hour), series.get(hour)
            inputs = expected_inputs(part, version, hour, book)
            if entry is not None and node not in again and not is_stale(entry, inputs, checks):
                continue
            if hour not in wanted and not window.start <= hour < window.end:
                stale_since = min(stale_since or hour, hour)
                continue
            needs = [(read, book[read]) for _, read in reach(part, hour) if read in book]
            cause = next((_cause(read, held) for read, held in needs if held.status not in STANDS), None)
            if cause is not None:
                if entry is None or (entry.status, entry.cause) != ("blocked", cause):
                    result.blocked[node] = cause
                continue
            expired |= {read for read, held in needs if held.status == "expired"}
            healed += hour not in wanted
            result.inputs[node] = inputs
            result.targets.setdefault(block, []).append(hour)
            result.incomplete.setdefault(block, set()).update(
                read.hour for read, held in needs if not held.complete
            )
    return replace(result, healed=healed, stale_since=stale_since, expired=frozenset(expired))


def _cause(node: Node, entry: Entry) -> str:
    if entry.status == "blocked" and entry.cause:
        return entry.cause
    reason = f": {entry.cause}" if entry.cause else ""
    return f"{node.stage} {node.block} {node.hour:%Y-%m-%dT%H:%M} is {entry.status}{reason}"
