"""A pattern as people write it: episodes of several steps, minutes or days apart.

Records are those of one key in their total order, by time, file and line. What a pattern means:

- The elements of `steps` follow each other: every record of one comes before every record of the next. The
  steps of one `any_order` are one element, whose records come in any order. A record serves one step.
- An instance takes a record for each time of each step, lasts at most `within`, and spans at most
  `max_records` records of the pattern's stream, those between its own among them.
- Reported are the minimal instances: none lies inside another one's first to last record.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from functools import cached_property
from math import prod
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import AfterValidator, BeforeValidator, Field, StrictInt, WrapValidator, model_validator

from transom.core.durations import Duration, format_duration, microseconds
from transom.core.intervals import HOUR, MICROSECOND
from transom.features.patterns.algorithm.widening import Widening
from transom.features.patterns.custom_detector import DetectorPath
from transom.spec.base import Model, Name, NonEmptyStr
from transom.spec.errors import Issue, IssuesError, item_path

BATCH = timedelta(minutes=5)
"""The default duration of a batch at level 0; shorter if `within` is."""
MAX_RECORDS = 100
"""The default for the number of records that an instance spans."""
MAX_PARTIAL_ORDERS = 256
"""The largest number of ways in which the steps of one `any_order` can be served in part."""
_SECOND = timedelta(seconds=1)
_AGREEMENT = re.compile(r"\s*(\w+)\s*(?:=\s*(\w+)\s*\.\s*(\w+)\s*)?")


class Agreement(NamedTuple):
    """Every record of a step has the same value in `column` as every one of `step` has in `step_column`."""

    column: str
    step: str
    step_column: str


def _several(value: Any) -> Any:
    if not isinstance(value, str | list | tuple):
        raise ValueError(f"must be text, or a list of it; got {value!r}")
    return [value] if isinstance(value, str) else value


def _agreements(texts: tuple[str, ...]) -> tuple[str, ...]:
    rule = "must be a column, or a column and one of an earlier step, as fd = accept.ret"
    issues = [
        Issue(item_path(texts, index), f"{rule}; got {text!r}")
        for index, text in enumerate(texts)
        if not _AGREEMENT.fullmatch(text)
    ]
    if issues:
        raise IssuesError(issues)
    return texts


Several = Annotated[
    tuple[NonEmptyStr, ...], BeforeValidator(_several, json_schema_input_type=NonEmptyStr | list[NonEmptyStr])
]


class Gap(Model):
    """How long after the last record of the element before the first of this one comes."""

    min: Duration = timedelta(0)
    """At least so long after; at once where nothing is said."""
    max: Duration | None = None
    """At most so long after; as long as the pattern's `within` lets it where nothing is said."""

    @model_validator(mode="after")
    def _bounds(self) -> "Gap":
        if not self.model_fields_set:
            raise IssuesError([Issue("", "must have min, max or both")])
        if self.max is not None and self.min > self.max:
            got = f"min {format_duration(self.min)}, max {format_duration(self.max)}"
            raise IssuesError([Issue("", f"min must not be longer than max; got {got}")])
        return self

    @property
    def bounds(self) -> tuple[int, int | None]:
        """The minimum and the maximum, in microseconds; None is no bound."""
        return microseconds(self.min), None if self.max is None else microseconds(self.max)


class Step(Model):
    """Records of one kind, one or several."""

    id: Name
    """What it is called: by other steps, and in what was found."""
    where: NonEmptyStr
    """The condition that its records meet, such as status = 404."""
    times: Annotated[StrictInt, Field(ge=1, le=100_000)] = 1
    """How many records; other records may lie between them."""
    within: Duration | None = None
    """How long it is at most from the first to the last of several records. How long after the step before
    it comes is said by `gap`."""
    distinct: Several = ()
    """A column, or a list of them, in which no two of several records agree; a record that lacks one of the
    columns does not count."""
    gap: Gap | None = None
    """How long after the last record of the element before its first one comes: min, max or both."""
    by: Annotated[Several, AfterValidator(_agreements)] = ()
    """What its records have in common with those of an earlier step, one text or a list: `dst`, the same
    value of the column as the pattern's first step has, or `fd = accept.ret`, the value that another
    column of step accept has. A record that lacks the column agrees with nothing."""


class AnyOrder(Model):
    """Several steps whose records come in any order, all after the element before and before the next."""

    any_order: tuple[Step, ...]
    """The steps, two or more, each with id, where, times and by."""
    within: Duration | None = None
    """How long it is at most from the first to the last of all their records."""
    gap: Gap | None = None
    """How long after the last record of the element before their first one comes: min, max or both."""

    @model_validator(mode="after")
    def _several_plain_steps(self) -> "AnyOrder":
        if issues := list(self._issues()):
            raise IssuesError(issues)
        return self

    def _issues(self) -> Iterator[Issue]:
        if len(self.any_order) < 2:
            yield Issue("any_order", f"must have at least 2 steps; got {len(self.any_order)}")
        for index, step in enumerate(self.any_order):
            rule = "has no meaning where the order is any; give it to the any_order as a whole"
            for name in ("within", "gap"):
                if getattr(step, name) is not None:
                    yield Issue(f"any_order[{index}].{name}", rule)
            if step.distinct:
                rule = "is not known of a step in an any_order; make it a step of its own"
                yield Issue(f"any_order[{index}].distinct", rule)
        ways = prod(step.times + 1 for step in self.any_order)
        if ways > MAX_PARTIAL_ORDERS:
            rule = f"may be served in part in at most {MAX_PARTIAL_ORDERS} ways, the product of times + 1"
            yield Issue("any_order", f"{rule}; got {ways}")


