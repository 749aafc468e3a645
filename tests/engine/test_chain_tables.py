"""A table that is computed from its own earlier hours, in Delta tables."""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tests.support.stream_harness import WEB, StreamHarness, hour, line
from transom.core.intervals import HOUR
from transom.engine.runner import Outcome, run_steps
from transom.ledger.check import Check
from transom.ledger.stage import BlockOutput, BlockTask, InputRange, Stage, StepRequest, StepResult, TableStep
from transom.storage.tables import Table

Make = Callable[..., StreamHarness]
REPLACED = WEB.replace("expected_files: 1", "expected_files: 1, on_conflict: replace")
REACH = 2
COLUMNS = {"block": "string", "hour": "timestamp", "value": "bigint"}


class Chained:
    """Two tables. `counts` is state: the number of records of an hour. `chain` is the sum of this hour's
    records and half of the chain of at most two hours before.
    """

    def __init__(self) -> None:
        self.computed: list[tuple[str, int]] = []

    def stage(self) -> Stage:
        number_of = Check("many", "most", "error", at_most=20)
        reads = (
            InputRange("toy", "all", "chain", back=REACH, forward=-1),
            InputRange("toy", "all", "counts"),
        )
        return Stage(
            "toy",
            1,
            (
                TableStep(
                    Table("counts", COLUMNS, ("hour",), frozenset(), state=True),
                    {"all": BlockOutput((InputRange("ingest", "events", "events"),), "", ("hour", "value"))},
                    self._counts,
                ),
                TableStep(
                    Table("chain", COLUMNS, ("hour",), frozenset(), state=True),
                    {"all": BlockOutput(reads, "", ("hour", "value"))},
                    self._chain,
                    checks=(number_of,),
                    metrics={"most": "max(value)"},
                ),
            ),
        )

    def run(self, day: StreamHarness, start: int, end: int) -> Outcome:
        self.computed.clear()
        context = day.context(start, end)
        stage = self.stage()
        day.store.create(*(step.table for step in stage.steps))
        return run_steps(day.store, day.ledger, stage, context.interval, HOUR, context.run_id)

    def _counts(self, request: StepRequest) -> StepResult:
        rows = ((hour, request.pins.read("events", [hour]).count()) for hour in request.targets["all"])
        return self._made("counts", request, rows)

    def _chain(self, request: StepRequest) -> StepResult:
        targets = list(request.targets["all"])
        reach = [n * HOUR for n in range(1, REACH + 1)]
        read = {target - back for target in targets for back in reach} - set(targets)
        own = _values(request.pins.read("chain", read))
        counts = _values(request.pins.read("counts", targets))

        def rows() -> Iterator[tuple[datetime, int]]:
            for target in targets:
                own[target] = max(own.get(target - back, 0) for back in reach) // 2 + counts.get(target, 0)
                yield target, own[target]

        return self._made("chain", request, rows())

    def _made(self, name: str, request: StepRequest, rows: Iterable[tuple[datetime, int]]) -> StepResult:
        self.computed += [(name, target.hour) for target in request.targets["all"]]
        result = [row for row in rows if row[1]]
        frame = request.pins.store.spark.createDataFrame(result, "hour timestamp, value bigint")
        return StepResult([BlockTask("all", frame)])


def _values(rows: DataFrame) -> dict[datetime, int]:
    return {row["hour"]: row["value"] for row in rows.select("hour", "value").toArrow().to_pylist()}


def lines(number: int, count: int) -> list[str]:
    return [line(3600 * number + second) for second in range(count)]


def values(day: StreamHarness) -> list[tuple[int, int]]:
    rows = day.table("chain").select(F.hour("hour"), "value").collect()
    return sorted((row[0], row[1]) for row in rows)


@pytest.mark.full
def test_chain_from_hourly_runs_equals_one_run(make_stream: Make) -> None:
    """This includes a quarantined hour, late events, and hours without rows.

    Slow (half a minute): a run of two stages for each hour.
    """
    day, toy = make_stream(REPLACED, "day"), Chained()
    for number, count in enumerate((8, 3, 0, 0, 0, 5)):
        day.land(number, lines(number, count))
    day.stage("ingest", 0, 1)
    toy.run(day, 0, 1)
    assert toy.computed == [("counts", 0), ("chain", 0)]
    for number in range(1, 6):
        day.stage("ingest", number, number + 1)
        toy.run(day, number, number + 1)
        assert toy.computed == [("counts", number), ("chain", number)]
    previous = [(0, 8), (1, 7), (2, 4), (3, 3), (4, 2), (5, 6)]
    assert values(day) == previous

    day.land(1, lines(1, 20), ".late")
    day.stage("ingest", 1, 2)
    outcome = toy.run(day, 1, 2)
    # Hours after hour 1 wait for it, as far as the run reaches; other stale hours are reported.
    assert (outcome.quarantined, outcome.blocked, outcome.published) == (1, 1, 1)
    assert {(node.table, node.hour) for node in outcome.stale} == {("chain", hour(n)) for n in (3, 4, 5)}
    assert values(day) == previous
    versions = day.store.pin(["ledger", "counts", "chain"]).versions
    toy.run(day, 1, 2)
    assert (toy.computed, day.store.pin(["ledger", "counts", "chain"]).versions) == ([], versions)

    day.land(1, lines(1, 6), ".late")
    day.stage("ingest", 0, 6)
    toy.run(day, 0, 6)
    whole = make_stream(REPLACED, "whole")
    whole.stage("ingest", 0, 6)
    Chained().run(whole, 0, 6)
    assert (day.state(), values(day)) == (whole.state(), values(whole))
