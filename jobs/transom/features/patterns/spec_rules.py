"""Rules between the fields of one pattern: what can be told without the stream's columns."""

from collections.abc import Iterator
from datetime import timedelta

from transom.core.durations import format_duration
from transom.core.intervals import HOUR
from transom.features.patterns.spec import Agreement, Pattern, Step
from transom.spec.errors import Issue, did_you_mean, find_duplicates, item_path

MAX_CONDITIONS = 62
"""A record's steps and entries of `absent` are the bits of one integer."""
LONGEST = timedelta(days=3660)
"""The longest pattern; ten years are beyond any log, and far from where arithmetic on times ends."""
_SECOND = timedelta(seconds=1)


def problems(pattern: Pattern) -> Iterator[Issue]:
    """Yield what is wrong with a pattern, with paths inside it."""
    if pattern.detector is None and "steps" in pattern.model_fields_set and not pattern.steps:
        yield Issue("steps", "must have at least 1; got []")
        return
    if bool(pattern.steps) is (pattern.detector is not None):
        which = "both" if pattern.steps else "neither"
        yield Issue("", f"must have either steps or detector; it has {which}")
        return
    of_time = list(_durations(pattern))
    yield from of_time
    for name in ("key", "carry", "columns"):
        yield from find_duplicates(name, getattr(pattern, name))
    if pattern.detector is not None:
        if pattern.absent:
            yield Issue("absent", "goes with steps; a detector sees to it by itself")
        if pattern.count_records == "steps" and "count_records" in pattern.model_fields_set:
            yield Issue(
                "count_records", "must be all with a detector, which is shown every record; got 'steps'"
            )
        return
    if pattern.columns:
        yield Issue("columns", "goes with detector; steps read the columns that they name")
    of_ids = list(_ids(pattern))
    yield from of_ids
    if not of_time:
        yield from _reach(pattern)
    yield from _steps(pattern)
    if not of_ids:
        yield from _agreements(pattern)
        yield from _absent(pattern)
    conditions = len(pattern.all_steps) + len(pattern.absent)
    if conditions > MAX_CONDITIONS:
        yield Issue(
            "steps", f"must be at most {MAX_CONDITIONS}, those of absent among them; got {conditions}"
        )
    if pattern.max_records < pattern.takes:
        rule = f"must be at least {pattern.takes}, the records that the steps take"
        yield Issue("max_records", f"{rule}; got {pattern.max_records}")


def _durations(pattern: Pattern) -> Iterator[Issue]:
    within, batch = pattern.within, pattern.declared_batch
    if not within:
        yield Issue("within", f"must not be nothing; got {format_duration(within)}")
    for name in ("within", "merge_gap"):
        if getattr(pattern, name) > LONGEST:
            got = format_duration(getattr(pattern, name))
            yield Issue(name, f"must not be longer than {format_duration(LONGEST)}; got {got}")
    if batch is None:
        return
    if batch < _SECOND or batch % _SECOND or HOUR % batch:
        rule = "must be whole seconds that divide one hour, as 5 minutes does"
        yield Issue("batch", f"{rule}; got {format_duration(batch)}")
    elif timedelta(0) < within < batch:
        rule = f"must not be shorter than batch, {format_duration(batch)}"
        yield Issue("within", f"{rule}; got {format_duration(within)}")


def _ids(pattern: Pattern) -> Iterator[Issue]:
    seen: dict[str, str] = {}
    for place, _, step in pattern.placed():
        if step.id in seen:
            yield Issue(f"{place}.id", f"{step.id} is the id of {seen[step.id]}, too; choose another")
        seen.setdefault(step.id, place)


