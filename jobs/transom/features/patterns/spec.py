"""A block of `patterns`: episodes of several steps, seconds or weeks apart.

The records of a key are ordered by time, file and line. The meaning of a pattern:

- All records of an element of `steps` come before all records of the next one. The steps of an `any_order`
  are one element; their records come in any order. A record serves one step.
- An instance has `times` records of each step, lasts at most `within`, and spans at most `max_records`
  records of the pattern's stream, including those between its own.
- Matches are the minimal instances: none contains another one between its first and its last record.
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
"""The default for the number of records that an instance spans; more if its steps need more."""
MAX_PARTIAL_ORDERS = 256
"""The maximal product of `times + 1` of the steps in one `any_order`: the ways to serve a part of them."""
_SECOND = timedelta(seconds=1)
_AGREEMENT = re.compile(r"\s*(\w+)\s*(?:=\s*(\w+)\s*\.\s*(\w+)\s*)?")


class Agreement(NamedTuple):
    """All records of a step have the value in `column` that all records of `step` have in `step_column`."""

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
    """The time from the last record of the previous step to the first record of this one."""

    min: Duration = timedelta(0)
    """The shortest gap: the step follows at once, or later."""
    max: Duration | None = None
    """The longest gap, at most `within` of the pattern. Default: no limit of its own."""

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
        """The minimum and the maximum, in microseconds; a maximum of None is no bound."""
        return microseconds(self.min), None if self.max is None else microseconds(self.max)


class Step(Model):
    """One or several records that meet a condition."""

    id: Name
    """The name of the step, for other steps and in results."""
    where: NonEmptyStr
    """The condition that its records meet, such as `status = 404`."""
    times: Annotated[StrictInt, Field(ge=1, le=100_000)] = 1
    """The number of its records, 1 to 100,000. Other records may come between them."""
    within: Duration | None = None
    """The longest time from the first to the last of several records, at most `within` of the pattern.
    Default: no limit of its own. `gap` limits the time since the previous step."""
    distinct: Several = ()
    """A column, or a list of columns. Any two records of the step differ in at least one of them. A record
    with a null in one of them does not count."""
    gap: Gap | None = None
    """The time from the last record of the previous step to the first record of this one."""
    by: Annotated[Several, AfterValidator(_agreements)] = ()
    """Equality with an earlier step, one text or a list. `dst`: the value that the first step has in this
    column. `fd = accept.ret`: the value that step `accept` has in its column `ret`. A record with a null in
    the column equals none."""


class AnyOrder(Model):
    """Several steps whose records come in any order, between the previous step and the next."""

    any_order: tuple[Step, ...]
    """The steps, two or more, each with `id`, `where`, `times` and `by`. The product of their `times + 1` is
    at most 256."""
    within: Duration | None = None
    """The longest time from the first to the last of all their records, at most `within` of the pattern.
    Default: no limit of its own."""
    gap: Gap | None = None
    """The time from the last record of the previous step to the first of their records."""

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
    """A record that must not occur inside a match."""

    where: NonEmptyStr
    """The condition that the record meets."""
    between: Pair
    """The ids of two steps, `[first, last]`. There is no such record between the first record of the one and
    the last record of the other, which is a later step or the same one."""


class Pattern(Model):
    """A block of `patterns`: an episode of several steps, which may be seconds or weeks apart."""

    title: NonEmptyStr | None = None
    """The title of the findings, such as `{client} looked, and came back`. In braces are columns of the key,
    `start_time`, `last_time` or `matches`."""
    severity: Literal["high", "medium", "low"] = "medium"
    """The severity of the findings."""
    key: tuple[str, ...] = ()
    """The columns whose values all records of a match share. Default: those of the stream."""
    where: NonEmptyStr | None = None
    """A condition on the events that the pattern reads at all. Default: that of the stream."""
    within: Duration
    """The longest time from the first to the last record of a match: at least `batch`, at most 3,660 days.
    Each doubling adds a level."""
    declared_batch: Duration | None = Field(default=None, alias="batch")
    """The length of the shortest batches: whole seconds that divide an hour. A shorter batch finds quick
    matches sooner, in more windows. Default: 5 minutes, or the longest such length up to `within`."""
    declared_max_records: Annotated[StrictInt, Field(ge=1, le=1_000_000)] | None = Field(
        default=None, alias="max_records"
    )
    """The maximal number of records that a match spans, 1 to 1,000,000, and at least those of its steps.
    Memory and work grow in proportion. Default: 100, or twice the records of the steps if that is more."""
    count_records: Literal["steps", "all"] = "steps"
    """Which records `max_records` counts: those that a step or `absent` may take, or all that `where`
    selects. With a detector it counts all."""
    merge_gap: Duration = timedelta(0)
    """Matches of one key that overlap or are at most this far apart are one episode. At most 3,660 days. The
    longer, the later an episode is final."""
    carry: tuple[NonEmptyStr, ...] = ()
    """Columns whose values a match keeps of each of its records, as `kept_<column>`."""
    steps: tuple[Element, ...] = ()
    """The steps in order. `any_order: [...]` leaves the order of some steps open. There are at most 62
    conditions, with those of `absent`."""
    absent: tuple[Absent, ...] = ()
    """Records that must not occur between steps."""
    detector: DetectorPath | None = None
    """A Python function instead of steps, as `package.module.function`. It gets the records of a window in
    their order and returns the matches among them."""
    columns: tuple[NonEmptyStr, ...] = ()
    """The columns of the events that the detector gets, with their time and key."""

    @property
    def batch(self) -> timedelta:
        """The duration of a batch at level 0."""
        if self.declared_batch is not None:
            return self.declared_batch
        longest = max(min(BATCH, self.within) // _SECOND, 1)
        return next(n * _SECOND for n in range(longest, 0, -1) if not HOUR % (n * _SECOND))

    @property
    def max_records(self) -> int:
        """The maximal number of records that an instance spans (L)."""
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
        """The length of the longest window, rounded up to whole hours."""
        return -(-2 * self.top // HOUR) * HOUR

    @property
    def counts_all(self) -> bool:
        """Whether every record that `where` selects is in the pattern's stream."""
        return self.count_records == "all" or self.detector is not None

    @cached_property
    def elements(self) -> tuple[tuple[Step, ...], ...]:
        """The steps of each element of `steps`: one step, or those of an `any_order`."""
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
        """Return the agreements of a step with earlier ones."""
        first = self.all_steps[0].id
        parsed = filter(None, map(_AGREEMENT.fullmatch, step.by))
        return tuple(Agreement(form[1], form[2] or first, form[3] or form[1]) for form in parsed)
