"""Duplicate records: which one is retained depends on the records alone, not on the order of files and
runs.
"""

import gzip
from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.support.crash_states import killed_at
from tests.support.stream_harness import StreamHarness, hour

Make = Callable[..., StreamHarness]

SHIPPED = """
name: conns
source: {path: "landing/%Y-%m-%d-%H*.csv.gz", format: csv, on_conflict: replace}
repair_window: 2 hours
columns:
  uid: {missing: [""]}
  took: {type: integer, missing: [""]}
time: {column: at, format: epoch}
aggregates: {all: {key: [], measures: {n: count, t: sum(took)}, levels: RANGES 2 HOURS SLIDES 1 HOUR}}
"""
FIRST = SHIPPED + "unique: [uid]\n"
LONGEST = SHIPPED + "unique: {columns: [uid], prefer: longest took}\n"

Record = tuple[int, str, int | str]
Row = tuple[int, str | None, int | None]


def land(harness: StreamHarness, number: int, records: list[Record], name: str = "") -> None:
    """Land a file of an hour: seconds since the tests' day began, an identity, a duration."""
    path = harness.folder / f"landing/{hour(number):%Y-%m-%d-%H}{name}.csv.gz"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = ["at,uid,took", *(f"{hour(0).timestamp() + at:.0f},{uid},{took}" for at, uid, took in records)]
    path.write_bytes(gzip.compress("".join(line + "\n" for line in lines).encode()))


def rows(harness: StreamHarness, table: str) -> set[Row]:
    """Return the rows of a table: seconds since the day began, identity, duration."""
    result = (
        harness.table(table).selectExpr("unix_micros(event_time) DIV 1000000 AS at", "uid", "took").collect()
    )
    return {(int(row.at - hour(0).timestamp()), row.uid, row.took) for row in result}


def counts(harness: StreamHarness) -> dict[str, tuple[int, int]]:
    """Return for each file the number of events and of duplicates."""
    result = harness.table("files").collect()
    return {
        row.path.removeprefix("landing/2015-05-17-")[:-7]: (row.accepted, row.duplicates) for row in result
    }


MORNING: list[Record] = [
    (10, "a", 1), (5, "a", ""), (20, "", 1), (30, "", 1), (3590, "b", 1), (3600, "b", 9), (3601, "c", 3)
]  # fmt: skip
AGAIN: list[Record] = [(11, "a", 5), (12, "a", 5), (3599, "b", 0)]
ALONE: set[Row] = {(20, None, 1), (30, None, 1), (3590, "b", 1), (3600, "b", 9), (3601, "c", 3)}
"""No other record of the hour has the same identity, or none that is retained."""


@pytest.mark.full
@pytest.mark.parametrize(("text", "retained"), [(FIRST, (5, "a", None)), (LONGEST, (11, "a", 5))])
def test_one_record_of_each_identity_is_retained_and_others_return_when_it_is_gone(
    make_stream: Make, text: str, retained: Row
) -> None:
    """Slow (20 seconds each): several runs of all stages."""
    same: set[Row] = {(5, "a", None), (10, "a", 1), (11, "a", 5), (12, "a", 5)}
    day = make_stream(text)
    land(day, 0, MORNING)
    land(day, 0, AGAIN, ".again")
    day.run(0, 2)
    assert rows(day, "events") == {retained, *ALONE}
    assert rows(day, "duplicates") == {*same - {retained}, (3599, "b", 0)}
    day.assert_ledger_true()
    # The file of the retained record no longer contains it.
    land(day, 0, MORNING[2:] if text == FIRST else MORNING, "")
    land(day, 0, AGAIN if text == FIRST else AGAIN[2:], ".again")
    day.run(1, 2)
    whole = make_stream(text, "whole")
    whole.run(0, 2)
    assert whole.state() == day.state()
    remaining = (11, "a", 5) if text == FIRST else (10, "a", 1)
    assert (remaining in rows(day, "events"), remaining in rows(day, "duplicates")) == (True, False)
    day.assert_ledger_true()
    # Without a rule there are no duplicates.
    make_stream(SHIPPED).run(0, 2)
    plain = make_stream(SHIPPED, "plain")
    plain.run(0, 2)
    assert make_stream(SHIPPED).state() == plain.state()
    assert rows(plain, "duplicates") == set()


@pytest.mark.full
def test_file_outside_repair_window_with_a_repeated_record_is_counted_again(make_stream: Make) -> None:
    day = make_stream(FIRST)
    land(day, 3, [(3700, "x", 1), (3 * 3600 + 1, "y", 1)])
    day.stage("ingest", 0, 4)
    assert counts(day) == {"03": (2, 0)}
    before = day.state()
    land(day, 0, [(1, "z", 1), (3650, "x", 1)], ".late")
    # Killed after the claim, and after each table; the last step is no kill.
    for step in range(2, 7):
        with killed_at(step):
            day.stage("ingest", 0, 1)
    day.stage("ingest", 0, 1)
    assert counts(day) == {"03": (1, 1), "00.late": (2, 0)}
    day.assert_ledger_true()
    whole = make_stream(FIRST, "whole")
    whole.stage("ingest", 0, 4)
    assert day.state() == whole.state()
    changed = {name for name, entry in before.items() if day.state()[name] != entry}
    assert "ingest.events.files 2015-05-17T03:00" in changed
    assert "ingest.events.events 2015-05-17T03:00" not in changed


def test_hour_whose_name_has_content_read_again_is_not_written(
    make_stream: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Otherwise a run of few files looks at all of them.
    monkeypatch.setattr("transom.storage.packed_copy.SCATTERED", 0)
    lake = make_stream(FIRST.replace("on_conflict: replace", "expected_files: 2"))
    twice: list[Record] = [(1, "a", 1), (2, "a", 1)]
    for number in (0, 5):
        land(lake, number, twice)
        land(lake, number, [(3600 * number, "b", 1)], "b")
    lake.stage("ingest", 0, 6)
    before = lake.state()
    lake._stage("ingest", replace(lake.context(0, 1), recompute=True))
    assert lake.state() == before
