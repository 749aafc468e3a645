"""What of a block shapes the tables of frequency, as canonical JSON."""

from typing import Any

from transom.core.durations import microseconds
from transom.features.frequency.spec import Frequency
from transom.features.items import validate as item_rules
from transom.spec.fingerprints import canonical, types_of
from transom.spec.stream import Stream


def tick_matrices(stream: "Stream", name: str) -> str:
    """Return what shapes the matrices of a block, and which items are kept."""
    return canonical(_counted(stream, name))


def cells(stream: "Stream", name: str) -> str:
    """Return what shapes what cells hold, matrices given."""
    return canonical(_windowed(stream, name))


def frequencies(stream: "Stream", name: str) -> str:
    """Return what shapes what is told of items, matrices and cells given."""
    said = stream.blocks(Frequency)[name]
    return canonical(
        {
            **_windowed(stream, name),
            "item": list(said.item),
            "watch": sorted(item_rules.listed(said.watch), key=repr),
            "top": said.top,
            "heavy": str(said.min_share),
            "types": types_of(stream, said.item),
        }
    )


def _counted(stream: "Stream", name: str) -> dict[str, Any]:
    said = stream.blocks(Frequency)[name]
    where = stream.where_of(said)
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
    said = stream.blocks(Frequency)[name]
    of_splitter = (
        {"splitter": [str(said.exact_tau), str(said.exact_mu)]} if said.variant == "splitter" else {}
    )
    return of_splitter | {
        "variant": said.variant,
        "window": [microseconds(said.tick), said.steps],
        "matrix": [said.shape.rows, said.shape.columns, said.seed],
        "start": None if said.start is None else said.start.isoformat(),
    }
