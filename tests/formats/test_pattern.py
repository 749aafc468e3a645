"""Accepted patterns compile in Arrow; others are rejected with their position."""

import re
from contextlib import suppress
from unittest.mock import patch

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.examples import rare_case
from transom.formats.regex_rules import CheckedRegex, PatternError, _Walk, validate_regex
from transom.stream import SpecificationError, parse

parts = st.recursive(
    st.sampled_from(
        [
            "a",
            "é",
            ".",
            "^",
            "$",
            r"\d",
            r"\W",
            r"\b",
            r"\.",
            r"\x41",
            "[ab]",
            "[^]a]",
            r"[^\]é-ü]",
            r"[\w-]",
            "{",
            "]",
        ]
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map("".join),
        st.tuples(inner, inner).map("|".join),
        inner.map(lambda text: f"(?:{text})"),
        inner.map(lambda text: f"({text})"),
        inner.map(lambda text: f"(?i:{text})"),
        inner.map(lambda text: f"(?P<a>{text})"),
        st.tuples(
            inner.map(lambda text: text if len(text) == 1 else f"(?:{text})"),
            st.sampled_from(["*", "+", "?", "*?", "{2}", "{3,}", "{1,900}", "{2,1001}", "++"]),
        ).map("".join),
        st.tuples(st.sampled_from(["(?=", "(?<!", "(?>", "(?x:"]), inner).map(
            lambda pair: f"{pair[0]}{pair[1]})"
        ),
    ),
    max_leaves=12,
)


@rare_case(4)
@given(parts, st.text("aébA.\x1f ]{", max_size=5))
def test_accepted_pattern_means_the_same_in_arrow_and_python(text: str, line: str) -> None:
    text = f"(?P<all>{text})"
    try:
        pattern = validate_regex(text)
    except PatternError:
        return
    result = pc.extract_regex(pa.array([line]), f"^(?:{pattern.text})$")[0].as_py()
    expected = re.compile(text, re.ASCII).fullmatch(line)
    assert (result is None) is (expected is None)
    assert pattern.groups[0] == "all"


@pytest.mark.parametrize(
    "text",
    [
        r'(?:[^"\\]|\\.)*', r"(?:/\w+)+",
        r"(?:\d+\.)+", "(?:-a+b*)*", "(?:ab?)+", r"(?:\w+ ){3}", "(?:a+){3}",
        "(a|b)+", ".{900}.{900}", r"(?:[^,]*,)*", r"(?:\.\d+\.)+", "(?:(?:a+b)c?)+", "(?:[a-z]|[A-Z])*",
        "(?:[0-9a-f]{32},?)*", r"(?:a|\ba|b)c", "(?:a|a){10}", "a.*b.*c.*d", "a.*b.*c.*d.*", r"(?:.|\r)*",
    ],
)  # fmt: skip
@pytest.mark.parametrize("linear", [True, False])
def test_repeat_next_to_a_required_part_is_accepted(text: str, linear: bool) -> None:
    assert validate_regex(text, linear).groups == ()


@pytest.mark.parametrize(
    ("text", "place", "what"),
    [
        ("(a+)+", 0, None),
        ("x(?:a*)*", 1, "(?:a*)*"),
        (r"(?:\w+\s?)*", 0, None),
        ("(?:a|b+)*", 0, None),
        ("(?:a+){11}", 0, None),
        ("(?:a+){3,}", 0, None),
        ("(?:a?(b+))+", 0, None),
        ("(?:b(?:a?(b+)$)+)?", 4, "(?:a?(b+)$)+"),
        ("(?=(a+)*)b", 3, "(a+)*"),
    ],
)
def test_nested_repeat_is_refused_if_the_engine_backtracks(text: str, place: int, what: str | None) -> None:
    with pytest.raises(PatternError) as error:
        validate_regex(text, linear=False)
    rule = f"{what or text} repeats a repeat, which is exponential"
    assert (error.value.message, error.value.offset) == (rule, place)
    if "(?=" not in text:
        assert validate_regex(text).groups == ()


