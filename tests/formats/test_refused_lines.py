"""The reasons for rejected lines, with their texts."""

import json
from datetime import UTC, datetime

import pytest

from tests.formats.some_formats import (
    APACHE,
    CALLS,
    CSV,
    JSON,
    KV,
    RECORDS,
    REGEX,
    W3C,
    ZEEK,
    good_lines,
    heads,
    read,
)
from transom.formats.json.lines import json_error_reason
from transom.formats.record_format import EventTime, RecordFormat, Span


@pytest.mark.parametrize(
    ("layout", "line", "reason"),
    [
        (APACHE, "", "empty"),
        (APACHE, "junk", "no_match"),
        (APACHE, b"\xff\xfe", "not_utf8"),
        (APACHE, "x" * (2**20 + 1), "line_too_long"),
        (APACHE, good_lines["apache"].replace("May", "Mai"), "bad_time"),
        (APACHE, good_lines["apache"].replace(" 12 ", f" {2**60} "), "out_of_range"),
        (JSON, "[1]", "not_an_object"),
        (JSON, '{"ts": 1', "bad_json"),
        (JSON, '{"ts": NaN}', "bad_json"),
        (JSON, "[" * 100_000, "bad_json"),
        (JSON, '{"status": 1}', "missing_time"),
        (JSON, '{"ts": -1}', "bad_time"),
        (JSON, '{"ts": 1, "status": "many"}', "bad_type"),
        (JSON, '{"ts": 1, "ok": "perhaps"}', "bad_type"),
        (JSON, '{"ts": 1, "took": 1e300}', "out_of_range"),
        (RECORDS, '{"records": []}', "no_records"),
        (RECORDS, '{"Records": {}}', "no_records"),
        (RECORDS, "[]", "no_records"),
        (RECORDS, "{", "bad_json"),
        (RECORDS, b"\xff\xfe", "not_utf8"),
        (RECORDS, "", "empty"),
        (RECORDS, "x" * (2**24 + 1), "line_too_long"),
        (REGEX, "1", "no_match"),
        (KV, "no pair = here", "no_match"),
        (KV, 'ts=1 client="a b', "unterminated_quote"),
        (CALLS, "read 4", "no_match"),
        (CALLS, "read(4) = 5", "no_match"),
        (CALLS, 'open path="a', "unterminated_quote"),
    ],
)
def test_each_reason_has_the_line_and_its_number(
    layout: RecordFormat, line: str | bytes, reason: str
) -> None:
    raw = line.encode() if isinstance(line, str) else line
    _, rejected, _ = read(raw + b"\n", layout)
    assert [(row["source_line"], row["reason"]) for row in rejected] == [(1, reason)]
    assert rejected[0]["raw"] == raw[: 2**24].decode("utf-8", "backslashreplace")


@pytest.mark.parametrize(
    ("layout", "data", "detail"),
    [
        (CSV, b"tiem,client\n1,a\n", "missing time; expected ts among tiem, client"),
        (CSV, b"ts,client\n,a\n", "missing time; expected ts"),
        (CSV, heads["csv"] + b"1,a\n", "field count: 2; expected 5"),
        (CSV, heads["csv"] + b"soon,a,200,0.5,true\n", "bad time: soon; expected epoch, from 1970 to 2261"),
        (CSV, heads["csv"] + b"1,a,ok,0.5,true\n", "bad type: ok; expected a whole number"),
        (CSV, heads["csv"] + b"1,a,200,wet,true\n", "bad type: wet; expected a number"),
        (CSV, heads["csv"] + b"1,a,,9e14,\n", "out of range: 9e14; expected at most 2**50 steps of 0.001"),
        (JSON, b'{"tiem": 1}\n', "missing time; expected ts"),
        (APACHE, b"hello\n", "no match; expected the common or the combined log form"),
        (RECORDS, b'{"a": []}\n', "no records; expected a list at Records[]"),
        (JSON, b'{"ts": 1\n', "bad json: Expecting ',' delimiter at character 9"),
        (JSON, b'{"ts": "1\n', "bad json: Unterminated string starting at character 8"),
        (JSON, b'{"ts": "\\x"}\n', "bad json: Invalid \\escape at character 9"),
        (JSON, b'{"ts": NaN}\n', "bad json: NaN is not JSON"),
        (JSON, b"[" * 101 + b"\n", "bad json: more than 100 arrays and objects in each other"),
        (JSON, b"2024 ok\n", "bad json: Extra data at character 6"),
        (
            JSON,
            b'{"ts": 1, }\n',
            "bad json: Expecting property name enclosed in double quotes at character 11",
        ),
        (JSON, b'{"ts": [1 , ]}\n', "bad json: Expecting value at character 13"),
        (
            RECORDS,
            b"{\n",
            "bad json: Expecting property name enclosed in double quotes at character 2; expected an object "
            "a line, not one over several lines",
        ),
        (
            RECORDS,
            b'{"Records": [{"ts": 1}, {"ts" 2}]}\n',
            "bad json: Expecting ':' delimiter at character 31; expected an object a line, not one over "
            "several lines",
        ),
        (REGEX, b"hello\n", "no match: left over: nothing; expected a blank"),
        (KV, b"hello\n", "no match; expected a line with name=value in it"),
        (CALLS, b"=> 5\n", "no match; expected name [arg=value ...] [=> return]"),
        (
            RecordFormat("csv", (), EventTime(("day", "date"), more=(("time",),))),
            b"date,clock\n2024-01-01,12:00\n",
            "missing time; expected day or date and time among date, clock",
        ),
    ],
)  # fmt: skip
def test_rejection_names_the_expected_format(layout: RecordFormat, data: bytes, detail: str) -> None:
    _, [row], _ = read(data, layout)
    assert row["detail"] == detail


