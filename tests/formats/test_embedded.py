"""A record in a text field of another one: its fields are read as if the text were an object."""

import json
from dataclasses import replace
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.formats.some_formats import read
from transom.formats.embedded import Embedded
from transom.formats.json import lines as json_way
from transom.formats.json.lines import JsonLines
from transom.formats.record_format import EmbeddedFormat, EventTime, Field, RecordFormat

FIELDS = (
    Field("stream", ("stream",)),
    Field("level", ("log.level",)),
    Field("took", ("log.took",), "integer"),
    Field("user", ("log.user.name", "stream")),
)
DOCKER = RecordFormat(
    "json", FIELDS, EventTime(("time",)), {"embedded": {"field": "log", "format": "json"}}, keep_rest=True
)
CONTAINER = RecordFormat(
    "regex",
    (
        Field("message", ("message",)),
        Field("level", ("message.level",)),
        Field("took", ("message.took",), "integer"),
    ),
    EventTime(("time",)),
    {
        "pattern": r"(?P<time>\S+) (?P<stream>stdout|stderr) (?P<tag>[FP]) (?P<message>.*)",
        "embedded": {"field": "message", "format": "json"},
    },
)  # fmt: skip
AUDIT = r"audit\((?P<time>[0-9.]+):(?P<serial>[0-9]+)\):"
AT = "2024-03-01T10:00:02.914495154Z"


def docker(text: str, stream: str = "stdout") -> bytes:
    return json.dumps({"log": text, "stream": stream, "time": AT}).encode() + b"\n"


def container(text: str) -> bytes:
    return f"{AT} stdout F {text}\n".encode()


def test_json_in_a_container_line_gives_columns_and_other_texts_give_none() -> None:
    lines = ['{"level": "info", "took": 75}', "starting up", "", '{"level": "warn"}  ', '{"took": "7"}']
    events, rejected, summary = read(b"".join(map(container, lines)), CONTAINER)
    assert rejected == []
    assert [(event["level"], event["took"]) for event in events] == [
        ("info", 75), (None, None), (None, None), ("warn", None), (None, 7),
    ]  # fmt: skip
    assert events[1]["message"] == "starting up"
    assert summary.absent == ()


def test_json_in_json_gives_columns_and_the_rest_is_retained() -> None:
    lines = ['{"level":"info","took":75,"user":{"name":"a","id":1.50}}\n', "plain\n", '{"x":[1]}']
    events, rejected, summary = read(b"".join(map(docker, lines)), DOCKER)
    assert rejected == []
    assert [(event["level"], event["took"], event["user"]) for event in events] == [
        ("info", 75, "a"), (None, None, "stdout"), (None, None, "stdout"),
    ]  # fmt: skip
    assert [event["rest"] for event in events] == [
        '{"log":{"user":{"id":1.50}}}', '{"log":"plain\\n"}', '{"log":{"x":[1]}}'
    ]  # fmt: skip
    assert summary.unknown == ("log.x",)


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ('{"level": "info", "took": 7', "bad json: Expecting ',' delimiter at character 28 of log"),
        ('{"level": "inf', "bad json: Unterminated string starting at character 11 of log"),
        ('{"took": "many"}', "bad type: many; expected a whole number"),
        ('{"level": tru', "bad json: Expecting value at character 11 of log"),
        ('{"level": "\\u00', "bad json: Invalid \\uXXXX escape at character 13 of log"),
        ("{", "bad json: Expecting property name enclosed in double quotes at character 2 of log"),
        ('{"level": NaN}', "bad json: NaN is not JSON of log"),
        ('{"level":' + "[" * 101, "bad json: more than 100 arrays and objects in each other of log"),
    ],
)  # fmt: skip
def test_truncated_json_rejects_its_line_alone(text: str, detail: str) -> None:
    good = '{"level": "info"}'
    events, rejected, _ = read(docker(good) + docker(text) + docker(good), DOCKER)
    assert [event["source_line"] for event in events] == [1, 3]
    assert [(row["source_line"], row["detail"]) for row in rejected] == [(2, detail)]
    assert rejected[0]["raw"] == docker(text).decode()[:-1]


@pytest.mark.parametrize(
    "text",
    [
        "{} items processed", "{not json}", "{0}: {1}", "{ 'level': 'info' }", '{"a":1} and more',
        '{"level": "info",}', '{"level": "a"b"}', '{"level" x}', "{[}",
    ],
)  # fmt: skip
def test_text_that_only_begins_as_json_has_no_fields(text: str) -> None:
    """It is a text in another format, and stays whole."""
    good = '{"level": "info"}'
    events, rejected, summary = read(docker(good) + docker(text) + docker(good), DOCKER)
    assert (rejected, summary.unknown) == ([], ())
    assert [event["level"] for event in events] == ["info", None, "info"]
    assert json.loads(events[1]["rest"]) == {"log": text}


def test_texts_that_are_no_objects_do_not_slow_down_others() -> None:
    lines = [docker(text).decode()[:-1] for text in ('{"level": "info"}', "{} items", "{x}")] * 2000
    parser = Embedded(DOCKER, EmbeddedFormat("log", "json", {}), JsonLines)
    assert len(list(parser.parts(pa.array(lines)))) == 1


