"""Records in nested lists of a line, with the values around them."""

import json
from typing import Any

import pytest

from tests.formats.some_formats import read
from transom.formats.json import records as json_records
from transom.formats.record_format import EventTime, Field, RecordFormat

NESTED = RecordFormat(
    "json",
    (
        Field("severity", ("severityText",)),
        Field("attributes", ("attributes",)),
        Field("resource", ("$.resourceLogs[].resource.attributes",)),
        Field("scope", ("$.resourceLogs[].scopeLogs[].scope.name",)),
        Field("sent", ("$.sent",), "integer"),
    ),
    EventTime(("timeUnixNano",), (), "epoch_ns"),
    {"records": "resourceLogs[].scopeLogs[].logRecords[]"},
)


def record(number: int) -> dict[str, Any]:
    return {
        "timeUnixNano": f"177169170684206446{number}", "severityText": f"s{number}",
        "attributes": [{"key": "n", "value": {"intValue": "2"}}],
    }  # fmt: skip


def line(*resources: object, **more: object) -> bytes:
    return json.dumps({"resourceLogs": list(resources)} | more).encode() + b"\n"


def resource(name: str, *scopes: object) -> dict[str, object]:
    # Values from around the list follow it.
    return {"scopeLogs": list(scopes), "resource": {"attributes": [{"service.name": name}]}}


def test_records_in_nested_lists_have_the_values_around_them() -> None:
    data = line(
        resource("a", {"scope": {"name": "x"}, "logRecords": []}, {"logRecords": [record(1), record(2)]}),
        resource("b", {"logRecords": [record(3)], "scope": {"name": "y"}}),
        resource("c"),
        sent=7,
    )
    events, rejected, summary = read(data, NESTED)
    assert rejected == []
    assert [
        (one["severity"], one["resource"], one["scope"], one["sent"], one["source_line"]) for one in events
    ] == [
        ("s1", '[{"service.name":"a"}]', None, 7, 1),
        ("s2", '[{"service.name":"a"}]', None, 7, 2),
        ("s3", '[{"service.name":"b"}]', "y", 7, 3),
    ]
    assert events[0]["attributes"] == '[{"key":"n","value":{"intValue":"2"}}]'
    assert summary.unknown == ()


@pytest.mark.parametrize(
    ("data", "detail"),
    [
        (line({"scopeLogs": {}}), "no records: resourceLogs[0].scopeLogs is an object"),
        (
            line(resource("a"), {"scopeLogs": [{"logRecords": 5}]}),
            "no records: resourceLogs[1].scopeLogs[0].logRecords is a number",
        ),
        (line(resource("a"), "b"), "no records: resourceLogs[1] is a text"),
        (b'{"resourceLogs": {"scopeLogs": []}}\n', "no records: resourceLogs is an object"),
        # No object has a list of that name, as with a misspelt path.
        (line({"scopelogs": [{"logRecords": [1]}]}), "no records"),
        (line({"scopeLogs": None}), "no records"),
        (b"{}\n", "no records"),
    ],
)  # fmt: skip
def test_other_value_in_place_of_a_list_rejects_the_line_with_its_path(data: bytes, detail: str) -> None:
    events, rejected, _ = read(data + line(resource("a", {"logRecords": [record(1)]})), NESTED)
    assert [one["source_line"] for one in events] == [2]
    assert [(row["source_line"], row["reason"], row["raw"], row["detail"]) for row in rejected] == [
        (1, "no_records", data.decode()[:-1], f"{detail}; expected a list at {NESTED.options['records']}")
    ]


def test_rejected_record_is_stored_as_written() -> None:
    data = line(resource("a", {"scope": {"name": "x"}, "logRecords": [{"severityText": "s"}, 5]}))
    _, rejected, _ = read(data, NESTED)
    assert [(row["reason"], row["raw"]) for row in rejected] == [
        ("missing_time", '{"severityText": "s"}'), ("not_an_object", "5"),
    ]  # fmt: skip


def test_too_many_values_around_a_record_reject_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_records, "MAX_AROUND", 90)
    data = line(resource("a" * 90, {"logRecords": [record(1)]}), resource("b", {"logRecords": [record(2)]}))
    events, rejected, _ = read(data, NESTED)
    assert [one["severity"] for one in events] == ["s2"]
    assert [row["reason"] for row in rejected] == ["line_too_long"]
    assert rejected[0]["detail"].endswith("expected at most 90 characters from around a record")
