"""Multi-granular sliding windows: the levels of an aggregation and their rules.

`RANGES 24 HOURS, 6 HOURS, 1 HOUR SLIDES 6 HOURS, 3 HOURS, 1 HOUR`: the coarsest first, as they stand in
`levels`; level 0 is the finest. With omega for a range and beta for a slide:

    omega_{k-1} < omega_k        beta_{k-1} <= beta_k        omega_k = mu_k * beta_k, mu_k whole
"""

import re
from collections.abc import Sequence
from datetime import timedelta
from functools import reduce
from itertools import pairwise
from math import gcd
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainSerializer,
    WithJsonSchema,
    model_validator,
)

from transom.core.durations import Duration, format_duration, microseconds, parse_duration
from transom.core.intervals import HOUR
from transom.features.aggregates import fit_spec as fits
from transom.features.aggregates.alert_spec import Alerts
from transom.features.aggregates.fit_spec import Fit
from transom.spec.base import Model, Name, NonEmptyStr, Number
from transom.spec.errors import Issue, IssuesError, did_you_mean

Function = Literal["count", "sum", "mean", "min", "max", "distinct"]
FUNCTIONS: tuple[str, ...] = get_args(Function)

_RANGES = re.compile(r"\s*RANGES\s+(.+?)\s+SLIDES\s+(.+?)\s*", re.IGNORECASE | re.DOTALL)
_MEASURE = re.compile(r"\s*([^\W\d]\w*)\s*(?:\(\s*([^()]*?)\s*\))?\s*")
_SECOND = timedelta(seconds=1)


class Level(Model):
    """One window: at every multiple of `slide` since the epoch, the `range` before it."""

    range: Duration
    """How far back a window reaches."""
    slide: Duration
    """How far apart windows end."""

    def __str__(self) -> str:
        return f"range {format_duration(self.range)}, slide {format_duration(self.slide)}"


class Measure(Model):
    """A figure of an aggregation: `count`, or `sum`, `mean`, `min`, `max` or `distinct` of a column."""

    function: Function
    column: str | None = None

    def __str__(self) -> str:
        return self.function if self.column is None else f"{self.function}({self.column})"


def read_levels(value: Any) -> Any:
    """Return the levels of a `RANGES ... SLIDES ...` text, coarsest first; anything else unchanged.

    Raises:
        Problems: not of that form, a duration that cannot be read, more ranges than slides.
    """
    if not isinstance(value, str):
        return value
    form = _RANGES.fullmatch(value)
    if form is None:
        example = "RANGES 6 HOURS, 1 HOUR SLIDES 1 HOUR, 5 MINUTES"
        raise IssuesError([Issue("", f"must read like {example}, or be a list; got {value!r}")])
    parts, problems = [], []
    for group in form.groups():
        lengths = []
        for index, text in enumerate(group.split(",")):
            try:
                lengths.append(parse_duration(text.strip()))
            except ValueError as error:
                problems.append(Issue(f"[{index}]", str(error)))
        parts.append(lengths)
    if problems:
        raise IssuesError(problems)
    ranges, slides = parts
    if len(ranges) != len(slides):
        raise IssuesError(
            [Issue("", f"must have as many slides as ranges; got {len(ranges)} ranges, {len(slides)} slides")]
        )
    return [{"range": width, "slide": slide} for width, slide in zip(ranges, slides, strict=True)]


def check_levels(levels: tuple[Level, ...]) -> tuple[Level, ...]:
    """Return levels, coarsest first, that keep the rules.

    Raises:
        Problems: naming each level that does not, the rule and the values.
    """
    problems = []
    for index, level in enumerate(levels):
        name = f"level {len(levels) - 1 - index} ({level})"

        def broken(rule: str, index: int = index, name: str = name) -> None:
            problems.append(Issue(f"[{index}]", f"{name}: {rule}"))

        if level.slide < _SECOND or level.slide % _SECOND:
            broken("the slide must be whole seconds, at least one")
            continue
        if level.range < level.slide or level.range % level.slide:
            broken("the range must be a whole multiple of the slide")
        if index + 1 < len(levels):
            finer = levels[index + 1]
            lower = f"level {len(levels) - 2 - index}'s ({finer})"
            if level.range <= finer.range:
                broken(f"the range must be longer than {lower}")
            if level.slide < finer.slide:
                broken(f"the slide must not be shorter than {lower}")
    if problems:
        raise IssuesError(problems)
    return levels


def not_nested(what: str, levels: Sequence[Level]) -> list[Issue]:
    """Return what keeps the levels' windows from ending together, which is what rings between them take.

    Args:
        what: the field that asks for rings.
        levels: the coarsest first.
    """
    numbered = list(enumerate(reversed(levels)))
    return [
        Issue(
            what,
            f"level {number} ({level}): the slide must be a multiple of level {number - 1}'s ({lower})",
        )
        for (_, lower), (number, level) in pairwise(numbered)
        if level.slide % lower.slide
    ]


