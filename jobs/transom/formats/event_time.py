"""Compute the time of each event from fields of its record, or from the number of its line."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from transom.core import rounding
from transom.core.intervals import EPOCH
from transom.formats.record_format import RecordFormat, TimeByLineNumber, is_local
from transom.formats.repeated_hour import repeats
from transom.formats.times import APACHE, LAST, SPECIAL, beyond, instants, numbers, time_form
from transom.formats.typed_columns import ARROW, Rejections, mask

LONGEST_ADDED = 1e9
"""Maximum of the seconds that a field may add to a time: about thirty years."""
ADDED = f"fewer than {LONGEST_ADDED:.0f} seconds"

FieldReader = Callable[[Sequence[str]], pa.Array]
"""Returns for each line the first value at the paths."""


def by_fields(
    layout: RecordFormat, fields: Mapping[str, pa.Array], read: FieldReader, refused: Rejections
) -> tuple[pa.Array, npt.NDArray[np.int64] | None]:
    """Return the times from fields; refuse lines without one (`missing_time`, `bad_time`, ...).

    Returns:
        The times, those of a repeated hour in the first one; and the shift of each in microseconds if it
        means the second one. The shifts are None if no time is in a repeated hour.
    """
    time = layout.time
    text = read(time.paths)
    if time.more:
        texts = [text, *map(read, time.more)]
        text = pc.binary_join_element_wise(*(part.cast(pa.string()) for part in texts), " ")
    form = time.time_format
    if layout.format == "apache" and form == "iso":
        form = APACHE
    refused.add(mask(pc.is_null(text)), "missing_time", expected=_named([time.paths, *time.more], fields))
    times, bad, special = instants(text, form, time.zone)
    for reason, where in special.items():
        refused.add(where, reason, values=text, expected=SPECIAL[reason])
    expected = time_form(form)
    refused.add(bad, "bad_time", values=text, expected=expected)
    shifts = None
    if time.zone is not None and is_local(form, time.zone):
        micros = pc.fill_null(times.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
        shifts = repeats(text, micros, form, time.zone)
        shifts = shifts if shifts.any() else None
    if time.plus:
        extra = read(time.plus)
        seconds, wrong = numbers(extra)
        refused.add(wrong, "bad_time", time.plus[0], extra, ADDED)
        extra_seconds = pc.fill_null(seconds, 0.0).to_numpy(zero_copy_only=False)
        large = ~(np.abs(extra_seconds) < LONGEST_ADDED)
        refused.add(large, "bad_time", time.plus[0], extra, ADDED)
        added, _ = rounding.steps(np.where(large, 0.0, extra_seconds), (1, 1_000_000))
        valid = mask(pc.is_valid(times)) & ~large
        micros = pc.fill_null(times.cast(pa.int64()), 0).to_numpy(zero_copy_only=False) + added
        bad = valid & beyond(micros)
        refused.add(bad, "bad_time", values=text, expected=expected)
        times = pa.array(micros, mask=~valid | bad).cast(ARROW["timestamp"])
    return times, shifts


def by_lines(
    rule: TimeByLineNumber, start: datetime | None, lines: npt.NDArray[np.int64], refused: Rejections
) -> pa.Array:
    """Return the times from the numbers of the lines; refuse impossible ones (`bad_time`).

    Args:
        start: the start of the period in the file's name.

    Raises:
        ValueError: times count from the name, and `start` is None.
    """
    first = rule.start
    if first is None:
        if start is None:
            raise ValueError("times count from the file's name, which has none")
        first = (start - EPOCH) // timedelta(microseconds=1)
    # A step may exceed 64 bits. All lines after the limit are refused alike.
    line_limit = (LAST - first) // rule.step + 2
    micros = first + (np.minimum(lines, line_limit) - 1) * min(rule.step, 2 * LAST)
    bad = beyond(micros)
    refused.add(bad, "bad_time", values=pa.array(lines), expected="a line whose time is from 1970 to 2261")
    return pa.array(micros, mask=bad).cast(ARROW["timestamp"])


def _named(fields_of: Sequence[Sequence[str]], fields: Mapping[str, pa.Array]) -> str:
    """Return the fields of the time; if the file lacks one of them, also the fields that it has."""
    names = " and ".join(" or ".join(paths) for paths in fields_of)
    if all(any(path in fields for path in paths) for paths in fields_of):
        return names
    return f"{names} among {', '.join(fields)[:200]}"
