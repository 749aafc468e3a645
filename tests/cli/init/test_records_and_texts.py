"""Drafts of lists of objects, of texts with JSON, of quotes before commas, and of JSON in another shape."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.cli.init.drafted_logs import drafted, home, record, refusal
from transom.cli.arguments import UsageError
from transom.cli.log_sample import read_sample

__all__ = ["home"]
START = datetime(2024, 5, 6, 10, tzinfo=UTC)


def at(number: int, form: str = "%Y-%m-%dT%H:%M:%SZ") -> str:
    return f"{START + timedelta(seconds=37 * number):{form}}"


def nanoseconds(number: int) -> str:
    return f"{1771691706842064465 + number * 10**9}"


def order(number: int) -> dict[str, Any]:
    items = [{"sku": f"a{k}", "qty": k + 1} for k in range(number % 3 + 1)]
    return {"ts": at(number), "order": number, "customer": f"c{number % 3}", "items": items}


def log_record(number: int) -> dict[str, Any]:
    attributes = [{"key": "http.status", "value": {"intValue": "200"}}]
    return {"timeUnixNano": nanoseconds(number), "severityText": "Error", "attributes": attributes}


def drafted_text(number: int) -> str:
    return json.dumps({"level": "info", "client": f"10.0.0.{number % 5}", "took_ms": number})


def test_items_of_an_order_stay_in_the_order(tmp_path: Path) -> None:
    result = drafted(tmp_path, [json.dumps(order(n)) for n in range(20)], "a.json")
    assert (len(result.events), result.refused) == (20, [])
    assert result.events[1]["items"] == '[{"sku":"a0","qty":1},{"sku":"a1","qty":2}]'
    assert (result.column("customer")[1], result.stream.key) == ("c1", ("customer",))


def test_attributes_of_a_record_with_nanoseconds_stay_in_it(tmp_path: Path) -> None:
    result = drafted(tmp_path, [json.dumps(log_record(n)) for n in range(20)], "a.json")
    assert (result.times[1], result.refused) == ("2026-02-21T16:35:07.842", [])
    assert result.events[0]["attributes"] == '[{"key":"http.status","value":{"intValue":"200"}}]'
    assert result.stream.key == ()


def test_nested_list_records_have_columns_of_their_parents(tmp_path: Path) -> None:
    lines = []
    for n in range(9):
        scopes = [{"scope": {"name": "x"}, "logRecords": []}, {"scope": {"name": f"y{n % 2}"}}]
        scopes[1]["logRecords"] = [log_record(2 * n), log_record(2 * n + 1)]
        resource = {"attributes": [{"key": "service.name", "value": {"stringValue": f"s{n % 2}"}}]}
        lines.append(json.dumps({"resourceLogs": [{"resource": resource, "scopeLogs": scopes}]}))
    result = drafted(tmp_path, lines, "a.json")
    assert result.stream.source.options == {"records": "resourceLogs[].scopeLogs[].logRecords[]"}
    assert (len(result.events), result.refused) == (18, [])
    assert result.column("scope_name")[1:3] == ["y0", "y1"]
    assert result.column("resource_attributes")[0].startswith('[{"key":"service.name"')


def test_outer_object_is_the_event_if_both_have_times(tmp_path: Path) -> None:
    lines = [json.dumps({"time": at(n), "steps": [{"at": at(n), "n": 1}]}) for n in range(9)]
    result = drafted(tmp_path, lines, "a.json")
    assert len(result.events) == 9
    assert "?: the objects in steps[] have times, too; with the option `records`" in result.text


def test_records_with_json_messages_are_read(tmp_path: Path) -> None:
    lines = []
    for n in range(9):
        events = [{"timestamp": 1714989600000 + n, "message": drafted_text(n)}]
        lines.append(json.dumps({"owner": "12x", "logEvents": events}))
    result = drafted(tmp_path, lines, "a.json")
    assert result.stream.source.options == {
        "records": "logEvents[]", "embedded": {"field": "message", "format": "json"}
    }  # fmt: skip
    assert (result.column("owner")[0], result.column("took_ms")[8]) == ("12x", 8)


@pytest.mark.parametrize(
    ("name", "form", "fields"),
    [
        ("cri.log", "{iso} stdout F {said}", {"stream": "stdout", "tag": "F"}),
        (
            "syslog.2024-05-06.log",
            "{bsd} web1 api[77]: {said}",
            {"host": "web1", "process": "api", "pid": 77},
        ),
        ("cee.2024-05-06.log", "{bsd} web1 api[77]: @cee: {said}", {"host": "web1", "process": "api"}),
        ("rfc5424.log", "<165>1 {iso} web1 api 77 - - {said}", {"field_3": "web1"}),
        ("pairs.log", "time={iso} app=web data={said}", {"app": "web"}),
    ],
)
def test_json_in_lines_becomes_columns(
    tmp_path: Path, name: str, form: str, fields: dict[str, object]
) -> None:
    lines = [
        form.format(
            iso=at(n), bsd=at(n, "%b %e %H:%M:%S"), said="plain words" if n % 8 == 7 else drafted_text(n)
        )
        for n in range(24)
    ]
    result = drafted(tmp_path, lines, name)
    assert (len(result.events), result.refused) == (24, [])
    assert result.times[1] == "2024-05-06T10:00:37.000"
    assert result.events[0] | fields == result.events[0]
    assert (result.column("message")[7], result.column("client")[7]) == ("plain words", None)
    assert [result.column(column)[6] for column in ("level_", "client", "took_ms")] == ["info", "10.0.0.1", 6]


def test_text_before_json_is_a_message(tmp_path: Path) -> None:
    values = ("request done", "was slow", "failed at last")
    lines = [f"{at(n)} INFO {values[n % 3]} {drafted_text(n)}" for n in range(21)]
    result = drafted(tmp_path, [*lines, f"{at(22)} INFO no json here", f'{at(23)} INFO cut {{"level": "inf'])
    assert result.refused == [("bad_json", f'{at(23)} INFO cut {{"level": "inf')]
    assert result.column("took_ms")[20:] == [20, None]
    assert {row["message"].split()[-1] for row in result.events} <= {"done", "slow", "last", "here"}


def test_json_in_the_json_of_docker_is_read(tmp_path: Path) -> None:
    lines = [
        json.dumps({"log": f"{drafted_text(n)}\n" if n % 5 else "plain\n", "stream": "stdout", "time": at(n)})
        for n in range(20)
    ]
    result = drafted(tmp_path, lines, "a.json")
    assert result.stream.source.options == {"embedded": {"field": "log", "format": "json"}}
    assert (result.times[1], result.column("took_ms")[:2]) == ("2024-05-06T10:00:37.000", [None, 1])


def test_quote_followed_by_a_comma_is_read(tmp_path: Path) -> None:
    lines = [f'{at(n)} web "GET", 20{n % 2}; [x y], "a, b"; last words {n}' for n in range(9)]
    result = drafted(tmp_path, lines)
    assert (len(result.events), result.refused) == (9, [])
    values = list(result.events[1].values())
    assert values[1:5] == ["web", "GET", 201, "x y"]
    assert "a, b" in values


NGINX = (
    "{at} [error] 31#31: *17 upstream timed out (110: Connection timed out) while reading, "
    'client: 203.0.113.9, server: shop.example, request: "GET /cart HTTP/1.1", '
    'upstream: "http://10.0.3.7:8080/cart", host: "shop.example"'
)
OTHER = '{at} [warn] 32#32: *29 excess: 5 by zone "x", client: 198.51.100.4, server: , request: "GET /a b"'


def test_error_log_of_a_web_server_is_read(tmp_path: Path) -> None:
    forms = [NGINX, OTHER, "{at} [notice] 1#1: signal process started"]
    lines = [forms[n % 3].format(at=at(n, "%Y/%m/%d %H:%M:%S")) for n in range(30)]
    result = drafted(tmp_path, lines)
    assert (len(result.events), result.refused) == (30, [])
    required = ("level_", "client", "server", "request", "path", "upstream", "host")
    assert [tuple(event[name] for name in required) for event in result.events[:3]] == [
        (
            "error", "203.0.113.9", "shop.example", "GET /cart HTTP/1.1", "/cart",
            "http://10.0.3.7:8080/cart", "shop.example",
        ),
        ("warn", "198.51.100.4", None, "GET /a b", None, None, None),
        ("notice", None, None, None, None, None, None),
    ]  # fmt: skip
    assert result.column("message")[:2] == [
        "upstream timed out (110: Connection timed out) while reading", 'excess: 5 by zone "x"'
    ]  # fmt: skip


def test_error_log_of_apache_is_read(tmp_path: Path) -> None:
    forms = [
        "[{at}.123456 2024] [proxy:error] [pid 7:tid 9] (110)Connection timed out: "
        "[client 10.0.0.1:51] AH00957: no",
        "[{at}.123456 2024] [core:notice] [pid 7:tid 9] AH00094: Command line: 'httpd'",
    ]
    result = drafted(tmp_path, [forms[n % 2].format(at=at(n, "%a %b %d %H:%M:%S")) for n in range(20)])
    assert (result.times[1], result.refused) == ("2024-05-06T10:00:37.123", [])
    required = ("module", "level_", "cause", "client", "port", "code", "message")
    assert [tuple(event[name] for name in required) for event in result.events[:2]] == [
        ("proxy", "error", "(110)Connection timed out", "10.0.0.1", 51, "AH00957", "no"),
        ("core", "notice", None, None, None, "AH00094", "Command line: 'httpd'"),
    ]


def test_time_inside_a_value_of_an_audit_log_is_found(tmp_path: Path) -> None:
    lines = [
        f'type=SYSCALL msg=audit(1681160198.{n:03}:{3901 + n // 2}): syscall=59 success=yes comm="cat"'
        for n in range(20)
    ]
    result = drafted(tmp_path, lines)
    assert (result.times[1], result.refused) == ("2023-04-10T20:56:38.001", [])
    assert (result.column("serial")[3], result.column("comm")[3]) == (3902, "cat")


def test_json_in_a_csv_column_is_read(tmp_path: Path) -> None:
    quoted = [drafted_text(n).replace('"', '""') for n in range(20)]
    result = drafted(
        tmp_path, ["at,kind,body", *(f'{at(n)},k{n % 2},"{quoted[n]}"' for n in range(20))], "a.csv"
    )
    assert (result.stream.source.format, result.refused) == ("csv", [])
    assert (result.column("took_ms")[3], result.column("client")[3]) == (3, "10.0.0.3")


def test_time_may_be_in_the_json_alone(tmp_path: Path) -> None:
    lines = [f"web{n % 2} app: " + json.dumps({"ts": at(n), "n": n}) for n in range(20)]
    result = drafted(tmp_path, lines)
    assert (result.times[1], result.column("n")[1]) == ("2024-05-06T10:00:37.000", 1)


def test_one_line_of_several_megabytes_of_records_is_read(tmp_path: Path) -> None:
    records = [record(n) | {"pad": "x" * 2000} for n in range(1000)]
    actual = drafted(tmp_path, json.dumps({"Records": records}), "trail.json.gz")
    assert dict(actual.stream.source.options) == {"records": "Records[]"}
    assert (len(actual.events), actual.column("n")[-1], actual.refused) == (1000, 999, [])


def test_too_long_line_is_refused_with_advice_to_split_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "trail.json"
    file.write_text(json.dumps({"Records": [record(n) for n in range(1000)]}))
    with pytest.raises(UsageError) as error:
        read_sample(file, 1000, 5000)
    assert str(error.value) == (
        f"{file}: a line must end within 5000 bytes; the first one is longer; of JSON, make an object a "
        "line: jq -c '.Records[]' FILE > NEW"
    )


LIST = (
    "is one list of JSON, `[{...}, ...]`; transom reads an object a line. Convert it: jq -c '.[]' FILE > NEW"
)
VALUES = (
    "holds values of JSON that go over several lines; transom reads an object a line. "
    "Convert it: jq -c '.' FILE > NEW"
)


@pytest.mark.parametrize(
    ("content", "texts"),
    [
        (json.dumps([record(n) for n in range(9)]), LIST),
        (json.dumps([record(n) for n in range(9)], indent=1), LIST),
        ("[\n" + ",\n".join(json.dumps(record(n)) for n in range(9)) + "\n]\n", LIST),
        (json.dumps({"Records": [record(n) for n in range(9)]}, indent=2), VALUES),
        ("\n".join(json.dumps(record(n), indent="\t") for n in range(9)), VALUES),
        ("{}\n" + json.dumps({"a": [1, {"b": "c: [d]"}], "e": {}}, indent=2), None),
    ],
)
def test_json_of_another_shape_is_refused_with_advice(
    tmp_path: Path, content: str, texts: str | None
) -> None:
    text = refusal(tmp_path, content)
    assert (text == texts) if texts else text.startswith("has an unknown form")
