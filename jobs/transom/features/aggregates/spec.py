"""A block of `aggregates`: measures, levels of windows, lines, recurring items and alerts.

Levels are ordered from coarse to fine, as in `RANGES 24 HOURS, 6 HOURS, 1 HOUR SLIDES 6 HOURS, 3 HOURS, 1
HOUR`. Level 0 is the finest. For a range omega and a slide beta:

    omega_{k-1} < omega_k        beta_{k-1} <= beta_k        omega_k = mu_k * beta_k, mu_k an integer
"""

import re
from collections.abc import Iterator, Sequence
from datetime import timedelta
from itertools import pairwise, zip_longest
from math import gcd
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainSerializer,
    StrictInt,
    WithJsonSchema,
    model_validator,
)

from transom.core.durations import Duration, format_duration, microseconds, parse_duration
from transom.core.intervals import HOUR
from transom.spec.base import Model, Name, NonEmptyStr, Number, ShorthandModel
from transom.spec.errors import Issue, IssuesError, did_you_mean

Function = Literal["count", "sum", "mean", "min", "max", "distinct"]
FUNCTIONS: tuple[str, ...] = get_args(Function)

_RANGES = re.compile(r"\s*RANGES\s+(.+?)\s+SLIDES\s+(.+?)\s*", re.IGNORECASE | re.DOTALL)
_MEASURE = re.compile(r"\s*([^\W\d]\w*)\s*(?:\(\s*([^()]*?)\s*\))?\s*")
_SECOND = timedelta(seconds=1)
MAX_FIT_UNITS = 2**15
"""The maximal number of units in a window: up to it, sums of lines are exact (`algorithm.linear_fit`)."""
UNNAMED = "alert"
"""The name of an alert without a name."""


class Level(Model):
    """Windows of one granularity: one ends at each multiple of `slide` since 1970, in UTC."""

    range: Duration
    """The length of a window: a multiple of `slide`, and longer than the range of the next finer level."""
    slide: Duration
    """The time between the ends of windows: whole seconds, at least 1, and not shorter than the slide of the
    next finer level."""

    def __str__(self) -> str:
        return f"range {format_duration(self.range)}, slide {format_duration(self.slide)}"


class Measure(Model):
    """A measure: `count`, or `sum`, `mean`, `min`, `max` or `distinct` of a column."""

    function: Function
    column: str | None = None

    def __str__(self) -> str:
        return self.function if self.column is None else f"{self.function}({self.column})"


def read_levels(value: Any) -> Any:
    """Return the levels of a `RANGES ... SLIDES ...` text, coarsest first; anything else unchanged.

    Raises:
        IssuesError: another form, an invalid duration, or different numbers of ranges and slides.
    """
    if not isinstance(value, str):
        return value
    form = _RANGES.fullmatch(value)
    if form is None:
        example = "RANGES 6 HOURS, 1 HOUR SLIDES 1 HOUR, 5 MINUTES"
        raise IssuesError([Issue("", f"must read like {example}, or be a list; got {value!r}")])
    lengths: tuple[list[timedelta], list[timedelta]] = [], []
    issues = []
    for parsed, texts in zip(lengths, form.groups(), strict=True):
        for index, text in enumerate(texts.split(",")):
            try:
                parsed.append(parse_duration(text.strip()))
            except ValueError as error:
                issues.append(Issue(f"[{index}]", str(error)))
    ranges, slides = lengths
    if not issues and len(ranges) != len(slides):
        counts = f"{len(ranges)} ranges, {len(slides)} slides"
        issues = [Issue("", f"must have as many slides as ranges; got {counts}")]
    if issues:
        raise IssuesError(issues)
    return [{"range": width, "slide": slide} for width, slide in zip(ranges, slides, strict=True)]


