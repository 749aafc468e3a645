"""Shared parts of the contract tests of sketches: items as bytes, rows, histories with a gap."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from typing import Any

from tests.promise.test_promise import assert_equal
from tests.support.stream_harness import StreamHarness, hour
from transom.findings.from_ledger import Finding

Event = dict[str, Any]
STREAM = """
name: web
preset: apache/combined
repair_window: 1 hour  # a longer gap between requested hours stays one
source: {path: "landing/web/%Y-%m-%d/access.%H*.log.gz"}
key: [client]
"""
MICROS = 10**6
HOUR = 3600 * MICROS
Check = Callable[[StreamHarness, Sequence[int]], None]
"""Checks the rows of requested hours, by their numbers."""


def micros(moment: datetime) -> int:
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def bytes_of(values: Sequence[object]) -> bytes:
    texts = [str(value).encode() for value in values]
    if len(texts) == 1:
        return texts[0]
    return b"".join(len(text).to_bytes(8, "little") + text for text in texts)


def texts_of(item: bytes, columns: Sequence[str]) -> list[bytes]:
    """Return the text of each column of an item; items with equal counts are ranked by these texts."""
    if len(columns) == 1:
        return [item]
    texts = []
    while item:
        end = 8 + int.from_bytes(item[:8], "little")
        texts.append(item[8:end])
        item = item[end:]
    return texts


def item_rows(
    harness: StreamHarness, table: str, block: str, item: Iterable[str]
) -> Iterator[tuple[Event, Event]]:
    """Return the rows of a table by item, end of the window, whether it is watched, and its change."""
    for row in harness.rows_of(table):
        if row["block"] == block:
            end, change = micros(row["window_end"]), row["change"]
            assert micros(row["hour"]) == end - HOUR
            assert row["state"] == {"left": "final", None: None}.get(change, "partial")
            of_item = bytes_of([row[column] for column in item])
            yield {"item": of_item, "end": end, "change": change, "watched": row["watched"]}, row


def blocks_as_expected(
    harness: StreamHarness,
    rows_of: Callable[[StreamHarness, str], Iterable[Event]],
    expected: Callable[[StreamHarness, str, Sequence[Event], Sequence[int]], Iterable[Event]],
    blocks: Iterable[str],
    requested: Sequence[int],
) -> Iterator[tuple[str, list[Event]]]:
    """Check the rows of each block in requested hours against the expected ones, and yield them."""
    hours = [micros(hour(number)) for number in requested]
    events = [event for event in harness.rows_of("events") if micros(event["hour"]) in hours]
    for name in blocks:
        rows, by_item = [*rows_of(harness, name)], itemgetter("end", "item")
        assert sorted(rows, key=by_item) == sorted(expected(harness, name, events, hours), key=by_item), name
        yield name, rows


def run_once(day: StreamHarness, log: Sequence[list[str]], check: Check) -> None:
    """Run all hours at once, and check each."""
    for number, lines in enumerate(log):
        day.land(number, lines)
    day.run(0, len(log))
    check(day, range(len(log)))


def findings_of_spells(whole: StreamHarness, table: str, kind: str, blocks: set[str]) -> list[Finding]:
    """Return the findings of a kind: one for each spell of the blocks that have findings."""
    stays = {row["spell_id"] for row in whole.rows_of(table) if row["block"] in blocks} - {None}
    findings = [finding for finding in whole.findings() if finding.kind == kind]
    assert len(findings) == len(stays) > 3
    assert {finding.block for finding in findings} == blocks
    return findings


def live(
    actual: StreamHarness,
    whole: StreamHarness,
    log: Sequence[list[str]],
    late: Mapping[int, list[str]],
    early: Sequence[tuple[int, int]],
    later: Sequence[tuple[int, int]],
    check: Check,
) -> None:
    """Compare a lake with a history of several runs with a lake of one run, and check each hour.

    Args:
        late: lines of hours that arrive after the first runs.
        early: the hours of the first runs, which may leave a gap.
        later: the hours of the runs after the late lines.
    """
    for number, lines in enumerate(log):
        actual.land(number, [one for one in lines if one not in late.get(number, ())])
    for begin, end in early:
        actual.run(begin, end)
    check(actual, [number for begin, end in early for number in range(begin, end)])
    for number, lines in late.items():
        actual.land(number, lines, ".late")
    for begin, end in later:
        actual.run(begin, end)
    whole.run(0, len(log))
    assert_equal(actual, whole)
    actual.assert_ledger_true()
    check(whole, range(len(log)))
