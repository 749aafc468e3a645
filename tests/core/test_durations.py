import re
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from transom.core.durations import (
    Duration,
    format_duration,
    format_duration_long,
    microseconds,
    parse_duration,
)


def exactly(text: str) -> str:
    return rf"\A{re.escape(text)}\Z"


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("5 minutes", timedelta(minutes=5)),
        ("1 minute", timedelta(minutes=1)),
        ("2 min", timedelta(minutes=2)),
        ("1 h", timedelta(hours=1)),
        ("24 HOURS", timedelta(hours=24)),
        ("2 days", timedelta(days=2)),
        ("3d", timedelta(days=3)),
        ("1 week", timedelta(days=7)),
        ("1 second", timedelta(seconds=1)),
        ("90 s", timedelta(seconds=90)),
        (" 90  s ", timedelta(seconds=90)),
        ("5 ms", timedelta(milliseconds=5)),
        ("7 us", timedelta(microseconds=7)),
        ("0 seconds", timedelta(0)),
    ],
)
def test_duration_is_a_whole_number_and_a_unit(text: str, length: timedelta) -> None:
    assert parse_duration(text) == length


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("5", "must be a whole number and a unit, such as 5 minutes; got '5'"),
        ("minutes", "must be a whole number and a unit, such as 5 minutes; got 'minutes'"),
        ("", "must be a whole number and a unit, such as 5 minutes; got ''"),
        ("1.5 hours", "must be a whole number and a unit, such as 5 minutes; got '1.5 hours'"),
        ("-1 hour", "must be a whole number and a unit, such as 5 minutes; got '-1 hour'"),
        (
            "1 hour 30 minutes",
            "must be a whole number and a unit, such as 5 minutes; got '1 hour 30 minutes'",
        ),
        ("٣ hours", "must be a whole number and a unit, such as 5 minutes; got '٣ hours'"),
        ("5 minuts", "unknown unit 'minuts' in '5 minuts'; nearest: minutes"),
        ("5 Huors", "unknown unit 'Huors' in '5 Huors'; nearest: hours"),
        (
            "5 fortnights",
            "unknown unit 'fortnights' in '5 fortnights'; known: microseconds, milliseconds, seconds, "
            "minutes, hours, days, weeks",
        ),
        ("999999999999 days", "is too long; got '999999999999 days'"),
    ],
)
def test_invalid_duration_is_refused_with_rule_and_value(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=exactly(message)):
        parse_duration(text)


def test_ambiguous_unit_m_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^unknown unit 'm' in '5 m'; nearest: "):
        parse_duration("5 m")


@pytest.mark.parametrize(
    ("length", "text"),
    [
        (timedelta(0), "0 seconds"),
        (timedelta(days=1), "1 day"),
        (timedelta(days=7), "7 days"),
        (timedelta(hours=25), "25 hours"),
        (timedelta(minutes=90), "90 minutes"),
        (timedelta(seconds=1), "1 second"),
        (timedelta(milliseconds=1500), "1500 milliseconds"),
        (timedelta(microseconds=1), "1 microsecond"),
    ],
)
def test_duration_is_written_in_its_largest_whole_unit(length: timedelta, text: str) -> None:
    assert format_duration(length) == text


def test_negative_duration_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^a duration must not be negative; got -1 day, 0:00:00$"):
        format_duration(timedelta(days=-1))


@given(st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=10**6)))
def test_written_duration_reads_back_unchanged(length: timedelta) -> None:
    assert parse_duration(format_duration(length)) == length
    assert timedelta(microseconds=microseconds(length)) == length


@given(st.text())
def test_any_text_is_a_duration_or_a_value_error(text: str) -> None:
    try:
        assert parse_duration(text) >= timedelta(0)
    except ValueError as error:
        assert repr(text) in str(error)  # noqa: PT017 - either outcome is fine


class _Holder(BaseModel):
    wait: Duration


def test_field_is_text_in_the_file_and_a_timedelta_in_python() -> None:
    holder = _Holder.model_validate({"wait": "90 s"})
    assert holder.wait == timedelta(seconds=90)
    assert holder.model_dump(mode="json") == {"wait": "90 seconds"}
    assert _Holder(wait=timedelta(hours=1)).wait == timedelta(hours=1)
    schema = _Holder.model_json_schema()["properties"]["wait"]
    assert schema["type"] == "string"
    assert "minutes" in schema["pattern"]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (5, "must be a whole number and a unit, such as 5 minutes; got 5"),
        (None, "must be a whole number and a unit, such as 5 minutes; got None"),
        (timedelta(days=-1), "must not be negative; got -1 day, 0:00:00"),
    ],
)
def test_field_rejects_bare_and_negative_numbers(value: object, message: str) -> None:
    with pytest.raises(ValidationError) as error:
        _Holder.model_validate({"wait": value})
    assert str(error.value.errors()[0]["ctx"]["error"]) == message


def test_duration_is_described_in_all_its_units() -> None:
    output = {
        85 * 3600 + 1200: "3 days 13 hours 20 minutes",
        61: "1 minute 1 second",
        0: "0 seconds",
        7200: "2 hours",
    }
    assert {seconds: format_duration_long(timedelta(seconds=seconds)) for seconds in output} == output
