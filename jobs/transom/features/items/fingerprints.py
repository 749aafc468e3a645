"""What of a specification shapes the tables of sketches, as `transom.spec.fingerprints` has it of the
others."""

from typing import TYPE_CHECKING, Any

from transom.core.durations import microseconds
from transom.features.items import validate as item_rules
from transom.spec.fingerprints import canonical, types_of

if TYPE_CHECKING:
    from transom.spec.stream import Stream


def tuples(stream: "Stream", name: str) -> str:
    """Return what shapes what is remembered of a block's items, and which of them are named."""
    said = stream.persistence[name]
    where = item_rules.where(stream, said)
    return canonical(
        {
            "item": list(said.item),
            "where": where.sql if where else None,
            "slots": [microseconds(said.slot), said.slots],
            "shares": [str(share) for share in (said.asked.alpha, said.asked.epsilon)],
            "seeds": [said.seed, said.instances],
            "watch": sorted(item_rules.listed(said.watch), key=repr),
            "types": types_of(stream, {*said.item, *(where.columns if where else ())} - {"event_time"}),
        }
    )


def persistent_items(stream: "Stream", name: str) -> str:
    """Return what shapes what is told of them, what is remembered given."""
    said = stream.persistence[name]
    known, table = said.ignore, said.ignore.table
    return canonical(
        {
            "item": list(said.item),
            "slots": [microseconds(said.slot), said.slots],
            # By these what is remembered is judged, which may be the same with others.
            "shares": [str(share) for share in (said.asked.alpha, said.asked.epsilon)],
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


def tick_matrices(stream: "Stream", name: str) -> str:
    """Return what shapes the matrices of a block, and which items are kept."""
    return canonical(_counted(stream, name))


def cells(stream: "Stream", name: str) -> str:
    """Return what shapes what cells hold, matrices given."""
    return canonical(_windowed(stream, name))


def frequencies(stream: "Stream", name: str) -> str:
    """Return what shapes what is told of items, matrices and cells given."""
    said = stream.frequency[name]
    return canonical(
        {
            **_windowed(stream, name),
            "item": list(said.item),
            "watch": sorted(item_rules.listed(said.watch), key=repr),
            "top": said.top,
            "heavy": str(said.heavy),
            "types": types_of(stream, said.item),
        }
    )


def _counted(stream: "Stream", name: str) -> dict[str, Any]:
    said = stream.frequency[name]
    where = item_rules.where(stream, said)
    return {
        "item": list(said.item),
        "where": where.sql if where else None,
        "tick": microseconds(said.tick),
        "matrix": [said.shape.rows, said.shape.columns, said.seed],
        "watch": sorted(item_rules.listed(said.watch), key=repr),
        "kept": said.kept,
        "types": types_of(stream, {*said.item, *(where.columns if where else ())} - {"event_time"}),
    }


def _windowed(stream: "Stream", name: str) -> dict[str, Any]:
    said = stream.frequency[name]
    of_splitter = (
        {"splitter": [str(said.exact_tau), str(said.exact_mu)]} if said.variant == "splitter" else {}
    )
    return of_splitter | {
        "variant": said.variant,
        "window": [microseconds(said.tick), said.steps],
        "matrix": [said.shape.rows, said.shape.columns, said.seed],
        "start": None if said.start is None else said.start.isoformat(),
    }