def _element(value: Any, _: Any) -> Step | AnyOrder:
    # A union would report each error twice, once for each model.
    if isinstance(value, Step | AnyOrder):
        return value
    model = AnyOrder if isinstance(value, Mapping) and "any_order" in value else Step
    return model.model_validate(value)


def _pair(ids: tuple[str, ...]) -> tuple[str, ...]:
    if len(ids) != 2:
        raise ValueError(f"must be the ids of two steps, or twice that of one; got {list(ids)}")
    return ids


Element = Annotated[Step | AnyOrder, WrapValidator(_element)]
Pair = Annotated[
    tuple[Name, ...], AfterValidator(_pair), Field(json_schema_extra={"minItems": 2, "maxItems": 2})
]


class Absent(Model):
    """A record that an instance must not have inside."""

    where: NonEmptyStr
    """The condition on the record."""
    between: Pair
    """Two ids, [first, last]: there is none between the first record of the one step and the last record of
    the other, which comes later or is the same."""


class Pattern(Model):
    """A block of `widen`: an episode that is found however slow it is, as long as it takes `within`."""

    title: NonEmptyStr | None = None
    """For people: what happened, with columns of the key, start, end or matches in braces, as
    {client} looked, and came back."""
    severity: Literal["high", "medium", "low"] = "medium"
    """How bad it is."""
    key: tuple[str, ...] = ()
    """The columns whose values all records of an instance share; the stream's where nothing is said."""
    where: NonEmptyStr | None = None
    """A condition on the events that the pattern sees at all; the stream's where nothing is said."""
    within: Duration
    """The longest that an instance takes, from its first to its last record."""
    declared_batch: Duration | None = Field(default=None, alias="batch")
    """How finely time is cut at the lowest level, a divisor of an hour: the shorter, the sooner a quick
    instance is told, and the less of a busy key is cut away. 5 minutes where nothing is said, or less where
    `within` is."""
    declared_max_records: Annotated[StrictInt, Field(ge=1, le=1_000_000)] | None = Field(
        default=None, alias="max_records"
    )
    """The most records that an instance spans, from its first to its last one; 100 where nothing is said, or
    twice as many as the steps take where that is more."""
    count_records: Literal["steps", "all"] = "steps"
    """Which records `max_records` counts: those that a step or one of absent may take, or all that `where`
    lets through. With a detector it is all."""
    merge_gap: Duration = timedelta(0)
    """Matches of one key that overlap, or that lie at most so far apart, are one episode."""
    carry: tuple[NonEmptyStr, ...] = ()
    """Columns whose values a match keeps, of each of its records."""
    steps: tuple[Element, ...] = ()
    """What happens, in order: steps, or several in any_order."""
    absent: tuple[Absent, ...] = ()
    """What must not happen in between."""
    detector: DetectorPath | None = None
    """Instead of steps: the path of a Python function, as package.module.function, that is given the records
    of a window in their order and returns the matches among them."""
    columns: tuple[NonEmptyStr, ...] = ()
    """The columns that a record has which the detector is given, beside its time and the key."""

    @property
    def batch(self) -> timedelta:
        """The duration of a batch at level 0."""
        if self.declared_batch is not None:
            return self.declared_batch
        longest = max(min(BATCH, self.within) // _SECOND, 1)
        return next(n * _SECOND for n in range(longest, 0, -1) if not HOUR % (n * _SECOND))

    @property
    def max_records(self) -> int:
        """The largest number of records that an instance spans (L)."""
        return self.declared_max_records or max(MAX_RECORDS, 2 * self.takes)

    @property
    def takes(self) -> int:
        """The number of records of an instance; 1 if only a detector knows it."""
        return sum(step.times for step in self.all_steps) or 1

    @property
    def widening(self) -> Widening:
        """The parameters of the windows."""
        return Widening(microseconds(self.batch), microseconds(self.within), self.max_records)

    @property
    def top(self) -> timedelta:
        """The duration of a batch at the top level, at least `within`; its windows are twice as long."""
        return self.widening.top * MICROSECOND

    @property
    def reach(self) -> timedelta:
        """How far back the longest window reaches, in whole hours."""
        return -(-2 * self.top // HOUR) * HOUR

    @property
    def counts_all(self) -> bool:
        """Whether every record that `where` lets through is in the pattern's stream."""
        return self.count_records == "all" or self.detector is not None

    @cached_property
    def elements(self) -> tuple[tuple[Step, ...], ...]:
        """The steps of each element of `steps`: one, or those of an `any_order`."""
        return tuple(part.any_order if isinstance(part, AnyOrder) else (part,) for part in self.steps)

    @property
    def all_steps(self) -> tuple[Step, ...]:
        """Every step in the order of the file."""
        return tuple(step for element in self.elements for step in element)

    def placed(self) -> Iterator[tuple[str, int, Step]]:
        """Yield every step in the order of the file, with its path and the number of its element."""
        for number, (part, steps) in enumerate(zip(self.steps, self.elements, strict=True)):
            for index, step in enumerate(steps):
                inner = f".any_order[{index}]" if isinstance(part, AnyOrder) else ""
                yield f"steps[{number}]{inner}", number, step

    def agreements(self, step: Step) -> tuple[Agreement, ...]:
        """Return what the records of a step agree in."""
        first = self.all_steps[0].id
        parsed = filter(None, map(_AGREEMENT.fullmatch, step.by))
        return tuple(Agreement(form[1], form[2] or first, form[3] or form[1]) for form in parsed)
