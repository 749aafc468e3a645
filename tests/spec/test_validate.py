"""The exact text of errors of a stream's file: of its own fields, and of several fields together."""

# ruff: noqa: E501 - in the table of refusals, a case a line can be read down; wrapped, it cannot

import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.pattern_factories import small
from tests.support.stream_factories import ACCEPT, SUPPRESS, changed, refusal
from transom.stream import SpecificationError, parse


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        # one field
        ({"name": "Web"}, "name: must be lower-case letters, digits and underscores, a letter first, at most 63; got 'Web'"),
        ({"name": "web\n"}, "name: must be lower-case letters, digits and underscores, a letter first, at most 63; got 'web\\n'"),
        ({"name": ...}, "name: is required"),
        ({"name": 5}, "name: must be text (in quotes, if it looks like something else); got 5"),
        ({"title": ""}, "title: must not be empty; got ''"),
        ({"tags": "web"}, "tags: must be a list; got 'web'"),
        ({"aggregat": {}}, "unknown field 'aggregat'; nearest: aggregates"),
        ({"sketches": {}}, "unknown field 'sketches'; known: name, title, description, owner, tags, preset, source, columns, time, extra_fields, unique, key, where, patterns, aggregates, frames, fills, persistence, frequency, checks, waivers, suppress, notify, silence, repair_window, retention, start, until, schedule, catchup, submit, chunk"),
        ({"source__pth": "x"}, "source: unknown field 'pth'; nearest: path"),
        ({"source__event_time_range": {"befor": "1 day"}}, "source.event_time_range: unknown field 'befor'; nearest: before"),
        ({"columns__user": {"frm": "x"}}, "columns.user: unknown field 'frm'; nearest: from"),
        ({"columns__user": {"iz": "x"}}, "columns.user: unknown field 'iz'; known: from, is, type, unit, resolution, missing, format, zone"),
        ({"aggregates__load__measure": {}}, "aggregates.load: unknown field 'measure'; nearest: measures"),
        ({"waivers": [{**ACCEPT, "whi": "x"}]}, "waivers[0]: unknown field 'whi'; nearest: why"),
        ({"schedule": "yes"}, "schedule: must be true or false; got 'yes'"),
        ({"submit": "all"}, "submit: must be one of 'per_stage', 'single'; got 'all'"),
        ({"repair_window": 2}, "repair_window: must be a whole number and a unit, such as 5 minutes; got 2"),
        ({"repair_window": "90 minutes"}, "repair_window: must be whole hours; got 90 minutes"),
        ({"retention": "48 hours"}, "retention: must be whole hours, and no less than repair_window and the widest range together, 49 hours; got 2 days"),
        ({"chunk": "0 hours"}, "chunk: must be whole hours, at least one; got 0 seconds"),
        ({"chunk": "90 minutes"}, "chunk: must be whole hours, at least one; got 90 minutes"),
        ({"start": "2015-05-17T10:30"}, "start: must be on the hour, in UTC; got '2015-05-17T10:30'"),
        ({"start": "monday"}, "start: must be a time such as 2015-05-17T10:00; got 'monday'"),
        ({"start": 2015}, "start: must be a time such as 2015-05-17T10:00; got 2015"),
        ({"start": "2015-05-17T10:00", "until": "2015-05-17T10:00"}, "until: must be after start; got start 2015-05-17T10:00, until 2015-05-17T10:00"),
        ({"catchup": True}, "catchup: needs start, the first hour to catch up with"),
        ({"catchup": True, "schedule": False, "start": "2015-05-17T10:00"}, "catchup: needs schedule, which is false"),
        # key and where
        ({"key": "user"}, "key: must be a list; got 'user'"),
        ({"key": ["usr"]}, "key[0]: no column 'usr'; nearest: user"),
        ({"key": ["user", "user"]}, "key: names 'user' 2 times"),
        ({"columns__level": "x", "key": ["level"]}, "key[0]: level is a column that every report has; choose another name"),
        ({"where": "status"}, "where: a condition must be a boolean; got an integer\n    status\n    ^"),
        ({"aggregates__load__where": "stats = 1"}, "aggregates.load.where: no column 'stats'; nearest: status\n    stats = 1\n    ^"),
        ({"aggregates__load__key": ["usr"]}, "aggregates.load.key[0]: no column 'usr'; nearest: user"),
        # checks
        ({"checks": {"rejected_shar": {"at_most": 0.1}}}, "3 problems\n  checks.rejected_shar.at_most: only built-in checks have it; nearest: rejected_share\n  checks.rejected_shar.stage: is required, one of ingest, aggregates (or is it a built-in check; nearest: rejected_share)\n  checks.rejected_shar: must have either every or rows; it has neither"),
        ({"checks": {"rejected_share": {"at_most": 5}}}, "checks.rejected_share.at_most: must be at most 1; got 5"),
        ({"checks": {"rejected_share": {"at_most": "5%"}}}, "checks.rejected_share.at_most: must be a number; got '5%'"),
        ({"checks": {"rejected_share": {"rows": {"at_least": 1}}}}, "checks.rejected_share.rows: rejected_share is built in, only at_most, off, severity may be set"),
        ({"checks": {"hours_bounded": {"at_most": 0.1}}}, "checks.hours_bounded.at_most: hours_bounded is built in, only hours, off, severity may be set"),
        ({"checks": {"hours_bounded": {"hours": 0}}}, "checks.hours_bounded.hours: must be at least 1; got 0"),
        ({"checks": {"file_readable": {"at_most": 0.1}}}, "checks.file_readable.at_most: file_readable is built in, only off, severity may be set"),
        ({"checks": {"x": {"stage": "ingest", "every": "ok", "rows": {"at_least": 1}}}}, "checks.x: must have either every or rows; it has both"),
        ({"checks": {"x": {"stage": "ingest", "rows": {}}}}, "checks.x.rows: must have at_least, at_most or both"),
        ({"checks": {"x": {"stage": "ingest", "rows": {"at_least": 2, "at_most": 1}}}}, "checks.x.rows: at_least must not be above at_most; got at_least 2, at_most 1"),
        ({"checks": {"x": {"stage": "ingest", "rows": {"at_least": 1}, "share": 0.5}}}, "checks.x.share: requires every, which is missing"),
        ({"checks": {"x": {"stage": "ingest", "every": "stats > 1"}}}, "checks.x.every: no column 'stats'; nearest: status\n    stats > 1\n    ^"),
        ({"checks": {"x": {"stage": "aggregates", "every": "status > 1"}}}, "checks.x.every: no column 'status'; known: level, window_start, window_end, count, user, n, slow, values_slow, sum_slow, mean_slow, min_slow, max_slow\n    status > 1\n    ^"),
        ({"checks": {"x": {"stage": "ingest", "block": "load", "every": "ok"}}}, "checks.x.block: ingest has no blocks; got 'load'"),
        ({"checks": {"x": {"stage": "aggregates", "block": "laod", "every": "ok"}}}, "checks.x.block: no block 'laod'; nearest: load"),
        ({"checks": {"x": {"stage": "ingest", "every": "ok", "severity": "fatal"}}}, "checks.x.severity: must be one of 'error', 'incomplete', 'warning'; got 'fatal'"),
        ({"aggregates": ..., "checks": {"x": {"stage": "aggregates", "every": "true"}}}, "checks.x.stage: the stream has no block of aggregates"),
        # waivers
        ({"waivers": [{**ACCEPT, "check": "rejected"}]}, "waivers[0].check: no check 'rejected'; nearest: rejected_share"),
        ({"waivers": [{**ACCEPT, "stage": "aggregates"}]}, "waivers[0].stage: rejected_share is a check of ingest; got aggregates"),
        ({"waivers": [{**ACCEPT, "observed": "1"}]}, "waivers[0].observed: must be a number; got '1'"),
        ({"waivers": [{**ACCEPT, "observed": True}]}, "waivers[0].observed: must be a number; got True"),
        ({"waivers": [{**ACCEPT, "who": ""}]}, "waivers[0].who: must not be empty; got ''"),
        ({"waivers": [{**ACCEPT, "hour": "2015-05-17T10:05"}]}, "waivers[0].hour: must be on the hour, in UTC; got '2015-05-17T10:05'"),
        # suppress
        ({"suppress": [{**SUPPRESS, "stage": "ingest"}]}, "suppress[0].stage: must be one of 'patterns', 'aggregates', 'frames', 'persistence', 'frequency'; got 'ingest'"),
        ({"suppress": [{**SUPPRESS, "block": "laod"}]}, "suppress[0].block: no block 'laod' of aggregates; nearest: load"),
        ({"suppress": [{**SUPPRESS, "stage": "patterns"}]}, "suppress[0].block: no block 'load' of patterns; there are none"),
        ({"suppress": [{**SUPPRESS, "key": {"host": "a"}}]}, "suppress[0].key.host: no column 'host' of the key of load; known: user"),
        ({"suppress": [{**SUPPRESS, "key": {"user": 1}}]}, "suppress[0].key.user: must be a string for user; got 1"),
        ({"suppress": [{**SUPPRESS, "key": {"user": 1.5}}]}, "suppress[0].key.user: must be a text, an integer or a truth value; got 1.5"),
        ({"suppress": [{**SUPPRESS, "until": "2015-05-17T10:05"}]}, "suppress[0].until: must be on the hour, in UTC; got '2015-05-17T10:05'"),
        ({"suppress": [{name: SUPPRESS[name] for name in ("stage", "block", "who")}]}, "suppress[0].why: is required"),
        ({"suppress": [{**SUPPRESS, "who": ""}]}, "suppress[0].who: must not be empty; got ''"),
        # preset
        ({"preset": "apache/combned"}, "preset: no preset 'apache/combned'; nearest: apache/combined"),
        ({"preset": "../streams/web"}, "preset: no preset '../streams/web'; known: apache/combined, syscalls/trace, zeek/conn"),
    ],
)  # fmt: skip
def test_invalid_field_is_refused_with_path_rule_and_value(changes: dict[str, Any], message: str) -> None:
    assert refusal(changed(**changes)) == f"app.yaml: {message}"


