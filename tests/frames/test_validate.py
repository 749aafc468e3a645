"""The exact text of every error of frames."""

# ruff: noqa: E501 - in the table of refusals, a case a line can be read down; wrapped, it cannot

from typing import Any

import pytest

from tests.support.stream_factories import base, refusal

T = {"kind": "threshold", "where": "took > 5", "on_duplicate_time": "first"}
D = {"kind": "delta", "value": "took", "below": 3, "on_duplicate_time": "first"}
G = {"source": "load", "kind": "threshold", "where": "n > 3"}
K = {**G, "missing": "satisfies", "known": "1 day"}
A = {"kind": "aggregate", "condition": "sum(took) > 100", "span": "minimal", "on_duplicate_time": "sum"}
R = {"kind": "trend", "value": "took", "direction": "increasing", "on_duplicate_time": "first"}
M = {"kind": "marked", "starts_when": "status = 1", "when_open": "report", "on_duplicate_time": "first"}
B = {"kind": "boundary", "value": "took", "step": 1, "on_duplicate_time": "max"}


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (
            {**T, "kind": "treshold"},
            "kind: must be one of 'threshold', 'boundary', 'delta', 'aggregate', 'trend', 'marked'; got 'treshold'",
        ),
        ({"where": "ok", "on_duplicate_time": "first"}, "kind: is required"),
        ({**T, "where": ...}, "where: is required with kind threshold"),
        ({**T, "where": "tok > 5"}, "where: no column 'tok'; nearest: took\n    tok > 5\n    ^"),
        ({**T, "where": "took"}, "where: a condition must be a boolean; got a number\n    took\n    ^"),
        ({**T, "where": "1 = 1"}, "where: must read a column, or all readings are alike; got '1 = 1'"),
        ({**T, "below": 3}, "below: requires kind delta; got kind threshold"),
        ({**T, "extent": "wide"}, "extent: must be one of 'conservative', 'liberal'; got 'wide'"),
        ({**D, "extent": "liberal"}, "extent: requires kind threshold; got kind delta"),
        ({**D, "below": 0}, "below: must be above 0; got 0"),
        ({**D, "below": -1}, "below: must be above 0; got -1"),
        ({**D, "below": "3"}, "below: must be a number; got '3'"),
        ({**D, "value": ...}, "value: is required with kind delta"),
        ({**D, "value": "tok"}, "value: no column 'tok'; nearest: took"),
        ({**D, "value": "user"}, "value: takes an integer or a number; user is a string"),
        ({**B, "step": 0}, "step: must be above 0; got 0"),
        ({**B, "step": 0.0005}, "step: must be a multiple of the resolution of took, 0.001; got 0.0005"),
        (
            {**A, "condition": "sum(took) = 5"},
            "condition: must be an aggregate and a number, as sum(vehicles) > 100, or count, avg, min or max with >, >=, < or <=; got 'sum(took) = 5'",
        ),
        (
            {**A, "condition": "total(took) > 5"},
            "condition: must be an aggregate and a number, as sum(vehicles) > 100, or count, avg, min or max with >, >=, < or <=; got 'total(took) > 5'",
        ),
        (
            {**A, "condition": "sum() > 5"},
            "condition: sum needs a column, as sum(vehicles) > 100; got 'sum() > 5'",
        ),
        (
            {**A, "condition": "count(took) > 5"},
            "condition: count counts readings and takes no column; got 'count(took) > 5'",
        ),
        ({**A, "condition": "sum(tok) > 5"}, "condition: no column 'tok'; nearest: took"),
        ({**A, "span": ...}, "span: is required with kind aggregate"),
        ({**A, "span": "short"}, "span: must be one of 'minimal', 'maximal'; got 'short'"),
        ({**A, "condition": "sum(user) > 5"}, "condition: takes an integer or a number; user is a string"),
        ({**R, "direction": "up"}, "direction: must be one of 'increasing', 'decreasing'; got 'up'"),
        (
            {**R, "missing": "bridged"},
            "missing: must be breaks with kind trend: what is missing has no value to be above or below another; got bridged",
        ),
        (
            {**R, "max_records": 1},
            "max_records: must be at least 2 with kind trend, which shows in two readings; got 1",
        ),
        (
            {**M, "when_open": ...},
            "when_open: is required with starts_when, one of report, drop, continue: a start may meet an open frame",
        ),
        (
            {**M, "starts_when": ...},
            "2 problems\n  frames.x.starts_when: is required with kind marked\n  frames.x.when_open: requires starts_when, which is missing",
        ),
        ({**T, "when_open": "drop"}, "when_open: requires starts_when, which is missing"),
        (
            {**T, "min_length": "2 hours", "max_length": "1 hour"},
            "min_length: must not be longer than max_length; got 2 hours and 1 hour",
        ),
        (
            {**T, "min_records": 5, "max_records": 4},
            "min_records: must not be more than max_records; got 5 and 4",
        ),
        ({**T, "max_length": "0 seconds"}, "max_length: must be above 0; got 0 seconds"),
        (
            {**G, "max_length": "1 minute"},
            "max_length: must be long enough for a reading; got 1 minute, of readings 5 minutes apart",
        ),
        (
            {
                "source": "load",
                "kind": "trend",
                "value": "n",
                "direction": "decreasing",
                "max_length": "5 minutes",
            },
            "max_length: must be long enough for 2 readings; got 5 minutes, of readings 5 minutes apart",
        ),
        (
            {**G, "max_records": 3, "min_length": "20 minutes"},
            "min_length: must not be longer than max_records of readings 5 minutes apart; got 20 minutes and 3 of them",
        ),
        (
            {**T, "longest": True, "period": "2 hours", "min_length": "3 hours"},
            "min_length: must not be longer than period, with which frames end; got 3 hours and 2 hours",
        ),
        (
            {**A, "condition": "count > 5", "span": "maximal"},
            "condition: must hold of one reading, with which a frame of span maximal begins, or there is no frame; got 'count > 5'",
        ),
        (
            {**A, "condition": "count > 5", "max_records": 5},
            "condition: must hold of 5 readings, which max_records allows, or there is no frame; got 'count > 5'",
        ),
        (
            {**A, "condition": "count < 2", "min_records": 2},
            "condition: must hold of 2, which is the fewest, or there is no frame; got 'count < 2'",
        ),
        ({**T, "min_records": 0}, "min_records: must be at least 1; got 0"),
        ({**T, "idle": "90 seconds"}, "idle: must be whole minutes, from one to 366 days; got 90 seconds"),
        ({**T, "idle": "400 days"}, "idle: must be whole minutes, from one to 366 days; got 400 days"),
        ({**T, "idle": "0 hours"}, "idle: must be whole minutes, from one to 366 days; got 0 seconds"),
        (
            {**D, "missing": "satisfies"},
            "missing: requires kind threshold: a missing value satisfies no other kind; got kind delta",
        ),
        (
            {**G, "known": "1 day"},
            "known: requires missing: satisfies; got no missing",
        ),
        (
            {**G, "missing": "bridged", "known": "1 day"},
            "known: requires missing: satisfies; got missing: bridged",
        ),
        ({**K, "known": "soon"}, "known: must be a whole number and a unit, such as 5 minutes; got 'soon'"),
        ({**K, "known": "90 seconds"}, "known: must be whole minutes, from one to 366 days; got 90 seconds"),
        ({**K, "known": "400 days"}, "known: must be whole minutes, from one to 366 days; got 400 days"),
        (
            {**K, "known": "9 minutes"},
            "known: must be at least twice as long as readings are apart, 10 minutes; got 9 minutes, of readings 5 minutes apart",
        ),
        (
            {**K, "known": "10 minutes", "min_length": "10 minutes"},
            "known: must be at least min_length and a reading more, 15 minutes; got 10 minutes, of readings 5 minutes apart",
        ),
        (
            {**T, "missing": "satisfies", "known": "1 day"},
            "known: needs readings at known times: of a block of `aggregates`, or with time.interval",
        ),
        (
            {**K, "idle": "1 day"},
            "idle: must not be set with known: a frame is closed when its key is not known any more",
        ),
        (
            {**K, "starts_when": "n = 1", "when_open": "report"},
            "starts_when: must not be set with known: a missing reading has no value that could meet it",
        ),
        (
            {**K, "min_records": 2},
            "min_records: must not be set with known: a frame may have missing readings only; min_length takes these, too",
        ),
        (
            {**K, "max_records": 2},
            "max_records: must not be set with known: a frame may have missing readings only; max_length takes these, too",
        ),
        (
            {**K, "longest": True, "period": "1 day"},
            "period: must not be set with known: within a period by itself no key is known from before",
        ),
        (
            {**T, "on_duplicate_time": ...},
            "on_duplicate_time: is required for frames of events, one of first, last, min, max, sum, mean: a reading has a time of its own",
        ),
        (
            {**G, "on_duplicate_time": "first"},
            "on_duplicate_time: requires frames of events; granules have those of their block",
        ),
        ({**G, "key": ["user"]}, "key: requires frames of events; granules have those of their block"),
        ({**G, "source": "laod"}, "source: no block of aggregates 'laod'; nearest: load"),
        ({**G, "where": "m > 3"}, "where: no column 'm'; known: user, n, slow, event_time\n    m > 3\n    ^"),
        ({**T, "key": ["usr"]}, "key[0]: no column 'usr'; nearest: user"),
        ({**T, "key": ["user", "user"]}, "key: names 'user' 2 times"),
        (
            {**T, "scheme": "partition"},
            "scheme: must not be partition: readings that do not meet `where` are in no frame",
        ),
        (
            {**R, "scheme": "partition"},
            "scheme: must not be partition: a reading between a rise and the next one is in no frame",
        ),
        (
            {**M, "scheme": "partition"},
            "scheme: must not be partition: readings before a start are in no frame",
        ),
        (
            {**A, "span": "maximal", "scheme": "partition"},
            "scheme: must not be partition: a reading that breaks the condition by itself is in no frame",
        ),
        (
            {**D, "scheme": "partition", "min_records": 2},
            "scheme: must not be partition: what is shorter than min_records is in no frame",
        ),
        (
            {**D, "scheme": "partition", "starts_when": "ok", "when_open": "continue"},
            "scheme: must not be partition: readings before one that meets starts_when are in no frame",
        ),
        (
            {**D, "scheme": "partition", "missing": "breaks"},
            "scheme: must not be partition: with missing: breaks a frame does not begin where the last one ended",
        ),
        (
            {**T, "scheme": "cover"},
            "scheme: must not be cover with kind threshold: readings may be in no frame",
        ),
        (
            {**A, "scheme": "cover", "period": "1 day"},
            "scheme: must not be cover with kind aggregate: readings may be in no frame; unconstrained has every frame there is",
        ),
        (
            {**D, "scheme": "cover", "period": "1 day", "min_length": "1 hour"},
            "scheme: must not be cover with min_length: what is shorter is in no frame",
        ),
        (
            {**D, "scheme": "cover"},
            "period: is required with scheme cover, which is known when a period is over",
        ),
        (
            {**D, "scheme": "unconstrained", "period": "1 day", "set": "drained"},
            "set: must be saturated with scheme unconstrained: it has every frame, where fewer would do; got drained",
        ),
        (
            {**D, "set": "saturated"},
            "set: must be drained: a frame that begins with another reading could be added; scheme unconstrained has all of them; got saturated",
        ),
        (
            {**T, "longest": True},
            "period: is required with longest, which is known when a period is over",
        ),
        (
            {**T, "period": "1 day"},
            "period: requires longest, or scheme cover or unconstrained of kind delta or aggregate",
        ),
        (
            {**T, "longest": True, "period": "90 minutes"},
            "period: must be whole hours, from one to 366 days; got 90 minutes",
        ),
        (
            {**T, "baseline": {"value": "took", "shift": ["7 days"]}},
            "baseline: needs readings at known times: of a block of `aggregates`, or with time.interval",
        ),
        (
            {**G, "where": "n > baseline", "baseline": {"value": "n", "shift": ["-7 days"]}},
            "baseline.shift[0]: must be a whole number and a unit, such as 5 minutes; got '-7 days'",
        ),
        (
            {**G, "where": "n > baseline", "baseline": {"value": "n", "shift": []}},
            "baseline.shift: must have at least 1; got []",
        ),
        (
            {**G, "where": "n > baseline", "baseline": {"value": "m", "shift": ["7 days"]}},
            "baseline.value: no column 'm'; known: n, slow",
        ),
        (
            {**G, "where": "n > baseline", "baseline": {"value": "n", "shift": ["7 minutes"]}},
            "baseline.shift[0]: must be a multiple of 5 minutes, by which readings are apart; got 7 minutes",
        ),
        (
            {**G, "where": "n > baseline", "baseline": {"value": "n", "shift": ["0 hours"]}},
            "baseline.shift[0]: must be above 0",
        ),
        (
            {**G, "where": "n > baseline"},
            "where: no column 'baseline'; known: user, n, slow, event_time\n    n > baseline\n        ^",
        ),
        (
            {**G, "where": "n > baseline", "baseline": {"value": "n", "shift": ["7 days", "168 hours"]}},
            "baseline.shift: names '7 days' 2 times",
        ),
        (
            {**T, "title": "{usr} is slow"},
            "title: a title names columns of the key, start_time, last_time, records, length_s, peak, peak_time and mean; no column 'usr'; nearest: user",
        ),
        ({**T, "wher": "ok"}, "frames.x: unknown field 'wher'; nearest: where"),
        ({**T, "only": "k"}, "only: no column 'k'; nearest: ok\n    k\n    ^"),
        (
            {**G, "only": "baseline > 3", "baseline": {"value": "n", "shift": ["7 days"]}},
            "only: no column 'baseline'; known: user, n, slow, event_time\n    baseline > 3\n    ^",
        ),
    ],
)
def test_invalid_frames_are_refused_with_reason(frame: dict[str, Any], message: str) -> None:
    data = base()
    data["frames"] = {"x": {name: value for name, value in frame.items() if value is not ...}}
    assert refusal(data).replace("app.yaml: frames.x.", "").replace("app.yaml: ", "") == message
