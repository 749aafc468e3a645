"""The exact errors for invalid blocks of items, of persistence and frequency alike."""

# ruff: noqa: E501 - in the table of refusals, a case a line can be read down; wrapped, it cannot

from typing import Any

import pytest

from tests.frequency.test_validate import F
from tests.persistence.test_validate import P
from tests.support.stream_factories import refusal_of_block


@pytest.mark.parametrize(("feature", "valid"), [("frequency", F), ("persistence", P)])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ({"item": ...}, "item: is required"),
        ({"item": []}, "item: must have at least 1; got []"),
        ({"item": ["usr"]}, "item[0]: no column 'usr'; nearest: user"),
        ({"item": ["user", "user"]}, "item: names 'user' 2 times"),
        (
            {"item": ["took"]},
            "item[0]: must be a text, an integer, a truth value or a time; took is a number: derive a text or an integer of it",
        ),
        ({"delta": 0}, "delta: must be above 0 and below 1; got 0"),
        ({"seed": -1}, "seed: must be from 0 up to 2^32; got -1"),
        ({"seed": 2**32}, "seed: must be from 0 up to 2^32; got 4294967296"),
        ({"where": "tok > 5"}, "where: no column 'tok'; nearest: took\n    tok > 5\n    ^"),
        ({"title": "{usr} comes"}, "title: a title names columns of the item, since and window_end; no column 'usr'; nearest: user"),
        ({"watch": [5]}, "watch[0]: must be a string for user; got 5"),
        ({"watch": [["a", "b"]]}, "watch[0]: must have a value for each of user; got ['a', 'b']"),
    ],
)  # fmt: skip
def test_invalid_block_of_items_is_refused_with_reason(
    feature: str, valid: dict[str, Any], text: dict[str, Any], message: str
) -> None:
    assert refusal_of_block(feature, {**valid, **text}) == message
