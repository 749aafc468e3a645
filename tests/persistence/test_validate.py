"""The exact text of every error of persistence blocks."""

# ruff: noqa: E501 - in the table of refusals, a case a line can be read down; wrapped, it cannot

from fractions import Fraction
from typing import Any

import pytest

from tests.support.stream_factories import base, refusal, refusal_of_block
from transom.cli.check import describe_stream
from transom.features.persistence.stage import epsilons
from transom.stream import parse

P = {"item": ["user"], "slot": "1 hour", "window": "3 days", "alpha": 0.7, "epsilon": 0.2}
BUDGET = {"tuples": 10_000, "pairs": 100_000}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ({**P, "slot": ...}, "slot: is required"),
        ({**P, "slot": "7 minutes"}, "slot: must divide an hour, or be whole hours; got 7 minutes"),
        ({**P, "slot": "90 minutes"}, "slot: must divide an hour, or be whole hours; got 90 minutes"),
        ({**P, "slot": "0 hours"}, "slot: must divide an hour, or be whole hours; got 0 seconds"),
        ({**P, "window": "90 minutes"}, "window: must be a whole number of slots of 1 hour; got 90 minutes"),
        ({**P, "window": "30 minutes"}, "window: must be a whole number of slots of 1 hour; got 30 minutes"),
        ({**P, "slot": "1 second"}, "window: must have at most 20000 slots; got 259200"),
        ({**P, "alpha": 0}, "alpha: must be above 0 and at most 1; got 0"),
        ({**P, "alpha": 1.5}, "alpha: must be above 0 and at most 1; got 1.5"),
        ({**P, "alpha": "0.7"}, "alpha: must be a number; got '0.7'"),
        ({**P, "epsilon": 0.7}, "epsilon: must be above 0 and below alpha; got 0.7 and alpha 0.7"),
        ({**P, "epsilon": 0}, "epsilon: must be above 0 and below alpha; got 0 and alpha 0.7"),
        (
            {**P, "epsilon": 0.02},
            "epsilon: must be at least 2 / 72, or every item is tracked, which costs more than exact counts: tau = 2 / (epsilon n) is 1.39; got epsilon 0.02 of 72 slots",
        ),
        ({**P, "epsilon": ...}, "epsilon: must be set, or a budget instead; got neither"),
        ({**P, "budget": BUDGET}, "epsilon: must be set, or a budget instead; got both"),
        (
            {**P, "epsilon": ..., "budget": {"tuples": 100, "pairs": 100_000}},
            "budget: gives an epsilon that cannot be, from 100 tuples of 100000 pairs and 2 instances: it must be above 0 and below alpha; got 55.5556 and alpha 0.7",
        ),
        ({**P, "epsilon": ..., "budget": {**BUDGET, "tuples": 0}}, "budget.tuples: must be at least 1; got 0"),
        ({**P, "delta": 1}, "delta: must be above 0 and below 1; got 1"),
        ({**P, "seed": 2**32 - 1}, "seed: must leave 2 below 2^32; got 4294967295"),
        (
            {**P, "watch": [[1.5]]},
            "watch[0]: must be a text, an integer or a truth value, or a list with one for each column; got [1.5]",
        ),
        (
            {**P, "watch": ["b", "a"], "ignore": {"items": ["c", "a"]}},
            "watch[1]: is ignored, too, and would never be reported",
        ),
        ({**P, "ignore": {"items": [["a", "b"]]}}, "ignore.items[0]: must have a value for each of user; got ['a', 'b']"),
        ({**P, "ignore": {"networks": {"host": ["10.0.0.0/8"]}}}, "ignore.networks.host: no column 'host' of the item; known: user"),
        (
            {**P, "ignore": {"networks": {"user": ["10.0.0.1/8"]}}},
            "ignore.networks.user[0]: must be a network such as 192.168.0.0/16; 10.0.0.1/8 has host bits set",
        ),
        (
            {**P, "ignore": {"table": {"path": "known", "columns": {"host": "ip"}}}},
            "ignore.table.columns.host: no column 'host' of the item; known: user",
        ),
        ({**P, "ignore": "a"}, "ignore: must be a mapping; got 'a'"),
        ({**P, "ignore": [{"items": ["a"]}, {"itms": ["a"]}]}, "ignore[1]: unknown field 'itms'; nearest: items"),
        ({**P, "ignore": [{"items": [["a", "b"]]}]}, "ignore[0].items[0]: must have a value for each of user; got ['a', 'b']"),
        (
            {**P, "ignore": {"items": ["a"], "until": "2015-05-17T10:00", "who": "ops"}},
            "ignore.why: is required with until",
        ),
        (
            {**P, "ignore": [{"items": ["a"], "until": "2015-05-17T10:30", "who": "ops", "why": "x"}]},
            "ignore[0].until: must be on the hour, in UTC; got '2015-05-17T10:30'",
        ),
        (
            {**P, "ignore": [{"items": ["a"]}, {"items": ["b"]}], "watch": ["b"]},
            "watch[0]: is ignored, too, and would never be reported",
        ),
        ({**P, "windw": "1 day"}, "persistence.x: unknown field 'windw'; nearest: window"),
    ],
)  # fmt: skip
def test_invalid_persistence_block_is_refused_with_reason(text: dict[str, Any], message: str) -> None:
    assert refusal_of_block("persistence", text) == message


