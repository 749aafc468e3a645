"""JSON by the vectorised parsers and by the plain reference, on lines near the grammar."""

import json
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from tests.formats.agreement import (
    LAYOUTS,
    NAMES,
    agree,
)
from tests.formats.drawn_lines import blocks, files, numbers, odd, sound, words
from transom.formats.json import lines as json_way
from transom.formats.json import records as json_records
from transom.formats.record_format import EventTime

json_texts = st.one_of(
    words.map(lambda text: json.dumps(text, ensure_ascii=False)),
    words.map(json.dumps),
    st.sampled_from(
        ['"\\ud800"', '"\\udc00\\ud800"', '"\\ud83d\\ude00"', '"a\\nb"', '"\\u0000"', '"\\/"', '"\\q"']
    ),
)
json_values = st.recursive(
    st.one_of(numbers, json_texts, st.sampled_from(["null", "true", "false", "NaN", "-Infinity", "True"])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda parts: f"[{','.join(parts)}]"),
        st.lists(st.tuples(json_texts, inner), max_size=3).map(
            lambda parts: "{" + ", ".join(f"{name}: {value}" for name, value in parts) + "}"
        ),
    ),
    max_leaves=5,
)
nested = st.sampled_from([98, 99, 100, 101, 500]).map(lambda depth: "[" * depth + "]" * depth)
TEXTS = ("client", "at", "user.name", "id.orig_h", "id_orig_h")


def as_json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def is_text(name: str, time: EventTime) -> bool:
    return name in TEXTS or (name == "ts" and time.time_format == "iso")


def sound_member(name: str, time: EventTime) -> SearchStrategy[str]:
    """Draw a member that the vectorised parser accepts."""
    if name == "ok":
        return st.sampled_from(["true", "false", "null"])
    if is_text(name, time):
        return sound(name, time).map(as_json)
    return (
        st.one_of(sound(name, time), sound(name, time), st.just("null"))
        if name != "ts"
        else sound(name, time)
    )


def odd_member(name: str, time: EventTime) -> SearchStrategy[str]:
    if name in ("user", "id"):
        inside = st.sampled_from(['"name"', '"took"', '"orig_h"'])
        return st.tuples(inside, json_values).map(lambda pair: f"{{{pair[0]}: {pair[1]}}}")
    if name == "x":
        return st.one_of(json_values, nested)
    texts = odd(name, time)
    return st.one_of(sound_member(name, time), texts, texts.map(as_json), json_values)


NOT_ONE_OBJECT = [
    "{}{}", '{"ts": 1}, {"ts": 2}', '{"ts": 1}}', '{"ts": {}', '{"ts": "}', "[{}]", "1",
    '{"ts": 1, "x": {}', '{"ts": 1,}', '{"ts": 1, "x": -Infinity}', '{"ts": 1, "x": NaN}', "{'ts': 1}", "{}",
]  # fmt: skip


@st.composite
def json_lines(draw: DrawFn, time: EventTime, strange: bool) -> str:
    """Draw lines with the time first, so that most are not rejected before their columns are parsed."""
    if strange and draw(st.integers(0, 7)) == 0:
        return draw(st.sampled_from(NOT_ONE_OBJECT))
    known = [*NAMES[1:], "id.orig_h", "id_orig_h", "x"] + ["ts", "user", "id"] * strange
    names = draw(st.lists(st.sampled_from(known), max_size=6, unique=not strange or draw(st.booleans())))
    # A fast parser may overlook one odd member among valid ones.
    strange_ones = draw(st.sampled_from([set(names), *({name} for name in names)])) if strange else set()
    parts = ['"ts": ' + draw(sound_member("ts", time))] if not strange or draw(st.integers(0, 3)) else []
    for name in names:
        if name in strange_ones or name in ("user", "id", "ts"):
            texts = odd_member(name, time)
        else:
            texts = st.just("[1, {}]") if name == "x" else sound_member(name, time)
        parts.append(f'"{name}":{draw(texts)}')
    return "{" + draw(st.sampled_from([", ", ","])).join(parts) + "}"


@pytest.mark.parametrize(
    "name",
    ["json", "json micros", "json local", "json joined", "json lines", "json twice", "zeek json", "zeek"],
)
@given(st.data())
def test_json_lines_agree_with_the_reference(name: str, data: st.DataObject) -> None:
    time = LAYOUTS[name].time
    draws = files(json_lines(time, False), json_lines(time, True))
    with patch.object(json_way, "ALONE", data.draw(st.sampled_from([1, 8, 2048]))):
        agree(data.draw(draws), LAYOUTS[name], data.draw(blocks), data.draw(st.booleans()))


