"""What is taken for a pattern compiles in Arrow and comes to an end; the rest is refused with its place."""

import re

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transom.formats.pattern import Pattern, PatternError, checked

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


@settings(max_examples=400)
@given(parts, st.text("aébA.\x1f ]{", max_size=5))
def test_what_is_taken_means_the_same_to_arrow_and_to_python(text: str, line: str) -> None:
    text = f"(?P<all>{text})"
    try:
        pattern = checked(text)
    except PatternError:
        return
    found = pc.extract_regex(pa.array([line]), f"^(?:{pattern.text})$")[0].as_py()
    expected = re.compile(text, re.ASCII).fullmatch(line)
    assert (found is None) is (expected is None)
    assert pattern.groups[0] == "all"


@pytest.mark.parametrize(
    "text",
    [
        r'(?:[^"\\]|\\.)*', r"(?:/\w+)+", r"(?:\d+\.)+", "(?:-a+b*)*", "(?:a+){10}", "(?:ab?)+",
        r"(?:\w+ ){3}", "(a|b)+",
        ".{900}.{900}", r"(?:[^,]*,)*",
    ],
)  # fmt: skip
def test_repeats_in_each_other_that_can_be_read_one_way_only_are_taken(text: str) -> None:
    assert checked(text).groups == ()


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("(a+)+", 0), ("x(?:a*)*", 1), (r"(?:\w+\s?)*", 0), ("(?:a|b+)*", 0), ("(?:a+){11}", 0),
        ("(?:a+){3,}", 0), (r"(?:\.\d+\.)+", 0), ("(?i:(?:Aa+)+)", 4), ("(?:(?:a+b)c?)+", 0),
        (r"(?:[\w.]+\.)+", 0), ("(?:a?(b+))+", 0),
    ],
)  # fmt: skip
def test_repeats_without_bound_in_each_other_are_refused(text: str, place: int) -> None:
    for linear in (True, False):
        with pytest.raises(PatternError, match=r"repeats what itself repeats without bound$") as error:
            checked(text, linear)
        assert error.value.offset == place


def test_groups_without_a_name_count_for_nothing() -> None:
    assert checked(r"(a)(?P<x>b|(c))[(](?:d)\(") == Pattern(r"(?:a)(?P<x>b|(?:c))[(](?:d)\(", ("x",))


@pytest.mark.parametrize(("text", "rule"), [
    ("a" * 10_001, "must have at most 10000 characters; it has 10001"),
    ("[é-ü]{1000}" * 5, "is too large with its repeats written out"),
])  # fmt: skip
def test_a_pattern_is_bounded(text: str, rule: str) -> None:
    with pytest.raises(PatternError) as error:
        checked(text)
    assert error.value.message == rule
