"""Rows that depend on the set of requested hours do not depend on the order of the requests."""

from collections.abc import Callable, Sequence

import pytest

from tests.support.stream_harness import StreamHarness, line

Make = Callable[..., StreamHarness]
STREAM = """
name: web
preset: apache/combined
source: {path: "landing/web/%Y-%m-%d/access.%H*.log.gz", expected_files: 1}
key: [client]
aggregates:
  site: {measures: {n: count}, levels: RANGES 1 HOUR SLIDES 1 HOUR}
frames:
  failing: {kind: threshold, where: status >= 400, on_duplicate_time: last}
  busier: {source: site, kind: threshold, where: n > baseline,
           baseline: {value: n, shift: [1 hour], missing: zero}}
fills:
  around: {frame: failing, lag: 90 minutes, measures: {sent: sum(bytes)}}
"""


@pytest.mark.full
@pytest.mark.parametrize("order", [(1, 2, 0), (2, 0, 1)])
def test_rows_are_equal_whether_empty_hours_are_requested_before_or_after(
    make_stream: Make, order: Sequence[int]
) -> None:
    actual, whole = make_stream(STREAM, "lived"), make_stream(STREAM, "whole")
    # Hours without events come before and after.
    for number, lines in ((0, []), (1, [line(4000, status=500), line(5000)]), (2, [])):
        actual.land(number, lines)
    for first in order:
        actual.run(first, first + 1)
    for first in sorted(order):
        whole.run(first, first + 1)
    assert [row["coverage"] for row in whole.rows_of("fills")] == [1.0]
    assert {row["block"] for row in whole.rows_of("frames")} == {"failing", "busier"}
    for table in ("frames", "fills"):
        assert sorted(actual.rows_of(table), key=repr) == sorted(whole.rows_of(table), key=repr), table
    assert actual.state() == whole.state()
