"""The stage `patterns`: episodes of several steps, however slow, found in windows that widen (Tolpin).

`batches`, state: what long batches of each pattern and key are made of. `matches`: what a detector finds
in the windows that end in an hour, two batches each, at every level. `episodes`: matches that lie together.
"""

from collections.abc import Iterable, Mapping

from transom.core.durations import microseconds
from transom.engine.check_builders import built_in
from transom.features.patterns import fingerprints
from transom.features.patterns.algorithm.episodes import Merging
from transom.features.patterns.match_rows import kinds_of
from transom.features.patterns.resolve import PatternBlock, block_of
from transom.features.patterns.spec import Pattern
from transom.features.patterns.work_bounds import with_sizes, with_work
from transom.ledger.stage import (
    BlockOutput,
    InputRange,
    Stage,
    StepRequest,
    StepResult,
    TableStep,
    rows_where,
)
from transom.spec.stream import Stream
from transom.storage.tables import Table

NAME = "patterns"
VERSION = 1
BEYOND = "(`last_time` >= `hour` + INTERVAL 1 HOUR) OR (`last_time` < `start_time`)"
"""Whether an episode ends outside its hour: a match is detected after its last record."""


def definition(stream: Stream) -> Stage:
    """Return the stage `patterns` of a stream."""
    blocks = {name: block_of(stream, name) for name in stream.blocks(Pattern)}
    long = {name: block for name, block in blocks.items() if block.long}
    steps = (
        with_sizes(_batches(stream, long), stream, long),
        with_work(_matches(stream, blocks), stream, blocks),
        _episodes(stream, blocks),
    )
    return Stage(NAME, VERSION, steps)


def _batches(stream: Stream, blocks: Mapping[str, PatternBlock]) -> TableStep:
    def compute(request: StepRequest) -> StepResult:
        from transom.features.patterns.tables_batches import batches_of

        return batches_of(request, blocks)

    carried = _union(block.carried_columns() for block in blocks.values())
    parts = {
        name: BlockOutput(
            (InputRange("ingest", "events", "events"),),
            fingerprints.batches(stream, name),
            ("hour", *block.record_columns),
        )
        for name, block in blocks.items()
    }
    return TableStep(Table.load("batches").declare(key=_keys(blocks), carried=carried), parts, compute)


def _matches(stream: Stream, blocks: Mapping[str, PatternBlock]) -> TableStep:
    def compute(request: StepRequest) -> StepResult:
        from transom.features.patterns.tables_matches import matches_of

        return matches_of(request, blocks)

    kept = _union(block.kept_columns() for block in blocks.values())
    parts = {
        name: BlockOutput(
            (
                InputRange("ingest", "events", "events", back=block.reach_of_events),
                *([block.reads_of_batches] if block.long else []),
            ),
            fingerprints.matches(stream, name),
            tuple(kinds_of(block)),
        )
        for name, block in blocks.items()
    }
    return TableStep(Table.load("matches").declare(key=_keys(blocks), kept=kept), parts, compute)


def _episodes(stream: Stream, blocks: Mapping[str, PatternBlock]) -> TableStep:
    mergings = {name: merging_of(stream, block) for name, block in blocks.items()}

    def compute(request: StepRequest) -> StepResult:
        from transom.features.patterns.tables_episodes import episodes_of

        return episodes_of(request, blocks, mergings)

    parts = {
        name: BlockOutput(
            (
                InputRange(NAME, name, "matches"),
                InputRange(NAME, name, "episodes", back=mergings[name].reach, forward=-1),
            ),
            fingerprints.episodes(stream, name),
            tuple(Table.load("episodes").declare(key=block.key).block_schema().names),
        )
        for name, block in blocks.items()
    }
    return TableStep(
        Table.load("episodes").declare(key=_keys(blocks)),
        parts,
        compute,
        checks=(
            *built_in(stream, "episodes_inside_hour", metric="episodes_beyond", at_most=0),
            *built_in(stream, "matches_in_episodes", metric="matches_untaken", at_least=0, at_most=0),
        ),
        metrics={"matches_taken": "sum(`new_matches`)", "episodes_beyond": rows_where(BEYOND)},
        derived={"matches_untaken": lambda row: row.get("matches_read", 0) - (row["matches_taken"] or 0)},
        failing_row_filters={"episodes_inside_hour": BEYOND},
    )


def merging_of(stream: Stream, block: PatternBlock) -> Merging:
    """Return what makes matches of a pattern one episode."""
    merge = microseconds(stream.blocks(Pattern)[block.name].merge_gap)
    return Merging(merge, block.widening.max_length, block.widening.top)


def _keys(blocks: Mapping[str, PatternBlock]) -> dict[str, str]:
    return _union(block.key for block in blocks.values())


def _union(columns: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Return the columns of several blocks, which the stream's file gives the same types."""
    return {name: kind for some in columns for name, kind in some.items()}
