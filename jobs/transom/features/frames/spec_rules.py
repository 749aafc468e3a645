"""Rules between the fields of one kind of frame: what can be told without the stream's columns."""

from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from operator import ge, gt, le, lt
from typing import Any

from transom.core.durations import format_duration
from transom.core.intervals import HOUR
from transom.features.frames.spec import Frame
from transom.spec.errors import Issue, find_duplicates

COMPARED: Mapping[str, Callable[[Any, Any], bool]] = {">": gt, ">=": ge, "<": lt, "<=": le}
MINUTE = timedelta(minutes=1)
LONGEST = timedelta(days=366)
"""The longest silence, and the longest period."""
OF_KIND: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "threshold": (("where",), ("extent", "value")),
    "boundary": (("value", "step"), ()),
    "delta": (("value", "below"), ()),
    "aggregate": (("condition", "span"), ()),
    "trend": (("value", "direction"), ()),
    "marked": (("starts_when",), ("value",)),
}
"""The fields that a kind needs, and those that it may have, beside the ones that every kind may."""
_OWN = ("where", "extent", "value", "step", "below", "condition", "span", "direction")
_APART = {
    "threshold": "readings that do not meet `where` are in no frame",
    "trend": "a reading between a rise and the next one is in no frame",
    "marked": "readings before a start are in no frame",
}
_NOT_KNOWN = {
    "idle": "a frame is closed when its key is not known any more",
    "starts_when": "a missing reading has no value that could meet it",
    "min_records": "a frame may have missing readings only; min_length takes these, too",
    "max_records": "a frame may have missing readings only; max_length takes these, too",
    "period": "within a period by itself no key is known from before",
}
"""What cannot be said of frames that a missing reading may begin, and why."""
OVERLAPPING = ("delta", "aggregate")
"""Kinds of which a frame from one reading may overlap that from another."""


def problems(frame: Frame) -> Iterator[Issue]:
    """Yield what is wrong with a kind of frame, with paths inside it."""
    yield from _of_kind(frame)
    for name in ("step", "below"):
        value = getattr(frame, name)
        if value is not None and value <= 0:
            yield Issue(name, f"must be above 0; got {value:g}")
    yield from _lengths(frame)
    yield from _starts(frame)
    yield from _missing(frame)
    yield from _known(frame)
    yield from _readings(frame)
    yield from _schemes(frame)


def _of_kind(frame: Frame) -> Iterator[Issue]:
    needed, allowed = OF_KIND[frame.kind]
    for name in needed:
        if getattr(frame, name) is None:
            yield Issue(name, f"is required with kind {frame.kind}")
    for name in _OWN:
        if name in frame.model_fields_set and name not in (*needed, *allowed):
            kinds = [kind for kind, (first, second) in OF_KIND.items() if name in (*first, *second)]
            yield Issue(name, f"goes with kind {' or '.join(kinds)}; got kind {frame.kind}")


def _lengths(frame: Frame) -> Iterator[Issue]:
    least, most = frame.min_length, frame.max_length
    if least is not None and most is not None and least > most:
        got = f"{format_duration(least)} and {format_duration(most)}"
        yield Issue("min_length", f"must not be longer than max_length; got {got}")
    if most is not None and not most:
        yield Issue("max_length", f"must not be nothing; got {format_duration(most)}")
    if frame.max_records is not None and frame.min_records > frame.max_records:
        got = f"{frame.min_records} and {frame.max_records}"
        yield Issue("min_records", f"must not be more than max_records; got {got}")
    if frame.kind == "trend" and frame.max_records == 1:
        yield Issue("max_records", "must be at least 2 with kind trend, which shows in two readings; got 1")
    if least is not None and frame.period is not None and least > frame.period:
        got = f"{format_duration(least)} and {format_duration(frame.period)}"
        yield Issue("min_length", f"must not be longer than period, with which frames end; got {got}")
    yield from _counts(frame)
    for name, silence in (("idle", frame.idle), ("known", frame.known)):
        if silence is not None and (silence < MINUTE or silence % MINUTE or silence > LONGEST):
            rule = f"must be whole minutes, from one to {format_duration(LONGEST)}"
            yield Issue(name, f"{rule}; got {format_duration(silence)}")


def _counts(frame: Frame) -> Iterator[Issue]:
    """Conditions on the number of readings that no frame can meet."""
    of = frame.condition
    if of is None or of.function != "count" or frame.span is None:
        return
    # As long as it holds: of one reading to begin with.
    most = 1 if frame.span == "maximal" else frame.max_records
    fewest = 1 if frame.span == "maximal" else frame.min_records
    up = of.compared in (">", ">=")
    met = True if up and most is None else COMPARED[of.compared](most if up else fewest, of.bound)
    if not met:
        limit = (
            "of one reading, with which a frame of span maximal begins"
            if frame.span == "maximal"
            else (
                f"of {most} readings, which max_records allows" if up else f"of {fewest}, which is the fewest"
            )
        )
        yield Issue("condition", f"must hold {limit}, or there is no frame; got {of.text!r}")


