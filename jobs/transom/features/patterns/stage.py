"""The stage `patterns`: episodes of several steps in widening windows (Tolpin).

- `batches`, state: the records from which the long batches of each pattern and key are built;
- `matches`: the matches in the windows that end in an hour, two batches each, at every level;
- `episodes`: matches that overlap or are close together.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from transom.engine.check_builders import built_in
from transom.features.patterns.check_metrics import OUTSIDE_HOUR, excess, records_excess
from transom.features.patterns.resolve import PatternBlock, block_of
from transom.features.patterns.spec import Pattern
from transom.features.patterns.work_bounds import COUNTERS, FAILED, LONGEST_BATCH
from transom.ledger.stage import BlockOutput, InputRange, Stage, TableStep, rows_where
from transom.spec.feature import lazy
from transom.spec.stream import Stream
from transom.storage.tables import Table

NAME = "patterns"
VERSION = 1


def definition(stream: Stream) -> Stage:
    """Return the stage `patterns` of a stream."""
    blocks = {name: block_of(stream, name) for name in stream.blocks(Pattern)}
    long = {name: block for name, block in blocks.items() if block.long}
    return Stage(NAME, VERSION, (_batches(stream, long), _matches(stream, blocks), _episodes(stream, blocks)))


def _batches(stream: Stream, blocks: Mapping[str, PatternBlock]) -> TableStep:
    return _step(
        stream, "batches", blocks,
        reads=lambda block: (InputRange("ingest", "events", "events"),),
        counters=(LONGEST_BATCH,),
        derived=excess(blocks),
        checks=built_in(stream, "batches_within_bound", metric="batch_beyond", at_most=0),
    )  # fmt: skip


def _matches(stream: Stream, blocks: Mapping[str, PatternBlock]) -> TableStep:
    def reads(block: PatternBlock) -> tuple[InputRange, ...]:
        events = InputRange("ingest", "events", "events", back=block.reach_of_events)
        return (events, block.reads_of_batches) if block.long else (events,)

    return _step(
        stream, "matches", blocks, reads,
        counters=COUNTERS,
        bounds={"records_shown": "records_allowed"},
        derived={**excess(blocks), "records_beyond": records_excess},
        checks=(
            *built_in(stream, "batches_within_bound", metric="batch_beyond", at_most=0),
            *built_in(stream, "windows_within_bound", metric="window_beyond", at_most=0),
            *built_in(stream, "work_within_bound", metric="records_beyond", at_most=0),
            *built_in(stream, FAILED, metric="detector_failures", at_most=0),
        ),
    )  # fmt: skip


def _episodes(stream: Stream, blocks: Mapping[str, PatternBlock]) -> TableStep:
    def reads(block: PatternBlock) -> tuple[InputRange, ...]:
        earlier = InputRange(NAME, block.name, "episodes", back=block.merging.reach, forward=-1)
        return InputRange(NAME, block.name, "matches"), earlier

    return _step(
        stream, "episodes", blocks, reads,
        checks=(
            *built_in(stream, "episodes_inside_hour", metric="episodes_beyond", at_most=0),
            *built_in(stream, "matches_in_episodes", metric="matches_untaken", at_least=0, at_most=0),
        ),
        metrics={"matches_taken": "sum(`new_matches`)", "episodes_beyond": rows_where(OUTSIDE_HOUR)},
        derived={"matches_untaken": lambda row: row.get("matches_read", 0) - (row["matches_taken"] or 0)},
        failing_row_filters={"episodes_inside_hour": OUTSIDE_HOUR},
    )  # fmt: skip


def _step(
    stream: Stream,
    table: str,
    blocks: Mapping[str, PatternBlock],
    reads: Callable[[PatternBlock], tuple[InputRange, ...]],
    **options: Any,
) -> TableStep:
    parts = {
        name: BlockOutput(reads(block), stream.fingerprint(table, name), tuple(block.schema(table).names))
        for name, block in blocks.items()
    }
    # Columns of one name have the type that the stream file declares.
    columns: dict[str, dict[str, str]] = {"key": {}, "carried": {}, "kept": {}}
    for block in blocks.values():
        for part, kinds in block.declared().items():
            columns[part] |= kinds
    compute = partial(lazy(f"transom.features.patterns.tables_{table}:{table}_of"), blocks=blocks)
    return TableStep(Table.load(table).declare(**columns), parts, compute, **options)