def _reach(pattern: Pattern) -> Iterator[Issue]:
    """Yield where a step comes too late, or may take longer than the whole."""
    whole, least = format_duration(pattern.within), timedelta(0)
    for number, element in enumerate(pattern.steps):
        place = f"steps[{number}]"
        if element.within is not None and element.within > pattern.within:
            got = format_duration(element.within)
            yield Issue(
                f"{place}.within", f"must not be longer than the pattern's within, {whole}; got {got}"
            )
        if element.gap is None:
            continue
        if number == 0:
            yield Issue(f"{place}.gap", "is the time since the element before, and there is none")
            continue
        if element.gap.max is not None and element.gap.max > pattern.within:
            rule = f"must not be longer than the pattern's within, {whole}"
            yield Issue(f"{place}.gap.max", f"{rule}; got {format_duration(element.gap.max)}")
        # No less: records may have one and the same time.
        before, least = least, least + element.gap.min
        if before <= pattern.within < least:
            rule = f"the step is never reached: the gaps up to it take {format_duration(least)} or more"
            yield Issue(f"{place}.gap.min", f"{rule}, and within is {whole}")


def _steps(pattern: Pattern) -> Iterator[Issue]:
    for place, number, step in pattern.placed():
        yield from find_duplicates(f"{place}.distinct", step.distinct)
        if step.times > 1:
            continue
        if step.within is not None:
            instead = "" if number == 0 else "; how long after the step before it comes is gap: {max: ...}"
            yield Issue(f"{place}.within", f"says nothing of a single record, and times is 1{instead}")
        if step.distinct:
            yield Issue(f"{place}.distinct", "says nothing of a single record, and times is 1")


def _agreements(pattern: Pattern) -> Iterator[Issue]:
    # Of each step, the columns in which all of its records are alike.
    alike = {step.id: {*pattern.key} for step in pattern.all_steps}
    elements = {step.id: number for _, number, step in pattern.placed()}
    for place, number, step in pattern.placed():
        agreements = pattern.agreements(step)
        for index, agreement in enumerate(agreements):
            at = f"{place}.by{item_path(agreements, index)}"
            if agreement in agreements[:index]:
                yield Issue(at, f"says again that {_agreement_text(agreement)}")
            if elements.get(agreement.step, number) < number:
                alike[step.id].add(agreement.column)
                alike[agreement.step].add(agreement.step_column)
            else:
                yield Issue(at, _unbound(agreement, step, number, elements))
    for place, _, step in pattern.placed():
        if step.times > 1 and step.distinct and alike[step.id].issuperset(step.distinct):
            columns = " and ".join(step.distinct)
            rule = f"is never met: by the key and `by` all records of {step.id} are alike in {columns}"
            yield Issue(f"{place}.distinct", rule)


def _agreement_text(agreement: Agreement) -> str:
    return f"{agreement.column} = {agreement.step}.{agreement.step_column}"


def _unbound(agreement: Agreement, step: Step, number: int, elements: dict[str, int]) -> str:
    """Return why what a step is to agree with is not there."""
    said, other = _agreement_text(agreement), agreement.step
    if other not in elements:
        before = [known for known, place in elements.items() if place < number]
        return f"no step {other!r} in {said!r}{did_you_mean(other, before or elements)}"
    if other == step.id:
        return f"must name a step before {step.id}, not itself; got {said!r}"
    if elements[other] == number:
        return f"must name a step before the any_order; {other} is in it, too; got {said!r}"
    return f"must name a step before {step.id}; {other} comes after it; got {said!r}"


def _absent(pattern: Pattern) -> Iterator[Issue]:
    elements = {step.id: number for _, number, step in pattern.placed()}
    times = {step.id: step.times for step in pattern.all_steps}
    for index, forbidden in enumerate(pattern.absent):
        place = f"absent[{index}].between"
        unknown = [number for number, name in enumerate(forbidden.between) if name not in elements]
        for number in unknown:
            name = forbidden.between[number]
            yield Issue(f"{place}[{number}]", f"no step {name!r}{did_you_mean(name, elements)}")
        if unknown:
            continue
        first, last = forbidden.between
        if first == last:
            if times[first] == 1:
                yield Issue(place, f"nothing lies between {first} and itself, as its times is 1")
        elif elements[first] == elements[last]:
            yield Issue(place, f"must be steps in order; {first} and {last} come in any order")
        elif elements[first] > elements[last]:
            yield Issue(place, f"must be in the order of the steps; got {first} before {last}")