def test_all_errors_are_reported_at_once_in_the_order_of_the_fields() -> None:
    data = changed(
        chunk="90 minutes",
        repair_window="soon",
        colour="red",
        aggregates__load__levels="RANGES 1 HOUR, 6 HOURS SLIDES 1 HOUR, 4 HOURS",
        aggregates__other={"measures": {"n": "sum(tok)"}, "levels": "RANGES 1 HOUR SLIDES 1 HOUR"},
        key=["usr"],
    )
    assert refusal(data) == (
        "app.yaml: 8 problems\n"
        "  unknown field 'colour'; nearest: columns\n"
        "  key[0]: no column 'usr'; nearest: user\n"
        "  aggregates.load.levels[0]: level 1 (range 1 hour, slide 1 hour): the range must be longer than "
        "level 0's (range 6 hours, slide 4 hours)\n"
        "  aggregates.load.levels[0]: level 1 (range 1 hour, slide 1 hour): the slide must not be shorter "
        "than level 0's (range 6 hours, slide 4 hours)\n"
        "  aggregates.load.levels[1]: level 0 (range 6 hours, slide 4 hours): the range must be a whole "
        "multiple of the slide\n"
        "  aggregates.other.measures.n: no column 'tok' in 'sum(tok)'; nearest: took\n"
        "  repair_window: must be a whole number and a unit, such as 5 minutes; got 'soon'\n"
        "  chunk: must be whole hours, at least one; got 90 minutes"
    )


