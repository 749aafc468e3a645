"""A lake in memory with a toy stage of three steps, one of which reads its own earlier hours."""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from tests.support.event_lake import EventLake
from tests.support.memory_lake import Row, Rows
from transom.core.intervals import HOUR
from transom.engine.run_outcome import Outcome
from transom.ledger.check import Check
from transom.ledger.stage import BlockOutput, BlockTask, InputRange, Stage, StepRequest, StepResult, TableStep
from transom.storage.tables import Table

BACK = {"one": 2, "two": 3}
"""How far the chain of each block reaches."""


@dataclass(frozen=True)
class Toy:
    """A stage of three steps, each of which reads the previous one.

    `sums`, state: the sum of the last four hours of events.
    `chain`: at most half of the sum of its own earlier hours, and this hour's sum, so that a change dies out;
    for `two` with the share of incomplete input.
    `views`: the values of the chain in some hours.

    Attributes:
        shape: a number that changes what is computed.
        most: a value above it is quarantined.
        views: maximum number of hours back that `views` reads; it differs by hour, and some hours read none.
        computed: table, block and hour of everything computed.
        passes: hours that were computed together.
    """

    shape: int = 0
    most: int = 30
    views: int = 5
    computed: list[tuple[str, str, datetime]] = field(default_factory=list, compare=False)
    passes: list[tuple[str, str, list[datetime]]] = field(default_factory=list, compare=False)

    def stage(self) -> Stage:
        few = Check("few", "value", "incomplete", at_least=2)
        count = Check("many", "value", "error", at_most=self.most)
        return Stage(
            "toy",
            1,
            (
                self._step("sums", self._sums, InputRange("ingest", "events", "events", back=3)),
                self._step(
                    "chain", self._chain, InputRange("toy", "", "chain", -1, -1),
                    InputRange("toy", "", "sums", back=1),
                    checks=(few, count),
                ),
                self._step("views", self._views, InputRange("toy", "", "chain", back_of=self._back_of_views)),
            ),
        )  # fmt: skip

    def _step(
        self,
        name: str,
        compute: Callable[[StepRequest], Iterator[tuple[str, Row]]],
        *reads: InputRange,
        checks: tuple[Check, ...] = (),
    ) -> TableStep:
        kinds = {"block": "string", "hour": "timestamp", "value": "bigint"}
        table = Table(name, kinds, ("hour",), frozenset(), state=name != "views")
        parts = {
            block: BlockOutput(
                tuple(replace(r, block=r.block or block, back=back if r.back < 0 else r.back) for r in reads),
                str(self.shape),
                ("hour", "value"),
            )
            for block, back in BACK.items()
        }

        def computed(request: StepRequest) -> StepResult:
            rows: dict[str, Rows] = {block: Rows() for block in request.targets}
            for block, row in compute(request):
                rows[block].append(row)
            for block, hours in request.targets.items():
                assert list(hours) == sorted(hours)
                self.computed.extend((name, block, hour) for hour in hours)
                self.passes.append((name, block, list(hours)))
            return StepResult([BlockTask(block, frame) for block, frame in rows.items()])

        return TableStep(table, parts, computed, checks)

    def _sums(self, request: StepRequest) -> Iterator[tuple[str, Row]]:
        for block, hours in request.targets.items():
            for hour in hours:
                parts = [self._events(request, hour - n * HOUR) for n in (3, 2, 1, 0)]
                if any(parts):
                    yield block, {"hour": hour, "value": sum(parts) + self.shape, "parts": tuple(parts)}

    def _events(self, request: StepRequest, hour: datetime) -> int:
        # An hour that is not requested is empty, even if files of other hours have rows there.
        selected = request.rows["events", "events"].keys() & {hour}
        return sum(row["value"] for row in request.pins.read("events", selected))

    def _chain(self, request: StepRequest) -> Iterator[tuple[str, Row]]:
        for block, hours in request.targets.items():
            reach = [timedelta(hours=n) for n in range(1, BACK[block] + 1)]
            read = {hour - back for hour in hours for back in reach} - set(hours)
            own = _values(request, "chain", block, read, "value")
            sums = _values(request, "sums", block, {h - n * HOUR for h in hours for n in (0, 1)}, "parts")
            for hour in hours:
                now = sums.get(hour, (0,))[-1] + sums.get(hour - HOUR, (0,))[-1] // 3
                value = max(own.get(hour - back, 0) for back in reach) // 2 + now
                if value:
                    own[hour] = value
                    row = {"hour": hour, "value": value}
                    if block == "two":
                        row["lacks"] = sum(hour - n * HOUR in request.incomplete[block] for n in (0, 1))
                    yield block, row

    def _back_of_views(self, hour: datetime) -> int:
        return -1 if self.views and hour.hour % 4 == 3 else self.views - hour.hour % 2 * (self.views // 2)

    def _views(self, request: StepRequest) -> Iterator[tuple[str, Row]]:
        for block, hours in request.targets.items():
            read = {hour: [hour - n * HOUR for n in range(self._back_of_views(hour) + 1)] for hour in hours}
            chain = _values(request, "chain", block, set().union(*read.values()), "value")
            for hour in hours:
                if value := sum(chain.get(of, 0) for of in read[hour]):
                    yield block, {"hour": hour, "value": value + self.shape}


def _values(
    request: StepRequest, table: str, block: str, hours: Collection[datetime], name: str
) -> dict[datetime, Any]:
    rows = request.pins.read(table, hours)
    return {row["hour"]: row[name] for row in rows if row["block"] == block}


class Lake(EventLake):
    """A lake in memory whose events the tests set, and a toy stage over them."""

    def __init__(self, toy: Toy) -> None:
        super().__init__()
        self.toy = toy

    def run(
        self,
        start: int,
        end: int,
        repair_window: int = 2,
        chunk: int = 100,
        retention: int | None = None,
    ) -> Outcome:
        """Run the stage over some hours, in chunks."""
        return self.refreshed(self.toy.stage(), start, end, repair_window, chunk, retention)

    def recomputed(self) -> "Lake":
        """Return a new lake with the same events, in which the stage has run once over all of them."""
        lake = Lake(replace(self.toy, computed=[], passes=[]))
        lake.take_events(self)
        lake.run(0, 100)
        return lake
