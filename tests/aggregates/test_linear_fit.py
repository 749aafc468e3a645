"""Line fits of many windows compared with those of each, record by record, and with numpy's."""

from fractions import Fraction
from itertools import groupby

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.granule_factories import granules
from transom.features.aggregates.algorithm.granules import ColumnSummary, Granules, WindowLevel
from transom.features.aggregates.algorithm.linear_fit import (
    ONE,
    FittedLines,
    Series,
    means,
    to_ints,
)
from transom.features.aggregates.algorithm.reference import reports
from transom.features.aggregates.algorithm.reference_summaries import Line, mean, unit_means

TODAY = 1_700_000_000
values_of = st.integers(-(2**20), 2**20)
Units = list[tuple[int, int, int]]
"""Key, number of the unit and its value, in order."""


@st.composite
def units_of(draw: st.DrawFn) -> Units:
    start = draw(st.sampled_from([0, -30, TODAY]))
    known = draw(st.dictionaries(st.tuples(st.integers(0, 2), st.integers(0, 60)), values_of, max_size=40))
    return [(key, start + unit, value) for (key, unit), value in sorted(known.items())]


def column(figures: list[int]) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    return np.array(figures, dtype=np.int64)


def wide(figures: list[int]) -> "np.ndarray[tuple[int, int], np.dtype[np.int64]]":
    return np.array([divmod(figure, 2**31) for figure in figures], dtype=np.int64).T


def by_definition(values: dict[int, int], end: int) -> list[int]:
    """Return the state of each unit of a window, from the first one with a value on."""
    result: list[int] = []
    for unit in range(min(values, default=end), end):
        result.append(values.get(unit, result[-1] if result else 0))
    return result


@given(
    units_of(),
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 60), st.integers(1, 61)), max_size=9),
    st.booleans(),
)
def test_lines_of_windows_equal_those_of_their_units(
    units: Units, required: list[tuple[int, int, int]], carried: bool
) -> None:
    start = units[0][1] if units else 0
    series = Series(
        *(column([row[i] for row in units]) for i in range(3)),
        np.ones(len(units), dtype=bool),
        carried=carried,
    )
    for key, low, length in required:
        begin, end = start + low, start + low + length
        inside = [i for i, (k, u, _) in enumerate(units) if k == key and begin <= u < end]
        first, after = min(inside, default=0), max(inside, default=-1) + 1
        values = {units[i][1]: units[i][2] for i in inside}
        whole = [values.get(unit, 0) for unit in range(begin, end)] if values else []
        known = by_definition(values, end) if carried else whole
        result = series.lines(column([first]), column([after]), column([end]), length)
        terms = [len(known), sum(known), sum(x * y for x, y in enumerate(known))]
        assert [*result.units.tolist(), *to_ints(result.total), *to_ints(result.moment)] == terms