def _starts(frame: Frame) -> Iterator[Issue]:
    if frame.starts_when is None and frame.when_open is not None:
        yield Issue("when_open", "goes with starts_when, which is missing")
    elif frame.starts_when is not None and frame.when_open is None:
        rule = "is required with starts_when, one of report, drop, continue: a start may meet an open frame"
        yield Issue("when_open", rule)


def _missing(frame: Frame) -> Iterator[Issue]:
    if frame.kind == "trend" and frame.missing not in (None, "breaks"):
        rule = "must be breaks with kind trend: what is missing has no value to be above or below another"
        yield Issue("missing", f"{rule}; got {frame.missing}")
    elif frame.kind != "threshold" and frame.missing == "satisfies":
        rule = "goes with kind threshold: a missing value satisfies no other kind"
        yield Issue("missing", f"{rule}; got kind {frame.kind}")


def _known(frame: Frame) -> Iterator[Issue]:
    if frame.known is None:
        return
    if frame.missing != "satisfies":
        got = "no missing" if frame.missing is None else f"missing: {frame.missing}"
        yield Issue("known", f"goes with missing: satisfies; got {got}")
    for name, why in _NOT_KNOWN.items():
        if name in frame.model_fields_set:
            yield Issue(name, f"must not be said with known: {why}")


def _readings(frame: Frame) -> Iterator[Issue]:
    yield from find_duplicates("key", frame.key)
    if frame.source is None and frame.on_duplicate_time is None:
        rules = "is required for frames of events, one of first, last, min, max, sum, mean"
        yield Issue("on_duplicate_time", f"{rules}: a reading has a time of its own")
    if frame.source is not None:
        for name in ("key", "on_duplicate_time"):
            if name in frame.model_fields_set:
                rule = "goes with frames of events; granules have those of their block"
                yield Issue(name, rule)
    if frame.baseline is not None:
        for index, shift in enumerate(frame.baseline.shift):
            if not shift:
                yield Issue(f"baseline.shift[{index}]", "must not be nothing")
        yield from find_duplicates(
            "baseline.shift", [format_duration(shift) for shift in frame.baseline.shift]
        )


def _schemes(frame: Frame) -> Iterator[Issue]:
    overlap = overlaps(frame)
    if frame.scheme == "partition":
        yield from _partition(frame)
    if frame.scheme == "cover" and frame.kind != "delta":
        instead = "; unconstrained has every frame there is" if frame.kind in OVERLAPPING else ""
        rule = f"must not be cover with kind {frame.kind}: readings may be in no frame{instead}"
        yield Issue("scheme", rule)
    elif frame.scheme == "cover" and _short_left_out(frame):
        yield Issue(
            "scheme", f"must not be cover with {_short_left_out(frame)}: what is shorter is in no frame"
        )
    if frame.set == "drained" and overlap:
        rule = f"must be saturated with scheme {frame.scheme}: it has every frame, where fewer would do"
        yield Issue("set", f"{rule}; got drained")
    if frame.set == "saturated" and not overlap and frame.kind in OVERLAPPING:
        rule = (
            "must be drained: a frame that begins with another reading could be added; "
            "scheme unconstrained has all of them"
        )
        yield Issue("set", f"{rule}; got saturated")
    over = frame.longest or overlap
    if over and frame.period is None:
        what = "longest" if frame.longest else f"scheme {frame.scheme}"
        rule = f"is required with {what}, which can be told of a period that is over"
        yield Issue("period", rule)
    elif frame.period is not None and not over:
        rule = "goes with longest, or with scheme cover or unconstrained of kind delta or aggregate"
        yield Issue("period", rule)
    elif frame.period is not None and (frame.period < HOUR or frame.period % HOUR or frame.period > LONGEST):
        rule = f"must be whole hours, from one to {format_duration(LONGEST)}"
        yield Issue("period", f"{rule}; got {format_duration(frame.period)}")


def _partition(frame: Frame) -> Iterator[Issue]:
    why = _APART.get(frame.kind)
    if why is None and frame.span == "maximal":
        why = "a reading that breaks the condition by itself is in no frame"
    if why is None and frame.starts_when is not None:
        why = "readings before one that meets starts_when are in no frame"
    if why is None and _short_left_out(frame):
        why = f"what is shorter than {_short_left_out(frame)} is in no frame"
    if why is None and frame.missing == "breaks":
        why = "with missing: breaks a frame does not begin where the last one ended"
    if why is not None:
        yield Issue("scheme", f"must not be partition: {why}")


def overlaps(frame: Frame) -> bool:
    """Return whether frames of a key may overlap."""
    return frame.kind in OVERLAPPING and frame.scheme in ("cover", "unconstrained")


def _short_left_out(frame: Frame) -> str | None:
    if frame.min_length:
        return "min_length"
    return "min_records" if frame.min_records > 1 else None
