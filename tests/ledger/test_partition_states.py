"""States that the stages of an application share."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from deltalake.table import TableMerger

from transom.core.partitions import PartitionKey, PartitionState
from transom.ledger import partition_states
from transom.ledger.ledger import Ledger
from transom.storage.fencing import RunSuperseded

DAY = datetime(2015, 5, 17, tzinfo=UTC)


def key(number: int, stage: str) -> PartitionKey:
    return PartitionKey(stage, "events", "events", DAY + timedelta(hours=number))


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, int]]:
    """Count the commits that are tried, and the queries of the table."""
    counts = {"commits": 0, "queries": 0}
    execute, query = TableMerger.execute, partition_states.query

    def counting_execute(merger: TableMerger) -> Any:
        counts["commits"] += 1
        return execute(merger)

    def counting_query(table: DeltaTable, sql: str) -> Any:
        counts["queries"] += 1
        return query(table, sql)

    monkeypatch.setattr(TableMerger, "execute", counting_execute)
    monkeypatch.setattr(partition_states, "query", counting_query)
    return iter([counts])  # type: ignore[return-value]


def test_stages_at_once_neither_conflict_nor_read_the_table_again(
    tmp_path: Path, counted: Iterator[dict[str, int]]
) -> None:
    one = Ledger(str(tmp_path))
    ledgers = {"one": one, "two": Ledger(str(tmp_path), other=one)}

    def run(stage: str) -> None:
        ledger, run_id = ledgers[stage], f"run of {stage}"
        for number in range(10):
            hour = key(number, stage)
            ledger.claim(stage, [hour], run_id, ledger.snapshot([stage]))
            ledger.publish(stage, {hour: PartitionState("published", run_id)}, run_id)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(run, ledgers))
    counts = next(counted)
    assert counts == {"commits": 40, "queries": 2}
    states = {of: state.status for of, state in Ledger(str(tmp_path)).snapshot().items()}
    assert states == {key(number, stage): "published" for stage in ledgers for number in range(10)}


def test_commit_of_another_process_is_noticed_by_all_that_share(tmp_path: Path) -> None:
    one = Ledger(str(tmp_path))
    two, other_process = Ledger(str(tmp_path), other=one), Ledger(str(tmp_path))
    seen = one.snapshot(["one"])
    other_process.claim("one", [key(0, "one")], "rival")
    for ledger in (one, two):
        assert ledger.snapshot(["one"])[key(0, "one")].run_id == "rival"
        with pytest.raises(RunSuperseded, match="run rival was recorded meanwhile"):
            ledger.claim("one", [key(0, "one")], "mine", seen)
