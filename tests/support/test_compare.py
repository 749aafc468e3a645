"""The output of a failing comparison: differing rows and columns, in few lines."""

from tests.support.compare import SHOWN, differences

ROWS = [{"client": "a", "n": 1}, {"client": "b", "n": 2}, {"client": "b", "n": 2}]


def test_equal_multisets_in_any_order_have_no_difference() -> None:
    assert differences(ROWS, ROWS[::-1], "aggregates") == ""


def test_row_with_another_value_is_printed_next_to_the_expected_one() -> None:
    actual = [*ROWS[1:], {"client": "a", "n": 7}]
    assert differences(ROWS, actual, "aggregates").splitlines() == [
        "aggregates: 1 rows missing, 1 unexpected",
        "  differs    {'client': 'a'}",
        "    n: expected 1, actual 7",
    ]


def test_additional_copy_of_a_row_is_unexpected() -> None:
    assert differences(ROWS, [*ROWS, ROWS[1]], "aggregates").splitlines() == [
        "aggregates: 0 rows missing, 1 unexpected",
        "  unexpected {'client': 'b', 'n': 2}",
    ]


def test_many_long_rows_fit_one_screen() -> None:
    expected = [{"client": f"{number}" * 500, "n": number} for number in range(10, 99)]
    lines = differences(expected, [], "aggregates").splitlines()
    assert lines[0] == "aggregates: 89 rows missing, 0 unexpected"
    assert len(lines) == 1 + SHOWN
    assert max(map(len, lines)) < 200
