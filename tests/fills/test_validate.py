"""The exact text of every error of fills."""

# ruff: noqa: E501 - in the table of refusals, a case a line can be read down; wrapped, it cannot

from typing import Any

import pytest

from tests.support.stream_factories import base, refusal
from transom.stream import parse

T = {"kind": "threshold", "where": "took > 5", "on_duplicate_time": "first"}
G = {"source": "load", "kind": "threshold", "where": "n > 1"}
W: dict[str, Any] = {"table": "/d/works", "time": "begins", "columns": {"user": "string", "lanes": "integer"}}


def columns(**types: object) -> dict[str, Any]:
    return {"source": {**W, "columns": {"user": "string", **types}}}


@pytest.mark.parametrize(
    ("fill", "message"),
    [
        ({"frame": ...}, "frame: is required"),
        ({"frame": "y"}, "frame: no kind of frame 'y'; known: x"),
        ({"sourc": "load"}, "fills.f: unknown field 'sourc'; nearest: source"),
        ({"source": "laod"}, "source: must be events or a block of aggregates; no 'laod'; nearest: load"),
        ({"source": 7}, "source: must be a mapping; got 7"),
        ({"join_on": ["usr"]}, "join_on[0]: must be of the key of x; no column 'usr'; nearest: user"),
        ({"join_on": ["status"]}, "join_on[0]: must be of the key of x; no column 'status'; known: user"),
        ({"join_on": ["user", "user"]}, "join_on: names 'user' 2 times"),
        (
            {"shift": ["-1 day"]},
            "shift[0]: must be a whole number and a unit, such as 5 minutes; got '-1 day'",
        ),
        ({"shift": [1]}, "shift[0]: must be a whole number and a unit, such as 5 minutes; got 1"),
        ({"shift": []}, "shift: must have at least 1; got []"),
        ({"shift": ["1 day", "24 hours"]}, "shift: names '1 day' 2 times"),
        ({"shift": ["4000 days"]}, "shift: must be at most 3660 days; got 4000 days"),
        ({"combine": "median"}, "combine: needs several shifts; got 0 seconds"),
        (
            {"combine": "mode", "shift": ["1 day", "2 days"]},
            "combine: must be one of 'median', 'mean', 'min', 'max'; got 'mode'",
        ),
        ({"reach": "90 minutes"}, "reach: must be whole hours, at least one; got 90 minutes"),
        ({"reach": "0 hours"}, "reach: must be whole hours, at least one; got 0 seconds"),
        ({"lead": "-1 hour"}, "lead: must be a whole number and a unit, such as 5 minutes; got '-1 hour'"),
        ({"lead": "4000 days"}, "lead: must be at most 3660 days; got 4000 days"),
        ({"lag": "4000 days"}, "lag: must be at most 3660 days; got 4000 days"),
        ({"where": "tok > 1"}, "where: no column 'tok'; nearest: took\n    tok > 1\n    ^"),
        ({"where": "took"}, "where: a condition must be a boolean; got a number\n    took\n    ^"),
        (
            {"source": "load", "where": "took > 1"},
            "where: no column 'took'; known: user, n, slow, event_time\n    took > 1\n    ^",
        ),
        (
            {"measures": {"n": "count"}},
            "measures.n: takes sum, mean, min or max; how many rows there are is rows_matched; got count",
        ),
        ({"measures": {"n": "sum(tok)"}}, "measures.n: no column 'tok' in 'sum(tok)'; nearest: took"),
        (
            {"measures": {"n": "sum(user)"}},
            "measures.n: sum takes an integer or a number; user is a string",
        ),
        (
            {"measures": {"coverage": "sum(took)"}},
            "measures.coverage: coverage is a column that every fill has; choose another name",
        ),
        ({"source": {}}, "source: must be one of block, stream and table; got none of them"),
        (
            {"source": {"stream": "a", "table": "b", "time": "t"}},
            "source: must be one of block, stream and table; got stream and table",
        ),
        (
            {"source": {"table": "b"}},
            "source.time: is required: the column of the table with the time of a row",
        ),
        ({"source": {"stream": "a", "time": "t"}}, "source.time: only a table has one; got 't'"),
        (
            {"source": {"block": "load", "columns": {"n": "integer"}}},
            "source.columns: are those of a table or of another stream; the stream knows its own",
        ),
        (
            {"source": {"stream": "app", "columns": {"user": "string"}}},
            "source.stream: app is this stream; its rows are events",
        ),
        (
            {"source": {"stream": "../x"}},
            "source.stream: must be lower-case letters, digits and underscores, a letter first, at most 63; got '../x'",
        ),
        ({"source": {**W, "table": ""}}, "source.table: must not be empty; got ''"),
        ({"source": {**W, "tabel": "x"}}, "source: unknown field 'tabel'; nearest: table"),
        (
            {"source": {**W, "columns": {"lanes": "integer"}}},
            "source: /d/works has no column 'user'; known: lanes, event_time; join_on: [] takes the rows of any key",
        ),
        (
            columns(user="integer"),
            "source: user must be of one type; it is string of the frames and integer of /d/works",
        ),
        (columns(loss="number"), "source.columns.loss.resolution: is required for a number, such as 0.001"),
        (
            columns(loss={"type": "integer", "resolution": 1}),
            "source.columns.loss.resolution: only a number has one; got 1 for type integer",
        ),
        (
            columns(event_time="timestamp"),
            "source.columns.event_time: is the time of a row, which every filler has",
        ),
        (
            columns(lanes="text"),
            "source.columns.lanes.type: must be one of 'string', 'integer', 'number', 'boolean', 'timestamp'; got 'text'",
        ),
        (
            {"source": W, "measures": {"m": "sum(user)"}},
            "measures.m: sum takes an integer or a number; user is a string",
        ),
    ],
)
def test_invalid_fills_are_refused_with_reason(fill: dict[str, Any], message: str) -> None:
    spec = {name: value for name, value in ({"frame": "x"} | fill).items() if value is not ...}
    data = base() | {"frames": {"x": T}, "fills": {"f": spec}}
    assert refusal(data).replace("app.yaml: fills.f.", "").replace("app.yaml: ", "") == message


