"""Strategies for frame specifications and readings."""

from fractions import Fraction

from hypothesis import strategies as st

from transom.core.intervals import HOUR_LENGTH
from transom.features.frames.algorithm.params import (
    Aggregate,
    Boundary,
    Delta,
    FrameSpec,
    Kind,
    Marked,
    Threshold,
    Trend,
)
from transom.features.frames.algorithm.reference import Reading

TURN = HOUR_LENGTH // 4
MINUTE = HOUR_LENGTH // 60
HOURS = 12
AGGREGATES = st.builds(
    Aggregate,
    st.sampled_from(["sum", "count", "avg", "min", "max"]),
    st.sampled_from([">", ">=", "<", "<="]),
    st.fractions(-6, 12, max_denominator=3),
    st.booleans(),
)
KINDS: dict[str, st.SearchStrategy[Kind]] = {
    "threshold": st.builds(Threshold, st.booleans()),
    "boundary": st.builds(Boundary, st.fractions(Fraction(1, 3), 5, max_denominator=3)),
    "delta": st.builds(Delta, st.integers(1, 6)),
    "trend": st.builds(Trend, st.booleans()),
    "aggregate": AGGREGATES,
    "marked": st.just(Marked()),
}


@st.composite
def framings(draw: st.DrawFn, kind: str) -> FrameSpec:
    """Draw a specification of one kind, with any of its optional fields."""
    begins = kind == "threshold" and draw(st.booleans())
    scheduled = begins or draw(st.booleans())
    every = TURN if scheduled or draw(st.booleans()) else 1
    minimum = 1 if begins else draw(st.one_of(st.just(1), st.integers(1, 4)))
    least_time = draw(st.one_of(st.just(0), st.integers(0, 8))) * TURN
    return FrameSpec(
        draw(KINDS[kind]),
        every,
        scheduled,
        "satisfies" if begins else draw(st.sampled_from(["breaks", "bridged", "satisfies"])),
        # Of any number of minutes.
        draw(
            st.one_of(
                st.integers(1, 5).map(lambda n: n * HOUR_LENGTH),
                st.integers(1, 250).map(lambda n: n * MINUTE),
            )
        ),
        least_time,
        minimum,
        draw(st.one_of(st.none(), st.integers(max(1, least_time // TURN), 12).map(lambda n: n * TURN))),
        None if begins else draw(st.one_of(st.none(), st.integers(max(minimum, 2), 6))),
        "continue" if begins else draw(st.sampled_from(["report", "drop", "continue"])),
        begins,
    )


@st.composite
def readings(draw: st.DrawFn, framing: FrameSpec) -> list[Reading]:
    """Draw readings of one key, in order, with gaps and missing values."""
    turns = draw(st.lists(st.integers(0, HOURS * 4 - 1), unique=True, max_size=24).map(sorted))
    starting, ending = not framing.begins and draw(st.booleans()), draw(st.booleans())
    valueless = isinstance(framing.kind, Threshold | Marked) and draw(st.booleans())
    result = []
    for turn in turns:
        value = draw(st.integers(-3, 9))
        result.append(
            Reading(
                turn * TURN + (draw(st.integers(0, TURN - 1)) if framing.every == 1 else 0),
                None if valueless and draw(st.booleans()) else value,
                missing=draw(st.integers(0, 5)) == 0,
                holds=draw(st.integers(0, 3)) > 0,
                starts=not starting or draw(st.integers(0, 3)) == 0,
                ends=ending and draw(st.integers(0, 4)) == 0,
            )
        )
    return result
