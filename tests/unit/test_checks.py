"""The checks of a stream as the stages judge them: which column each is about."""

from datetime import UTC, datetime
from typing import Any

import pytest

from transom.lake.staleness import completeness, judged_by
from transom.stages.checks import built_in, declared, used_columns
from transom.stages.contents import file_checks
from transom.stream import parse

LEVELS = "RANGES 1 HOUR SLIDES 1 HOUR"


def data() -> dict[str, Any]:
    return {
        "name": "app",
        "source": {"path": "in/{site}/%Y.json", "format": "json"},
        "columns": {"user": "who", "status": {"type": "integer"}},
        "time": {"column": "at"},
        "key": ["user"],
        "aggregate": {
            "load": {"measures": {"n": "count"}, "levels": LEVELS},
            "sites": {"key": ["site", "user"], "measures": {"n": "count"}, "levels": LEVELS},
        },
        "checks": {
            "sound": {"stage": "ingest", "every": "status < 500 and user is not null"},
            "enough": {"stage": "ingest", "rows": {"at_least": 1}},
            "calm": {"stage": "aggregate", "block": "sites", "every": "n < 5"},
        },
    }


def test_a_check_of_a_file_names_the_columns_that_it_is_about() -> None:
    assert {check.name: check.column for check in file_checks(parse(data()))} == {
        "lines_accounted": None,
        "rejected_share": None,
        "hours_bounded": "event_time",
        "keys_not_null": "site, user",
        "times_inside_hour": "event_time",
        "file_readable": None,
        "fields_known": None,
        "fields_present": None,
        "used_fields_present": None,
        "sound": "status, user",
        "enough": None,
    }


def test_a_stream_without_a_key_has_no_column_that_may_not_be_null() -> None:
    stream = parse({**data(), "key": [], "aggregate": {}, "checks": {}})
    (check,) = built_in(stream, "keys_not_null", metric="null_keys", at_most=0)
    assert check.column is None


def test_a_check_of_reports_names_the_columns_that_it_is_about() -> None:
    stream = parse(data())
    (ends,) = built_in(stream, "ends_inside_hour", metric="ends_outside", at_most=0)
    (calm,) = declared(stream, "aggregate")
    assert (ends.column, calm.check.column) == ("window_end", "n")


def test_the_columns_that_something_is_computed_from() -> None:
    def used(**more: Any) -> set[str]:
        return used_columns(parse({**data(), **more}))

    plain = used()
    assert plain == {"user", "site", "status"}
    assert used(unique={"columns": ["event_time"]}) == plain | {"event_time"}
    columns = {
        **data()["columns"],
        "a": "a",
        "b": {"type": "integer"},
        "c": {"is": "b + 1"},
        "d": {"is": "a"},
    }
    assert used(columns=columns) == plain
    assert used(columns=columns, unique={"columns": ["a"], "keep": "longest c"}) == plain | {"a", "b", "c"}
    checks = {**data()["checks"], "x": {"stage": "ingest", "every": "d is not null", "share": 0.5}}
    assert used(columns=columns, checks=checks) == plain | {"a", "d"}


@pytest.mark.parametrize("severity", ["error", "incomplete"])
@pytest.mark.parametrize("stage", ["ingest", "aggregate"])
def test_a_check_with_another_condition_is_another_check(stage: str, severity: str) -> None:
    """Else an hour that it has withheld, or called incomplete, would not be looked at again."""
    column = "bytes" if stage == "ingest" else "n"

    def hashes(most: int) -> tuple[str, str]:
        check = {"stage": stage, "every": f"{column} < {most}", "severity": severity}
        stream = parse(
            {
                "name": "web", "preset": "apache/combined", "source": {"path": "l/%Y-%m-%d.%H.log"},
                "aggregate": {"all": {"measures": {"n": "count"}, "levels": "RANGES 1 HOUR SLIDES 1 HOUR"}},
                "checks": {"few": check},
            }
        )  # fmt: skip
        checks = [rule.check for rule in declared(stream, stage)]
        return judged_by(checks, []), completeness(stage, checks, [], datetime(2015, 5, 17, tzinfo=UTC))

    same, other = hashes(100), hashes(1000)
    assert same == hashes(100)
    assert same[0] != other[0]
    assert (same[1] != other[1]) == (severity == "incomplete")
