"""Times with letters of a zone, `%Z`: each is the instant that the zone's clocks mean by it."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.stream_factories import changed, refusal
from transom.formats.times import REASONS, instants

FORM = "%Y-%m-%d %H:%M:%S.%f %Z"
ZONES = st.sampled_from(["Europe/Berlin", "America/New_York", "Asia/Kolkata", "America/Sao_Paulo", "UTC"])
MOMENTS = st.datetimes(datetime(1990, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - with the zone beside it


@given(st.lists(st.tuples(MOMENTS, ZONES)), st.sampled_from([FORM, "%a %b %d %H:%M:%S.%f %Z %Y"]))
@example([(datetime(2026, 10, 25, hour, 30, tzinfo=UTC), "Europe/Berlin") for hour in (0, 1)], FORM)
def test_time_shown_by_the_clocks_of_a_zone_reads_back_unchanged(
    draws: list[tuple[datetime, str]], form: str
) -> None:
    for moment, zone in draws:
        text = moment.astimezone(ZoneInfo(zone)).strftime(form)
        result, codes = instants(pa.array([text]), form, zone)
        assert (result.to_pylist(), codes.tolist()) == ([moment], [0])


@pytest.mark.parametrize(
    ("text", "zone", "required"),
    [
        ("2026-11-20 21:58:00.352 UTC", None, "2026-11-20T21:58:00.352"),
        ("2026-11-20 21:58:00.352 GMT", "Europe/Berlin", "2026-11-20T21:58:00.352"),
        ("2026-11-20 21:58:00.352 CET", "Europe/Berlin", "2026-11-20T20:58:00.352"),
        ("2026-11-20 21:58:00.352 CET", None, "no_zone"),
        ("2026-11-20 21:58:00.352 CET", "UTC", "no_such_zone"),
        ("2026-11-20 21:58:00.352 CEST", "Europe/Berlin", "no_such_zone"),
        ("2026-03-29 02:30:00.000 CET", "Europe/Berlin", "no_such_local_time"),
        ("2026-11-20 21:58:00.352", "Europe/Berlin", "bad_time"),
        ("2026-11-20 21:58:00.352 %Y", "Europe/Berlin", "bad_time"),
        ("2026-11-20 21:58:00.352  CET x", "Europe/Berlin", "bad_time"),
    ],
)
def test_letters_belong_to_the_zone_or_are_universal(text: str, zone: str | None, required: str) -> None:
    result, codes = instants(pa.array([text]), FORM, zone)
    reasons = [REASONS[codes[0]]]
    observed = [time.strftime("%Y-%m-%dT%H:%M:%S.%f")[:23] for time in result.to_pylist() if time] or reasons
    assert observed == [required]


@pytest.mark.parametrize("form", ["%Y-%m-%d %H:%M:%S%Z", "%Y %Z %Z", "%Y %z %Z", "%Y [%Z]"])
def test_letters_must_be_delimited(form: str) -> None:
    assert refusal(changed(time__format=form)) == (
        "app.yaml: time.format: %Z, letters of a zone such as CET, must be a word of its own, once and "
        "without %z; other letters can be written as they are, and the zone given by `zone`; "
        f"got {form!r}"
    )
