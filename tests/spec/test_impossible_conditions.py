"""`check` reports conditions that no row can meet."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transom.cli.check import describe_stream
from transom.features.aggregates.validate import COUNT
from transom.spec.impossible_conditions import impossible
from transom.spec.value_domains import Domain, possible
from transom.stream import parse

BEAT: dict[str, Any] = {
    "name": "beat",
    "source": {"path": "beat.jsonl", "format": "json"},
    "columns": {"host": {}, "status": {"type": "integer"}},
    "time": {"column": "at"},
    "key": ["host"],
    "aggregates": {
        "lines": {
            "measures": {"n": "count", "worst": "max(status)", "codes": "distinct(status)"},
            "levels": "RANGES 1 HOUR, 5 MINUTES SLIDES 5 MINUTES, 5 MINUTES",
        }
    },
}
KNOWN = {
    "n": COUNT,
    "level": Domain(0, 1, whole=True),
    "status": Domain(whole=True),
    "codes": Domain(0, whole=True),
}


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("n = 0", False),
        ("n < 1", False),
        ("n <= 0", False),
        ("0 = n", False),
        ("1 > n", False),
        ("n < 1 or n > 5", True),
        ("n < 1 or n < 0", False),
        ("n >= 1", True),
        ("n < 2", True),
        ("level = 2", False),
        ("level between 2 and 5", False),
        ("codes < 0", False),
        ("codes = 0", True),
        ("status > 4 and status < 5", False),
        ("status = 4.5", False),
        ("x > 4 and x < 5", True),
        ("x > 5 and x < 4", False),
        ("x = 1 and x = 2", False),
        ("h = 'a' and h = 'b'", False),
        ("h in ('a', 'b') and h = 'c'", False),
        ("h in ('a', 'b') and h = 'b'", True),
        ("(x > 5 or x < 1) and x = 3", False),
        ("(x = 1 or x = 5) and x > 6", False),
        ("(x = 1 or x = 5 or y = 2) and x = 3 and y = 3", False),
        ("x in (1, 5) and x = 3", False),
        ("x in (1, 5) and y > x and y < 5 and x > 1", False),
        ("x + y < 0 and x > 1 and y > 1", True),  # not reported: sums of doubles
        ("n in (0)", False),
        ("n in (0, 1)", True),
        ("n not in (1, 2) and n < 3", False),
        ("not (n >= 1)", False),
        ("not (n >= 1 and n < 5)", True),
        ("not (n >= 1 or x > 5)", False),
        ("n not between 1 and 5 and n < 4", False),
        ("n - 1 < 0", False),
        ("n + codes < 1", False),
        ("n + codes + 1 < 2", False),
        ("-n > -1", False),
        ("-n > 0 or -n >= -1", True),
        ("x > 5 and x < 5", False),
        ("x >= 5 and x < 5", False),
        ("x >= 5 and x <= 5", True),
        ("x >= 5 and x <= 5 and x <> 5", False),
        ("x < y and x > 5 and y < 4", False),
        ("1 = 2", False),
        ("1 = 1.0", True),
        ("'a' = 'b'", False),
        ("false", False),
        ("not false", True),
        ("n is null", False),
        ("codes is null", True),
        ("x > 1 and x is null", False),
        ("x is null and not (x is null)", False),
        ("x is not null or x is null", True),
        ("k <> 'a' and k = 'a'", False),
        ("k not in ('a', 'b') and k in ('a', 'b')", False),
        ("k not in ('a', 'b') and k in ('a', 'c')", True),
        ("b and not b", False),
        ("b = true and b = false", False),
        ("b is not true and b is not false", True),
        ("b is true and not b", False),
        ("length(k) < 0", False),
        ("n > 9007199254740992 and n < 9007199254740994", True),
        ("n > 9007199254740992 and n <= 9007199254740992.0", True),  # equal as doubles
        ("x > 9007199254740992 and x <= 9007199254740993", True),
        ("-x > 5 and x > 0", True),  # NaN is greater than any number
        ("x = 3 and (x > 5 or x < 1)", False),
        ("not (n < 1)", True),
        ("n < x", True),
        ("n < -1", False),
        ("abs(n) < 1", True),
        ("coalesce(n, 0) = 0", False),
        ("coalesce(n, 0) >= 1", True),
        ("coalesce(codes, 0) < 1", True),
        ("coalesce(codes, 0) < 0", False),
        ("coalesce(h, 'a') is null", False),
        ("coalesce(h, k) is null", True),
    ],
)
def test_impossible_bounds_of_columns_are_reported(text: str, holds: bool) -> None:
    assert possible(text, KNOWN) is holds


@pytest.mark.parametrize(
    ("changes", "output"),
    [
        (
            {"alert": {"none": {"when": "n = 0", "level": 0}, "few": {"when": "n < 40", "level": 1}}},
            [
                "aggregates.lines.alert.none.when: no row can meet 'n = 0': a window without a record is no "
                "row; frames over lines find keys that are silent, with missing: satisfies and known: 1 day"
            ],
        ),
        ({"alert": "level = 1 and worst > 5"}, []),
        (
            {"alert": {"odd": {"when": "level = 1", "level": 0}}},
            ["aggregates.lines.alert.odd.when: no row can meet 'level = 1'"],
        ),
        (
            {"where": "status = 200 and status = 404"},
            ["aggregates.lines.where: no row can meet 'status = 200 and status = 404'"],
        ),
    ],
)
def test_impossible_conditions_of_a_block_are_reported(changes: dict[str, Any], output: list[str]) -> None:
    block = BEAT["aggregates"]["lines"] | changes
    assert list(impossible(parse(BEAT | {"aggregates": {"lines": block}}))) == output


def test_impossible_conditions_of_frames_over_granules_are_reported() -> None:
    frames = {
        "silent": {"source": "lines", "kind": "threshold", "where": "n < 1"},
        "low": {"source": "lines", "kind": "threshold", "where": "n < 5"},
        "known": {
            "source": "lines",
            "kind": "threshold",
            "where": "n < 1",
            "missing": "satisfies",
            "known": "1 day",
            "only": "n < 1",
        },
        "of_events": {"kind": "threshold", "where": "status < 1", "on_duplicate_time": "last"},
    }
    of = parse(BEAT | {"frames": frames})
    why = "a granule without a record is a missing reading, which has no value"
    assert list(impossible(of)) == [
        f"frames.silent.where: no row can meet 'n < 1': {why}; with missing: satisfies and known: 1 day it "
        "begins a frame",
        f"frames.known.only: no row can meet 'n < 1': {why}",
    ]
    assert describe_stream(of)


def test_impossible_steps_of_patterns_are_reported() -> None:
    pattern = {
        "within": "1 hour",
        "steps": [{"id": "a", "where": "status = 1"}, {"id": "b", "where": "status > 5 and status < 6"}],
    }
    of = parse(BEAT | {"patterns": {"p": pattern}})
    assert list(impossible(of)) == ["patterns.p.steps[1].where: no row can meet 'status > 5 and status < 6'"]


def test_impossible_absent_records_are_reported() -> None:
    pattern = {
        "within": "1 hour",
        "steps": [{"id": "a", "where": "status = 1"}, {"id": "b", "where": "status = 2"}],
        "absent": [
            {"where": "status = 3", "between": ["a", "b"]},
            {"where": "status > 3 and status < 4", "between": ["a", "b"]},
        ],
    }
    of = parse(BEAT | {"patterns": {"p": pattern}})
    assert list(impossible(of)) == ["patterns.p.absent[1].where: no row can meet 'status > 3 and status < 4'"]


def test_condition_on_a_missing_value_text_is_impossible() -> None:
    columns = BEAT["columns"] | {"user": {"missing": ["-"]}, "code": {"type": "integer", "missing": ["-1"]}}
    for where, holds in (
        ("user = '-'", False),
        ("user <> '-'", True),
        ("code = -1", False),
        ("code = 1", True),
    ):
        of = parse(BEAT | {"columns": columns, "where": where})
        output = [] if holds else [f"where: no row can meet {where!r}"]
        assert list(impossible(of)) == output


def test_impossible_condition_of_fills_is_reported() -> None:
    frames = {"high": {"source": "lines", "kind": "threshold", "where": "n > 5"}}
    for source, where, holds in (
        ("events", "status > 4 and status < 5", False),
        ("lines", "n < 1", False),
        ("lines", "n < 2", True),
    ):
        fill = {"frame": "high", "source": source, "where": where}
        output = [] if holds else [f"fills.f.where: no row can meet {where!r}"]
        assert list(impossible(parse(BEAT | {"frames": frames, "fills": {"f": fill}}))) == output


LITERALS = {
    "n": st.sampled_from(
        ["0", "1", "2", "3", "1.5", "-1", "n", "m", "x", "m - 1", "n + m", "-n", "coalesce(n, 0)"]
    ),
    "x": st.sampled_from(["0", "1", "2.5", "-1.5", "n", "x", "y", "-x", "coalesce(x, y, -2.5)"]),
    "k": st.sampled_from(["'a'", "'b'", "k", "h", "coalesce(h, k)", "coalesce(h, 'c')"]),
}


@st.composite
def comparisons(draw: st.DrawFn) -> str:
    kind = draw(st.sampled_from(["n", "x", "k"]))
    one, two, three = (draw(LITERALS[kind]) for _ in range(3))
    sign = draw(st.sampled_from(["=", "<>", "<", "<=", ">", ">="]))
    return draw(
        st.sampled_from([
            f"{one} {sign} {two}", f"{one} in ({two}, {three})", f"{one} not in ({two}, {three})",
            f"{one} between {two} and {three}", f"{one} not between {two} and {three}",
            f"{one} is null", f"{one} is not null", "b", "b is true", "b is not false", "true", "false",
        ])
    )  # fmt: skip


CONDITIONS = st.recursive(
    comparisons(),
    lambda inner: st.one_of(
        st.builds("({} and {})".format, inner, inner),
        st.builds("({} or {})".format, inner, inner),
        st.builds("(not {})".format, inner),
    ),
    max_leaves=8,
)


@pytest.fixture(scope="module")
def rows() -> Iterator[sqlite3.Connection]:
    """Return every row of a few values of each column; n and m are counts of at least one."""
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute("create table t (n integer, m integer, x real, y real, k text, h text, b boolean)")
        reals, texts = (-1.5, 0.0, 1.0, 2.5, None), ("a", "b", "c", None)
        every = product((1, 2, 3), (1, 2), reals, (1.0, None), texts, ("a", None), (True, False, None))
        database.executemany("insert into t values (?, ?, ?, ?, ?, ?, ?)", every)
        yield database


@settings(max_examples=1500, deadline=None)
@given(CONDITIONS)
def test_condition_that_a_row_meets_is_never_reported(rows: sqlite3.Connection, condition: str) -> None:
    encountered = rows.execute(f"select 1 from t where {condition} limit 1").fetchone()
    if encountered is not None:
        assert possible(condition, {"n": COUNT, "m": COUNT})
