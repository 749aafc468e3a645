"""The definition of every stage that follows ingest: what it reads, writes and checks, without a session."""

from collections.abc import Callable, Mapping

from transom.features import sketch_stage as sketch
from transom.features.aggregates import stage as aggregate
from transom.features.fills import stage as fill
from transom.features.frames import stage as frame
from transom.features.patterns import stage as widen
from transom.ledger.stage import Stage
from transom.ledger.state import FIRST
from transom.spec.stream import Stream

DEFINITIONS: Mapping[str, Callable[[Stream], Stage]] = {
    of.NAME: of.definition for of in (widen, aggregate, frame, fill, sketch)
}
"""How a stream's file defines each stage, in the order in which they run."""
STAGES = (FIRST, *DEFINITIONS)
"""Every stage, in the order in which they run."""


def definitions_of(stream: Stream) -> dict[str, Stage]:
    """Return every stage that a stream has behind the first one, in their order."""
    return {name: define(stream) for name, define in DEFINITIONS.items() if name in stream.stages}


def shared_state(stream: Stream, stage: str) -> frozenset[tuple[str, str]]:
    """Return block and table of all of a stage that other stages read."""
    steps = [step for name, of in DEFINITIONS.items() if name != stage for step in of(stream).steps]
    parts = [part for step in steps for part in step.parts.values()]
    return frozenset((of.block, of.table) for part in parts for of in part.reads if of.stage == stage)
