"""The stages of a stream, as its features define them."""

from transom.core.partitions import SOURCE_STAGE
from transom.ledger.stage import Stage
from transom.spec.stream import Stream


def definition(stream: Stream, name: str) -> Stage:
    """Return the stage of a feature.

    Raises:
        KeyError: no feature has the name.
    """
    stage: Stage = stream.feature(name).definition(stream)
    return stage


def stage_names(stream: Stream) -> tuple[str, ...]:
    """Return the names of all stages, whether or not the stream has them, in the order of runs."""
    return (SOURCE_STAGE, *(feature.name for feature in stream.features))


def all_definitions(stream: Stream) -> dict[str, Stage]:
    """Return all stages except the source stage, whether or not the stream has them."""
    return {name: definition(stream, name) for name in stage_names(stream)[1:]}


def definitions_of(stream: Stream) -> dict[str, Stage]:
    """Return all stages of a stream except the source stage."""
    return {name: definition(stream, name) for name in stream.stages[1:]}


def shared_state(stream: Stream, stage: str) -> frozenset[tuple[str, str]]:
    """Return block and table of each table of a stage that other stages read."""
    return frozenset(
        (read.block, read.table)
        for name, other in all_definitions(stream).items()
        if name != stage
        for step in other.steps
        for part in step.outputs.values()
        for read in part.reads
        if read.stage == stage
    )
