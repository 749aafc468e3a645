"""Compute frames of one sensor with the fast form, and from them table 1, fragments and estimates."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from reproduce.freeway import A_DAY, EVERY, SPEC, Flow, Sensors, times
from transom.core.exact_sums import Bools, Int64s
from transom.features.frames.algorithm.params import FrameSpec
from transom.features.frames.algorithm.readings import OpenFrameState, Readings
from transom.features.frames.algorithm.vectorised import FrameReports, advance
from transom.features.frames.resolve import frame_block_of
from transom.stream import parse

HOUR = 3_600_000_000
STEP = EVERY * 1_000_000
MORE = 100
"""A frame with an estimate has more vehicles than this."""
BOUNDS = {"short": (np.less_equal, 300), "medium": (np.greater_equal, 500), "long": (np.greater_equal, 300)}
"""Conditions of `KINDS`, on speeds in tenths."""


def framing_of(kind: str) -> FrameSpec:
    """Return the specification of frames of a kind from the stream file."""
    return frame_block_of(parse(SPEC, "freeway.yaml"), kind).framing


def one_sensor(days: int) -> Readings:
    """Return the readings of one sensor, with key 0."""
    sensors = Sensors(1, days)
    found = [
        (times(day)[there[0]], speed[0][there[0]]) for day, (speed, there) in enumerate(sensors.by_day())
    ]
    time, value = (np.concatenate(some) for some in zip(*found, strict=True))
    none = np.zeros(len(time), bool)
    return Readings(np.zeros(len(time), np.int64), time, value, none, ~none, ~none, none)


def frames_of(readings: Readings, framing: FrameSpec, holds: Bools, days: int) -> FrameReports:
    """Return the reports of a sensor's frames, hour by hour."""
    begin = int(times(0)[0])
    reports, _ = advance(
        framing, OpenFrameState.none(), replace(readings, holds=holds), begin, begin + days * 24 * HOUR
    )
    return reports


def table(reports: FrameReports, days: int) -> tuple[int, float, float]:
    """Return the number of frames, their mean number of readings, and the share of all readings in them."""
    records = reports.records[reports.final]
    return len(records), float(records.mean()), float(records.sum()) / (days * A_DAY)


def latencies(readings: Readings, holds: Bools, reports: FrameReports, hours: int | None) -> Int64s:
    """Return how long each reading of a frame waits for the first row that counts it, in microseconds.

    Args:
        hours: the number of hours between fragments; None reports final rows only.
    """
    first, end = (column[reports.final] for column in (reports.first, reports.end))
    order = np.argsort(first)
    first, end = first[order], end[order]
    frame = np.searchsorted(first, readings.time, side="right") - 1
    inside = (frame >= 0) & holds & (readings.time <= end[np.maximum(frame, 0)])
    time, frame = readings.time[inside], frame[inside]
    often = np.zeros(len(reports.hour), bool) if hours is None else (reports.hour // HOUR + 1) % hours == 0
    reported = (reports.final | often) & np.isin(reports.first, first)
    # One number orders by frame, then hour.
    width = int(reports.hour.max()) // HOUR + 2
    rows = np.sort(np.searchsorted(first, reports.first[reported]) * width + reports.hour[reported] // HOUR)
    row = rows[np.searchsorted(rows, frame * width + time // HOUR)]
    waits: Int64s = (row % width + 1) * HOUR - time
    return waits


def estimates(flow: Flow, ends: Int64s) -> tuple[np.ndarray, np.ndarray]:
    """Return the errors of mean speeds in consecutive periods, and the hour of the day in which these end.

    Args:
        ends: the index after the last reading of each period.
    """
    bounds = np.concatenate([[0], ends])
    sums = [
        np.concatenate([[0.0], np.cumsum(column)])[bounds]
        for column in (flow.vehicles, flow.total, flow.true)
    ]
    vehicles, total, true = (np.diff(column) for column in sums)
    some = vehicles > 0
    hour = (ends[some] - 1) * EVERY // 3600 % 24
    return (total[some] - true[some]) / vehicles[some], hour


def steadiness(errors: np.ndarray, hour: np.ndarray) -> Sequence[float]:
    """Return the root mean square error of each hour of the day."""
    return [float(np.sqrt(np.mean(errors[hour == h] ** 2))) for h in range(24) if (hour == h).any()]


def hundreds(flow: Flow, framing: FrameSpec) -> Int64s:
    """Return the index after the last reading of each frame with more than `MORE` vehicles."""
    many = len(flow.vehicles)
    none = np.zeros(many, bool)
    time = times(0)[0] + STEP * np.arange(many, dtype=np.int64)
    readings = Readings(np.zeros(many, np.int64), time, flow.vehicles, none, ~none, ~none, none)
    reports, _ = advance(framing, OpenFrameState.none(), readings, int(time[0]), int(time[-1]) + STEP)
    final = np.sort(reports.end[reports.final])
    found: Int64s = (final - time[0]) // STEP + 1
    return found
