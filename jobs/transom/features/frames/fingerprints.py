"""The parts of a block that determine the tables of frames, as canonical JSON.

Its keys keep the names of earlier fingerprints, so that a renamed field makes no hour stale.
"""

from collections.abc import Mapping
from datetime import timedelta

from transom.core.durations import microseconds
from transom.features.aggregates.spec import Aggregation, Measure
from transom.features.frames import input_columns, spec_rules
from transom.features.frames.spec import Frame
from transom.spec.fingerprints import canonical, types_of
from transom.spec.stream import Stream

BASELINE = {"of": "value", "shift": "shift", "take": "combine", "missing": "missing"}
"""The fields of a baseline, by the keys of the fingerprint."""


def open_frames(stream: Stream, name: str) -> str:
    """Return what determines the states and reports of a block."""
    spec, measures = stream.blocks(Frame)[name], _measures(stream, name)
    key, read = input_columns.key(stream, name), input_columns.read(stream, name)
    columns = {measures[column].column if spec.source else column for column in read}
    baseline = spec.baseline.model_dump(mode="json") if spec.baseline else None
    kind = [spec.kind, spec.extent, spec.step, spec.below, str(spec.condition), spec.span, spec.direction]
    period = None if spec.period is None else microseconds(spec.period)
    # `known` is omitted if it is not set, so that streams without it keep their fingerprints.
    return canonical(
        ({} if spec.known is None else {"known": microseconds(spec.known)})
        | {
            "key": list(key),
            "conditions": {field: test.sql for field, test in input_columns.conditions(stream, name).items()},
            "value": input_columns.value(stream, name),
            "measures": {column: str(measures[column]) for column in read} if spec.source else None,
            "every": _length(input_columns.every(stream, name)),
            "ties": spec.on_duplicate_time,
            "baseline": baseline and {old: baseline[new] for old, new in BASELINE.items()},
            "kind": kind,
            "meeting": spec.when_open,
            "lengths": [_length(spec.min_length), _length(spec.max_length)],
            "records": [spec.min_records, spec.max_records],
            "missing": spec.missing,
            "idle": microseconds(spec.idle),
            "stretch": None if period is None else [period, spec_rules.overlaps(spec), spec.longest],
            "types": types_of(stream, {*key, *filter(None, columns)} - {"event_time"}),
        }
    )


def frames(stream: Stream, name: str) -> str:
    """Return what determines `frames`, apart from `open_frames`."""
    key, value = input_columns.key(stream, name), input_columns.value(stream, name)
    measure = _measures(stream, name).get(value or "")
    column = measure.column if measure else value
    return canonical(
        {
            "key": list(key),
            "value": [value, str(measure)] if measure else [value],
            "types": types_of(stream, {*key, *([column] if column else [])}),
        }
    )


def _length(length: timedelta | None) -> int | None:
    return None if length is None else microseconds(length)


def _measures(stream: Stream, name: str) -> Mapping[str, Measure]:
    """Return the measures of the readings if these are granules."""
    source = stream.blocks(Frame)[name].source
    return stream.blocks(Aggregation)[source].measures if source else {}