def check_levels(levels: tuple[Level, ...]) -> tuple[Level, ...]:
    """Return the levels, coarsest first.

    Raises:
        IssuesError: a level breaks a rule of the module's docstring.
    """
    issues = []
    for index, (level, finer) in enumerate(zip_longest(levels, levels[1:])):
        number = len(levels) - 1 - index
        lower = f"level {number - 1}'s ({finer})"
        rules = []
        if level.slide < _SECOND or level.slide % _SECOND:
            rules = ["the slide must be whole seconds, at least one"]
        else:
            if level.range < level.slide or level.range % level.slide:
                rules.append("the range must be a whole multiple of the slide")
            if finer and level.range <= finer.range:
                rules.append(f"the range must be longer than {lower}")
            if finer and level.slide < finer.slide:
                rules.append(f"the slide must not be shorter than {lower}")
        issues += [Issue(f"[{index}]", f"level {number} ({level}): {rule}") for rule in rules]
    if issues:
        raise IssuesError(issues)
    return levels


def read_measure(value: Any) -> Any:
    """Return the measure of a text such as `sum(bytes)` or `count`, without a check of its column.

    Raises:
        ValueError: another form, or an unknown function.
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


class Fit(ShorthandModel):
    """A line through the values of each window, one value for each unit of time. A duration alone is its
    `unit`."""

    SHORT = ("unit", (str,), {"type": "string", "description": "the length of a unit, such as 1 hour"})

    unit: Duration | None = None
    """The length of a unit: whole seconds that divide every slide. A window has at most 32,768 units.
    Default: the finest slide."""
    value: Literal["mean", "sum", "min", "max"] = "mean"
    """The function that computes a unit's value from the values in it."""
    missing: Literal["last", "zero"] = "last"
    """The value of a unit without values: the last one before it in the window, or 0. For `count` it is
    always 0."""


class Alert(ShorthandModel):
    """A condition on rows of `aggregates`. Rows of a level and key that meet it in consecutive hours are one
    finding. A text alone is its `when`."""

    SHORT = ("when", (str,), {"type": "string", "description": "a condition on rows of `aggregates`"})

    when: NonEmptyStr
    """The condition, such as `slope_sent > 0 and n > 1000`. It reads the key, `level`, `window_start`,
    `window_end`, `count` and the columns of all measures."""
    level: Annotated[StrictInt, Field(ge=0)] | None = None
    """The level that the condition applies to; 0 is the finest. Default: all levels."""
    severity: Literal["high", "medium", "low"] = "medium"
    """The severity of the findings."""
    title: NonEmptyStr | None = None
    """The title of the findings, such as `{client} is sent more every hour`. In braces are columns of the key
    or of the condition, `level`, `window_start`, `window_end` or `count`."""


def _named(value: Any) -> Any:
    if isinstance(value, dict) and isinstance(value.get("when"), str):
        raise ValueError(
            f"an alert with settings needs a name, as in many: {{when: ...}}; got {', '.join(value)}"
        )
    return {UNNAMED: value} if isinstance(value, str) else value


Alerts = Annotated[dict[Name, Alert], BeforeValidator(_named, json_schema_input_type=str | dict[Name, Alert])]


