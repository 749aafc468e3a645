"""Every stage in the lake in memory. Ingest reads small files (`tests.support.memory_ingest`). Other stages
are doubles (`tests.support.stage_doubles`).
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Self

import yaml

from tests.support.event_lake import EventLake
from tests.support.memory_ingest import Folder, landing_in_memory
from tests.support.memory_lake import Outside, Row, at, digest, without_spark
from tests.support.stage_doubles import VALUES, Double
from transom.app.definitions import definition, shared_state
from transom.core.intervals import HOUR, Interval
from transom.core.partitions import PartitionKey
from transom.engine.run_outcome import Outcome
from transom.features.ingest.stage import ingest
from transom.features.registry import STAGES
from transom.ledger.freshness import Freshness
from transom.ledger.input_hashes import partitions_read
from transom.ledger.snapshot import LedgerSnapshot
from transom.ledger.stage import BlockOutput
from transom.stream import Stream, parse

EVERY_FEATURE = """
name: web
preset: apache/combined
source: {path: "landing/web/%Y-%m-%d/access.%H*.log.gz"}
key: [client]
repair_window: 2 hours
aggregates:
  traffic:
    measures: {n: count, sent: sum(bytes)}
    levels: RANGES 3 HOURS, 1 HOUR SLIDES 1 HOUR, 30 MINUTES
    recurring: [status]
    alert: {many: n > 12}
  site: {key: [], measures: {n: count}, levels: RANGES 1 HOUR SLIDES 1 HOUR}
patterns:
  back:
    within: 4 hours
    batch: 20 minutes
    merge_gap: 2 hours
    steps: [{id: one, where: status = 404}, {id: other, where: status = 200}]
frames:
  served: {kind: threshold, where: status = 200, value: bytes, on_duplicate_time: sum, idle: 2 hours}
  busy:
    {source: site, kind: threshold, where: n > baseline, baseline: {value: n, shift: [2 hours]}, idle: 1 hour}
  silent: {source: site, kind: threshold, where: n < 1, missing: satisfies, known: 2 hours}
  apart: {source: site, kind: delta, value: n, below: 3, scheme: unconstrained, period: 3 hours}
fills:
  around: {frame: served, lag: 90 minutes, reach: 2 hours, measures: {sent: sum(bytes)}}
  before: {frame: busy, source: site, shift: [3 hours], reach: 1 hour, measures: {n: sum(n)}}
  beside:
    frame: apart
    join_on: []
    source: {table: /outside/history, time: at, columns: {loss: integer}}
    measures: {lost: sum(loss)}
  elsewhere:
    frame: served
    reach: 1 hour
    source: {stream: copy, columns: {client: string, bytes: integer}}
    measures: {sent: sum(bytes)}
persistence:
  regulars:
    {item: [client], slot: 30 minutes, window: 3 hours, alpha: 0.7, epsilon: 0.6,
     ignore: {table: {path: /outside/known}}}
frequency:
  often: {item: [client], window: 2 hours, tick: 30 minutes, epsilon: 0.5, delta: 0.5}
  split: {item: [client], window: 2 hours, tick: 30 minutes, epsilon: 0.5, delta: 0.5, variant: splitter}
"""
STREAM = parse(yaml.safe_load(EVERY_FEATURE))
"""A stream in which every table of every stage has a block."""
CHANGED = parse(
    yaml.safe_load(
        EVERY_FEATURE.replace("epsilon: 0.5", "epsilon: 0.4")
        .replace("merge_gap: 2", "merge_gap: 3")
        .replace("sent: sum(bytes)", "sent: max(bytes)")
        .replace("below: 3", "below: 4")
    )
)
"""The same with blocks of every stage changed, and others unchanged."""
WITHOUT_FRAMES = STREAM.model_copy(update={"frames": {}, "fills": {}})
"""The same without any stage after the aggregates."""
OUTSIDE = ("/outside/history", "/outside/known", "copy")
"""The external sources that it reads."""


@dataclass(frozen=True)
class LedgerRow:
    """The ledger's row of a partition, without the run."""

    status: str
    complete: bool
    digest: str
    inputs: Mapping[str, str] | None
    rows: int
    cause: str | None
    requested: bool
    checks: tuple[tuple[str, bool, float | None], ...]

    @property
    def is_quarantined(self) -> bool:
        return self.status in ("quarantined", "blocked")


