"""Strategies for valid levels."""

from hypothesis import strategies as st

from transom.features.aggregates.algorithm.granules import WindowLevel


@st.composite
def nested_levels(draw: st.DrawFn, base: int) -> list[WindowLevel]:
    """Draw one to four levels, the finest first; each slide is a multiple of that of the level below."""
    levels: list[WindowLevel] = []
    for _ in range(draw(st.integers(1, 4))):
        slide = (levels[-1].slide if levels else base) * draw(st.integers(1, 3))
        minimum = levels[-1].range // slide + 1 if levels else 1
        levels.append(WindowLevel(slide * draw(st.integers(minimum, minimum + 3)), slide))
    return levels