class Aggregation(Model):
    """A block of `aggregates`: measures of each key over windows of several granularities."""

    key: tuple[str, ...] = ()
    """The columns for whose values the block computes separately. Default: those of the stream."""
    where: NonEmptyStr | None = None
    """A condition on the events, such as `status >= 500`. Default: that of the stream."""
    measures: Annotated[dict[Name, MeasureText], Field(min_length=1)]
    """The measures by name: `count`, or `sum`, `mean`, `min`, `max` or `distinct` of a column, such as
    `sum(bytes)`. `distinct` is exact up to 1,024 values; above, it is an estimate with a standard error."""
    levels: Levels
    """The windows, coarsest first: `RANGES 6 HOURS, 1 HOUR SLIDES 1 HOUR, 5 MINUTES`, or a list of `range`
    and `slide`. Each level adds its rows; the longest range determines how much an hour reads."""
    fit: Fit | None = None
    """Lines of the values of each measure against time. A duration, such as `1 hour`, is the length of a
    unit. `distinct` has no line."""
    aging: tuple[Weight, ...] | None = None
    """A weight for each level, 0.001 to 1000, in the order of the ranges. In `aged_mean_<measure>` it weighs
    the values that no finer range covers. Each slide is a multiple of the next finer one."""
    recurring: tuple[str, ...] = ()
    """The columns of an item. The table `recurring` has the items in every ring between neighbouring levels,
    when the widest level reports. There are two levels or more, and each slide is a multiple of the next
    finer one. An event with a null in one of the columns has no item."""
    alert: Alerts = Field(default_factory=dict)
    """Conditions whose rows of `aggregates` are findings: one, such as `slope_sent > 0 and n > 1000`, or
    several by name."""
    title: NonEmptyStr | None = None
    """The title of the block in the output of `transom try`. Default: its name."""

    @property
    def measured(self) -> set[str]:
        """The event columns that the measures read."""
        return {measure.column for measure in self.measures.values() if measure.column is not None}

    @property
    def unit(self) -> timedelta | None:
        """The length of a unit of lines; None without lines."""
        if self.fit is None:
            return None
        return self.levels[-1].slide if self.fit.unit is None else self.fit.unit

    @property
    def base(self) -> timedelta:
        """The length of a granule: the longest that divides all slides, the unit of lines, and one hour."""
        return common_granule([*(level.slide for level in self.levels), *([self.unit] if self.unit else [])])

    @property
    def item_base(self) -> timedelta:
        """The length of an item's granule: the longest that divides all ranges, the slide of the widest
        level, and one hour."""
        return common_granule([*(level.range for level in self.levels), self.levels[0].slide])

    @model_validator(mode="after")
    def _check(self) -> "Aggregation":
        count, functions = len(self.levels), {measure.function for measure in self.measures.values()}
        issues = [] if self.unit is None else list(_unit_issues(self.unit, self.levels))
        if self.fit is not None and functions == {"distinct"}:
            issues.append(Issue("fit", "no measure has a line: counts of distinct values have none"))
        if self.aging is not None:
            if functions <= {"count", "distinct"}:
                rule = "no measure has a mean: it takes sum, mean, min or max of a column"
                issues.append(Issue("aging", rule))
            if len(self.aging) != count:
                rule = f"must have a weight for each of {count} levels; got {len(self.aging)}"
                issues.append(Issue("aging", rule))
            issues += _nesting_issues("aging", self.levels)
        if self.recurring:
            if count == 1:
                rule = "needs at least two levels, as rings lie between them; got 1"
                issues.append(Issue("recurring", rule))
            issues += _nesting_issues("recurring", self.levels)
        if issues:
            raise IssuesError(issues)
        return self


def _unit_issues(unit: timedelta, levels: Sequence[Level]) -> Iterator[Issue]:
    if unit < _SECOND or unit % _SECOND:
        yield Issue("fit.unit", f"must be whole seconds, at least one; got {format_duration(unit)}")
        return
    for number, level in enumerate(reversed(levels)):
        name = f"level {number} ({level})"
        if level.range > MAX_FIT_UNITS * unit:
            rule = f"a window has at most {MAX_FIT_UNITS} units, {name} has {level.range // unit}"
            yield Issue("fit.unit", rule)
        elif level.slide % unit:
            yield Issue("fit.unit", f"must divide the slide of {name}; got {format_duration(unit)}")


def _nesting_issues(field: str, levels: Sequence[Level]) -> list[Issue]:
    """Return an issue for each level whose slide is not a multiple of the next finer one."""
    return [
        Issue(
            field,
            f"level {number} ({level}): the slide must be a multiple of level {number - 1}'s ({lower})",
        )
        for number, (lower, level) in enumerate(pairwise(reversed(levels)), 1)
        if level.slide % lower.slide
    ]


def common_granule(lengths: Sequence[timedelta]) -> timedelta:
    """Return the longest duration that divides all lengths and one hour."""
    return timedelta(microseconds=gcd(*map(microseconds, lengths), microseconds(HOUR)))
