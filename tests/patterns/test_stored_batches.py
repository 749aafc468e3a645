"""Stored rows of the hours of a pattern: the same for any split into runs, and enough for every long
batch.
"""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tests.support.pattern_factories import small
from transom.arrays.arrow import int64s
from transom.core.intervals import EPOCH, HOUR, HOUR_LENGTH
from transom.features.patterns.algorithm.batches import keep_first_and_last
from transom.features.patterns.records import PatternRecords
from transom.features.patterns.resolve import PatternBlock, block_of
from transom.features.patterns.tables_batches import batch_rows
from transom.features.patterns.work_bounds import LONGEST_BATCH
from transom.ledger.task_counters import TaskCounters
from transom.storage.tables import ARROW_TYPES
from transom.stream import parse

HOURS = 8
MINUTE = HOUR_LENGTH // 60
BATCHES = {"4 minutes": 64, "15 minutes": 60, "20 minutes": 80, "1 hour": 120}
"""Lengths of batches of level 0, and of the shortest long ones, in minutes."""
RECORDS = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 60 * HOURS - 1)), min_size=1, max_size=40)


def block(batch: str, most: int, within: str = "12 hours") -> PatternBlock:
    steps = [{"id": "a", "where": "status = 1", "times": 1}]
    return block_of(parse(small(batch=batch, within=within, max_records=most, steps=steps)), "x")


def rows_of(records: Iterable[tuple[str, int]]) -> pa.Table:
    """Return records as a task receives them from Spark."""
    users, minutes = zip(*records, strict=True)
    count = len(users)
    return pa.table(
        {
            "stored": pa.array([False] * count),
            "user": pa.array(users),
            "event_time": pa.array(np.array(minutes) * MINUTE).cast(ARROW_TYPES["timestamp"]),
            "source_id": pa.array(["f"] * count),
            "source_line": pa.array(range(count), pa.int64()),
            "step_mask": pa.array([1] * count, pa.int64()),
            "truncated_after": pa.array([False] * count),
        }
    )


def stored(events: pa.Table, of: PatternBlock, tally: TaskCounters | None = None) -> pa.Table:
    """Return the rows that the stage stores of some events."""
    schema = of.schema("batches")
    result = batch_rows(of, schema, events.to_batches(), TaskCounters() if tally is None else tally)
    return pa.Table.from_batches(result, schema).sort_by(
        [("user", "ascending"), ("source_line", "ascending")]
    )


@given(
    records=RECORDS,
    batch=st.sampled_from(sorted(BATCHES)),
    most=st.integers(1, 4),
    data=st.data(),
)
def test_stored_hours_are_equal_for_any_runs_and_contain_every_long_batch(
    records: list[tuple[str, int]], batch: str, most: int, data: st.DataObject
) -> None:
    of, tally = block(batch, most), TaskCounters()
    events = rows_of(records)
    whole = stored(events, of, tally)
    hours = int64s(events["event_time"]) // HOUR_LENGTH
    runs = np.array(data.draw(st.lists(st.integers(0, 2), min_size=HOURS, max_size=HOURS)))[hours]
    parts = [stored(events.filter(pa.array(runs == run)), of) for run in np.unique(runs)]
    together = pa.concat_tables(parts).sort_by([("user", "ascending"), ("source_line", "ascending")])
    assert together.equals(whole)
    of_time = int64s(whole["event_time"]) // HOUR_LENGTH
    assert (int64s(whole["hour"]) == of_time * HOUR_LENGTH).all()

    # Nothing is stored that no batch could need: at most 2L records of a batch's part in an hour.
    shortest = BATCHES[batch] * MINUTE
    assert of.widening.length(of.lowest) == shortest
    largest: dict[tuple[str, int, int], int] = {}
    for user, minute in records:
        part = user, minute // 60, minute * MINUTE // shortest
        largest[part] = largest.get(part, 0) + 1
    assert max(tally.maxima.values()) == min(2 * most, max(largest.values()))
    assert whole.num_rows == sum(min(2 * most, count) for count in largest.values())
    assert {name for _, name in tally.maxima} == {LONGEST_BATCH}

    retained = PatternRecords.gathered(
        whole.append_column("stored", pa.array([True] * whole.num_rows)).to_batches(), of
    )
    assert retained is not None
    places, rows = np.arange(whole.num_rows), retained.take(np.arange(whole.num_rows))
    line = int64s(retained.table["source_line"])
    for level in of.long:
        length = of.widening.length(level)
        kept = keep_first_and_last(rows, length, most)
        places, rows = places[kept.retained], kept.rows
        got: dict[tuple[str, int], list[tuple[int, bool]]] = {}
        for place, later in zip(places.tolist(), rows.cut.tolist(), strict=True):
            number, user = int(retained.time[place]) // length, retained.table["user"][place].as_py()
            got.setdefault((user, number), []).append((int(line[place]), later))
        assert got == {key: ends(some, most) for key, some in batches(records, length).items()}


@given(batch=st.sampled_from(sorted(BATCHES)), within=st.integers(1, 40), number=st.integers(0, 400_000))
def test_hour_reads_the_records_of_long_windows_that_end_in_it(batch: str, within: int, number: int) -> None:
    of = block(batch, 3, f"{within} hours")
    hour = EPOCH + number * HOUR
    read = range(number - of.reach_of_batches(hour), number + 1)
    retained = set()
    for level in of.long:
        length = of.widening.length(level)
        for end in range(number * HOUR_LENGTH + MINUTE, (number + 1) * HOUR_LENGTH + 1, MINUTE):
            if end % length == 0:
                retained |= set(range((end - 2 * length) // HOUR_LENGTH, number + 1))
    assert set(read) == retained


def batches(records: list[tuple[str, int]], length: int) -> dict[tuple[str, int], list[int]]:
    """Return the records of every batch, in order."""
    result: dict[tuple[str, int], list[int]] = {}
    for line, (user, minute) in sorted(enumerate(records), key=lambda one: (one[1][1], one[0])):
        result.setdefault((user, minute * MINUTE // length), []).append(line)
    return result


def ends(records: list[int], most: int) -> list[tuple[int, bool]]:
    """Return the first and the last L of some records, and whether more were dropped after each."""
    cut = len(records) > 2 * most
    kept = records[:most] + records[most:][-most:]
    return [(record, cut and place == most - 1) for place, record in enumerate(kept)]