@given(
    st.integers(1, 3),
    st.integers(1, 4),
    st.integers(1, 3),
    st.sampled_from([0, -200, TODAY]),
    st.lists(st.tuples(st.integers(0, 80), st.none() | values_of), max_size=40),
)
def test_line_of_a_window_equals_numpy_s(
    unit: int, mu: int, steps: int, start: int, draws: list[tuple[int, int | None]]
) -> None:
    """By the chain, at times of today and of 1970: slope and value to 1e-9 of the largest value."""
    levels = [WindowLevel(unit * steps * more, unit * steps) for more in (mu, mu + 2)]
    start -= start % (unit * steps)
    records = sorted(((start + time, value) for time, value in draws), key=lambda record: record[0])
    for report in reports(unit_means(records, unit), levels, start, start + 100):
        line, level = report.window, levels[report.level]
        assert line is not None
        inside = [(t, v) for t, v in records if report.end - level.range <= t < report.end and v is not None]
        by_unit = {
            number: mean(sum(v for _, v in some), len(some))
            for number, group in groupby(inside, key=lambda record: record[0] // unit)
            for some in [list(group)]
        }
        known = by_definition(by_unit, report.end // unit)
        through = line.through(report.end // unit)
        terms = FittedLines(
            column([len(known)]),
            wide([through.total]),
            wide([through.moment - through.first * through.total]),
            np.array([True]),
        )
        assert terms.units[0] == through.until - through.first
        assert terms.exists[0] == (len(known) > 1)
        largest = max(map(abs, known)) / ONE
        if len(known) > 1:
            slope, level_at_first = np.polyfit(range(len(known)), np.array(known) / ONE, 1)
            assert terms.slope()[0] == pytest.approx(slope, rel=1e-9, abs=1e-9 * largest)
            at_first = terms.at(column([0]))[0]
            assert at_first == pytest.approx(level_at_first, rel=1e-9, abs=1e-9 * largest)


@given(st.lists(st.tuples(st.integers(-(2**61), 2**61), st.integers(1, 2**20)), min_size=1, max_size=20))
def test_means_of_many_units_equal_those_of_each(units: list[tuple[int, int]]) -> None:
    units = [(total % (values << 41), values) for total, values in units]
    signed = [(total if i % 2 else -total, values) for i, (total, values) in enumerate(units)]
    required = [mean(total, values) for total, values in signed]
    assert means(column([t for t, _ in signed]), column([v for _, v in signed])).tolist() == required


def test_mean_between_two_steps_is_rounded_half_to_even() -> None:
    totals = [1, 3, 5, -1, -3]
    assert [mean(total, 2 * ONE) for total in totals] == [0, 2, 2, 0, -2]
    assert means(column(totals), column([2 * ONE] * 5)).tolist() == [0, 2, 2, 0, -2]


@pytest.mark.parametrize("sign", [1, -1])
def test_largest_values_of_the_longest_window_do_not_wrap(sign: int) -> None:
    """The first half of the units at one bound, the second at the other: no line is steeper."""
    n = 2**15
    value = 2**62 - 1
    every = column([-sign * value] * (n // 2) + [sign * value] * (n // 2))
    series = Series(column([0] * n), np.arange(n) + TODAY, every, np.ones(n, dtype=bool))
    result = series.lines(column([0]), column([n]), column([TODAY + n]), n)
    moment = sum(number * of for number, of in enumerate(every.tolist()))
    assert (to_ints(result.total), to_ints(result.moment), result.exact.tolist()) == ([0], [moment], [True])
    slope = Fraction(12 * moment, n * (n**2 - 1) * ONE)
    assert result.slope()[0] == pytest.approx(float(slope), rel=1e-15)


def test_line_reports_whether_it_is_exact() -> None:
    """Windows on both sides of a value that does not fit, and over it."""
    series = Series(column([0] * 3), column([0, 1, 2]), column([5, 0, 7]), np.array([True, False, True]))
    result = series.lines(column([0, 0, 1, 2, 0]), column([1, 2, 3, 3, 0]), column([2, 3, 4, 4, 1]), 2)
    assert result.exact.tolist() == [True, False, False, True, True]


@pytest.mark.parametrize("value", ["mean", "sum", "min", "max"])
def test_too_large_value_does_not_fit(value: str) -> None:
    for limit, fits in ((2**42 - 1, True), (2**42, False), (-(2**42), False)):
        whole = granules([(0, 0, {"v": limit}), (0, 5, {"v": 1})], 1)
        series = whole.series("v", 1, value)
        assert (series.fits.tolist(), series.value.tolist()) == (
            [fits, True],
            [limit * ONE if fits else 0, ONE],
        )


def test_mean_of_a_wrapped_sum_does_not_fit() -> None:
    whole = granules([(0, 0, {"v": 2**41})] * 2, 1)
    assert whole.series("v", 1).fits.tolist() == [True]
    wrapped = Granules(
        whole.key, whole.start, whole.records,
        {"v": ColumnSummary(column([2**22]), column([0]), column([2**41]), column([2**41]))},
    )  # fmt: skip
    assert [wrapped.series("v", 1, value).fits.tolist() for value in ("mean", "sum", "min")] == [
        [False],
        [False],
        [True],
    ]


def test_single_unit_has_no_line() -> None:
    one = Line.of(5, ONE)
    assert (one.through(7).total, one.without(one)) == (2 * ONE, None)
    series = Series(column([0]), column([5]), column([ONE]), np.array([True]))
    terms = series.lines(column([0, 0]), column([1, 0]), column([6, 6]), 2)
    assert terms.exists.tolist() == [False, False]
    assert terms.slope().tolist() == [0.0, 0.0]


@given(
    st.integers(1, 2),
    st.lists(st.tuples(st.integers(1, 3), st.integers(1, 4)), min_size=1, max_size=3),
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 60), st.none() | values_of), max_size=40),
)
# The first key continues without values, for longer than any key has some.
@example(1, [(1, 4)], [(0, 0, 1), (0, 3, None), (0, 4, None), (1, 0, 2), (1, 1, 3)])
def test_windows_of_many_keys_have_the_lines_of_each_chain(
    unit: int, steps: list[tuple[int, int]], draws: list[tuple[int, int, int | None]]
) -> None:
    levels: list[WindowLevel] = []
    for times, more in steps:
        slide = (levels[-1].slide if levels else unit) * times
        minimum = levels[-1].range // slide + 1 if levels else 1
        levels.append(WindowLevel(slide * (minimum + more - 1), slide))
    records = sorted(draws, key=lambda record: record[:2])
    whole = granules([(key, time, {"v": value}) for key, time, value in records], 1)
    series = {"v": whole.series("v", unit)}
    for number, level in enumerate(levels):
        result = whole.windows(level, [(0, 90)], series)
        terms = result.lines["v"]
        counts = (numbers.tolist() for numbers in (result.key, result.end, terms.units))
        lines = zip(*counts, to_ints(terms.total), to_ints(terms.moment), strict=True)
        # A window whose records all lack a value has no line; the chain does not receive them.
        assert [row for row in lines if row[2]] == [
            (key, report.end, line.until - line.first, line.total, line.moment - line.first * line.total)
            for key in range(3)
            for report in reports(
                unit_means([(t, v) for k, t, v in records if k == key], unit), levels, 0, 90
            )
            if report.level == number and report.window
            for line in [report.window.through(report.end // unit)]
        ]
