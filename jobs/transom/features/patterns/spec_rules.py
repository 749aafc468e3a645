"""Rules between the fields of one pattern. They need no columns of the stream."""

from collections.abc import Iterator
from datetime import timedelta

from transom.core.durations import format_duration
from transom.core.intervals import HOUR
from transom.features.patterns.spec import Pattern, Step
from transom.spec.errors import Issue, did_you_mean, find_duplicates, item_path

MAX_CONDITIONS = 62
"""The maximal number of conditions: those that a record meets are the bits of one integer."""
LONGEST = timedelta(days=3660)
"""The longest duration: longer than any log, and times in microseconds cannot overflow."""
_SECOND = timedelta(seconds=1)


def problems(pattern: Pattern) -> Iterator[Issue]:
    """Yield the problems of a pattern, with paths inside it."""
    if pattern.detector is None and "steps" in pattern.model_fields_set and not pattern.steps:
        yield Issue("steps", "must have at least 1; got []")
        return
    if bool(pattern.steps) is (pattern.detector is not None):
        yield Issue(
            "", f"must have either steps or detector; it has {'both' if pattern.steps else 'neither'}"
        )
        return
    durations = list(_durations(pattern))
    yield from durations
    for name in ("key", "carry", "columns"):
        yield from find_duplicates(name, getattr(pattern, name))
    if pattern.detector is not None:
        if pattern.absent:
            yield Issue("absent", "requires steps; a detector decides this by itself")
        if pattern.count_records == "steps" and "count_records" in pattern.model_fields_set:
            rule = "must be all with a detector, which is shown every record; got 'steps'"
            yield Issue("count_records", rule)
        return
    if pattern.columns:
        yield Issue("columns", "requires detector; steps read the columns that they name")
    path_of: dict[str, str] = {}
    duplicates = []
    for path, _, step in pattern.placed():
        if path_of.setdefault(step.id, path) != path:
            rule = f"{step.id} is the id of {path_of[step.id]}, too; choose another"
            duplicates.append(Issue(f"{path}.id", rule))
    yield from duplicates
    if not durations:
        yield from _reach(pattern)
    for path, number, step in pattern.placed():
        yield from find_duplicates(f"{path}.distinct", step.distinct)
        if step.times > 1:
            continue
        if step.within is not None:
            instead = "" if number == 0 else "; how long after the step before it comes is gap: {max: ...}"
            yield Issue(f"{path}.within", f"has no effect on a single record, and times is 1{instead}")
        if step.distinct:
            yield Issue(f"{path}.distinct", "has no effect on a single record, and times is 1")
    if not duplicates:
        yield from _agreements(pattern)
        yield from _absent(pattern)
    conditions = len(pattern.all_steps) + len(pattern.absent)
    if conditions > MAX_CONDITIONS:
        rule = f"must be at most {MAX_CONDITIONS}, those of absent among them"
        yield Issue("steps", f"{rule}; got {conditions}")
    if pattern.max_records < pattern.takes:
        rule = f"must be at least {pattern.takes}, the records that the steps take"
        yield Issue("max_records", f"{rule}; got {pattern.max_records}")


def _durations(pattern: Pattern) -> Iterator[Issue]:
    within, batch = pattern.within, pattern.declared_batch
    if not within:
        yield Issue("within", f"must be above 0; got {format_duration(within)}")
    for name, length in (("within", within), ("merge_gap", pattern.merge_gap)):
        if length > LONGEST:
            rule = f"must not be longer than {format_duration(LONGEST)}"
            yield Issue(name, f"{rule}; got {format_duration(length)}")
    if batch is None:
        return
    if batch < _SECOND or batch % _SECOND or HOUR % batch:
        rule = "must be whole seconds that divide one hour, as 5 minutes does"
        yield Issue("batch", f"{rule}; got {format_duration(batch)}")
    elif timedelta(0) < within < batch:
        rule = f"must not be shorter than batch, {format_duration(batch)}"
        yield Issue("within", f"{rule}; got {format_duration(within)}")


