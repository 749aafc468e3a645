"""The stages of a stream, as its features define them: what each reads, writes and checks."""

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
    """Return every stage there is, whether or not the stream has it, in the order in which they run."""
    return (SOURCE_STAGE, *(feature.name for feature in stream.features))


def all_definitions(stream: Stream) -> dict[str, Stage]:
    """Return every stage there is behind the first one, whether or not the stream has it."""
    return {name: definition(stream, name) for name in stage_names(stream)[1:]}


def definitions_of(stream: Stream) -> dict[str, Stage]:
    """Return every stage that a stream has behind the first one."""
    return {name: definition(stream, name) for name in stream.stages[1:]}


def shared_state(stream: Stream, stage: str) -> frozenset[tuple[str, str]]:
    """Return block and table of all of a stage that other stages read."""
    steps = [step for name, of in all_definitions(stream).items() if name != stage for step in of.steps]
    parts = [part for step in steps for part in step.parts.values()]
    return frozenset((of.block, of.table) for part in parts for of in part.reads if of.stage == stage)
