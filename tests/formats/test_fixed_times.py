"""Times of fixed width are parsed as by strptime, for any text."""

from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from transom.formats.times import APACHE, REASONS, instants, read_fixed_width

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FORMS = (APACHE, "%Y-%m-%d %H:%M:%S", "%d.%m.%Y %H%M%S", "[%Y/%b/%dT%H.%M.%S%z]", "%H:%M:%S %d %Y%m")
ODD = ("%d/%b/%y:%H:%M:%S", "%Y-%m-%d", "%Y%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M:%S%", "%Y-%b-%m-%d %H:%M:%S")
MOMENTS = st.datetimes(datetime(1899, 12, 31), datetime(2301, 1, 2))  # noqa: DTZ001 - local times are drawn
OFFSETS = st.integers(-23 * 60 - 59, 23 * 60 + 59).map(lambda minutes: timezone(timedelta(minutes=minutes)))
CHANGES = st.lists(
    st.tuples(st.integers(0, 40), st.sampled_from("0123456789 -+:/ZJanFébM\u0663")), max_size=2
)


def by_strptime(text: str, form: str) -> int | None:
    """Return microseconds since 1970 by strptime, if there is such an instant that a log may have."""
    try:
        moment = datetime.strptime(text, form)  # noqa: DTZ007 - looked at below
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        micros = (moment.astimezone(UTC) - EPOCH) // timedelta(microseconds=1)
    except (ValueError, OverflowError):
        return None
    return (
        micros
        if 0 <= micros < (datetime(2262, 1, 1, tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)
        else None
    )


@st.composite
def written(draw: st.DrawFn) -> tuple[str, list[str | None]]:
    """Draw times in a format, some with a letter or two changed, and missing ones."""
    form = draw(st.sampled_from(FORMS))
    texts: list[str | None] = []
    for moment, offset, changes in draw(st.lists(st.tuples(MOMENTS, OFFSETS, CHANGES), max_size=6)):
        letters = list(moment.replace(tzinfo=offset).strftime(form))
        for place, letter in changes:
            letters[place % len(letters)] = letter
        texts += ["".join(letters), None] if changes else ["".join(letters)]
    return form, texts


@given(written())
@example((APACHE, ["29/Feb/2024:23:59:59 +0000", "29/Feb/2023:23:59:59 +0000", "1/Mar/2024:00:00:00 +0000"]))
@example((APACHE, ["04/MAR/2024:00:00:60 +0000", "04/mar/2024:00:00:59 -2359", "04/Mar/2024:24:00:00 +0000"]))
@example((APACHE, ["04/Mar/2024:00:00:00 +2400", "00/Mar/2024:00:00:00 +0000", "04/Xyz/2024:00:00:00 +0000"]))
def test_fixed_times_equal_those_of_strptime(draws: tuple[str, list[str | None]]) -> None:
    form, texts = draws
    result, codes = instants(pa.array(texts, pa.string()), form, "UTC")
    required = [None if text is None else by_strptime(text, form) for text in texts]
    assert result.cast(pa.int64()).to_pylist() == required
    assert (codes > 0).tolist() == [
        text is not None and micros is None for text, micros in zip(texts, required, strict=True)
    ]


@pytest.mark.parametrize("form", FORMS)
def test_fixed_times_are_parsed_by_column(form: str) -> None:
    moments = [
        datetime(1999, 12, 31, 23, 59, 59, tzinfo=UTC),
        EPOCH,
        datetime(2024, 2, 29, 1, 2, 3, tzinfo=UTC),
    ]
    text = pa.array(["", *(moment.strftime(form) for moment in moments), None], pa.string()).slice(1)
    micros = np.zeros(4, dtype=np.int64)
    assert read_fixed_width(text, form, "UTC", micros).tolist() == [True, True, True, False]
    assert micros.tolist() == [*((moment - EPOCH) // timedelta(microseconds=1) for moment in moments), 0]


@pytest.mark.parametrize("form", ODD)
def test_other_formats_are_left_to_strptime(form: str) -> None:
    text = pa.array(["2024-03-04 00:00:00", "04/Mar/24:00:00:00"])
    assert not read_fixed_width(text, form, "UTC", np.zeros(2, dtype=np.int64)).any()


def test_local_times_are_left_to_their_zone() -> None:
    text = pa.array(["2024-03-31 02:30:00", "2024-03-31 03:30:00"])
    result, codes = instants(text, "%Y-%m-%d %H:%M:%S", "Europe/Berlin")
    assert result.cast(pa.int64()).to_pylist() == [None, 1711848600000000]
    assert [REASONS[code] for code in codes] == ["no_such_local_time", ""]
