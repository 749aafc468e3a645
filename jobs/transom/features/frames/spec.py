"""Frames: periods of time that the data itself delimits (Grossniklaus, Maier, Moorthy and Tufte).

Readings are a key's events, or the granules of a block of aggregates, in the order of their times. A frame
has one reading, or goes from a reading to a later one. Its length includes the time that the last reading
covers: `length = last_time - start_time + interval`.
"""

import re
from datetime import timedelta
from fractions import Fraction
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BeforeValidator, Field, PlainSerializer, StrictBool, StrictInt, WithJsonSchema

from transom.core.durations import Duration, Shifts, format_duration
from transom.core.intervals import HOUR
from transom.features.frames.algorithm.params import Compared, Function, Missing, WhenOpen
from transom.spec.base import Model, Name, NonEmptyStr, Number

IDLE = timedelta(hours=24)
"""The default of `idle`."""
FrameKind = Literal["threshold", "boundary", "delta", "aggregate", "trend", "marked"]
Combination = Literal["median", "mean", "min", "max"]
"""How several values of one time are combined."""
_CONDITION = re.compile(
    r"\s*(sum|count|avg|mean|min|max)\s*(?:\(\s*(\w*)\s*\))?\s*(>=|<=|>|<)\s*([-+]?\d+(?:\.\d+)?)\s*",
    re.IGNORECASE,
)

PARTITIONS = ("boundary", "delta", "aggregate")
"""Kinds that leave no reading between frames."""


class Condition(NamedTuple):
    """The condition of an aggregate frame, such as `sum(vehicles) > 100`.

    Attributes:
        function: the aggregate of the frame's readings.
        column: its column; None for `count`, the number of readings.
        compared: the comparison of the aggregate with the bound.
        bound: in the column's unit.
        text: the condition as in the stream file.
    """

    function: Function
    column: str | None
    compared: Compared
    bound: Fraction
    text: str

    def __str__(self) -> str:
        return self.text


def _condition(value: Any) -> Any:
    if isinstance(value, Condition):
        return value
    match = _CONDITION.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        example = "sum(vehicles) > 100, or count, avg, min or max with >, >=, < or <="
        raise ValueError(f"must be an aggregate and a number, as {example}; got {value!r}")
    function, column = match[1].lower(), match[2] or None
    if function == "count" and column is not None:
        raise ValueError(f"count counts readings and takes no column; got {value!r}")
    if function != "count" and column is None:
        raise ValueError(f"{function} needs a column, as {function}(vehicles) > 100; got {value!r}")
    function = "avg" if function == "mean" else function
    return Condition(function, column, match[3], Fraction(match[4]), value)  # type: ignore[arg-type]


AggregateCondition = Annotated[
    Condition,
    BeforeValidator(_condition),
    PlainSerializer(str, return_type=str),
    WithJsonSchema({"type": "string", "examples": ["sum(vehicles) > 100", "avg(speed) < 30"]}),
]


class Baseline(Model):
    """A value of the key's own past, which conditions read as `baseline`."""

    value: Name
    """The column whose past values are read."""
    shift: Shifts
    """How long ago they are read, such as 7 days: one or several, each a multiple of the interval of the
    readings, above 0."""
    combine: Combination = "median"
    """How the values of several shifts become one."""
    missing: Literal["skip", "zero"] = "skip"
    """How a time without a reading counts: `skip`, not at all; `zero`, as 0 if its hour was requested."""