def upstream(name: str) -> tuple[str, ...]:
    """Return a stage and every stage that it reads, in order."""
    result = {name}
    for later in reversed(STAGES[1:]):
        if later in result:
            parts = (part for step in definition(STREAM, later).steps for part in step.outputs.values())
            result |= {reads.stage for part in parts for reads in part.reads}
    return tuple(stage for stage in STAGES[1:] if stage in result)


class Pipeline(EventLake):
    """A lake in memory with every stage of a stream.

    Attributes:
        stream: the definitions of its stages are run.
        landing: the files that ingest reads.
        at_most: as in `Double`.
        at_least: as in `Double`.
        doubles: the stages, in order.
    """

    def __init__(self, stream: Stream = STREAM, at_most: int = VALUES, at_least: int = 0) -> None:
        super().__init__()
        self.landing: Folder = {}
        self.specify(stream, at_most, at_least)

    def specify(self, stream: Stream, at_most: int = VALUES, at_least: int = 0) -> None:
        """Change the specification."""
        self.stream, self.at_most, self.at_least = stream, at_most, at_least
        self.doubles = {name: Double(name, stream, at_most, at_least) for name in STAGES[1:]}

    def run(
        self,
        start: int,
        end: int,
        repair_window: int = 2,
        chunk: int = 100,
        retention: int | None = None,
        stages: Collection[str] = STAGES[1:],
    ) -> dict[str, Outcome]:
        """Run some stages over some hours, in order, each in chunks."""
        return {
            name: self.refreshed(
                double.stage, start, end, repair_window, chunk, retention, shared_state(self.stream, name)
            )
            for name, double in self.doubles.items()
            if name in stages
        }

    def ingest(self, start: int, end: int, chunk: int = 100) -> Outcome:
        """Run the first stage over some hours, in chunks."""
        self.runs += 1
        outcome, period = Outcome(), Interval(at(start), at(end))
        with without_spark(self.outside), landing_in_memory(self.landing):
            for number, part in enumerate(period.chunks(chunk * HOUR)):
                name = f"run {self.runs} {number}"
                outcome.add(ingest(self.store, self.ledger, self.stream, part, name, period))
        return outcome

    def files(self) -> dict[str, Row]:
        """Return the rows of `files` by path."""
        return {row["path"]: row for row in self.store.versions["files"][-1]}

    def computed(self) -> list[tuple[str, str, datetime]]:
        """Return everything computed since the specification was last changed."""
        return [node for double in self.doubles.values() for node in double.computed]

    def copied(self) -> Self:
        """Return a copy of this lake as it is now: the state that a kill of the current run would leave."""
        copy = type(self)(self.stream, self.at_most, self.at_least)
        copy.take_events(self)
        copy.landing = dict(self.landing)
        copy.runs, copy.commits.count = self.runs, self.commits.count
        copy.ledger._now, copy.ledger.version = self.ledger._now, self.ledger.version
        copy.ledger.verdicts = list(self.ledger.verdicts)
        copy.store.versions = {name: list(versions) for name, versions in self.store.versions.items()}
        copy.store.tokens = dict(self.store.tokens)
        return copy

    def recomputed(self, stages: Collection[str] = STAGES[1:]) -> "Pipeline":
        """Return a new lake with the same events, in which some stages have run once over all of them."""
        lake = Pipeline(self.stream, self.at_most, self.at_least)
        lake.take_events(self)
        lake.run(0, 100, stages=stages)
        return lake

    def snapshot(self, stage: str | None = None) -> LedgerSnapshot:
        """Return the ledger, with the external inputs of a stage; None means all stages."""
        stages = [double.stage for name, double in self.doubles.items() if stage in (None, name)]
        fillers = tuple(filler for of in stages for filler in of.fillers)
        return Outside(self.outside, fillers).beside(self.ledger.snapshot())

    def state(self) -> dict[PartitionKey, LedgerRow]:
        """Return what the promise covers: the ledger's state of each partition."""
        observed: dict[tuple[str, PartitionKey], list[tuple[str, bool, float | None]]] = {}
        for run, verdict in self.ledger.verdicts:
            observed.setdefault((run, verdict.partition), []).append(
                (verdict.check, verdict.success, verdict.observed)
            )
        return {
            node: LedgerRow(
                entry.status, entry.complete, entry.digest, entry.input_hashes, entry.rows, entry.reason,
                entry.requested, tuple(sorted(observed.get((entry.previous_run, node), ()), key=repr)),
            )
            for node, entry in self.ledger.snapshot().items()
        }  # fmt: skip

    def stale(self) -> set[PartitionKey]:
        """Return every partition that its own stage would recompute."""
        result = set()
        for name, double in self.doubles.items():
            freshness = Freshness(self.snapshot(name), [double.stage], ())
            nodes = (
                PartitionKey(name, block, step.table.name, hour)
                for step in double.stage.steps
                for block in step.outputs
                for hour in freshness.required_hours
            )
            result.update(of for of in nodes if of.hour in freshness.outdated_hours(*of.series))
        return result

    def fresh(self) -> set[PartitionKey]:
        """Return every partition that is up to date together with all its inputs, down to the events."""
        stale, result = self.stale(), set[PartitionKey]()
        for name, double in self.doubles.items():
            for step in double.stage.steps:
                for block, part in step.outputs.items():
                    for hour in sorted(self.ledger.snapshot().required_hours):
                        node = PartitionKey(name, block, step.table.name, hour)
                        if node not in stale and all(of in result for of in self._made_of(part, hour)):
                            result.add(node)
        return result

    def _made_of(self, part: BlockOutput, hour: datetime) -> Iterator[PartitionKey]:
        required = self.ledger.snapshot().required_hours
        for reads in part.reads:
            if reads.stage in self.doubles:
                yield from (node for node in partitions_read(reads, hour) if node.hour in required)

    def assert_ledger_true(self) -> None:
        """Assert that the ledger's digests match the rows, and that there are no other rows."""
        snapshot = self.ledger.snapshot()
        for node, entry in snapshot.items():
            if entry.status not in ("writing", "expired"):
                # A quarantined hour still has its old rows.
                assert entry.digest == digest(self.rows(node)), node
        for table, versions in self.store.versions.items():
            known = {(node.block, node.hour) for node in snapshot if node.table == table}
            stored = {(row.get("block", "events"), row["hour"]) for row in versions[-1]}
            assert stored <= known, table

    def assert_same(self, other: "Pipeline", note: str = "") -> None:
        """Assert that two lakes have equal rows and equal ledgers.

        A quarantined hour has its last good rows, which depend on the lake's history.

        Args:
            other: the lake with the expected rows.
            note: what a failure prints first.
        """
        mine, others = self.state(), other.state()
        for node in sorted(mine.keys() | others.keys()):
            actual, expected = mine.get(node), others.get(node)
            if actual and expected and actual.is_quarantined and expected.is_quarantined:
                actual, expected = (replace(row, digest="", rows=0) for row in (actual, expected))
            else:
                assert self.rows(node) == other.rows(node), (note, node)
            assert actual == expected, (note, node)

    def assert_settled(self, hours: tuple[int, int], stages: Collection[str]) -> None:
        """Assert that one more run has nothing to do."""
        version, finished = self.ledger.version, self.computed()
        self.run(*hours, stages=stages)
        assert (self.ledger.version, self.computed()) == (version, finished)


def initial(lake: Pipeline) -> None:
    """Build a first lake: some hours, one of them incomplete, and rows of an external source."""
    for number in range(3):
        lake.set_events(number, [number, 7], complete=number != 1)
    for name in OUTSIDE:
        lake.outside[name] = {at(number): number for number in range(3)}
