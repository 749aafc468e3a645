"""What the gate of frames asks: whether they keep the rules of their kind, and count what is there."""

from collections.abc import Mapping

import numpy as np

from transom.arrays.sorted_index import SortedIndex
from transom.core.exact_sums import Int64s
from transom.core.intervals import HOUR_LENGTH
from transom.engine.check_builders import built_in
from transom.features.frames.algorithm.boundaries import AggregateThreshold
from transom.features.frames.algorithm.readings import Readings
from transom.features.frames.algorithm.reference import Aggregate, Boundary, Delta
from transom.features.frames.algorithm.vectorised import FrameReports
from transom.features.frames.resolve import ResolvedFrames
from transom.ledger.check import Check
from transom.spec.stream import Stream

COUNTED, MISCOUNTED = "frames_counted", "frames_miscounted"
GROW, AWAY = "sums_grow", "values_leading_away"
INEXACT = "(`mean` IS NULL) AND (`peak` IS NOT NULL)"
"""Whether the mean of a frame with values is missing."""


def violates_rules(blocks: Mapping[str, ResolvedFrames]) -> str:
    """Return whether a frame that is reported is not what its kind and its lengths allow; null of other
    rows."""
    cases = (f"(`block` = '{name}' AND NOT ({_rules_hold(block)}))" for name, block in blocks.items())
    return f"`row_kind` != 'state' AND ({' OR '.join(cases) or 'false'})"


def _rules_hold(block: ResolvedFrames) -> str:
    framing, kind = block.framing, block.framing.kind
    rules = [f"`records` >= {framing.fewest}", f"`length` >= {framing.min_time}"]
    if framing.max_records is not None:
        rules.append(f"`records` <= {framing.max_records}")
    if framing.max_time is not None:
        rules.append(f"`length` <= greatest({framing.max_time}, {framing.every})")
    match kind:
        case Delta(apart):
            rules.append(f"`high` - `low` < {apart}")
        case Boundary(step):
            of, many = step.numerator, step.denominator
            below, above = (f"`{end}` * {many} - pmod(`{end}` * {many}, {of})" for end in ("low", "high"))
            rules.append(f"{below} = {above}")
        case Aggregate():
            rules.append(_comes_to(kind))
    return " AND ".join(rules)


def _comes_to(kind: Aggregate) -> str:
    """Return whether what a frame holds together is what it is to be."""
    p, q = kind.bound.numerator, kind.bound.denominator
    measured = {
        "count": "`records`",
        "sum": "`total`",
        "avg": f"(`total` * {q} - `records` * {p})",
        "min": "`low`",
        "max": "`high`",
    }[kind.function]
    return f"{measured} * {AggregateThreshold(kind).sign} >= {AggregateThreshold(kind).bound}"


def frame_checks(stream: Stream) -> tuple[Check, ...]:
    """Return those of open frames."""
    return (
        *built_in(stream, "frames_keep_rules", metric="frames_breaking", at_most=0),
        *built_in(stream, COUNTED, metric=MISCOUNTED, at_most=0),
        *built_in(stream, GROW, metric=AWAY, at_most=0),
    )


def moves_away_from_target(readings: Readings, block: ResolvedFrames) -> Int64s:
    """Which readings lead away from what the sum of a minimal frame is to come to."""
    kind = block.framing.kind
    if not isinstance(kind, Aggregate) or not kind.minimal or kind.function != "sum":
        return np.empty(0, dtype=np.int64)
    return np.flatnonzero(~readings.missing & (AggregateThreshold(kind).sign * readings.value < 0))


def miscounted(reports: FrameReports, readings: Readings, block: ResolvedFrames) -> Int64s:
    """Which frames have not as many readings in their hour or stretch as lie between their ends, or have one
    that does not meet the threshold.

    Args:
        reports: rows by their number.
        readings: of the same keys, those of the hours at least.
    """
    there = readings.take(~readings.missing)
    within = SortedIndex(there.key, there.time)
    # What is missing at the end is no reading, and no search finds it.
    last = np.minimum(reports.first + reports.length - block.framing.every, reports.hour + HOUR_LENGTH - 1)
    begin = np.maximum(reports.first, reports.hour) if block.period is None else reports.first
    first = within.first_after(reports.key, begin - 1)
    behind = np.maximum(within.first_after(reports.key, last), first)
    unmet = np.append(0, np.cumsum(~there.holds))
    many = behind - first
    if block.framing.begins:
        # Whatever is missing is in the frame as well: it has every turn.
        every = block.framing.every
        many = np.maximum((last - reports.first) // every - (begin - reports.first - 1) // every, 0)
    return np.flatnonzero((many != reports.new) | (unmet[behind] != unmet[first]))