class Frame(Model):
    """A block of `frames`: what delimits a kind of frame, which is a period of time of a key."""

    title: NonEmptyStr | None = None
    """The title of a finding. It may name columns of the key, `start_time`, `last_time`, `records`,
    `length_s`, `peak`, `peak_time` and `mean` in braces."""
    severity: Literal["high", "medium", "low"] = "medium"
    """The severity of the findings."""
    finding: StrictBool | None = None
    """Whether frames are findings. Default: true for the kinds `threshold`, `trend` and `marked`."""
    source: Name | None = None
    """The block of `aggregates` whose finest granules are the readings, with its key. Default: the events."""
    key: tuple[str, ...] = ()
    """With events: the columns for whose values frames are computed separately. Default: the stream's
    `key`."""
    only: NonEmptyStr | None = None
    """A condition on the events or granules that are readings. Default for events: the stream's `where`."""
    kind: FrameKind
    """What delimits a frame: `where` (`threshold`), multiples of `step` (`boundary`), the range of the
    values (`delta`), a `condition` on an aggregate (`aggregate`), a `direction` (`trend`), or only
    `starts_when` and `ends_when` (`marked`)."""
    where: NonEmptyStr | None = None
    """`threshold`: a frame lasts while this holds, such as n > 120 or n > 3 * baseline + 20."""
    extent: Literal["conservative", "liberal"] = "conservative"
    """`threshold`: whether a frame ends at its readings (`conservative`), or reaches to the readings before
    and after it that do not meet `where` (`liberal`)."""
    baseline: Baseline | None = None
    """A value of the key's own past that conditions read as `baseline`. It is null if nothing is known."""
    value: Name | None = None
    """The column whose value delimits a frame, and whose `mean` and `peak` are reported. Default for a
    `threshold`: the number that `where` reads, if it reads only one."""
    step: Number | None = None
    """`boundary`: above 0. A frame ends when the value crosses a multiple of this."""
    below: Number | None = None
    """`delta`: above 0. A frame lasts while its largest and its smallest value differ by less than this."""
    condition: AggregateCondition | None = None
    """`aggregate`: a condition on the readings of a frame together, such as sum(vehicles) > 100."""
    span: Literal["minimal", "maximal"] | None = None
    """`aggregate`: whether a frame ends when the condition first holds (`minimal`), or lasts while it holds
    (`maximal`)."""
    direction: Literal["increasing", "decreasing"] | None = None
    """`trend`: whether each value is above the one before (`increasing`), or below it (`decreasing`)."""
    starts_when: NonEmptyStr | None = None
    """A condition that the first reading of a frame must also meet. It requires `when_open`."""
    ends_when: NonEmptyStr | None = None
    """A reading that meets this condition is the last one of its frame."""
    when_open: WhenOpen | None = None
    """With `starts_when`, required: what a reading that meets it does to an open frame. `report` and `drop`
    begin another frame, and report or drop the open one; `continue` lets it go on. Only a frame that the
    reading would have joined is dropped; others are reported."""
    min_length: Duration | None = None
    """Shorter frames are not reported. Default: 0."""
    min_records: Annotated[StrictInt, Field(ge=1)] = 1
    """Frames with fewer readings are not reported."""
    max_length: Duration | None = None
    """A frame closes before it gets longer, and the next reading begins another. Default: any length."""
    max_records: Annotated[StrictInt, Field(ge=1)] | None = None
    """A frame closes when it has this number of readings. Default: any number."""
    missing: Missing | None = None
    """What a null value or a missing reading does to an open frame: `breaks` closes it, `bridged` skips the
    reading, `satisfies` (`threshold` only) counts it as one that meets `where`. Default: `breaks` for
    `threshold` and `trend`, else `bridged`."""
    known: Duration | None = None
    """With `missing: satisfies`: how long after its last reading a silent key is known. A reading that a
    known key misses may begin a frame. Whole minutes, up to 366 days; at least two readings, and `min_length`
    and a reading. It replaces `idle`. A longer time reads and stores more state."""
    idle: Duration = IDLE
    """A frame closes after this time without a reading. Whole minutes, from 1 minute to 366 days. A longer
    time reads more state."""
    on_duplicate_time: Literal["first", "last", "min", "max", "sum", "mean"] | None = None
    """With events, required: what several events of a key at one time become. `first` and `last` select one,
    the others combine each column."""
    scheme: Literal["partition", "disjoint", "cover", "unconstrained"] | None = None
    """How frames of a key relate. `partition`: each begins where the one before ended. `disjoint`: readings
    may be between them. `cover`: they may overlap, and each reading is in one. `unconstrained`: they may
    overlap. A scheme that the kind cannot have is rejected."""
    set: Literal["drained", "saturated"] | None = None
    """States that no frame could be dropped (`drained`), or added (`saturated`). It is rejected if the other
    fields contradict it."""
    longest: StrictBool = False
    """Whether only the longest frames of a key in each `period` are reported."""
    period: Duration | None = None
    """With `longest` and overlapping frames: the length of the periods, counted from 1970, with which frames
    end. Whole hours, up to 366 days. The last hour of a longer period reads more readings."""

    @property
    def is_finding(self) -> bool:
        """Whether frames are findings."""
        return self.kind not in PARTITIONS if self.finding is None else self.finding

    @property
    def silence(self) -> timedelta:
        """The time without a reading of a key after which its frame is closed."""
        return self.known or self.idle

    @property
    def gap(self) -> timedelta:
        """The maximum time between neighbouring readings of a frame.

        Missing readings count if they may begin a frame; one comes at least every hour.
        """
        return self.idle if self.known is None else HOUR

    @property
    def rule(self) -> str:
        """The text for what delimits a frame."""
        match self.kind:
            case "threshold":
                rule = f"as long as {' '.join(str(self.where).split())}"
                if self.known is not None:
                    rule += f", or a reading is missing within {format_duration(self.known)} of the last"
            case "boundary":
                rule = f"between two multiples of {self.step:g} of {self.value}"
            case "delta":
                rule = f"as long as {self.value} varies by less than {self.below:g}"
            case "aggregate":
                rule = f"{'until' if self.span == 'minimal' else 'as long as'} {self.condition}"
            case "trend":
                rule = f"as long as {self.value} is {self.direction}"
            case "marked":
                end = f" to {' '.join(self.ends_when.split())}" if self.ends_when else ""
                rule = f"from {' '.join(str(self.starts_when).split())}{end}"
        return rule

    @property
    def reported_rule(self) -> str:
        """The text for what delimits a frame, and from which length on one is reported."""
        length = f" for at least {format_duration(self.min_length)}" if self.min_length else ""
        records = f" with at least {self.min_records} readings" if self.min_records > 1 else ""
        return f"{self.rule}{',' if length or records else ''}{length}{records}"
