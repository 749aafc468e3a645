"""What is computed from an hour, compared with the hours that each hour reads."""

from datetime import datetime

from hypothesis import given
from hypothesis import strategies as st

from tests.ledger.test_freshness_arrays import TABLES, TOP
from tests.support.drawn_ledgers import EVENTS, STAGE
from tests.support.memory_lake import at
from transom.core.hour_sets import HourSet
from transom.core.partitions import PartitionKey
from transom.ledger.dependents import dependents_of
from transom.ledger.input_hashes import partitions_read

STAGES = (STAGE, TOP)


def plain_dependents(required: set[datetime], stage: str, hour: datetime) -> dict[str, set[datetime]]:
    """Return what `dependents_of` does, by visiting what each partition reads."""
    parts = {
        (of.name, block, step.table.name): part
        for of in STAGES
        for step in of.steps
        for block, part in step.outputs.items()
    }
    reached = {PartitionKey(*table, hour) for table in TABLES if table[0] == stage}
    reached = {key for key in reached if key.hour in required or key.series == EVENTS}
    for table, part in parts.items():
        for own in sorted(required):
            if any(read in reached for reads in part.reads for read in partitions_read(reads, own)):
                reached.add(PartitionKey(*table, own))
    dependents: dict[str, set[datetime]] = {}
    for key in reached:
        if (key.stage, key.hour) != (stage, hour) and key.series != EVENTS:
            dependents.setdefault(key.stage, set()).add(key.hour)
    return dependents


@given(st.sets(st.integers(0, 20)), st.sampled_from(["ingest", "sum", "top"]), st.integers(0, 20))
def test_dependents_are_those_that_read_the_hour(numbers: set[int], stage: str, number: int) -> None:
    required = {at(n) for n in numbers}
    hours = HourSet.of(required).numbers
    result = dependents_of(
        STAGES, hours, lambda reads: reads.spans(sorted(required), hours), [EVENTS], stage, at(number)
    )
    assert {name: set(of) for name, of in result.items()} == plain_dependents(required, stage, at(number))