def _reach(pattern: Pattern) -> Iterator[Issue]:
    """Yield the limits of time that are longer than `within` of the pattern, and misplaced gaps."""
    whole, earliest = format_duration(pattern.within), timedelta(0)
    too_long = f"must not be longer than the pattern's within, {whole}; got "
    for number, element in enumerate(pattern.steps):
        path, gap = f"steps[{number}]", element.gap
        if element.within is not None and element.within > pattern.within:
            yield Issue(f"{path}.within", too_long + format_duration(element.within))
        if gap is None:
            continue
        if number == 0:
            yield Issue(f"{path}.gap", "is the time since the element before, and there is none")
            continue
        if gap.max is not None and gap.max > pattern.within:
            yield Issue(f"{path}.gap.max", too_long + format_duration(gap.max))
        # Elements without a gap may follow at once: records may have the same time.
        previous, earliest = earliest, earliest + gap.min
        if previous <= pattern.within < earliest:
            rule = f"the step is never reached: the gaps up to it take {format_duration(earliest)} or more"
            yield Issue(f"{path}.gap.min", f"{rule}, and within is {whole}")


def _agreements(pattern: Pattern) -> Iterator[Issue]:
    # The columns in which all records of a step are equal.
    equal = {step.id: {*pattern.key} for step in pattern.all_steps}
    elements = {step.id: number for _, number, step in pattern.placed()}
    for path, number, step in pattern.placed():
        agreements = pattern.agreements(step)
        for index, agreement in enumerate(agreements):
            text = f"{agreement.column} = {agreement.step}.{agreement.step_column}"
            at = f"{path}.by{item_path(agreements, index)}"
            if agreement in agreements[:index]:
                yield Issue(at, f"repeats that {text}")
            if elements.get(agreement.step, number) < number:
                equal[step.id].add(agreement.column)
                equal[agreement.step].add(agreement.step_column)
            else:
                yield Issue(at, _unbound(agreement.step, text, step, elements))
    for path, _, step in pattern.placed():
        if step.times > 1 and step.distinct and equal[step.id].issuperset(step.distinct):
            columns = " and ".join(step.distinct)
            rule = f"is never met: by the key and `by` all records of {step.id} are alike in {columns}"
            yield Issue(f"{path}.distinct", rule)


def _unbound(other: str, text: str, step: Step, elements: dict[str, int]) -> str:
    """Return the reason why a step cannot agree with another one that is not before it."""
    if other not in elements:
        earlier = [name for name, number in elements.items() if number < elements[step.id]]
        return f"no step {other!r} in {text!r}{did_you_mean(other, earlier or elements)}"
    if other == step.id:
        return f"must name a step before {step.id}, not itself; got {text!r}"
    if elements[other] == elements[step.id]:
        return f"must name a step before the any_order; {other} is in it, too; got {text!r}"
    return f"must name a step before {step.id}; {other} comes after it; got {text!r}"


def _absent(pattern: Pattern) -> Iterator[Issue]:
    elements = {step.id: number for _, number, step in pattern.placed()}
    times = {step.id: step.times for step in pattern.all_steps}
    for index, forbidden in enumerate(pattern.absent):
        path, (first, last) = f"absent[{index}].between", forbidden.between
        unknown = [number for number, name in enumerate(forbidden.between) if name not in elements]
        for number in unknown:
            name = forbidden.between[number]
            yield Issue(f"{path}[{number}]", f"no step {name!r}{did_you_mean(name, elements)}")
        if unknown:
            continue
        if first == last:
            if times[first] == 1:
                yield Issue(path, f"nothing lies between {first} and itself, as its times is 1")
        elif elements[first] == elements[last]:
            yield Issue(path, f"must be steps in order; {first} and {last} come in any order")
        elif elements[first] > elements[last]:
            yield Issue(path, f"must be in the order of the steps; got {first} before {last}")
