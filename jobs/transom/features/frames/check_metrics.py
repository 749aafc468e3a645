"""Metrics and filters of the checks of frames: the rules of their kind, and their numbers of readings."""

from collections.abc import Mapping

import numpy as np

from transom.arrays.sorted_index import SortedIndex
from transom.core.exact_sums import Int64s
from transom.core.intervals import HOUR_LENGTH
from transom.features.frames.algorithm.params import Aggregate, Boundary, Delta
from transom.features.frames.algorithm.readings import Readings
from transom.features.frames.algorithm.vectorised import FrameReports
from transom.features.frames.resolve import ResolvedFrames

COUNTED, MISCOUNTED = "frames_counted", "frames_miscounted"
GROW, AWAY = "sums_grow", "values_leading_away"
INEXACT = "(`mean` IS NULL) AND (`peak` IS NOT NULL)"
"""The condition, as Spark SQL, that the mean of a frame with values is missing."""


def violates_rules(blocks: Mapping[str, ResolvedFrames]) -> str:
    """Return the condition, as Spark SQL, that a reported frame violates the rules of its kind or its limits
    of length."""
    cases = (f"(`block` = '{name}' AND NOT ({_rules_hold(block)}))" for name, block in blocks.items())
    return f"`row_kind` != 'state' AND ({' OR '.join(cases) or 'false'})"


def _rules_hold(block: ResolvedFrames) -> str:
    framing = block.framing
    rules = [f"`records` >= {framing.required_records}", f"`length` >= {framing.min_time}"]
    if framing.max_records is not None:
        rules.append(f"`records` <= {framing.max_records}")
    if framing.max_time is not None:
        rules.append(f"`length` <= {max(framing.max_time, framing.every)}")
    match framing.kind:
        case Delta(below):
            rules.append(f"`high` - `low` < {below}")
        case Boundary(step):
            p, q = step.numerator, step.denominator
            low, high = (f"`{end}` * {q} - pmod(`{end}` * {q}, {p})" for end in ("low", "high"))
            rules.append(f"{low} = {high}")
        case Aggregate(function, _, bound, _) as kind:
            average = f"(`total` * {bound.denominator} - `records` * {bound.numerator})"
            columns = {"count": "`records`", "sum": "`total`", "min": "`low`", "max": "`high`"}
            rules.append(f"{columns.get(function, average)} * {kind.sign} >= {kind.min_measure}")
    return " AND ".join(rules)


def moves_away_from_target(readings: Readings, block: ResolvedFrames) -> Int64s:
    """Return the rows of the readings that move the sum of a minimal frame away from its target."""
    kind = block.framing.kind
    if not isinstance(kind, Aggregate) or not kind.minimal or kind.function != "sum":
        return np.empty(0, dtype=np.int64)
    return np.flatnonzero(~readings.missing & (kind.sign * readings.value < 0))


def miscounted(reports: FrameReports, readings: Readings, block: ResolvedFrames) -> Int64s:
    """Return the rows of the reports whose frame has wrong readings.

    Its number of readings in the hour or period differs from the number between its ends, or one of them does
    not meet the threshold.

    Args:
        reports: the reports.
        readings: the readings of the same keys, at least in all hours of the reports.
        block: the kind of frame.
    """
    present, every = readings.take(~readings.missing), block.framing.every
    index = SortedIndex(present.key, present.time)
    # A missing reading at the end is in no row, so no search finds it.
    last = np.minimum(reports.first + reports.length - every, reports.hour + HOUR_LENGTH - 1)
    begin = np.maximum(reports.first, reports.hour) if block.period is None else reports.first
    first = index.first_after(reports.key, begin - 1)
    stop = np.maximum(index.first_after(reports.key, last), first)
    unmet, count = np.append(0, np.cumsum(~present.holds)), stop - first
    if block.framing.begins:
        # A frame has every turn, with or without a reading.
        count = np.maximum((last - reports.first) // every - (begin - reports.first - 1) // every, 0)
    return np.flatnonzero((count != reports.new) | (unmet[stop] != unmet[first]))
