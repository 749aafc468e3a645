"""The parts of a block that determine the tables of persistence, as canonical JSON."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from transom.core.durations import microseconds
from transom.core.intervals import HOUR
from transom.features.items import fingerprints as item_fingerprints
from transom.features.items import validate as item_rules
from transom.features.persistence.spec import IgnoreList, Persistence
from transom.spec.fingerprints import canonical
from transom.spec.stream import Stream


def tuples(stream: Stream, name: str) -> str:
    """Return what determines the tuples of a block, and its reported items."""
    block = stream.blocks(Persistence)[name]
    seeds = {"seeds": [block.seed, block.instances]}
    return canonical(item_fingerprints.of_events(stream, block) | _window(block) | seeds)


def persistent_items(stream: Stream, name: str, hour: datetime | None = None) -> str:
    """Return what determines the persistent items of a block in an hour, apart from the tuples.

    Of the lists of ignored items these are the ones that the hour's report lacks.

    Args:
        stream: the stream.
        name: the name of the block.
        hour: the hour; None is after every end of a list.
    """
    block = stream.blocks(Persistence)[name]
    lists = [known for _, known in block.ignore_lists()]
    dated = [] if hour is None else [(known.until, known) for known in lists if known.until is not None]
    current = [known for known in lists if known.until is None]
    current += [known for until, known in dated if hour is not None and hour < until]
    # An item that has left was in the report before.
    left = [
        known for until, known in dated if hour is not None and hour - block.report_period < until <= hour
    ]
    own: dict[str, Any] = {"seeds": block.instances, "ignore": _ignored(block, current)}
    if left:
        own["ignore_left"] = _ignored(block, left)
    return canonical(item_fingerprints.of_state(stream, block) | _window(block) | own)


def before_ends(stream: Stream, name: str) -> tuple[tuple[datetime, str], ...]:
    """Return the ends of a block's lists of ignored items, ascending, with what determines the persistent
    items in the hours before each."""
    block = stream.blocks(Persistence)[name]
    ends = {known.until for _, known in block.ignore_lists() if known.until is not None}
    ends |= {end + block.report_period for end in ends}
    return tuple((end, persistent_items(stream, name, end - HOUR)) for end in sorted(ends))


def _ignored(block: Persistence, lists: Iterable[IgnoreList]) -> list[Any]:
    """Return some lists as one; a list is the same with an end and without."""
    items: list[Any] = []
    networks: dict[str, list[str]] = {}
    tables: list[Any] = []
    for known in lists:
        items += item_rules.listed(known.items)
        for column, own in known.networks.items():
            networks[column] = sorted({*networks.get(column, ()), *own})
        if known.table is not None:
            tables.append([known.table.path, known.table.columns or {name: name for name in block.item}])
    return [sorted(items, key=repr), networks, *(sorted(tables, key=repr) or [None])]


def _window(block: Persistence) -> dict[str, Any]:
    """Return what determines both tables: alpha and epsilon select the reported items of equal tuples."""
    return {
        "slots": [microseconds(block.slot), block.slots],
        "shares": [str(block.params.alpha), str(block.params.epsilon)],
    }
