"""Texts of each feature's findings for one row."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from tests.support.ledger_factories import at
from tests.support.stream_factories import base, changed
from transom.features.aggregates.findings import SOURCE as ALERTS
from transom.features.frames.findings import SOURCE as FRAMES
from transom.features.frequency.findings import SOURCE as HEAVY
from transom.features.patterns.findings import SOURCE as EPISODES
from transom.features.persistence.findings import SOURCE as PERSISTENT
from transom.findings.source import FIRST_HOUR, HOUR, ONGOING, VERSION, FindingSource
from transom.ledger.input_hashes import fingerprint
from transom.stream import Stream, parse

MINUTE = timedelta(minutes=1)


@dataclass(frozen=True)
class Case:
    """A row of a summary, with its title, evidence and exactness."""

    source: FindingSource
    block: dict[str, Any]
    row: Mapping[str, Any]
    title: str
    evidence: list[str]
    exactness: str = "exact"


ALERT = {"when": "n >= 7", "title": "it's {user}, {n} times"}
FRAME = {"kind": "threshold", "where": "took > 5", "on_duplicate_time": "max"}
GRANULES = {"kind": "threshold", "source": "load", "where": "n < 1"}
KNOWN = GRANULES | {"missing": "satisfies", "known": "2 hours"}
PATTERN = {
    "within": "1 hour", "batch": "10 minutes",
    "steps": [{"id": "look", "where": "status = 1"}, {"id": "probe", "where": "ok", "times": 5}],
}  # fmt: skip
ITEMS = {"item": ["user"], "slot": "30 minutes", "window": "1 day", "alpha": 0.6, "epsilon": 0.4}
COUNTS = {
    "item": ["user", "status"],
    "window": "2 hours",
    "tick": "30 minutes",
    "epsilon": 0.5,
    "delta": 0.5,
    "min_share": 0.25,
}
REPORT = {
    "user": "o'brien", "n": 9, "__n_min": 7, "__n_max": 12, "count": 9, "level": 0, "window_end": at(2),
    "__aggregates": 3, "__hours": 2, "__complete": True, "__outdated": False,
}  # fmt: skip
LONG = {
    "user": "eve", "start_time": at(1), "last_time": at(2), "length_s": 3600.0,
    "records": 3, "missing": 0, "peak": 7.5,
    "peak_time": at(1) + MINUTE, "mean": 20 / 3,
}  # fmt: skip
TURNS = {"last_time": at(2) - 5 * MINUTE}
"""Readings are granules of five minutes."""
MATCH = {
    "user": "eve",
    "start_time": at(1),
    "last_time": at(1) + MINUTE,
    "matches": 1,
    "level": 1,
    "detected_at": at(2),
}
STAY = {
    "user": "eve", "since": at(0), "window_end": at(2), "low": 30, "high": 34, "estimate": 31.25,
    "slots": "11?0", "records": 40, "gap_mean_s": 1800.0, "gap_cv": 0.1234,
}  # fmt: skip
TOP = {
    "user": "eve", "status": None, "since": at(0), "window_end": at(2), "low": 20, "high": 20, "estimate": 20,
    "rank": 1, "window_records": 60,
}  # fmt: skip
NO_FIGURES = {"low": None, "high": None, "estimate": None}
RULE = "the rule: as long as took > 5"
PEAK = "n: at most 7.5 at 2015-05-17T01:01:00, on average 6.667"
SILENT = "the rule: as long as n < 1, or a reading is missing within 2 hours of the last"
STEPS = "the pattern: look, then 5 times probe, within 1 hour"
CASES = [
    Case(
        ALERTS, ALERT, REPORT, "it's o'brien, 9 times",
        ["the rule: n >= 7", "level 0, 1 hour every 5 minutes: 3 reports met it in 2 hours", "n 7 to 12",
         "the last one, to 2015-05-17T02:00:00: n 9, count 9", "", ""],
    ),
    Case(
        ALERTS, {"when": "n  >=\n7"},
        REPORT | {"__aggregates": 1, "__hours": 1, "__complete": False, "__outdated": True},
        "x of load, o'brien, 2015-05-17T01:00 to 2015-05-17T02:00, 1 hour every 5 minutes, n 7 to 12",
        ["the rule: n >= 7", "level 0, 1 hour every 5 minutes: 1 report met it in 1 hour", "n 7 to 12",
         "the last one, to 2015-05-17T02:00:00: n 9, count 9",
         "some of the reports are of hours that are incomplete",
         "some of the reports were made by an earlier form of the stream file; their hours are stale"],
    ),
    Case(
        ALERTS, {"when": "n >= 7 and slow > 1", "title": "{user}: {slow}"},
        REPORT | {"slow": 13.692882335911627, "__slow_min": 2.123456, "__slow_max": 13.692882335911627},
        "o'brien: 13.69",
        ["the rule: n >= 7 and slow > 1", "level 0, 1 hour every 5 minutes: 3 reports met it in 2 hours",
         "n 7 to 12, slow 2.123 to 13.69",
         "the last one, to 2015-05-17T02:00:00: n 9, slow 13.69, count 9", "", ""],
    ),
    Case(
        FRAMES, FRAME | {"value": "took"}, LONG | {"peak": 123.456789},
        "x of eve, 2015-05-17T01:00:00 to 2015-05-17T02:00:00",
        [RULE, "3 readings", "took: at most 123.5 at 2015-05-17T01:01:00, on average 6.667"],
    ),
    Case(
        FRAMES, FRAME | {"value": "took"}, LONG, "x of eve, 2015-05-17T01:00:00 to 2015-05-17T02:00:00",
        [RULE, "3 readings", "took: at most 7.5 at 2015-05-17T01:01:00, on average 6.667"],
    ),
    Case(
        FRAMES, FRAME | {"title": "{user} for {length_s} s"},
        LONG | {"records": 1, "missing": 2, "peak": None, ONGOING: True},
        "eve for 3600 s", [RULE, "1 reading, 2 missing between them so far", ""],
    ),
    Case(
        FRAMES, KNOWN, LONG | TURNS | {"records": 0, "missing": 6},
        "x of eve, 2015-05-17T01:00:00 to 2015-05-17T02:00:00",
        [SILENT, "no reading from 2015-05-17T01:00:00 to 2015-05-17T02:00:00, 6 missing",
         "n: at most 7.5 at 2015-05-17T01:01:00, on average 6.667"],
    ),
    Case(
        FRAMES, KNOWN, LONG | TURNS | {"records": 0, "missing": 6, ONGOING: True},
        "x of eve, 2015-05-17T01:00:00 to 2015-05-17T02:00:00",
        [SILENT, "no reading since 2015-05-17T01:00:00, 6 missing so far",
         "n: at most 7.5 at 2015-05-17T01:01:00, on average 6.667"],
    ),
    # The default title ends with the interval that the last reading covers, a liberal extent with a reading.
    Case(
        FRAMES, GRANULES, LONG | TURNS, "x of eve, 2015-05-17T01:00:00 to 2015-05-17T02:00:00",
        ["the rule: as long as n < 1", "3 readings", PEAK],
    ),
    Case(
        FRAMES, GRANULES | {"extent": "liberal"}, LONG,
        "x of eve, 2015-05-17T01:00:00 to 2015-05-17T02:00:00",
        ["the rule: as long as n < 1", "3 readings", PEAK],
    ),
    Case(
        FRAMES, GRANULES | {"title": "{user} to {last_time}"}, LONG | TURNS, "eve to 2015-05-17T01:55:00",
        ["the rule: as long as n < 1", "3 readings", PEAK],
    ),
    Case(
        EPISODES, PATTERN, MATCH, "x of eve, 2015-05-17T01:00:00 to 2015-05-17T01:01:00",
        [STEPS, "1 match; its records are in the table matches, of block x and this key",
         "first detected at 2015-05-17T02:00:00 in windows of 40 minutes (level 1), 0 h 59 min 0 s after its "
         "last record"],
    ),
    Case(
        EPISODES, PATTERN | {"key": [], "title": "{matches} from {start_time}"},
        MATCH | {"matches": 3, "level": 9, ONGOING: True}, "3 from 2015-05-17T01:00:00",
        [STEPS, "3 matches so far; their records are in the table matches, of block x",
         "first detected at 2015-05-17T02:00:00 in windows, 1 h 0 min 0 s after the first record"],
    ),
    Case(
        PERSISTENT, ITEMS, STAY | {ONGOING: True},
        "x: eve is there again and again, since 2015-05-17T00:00:00",
        ["in 30 to 34 of 48 slots of 30 minutes, about 31.3; 40 records", "11?0",
         "on average 1800.0 s from the first contact of a slot to that of the next one, with a deviation of "
         "12.3 %"],
        "30..34",
    ),
    Case(
        PERSISTENT, ITEMS, STAY | {"slots": None, "gap_mean_s": None},
        "x: eve was there again and again, 2015-05-17T00:00:00 to 2015-05-17T02:00:00",
        ["in 30 to 34 of 48 slots of 30 minutes, about 31.3; 40 records", "", ""], "30..34",
    ),
    Case(
        PERSISTENT, ITEMS | {"title": "{user} again"},
        STAY | NO_FIGURES | {"slots": None, "gap_mean_s": None},
        "eve again", ["no more in enough of the 48 slots of 30 minutes up to 2015-05-17T02:00:00", "", ""],
        "guaranteed",
    ),
    Case(
        HEAVY, COUNTS, TOP | {ONGOING: True},
        "x: eve, null is among the most frequent, since 2015-05-17T00:00:00",
        ["about 20 of 60 records of the last 2 hours, 33.3 %; place 1"],
    ),
    Case(
        HEAVY, COUNTS | {"variant": "vanilla"}, TOP | NO_FIGURES,
        "x: eve, null was among the most frequent, 2015-05-17T00:00:00 to 2015-05-17T02:00:00",
        ["below 25 % of the records since the start up to 2015-05-17T02:00:00"], "guaranteed",
    ),
]  # fmt: skip


def stream_with(source: FindingSource, block: dict[str, Any]) -> Stream:
    """Return the small stream with one block `x` that has such findings."""
    if source is ALERTS:
        return parse(changed(aggregates__load__alert={"x": block}))
    names = {EPISODES: "patterns", FRAMES: "frames", PERSISTENT: "persistence", HEAVY: "frequency"}
    return parse(base() | {names[source]: {"x": block}})


@pytest.mark.parametrize("case", CASES)
def test_row_has_the_expected_text(case: Case) -> None:
    (template,) = case.source.templates(stream_with(case.source, case.block))
    row = {HOUR: at(1), FIRST_HOUR: at(1), ONGOING: False, **case.row}
    assert template.title(row) == case.title
    assert template.evidence(row) == case.evidence
    assert template.exactness(row) == case.exactness
    finding = case.source.finding("app", template, row, "an id", "a hash")
    assert finding.title == f"app: {case.title}"
    assert finding.evidence == tuple(text for text in case.evidence if text)
    assert (finding.kind, finding.block, finding.hour, finding.first_hour, finding.ongoing) == (
        case.source.kind, template.block, at(1), at(1), row[ONGOING]
    )  # fmt: skip


def test_changed_text_requires_a_raised_version() -> None:
    """Otherwise findings keep their old text as long as their rows are unchanged."""
    texts = [(case.title, case.evidence, case.exactness) for case in CASES]
    assert (VERSION, fingerprint(texts)) == (5, "9e8f40f82e906012a779048b")