def test_item_that_is_ignored_up_to_an_end_may_be_watched() -> None:
    known = {"items": ["a"], "until": "2015-05-17T10:00", "who": "ops", "why": "known"}
    block = parse(base() | {"persistence": {"x": {**P, "ignore": known, "watch": ["a"]}}}).persistence["x"]
    assert [place for place, _ in block.ignore_lists()] == ["ignore"]


def test_epsilon_follows_from_a_budget() -> None:
    text = {name: value for name, value in P.items() if name != "epsilon"} | {"budget": BUDGET}
    stream = parse(base() | {"persistence": {"x": text}})
    requested = stream.persistence["x"].params
    # 100,000 pairs of which 2 instances track 10,000: one in twenty each.
    assert requested.tau == Fraction(1, 20)
    assert (requested.instances, float(requested.epsilon)) == (2, pytest.approx(2 / (72 / 20)))


def test_each_block_is_described_in_one_line() -> None:
    stream = parse(base() | {"persistence": {"x": P}})
    assert describe_stream(stream).splitlines()[-1] == (
        "  persistence x: user in 51 of 72 slots of 1 hour, none in fewer than 36; epsilon 0.2, a tuple of one in "
        "3.6 pairs of an item and a slot, in 2 instances together"
    )


def test_budget_above_the_number_of_pairs_is_reported() -> None:
    stream = parse(base() | {"persistence": {"x": {**P, "epsilon": 0.05}}})
    assert describe_stream(stream).endswith(
        "a tuple of one in 0.9 pairs of an item and a slot, in 2 instances together, which is more than an exact "
        "count takes"
    )


@pytest.mark.parametrize("column", ["slot", "long", "left", "unknown", "named", "since", "bits"])
def test_column_of_an_item_must_not_have_the_name_of_an_output(column: str) -> None:
    data = base()
    data["columns"][column] = {"from": "user"}
    data["persistence"] = {"x": {**P, "item": [column]}}
    rule = f"{column} is a column that every persistent item has; choose another name"
    assert refusal(data) == f"app.yaml: persistence.x.item[0]: {rule}"


def test_state_is_retained_as_long_as_a_window() -> None:
    text = refusal({**base(), "persistence": {"x": P}, "retention": "119 hours"})
    rule = (
        "must be whole hours, and no less than repair_window and the window of persistence x together, 5 days"
    )
    assert text == f"app.yaml: retention: {rule}; got 119 hours"


def test_thresholds_of_items_change_the_fingerprint_of_reports() -> None:
    """The tracked state may be the same with another alpha, or with more instances."""
    spec = {"alpha": 0.69, "delta": 0.001, "seed": 0, "watch": ["a"], "title": "{user}"}
    shapes = {
        name: parse(base() | {"persistence": {"x": {**P, name: value}}}).fingerprint("persistent_items", "x")
        for name, value in spec.items()
    }
    usual = parse(base() | {"persistence": {"x": P}}).fingerprint("persistent_items", "x")
    assert {name for name, shape in shapes.items() if shape != usual} == {"alpha", "delta", "watch"}


def test_ledger_records_the_epsilon_that_follows_from_a_budget() -> None:
    data = base() | {"persistence": {"x": {**P, "epsilon": ..., "budget": BUDGET}, "y": P}}
    del data["persistence"]["x"]["epsilon"]
    assert epsilons(parse(data)) == {"x.epsilon_millionths": 555_556, "y.epsilon_millionths": 200_000}
