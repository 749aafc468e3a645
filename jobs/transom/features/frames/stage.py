"""The frame stage: stretches of time that the data itself delimits (Grossniklaus, Maier, Moorthy and Tufte).

`open_frames`, state: what each hour leaves of every key, from which later hours go on, and the frames that it
reports. `frames`, the result: these.
"""

from collections.abc import Mapping

from transom.engine.check_builders import built_in
from transom.features.frames import fingerprints
from transom.features.frames.checks import AWAY, INEXACT, MISCOUNTED, frame_checks, violates_rules
from transom.features.frames.resolve import ResolvedFrames, frame_block_of
from transom.features.frames.spec import Frame
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

NAME = "frames"
VERSION = 1
FRAME_COLUMNS = (
    "hour", "frame_id", "start_time", "last_time", "length_s", "records", "missing", "new_records",
    "fragment", "state", "peak", "peak_time", "mean",
)  # fmt: skip
"""Columns of `frames` beside block and key."""


def definition(stream: Stream) -> Stage:
    """Return the frame stage of a stream."""
    blocks = {name: frame_block_of(stream, name) for name in stream.blocks(Frame)}
    return Stage(NAME, VERSION, (_open_frames(stream, blocks), _frames(stream, blocks)))


def _open_frames(stream: Stream, blocks: Mapping[str, ResolvedFrames]) -> TableStep:
    def compute(request: StepRequest) -> StepResult:
        from transom.features.frames.tables_open_frames import open_frames_of

        return open_frames_of(request, blocks)

    parts = {
        name: BlockOutput(
            block.reads if block.period else (*block.reads, _own(block)),
            fingerprints.open_frames(stream, name),
            tuple(Table.load("open_frames").declare(key=block.key).block_schema().names),
        )
        for name, block in blocks.items()
    }
    wrong = violates_rules(blocks)
    return TableStep(
        Table.load("open_frames").declare(key=_keys(blocks)),
        parts,
        compute,
        checks=frame_checks(stream),
        metrics={"frames_breaking": rows_where(wrong)},
        counters=(MISCOUNTED, AWAY),
        failing_row_filters={"frames_keep_rules": wrong},
    )


def _own(block: ResolvedFrames) -> InputRange:
    return InputRange(NAME, block.name, "open_frames", back=block.back, forward=-1)


def _frames(stream: Stream, blocks: Mapping[str, ResolvedFrames]) -> TableStep:
    def compute(request: StepRequest) -> StepResult:
        from transom.features.frames.tables_frames import frames_of

        return frames_of(request, blocks)

    parts = {
        name: BlockOutput(
            (InputRange(NAME, name, "open_frames"),),
            fingerprints.frames(stream, name),
            (*FRAME_COLUMNS, *block.key),
        )
        for name, block in blocks.items()
    }
    return TableStep(
        Table.load("frames").declare(key=_keys(blocks)),
        parts,
        compute,
        checks=(
            *built_in(stream, "frames_apart", metric="frames_overlapping", at_most=0),
            *built_in(stream, "frames_exact", metric="frames_inexact", at_most=0),
        ),
        metrics={"frames_inexact": rows_where(INEXACT)},
        failing_row_filters={"frames_exact": INEXACT},
    )


def _keys(blocks: Mapping[str, ResolvedFrames]) -> dict[str, str]:
    return {name: kind for block in blocks.values() for name, kind in block.key.items()}
