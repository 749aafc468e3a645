"""The exact text of every error of frequency blocks."""

# ruff: noqa: E501 - in the table of refusals, a case a line can be read down; wrapped, it cannot

from typing import Any

import pytest

from tests.support.stream_factories import base, refusal, refusal_of_block
from transom.cli.check import describe_stream
from transom.features.frequency.spec import Frequency
from transom.features.frequency.tables_cells import NUMBERS, VALUES
from transom.features.items.tables import item_schema
from transom.stream import parse

F = {"item": ["user"], "window": "24 hours", "tick": "5 minutes", "epsilon": 0.01, "delta": 0.01}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ({**F, "tick": "7 minutes"}, "tick: must divide an hour; got 7 minutes"),
        ({**F, "tick": "2 hours"}, "tick: must divide an hour; got 2 hours"),
        ({**F, "tick": "0 hours"}, "tick: must divide an hour; got 0 seconds"),
        ({**F, "window": "3 minutes"}, "window: must be a whole number of ticks of 5 minutes; got 3 minutes"),
        ({**F, "window": "7 minutes"}, "window: must be a whole number of ticks of 5 minutes; got 7 minutes"),
        ({**F, "window": "90 minutes"}, "window: must be whole hours, as it is reported by; got 90 minutes"),
        ({**F, "epsilon": 0}, "epsilon: must be above 0 and below 1; got 0"),
        ({**F, "epsilon": 1}, "epsilon: must be above 0 and below 1; got 1"),
        ({**F, "delta": 1.5}, "delta: must be above 0 and below 1; got 1.5"),
        ({**F, "min_share": 0}, "min_share: must be from 0.000001 to 1; got 0"),
        ({**F, "top": 0}, "top: must be at least 1; got 0"),
        ({**F, "variant": "splitter", "tau": 1.5}, "tau: must be from 0.000001 to 1; got 1.5"),
        ({**F, "variant": "splitter", "mu": 0.5}, "mu: must be 1 or more, or every rate is another one; got 0.5"),
        ({**F, "tau": 0.1}, "tau: is of the variant splitter alone; got variant perfect"),
        ({**F, "variant": "vanilla", "mu": 2}, "mu: is of the variant splitter alone; got variant vanilla"),
        ({**F, "variant": "simple", "start": "2024-01-01T00:00"}, "start: is of the variants splitter and vanilla alone; got variant simple"),
        ({**F, "variant": "exact"}, "variant: must be one of 'perfect', 'simple', 'proportional', 'splitter', 'vanilla'; got 'exact'"),
        (
            {**F, "epsilon": 1e-6},
            "epsilon: does not fit: matrices of 7 rows and 2,718,282 columns for each of 287 hours (a chunk of 7 days, 2 days on either side, the window before), 40.7 GiB in all; memory is 1024 MiB",
        ),
        (
            {**F, "epsilon": 0.0001, "variant": "splitter"},
            "epsilon: does not fit: matrices of 7 rows and 27,183 columns for each of 3168 ticks (a chunk of 7 days, 2 days on either side), and 4,186,182 sub-cells, 4.71 GiB in all; memory is 1024 MiB",
        ),
        (
            {**F, "epsilon": 2e-7, "tick": "1 hour", "window": "1 hour", "variant": "vanilla"},
            "epsilon: does not fit: matrices of 7 rows and 13,591,410 columns for each of 264 hours (a chunk of 7 days, 2 days on either side), 187 GiB in all; memory is 1024 MiB",
        ),
        (
            {**F, "epsilon": 5e-5, "tick": "1 hour", "variant": "splitter"},
            "epsilon: does not fit: matrices of 7 rows and 54,366 columns for each of 264 hours (a chunk of 7 days, 2 days on either side), with two bounds each, and 8,372,364 sub-cells, 2.69 GiB in all; memory is 1024 MiB",
        ),
        (
            {**F, "min_share": 1e-6},
            "min_share: does not fit: 1,000,000 items kept of each of 287 hours (a chunk of 7 days, 2 days on either side, the window before), 26.7 GiB in all; memory is 1024 MiB",
        ),
        (
            {**F, "top": 10_000, "memory": 2048},
            "top: does not fit: 100,000 items kept of each of 287 hours (a chunk of 7 days, 2 days on either side, the window before), 2.68 GiB in all; memory is 2048 MiB",
        ),
        ({**F, "min_share": 1e-320}, "min_share: must be from 0.000001 to 1; got 9.99989e-321"),
        ({**F, "variant": "splitter", "tau": 1e-320}, "tau: must be from 0.000001 to 1; got 9.99989e-321"),
        ({**F, "delta": 1e-320, "epsilon": 0.1, "memory": 1}, "epsilon: does not fit: matrices of 1064 rows and 28 columns for each of 287 hours (a chunk of 7 days, 2 days on either side, the window before), 70.7 MiB in all; memory is 1 MiB"),
        ({**F, "epsilon": 1e-12}, "epsilon: gives a matrix of more than 2^32 columns; got 1e-12"),
        ({**F, "epsilon": 1e-320}, "epsilon: gives a matrix of more than 2^32 columns; got 9.99989e-321"),
        ({**F, "memory": 10_000}, "memory: must be at most 8192; got 10000"),
        ({**F, "variant": "vanilla", "watch": ["a"]}, "watch: is of the variants that have windows, which vanilla has not"),
        (
            {**F, "epsilon": 0.0001, "tick": "10 seconds", "memory": 64},
            "epsilon: does not fit: matrices of 7 rows and 27,183 columns for each of 360 ticks of an hour, 528 MiB in all; memory is 64 MiB",
        ),
        (
            {**F, "watch": ["a", None]},
            "watch[1]: must be a text, an integer or a truth value, or a list with one for each column; got None",
        ),
        ({**F, "watch": ["x" * 4096, "é" * 2049]}, "watch[1]: one of more than 4,096 bytes is skipped; got 4,098"),
        ({**F, "watch": ["a", "\ud800"]}, "watch[1]: must be text that UTF-8 can write for user; got '\\ud800'"),
        ({**F, "item": ["user", "status"], "watch": [["a", 2**63]]}, "watch[0]: must be of 64 bits for status; got 9223372036854775808"),
        ({**F, "windw": "1 day"}, "frequency.x: unknown field 'windw'; nearest: window"),
    ],
)  # fmt: skip
def test_invalid_frequency_block_is_refused_with_reason(text: dict[str, Any], message: str) -> None:
    assert refusal_of_block("frequency", text) == message


