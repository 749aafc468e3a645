"""The parts of a block that determine the tables of frequency, as canonical JSON."""

from typing import Any

from transom.core.durations import microseconds
from transom.features.frequency.spec import Frequency
from transom.features.items import fingerprints as item_fingerprints
from transom.spec.fingerprints import canonical
from transom.spec.stream import Stream


def tick_matrices(stream: Stream, name: str) -> str:
    """Return what determines the matrices of a block, and its kept items."""
    block = stream.blocks(Frequency)[name]
    own = {"tick": microseconds(block.tick), "matrix": _matrix(block), "kept": block.capacity}
    return canonical(item_fingerprints.of_events(stream, block) | own)


def cells(stream: Stream, name: str) -> str:
    """Return what determines the cells of a block, apart from its matrices."""
    return canonical(_window(stream.blocks(Frequency)[name]))


def frequencies(stream: Stream, name: str) -> str:
    """Return what determines the frequencies of a block, apart from its matrices and cells."""
    block = stream.blocks(Frequency)[name]
    own = {"top": block.top, "heavy": str(block.min_share)}
    return canonical(item_fingerprints.of_state(stream, block) | _window(block) | own)


def _matrix(block: Frequency) -> list[int]:
    return [block.shape.rows, block.shape.columns, block.seed]


def _window(block: Frequency) -> dict[str, Any]:
    splitter = {"splitter": [str(block.exact_tau), str(block.exact_mu)]}
    return (splitter if block.variant == "splitter" else {}) | {
        "variant": block.variant,
        "window": [microseconds(block.tick), block.steps],
        "matrix": _matrix(block),
        "start": None if block.start is None else block.start.isoformat(),
    }
