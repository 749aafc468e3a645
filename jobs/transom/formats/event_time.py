"""When each event happened: by fields of its record, or by the number of its line."""

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
"""Seconds that a field may add to a time: some thirty years."""
ADDED = f"fewer than {LONGEST_ADDED:.0f} seconds"

Taken = Callable[[Sequence[str]], pa.Array]
"""The first value that the paths have, of each line."""


def by_fields(
    layout: RecordFormat, fields: Mapping[str, pa.Array], taken: Taken, refused: Rejections
) -> tuple[pa.Array, npt.NDArray[np.int64] | None]:
    """The times that fields say; lines without one are refused (`missing_time`, `bad_time`, ...).

    Returns:
        The times, of an hour that comes twice those in the first one; and how many microseconds later each is
        if it means the second, None where none does.
    """
    time = layout.time
    text = taken(time.paths)
    if time.more:
        texts = [text, *map(taken, time.more)]
        text = pc.binary_join_element_wise(*(one.cast(pa.string()) for one in texts), " ")
    form = time.time_format
    if layout.format == "apache" and form == "iso":
        form = APACHE
    refused.add(mask(pc.is_null(text)), "missing_time", expected=_named([time.paths, *time.more], fields))
    found, bad, special = instants(text, form, time.zone)
    for reason, where in special.items():
        refused.add(where, reason, values=text, expected=SPECIAL[reason])
    expected = time_form(form)
    refused.add(bad, "bad_time", values=text, expected=expected)
    shifts = None
    if time.zone is not None and is_local(form, time.zone):
        micros = pc.fill_null(found.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
        shifts = repeats(text, micros, form, time.zone)
        shifts = shifts if shifts.any() else None
    if time.plus:
        extra = taken(time.plus)
        seconds, wrong = numbers(extra)
        refused.add(wrong, "bad_time", time.plus[0], extra, ADDED)
        extra_seconds = pc.fill_null(seconds, 0.0).to_numpy(zero_copy_only=False)
        large = ~(np.abs(extra_seconds) < LONGEST_ADDED)
        refused.add(large, "bad_time", time.plus[0], extra, ADDED)
        added, _ = rounding.steps(np.where(large, 0.0, extra_seconds), (1, 1_000_000))
        there = mask(pc.is_valid(found)) & ~large
        micros = pc.fill_null(found.cast(pa.int64()), 0).to_numpy(zero_copy_only=False) + added
        bad = there & beyond(micros)
        refused.add(bad, "bad_time", values=text, expected=expected)
        found = pa.array(micros, mask=~there | bad).cast(ARROW["timestamp"])
    return found, shifts


def by_lines(
    rule: TimeByLineNumber, start: datetime | None, lines: npt.NDArray[np.int64], refused: Rejections
) -> pa.Array:
    """The times that the numbers of the lines make; those that no log holds are refused (`bad_time`).

    Args:
        start: the start of the stretch in the file's name.

    Raises:
        ValueError: times count from the name, and nothing is said of it.
    """
    first = rule.start
    if first is None:
        if start is None:
            raise ValueError("times count from the file's name, which has none")
        first = (start - EPOCH) // timedelta(microseconds=1)
    # A step may be longer than what 64 bits hold; and of the lines that have no time, all are as the first.
    most = (LAST - first) // rule.step + 2
    micros = first + (np.minimum(lines, most) - 1) * min(rule.step, 2 * LAST)
    bad = beyond(micros)
    refused.add(bad, "bad_time", values=pa.array(lines), expected="a line whose time is from 1970 to 2261")
    return pa.array(micros, mask=bad).cast(ARROW["timestamp"])


def _named(fields_of: Sequence[Sequence[str]], fields: Mapping[str, pa.Array]) -> str:
    """The fields that a time is taken from, and where the file lacks one of them, those that it has."""
    wanted = " and ".join(" or ".join(paths) for paths in fields_of)
    if all(any(path in fields for path in paths) for paths in fields_of):
        return wanted
    return f"{wanted} among {', '.join(fields)[:200]}"