@pytest.mark.parametrize(
    "name",
    [
        *NUMBERS,
        *VALUES,
        *(name for t in ("frequencies", "tick_matrices") for name in item_schema(t, {}).names),
    ],
)
def test_column_of_an_item_must_not_have_the_name_of_an_output(name: str) -> None:
    data = base()
    data["columns"][name] = "user"
    data["frequency"] = {"x": {**F, "item": [name]}}
    rule = "is a column that every"
    assert f" {name} {rule}" in refusal(data)


def test_each_block_is_described_in_one_line() -> None:
    data = base()
    for variant, wrong in (
        (
            "perfect",
            "never too small, and more than 0.01 of all records too large in 0.0078 of the cases at most",
        ),
        ("splitter", "off in either direction; each item has its error_bound"),
        ("simple", "off in either direction; bounds exist only for items kept exactly"),
        (
            "vanilla",
            "never too small, and more than 0.01 of all records too large in 0.0078 of the cases at most",
        ),
    ):
        data["frequency"] = {"x": {**F, "variant": variant}}
        window = "" if variant == "vanilla" else " in 1 day by ticks of 5 minutes"
        shape = f"  frequency x: user{window}, {variant}; 7 rows of 272 columns, an estimate is"
        assert describe_stream(parse(data)).splitlines()[-1] == f"{shape} {wrong}"


def test_number_of_stored_items_includes_all_possible_heavy_ones() -> None:
    retained = [
        Frequency.model_validate({**F, "top": top, "min_share": heavy}).capacity
        for top, heavy in ((20, 0.05), (1, 0.02))
    ]
    assert retained == [200, 50]
