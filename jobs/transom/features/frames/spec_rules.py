"""Rules between the fields of a block of frames, independent of the stream's columns."""

from collections.abc import Iterator
from datetime import timedelta

from transom.core.durations import format_duration
from transom.core.intervals import HOUR
from transom.features.frames.algorithm.params import COMPARED
from transom.features.frames.spec import Frame
from transom.spec.errors import Issue, find_duplicates

MINUTE = timedelta(minutes=1)
LONGEST = timedelta(days=366)
"""Maximum of `idle`, `known` and `period`."""
OF_KIND: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "threshold": (("where",), ("extent", "value")),
    "boundary": (("value", "step"), ()),
    "delta": (("value", "below"), ()),
    "aggregate": (("condition", "span"), ()),
    "trend": (("value", "direction"), ()),
    "marked": (("starts_when",), ("value",)),
}
"""The required and the optional fields of each kind, besides those of every kind."""
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
"""Fields that exclude `known`, and why."""
OVERLAPPING = ("delta", "aggregate")
"""Kinds whose frames may overlap if each reading begins one."""


def problems(frame: Frame) -> Iterator[Issue]:
    """Yield the problems of a block, with paths relative to it."""
    yield from _of_kind(frame)
    for name in ("step", "below"):
        value = getattr(frame, name)
        if value is not None and value <= 0:
            yield Issue(name, f"must be above 0; got {value:g}")
    yield from _lengths(frame)
    yield from _missing(frame)
    yield from _readings(frame)
    yield from _period(frame)


def _of_kind(frame: Frame) -> Iterator[Issue]:
    required, optional = OF_KIND[frame.kind]
    for name in required:
        if getattr(frame, name) is None:
            yield Issue(name, f"is required with kind {frame.kind}")
    for name in _OWN:
        if name in frame.model_fields_set and name not in (*required, *optional):
            kinds = [kind for kind, (first, second) in OF_KIND.items() if name in (*first, *second)]
            yield Issue(name, f"requires kind {' or '.join(kinds)}; got kind {frame.kind}")


def _lengths(frame: Frame) -> Iterator[Issue]:
    shortest, longest, period = frame.min_length, frame.max_length, frame.period
    if shortest is not None and longest is not None and shortest > longest:
        got = f"{format_duration(shortest)} and {format_duration(longest)}"
        yield Issue("min_length", f"must not be longer than max_length; got {got}")
    if longest is not None and not longest:
        yield Issue("max_length", f"must be above 0; got {format_duration(longest)}")
    if frame.max_records is not None and frame.min_records > frame.max_records:
        got = f"{frame.min_records} and {frame.max_records}"
        yield Issue("min_records", f"must not be more than max_records; got {got}")
    if frame.kind == "trend" and frame.max_records == 1:
        yield Issue("max_records", "must be at least 2 with kind trend, which shows in two readings; got 1")
    if shortest is not None and period is not None and shortest > period:
        got = f"{format_duration(shortest)} and {format_duration(period)}"
        yield Issue("min_length", f"must not be longer than period, with which frames end; got {got}")
    yield from _counts(frame)
    for name, silence in (("idle", frame.idle), ("known", frame.known)):
        if silence is not None and (silence < MINUTE or silence % MINUTE or silence > LONGEST):
            rule = f"must be whole minutes, from one to {format_duration(LONGEST)}"
            yield Issue(name, f"{rule}; got {format_duration(silence)}")


def _counts(frame: Frame) -> Iterator[Issue]:
    """Yield a problem if no frame can meet the condition on its number of readings."""
    condition = frame.condition
    if condition is None or condition.function != "count" or frame.span is None:
        return
    if frame.span == "maximal":
        # It must hold for the first reading.
        count: int | None = 1
        limit = "of one reading, with which a frame of span maximal begins"
    elif condition.compared in (">", ">="):
        count, limit = frame.max_records, f"of {frame.max_records} readings, which max_records allows"
    else:
        count, limit = frame.min_records, f"of {frame.min_records}, which is the fewest"
    if count is not None and not COMPARED[condition.compared](count, condition.bound):
        yield Issue("condition", f"must hold {limit}, or there is no frame; got {condition.text!r}")


