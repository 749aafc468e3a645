"""The parts of a block that determine the tables of persistence, as canonical JSON."""

from typing import Any

from transom.core.durations import microseconds
from transom.features.items import fingerprints as item_fingerprints
from transom.features.items import validate as item_rules
from transom.features.persistence.spec import Persistence
from transom.spec.fingerprints import canonical
from transom.spec.stream import Stream


def tuples(stream: Stream, name: str) -> str:
    """Return what determines the tuples of a block, and its reported items."""
    block = stream.blocks(Persistence)[name]
    seeds = {"seeds": [block.seed, block.instances]}
    return canonical(item_fingerprints.of_events(stream, block) | _window(block) | seeds)


def persistent_items(stream: Stream, name: str) -> str:
    """Return what determines the persistent items of a block, apart from the tuples."""
    block = stream.blocks(Persistence)[name]
    ignore, table = block.ignore, block.ignore.table
    own = {
        "seeds": block.instances,
        "ignore": [
            sorted(item_rules.listed(ignore.items), key=repr),
            {column: sorted(networks) for column, networks in ignore.networks.items()},
            [table.path, table.columns or {column: column for column in block.item}] if table else None,
        ],
    }
    return canonical(item_fingerprints.of_state(stream, block) | _window(block) | own)


def _window(block: Persistence) -> dict[str, Any]:
    """Return what determines both tables: alpha and epsilon select the reported items of equal tuples."""
    return {
        "slots": [microseconds(block.slot), block.slots],
        "shares": [str(block.params.alpha), str(block.params.epsilon)],
    }
