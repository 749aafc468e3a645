"""The stages of a stream, as its features define them."""

from dataclasses import dataclass
from functools import lru_cache

from transom.core.partitions import SOURCE_STAGE
from transom.ledger.stage import Stage
from transom.spec.stream import Stream


def definition(stream: Stream, name: str) -> Stage:
    """Return the stage of a feature.

    Raises:
        KeyError: no feature has the name.
    """
    return _definition(_ById(stream), name)


@dataclass(frozen=True)
class _ById:
    """A stream as a key of a cache: its blocks are dicts, which have no hash."""

    stream: Stream

    def __hash__(self) -> int:
        return id(self.stream)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ById) and self.stream is other.stream


@lru_cache(maxsize=64)
def _definition(of: _ById, name: str) -> Stage:
    # A run needs each stage a dozen times, and compiles its conditions each time.
    stage: Stage = of.stream.feature(name).definition(of.stream)
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
