"""Ledgers of random partitions, in Arrow arrays and in Python objects, and the stages that they belong to."""

from collections.abc import Mapping, Sequence

import pyarrow as pa
from hypothesis import strategies as st

from tests.support.memory_lake import at
from transom.core.intervals import UNKNOWN_HOUR
from transom.core.partitions import EMPTY_DIGEST, PartitionKey, PartitionState
from transom.core.reasons import Reason
from transom.ledger.columnar_state import StoredPartitions, state_row
from transom.ledger.freshness import Freshness
from transom.ledger.snapshot import LedgerSnapshot
from transom.ledger.stage import BlockOutput, InputRange, Stage, TableStep
from transom.storage.tables import Table

SCHEMA = Table.load("ledger").arrow_schema()
EVENTS = ("ingest", "events", "events")
SERIES = [
    EVENTS,
    ("sum", "one", "state"),
    ("sum", "one", "views"),
    ("sum", "two", "views"),
]
TABLE = Table("state", {"block": "string", "hour": "timestamp"}, ("hour",), frozenset(), state=True)
STEPS = tuple(
    TableStep(
        table,
        {
            block: BlockOutput(
                (InputRange(*EVENTS, 2, 1), *more, InputRange(*EVENTS, 5, -5)),
                "s",
                (),
                ((at(3), "before 3"), (at(7), "before 7")),
            )
            for block in blocks
        },
        lambda request: None,  # type: ignore[arg-type, return-value]
    )
    for table, blocks, more in (
        (TABLE, ("one",), (InputRange("sum", "one", "state", 2, -1),)),
        (Table("views", TABLE.columns, ("hour",), frozenset()), ("one", "two"),
         (InputRange("sum", "one", "state", back_of=lambda hour: hour.hour % 3 - 1),)),
    )
)  # fmt: skip
STAGE = Stage("sum", 3, STEPS)
HOURS = st.one_of(st.integers(0, 9).map(at), st.just(UNKNOWN_HOUR))
NODES = st.builds(lambda series, hour: PartitionKey(*series, hour), st.sampled_from(SERIES), HOURS)
CAUSES = st.sampled_from([(), (Reason("earlier", "e"),), (Reason("check", "c", "c"), Reason("earlier", "e"))])
ENTRIES = st.builds(
    PartitionState,
    st.sampled_from(["writing", "published", "quarantined", "blocked", "expired", "damaged", "published"]),
    st.sampled_from(["a", "a 1", "ab"]),
    st.booleans(),
    st.sampled_from([EMPTY_DIGEST, "1:1", "2:2"]),
    st.sampled_from([None, {}, {"specification": "x"}, {"previous_version": "3", "previous_run": "z"}]),
    st.integers(0, 2),
    st.sampled_from([None, "why"]),
    st.booleans(),
    CAUSES,
)
BOOKS = st.dictionaries(NODES, ENTRIES, max_size=30)
CHANGES = st.dictionaries(NODES, st.none() | ENTRIES, max_size=8)


def stored(entries: Mapping[PartitionKey, PartitionState]) -> LedgerSnapshot:
    rows = pa.Table.from_pylist([state_row(node, entry) for node, entry in entries.items()], schema=SCHEMA)
    return LedgerSnapshot({}, stored=StoredPartitions(rows))


def fresh(
    entries: Mapping[PartitionKey, PartitionState], stages: Sequence[Stage] = (STAGE,)
) -> dict[PartitionKey, PartitionState]:
    """Return the state with the inputs from which partitions of the stage would be computed."""
    snapshot = LedgerSnapshot(entries)
    for step in (step for stage in stages for step in stage.steps):
        freshness = Freshness(snapshot, stages, ())
        computed = {
            node: PartitionState(
                **{**vars(entry), "input_hashes": freshness.recorded_inputs(node, entry.status)}
            )
            for node, entry in snapshot.items()
            if node.table == step.table.name and node.hour != UNKNOWN_HOUR
        }
        snapshot = snapshot.updated(computed)
    return dict(snapshot)
