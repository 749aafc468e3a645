"""Instances of a pattern, and the minimal ones, by brute force: the definitions in code."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, pairwise, permutations

from transom.features.patterns.algorithm.pattern import (
    NULL,
    EventPattern,
    Instance,
    PatternStep,
    RecordSequence,
)


def holds(pattern: EventPattern, records: RecordSequence, instance: Instance) -> bool:
    """Return whether records are an instance, by the definition."""
    time = records.time
    places_of = {step.name: instance.of(step.name) for step in pattern.steps}
    served = [sorted(p for s in element.steps for p in places_of[s.name]) for element in pattern.elements]

    def lasts_at_most(places: Sequence[int], limit: int | None) -> bool:
        return limit is None or time[places[-1]] - time[places[0]] <= limit

    def follows(earlier: Sequence[int], later: Sequence[int], gap: tuple[int | None, int | None]) -> bool:
        time_between, (min_gap, max_gap) = time[later[0]] - time[earlier[-1]], gap
        long_enough = time_between >= (min_gap or 0)
        return earlier[-1] < later[0] and long_enough and (max_gap is None or time_between <= max_gap)

    return (
        all(len(places_of[step.name]) == step.times for step in pattern.steps)
        and lasts_at_most(instance.places, pattern.max_length)
        and instance.places[-1] - instance.places[0] < pattern.max_records
        and all(map(lasts_at_most, served, (element.within for element in pattern.elements)))
        and all(follows(*pair, e.gap) for pair, e in zip(pairwise(served), pattern.elements[1:], strict=True))
        and all(_serves(step, records, places_of) for step in pattern.steps)
        and not any(
            records.bits[place] >> never.bit & 1
            for never in pattern.nevers
            for place in range(places_of[never.first][0] + 1, places_of[never.last][-1])
        )
    )


def _serves(step: PatternStep, records: RecordSequence, places_of: Mapping[str, Sequence[int]]) -> bool:
    places, codes = places_of[step.name], records.codes
    distinct = [tuple(codes[column][place] for column in step.distinct) for place in places]
    agreed = [
        {codes[own][place] for place in places} | {codes[column][place] for place in places_of[earlier]}
        for own, earlier, column in step.agrees
    ]
    return (
        all(records.bits[place] >> step.bit & 1 for place in places)
        and (not step.distinct or len(set(distinct)) == len(places))
        and not any(NULL in values for values in [*distinct, *agreed])
        and all(len(values) == 1 for values in agreed)
    )


def instances(pattern: EventPattern, records: RecordSequence) -> Iterator[Instance]:
    """Yield every instance by brute force; their number is exponential."""
    slots = [number for number, step in enumerate(pattern.steps) for _ in range(step.times)]
    orders = sorted(set(permutations(slots)))
    for places in combinations(range(len(records)), len(slots)):
        for order in orders:
            instance = Instance(places, tuple(pattern.steps[number].name for number in order))
            if holds(pattern, records, instance):
                yield instance


def minimal_instances(pattern: EventPattern, records: RecordSequence) -> list[Instance]:
    """Return the minimal instances in the order of their last record, by the definition."""
    first_of: dict[tuple[int, int], Instance] = {}
    for instance in instances(pattern, records):
        # Places are ascending, and the steps of each in the order of the file.
        first_of.setdefault((instance.places[0], instance.places[-1]), instance)
    return [
        first_of[a, b]
        for a, b in sorted(first_of, key=lambda span: span[1])
        if not any(a <= c and d <= b and (a, b) != (c, d) for c, d in first_of)
    ]
