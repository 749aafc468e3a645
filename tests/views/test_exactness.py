"""Each view says how exact its figures are: the guarantees of docs/concepts, by the settings of its block."""

from typing import Any

import pytest

from tests.support.viewed_lake import SIX, ViewedLake, at, between, sections_of, window
from transom.views.open_stream import OpenStream

EPISODE = {
    "hour": at(1), "block": "back", "client": "a", "episode_id": "e", "start_time": at(1), "last_time": at(2),
    "matches": 1, "level": 0, "state": "final", "detected_at": at(2),
}  # fmt: skip
FRAME = {
    "hour": at(1), "block": "busy", "client": "a", "frame_id": "f", "start_time": at(1), "last_time": at(2),
    "length_s": 1.0, "records": 1, "missing": 0, "fragment": 1, "state": "final",
}  # fmt: skip
FILL = {
    "hour": at(1), "block": "before", "client": "a", "frame_id": "f", "start_time": at(1), "end_time": at(2),
    "shift_s": 0.0, "fragment": 1, "coverage": 1.0, "state": "final",
}  # fmt: skip
ITEM = {
    "hour": at(1), "block": "regulars", "client": "a", "window_end": at(2), "low": 1, "high": 2,
    "spell_id": "s", "slots": "0011",
}  # fmt: skip
COUNT = {
    "hour": at(1), "block": "often", "path": "/", "window_end": at(2), "rank": 1, "low": 1, "high": 2,
    "estimate": 2, "window_records": 9, "max_unreported": 1,
}  # fmt: skip
ROWS: dict[str, tuple[str, dict[str, Any]]] = {
    "aggregates": ("aggregates", window(1, "a", 3, level=1)),
    "patterns": ("episodes", EPISODE),
    "frames": ("frames", FRAME),
    "fills": ("fills", FILL),
    "persistence": ("persistent_items", ITEM),
    "frequency": ("frequencies", COUNT),
}
"""A row of the table of each feature."""
RARE = "batch: 10 minutes\n    max_records: 7\n    count_records: all"
OFTEN = "epsilon: 0.5, delta: 0.5, top: 2"
BEYOND = "Where they differ, it is too large by more than error_bound with a probability of at most 0.5"


@pytest.mark.parametrize(
    ("feature", "old", "new", "words"),
    [
        (
            "aggregates", "", "",
            [
                "Counts, sums, means, minima and maxima, and lines fitted to these, are",
                "Hours that were not requested count as empty.",
            ],
        ),
        (
            "aggregates", "{n: count,", "{pages: distinct(path), n: count,",
            ["are exact. pages: exact up to 1,024 values", "error_pages has its standard error, about 4 %."],
        ),
        (
            "aggregates", "    fit: {unit: 1 hour, value: sum, missing: zero}\n", "",
            ["minima and maxima are exact."],
        ),
        (
            "patterns", "", "",
            [
                "all matches of at most 3 hours and 100 records that a step may take, each once",
                "The delay is at most 5 minutes or twice the duration of the match.",
            ],
        ),
        (
            "patterns", "within: 3 hours", f"within: 2 hours\n    {RARE}",
            ["of at most 2 hours and 7 records, each once. The delay is at most 10 minutes"],
        ),
        ("frames", "", "", ["Exact: the frames of the whole history of client", "partial may go on"]),
        (
            "fills", "", "",
            ["Exact where coverage is 1", "A partial row may still change", "longer than 7 days, only that"],
        ),
        (
            "fills", "shift: [3 hours]", "reach: 2 hours, combine: median, shift: [3 hours, 1 day]",
            ["The median is that of the shifts with coverage 1", "Of a frame longer than 2 hours"],
        ),
        (
            "persistence", "", "",
            [
                "of 4, is certainly between low and high",
                "in 3 or more is reported with a probability of at least 0.95; one in fewer than 1 never.",
            ],
        ),
        ("persistence", "epsilon: 0.6}", "epsilon: 0.6, watch: [[b]]}", ["never, unless it is watched."]),
        ("frequency", "", "", ["certainly between low and high", f"{BEYOND}, and never too small."]),
        ("frequency", OFTEN, f"{OFTEN}, variant: simple", ["mostly too small, without another bound."]),
        ("frequency", OFTEN, f"{OFTEN}, variant: proportional", ["too small or too large, without another"]),
        ("frequency", OFTEN, f"{OFTEN}, variant: splitter", [f"{BEYOND}, and may be too small."]),
        ("frequency", OFTEN, f"{OFTEN}, variant: vanilla", ["from the start, and low only the window."]),
    ],
)  # fmt: skip
def test_view_says_how_exact_it_is(
    lake: ViewedLake, feature: str, old: str, new: str, words: list[str]
) -> None:
    assert old in SIX
    lake.file.write_text(SIX.replace(old, new, 1))
    lake.load()
    table, row = ROWS[feature]
    lake.add(table, [row])
    for key in ({}, {"path": "/"} if feature == "frequency" else {"client": "a"}):
        (part,) = sections_of(OpenStream(lake.uri, lake.stream), feature, None, between(0, 6), key)
        for text in words:
            assert text in f"{part.note} {part.guarantee}"