@pytest.mark.parametrize(
    ("data", "reasons"),
    [
        (b"ts,client\n1,a,b\n", ["field_count"]),
        (b'ts,client\n1,"a\n', ["unterminated_quote"]),
        (b'ts,client\n1,"a,""b"""\n', []),
    ],
)
def test_csv_records_are_lines(data: bytes, reasons: list[str]) -> None:
    events, rejected, summary = read(data, CSV)
    assert [row["reason"] for row in rejected] == reasons
    assert summary.header_lines == 1
    assert [event["client"] for event in events] == ([] if reasons else ['a,"b"'])


def test_zeek_header_inside_a_file_applies_from_there() -> None:
    data = (
        b"1\ta\n#separator \\x09\n#unset_field\t-\n#fields\tts\tclient\n1\ta\n2\t-\n"
        b"#fields\tclient\tts\nb\t3\n3\t(empty)\tx\n"
    )
    events, rejected, summary = read(data, ZEEK)
    assert [(event["source_line"], event["client"]) for event in events] == [(5, "a"), (6, None), (8, "b")]
    assert [(row["source_line"], row["reason"]) for row in rejected] == [(1, "no_header"), (9, "field_count")]
    assert summary.header_lines == 4
    assert summary.columns == ("client", "ts")


def test_w3c_header_lines_may_be_anywhere_and_name_the_following_fields() -> None:
    data = (
        b"1 a\n#Software: x\n#Fields: ts client\n#Date: 2024-05-01\n1 a\n2 b c\n\n"
        b'#Fields: client\tts\nb 3\n#Remark\n"b d" 4\n'
    )
    events, rejected, summary = read(data, W3C)
    assert [(event["source_line"], event["client"]) for event in events] == [(5, "a"), (9, "b"), (11, "b d")]
    assert [(row["source_line"], row["reason"]) for row in rejected] == [
        (1, "no_header"), (6, "field_count"), (7, "empty"),
    ]  # fmt: skip
    assert (summary.header_lines, summary.columns) == (5, ("client", "ts"))


def test_time_may_come_from_a_capture_and_a_field() -> None:
    time = EventTime(("year",), (), "%Y %b %d %H:%M:%S", "UTC", (("ts",),))
    layout = RecordFormat("csv", (), time, {"header": False, "names": ["ts", "year"]})
    # A field with the capture's name is ignored.
    data = b"Nov  2 06:55:22,1999\nFeb 29 00:00:00,2024\n"
    events, rejected, _ = read(data, layout, captures={"year": "2023"})
    assert [event["event_time"] for event in events] == [datetime(2023, 11, 2, 6, 55, 22, tzinfo=UTC)]
    assert [row["detail"] for row in rejected] == [
        "bad time: 2023 Feb 29 00:00:00; expected %Y %b %d %H:%M:%S, from 1970 to 2261"
    ]


def test_rows_outside_the_time_range_of_the_file_are_rejected() -> None:
    span = Span(datetime(2015, 5, 17, 10, tzinfo=UTC), datetime(2015, 5, 17, 11, tzinfo=UTC))
    lines = [good_lines["apache"].replace("10:05:03", time) for time in ("09:59:59", "10:00:00", "11:00:00")]
    events, rejected, _ = read("\n".join(lines).encode(), APACHE, span=span)
    assert [event["source_line"] for event in events] == [2]
    assert [(row["source_line"], row["reason"]) for row in rejected] == [
        (1, "outside_holds"),
        (3, "outside_holds"),
    ]


@pytest.mark.parametrize(
    ("local", "expected"),
    [
        ("2024-03-31 02:30:00", "no_such_local_time"),
        ("2024-10-27 02:30:00", datetime(2024, 10, 27, 0, 30, tzinfo=UTC)),
        ("2024-07-01 12:00:00", datetime(2024, 7, 1, 10, tzinfo=UTC)),
    ],
)
def test_local_times_skipped_or_repeated_by_a_clock_change_are_resolved(local: str, expected: object) -> None:
    layout = RecordFormat(
        "csv", (), EventTime(("ts",), (), "iso", "Europe/Berlin"), {"header": False, "names": ["ts"]}
    )
    events, rejected, _ = read(local.encode(), layout)
    assert [event["event_time"] for event in events] + [row["reason"] for row in rejected] == [expected]
    naive = RecordFormat("csv", (), EventTime(("ts",)), {"header": False, "names": ["ts"]})
    assert [row["reason"] for row in read(local.encode(), naive)[1]] == ["no_zone"]


@pytest.mark.parametrize(
    ("later", "text", "earlier"),
    [
        ("object", '{"ts": 1, }', "Expecting property name enclosed in double quotes at character 11"),
        ("array", '{"ts": [1 , ]}', "Expecting value at character 13"),
    ],
)
def test_reasons_are_equal_in_every_python(later: str, text: str, earlier: str) -> None:
    place = text.rindex(",")
    error = json.JSONDecodeError(f"Illegal trailing comma before end of {later}", text, place)
    assert json_error_reason(error) == earlier
