"""The work of an hourly run does not depend on the number of earlier hours."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.stream_harness import WEB, StreamHarness, hour, line
from transom.app.freshness import stale_hours
from transom.core.intervals import Interval
from transom.core.path_pattern import PathPattern
from transom.engine.gate import evaluate_gate
from transom.features.ingest.file_records import FileRecord
from transom.ledger import columnar_state as stored_nodes
from transom.storage.driver_io import TableReader

Make = Callable[..., StreamHarness]


class ReadCounter:
    """Counts what a run reads: ledger entries, rows of `files`, hours whose data files are opened, names."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.counts: dict[str, int] = {}
        # Of this entry alone, not of its neighbours.
        monkeypatch.setattr(stored_nodes, "AT_A_TIME", 1)
        monkeypatch.setattr(stored_nodes, "_state", self._counted("entries", stored_nodes._state))
        monkeypatch.setattr(FileRecord, "of_row", self._counted("files", FileRecord.of_row))
        monkeypatch.setattr(PathPattern, "match", self._counted("names", PathPattern.match))
        rows = TableReader.rows

        def opened(stored: TableReader, hours: Any) -> Any:
            self.counts["hours opened"] = self.counts.get("hours opened", 0) + len(hours)
            return rows(stored, hours)

        monkeypatch.setattr(TableReader, "rows", opened)

    def _counted(self, name: str, act: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any) -> Any:
            self.counts[name] = self.counts.get(name, 0) + 1
            return act(*arguments)

        return counted

    def of(self, act: Callable[[], object]) -> dict[str, int]:
        self.counts = {}
        act()
        return dict(self.counts)


def lake_with_history(make_stream: Make, past: int, name: str) -> StreamHarness:
    """Return a lake in which some hours have run, with two more landed."""
    computed = make_stream(WEB, name)
    for number in range(-past, 2):
        computed.land(number, [line(3600 * number + 60 * n, f"10.0.0.{n}", 100 + n) for n in range(3)])
    computed.run(-past, 0)
    return computed


def an_hour(computed: StreamHarness, number: int) -> None:
    """Run every stage of an hour, and its gate."""
    computed.ledger = type(computed.ledger)(computed.root)
    for stage in computed.stream.stages:
        computed._stage(stage, computed.context(number, number + 1))
        interval = Interval(hour(number), hour(number + 1))
        stale = stale_hours(computed.stream, computed.ledger, stage, interval)
        verdict = evaluate_gate(
            computed.ledger, stage, "web", interval, "", computed.stream.repair_window, (), stale
        )
        assert (verdict.failures, verdict.warnings) == ((), ())


@pytest.mark.full
def test_work_of_a_run_is_constant_for_any_number_of_earlier_hours(
    make_stream: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    observed = []
    for past in (80, 160):
        computed = lake_with_history(make_stream, past, f"after-{past}")
        # The first run of such a lake copies the known state of its files.
        an_hour(computed, 0)
        with monkeypatch.context() as patch:
            observed.append(ReadCounter(patch).of(lambda computed=computed: an_hour(computed, 1)))
        assert len(computed.rows_of("files")) == past + 2
    assert observed[0] == observed[1]
    assert set(observed[0]) == {"entries", "files", "names", "hours opened"}
    assert all(observed[0].values())
