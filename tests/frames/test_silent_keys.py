"""Frames of keys that fall silent: three hosts send a line a minute, and two of them stop."""

from collections.abc import Callable
from datetime import datetime, timedelta

from tests.support.stream_harness import StreamHarness, hour

Make = Callable[..., StreamHarness]
MINUTE = timedelta(minutes=1)

BEAT = """
name: beat
source: {path: "landing/web/%Y-%m-%d/access.%H*.log.gz", format: csv}
columns: {host: {}}
time: {column: at}
key: [host]
aggregates:
  lines: {measures: {n: count}, levels: "RANGES 1 HOUR, 5 MINUTES SLIDES 5 MINUTES, 5 MINUTES"}
frames:
  silent:
    {source: lines, kind: threshold, where: n < 1, missing: satisfies, known: 2 hours, min_length: 10 minutes,
     title: "{host} is silent for {length_s} s"}
"""
SILENT = {"a": ((10, 30), (13, 0)), "b": None, "c": ((9, 0), (10, 0))}
"""Periods in which hosts are silent."""


def at(hours: int, minutes: int = 0) -> datetime:
    return hour(hours) + minutes * MINUTE


def land(harness: StreamHarness, number: int) -> None:
    """Land the lines of an hour."""
    lines = [
        f"{at(number, minute).isoformat()},{host}"
        for minute in range(60)
        for host, silent in SILENT.items()
        if silent is None or not silent[0] <= (number, minute) < silent[1]
    ]
    harness.land(number, ["at,host", *lines])


def frames_of(harness: StreamHarness) -> list[tuple[object, ...]]:
    columns = (
        "hour",
        "host",
        "start_time",
        "last_time",
        "length_s",
        "records",
        "missing",
        "new_records",
        "state",
    )
    return sorted(tuple(row[name] for name in columns) for row in harness.rows_of("frames"))


def test_known_hosts_that_fall_silent_are_reported(make_stream: Make) -> None:
    beat = make_stream(BEAT)
    for number in range(8, 13):
        land(beat, number)
    beat.run(8, 11)
    rule = "the rule: as long as n < 1, or a reading is missing within 2 hours of the last"
    assert {finding.key: (finding.title, *finding.evidence) for finding in beat.findings()} == {
        "a": ("beat: a is silent for 1800 s", rule, "no reading since 2015-05-17T10:30:00, 6 missing so far"),
        "c": (
            "beat: c is silent for 3600 s",
            rule,
            "no reading from 2015-05-17T09:00:00 to 2015-05-17T10:00:00, 12 missing",
        ),
    }
    beat.run(11, 13)
    assert frames_of(beat) == [
        (at(9), "c", at(9), at(9, 55), 3600, 0, 12, 12, "partial"),
        (at(10), "a", at(10, 30), at(10, 55), 1800, 0, 6, 6, "partial"),
        (at(10), "c", at(9), at(9, 55), 3600, 0, 12, 0, "final"),
        (at(11), "a", at(10, 30), at(11, 55), 5400, 0, 18, 12, "partial"),
        # Two hours after its last reading, of 10:25, a is not known any more.
        (at(12), "a", at(10, 30), at(12, 20), 6900, 0, 23, 5, "final"),
    ]
    assert {finding.key: finding.start_time for finding in beat.findings()} == {"a": at(10, 30), "c": at(9)}
    beat.assert_ledger_true()