def test_rejected_number_is_shown_as_written() -> None:
    """Also where all lines are read at once, without the text of numbers."""
    took = Field("took", ("log.took",), "number", "0.001")
    _, rejected, _ = read(docker('{"took": 9e14}'), replace(DOCKER, fields=(took,), keep_rest=False))
    assert [row["detail"] for row in rejected] == [
        "out of range: 9e14; expected at most 2**50 steps of 0.001"
    ]


def test_time_may_be_in_the_text() -> None:
    layout = replace(DOCKER, time=EventTime(("log.ts",), (), "epoch"))
    events, rejected, _ = read(docker('{"ts": 1.5}') + docker("plain") + docker('{"ts": "x"}'), layout)
    assert [event["event_time"].timestamp() for event in events] == [1.5]
    assert [row["reason"] for row in rejected] == ["missing_time", "bad_time"]


def test_pattern_parses_a_value() -> None:
    """The time of an audit log is inside a value."""
    layout = RecordFormat(
        "kv",
        (Field("type", ("type",)), Field("serial", ("msg.serial",), "integer"), Field("msg", ("msg",))),
        EventTime(("msg.time",), (), "epoch"),
        {"embedded": {"field": "msg", "format": "regex", "pattern": AUDIT}},
    )
    data = b"type=SYSCALL msg=audit(1681160198.534:3901): arch=c000003e\ntype=EOE msg=other arch=1\n"
    events, rejected, _ = read(data, layout)
    assert [(one["event_time"].timestamp(), one["type"], one["serial"], one["msg"]) for one in events] == [
        (1681160198.534, "SYSCALL", 3901, "audit(1681160198.534:3901):")
    ]
    assert [row["reason"] for row in rejected] == ["missing_time"]


def test_pairs_in_json_are_read() -> None:
    layout = replace(DOCKER, options={"embedded": {"field": "log", "format": "kv"}}, keep_rest=False)
    events, rejected, _ = read(docker("level=info took=12") + docker("no pairs") + docker('a="b'), layout)
    assert [(event["level"], event["took"]) for event in events] == [("info", 12), (None, None)]
    assert [(row["reason"], row["detail"]) for row in rejected] == [
        ("unterminated_quote", "unterminated quote of log")
    ]


def test_csv_with_embedded_records_keeps_its_header() -> None:
    layout = RecordFormat(
        "csv", FIELDS[:2], EventTime(("time",)), {"embedded": {"field": "log", "format": "json"}}
    )
    data = f'time,stream,log\n{AT},a,"{{""level"":""x""}}"\n{AT},b,plain\n'.encode()
    events, rejected, summary = read(data, layout)
    assert (rejected, summary.header_lines, summary.columns) == ([], 1, ("log", "stream", "time"))
    assert [(event["stream"], event["level"]) for event in events] == [("a", "x"), ("b", None)]


values = st.one_of(
    st.integers(-5, 2**60), st.sampled_from(["info", "7", "\u00e4\n", "\"'", "\\", ""]), st.none(),
    st.booleans(),
    st.floats(allow_nan=False, allow_infinity=False), st.just({"name": "n", "x": [1]}), st.just([{"a": 1}]),
)  # fmt: skip
objects = st.dictionaries(st.sampled_from(["level", "took", "user", "user.name", "other"]), values)


@given(st.lists(objects, max_size=12), st.sampled_from([1, 3, 2048]), st.sampled_from([None, 2]))
def test_text_is_read_like_the_object_it_contains(
    inside: list[dict[str, object]], alone: int, indent: int | None
) -> None:
    """For any blocks that are read together, and any layout of the text."""
    plain = replace(DOCKER, options={})
    as_text = b"".join(docker(json.dumps(one, indent=indent)) for one in inside)
    as_object = b"".join(
        json.dumps({"log": one, "stream": "stdout", "time": AT}).encode() + b"\n" for one in inside
    )
    with patch.object(json_way, "ALONE", alone):
        events, rejected, _ = read(as_text, DOCKER)
        expected, refused, _ = read(as_object, plain)
    assert [{**one, "rest": None} for one in events] == [{**one, "rest": None} for one in expected]
    assert [(one["source_line"], one["detail"]) for one in rejected] == [
        (one["source_line"], one["detail"]) for one in refused
    ]


def test_column_may_come_from_a_typed_record_and_from_its_text() -> None:
    """Numbers of records are read with their type, and those of pairs as texts."""
    status = Field("status", ("status", "log.status"), "integer")
    options = {"embedded": {"field": "log", "format": "kv"}}
    layout = RecordFormat("json", (status,), EventTime(("ts",), (), "epoch"), options)
    data = b'{"ts": 1, "status": 200, "log": "a=1"}\n{"ts": 2, "log": "status=404"}\n'
    events, rejected, _ = read(data, layout)
    assert ([event["status"] for event in events], rejected) == ([200, 404], [])


def test_empty_line_among_typed_texts_is_rejected() -> None:
    took = Field("took", ("log.took",), "number", "0.1")
    options = {"header": False, "names": ["ts", "log"], "embedded": {"field": "log", "format": "json"}}
    layout = RecordFormat("csv", (took,), EventTime(("ts",), (), "epoch"), options)
    _, rejected, _ = read(b'1,"{""took"": 1.5}"\n\n2,"{""took"": 9e300}"\n', layout)
    assert [(row["reason"], row["detail"]) for row in rejected] == [
        ("empty", None),
        ("out_of_range", "out of range: 9e300; expected at most 2**50 steps of 0.1"),
    ]
