"""The exact text of every error of a pattern."""

# ruff: noqa: E501 - in the table of refusals, a case a line can be read down; wrapped, it cannot

from pathlib import Path
from typing import Any

import pytest

from tests.support.pattern_factories import small
from tests.support.stream_factories import refusal
from transom.stream import parse

A, B = ({"id": "a", "where": "status = 1"}, {"id": "b", "where": "ok"})
C = {"id": "c", "where": "not ok"}
OWN = {"steps": ..., "detector": "transom.core.intervals.parse"}
DO = {"id": "c", "where": "ok", "times": 2}
NOT_C = {"where": " not  ok", "between": ["a", "b"]}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        # one field
        ({"within": ...}, "within: is required"),
        ({"within": "1 dya"}, "within: unknown unit 'dya' in '1 dya'; nearest: day"),
        ({"within": "0 seconds"}, "within: must be above 0; got 0 seconds"),
        ({"within": "3661 days"}, "within: must not be longer than 3660 days; got 3661 days"),
        ({"merge_gap": "9999999 days"}, "merge_gap: must not be longer than 3660 days; got 9999999 days"),
        ({"severity": "worst"}, "severity: must be one of 'high', 'medium', 'low'; got 'worst'"),
        ({"count_records": "step"}, "count_records: must be one of 'steps', 'all'; got 'step'"),
        ({"batch": "7 minutes"}, "batch: must be whole seconds that divide one hour, as 5 minutes does; got 7 minutes"),
        ({"batch": "2 hours"}, "batch: must be whole seconds that divide one hour, as 5 minutes does; got 2 hours"),
        ({"batch": "0 seconds"}, "batch: must be whole seconds that divide one hour, as 5 minutes does; got 0 seconds"),
        ({"batch": "500 ms"}, "batch: must be whole seconds that divide one hour, as 5 minutes does; got 500 milliseconds"),
        ({"batch": "1500 ms"}, "batch: must be whole seconds that divide one hour, as 5 minutes does; got 1500 milliseconds"),
        ({"batch": "10 minutes", "within": "5 minutes"}, "within: must not be shorter than batch, 10 minutes; got 5 minutes"),
        ({"max_records": 0}, "max_records: must be at least 1; got 0"),
        ({"max_records": 1_000_001}, "max_records: must be at most 1000000; got 1000001"),
        ({"max_records": "100"}, "max_records: must be a whole number; got '100'"),
        ({"max_records": 1}, "max_records: must be at least 2, the records that the steps take; got 1"),
        ({"max_records": 6, "steps__0__times": 6}, "max_records: must be at least 7, the records that the steps take; got 6"),
        ({"withn": "1 day"}, "unknown field 'withn'; nearest: within"),
        ({"carr": ["took"]}, "unknown field 'carr'; nearest: carry"),
        ({"declared_batch": "1 hour"}, "unknown field 'declared_batch'; known: title, severity, key, where, within, batch, max_records, count_records, merge_gap, carry, steps, absent, detector, columns"),
        ({**OWN, "count_records": "steps"}, "count_records: must be all with a detector, which is shown every record; got 'steps'"),
        # impossible conditions
        ({"steps__0": {**A, "times": 3, "distinct": "ok"}}, "steps[0].distinct: is never met: true and false make 2, and times is 3"),
        ({"steps": [A, C, B], "absent": [NOT_C]}, "absent[0].where: every c is one, and lies between a and b: nothing ever matches; got ' not  ok'"),
        ({"steps": [A, {"any_order": [B, C]}, {"id": "d", "where": "ok"}], "absent": [{**NOT_C, "between": ["a", "d"]}]}, "absent[0].where: every c is one, and lies between a and d: nothing ever matches; got ' not  ok'"),
        ({"steps": [A, C, B], "absent": [{**NOT_C, "where": "(NOT ok)"}]}, "absent[0].where: every c is one, and lies between a and b: nothing ever matches; got '(NOT ok)'"),
        ({"steps": [{**C, "times": 2}, B], "absent": [{**NOT_C, "between": ["c", "b"]}]}, "absent[0].where: every c is one, and lies between c and b: nothing ever matches; got ' not  ok'"),
        # steps
        ({"steps": ...}, "must have either steps or detector; it has neither"),
        ({"steps": []}, "steps: must have at least 1; got []"),
        ({"steps": 5}, "steps: must be a list; got 5"),
        ({"detector": "transom.core.intervals.parse"}, "must have either steps or detector; it has both"),
        ({"steps__1": 5}, "steps[1]: must be a mapping; got 5"),
        ({"steps__1__id": ...}, "steps[1].id: is required"),
        ({"steps__1__where": ...}, "steps[1].where: is required"),
        ({"steps__1__id": "B"}, "steps[1].id: must be lower-case letters, digits and underscores, a letter first, at most 63; got 'B'"),
        ({"steps__1__id": "a"}, "steps[1].id: a is the id of steps[0], too; choose another"),
        ({"steps__1": {"any_order": [B, {**C, "id": "b"}]}}, "steps[1].any_order[1].id: b is the id of steps[1].any_order[0], too; choose another"),
        ({"steps__1__tims": 2}, "steps[1]: unknown field 'tims'; nearest: times"),
        ({"steps__1": {"any_ordr": [B, C]}}, "steps[1]: unknown field 'any_ordr'; nearest: any_order"),
        ({"steps__1": {"any_order": [B, C], "distinct": "took"}}, "steps[1]: unknown field 'distinct'; known: any_order, within, gap"),
        ({"steps__1__times": 0}, "steps[1].times: must be at least 1; got 0"),
        ({"steps__1__times": -1}, "steps[1].times: must be at least 1; got -1"),
        ({"steps__1__times": 1.5}, "steps[1].times: must be a whole number; got 1.5"),
        ({"steps__1__times": 10**30}, f"steps[1].times: must be at most 100000; got {10**30}"),
        ({"steps": [{"id": f"s{n}", "where": "ok"} for n in range(63)]}, "steps: must be at most 62, those of absent among them; got 63"),
        ({"steps": [{"id": f"s{n}", "where": "ok"} for n in range(62)], "absent": [{"where": "ok", "between": ["s0", "s1"]}]}, "steps: must be at most 62, those of absent among them; got 63"),
        # conditions
        ({"where": "stats = 1"}, "where: no column 'stats'; nearest: status\n    stats = 1\n    ^"),
        ({"where": "false"}, "where: is never met; got 'false'"),
        ({"steps__1__where": "not"}, "steps[1].where: something is missing next to 'not'\n    not\n    ^"),
        ({"steps__1__where": "status"}, "steps[1].where: a condition must be a boolean; got an integer\n    status\n    ^"),
        ({"steps__1__where": "ok and statu > 1"}, "steps[1].where: no column 'statu'; nearest: status\n    ok and statu > 1\n           ^"),
        ({"steps__1__where": "(false)"}, "steps[1].where: is never met; got '(false)'"),
        ({"steps__1": {"any_order": [B, {**C, "where": "lower(ok)"}]}}, "steps[1].any_order[1].where: lower takes a string; got a boolean\n    lower(ok)\n          ^"),
        ({"absent": [{"where": "k", "between": ["a", "b"]}]}, "absent[0].where: no column 'k'; nearest: ok\n    k\n    ^"),
        # time within a pattern
        ({"steps__1__times": 2, "steps__1__within": "2 days"}, "steps[1].within: must not be longer than the pattern's within, 1 day; got 2 days"),
        ({"steps__1__within": "30 minutes"}, "steps[1].within: has no effect on a single record, and times is 1; how long after the step before it comes is gap: {max: ...}"),
        ({"steps__0__within": "30 minutes"}, "steps[0].within: has no effect on a single record, and times is 1"),
        ({"steps__1": {"any_order": [B, C], "within": "2 days"}}, "steps[1].within: must not be longer than the pattern's within, 1 day; got 2 days"),
        ({"steps__0__gap": {"max": "1 hour"}}, "steps[0].gap: is the time since the element before, and there is none"),
        ({"steps__0": {"any_order": [A, C], "gap": {"max": "1 hour"}}}, "steps[0].gap: is the time since the element before, and there is none"),
        ({"steps__1__gap": {}}, "steps[1].gap: must have min, max or both"),
        ({"steps__1__gap": "1 hour"}, "steps[1].gap: must be a mapping; got '1 hour'"),
        ({"steps__1__gap": {"mx": "1 hour"}}, "steps[1].gap: unknown field 'mx'; nearest: max"),
        ({"steps__1__gap": {"min": "2 hours", "max": "1 hour"}}, "steps[1].gap: min must not be longer than max; got min 2 hours, max 1 hour"),
        ({"steps__1__gap": {"max": "2 days"}}, "steps[1].gap.max: must not be longer than the pattern's within, 1 day; got 2 days"),
        ({"steps__1__gap": {"min": "25 hours"}}, "steps[1].gap.min: the step is never reached: the gaps up to it take 25 hours or more, and within is 1 day"),
        ({"steps": [A, {**B, "gap": {"min": "15 hours"}}, {"any_order": [C, {**C, "id": "d"}], "gap": {"min": "10 hours"}}, {**C, "id": "e", "gap": {"min": "1 hour"}}]}, "steps[2].gap.min: the step is never reached: the gaps up to it take 25 hours or more, and within is 1 day"),
        ({"steps": [A, {**B, "gap": {"min": "24 hours"}}, {**C, "gap": {"min": "1 second"}}, {**C, "id": "d", "gap": {"min": "1 second"}}]}, "steps[2].gap.min: the step is never reached: the gaps up to it take 86401 seconds or more, and within is 1 day"),
        # any_order
        ({"steps__1": {"any_order": []}}, "steps[1].any_order: must have at least 2 steps; got 0"),
        ({"steps__1": {"any_order": [B]}}, "steps[1].any_order: must have at least 2 steps; got 1"),
        ({"steps__1": {"any_order": B}}, "steps[1].any_order: must be a list; got {'id': 'b', 'where': 'ok'}"),
        ({"steps__1": {"any_order": [B, {**DO, "within": "1 hour"}]}}, "steps[1].any_order[1].within: has no meaning where the order is any; give it to the any_order as a whole"),
        ({"steps__1": {"any_order": [B, {**DO, "gap": {"max": "1 hour"}}]}}, "steps[1].any_order[1].gap: has no meaning where the order is any; give it to the any_order as a whole"),
        ({"steps__1": {"any_order": [B, {**DO, "distinct": "took"}]}}, "steps[1].any_order[1].distinct: is not known of a step in an any_order; make it a step of its own"),
        ({"steps__1": {"any_order": [{**B, "times": 15}, {**C, "times": 16}]}}, "steps[1].any_order: may be served in part in at most 256 ways, the product of times + 1; got 272"),
        ({"steps__1": {"any_order": [{"any_order": [B, C]}, {**C, "id": "d"}]}}, "3 problems\n  patterns.x.steps[1].any_order[0]: unknown field 'any_order'; known: id, where, times, within, distinct, gap, by\n  patterns.x.steps[1].any_order[0].id: is required\n  patterns.x.steps[1].any_order[0].where: is required"),
        # distinct
        ({"steps__1__times": 2, "steps__1__distinct": "tok"}, "steps[1].distinct: no column 'tok'; nearest: took"),
        ({"steps__1__times": 2, "steps__1__distinct": ["took", "stats"]}, "steps[1].distinct[1]: no column 'stats'; nearest: status"),
        ({"steps__1__times": 2, "steps__1__distinct": ["took", "took"]}, "steps[1].distinct: names 'took' 2 times"),
        ({"steps__1__times": 2, "steps__1__distinct": 5}, "steps[1].distinct: must be text, or a list of it; got 5"),
        ({"steps__1__distinct": "user"}, "steps[1].distinct: has no effect on a single record, and times is 1"),
        ({"steps__1__distinct": "took"}, "steps[1].distinct: has no effect on a single record, and times is 1"),
        ({"steps__1__times": 2, "steps__1__distinct": "user"}, "steps[1].distinct: is never met: by the key and `by` all records of b are alike in user"),
        ({"steps__1__times": 2, "steps__1__distinct": ["user", "took"], "steps__1__by": "took"}, "steps[1].distinct: is never met: by the key and `by` all records of b are alike in user and took"),
        ({"steps__0__times": 2, "steps__0__distinct": "status", "steps__1__by": "status"}, "steps[0].distinct: is never met: by the key and `by` all records of a are alike in status"),
        # agreements
        ({"steps__1__by": 5}, "steps[1].by: must be text, or a list of it; got 5"),
        ({"steps__1__by": "took = "}, "steps[1].by: must be a column, or a column and one of an earlier step, as fd = accept.ret; got 'took = '"),
        ({"steps__1__by": ["took", "took == a.took"]}, "steps[1].by[1]: must be a column, or a column and one of an earlier step, as fd = accept.ret; got 'took == a.took'"),
        ({"steps__1__by": "tok"}, "steps[1].by: no column 'tok'; nearest: took"),
        ({"steps__1__by": ["ok", "took = a.tok"]}, "steps[1].by[1]: no column 'tok'; nearest: took"),
        ({"steps__1__by": "event_time"}, "steps[1].by: no column 'event_time'; known: user, status, took, ok, host"),
        ({"steps__1__by": "status = a.took"}, "steps[1].by: must be of one type; status is an integer, a.took is a number"),
        ({"steps__1__by": "host = a.took"}, "steps[1].by: must be of one type; host is a string, a.took is a number"),
        ({"steps__1__by": "took = accept.took"}, "steps[1].by: no step 'accept' in 'took = accept.took'; known: a"),
        ({"steps__1__by": ["took", "took=a.took"]}, "steps[1].by[1]: repeats that took = a.took"),
        ({"steps__0__by": "took"}, "steps[0].by: must name a step before a, not itself; got 'took = a.took'"),
        ({"steps__1__by": "took = b.took"}, "steps[1].by: must name a step before b, not itself; got 'took = b.took'"),
        ({"steps__0__by": "took = b.took"}, "steps[0].by: must name a step before a; b comes after it; got 'took = b.took'"),
        ({"steps__1": {"any_order": [B, {**C, "by": "took = b.took"}]}}, "steps[1].any_order[1].by: must name a step before the any_order; b is in it, too; got 'took = b.took'"),
        ({"steps__0": {"any_order": [A, {**C, "by": "took"}]}}, "steps[0].any_order[1].by: must name a step before the any_order; a is in it, too; got 'took = a.took'"),
        # absent
        ({"absent": [{"where": "ok"}]}, "absent[0].between: is required"),
        ({"absent": [{"where": "ok", "between": "a"}]}, "absent[0].between: must be a list; got 'a'"),
        ({"absent": [{"where": "ok", "between": ["a"]}]}, "absent[0].between: must be the ids of two steps, or twice that of one; got ['a']"),
        ({"absent": [{"where": "ok", "between": ["a", "b", "a"]}]}, "absent[0].between: must be the ids of two steps, or twice that of one; got ['a', 'b', 'a']"),
        ({"absent": {"where": "ok", "between": ["a", "b"]}}, "absent: must be a list; got {'where': 'ok', 'between': ['a', 'b']}"),
        ({"absent": [{"where": "ok", "between": ["a", "c"]}]}, "absent[0].between[1]: no step 'c'; known: a, b"),
        ({"steps__1__id": "block", "absent": [{"where": "ok", "between": ["aa", "blok"]}]}, "2 problems\n  patterns.x.absent[0].between[0]: no step 'aa'; nearest: a\n  patterns.x.absent[0].between[1]: no step 'blok'; nearest: block"),
        ({"absent": [{"where": "ok", "between": ["b", "a"]}]}, "absent[0].between: must be in the order of the steps; got b before a"),
        ({"absent": [{"where": "ok", "between": ["b", "b"]}]}, "absent[0].between: nothing lies between b and itself, as its times is 1"),
        ({"steps__1": {"any_order": [B, C]}, "absent": [{"where": "ok", "between": ["b", "c"]}]}, "absent[0].between: must be steps in order; b and c come in any order"),
        # key, carry, title
        ({"key": ["usr"]}, "key[0]: no column 'usr'; nearest: user"),
        ({"key": ["user", "user"]}, "key: names 'user' 2 times"),
        ({"carry": ["took", "statsu"]}, "carry[1]: no column 'statsu'; nearest: status"),
        ({"carry": ["took", "took"]}, "carry: names 'took' 2 times"),
        ({"carry": "took"}, "carry: must be a list; got 'took'"),
        ({"title": "{usr} was here"}, "title: a title names columns of the key, start_time, last_time and matches; no column 'usr'; nearest: user"),
        ({"title": "{took}"}, "title: a title names columns of the key, start_time, last_time and matches; no column 'took'; known: user, start_time, last_time, matches"),
        ({"title": "{user"}, "title: must be a text with names in braces; got '{user'"),
        ({"title": "{start:%H}"}, "title: has no formats in braces; got '{start:%H}'"),
        # detectors
        ({**OWN, "absent": [{"where": "ok", "between": ["a", "b"]}]}, "absent: requires steps; a detector decides this by itself"),
        ({**OWN, "columns": ["tok"]}, "columns[0]: no column 'tok'; nearest: took"),
        ({**OWN, "columns": ["ok", "ok"]}, "columns: names 'ok' 2 times"),
        ({**OWN, "carry": ["tok"]}, "carry[0]: no column 'tok'; nearest: took"),
        ({"columns": ["ok"]}, "columns: requires detector; steps read the columns that they name"),
        ({**OWN, "detector": "detect"}, "detector: must be the path of a function, as package.module.function; got 'detect'"),
        ({**OWN, "detector": "os.system('x')"}, "detector: must be the path of a function, as package.module.function; got \"os.system('x')\""),
        ({**OWN, "detector": "transom.intervls.parse"}, "detector: transom.intervls of transom.intervls.parse does not import: ModuleNotFoundError: No module named 'transom.intervls'"),
        ({**OWN, "detector": "transom.core.intervals.pars"}, "detector: transom.core.intervals has no function 'pars'; nearest: parse"),
        ({**OWN, "detector": "transom.core.intervals.HOUR"}, "detector: must be a function; transom.core.intervals.HOUR is a timedelta"),
    ],
)  # fmt: skip
def test_invalid_pattern_is_refused_with_path_rule_and_value(changes: dict[str, Any], message: str) -> None:
    several = message.partition(" ")[2].startswith("problems")
    path = "" if several else "patterns.x: " if message.startswith(("must", "unknown")) else "patterns.x."
    assert refusal(small(**changes)) == f"app.yaml: {path}{message}"


