"""What of a block shapes the tables of frames, as canonical JSON."""

from typing import Any

from transom.core.durations import microseconds
from transom.features.aggregates.spec import Aggregation
from transom.features.frames import spec_rules as frame_rules
from transom.features.frames import validate as frame_columns
from transom.features.frames.spec import Baseline, Frame
from transom.spec.fingerprints import canonical, types_of
from transom.spec.stream import Stream


def open_frames(stream: "Stream", name: str) -> str:
    """Return what shapes what hours leave and tell of a kind of frame, its readings given."""
    said, block = (
        stream.blocks(Frame)[name],
        stream.blocks(Aggregation).get(stream.blocks(Frame)[name].source or ""),
    )
    key, read, every = (
        frame_columns.key(stream, name),
        frame_columns.read(stream, name),
        frame_columns.every(stream, name),
    )
    # What is left out where there is none shapes nothing of streams that stood before it could be said.
    return canonical(
        ({} if said.known is None else {"known": microseconds(said.known)})
        | {
            "key": list(key),
            "conditions": {field: met.sql for field, met in frame_columns.conditions(stream, name).items()},
            "value": frame_columns.value(stream, name),
            "measures": {column: str(block.measures[column]) for column in read} if block else None,
            "every": None if every is None else microseconds(every),
            "ties": said.on_duplicate_time,
            "baseline": _baseline(said.baseline),
            "kind": [
                said.kind,
                said.extent,
                said.step,
                said.below,
                str(said.condition),
                said.span,
                said.direction,
            ],
            "meeting": said.when_open,
            "lengths": [
                None if length is None else microseconds(length)
                for length in (said.min_length, said.max_length)
            ],
            "records": [said.min_records, said.max_records],
            "missing": said.missing,
            "idle": microseconds(said.idle),
            "stretch": None
            if said.period is None
            else [microseconds(said.period), frame_rules.overlaps(said), said.longest],
            "types": types_of(stream, {c for c in (*key, *_columns_read(stream, name)) if c != "event_time"}),
        }
    )


def frames(stream: "Stream", name: str) -> str:
    """Return what shapes how frames are told, what hours leave and tell of them given."""
    key, value = frame_columns.key(stream, name), frame_columns.value(stream, name)
    block = stream.blocks(Aggregation).get(stream.blocks(Frame)[name].source or "")
    column = block.measures[value].column if block and value else value
    of = [str(block.measures[value])] if block and value else []
    return canonical(
        {
            "key": list(key),
            "value": [value, *of],
            "types": types_of(stream, {*key, *([column] if column else [])}),
        }
    )


def _baseline(baseline: Baseline | None) -> dict[str, Any] | None:
    if baseline is None:
        return None
    declared = baseline.model_dump(mode="json")
    # The names are those of earlier fingerprints: a renamed field makes no hour stale.
    return {
        "of": declared["value"],
        "shift": declared["shift"],
        "take": declared["combine"],
        "missing": declared["missing"],
    }


def _columns_read(stream: "Stream", name: str) -> set[str]:
    """Return the columns of the events that a kind of frame reads, by way of an aggregation or not."""
    block, read = (
        stream.blocks(Aggregation).get(stream.blocks(Frame)[name].source or ""),
        frame_columns.read(stream, name),
    )
    if block is None:
        return set(read)
    return {column for measure in read if (column := block.measures[measure].column) is not None}
