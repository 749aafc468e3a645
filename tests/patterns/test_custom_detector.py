"""Which results of an operator's own detector are accepted, and which are rejected."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from transom.features.patterns.custom_detector import Record, matches_in

FIRST = datetime(2015, 5, 17, tzinfo=UTC)
RECORDS = [Record(FIRST + timedelta(minutes=n), {"client": "a", "status": n}) for n in range(4)]
OTHER = Record(FIRST, {"client": "a", "status": 0})


def test_matches_are_unique_places_in_order() -> None:
    def detect(records: Sequence[Record]) -> Any:
        assert [(r.time, r["status"], dict(r)) for r in records] == [
            (r.time, r["status"], dict(r)) for r in RECORDS
        ]
        yield [records[2], records[0]]
        yield {records[1]}
        yield (records[0], records[2], records[0])

    assert matches_in(detect, RECORDS) == [(0, 2), (1,)]
    assert matches_in(lambda records: (), RECORDS) == []


@pytest.mark.parametrize(
    ("detect", "text"),
    [
        (lambda records: None, "it has to return matches; it returned None"),
        (lambda records: "none", "it has to return matches; it returned 'none'"),
        (lambda records: [7], "it has to return records of a match; it returned 7"),
        (
            lambda records: [records[0]],
            r"it has to return records of a match; it returned Record\(2015-05-17T00:00",
        ),
        (lambda records: [[]], "it returned a match without records"),
        # A record equal to a shown one is not the same record.
        (
            lambda records: [[OTHER]],
            r"it returned what it was not shown: Record\(2015-05-17T00:00:00\+00:00, {",
        ),
        (lambda records: [[3]], "it returned what it was not shown: 3"),
    ],
)
def test_invalid_match_is_refused(detect: Callable[[Sequence[Record]], Any], text: str) -> None:
    with pytest.raises((TypeError, ValueError), match=text):
        matches_in(detect, RECORDS)
