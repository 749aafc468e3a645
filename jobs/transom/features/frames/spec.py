"""Frames: periods of time that the data itself delimits (Grossniklaus, Maier, Moorthy and Tufte).

Readings are a key's events, or the granules of an aggregation, in the order of their times. A frame goes
from a reading to a later one, or has one reading. Its length includes the time that the last reading covers:
`end - start + interval`.
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
"""Kinds of which every reading is in a frame."""


class Condition(NamedTuple):
    """The condition of an aggregate frame, such as sum(vehicles) > 100.

    Attributes:
        column: None for the number of readings.
        text: as in the stream's file.
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
    """A figure of the key's own past, which a predicate reads as `baseline`."""

    value: Name
    """The column."""
    shift: Shifts
    """How long ago, as 7 days: each a whole number of readings."""
    combine: Combination = "median"
    """What is made of the values of those times."""
    missing: Literal["skip", "zero"] = "skip"
    """What a time without a reading counts as: nothing, or 0 where its hour was asked for."""


class Frame(Model):
    """A block of `frame`: what delimits stretches of time of each key."""

    title: NonEmptyStr | None = None
    """For people: what is the matter, with columns of the key, start, end, records, peak or mean in
    braces."""
    severity: Literal["high", "medium", "low"] = "medium"
    """How bad it is."""
    finding: StrictBool | None = None
    """Whether frames are findings. Where nothing is said, those of a kind that leaves readings between them
    are: threshold, trend and marked."""
    source: Name | None = None
    """The block of `aggregates` whose finest granules are the readings, with its key; the events where it is
    not given."""
    key: tuple[str, ...] = ()
    """The columns of which every value has frames of its own; the stream's where nothing is said."""
    only: NonEmptyStr | None = None
    """Which events or granules are readings at all; of events the stream's `where` where nothing is said."""
    kind: FrameKind
    """What delimits a frame: threshold, boundary, delta, aggregate, trend, or marked, by `starts_when` and
    `ends_when` alone."""
    where: NonEmptyStr | None = None
    """threshold: as long as this holds, as n > 120 or n > 3 * baseline + 20."""
    extent: Literal["conservative", "liberal"] = "conservative"
    """threshold: whether a frame is as long as it is known that `where` holds, or as long as it possibly
    does, to the neighbouring readings that do not meet it."""
    baseline: Baseline | None = None
    """A figure of the key's own past that conditions compare with; null where nothing is known of it."""
    value: Name | None = None
    """The column whose value delimits a frame, and whose mean and peak are told of it. Of a threshold it is
    the one number that `where` reads, where nothing is said."""
    step: Number | None = None
    """boundary: cut wherever the value crosses a multiple of this."""
    below: Number | None = None
    """delta: as long as the largest and the smallest value are less than this apart."""
    condition: AggregateCondition | None = None
    """aggregate: what the readings of a frame come to together, as sum(vehicles) > 100."""
    span: Literal["minimal", "maximal"] | None = None
    """aggregate: whether a frame ends as soon as the condition holds, or goes on as long as it does."""
    direction: Literal["increasing", "decreasing"] | None = None
    """trend: whether each value is above the one before, or below."""
    starts_when: NonEmptyStr | None = None
    """What else the first reading of a frame has to meet."""
    ends_when: NonEmptyStr | None = None
    """A reading that meets this is the last of its frame."""
    when_open: WhenOpen | None = None
    """What becomes of an open frame when a reading meets `starts_when`: it is closed and reported, or
    dropped, and the next one begins; or it goes on."""
    min_length: Duration | None = None
    """Frames that are shorter are not reported."""
    min_records: Annotated[StrictInt, Field(ge=1)] = 1
    """Frames of fewer readings are not reported."""
    max_length: Duration | None = None
    """A frame is closed before it becomes longer, and the next reading begins another."""
    max_records: Annotated[StrictInt, Field(ge=1)] | None = None
    """A frame is closed with so many readings."""
    missing: Missing | None = None
    """What a missing reading does: it closes the frame; or is passed over, if a later reading extends the
    frame; or counts as one that does."""
    known: Duration | None = None
    """With `missing: satisfies`: how long a key that is silent is known, from its last reading on. A reading
    that a known key misses may begin a frame, too; whole minutes. Replaces `idle`."""
    idle: Duration = IDLE
    """A frame is closed where no reading has come for so long; whole minutes."""
    on_duplicate_time: Literal["first", "last", "min", "max", "sum", "mean"] | None = None
    """Of events: what is made of several of one key at one time; one of them, or their columns together."""
    scheme: Literal["partition", "disjoint", "cover", "unconstrained"] | None = None
    """How frames lie to each other: partition, each begins where the one before ended; disjoint, with others
    between; cover, every reading is in one, and they may overlap; or unconstrained."""
    set: Literal["drained", "saturated"] | None = None
    """Whether no frame could be left out, or none added, without a condition being broken."""
    longest: StrictBool = False
    """Whether only the longest are told, of each key in each `period`."""
    period: Duration | None = None
    """What a frame is longest in, or overlapping ones are looked for in: periods of this length since the
    epoch; frames end with them. Whole hours."""

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
        """The maximum time between neighbouring readings of a frame. Missing ones that may begin a frame
        count; they come at least every hour."""
        return self.idle if self.known is None else HOUR

    @property
    def rule(self) -> str:
        """A description of what delimits a frame."""
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
