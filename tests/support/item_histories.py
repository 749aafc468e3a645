"""What the contract tests of sketches have in common: items as bytes, rows, histories with a hole."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.promise.test_promise import assert_equal
from tests.support.stream_harness import StreamHarness, hour

Event = dict[str, Any]
MICROS = 10**6
HOUR = 3600 * MICROS


def micros(moment: datetime) -> int:
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def bytes_of(values: Sequence[object]) -> bytes:
    texts = [str(value).encode() for value in values]
    if len(texts) == 1:
        return texts[0]
    return b"".join(len(text).to_bytes(8, "little") + text for text in texts)


def texts_of(item: bytes, columns: Sequence[str]) -> list[bytes]:
    """Return the text of each column of an item, by which items of as many records are ranked."""
    if len(columns) == 1:
        return [item]
    texts = []
    while item:
        end = 8 + int.from_bytes(item[:8], "little")
        texts.append(item[8:end])
        item = item[end:]
    return texts


def by_item(rows: Iterable[Event]) -> list[Event]:
    return sorted(rows, key=lambda row: (row["end"], row["item"]))


def told(
    harness: StreamHarness, table: str, block: str, item: Iterable[str]
) -> Iterator[tuple[Event, Event]]:
    """What a table tells of each item of a block: the item, the end of the window, whether it is watched, and
    what has become of it; and the whole row."""
    for row in harness.rows_of(table):
        if row["block"] == block:
            end, change = micros(row["window_end"]), row["change"]
            assert micros(row["hour"]) == end - HOUR
            assert row["state"] == {"left": "final", None: None}.get(change, "partial")
            of_item = bytes_of([row[column] for column in item])
            yield {"item": of_item, "end": end, "change": change, "watched": row["watched"]}, row


def live(
    lived: StreamHarness,
    whole: StreamHarness,
    log: Sequence[list[str]],
    late: Mapping[int, list[str]],
    early: Sequence[tuple[int, int]],
    later: Sequence[tuple[int, int]],
    check: Callable[[StreamHarness, Sequence[int]], None],
) -> None:
    """A lake that has lived, beside one run over all there is: the same in the end; each hour is checked.

    Args:
        late: lines of hours that come behind the first runs.
        early, later: the hours of runs before, which may leave a hole, and behind.
    """
    for number, lines in enumerate(log):
        lived.land(number, [one for one in lines if one not in late.get(number, ())])
    for begin, end in early:
        lived.run(begin, end)
    check(lived, [number for begin, end in early for number in range(begin, end)])
    for number, lines in late.items():
        lived.land(number, lines, ".late")
    for begin, end in later:
        lived.run(begin, end)
    whole.run(0, len(log))
    assert_equal(lived, whole)
    lived.assert_ledger_true()
    check(whole, range(len(log)))


def events_of(harness: StreamHarness, asked: Sequence[int]) -> tuple[list[Event], list[int]]:
    """The events of some hours, and these in microseconds."""
    hours = [micros(hour(number)) for number in asked]
    return [event for event in harness.rows_of("events") if micros(event["hour"]) in hours], hours
