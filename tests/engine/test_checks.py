"""The checks of a stream as the stages evaluate them: the columns of each."""

from datetime import UTC, datetime
from typing import Any

import pytest

from transom.engine.check_builders import built_in, columns_read, declared
from transom.features.ingest.checks import file_checks, required_keys
from transom.ledger.input_hashes import checks_fingerprint, completeness
from transom.stream import parse

LEVELS = "RANGES 1 HOUR SLIDES 1 HOUR"


def data() -> dict[str, Any]:
    return {
        "name": "app",
        "source": {"path": "in/{site}/%Y.json", "format": "json"},
        "columns": {"user": "who", "status": {"type": "integer"}},
        "time": {"column": "at"},
        "key": ["user"],
        "aggregates": {
            "load": {"measures": {"n": "count"}, "levels": LEVELS},
            "sites": {"key": ["site", "user"], "measures": {"n": "count"}, "levels": LEVELS},
        },
        "checks": {
            "sound": {"stage": "ingest", "every": "status < 500 and user is not null"},
            "enough": {"stage": "ingest", "rows": {"at_least": 1}},
            "calm": {"stage": "aggregates", "block": "sites", "every": "n < 5"},
        },
    }


def test_check_of_a_file_names_its_columns() -> None:
    assert [(check.name, check.column) for check in file_checks(parse(data()))] == [
        ("lines_accounted", None),
        ("rejected_share", None),
        ("rejected_share", None),  # of a file with few lines
        ("no_nul_bytes", None),
        ("hours_bounded", "event_time"),
        ("captures_filled", None),
        ("keys_not_null", "site"),
        ("keys_not_null", "user"),
        ("times_inside_hour", "event_time"),
        ("file_readable", None),
        ("fields_known", None),
        ("fields_present", None),
        ("used_fields_present", None),
        ("sound", "status, user"),
        ("enough", None),
    ]


def required_columns(**changes: Any) -> list[tuple[str, str | None, str]]:
    """Return the columns that may not be null, with the events and blocks concerned."""
    stream = parse({**data(), "checks": {}, **changes})
    return [(key.column, key.where, key.blocks) for key in required_keys(stream)]


def test_key_is_required_in_events_selected_by_a_block() -> None:
    assert required_columns() == [("site", None, "sites"), ("user", None, "load and sites")]
    blocks = {
        "a": {"where": "status = 1", "measures": {"n": "count"}, "levels": LEVELS},
        "b": {"where": "status=1", "measures": {"n": "count"}, "levels": LEVELS},
        "c": {"key": ["status"], "measures": {"n": "count"}, "levels": LEVELS},
    }
    assert required_columns(aggregates=blocks) == [
        ("status", None, "c"),
        ("user", "(`status` = 1L)", "a and b"),
    ]
    # A key of all blocks is the key of each.
    assert required_columns(where="status = 2", aggregates={"c": blocks["c"]}) == [
        ("status", "(`status` = 2L)", "c")
    ]


def test_key_of_a_pattern_is_required_in_events_that_its_steps_may_match() -> None:
    steps = [{"id": "a", "where": "status = 1"}, {"id": "b", "where": "status = 2"}]
    plain = {"x": {"within": "1 day", "steps": steps}}
    selected = "((`status` = 1L) OR (`status` = 2L))"
    assert required_columns(aggregates={}, patterns=plain) == [("user", selected, "x")]
    never = {"x": {**plain["x"], "absent": [{"where": "status = 1", "between": ["a", "b"]}]}}
    assert required_columns(aggregates={}, patterns=never, where="status > 0") == [
        ("user", f"(`status` > 0L) AND {selected}", "x")
    ]
    own = {"x": {"within": "1 day", "detector": "transom.core.intervals.parse"}}
    assert required_columns(aggregates={}, patterns=own) == [("user", None, "x")]
    assert required_columns(aggregates={}, patterns=own, where="status > 0") == [
        ("user", "(`status` > 0L)", "x")
    ]
    ties = {"column": "at", "interval": "1 minute", "on_duplicate_time": "first"}
    assert required_columns(aggregates={}, patterns=plain, where="status > 0", time=ties) == [
        ("user", f"(`status` > 0L) AND {selected}", "x"),
        ("user", None, "the stream"),
    ]


def test_stream_may_require_its_own_key() -> None:
    assert required_columns(key=[], aggregates={}) == []
    assert required_columns(aggregates={}) == [("user", None, "the stream")]
    assert required_columns(aggregates={}, where="status = 2") == [("user", "(`status` = 2L)", "the stream")]
    keyed = {"c": {"key": ["status"], "measures": {"n": "count"}, "levels": LEVELS}}
    ties = {"column": "at", "interval": "1 minute", "on_duplicate_time": "first"}
    assert required_columns(aggregates=keyed, time=ties) == [
        ("status", None, "c"),
        ("user", None, "the stream"),
    ]
    assert required_columns(aggregates=keyed, time=ties | {"on_duplicate_time": "keep"}) == [
        ("status", None, "c")
    ]


def test_column_of_a_block_without_events_is_not_used() -> None:
    block = {"key": ["user"], "where": "site = 'a'", "measures": {"n": "sum(status)"}, "levels": LEVELS}
    stream = parse({**data(), "key": [], "aggregates": {"load": block}, "checks": {}})
    assert columns_read(stream) == {"user", "site", "status"}
    # No event meets the condition, and one may. The columns of the condition are used, and no others.
    assert columns_read(stream, lambda use: use.decides) == {"site"}
    assert columns_read(stream, lambda use: False) == set()


def test_check_of_reports_names_its_columns() -> None:
    stream = parse(data())
    (ends,) = built_in(stream, "ends_inside_hour", metric="ends_outside", at_most=0)
    (calm,) = declared(stream, "aggregates")
    assert (ends.column, calm.check.column) == ("window_end", "n")


def test_used_columns_are_those_that_a_block_reads() -> None:
    def used(**more: Any) -> set[str]:
        return columns_read(parse({**data(), **more}))

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
    assert used(columns=columns, unique={"columns": ["a"], "prefer": "longest c"}) == plain | {"a", "b", "c"}
    checks = {**data()["checks"], "x": {"stage": "ingest", "every": "d is not null", "share": 0.5}}
    assert used(columns=columns, checks=checks) == plain | {"a", "d"}


@pytest.mark.parametrize("severity", ["error", "incomplete"])
@pytest.mark.parametrize("stage", ["ingest", "aggregates"])
def test_check_with_another_condition_is_another_check(stage: str, severity: str) -> None:
    """Otherwise an hour that it has quarantined, or called incomplete, would not be looked at again."""
    column = "bytes" if stage == "ingest" else "n"

    def hashes(limit: int) -> tuple[str, str]:
        check = {"stage": stage, "every": f"{column} < {limit}", "severity": severity}
        stream = parse(
            {
                "name": "web", "preset": "apache/combined", "source": {"path": "l/%Y-%m-%d.%H.log"},
                "aggregates": {"all": {"measures": {"n": "count"}, "levels": "RANGES 1 HOUR SLIDES 1 HOUR"}},
                "checks": {"few": check},
            }
        )  # fmt: skip
        checks = [rule.check for rule in declared(stream, stage)]
        return checks_fingerprint(checks, []), completeness(
            stage, checks, [], datetime(2015, 5, 17, tzinfo=UTC)
        )

    same, other = hashes(100), hashes(1000)
    assert same == hashes(100)
    assert same[0] != other[0]
    assert (same[1] != other[1]) == (severity == "incomplete")