ORDINARY = {
    "combined": r'(?P<client>\S+) \S+ (?P<user>\S+) \[(?P<time>[^\]]+)\] "(?P<method>[A-Z]+) (?P<path>[^ "]*)'
    r'(?: HTTP/[\d.]+)?" (?P<status>\d{3}) (?P<bytes>\d+|-)(?: "(?P<referer>(?:[^"\\]|\\.)*)" "[^"]*")?',
    "syslog": r"(?P<month>\w{3}) +(?P<day>\d{1,2}) (?P<time>[\d:]{8}) (?P<host>\S+) "
    r"(?P<program>[\w./-]+)(?:\[(?P<pid>\d+)\])?: (?P<message>.*)",
    "rfc 5424": r"<(?P<pri>\d{1,3})>1 (?P<at>\S+) (?P<host>\S+) (?P<app>\S+) (?P<pid>\S+) (?P<id>\S+) "
    r'(?P<data>-|(?:\[(?:[^"\]]|"(?:[^"\\]|\\.)*")*\])+) ?(?P<message>.*)',
    "haproxy": r"haproxy\[(?P<pid>\d+)\]: (?P<ip>[\d.]+):(?P<port>\d+) \[(?P<at>[^\]]+)\] (?P<front>\S+) "
    r"(?P<back>[^/]+)/(?P<server>\S+) (?P<tq>-?\d+)/(?P<tw>-?\d+)/\+?(?P<tt>\d+) (?P<rest>.*)",
    "iptables": r".*IN=(?P<inward>\S*) OUT=(?P<out>\S*) (?:MAC=\S* )?SRC=(?P<src>\S+) DST=(?P<dst>\S+) .*"
    r"PROTO=(?P<proto>\S+)(?: SPT=(?P<spt>\d+) DPT=(?P<dpt>\d+))?.*",
    "sshd": r"(?P<at>\w+ +\d+ [\d:]+) (?P<host>\S+) sshd\[\d+\]: (?P<what>Failed|Accepted) (?P<how>\S+) for "
    r"(?:invalid user )?(?P<user>.*?) from (?P<ip>\S+) port (?P<port>\d+)(?: ssh2)?(?:: .*)?",
    "log4j": r"(?P<at>[\d-]+ [\d:,.]+) +(?P<level>[A-Z]+) +\[(?P<thread>[^\]]*)\] (?P<logger>[\w.$]+)"
    r"(?::(?P<line>\d+))? - (?P<message>.*)",
    "glog": r"(?P<level>[IWEF])(?P<day>\d{4}) (?P<at>[\d:.]+) +(?P<pid>\d+) (?P<file>[^:]+):\d+\] "
    r"(?P<message>.*)",
    "postgres": r"(?P<at>\S+ \S+ [A-Z]+) \[(?P<pid>\d+)\] (?:(?P<user>\w+)@(?P<db>\w+) )?(?P<level>[A-Z]+): +"
    r"(?:duration: (?P<ms>[\d.]+) ms +)?(?P<message>.*)",
    "squid": r"(?P<at>\d+\.\d+) +(?P<ms>\d+) (?P<ip>\S+) (?P<result>[A-Z_]+)/(?P<code>\d+) (?P<bytes>\d+) "
    r"(?P<method>\S+) (?P<url>\S+) (?P<user>\S+) (?P<way>[A-Z_]+)/(?P<peer>\S+) (?P<type>\S+)",
    "iis": " ".join(rf"(?P<f{number}>\S+)" for number in range(20)),
    "addresses": r"(?P<v4>\d{1,3}(?:\.\d{1,3}){3}) (?P<v6>(?:[0-9a-f]{1,4}:){7}[0-9a-f]{1,4}) "
    r"(?P<uuid>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}) (?P<host>[\w-]+(?:\.[\w-]+)+) "
    r"(?P<sha>[0-9a-f]{64})",
    "url": r"(?P<url>https?://[^/ ]+(?:/[^ ?]*)?(?:\?\S*)?) (?P<n>[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)",
}
"""Typical patterns of well-known logs."""
SOUGHT = [
    "^/(admin|login|wp-.*)",
    "(?i)select.*from.*where",
    r"\.(php|asp|jsp)$",
    "bot|crawl|spider",
    ".*error.*timeout.*",
    r"^(10\.|192\.168\.|172\.(1[6-9]|2\d|3[01])\.)",
    r"^\s*(GET|POST)\s+\S+\s+HTTP/\d",
    "(a|b)*c",
    r"^(\d+\.){3}\d+$",
    "Mozilla.*Windows.*Chrome.*Safari",
    r"(\.\./)+",
    "^[^/]*/[^/]*/[^/]*/[^/]*/[^/]*$",
    r"(\w|-)+\.example\.com$",
    r"\b\d{4}[- ]?\d{4}[- ]?\d{4}[- ]?\d{4}\b",
    r"^(?=.*\d)(?=.*[a-z])(?=.*[A-Z])(?=.*\W).*$",
    r"^(.*/)?[^/]+\.log$",
    r"^([a-z0-9]+(-[a-z0-9]+)*\.)+[a-z]{2,}$",
    r"(union|select)\s+.*\s+from\s+",
    "<script[^>]*>.*</script>",
    r"^[\w.+-]+@([\w-]+\.)+[\w-]{2,}$",
    r"^(\w+) \1$",
]
"""Patterns as used in conditions."""


@pytest.mark.parametrize("name", ORDINARY)
def test_pattern_of_a_well_known_log_is_accepted(name: str) -> None:
    text = ORDINARY[name]
    assert validate_regex(text).groups == tuple(re.compile(text).groupindex)
    validate_regex(text, linear=False)


@pytest.mark.parametrize("text", SOUGHT)
def test_ordinary_pattern_of_a_condition_is_accepted(text: str) -> None:
    validate_regex(text, linear=False)


def test_groups_without_a_name_are_ignored() -> None:
    assert validate_regex(r"(a)(?P<x>b|(c))[(](?:d)\(") == CheckedRegex(
        r"(?:a)(?P<x>b|(?:c))[(](?:d)\(", ("x",)
    )


@pytest.mark.parametrize(("text", "rule"), [
    ("a" * 10_001, "must have at most 10000 characters; it has 10001"),
    ("[é-ü]{1000}" * 5, "is too large with its repeats written out"),
])  # fmt: skip
def test_length_of_a_pattern_is_bounded(text: str, rule: str) -> None:
    with pytest.raises(PatternError) as error:
        validate_regex(text)
    assert error.value.message == rule


@pytest.mark.parametrize("end", ["", "(?=x)"])
def test_stream_validates_its_pattern_once_for_any_number_of_columns(end: str) -> None:
    names = [f"judged_once_{number}" for number in range(40)]
    pattern = " ".join(f"(?P<{name}>[^ ]+)" for name in names) + end
    data = {
        "name": "a",
        "source": {"path": "a.log", "format": "regex", "options": {"pattern": pattern}},
        "columns": {name: {"type": "string"} for name in names},
        "time": {"column": names[0]},
    }
    with patch("transom.formats.regex_rules._Walk", wraps=_Walk) as walk:
        with suppress(SpecificationError):
            parse(data)
        assert walk.call_count < 10
