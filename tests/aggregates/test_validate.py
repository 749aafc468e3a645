"""The exact text of every error of an aggregate's block."""

# ruff: noqa: E501 - in the table of refusals, a case a line can be read down; wrapped, it cannot

from typing import Any

import pytest

from tests.support.stream_factories import BLOCK, changed, refusal

TWO_LEVELS = {"aggregates__load__levels": "RANGES 2 HOURS, 1 HOUR SLIDES 1 HOUR, 1 HOUR"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        # measures
        ({"aggregates__load__measures": {}}, "aggregates.load.measures: must have at least 1; got {}"),
        ({"aggregates__load__measures": ...}, "aggregates.load.measures: is required"),
        ({"aggregates__load__measures__n": "sum took"}, "aggregates.load.measures.n: must be count, or sum, mean, min, max or distinct of a column, as sum(bytes); got 'sum took'"),
        ({"aggregates__load__measures__n": 5}, "aggregates.load.measures.n: must be count, or sum, mean, min, max or distinct of a column, as sum(bytes); got 5"),
        ({"aggregates__load__measures__n": "summ(took)"}, "aggregates.load.measures.n: unknown function 'summ' in 'summ(took)'; nearest: sum"),
        ({"aggregates__load__measures__n": "count(took)"}, "aggregates.load.measures.n: count counts records and takes no column; got 'count(took)'"),
        ({"aggregates__load__measures__n": "sum"}, "aggregates.load.measures.n: sum needs a column, as sum(bytes); got 'sum'"),
        ({"aggregates__load__measures__n": "sum(tok)"}, "aggregates.load.measures.n: no column 'tok' in 'sum(tok)'; nearest: took"),
        ({"aggregates__load__measures__n": "max(user)"}, "aggregates.load.measures.n: max takes an integer or a number; user is a string"),
        ({"aggregates__load__measures__n": "sum(ok)"}, "aggregates.load.measures.n: sum takes an integer or a number; ok is a boolean"),
        ({"aggregates__load__measures__n": "distinct"}, "aggregates.load.measures.n: distinct needs a column, as distinct(bytes); got 'distinct'"),
        ({"aggregates__load__measures__n": "distinct(hots)"}, "aggregates.load.measures.n: no column 'hots' in 'distinct(hots)'; nearest: host"),
        ({"aggregates__load__measures": {"users": "distinct(host)", "error_users": "count"}}, "aggregates.load.measures.error_users: error_users is a column of the measure users; choose another name"),
        ({"columns__hashes_host": "h", "aggregates__load__key": ["hashes_host"], "aggregates__load__measures__hosts": "distinct(host)"}, "aggregates.load.key: hashes_host is a column of the granules for host; choose another name"),
        ({"aggregates__load__measures__level": "count"}, "aggregates.load.measures.level: level is a column that every report has; choose another name"),
        ({"aggregates__load__measures__user": "count"}, "aggregates.load.measures.user: user is a column of the key; choose another name"),
        ({"aggregates__load__measures__max_slow": "count"}, "aggregates.load.measures.max_slow: max_slow is a column of the measure slow; choose another name"),
        ({"aggregates__load__measures": {"sum_slow": "count", "slow": "max(took)"}}, "aggregates.load.measures.sum_slow: sum_slow is a column of the measure slow; choose another name"),
        ({"columns__sum_slow": "x", "key": ["sum_slow"]}, "aggregates.load.key: sum_slow is a column of the measure slow; choose another name"),
        ({"columns__sum_took": {"type": "integer"}, "key": ["sum_took"]}, "aggregates.load.key: sum_took is a column of the granules for took; choose another name"),
        ({"columns__granule": "x", "key": ["granule"]}, "key[0]: granule is a column that every granule has; choose another name"),
        # between blocks
        ({"aggregates__all": {**BLOCK, "measures": {"user": "count"}}}, "aggregates.all.measures.user: user is a column of the key of block load; choose another name"),
        ({"columns__sum_slow": "x", "aggregates__all": {**BLOCK, "key": ["sum_slow"]}}, "aggregates.all.key: sum_slow is a column of the measure slow of block load; choose another name"),
        ({"columns__min_took": "x", "aggregates__all": {**BLOCK, "key": ["min_took"]}}, "aggregates.all.key: min_took is a column of the granules for took of block load; choose another name"),
        ({"aggregates__all": {**BLOCK, "measures": {"n": "mean(status)"}}}, "aggregates.all.measures.n: n would be a number here and an integer in block load; choose another name"),
        ({"aggregates__all": {**BLOCK, "measures": {"slow": "max(status)"}}}, "aggregates.all.measures.slow: slow would be an integer here and a number in block load; choose another name"),
        ({"aggregates__all": {**BLOCK, "measures": {"sum_slow": "max(status)"}}}, "aggregates.all.measures.sum_slow: sum_slow would be an integer here and a number in block load; choose another name"),
        # levels
        ({"aggregates__load__fit": "7 minutes"}, "aggregates.load.fit.unit: must divide the slide of level 0 (range 1 hour, slide 5 minutes); got 7 minutes"),
        ({"aggregates__load__fit": "10 minutes"}, "aggregates.load.fit.unit: must divide the slide of level 0 (range 1 hour, slide 5 minutes); got 10 minutes"),
        ({"aggregates__load__levels": "RANGES 365 DAYS SLIDES 5 MINUTES", "aggregates__load__fit": "5 minutes"}, "aggregates.load.fit.unit: a window has at most 32768 units, level 0 (range 365 days, slide 5 minutes) has 105120"),
        ({"aggregates__load__measures": {"hosts": "distinct(host)"}, "aggregates__load__fit": "5 minutes"}, "aggregates.load.fit: no measure has a line: counts of distinct values have none"),
        ({"aggregates__load__measures": {"n": "count"}, "aggregates__load__aging": [1]}, "aggregates.load.aging: no measure has a mean: it takes sum, mean, min or max of a column"),
        ({"aggregates__load__fit": "0 seconds"}, "aggregates.load.fit.unit: must be whole seconds, at least one; got 0 seconds"),
        ({"aggregates__load__fit": {"unit": 5}}, "aggregates.load.fit.unit: must be a whole number and a unit, such as 5 minutes; got 5"),
        ({"aggregates__load__fit": {"unt": "5 minutes"}}, "aggregates.load.fit: unknown field 'unt'; nearest: unit"),
        ({"aggregates__load__fit": {"value": "median"}}, "aggregates.load.fit.value: must be one of 'mean', 'sum', 'min', 'max'; got 'median'"),
        ({"aggregates__load__aging": [1, 0.5]}, "aggregates.load.aging: must have a weight for each of 1 levels; got 2"),
        ({"aggregates__load__aging": []}, "aggregates.load.aging: must have a weight for each of 1 levels; got 0"),
        ({"aggregates__load__aging": [0]}, "aggregates.load.aging[0]: must be at least 0.001; got 0"),
        ({"aggregates__load__aging": [1001]}, "aggregates.load.aging[0]: must be at most 1000; got 1001"),
        ({"aggregates__load__aging": ["1"]}, "aggregates.load.aging[0]: must be a number; got '1'"),
        ({"aggregates__load__aging": [1, 1], "aggregates__load__levels": "RANGES 5 HOURS, 4 HOURS SLIDES 5 HOURS, 4 HOURS"}, "aggregates.load.aging: level 1 (range 5 hours, slide 5 hours): the slide must be a multiple of level 0's (range 4 hours, slide 4 hours)"),
        ({"aggregates__load__recurring": ["status"]}, "aggregates.load.recurring: needs at least two levels, as rings lie between them; got 1"),
        ({"aggregates__load__alert": "slo > 1"}, "aggregates.load.alert: no column 'slo'; nearest: slow\n    slo > 1\n    ^"),
        ({"aggregates__load__alert": "n + 1"}, "aggregates.load.alert: a condition must be a boolean; got an integer\n    n + 1\n    ^"),
        ({"aggregates__load__alert": "user > 1"}, "aggregates.load.alert: > takes parts of one type; got a string and an integer\n    user > 1\n           ^"),
        ({"aggregates__load__alert": {"when": "n > 1", "title": "busy"}}, "aggregates.load.alert: an alert with settings needs a name, as in many: {when: ...}; got when, title"),
        ({"aggregates__load__alert": {"when": "n > 1", "titel": "busy"}}, "aggregates.load.alert: an alert with settings needs a name, as in many: {when: ...}; got when, titel"),
        ({"aggregates__load__alert": {"when": "n > 1"}}, "aggregates.load.alert: an alert with settings needs a name, as in many: {when: ...}; got when"),
        ({"aggregates__load__alert": 5}, "aggregates.load.alert: must be a mapping; got 5"),
        ({"aggregates__load__alert": {"many": "stat > 1"}}, "aggregates.load.alert.many.when: no column 'stat'; known: level, window_start, window_end, count, user, n, slow, values_slow, sum_slow, mean_slow, min_slow, max_slow\n    stat > 1\n    ^"),
        ({"aggregates__load__alert": {"many": {"when": "n > 1", "level": 1}}}, "aggregates.load.alert.many.level: must be the number of a level, from 0 to 0; got 1"),
        ({"aggregates__load__alert": {"many": {"when": "n > 1", "level": -1}}}, "aggregates.load.alert.many.level: must be at least 0; got -1"),
        ({"aggregates__load__alert": {"many": {"when": "n > 1", "severity": "warning"}}}, "aggregates.load.alert.many.severity: must be one of 'high', 'medium', 'low'; got 'warning'"),
        ({"aggregates__load__alert": {"many": {"wen": "n > 1"}}}, "aggregates.load.alert.many: unknown field 'wen'; nearest: when"),
        ({"aggregates__load__alert": {"many": {"when": "n > 1", "title": "{usr} asks"}}}, "aggregates.load.alert.many.title: a title names columns of the key and of its condition; no column 'usr'; nearest: user"),
        ({"aggregates__load__alert": {"many": {"when": "n > 1", "title": "{user:>9}"}}}, "aggregates.load.alert.many.title: has no formats in braces; got '{user:>9}'"),
        ({"aggregates__load__alert": {"many": {"when": "n > 1", "title": "{user"}}}, "aggregates.load.alert.many.title: must be a text with names in braces; got '{user'"),
        ({"columns__alert": "x", "key": ["alert"], "aggregates__load__alert": "n > 1"}, "aggregates.load.alert: alert is a column that every alert has; choose another name"),
        ({"aggregates__load__recurring": ["statu"], **TWO_LEVELS}, "aggregates.load.recurring[0]: no column 'statu'; nearest: status"),
        ({"aggregates__load__recurring": ["user"], **TWO_LEVELS}, "aggregates.load.recurring[0]: user is a column of the key; every item of a key has the same"),
        ({"aggregates__load__recurring": ["status", "status"], **TWO_LEVELS}, "aggregates.load.recurring: names 'status' 2 times"),
        ({"aggregates__load__recurring": "status", **TWO_LEVELS}, "aggregates.load.recurring: must be a list; got 'status'"),
        ({"aggregates__load__recurring": ["counts"], "columns__counts": "status", **TWO_LEVELS}, "aggregates.load.recurring: counts is a column that every recurring item has; choose another name"),
        ({"aggregates__load__recurring": ["status"], "aggregates__load__levels": "RANGES 5 HOURS, 4 HOURS SLIDES 5 HOURS, 4 HOURS"}, "aggregates.load.recurring: level 1 (range 5 hours, slide 5 hours): the slide must be a multiple of level 0's (range 4 hours, slide 4 hours)"),
        ({"aggregates__load__levels": ...}, "aggregates.load.levels: is required"),
        ({"aggregates__load__levels": []}, "aggregates.load.levels: must have at least 1; got []"),
        ({"aggregates__load__levels": "1 hour"}, "aggregates.load.levels: must read like RANGES 6 HOURS, 1 HOUR SLIDES 1 HOUR, 5 MINUTES, or be a list; got '1 hour'"),
        ({"aggregates__load__levels": "RANGES 2 HOURS, 1 HOUR SLIDES 1 HOUR"}, "aggregates.load.levels: must have as many slides as ranges; got 2 ranges, 1 slides"),
        ({"aggregates__load__levels": "RANGES 2 HOURS, 1 HUOR SLIDES 1 HOUR, 1 HOUR"}, "aggregates.load.levels[1]: unknown unit 'HUOR' in '1 HUOR'; nearest: hour"),
        ({"aggregates__load__levels": "RANGES 1 HOUR SLIDES 0 SECONDS"}, "aggregates.load.levels[0]: level 0 (range 1 hour, slide 0 seconds): the slide must be whole seconds, at least one"),
        ({"aggregates__load__levels": "RANGES 1 HOUR SLIDES 1500 MS"}, "aggregates.load.levels[0]: level 0 (range 1 hour, slide 1500 milliseconds): the slide must be whole seconds, at least one"),
        ({"aggregates__load__levels": "RANGES 6 HOURS, 1 HOUR SLIDES 4 HOURS, 1 HOUR"}, "aggregates.load.levels[0]: level 1 (range 6 hours, slide 4 hours): the range must be a whole multiple of the slide"),
        ({"aggregates__load__levels": "RANGES 0 HOURS SLIDES 1 HOUR"}, "aggregates.load.levels[0]: level 0 (range 0 seconds, slide 1 hour): the range must be a whole multiple of the slide"),
        ({"aggregates__load__levels": "RANGES 1 HOUR, 6 HOURS SLIDES 1 HOUR, 1 HOUR"}, "aggregates.load.levels[0]: level 1 (range 1 hour, slide 1 hour): the range must be longer than level 0's (range 6 hours, slide 1 hour)"),
        ({"aggregates__load__levels": "RANGES 1 HOUR, 1 HOUR SLIDES 1 HOUR, 1 HOUR"}, "aggregates.load.levels[0]: level 1 (range 1 hour, slide 1 hour): the range must be longer than level 0's (range 1 hour, slide 1 hour)"),
        ({"aggregates__load__levels": "RANGES 6 HOURS, 2 HOURS SLIDES 1 HOUR, 2 HOURS"}, "aggregates.load.levels[0]: level 1 (range 6 hours, slide 1 hour): the slide must not be shorter than level 0's (range 2 hours, slide 2 hours)"),
    ],
)  # fmt: skip
def test_invalid_aggregate_is_refused_with_path_rule_and_value(changes: dict[str, Any], message: str) -> None:
    assert refusal(changed(**changes)) == f"app.yaml: {message}"