def _missing(frame: Frame) -> Iterator[Issue]:
    if frame.starts_when is None and frame.when_open is not None:
        yield Issue("when_open", "requires starts_when, which is missing")
    elif frame.starts_when is not None and frame.when_open is None:
        rule = "is required with starts_when, one of report, drop, continue: a start may meet an open frame"
        yield Issue("when_open", rule)
    if frame.kind == "trend" and frame.missing not in (None, "breaks"):
        rule = "must be breaks with kind trend: what is missing has no value to be above or below another"
        yield Issue("missing", f"{rule}; got {frame.missing}")
    elif frame.kind != "threshold" and frame.missing == "satisfies":
        rule = "requires kind threshold: a missing value satisfies no other kind"
        yield Issue("missing", f"{rule}; got kind {frame.kind}")
    if frame.known is None:
        return
    if frame.missing != "satisfies":
        got = "no missing" if frame.missing is None else f"missing: {frame.missing}"
        yield Issue("known", f"requires missing: satisfies; got {got}")
    for name, why in _NOT_KNOWN.items():
        if name in frame.model_fields_set:
            yield Issue(name, f"must not be set with known: {why}")


def _readings(frame: Frame) -> Iterator[Issue]:
    yield from find_duplicates("key", frame.key)
    if frame.source is None and frame.on_duplicate_time is None:
        rule = "is required for frames of events, one of first, last, min, max, sum, mean"
        yield Issue("on_duplicate_time", f"{rule}: a reading has a time of its own")
    for name in ("key", "on_duplicate_time"):
        if frame.source is not None and name in frame.model_fields_set:
            yield Issue(name, "requires frames of events; granules have those of their block")
    if frame.baseline is not None:
        for index, shift in enumerate(frame.baseline.shift):
            if not shift:
                yield Issue(f"baseline.shift[{index}]", "must be above 0")
        shifts = [format_duration(shift) for shift in frame.baseline.shift]
        yield from find_duplicates("baseline.shift", shifts)


def _period(frame: Frame) -> Iterator[Issue]:
    overlap, overlapping = overlaps(frame), frame.kind in OVERLAPPING
    minimum = "min_length" if frame.min_length else "min_records" if frame.min_records > 1 else None
    if frame.scheme == "partition" and (why := _leaves_out(frame, minimum)):
        yield Issue("scheme", f"must not be partition: {why}")
    if frame.scheme == "cover" and frame.kind != "delta":
        instead = "; unconstrained has every frame there is" if overlapping else ""
        rule = f"must not be cover with kind {frame.kind}: readings may be in no frame{instead}"
        yield Issue("scheme", rule)
    elif frame.scheme == "cover" and minimum:
        yield Issue("scheme", f"must not be cover with {minimum}: what is shorter is in no frame")
    if frame.set == "drained" and overlap:
        rule = f"must be saturated with scheme {frame.scheme}: it has every frame, where fewer would do"
        yield Issue("set", f"{rule}; got drained")
    if frame.set == "saturated" and not overlap and overlapping:
        rule = (
            "must be drained: a frame that begins with another reading could be added; "
            "scheme unconstrained has all of them"
        )
        yield Issue("set", f"{rule}; got saturated")
    period = frame.period
    if (frame.longest or overlap) and period is None:
        what = "longest" if frame.longest else f"scheme {frame.scheme}"
        yield Issue("period", f"is required with {what}, which is known when a period is over")
    elif period is not None and not (frame.longest or overlap):
        rule = "requires longest, or scheme cover or unconstrained of kind delta or aggregate"
        yield Issue("period", rule)
    elif period is not None and (period < HOUR or period % HOUR or period > LONGEST):
        rule = f"must be whole hours, from one to {format_duration(LONGEST)}"
        yield Issue("period", f"{rule}; got {format_duration(period)}")


def _leaves_out(frame: Frame, minimum: str | None) -> str | None:
    """Return why a reading may be in no frame, or None if every reading is in one."""
    if frame.kind in _APART:
        return _APART[frame.kind]
    if frame.span == "maximal":
        return "a reading that breaks the condition by itself is in no frame"
    if frame.starts_when is not None:
        return "readings before one that meets starts_when are in no frame"
    if minimum is not None:
        return f"what is shorter than {minimum} is in no frame"
    if frame.missing == "breaks":
        return "with missing: breaks a frame does not begin where the last one ended"
    return None


def overlaps(frame: Frame) -> bool:
    """Return whether frames of a key may overlap."""
    return frame.kind in OVERLAPPING and frame.scheme in ("cover", "unconstrained")