def test_invalid_column_is_not_also_reported_as_missing() -> None:
    assert refusal(changed(columns__took={"type": "number"})) == (
        "app.yaml: columns.took.resolution: is required for a number, such as 0.001"
    )


def test_misspelled_field_is_reported_without_its_consequences() -> None:
    data = changed(key=["user"], where="status >= 500", unique=["user", "usr"])
    data["colums"] = data.pop("columns")
    data["source"]["fromat"] = data["source"].pop("format")
    assert refusal(data) == (
        "app.yaml: 3 problems\n"
        "  unknown field 'colums'; nearest: columns\n"
        "  source: unknown field 'fromat'; nearest: format\n"
        "  unique: no column 'usr'; nearest: user"
    )


def test_missing_fields_are_reported_with_invalid_ones() -> None:
    data = changed(
        name="Web", source__format="xml", source__options={"a": 1}, time=..., extra_fields="maybe",
        columns__took={"type": "float"}, key=["usr"], aggregates__load__measures={"n": "max(took)"},
        checks={
            "keys_not_null": {"at_most": 100, "rows": {"at_least": 1}},
            "x": {"stage": "ingest", "every": "statu > 1"},
        },
    )  # fmt: skip
    assert refusal(data) == (
        "app.yaml: 9 problems\n"
        "  name: must be lower-case letters, digits and underscores, a letter first, at most 63; got 'Web'\n"
        "  source.format: must be one of 'apache', 'zeek', 'csv', 'json', 'regex', 'kv', 'syscalls'; got 'xml'\n"
        "  columns.took.type: must be one of 'string', 'integer', 'number', 'boolean', 'timestamp'; got "
        "'float'\n"
        "  time: is required where no preset gives it\n"
        "  extra_fields: must be one of 'keep', 'drop'; got 'maybe'\n"
        "  key[0]: no column 'usr'; nearest: user\n"
        "  checks.keys_not_null.at_most: keys_not_null is built in, only off, severity may be set\n"
        "  checks.keys_not_null.rows: keys_not_null is built in, only off, severity may be set\n"
        "  checks.x.every: no column 'statu'; nearest: status\n    statu > 1\n    ^"
    )


