"""A lake in memory whose events the tests set, and in which any stage can run."""

from collections.abc import Collection, Iterable
from datetime import datetime

from tests.support.memory_lake import (
    Commits,
    MemoryLedger,
    MemoryStore,
    Rows,
    at,
    digest,
    within,
    without_spark,
)
from transom.core.intervals import HOUR, Interval
from transom.core.partitions import EMPTY_DIGEST, PartitionKey, PartitionState
from transom.engine.retention import Series
from transom.engine.runner import Outcome, run_steps
from transom.ledger.snapshot import LedgerSnapshot
from transom.ledger.stage import Stage


class EventLake:
    """A lake in memory whose events the tests set, and in which any stage can run.

    Attributes:
        outside: external values for each hour, by the name that a stage has for them.
        runs: the number of runs so far.
    """

    def __init__(self) -> None:
        self.commits = Commits()
        self.ledger, self.store = MemoryLedger(self.commits), MemoryStore(self.commits)
        self.outside: dict[str, dict[datetime, int]] = {}
        self.runs = 0

    def set_events(
        self,
        number: int,
        values: Iterable[int],
        complete: bool = True,
        quarantined: bool = False,
        requested: bool = True,
    ) -> None:
        """Let ingest publish an hour, or quarantine its new rows."""
        hour = at(number)
        node = PartitionKey("ingest", "events", "events", hour)
        rows = Rows({"block": "events", "hour": hour, "value": value} for value in values)
        before = self.ledger.snapshot().get(node)
        requested = requested or (before is not None and before.requested)
        if quarantined:
            published = before.digest if before else EMPTY_DIGEST
            entry = PartitionState(
                "quarantined",
                "ingest",
                False,
                published,
                {"of": digest(rows)},
                reason="bad",
                requested=requested,
            )
        else:
            cause = None if complete else "files_expected"
            entry = PartitionState(
                "published",
                "ingest",
                complete,
                digest(rows),
                {},
                len(rows),
                reason=cause,
                requested=requested,
            )
            held_rows = self.store.versions.setdefault("events", [Rows()])[-1]
            stay = held_rows.where(lambda row: row["hour"] != hour)
            self.store.versions["events"].append(Rows([*stay, *rows]))
        self.ledger._now = self.ledger.snapshot().updated({node: entry})

    def refreshed(
        self,
        stage: Stage,
        start: int,
        end: int,
        repair_window: int,
        chunk: int,
        retention: int | None,
        shared: Collection[Series] = (),
    ) -> Outcome:
        """Run a stage over some hours, in chunks."""
        self.runs += 1
        outcome, period = Outcome(), Interval(at(start), at(end))
        retained = None if retention is None else retention * HOUR
        with without_spark(self.outside):
            for number, part in enumerate(period.chunks(chunk * HOUR)):
                name = f"run {self.runs} {number}"
                outcome.add(
                    run_steps(
                        self.store,
                        self.ledger,
                        stage,
                        part,
                        repair_window * HOUR,
                        name,
                        (),
                        period,
                        retained,
                        shared,
                    )
                )
        return outcome

    def rows(self, node: PartitionKey) -> Rows:
        """Return the current rows of a partition."""
        rows = self.store.versions.get(node.table, [Rows()])[-1]
        own = rows.where(within({block: [node.hour] for block in (node.block, None)}))
        return Rows(sorted(own, key=repr))

    def take_events(self, other: "EventLake") -> None:
        """Copy the events and external values of another lake into this one, which is new."""
        events = {node: entry for node, entry in other.ledger.snapshot().items() if node.stage == "ingest"}
        self.ledger._now = LedgerSnapshot(events)
        self.store.versions["events"] = [other.store.versions.get("events", [Rows()])[-1]]
        self.outside = {name: dict(hours) for name, hours in other.outside.items()}