@st.composite
def json_documents(draw: DrawFn, time: EventTime, strange: bool) -> str:
    """Draw lines that have records where expected, or elsewhere."""
    records = draw(st.lists(json_lines(time, strange), max_size=4))
    inside = "[" + draw(st.sampled_from([", ", ",", " , "])).join(records) + "]"
    if strange:
        deep = "[" * 101 + "]" * 101
        inside = draw(
            st.sampled_from(
                [inside, inside, inside + "]", "{}", "1", "null", f"[{deep}]", '[1, "a", [], {}]']
            )
        )
    forms = [
        '{"log": {"items": %s}}',
        '{"log":{"x":[{}],"items":%s ,"y":1e999} , "v":"}"}',
        ' {"log.items": %s} ',
    ]
    if strange:
        forms += [
            '{"items": %s}', "%s", '{"log": %s}', '{"log": {"items": 5, "items": %s}}',
            '{log: {"items": %s}}',
            '{"log.items": 5, "log": {"items": %s}}', '{"log": {"items": %s}, "log": {}}',
            '{"log": {"items" %s}}', '{"log": {"items": %s,}}', '{"log": {"items": %s}, "x": NaN}',
            '{"log": {"items": %s}, "log.items": []}', '{"log": {"items": %s}} x',
        ]  # fmt: skip
    return draw(st.sampled_from(forms)) % inside


@given(st.data())
def test_json_records_agree_with_the_reference(data: st.DataObject) -> None:
    layout = LAYOUTS["json records"]
    draws = files(json_documents(layout.time, False), json_documents(layout.time, True))
    with patch.object(json_records, "LINES", 2):
        agree(data.draw(draws), layout, data.draw(blocks), data.draw(st.booleans()))


@st.composite
def nested_documents(draw: DrawFn, time: EventTime, strange: bool) -> str:
    """Draw lines with records in nested lists, and values around them."""
    value = st.sampled_from(['"a"', "1", "2.50", "null", '{"b": [1, "\\ud800"]}', '""', "[]", "true"])
    inner = []
    for _ in range(draw(st.integers(0, 3))):
        records = draw(st.lists(json_lines(time, strange), max_size=3))
        inside = "[" + ", ".join(records) + "]"
        if strange:
            inside = draw(st.sampled_from([inside, inside, "{}", "1", "null", '[1, "a", [], {}, { }]']))
        members = [f'"items": {inside}', f'"host": {{"name": {draw(value)}}}', f'"host.name": {draw(value)}']
        retained = draw(st.lists(st.sampled_from(members), unique=True, max_size=3))
        if not strange:
            retained = retained if members[0] in retained else [*retained, members[0]]
        inner.append("{" + ", ".join(retained) + "}")
    if strange and draw(st.booleans()):
        inner.insert(0, draw(st.sampled_from(["1", "[]", "null", '"a"', "true", "{}"])))
    sets = "[" + ",".join(inner) + "]"
    forms = [
        '{"log": {"sum": 7, "sets": %s}, "zone": "x"}',
        '{"zone": {"a": 1},"log":{"sets":%s , "sum": null}}',
        ' {"log.sets": %s, "log": {"sum": "8"}} ',
        '{"log": {"sets": 4, "sets": %s, "sum": 1, "sum": 2}, "zone": "y"}',
    ]
    if strange:
        forms += [
            '{"log": %s}', '{"log": {"sets": {"items": %s}}}', '{"log": {"sets": %s}, "log.sets": null}',
            '{"log": {"sets": %s}, "log.sum": 5, "log": {"sum": 6}}', "%s", '{"log": {"sets": %s}',
        ]  # fmt: skip
    return draw(st.sampled_from(forms)) % sets


@given(st.data())
def test_json_records_in_nested_lists_agree_with_the_reference(data: st.DataObject) -> None:
    layout = LAYOUTS["json nested records"]
    draws = files(nested_documents(layout.time, False), nested_documents(layout.time, True))
    with patch.object(json_records, "LINES", 2):
        agree(data.draw(draws), layout, data.draw(blocks), data.draw(st.booleans()))