def test_out_of_range_value_of_an_unknown_check_field_is_refused() -> None:
    assert refusal(changed(checks={"keys_not_null": {"at_most": 100}})) == (
        "app.yaml: checks.keys_not_null.at_most: keys_not_null is built in, only off, severity may be set"
    )


def test_block_with_an_invalid_key_does_not_hide_errors_of_its_checks() -> None:
    data = changed(
        aggregates__load__key=["usr"], checks={"x": {"stage": "aggregates", "every": "n > 1", "share": 2}}
    )
    assert refusal(data) == (
        "app.yaml: 2 problems\n"
        "  aggregates.load.key[0]: no column 'usr'; nearest: user\n"
        "  checks.x.share: must be at most 1; got 2"
    )
    data["checks"]["x"]["share"] = 1
    assert refusal(data) == "app.yaml: aggregates.load.key[0]: no column 'usr'; nearest: user"


def test_error_survives_pickling() -> None:
    with pytest.raises(SpecificationError) as error:
        parse(changed(name="X"), "app.yaml")
    assert str(pickle.loads(pickle.dumps(error.value))) == str(error.value)


def test_check_over_several_blocks_must_name_its_block() -> None:
    data = changed(
        aggregates__other={"measures": {"n": "count"}, "levels": "RANGES 1 HOUR SLIDES 1 HOUR"},
        checks={"x": {"stage": "aggregates", "every": "n > 1"}},
    )
    assert refusal(data) == (
        "app.yaml: checks.x.block: is required where there are several; known: load, other"
    )


json_like = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=6) | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
places = st.sampled_from(
    ["name", "source", "source__path", "source__format", "source__options", "source__event_time_range", "columns",
     "columns__user", "columns__took", "time", "time__format", "key", "where", "aggregates",
     "aggregates__load", "aggregates__load__levels", "aggregates__load__measures", "aggregates__load__key",
     "unique", "unique__prefer", "columns__took__is", "patterns", "patterns__x", "patterns__x__steps",
     "patterns__x__absent", "patterns__x__within", "patterns__x__carry", "checks", "waivers", "repair_window", "chunk", "preset", "start", "until", "tags"]
)  # fmt: skip


@given(st.dictionaries(places, json_like, max_size=3))
def test_any_file_is_a_stream_or_a_specification_error(changes: dict[str, Any]) -> None:
    data: Any = small()
    for path, value in changes.items():
        *folders, last = path.split("__")
        place = data
        for folder in folders:
            place = place.get(folder) if isinstance(place, dict) else None
        if isinstance(place, dict):
            place[last] = value
    try:
        stream = parse(data, "app.yaml")
    except SpecificationError as error:
        refused = str(error)
    else:
        assert stream.layout()
        return
    assert refused.startswith("app.yaml: ")
