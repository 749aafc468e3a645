"""The parts of a finding's line in addition to its title."""

from datetime import timedelta

import pytest

from tests.support.ledger_factories import at
from transom.findings.text import describe_subject

MINUTE = timedelta(minutes=1)


@pytest.mark.parametrize(
    ("title", "key", "minutes", "beside"),
    [
        ("web: slow", "10.0.0.1", 120, " (10.0.0.1, 2015-05-17T01:00 to 2015-05-17T03:00)"),
        ("web: slow", None, 60, " (2015-05-17T01:00)"),
        ("web: slow", None, 20, " (2015-05-17T01:00 to 2015-05-17T01:20)"),
        # 10.0.0.1 is no part of 10.0.0.17, but is one of the following.
        ("web: 10.0.0.17 at 2015-05-17T01:00:00", "10.0.0.1", 60, " (10.0.0.1)"),
        ("web: 10.0.0.1, 2015-05-17T01:00", "10.0.0.1", 60, ""),
        # Log text stays on one line, with its control characters escaped.
        ("web: o' brien at 2015-05-17T01:00", "o'\n\x1b[2Jbrien", 60, " (o'\\n\\x1b[2Jbrien)"),
        ("web: [a+b] since 2015-05-17T01:00", "[a+b]", 60, ""),
    ],
)
def test_line_adds_key_and_time_missing_in_the_title(
    title: str, key: str | None, minutes: int, beside: str
) -> None:
    assert describe_subject(title, key, None, at(1), at(1) + minutes * MINUTE) == beside


def test_line_adds_the_item_and_no_missing_time() -> None:
    assert describe_subject("web: comes again", None, "10.0.0.9", None, None) == " (10.0.0.9)"
