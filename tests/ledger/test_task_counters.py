"""Counters of tasks have the same total for any division of the rows."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from transom.ledger.task_counters import NOTES, TaskCounters

COUNTED = st.lists(
    st.tuples(st.sampled_from("amn"), st.integers(0, 2), st.sampled_from("xy"), st.integers(0, 30)),
    max_size=40,
)


def tallied(counted: Sequence[tuple[str, int, str, int]]) -> TaskCounters:
    tally = TaskCounters()
    for kind, hour, name, amount in counted:
        if kind == "a":
            tally.add(name, [hour], [amount])
        elif kind == "m":
            tally.set_max(name, [hour], [amount])
        else:
            tally.note(name, hour, f"{amount:02}")
    return tally


@given(st.data(), COUNTED)
def test_total_of_task_counters_is_equal_for_any_division_of_rows(
    data: st.DataObject, counted: list[tuple[str, int, str, int]]
) -> None:
    whole, parts = tallied(counted), TaskCounters()
    of = [data.draw(st.integers(0, 3)) for _ in counted]
    for part in data.draw(st.permutations(range(4))):
        one = tallied([row for row, number in zip(counted, of, strict=True) if number == part])
        parts.merge(TaskCounters.of_json(one.to_json()))
    assert parts == whole
    for (hour, name), texts in whole.notes.items():
        values = {f"{n:02}" for k, h, of_name, n in counted if (k, h, of_name) == ("n", hour, name)}
        assert texts == sorted(values)[:NOTES]
    for (hour, name), amount in whole.sums.items():
        assert amount == sum(n for k, h, of_name, n in counted if (k, h, of_name) == ("a", hour, name))
    for (hour, name), amount in whole.maxima.items():
        assert amount == max(n for k, h, of_name, n in counted if (k, h, of_name) == ("m", hour, name))