def test_measure_has_one_type_in_all_fills() -> None:
    fills = {
        "f": {"frame": "x", "measures": {"m": "sum(took)"}},
        "g": {"frame": "y", "source": "load", "measures": {"m": "sum(n)"}},
    }
    message = "app.yaml: fills.g.measures.m: is number in f and integer here; choose another name"
    assert refusal(base() | {"frames": {"x": T, "y": G}, "fills": fills}) == message


@pytest.mark.parametrize(
    ("data", "what", "minimum"),
    [
        ({"frames": {"x": T}}, "the idle time of the frames x", 72),
        (
            {"frames": {"x": {**G, "baseline": {"value": "n", "shift": ["7 days", "14 days"]},
                              "where": "n > baseline"}}},
            "the readings of the frames x", 48 + 14 * 24 + 1,
        ),
        (
            {"frames": {"x": G}, "fills": {"f": {"frame": "x", "source": "load", "shift": ["7 days"],
                                                 "reach": "5 hours", "lead": "2 hours"}}},
            "what the fill f looks back", 48 + 7 * 24 + 7 + 24,
        ),
    ],
)  # fmt: skip
def test_private_state_is_retained_as_long_as_frames_and_fills_look_back(
    data: dict[str, Any], what: str, minimum: int
) -> None:
    text = refusal({**base(), **data, "retention": f"{minimum - 1} hours"})
    assert text.startswith(
        f"app.yaml: retention: must be whole hours, and no less than repair_window and {what} together, "
    )
    assert parse({**base(), **data, "retention": f"{minimum} hours"}, "app.yaml").retention is not None