def read_measure(value: Any) -> Any:
    """Return the measure that `sum(bytes)` or `count` names; the column is not looked up here.

    Raises:
        ValueError: not of that form, or an unknown function.
    """
    if isinstance(value, Measure):
        return value
    form = _MEASURE.fullmatch(value) if isinstance(value, str) else None
    if form is None:
        raise ValueError(
            f"must be count, or sum, mean, min, max or distinct of a column, as sum(bytes); got {value!r}"
        )
    function, column = form[1].lower(), form[2]
    if function not in FUNCTIONS:
        raise ValueError(f"unknown function {form[1]!r} in {value!r}{did_you_mean(function, FUNCTIONS)}")
    if function == "count" and column is not None:
        raise ValueError(f"count counts records and takes no column; got {value!r}")
    if function != "count" and not column:
        raise ValueError(f"{function} needs a column, as {function}(bytes); got {value!r}")
    return Measure.model_validate({"function": function, "column": column})


Weight = Annotated[Number, Field(ge=0.001, le=1000)]
Levels = Annotated[
    tuple[Level, ...],
    Field(min_length=1),
    AfterValidator(check_levels),
    BeforeValidator(read_levels, json_schema_input_type=str | list[Level]),
]
MeasureText = Annotated[
    Measure,
    BeforeValidator(read_measure),
    PlainSerializer(str, return_type=str),
    WithJsonSchema({"type": "string", "examples": ["count", "sum(bytes)", "distinct(path)"]}),
]


class Aggregation(Model):
    """A block of `aggregates`: figures of each key over windows of several granularities."""

    key: tuple[str, ...] = ()
    """The columns that a figure is for each value of; the stream's where nothing is said."""
    where: NonEmptyStr | None = None
    """A condition on the events, such as status >= 500; the stream's where nothing is said."""
    measures: Annotated[dict[Name, MeasureText], Field(min_length=1)]
    """The figures, by name: count, or sum, mean, min or max of a column, as sum(bytes); or distinct, how many
    values it has, with the standard error of that."""
    levels: Levels
    """The windows, coarsest first: RANGES 6 HOURS, 1 HOUR SLIDES 1 HOUR, 5 MINUTES, or a list of range
    and slide. Each range is a multiple of its slide."""
    fit: Fit | None = None
    """Lines of each figure against time, one value a unit: the unit's length, such as 1 hour, or more. Counts
    of distinct values have none."""
    aging: tuple[Weight, ...] | None = None
    """A weight for each level, from 0.001 to 1000, in the order of the ranges: in `aged_mean` of each figure,
    what only its range reaches counts so much. Nothing weighs 0: a block without the range leaves it out.
    Each slide is a multiple of the one below then."""
    recurring: tuple[str, ...] = ()
    """The columns of an item: which items come back in every ring between neighbouring levels is told when
    the widest one reports. There are at least two levels then, and each slide is a multiple of the one below;
    an event that lacks one of the columns has no item."""
    alert: Alerts = Field(default_factory=dict)
    """Conditions on the reports that a person is told of, as slope_sent > 0 and n > 1000: one, or several by
    name."""
    title: NonEmptyStr | None = None
    """For people."""

    @property
    def unit(self) -> timedelta | None:
        """How long a unit of lines is, None where there are none."""
        if self.fit is None:
            return None
        return self.levels[-1].slide if self.fit.unit is None else self.fit.unit

    @property
    def base(self) -> timedelta:
        """The base granule: the greatest common divisor of all slides, the unit of lines, and one hour."""
        return common_granule([*(level.slide for level in self.levels), *([self.unit] if self.unit else [])])

    @property
    def item_base(self) -> timedelta:
        """The granule of items: it divides the rings between the levels where the widest one reports, and one
        hour."""
        return common_granule([*(level.range for level in self.levels), self.levels[0].slide])

    @model_validator(mode="after")
    def _levels_suit(self) -> "Aggregation":
        problems = [] if self.unit is None else list(fits.problems(self.unit, self.levels))
        functions = {measure.function for measure in self.measures.values()}
        if self.fit is not None and functions == {"distinct"}:
            problems.append(Issue("fit", "no measure has a line: counts of distinct values have none"))
        if self.aging is not None and functions <= {"count", "distinct"}:
            problems.append(
                Issue("aging", "no measure has a mean: it takes sum, mean, min or max of a column")
            )
        if self.aging is not None:
            many, weights = len(self.levels), len(self.aging)
            if many != weights:
                problems.append(
                    Issue("aging", f"must have a weight for each of {many} levels; got {weights}")
                )
            problems += not_nested("aging", self.levels)
        if self.recurring:
            if len(self.levels) == 1:
                problems.append(
                    Issue("recurring", "needs at least two levels, as rings lie between them; got 1")
                )
            problems += not_nested("recurring", self.levels)
        if problems:
            raise IssuesError(problems)
        return self


def common_granule(lengths: Sequence[timedelta]) -> timedelta:
    """Return the longest granule that divides every one of some lengths, and one hour."""
    return timedelta(microseconds=reduce(gcd, map(microseconds, lengths), microseconds(HOUR)))
