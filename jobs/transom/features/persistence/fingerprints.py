"""What of a block shapes the tables of persistence, as canonical JSON."""

from transom.core.durations import microseconds
from transom.features.items import validate as item_rules
from transom.features.persistence.spec import Persistence
from transom.spec.fingerprints import canonical, types_of
from transom.spec.stream import Stream


def tuples(stream: "Stream", name: str) -> str:
    """Return what shapes what is remembered of a block's items, and which of them are named."""
    said = stream.blocks(Persistence)[name]
    where = stream.where_of(said)
    return canonical(
        {
            "item": list(said.item),
            "where": where.sql if where else None,
            "slots": [microseconds(said.slot), said.slots],
            "shares": [str(share) for share in (said.params.alpha, said.params.epsilon)],
            "seeds": [said.seed, said.instances],
            "watch": sorted(item_rules.listed(said.watch), key=repr),
            "types": types_of(stream, {*said.item, *(where.columns if where else ())} - {"event_time"}),
        }
    )


def persistent_items(stream: "Stream", name: str) -> str:
    """Return what shapes what is told of them, what is remembered given."""
    said = stream.blocks(Persistence)[name]
    known, table = said.ignore, said.ignore.table
    return canonical(
        {
            "item": list(said.item),
            "slots": [microseconds(said.slot), said.slots],
            # By these what is remembered is judged, which may be the same with others.
            "shares": [str(share) for share in (said.params.alpha, said.params.epsilon)],
            "seeds": said.instances,
            "watch": sorted(item_rules.listed(said.watch), key=repr),
            "ignore": [
                sorted(item_rules.listed(known.items), key=repr),
                {column: sorted(networks) for column, networks in known.networks.items()},
                [table.path, table.columns or {c: c for c in said.item}] if table else None,
            ],
            "types": types_of(stream, said.item),
        }
    )
