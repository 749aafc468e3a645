"""Freshness by arrays equals freshness by plain loops, for any history."""

from datetime import datetime

from hypothesis import given
from hypothesis import strategies as st

from tests.support.drawn_ledgers import ENTRIES, EVENTS, HOURS, SERIES, STAGE, TABLE, fresh, stored
from tests.support.freshness_reference import PlainFreshness
from tests.support.memory_lake import at
from transom.core.hour_sets import HourSet
from transom.core.intervals import UNKNOWN_HOUR
from transom.core.partitions import EXTERNAL_STAGE, PartitionKey, PartitionState, TableKey
from transom.ledger.check import Check
from transom.ledger.freshness import Freshness
from transom.ledger.snapshot import LedgerSnapshot
from transom.ledger.stage import BlockOutput, InputRange, Stage, TableStep
from transom.ledger.waivers import Waiver
from transom.storage.tables import Table

OUTSIDE: TableKey = (EXTERNAL_STAGE, "sites", "sites")
PEAKS: TableKey = ("top", "one", "peaks")
PEAK_READS = (
    InputRange("sum", "two", "views", 1, 1),
    InputRange(*PEAKS, 3, -1),
    InputRange("sum", "one", "state", 0, 0, requested=True),
    InputRange(*OUTSIDE, 1),
)
TOP = Stage(
    "top",
    2,
    (
        TableStep(
            Table("peaks", TABLE.columns, ("hour",), frozenset()),
            {"one": BlockOutput(PEAK_READS, "p", (), ((at(4), "q"), (at(9), "r")))},
            checks=(Check("few", "n", "incomplete", 1),),
        ),
    ),
)
GONE: TableKey = ("top", "gone", "peaks")
TABLES = [*SERIES, PEAKS]
KEYS = st.builds(lambda table, hour: PartitionKey(*table, hour), st.sampled_from([*TABLES, GONE]), HOURS)
STATES = st.dictionaries(KEYS, ENTRIES, max_size=8)
GOOD = st.builds(PartitionState, st.just("published"), st.just("a"), digest=st.sampled_from(["0:0", "1:1"]))
COMPUTED = st.sets(st.integers(0, 14), max_size=10).flatmap(
    lambda hours: st.fixed_dictionaries(
        {PartitionKey(*table, at(n)): GOOD for table in TABLES for n in sorted(hours)}
    )
)
WAIVERS = st.lists(st.builds(Waiver, HOURS, st.just("top"), st.just("few"), st.just(0), st.just("ops"),
                             st.just("known")), max_size=2)  # fmt: skip


class Source:
    """Inputs of the source stage; some hours have others now."""

    def __init__(self, changed: set[datetime]) -> None:
        self._changed = changed

    def expected(self, hour: datetime) -> dict[str, str]:
        return {"specification": "y" if hour in self._changed else "x"}

    def unchanged_hours(self, snapshot: LedgerSnapshot, /) -> HourSet:
        return snapshot.recorded_as(*EVENTS, {"specification": "x"}).minus(HourSet.of(self._changed))


@given(
    COMPUTED, STATES, st.dictionaries(KEYS, st.none() | ENTRIES, max_size=4), WAIVERS,
    st.none() | st.sets(HOURS, max_size=2), st.sets(st.integers(0, 9)), st.booleans(),
)  # fmt: skip
def test_arrays_equal_plain_loops(
    computed: dict[PartitionKey, PartitionState],
    entries: dict[PartitionKey, PartitionState],
    changes: dict[PartitionKey, PartitionState | None],
    waivers: list[Waiver],
    changed: set[datetime] | None,
    outside: set[int],
    in_columns: bool,
) -> None:
    states = fresh({**computed, **entries}, (STAGE, TOP))
    if changed is not None:
        good = {key for key in computed if key.series == EVENTS and key not in entries}
        states |= {key: PartitionState("published", "a", digest=states[key].digest,
                                       input_hashes={"specification": "x"}) for key in good}  # fmt: skip
    snapshot = stored(states) if in_columns else LedgerSnapshot(states)
    external = {OUTSIDE: {at(n): PartitionState("published", "", digest=str(n % 3)) for n in outside}}
    source = None if changed is None else Source(changed)
    for ledger in (snapshot, snapshot.updated(changes), snapshot.with_external(external)):
        arrays, plain = (kind(ledger, (STAGE, TOP), waivers, source) for kind in (Freshness, PlainFreshness))
        for table in TABLES[1:]:
            assert arrays.outdated_hours(*table) == plain.outdated_hours(*table)
        for stage in ("ingest", "sum", "top"):
            assert list(arrays.stale(stage).items()) == list(plain.stale(stage).items())
        for table in [*TABLES, GONE]:
            for hour in (*map(at, range(16)), UNKNOWN_HOUR):
                assert arrays.root(PartitionKey(*table, hour)) == plain.root(PartitionKey(*table, hour))


def test_a_history_of_which_nothing_is_stale_is_fresh() -> None:
    keys = [PartitionKey(*table, at(n)) for table in TABLES for n in range(50)]
    states = fresh(dict.fromkeys(keys, PartitionState("published", "a", digest="1:1")), (STAGE, TOP))
    freshness = Freshness(stored(states), (STAGE, TOP), ())
    assert [freshness.stale(stage) for stage in ("ingest", "sum", "top")] == [{}, {}, {}]
