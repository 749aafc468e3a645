"""The parts of fingerprints that `persistence` and `frequency` share."""

from typing import Any

from transom.features.items.validate import ItemBlock, listed
from transom.spec.fingerprints import types_of
from transom.spec.stream import Stream


def of_events(stream: Stream, block: ItemBlock) -> dict[str, Any]:
    """Return what determines a table of items that is computed from events."""
    where = stream.where_of(block)
    columns = {*block.item, *(where.columns if where else ())} - {"event_time"}
    return of_state(stream, block) | {
        "where": where.sql if where else None,
        "types": types_of(stream, columns),
    }


def of_state(stream: Stream, block: ItemBlock) -> dict[str, Any]:
    """Return what determines a table of items that is computed from another table of items."""
    return {
        "item": list(block.item),
        "watch": sorted(listed(block.watch), key=repr),
        "types": types_of(stream, block.item),
    }