@pytest.mark.parametrize(
    "changes",
    [
        {"steps": [{"id": f"s{n}", "where": "ok"} for n in range(62)]},
        {"within": "10 minutes", "batch": "10 minutes"},
        {"steps__0__times": 2, "steps__0__within": "1 day", "steps__1__gap": {"min": "1 day", "max": "1 day"}},
        {"steps__1": {"any_order": [{**B, "times": 15}, {**C, "times": 15}], "within": "1 day"}},
        {"max_records": 1_000_000, "steps__0__times": 100_000},
        {"steps__1": DO | {"distinct": ["took", "user"]}, "absent": [{"where": "ok", "between": ["c", "c"]}]},
        {"steps": [A, C | {"where": "host = 'a  b'"}, B], "absent": [NOT_C | {"where": "host = 'a b'"}]},
    ],
)  # fmt: skip
def test_value_on_a_bound_is_accepted(changes: dict[str, Any]) -> None:
    assert parse(small(**changes)).patterns["x"].top


def test_import_error_of_a_module_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    for name, source in {
        "bad_one": "1 / 0",
        "bad_two": "raise SystemExit('no')",
        "bad_three": "def (:",
        "bad_four": "class Mute(Exception):\n    def __str__(self):\n        return self.what\nraise Mute",
        "bad_five": "class Leaving(Exception):\n    def __str__(self):\n        raise SystemExit\nraise Leaving",
    }.items():
        (tmp_path / f"{name}.py").write_text(source)
    spec = {
        "bad_one": "ZeroDivisionError: division by zero",
        "bad_two": "SystemExit: no",
        "bad_three": "SyntaxError: invalid syntax (bad_three.py, line 1)",
        "bad_four": "Mute, of which no text can be had: AttributeError",
        "bad_five": "Leaving, of which no text can be had: SystemExit",
    }
    for name, error in spec.items():
        assert refusal(small(steps=..., detector=f"{name}.detect")) == (
            f"app.yaml: patterns.x.detector: {name} of {name}.detect does not import: {error}"
        )


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ("state", "key[0]: state is a column that every episode has; choose another name"),
        ("truncated_after", "key[0]: truncated_after is a column that every batch of records has; choose another name"),
        ("bindings", "key[0]: bindings is a column that every match has; choose another name"),
        ("of_took", "key[0]: of_took is the column of a batch for values of took; choose another name"),
        ("kept_took", "key[0]: kept_took is the column of a match for kept values of took; choose another name"),
    ],
)  # fmt: skip
def test_ambiguous_column_in_pattern_tables_is_refused(named: str, message: str) -> None:
    def data(key: list[str], of_pattern: list[str]) -> dict[str, Any]:
        whole = small(key=of_pattern)
        # Patterns share their tables: a column that one carries is no key of another.
        whole["patterns"]["y"] = {"within": "1 hour", "key": ["user"], "carry": ["took"], "steps": [A]}
        whole["columns"][named] = named
        return {**whole, "key": key, "aggregates": {}}

    assert parse(data([named], ["user"])).key == (named,)
    assert refusal(data(["user"], [named])) == f"app.yaml: patterns.x.{message}"
    # Errors of the stream's columns are reported once, there.
    assert refusal(data([named], [named])) == f"app.yaml: {message}"


