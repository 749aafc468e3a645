"""Values as text in titles and evidence."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from transom.findings.text import (
    as_decimal,
    as_range,
    as_text,
    as_time,
    filled,
    key_text,
    key_values,
    one_line,
    rounded,
)

MOMENT = datetime(2015, 5, 17, 1, 2, 3, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3000.0, "3000"), (-2.0, "-2"), (0.5, "0.5"), (1e-9, "1e-9"), (10, "10"), (True, "true"),
        (1.5e-5, "0.000015"), (1e15, "1000000000000000"), (1.5e16, "1.5e16"), (float("nan"), "NaN"),
        # A text is unchanged, for any content.
        ("3000.0", "3000.0"), ("1.0", "1.0"), (None, "null"), (MOMENT, "2015-05-17T01:02:03Z"),
        (MOMENT.replace(microsecond=500_000), "2015-05-17T01:02:03.500Z"),
        (MOMENT.replace(microsecond=1), "2015-05-17T01:02:03.000001Z"),
    ],
)  # fmt: skip
def test_value_is_shortest_text_that_names_it(value: Any, text: str) -> None:
    assert as_text(value) == text


def test_time_is_to_second_or_minute() -> None:
    late = MOMENT.replace(microsecond=999_999)
    assert [as_time(late), as_time(late, "minutes"), as_time(None)] == [
        "2015-05-17T01:02:03", "2015-05-17T01:02", ""
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (0.25, 1, "0.3"), (-0.25, 1, "-0.3"), (2.0, 1, "2.0"), (-0.04, 1, "-0.0"), (1 / 3, 3, "0.333"),
        (float("inf"), 1, "inf"),
    ],
)  # fmt: skip
def test_half_is_rounded_away_from_zero(value: float, digits: int, text: str) -> None:
    assert as_decimal(rounded(value, digits)) == text


@pytest.mark.parametrize(
    ("minimum", "limit", "text"),
    [
        (0.0101234, 0.2, "0.01012 to 0.2"), (3000.0, 123456.7, "3000 to 123457"), (0.0, -0.0, "0"),
        (2.00001, 2.00002, "2"), (3, 12, "3 to 12"), (7, 7, "7"), (None, None, "null"), ("a", "b", "a to b"),
    ],
)  # fmt: skip
def test_range_has_four_digits(minimum: Any, limit: Any, text: str) -> None:
    assert as_range(minimum, limit) == text


@pytest.mark.parametrize(
    ("columns", "text"),
    [((), None), (("user",), "o'brien"), (("user", "status"), "user=o'brien, status=null")],
)
def test_key_of_several_columns_names_them(columns: tuple[str, ...], text: str | None) -> None:
    assert key_text(columns, {"user": "o'brien", "status": None}) == text


def test_title_is_one_line_for_any_values() -> None:
    row = {"user": "o'\n\tbrien\x1b[2J", "start": MOMENT, "seen": MOMENT}
    title = one_line(filled("{{it}}: {user}, {start}, {seen}", row, times=["start"]))
    assert title == "{it}: o' brien [2J, 2015-05-17T01:02:03, 2015-05-17T01:02:03Z"


def test_title_rounds_values_except_those_of_its_subject() -> None:
    row = {"site": 0.1234567, "slope": 13.692882335911627, "n": 1234567}
    title = filled("{site}: {slope}, {n}", row, exact=["site"])
    assert title == "0.1234567: 13.69, 1234567"


COLUMNS = ("user", "host", "port")
# Pieces from which ambiguous values are made.
PIECES = st.sampled_from([", user=", ", host=", ", port=", "host=", '"', "\\", ", ", "a", "\n"])
VALUES = st.lists(PIECES, max_size=5).map("".join)


@given(st.tuples(VALUES, VALUES, VALUES))
@example(("", '"', ", user="))
@example(("a", '"', ", port=x"))
def test_key_has_the_values_of_its_text(values: tuple[str, str, str]) -> None:
    key = dict(zip(COLUMNS, values, strict=True))
    text = key_text(COLUMNS, key)
    assert text is not None
    assert key_values(COLUMNS, text) == key


@pytest.mark.parametrize(
    ("user", "host", "text"),
    [
        ("a, b", 'c"', 'user=a, b, host=c"'),
        ("a", '"c', 'user=a, host="\\"c"'),
        ("a, host=b", "c", 'user="a, host=b", host=c'),
        ("a", 'b, user="c', 'user=a, host="b, user=\\"c"'),
    ],
)
def test_value_of_a_key_is_quoted_if_it_looks_like_a_further_column(user: str, host: str, text: str) -> None:
    assert key_text(("user", "host"), {"user": user, "host": host}) == text


@pytest.mark.parametrize(
    "text", ["user=a", "host=b, user=a", "a", 'user="a, host=b', 'user="\\x", host=b', 'user=a, host="b"c']
)
def test_other_text_has_no_values_of_a_key(text: str) -> None:
    assert key_values(("user", "host"), text) == {}
