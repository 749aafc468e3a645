"""A line that a pattern does not match is reported with its rest, and with the part that should follow."""

import pytest

from tests.formats.some_formats import read
from transom.formats.record_format import EventTime, Field, RecordFormat

PATTERN = r"(?P<ts>[0-9]+) (?P<level>[A-Z]+): (?P<what>[^,]*), took (?P<ms>[0-9]+) ms"


def detail(line: str, pattern: str = PATTERN) -> str:
    of = RecordFormat(
        "regex", (Field("what", ("what",)),), EventTime(("ts",), (), "epoch"), {"pattern": pattern}
    )
    good = b"1 INFO: it, took 1 ms\n"
    events, rejected, _ = read((good * 3 + line.encode() + b"\n" + good), of)
    assert (len(events), len(rejected), rejected[0]["reason"]) == (4, 1, "no_match")
    return str(rejected[0]["detail"])


@pytest.mark.parametrize(
    ("line", "remaining", "following"),
    [
        ("x INFO: it, took 1 ms", "x INFO: it, took 1 ms", "(?P<ts>[0-9]+)"),
        ("1 info: it, took 1 ms", "info: it, took 1 ms", "(?P<level>[A-Z]+)"),
        ("1 INFO: it, after 1 ms", "after 1 ms", "took "),
        ("1 INFO: it, took 1 s", "s", "ms"),
        ("1 INFO: it, took 1 ms or 2", " or 2", "the end of the line"),
        ("1 INFO: it", "nothing", ", took "),
        ("1", "nothing", "a blank"),
        ("1 INFO: it, took né", "né", "(?P<ms>[0-9]+)"),
    ],
)
def test_reason_shows_where_the_pattern_stops(line: str, remaining: str, following: str) -> None:
    assert detail(line) == f"no match: left over: {remaining}; expected {following}"


def test_alternative_with_the_longest_match_counts() -> None:
    pattern = rf"(?P<never>x+)|{PATTERN}|(?P<other>1) (?P<word>[a-z])[0-9]"
    assert detail("1 INFO: it, took it", pattern) == "no match: left over: it; expected (?P<ms>[0-9]+)"
    assert detail("1 ab", pattern) == "no match: left over: b; expected [0-9]"


def test_long_rest_and_long_part_are_truncated() -> None:
    pattern = PATTERN + f"(?: or [{'a' * 100}b])?"
    text = detail(f"1 INFO: it, took 1 ms or {'c' * 1000}", pattern)
    assert len(text) < 300
    assert text.endswith("; expected the end of the line")


def test_group_may_have_any_name() -> None:
    pattern = PATTERN.replace("<what>", "<text>")
    assert detail("1 INFO: it, after 1 ms", pattern) == "no match: left over: after 1 ms; expected took "