def test_missing_column_of_the_streams_key_is_reported_once() -> None:
    data = small() | {"key": ["usr"], "aggregates": {}}
    data["patterns"]["y"] = data["patterns"]["x"]
    assert refusal(data) == "app.yaml: key[0]: no column 'usr'; nearest: user"


def test_private_state_is_retained_as_long_as_patterns_reach() -> None:
    """12 levels of 5 minutes: windows of 341 hours and 20 minutes."""
    rule = "must be whole hours, and no less than repair_window and the longest window of the pattern x together, 390 hours"
    data = small(within="4 days")
    assert refusal(data | {"retention": "389 hours"}) == f"app.yaml: retention: {rule}; got 389 hours"
    assert parse(data | {"retention": "390 hours"}).retention is not None
    wide = "RANGES 400 HOURS SLIDES 1 HOUR"
    data["aggregates"]["load"]["levels"] = wide
    assert refusal(data | {"retention": "447 hours"}) == (
        "app.yaml: retention: must be whole hours, and no less than repair_window and the widest range together, 448 hours; "
        "got 447 hours"
    )


def test_errors_of_several_patterns_are_reported_together() -> None:
    data = small(steps__1__by="tok = a.took", within="1 hour", steps__1__gap={"min": "2 hours"})
    data["patterns"]["y"] = {"within": "1 hour", "steps": [{**A, "where": "stats = 1"}]}
    assert refusal(data) == (
        "app.yaml: 2 problems\n"
        "  patterns.x.steps[1].gap.min: the step is never reached: the gaps up to it take 2 hours or more, and "
        "within is 1 hour\n"
        "  patterns.y.steps[0].where: no column 'stats'; nearest: status\n    stats = 1\n    ^"
    )


def test_declared_checks_are_refused_for_patterns() -> None:
    data = small() | {"checks": {"x": {"stage": "patterns", "rows": {"at_most": 5}}}}
    assert refusal(data) == "app.yaml: checks.x.stage: must be one of 'ingest', 'aggregates'; got 'patterns'"
