"""Claim, write, record, in this order: the state of the ledger at each step, and which run is refused. No
Spark.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from transom.core.intervals import HOUR
from transom.core.partitions import EMPTY_DIGEST, CheckResult, PartitionKey, PartitionState
from transom.engine.publisher import is_published, publish_partitions
from transom.ledger.ledger import Ledger
from transom.ledger.snapshot import LedgerSnapshot
from transom.storage.fencing import Claim, RunSuperseded
from transom.storage.store import PinnedTables, Store
from transom.storage.tables import Table
from transom.storage.write import Write

DAY = datetime(2015, 5, 17, tzinfo=UTC)
CHECK = CheckResult(
    PartitionKey("ingest", "events", "events", DAY), "files_expected", "incomplete", 1, "at least 1", True
)
EVENTS, FILES = (Table.load(name) for name in ("events", "files"))


def node(number: int, table: str = "events") -> PartitionKey:
    return PartitionKey("ingest", "events", table, DAY + number * HOUR)


def published_state(run: str, digest: str = "2:7", queried: bool = True) -> PartitionState:
    return PartitionState(
        "published", run, digest=digest, input_hashes={"specification": "s"}, rows=2, requested=queried
    )


def write(table: Table, number: int) -> Write:
    """Return what a run writes; this module does not look at it."""
    return Write(table, pa.table({}), {None: [DAY + number * HOUR]})


@dataclass
class RecordingTables(Store):
    """Tables at version 5 that record each write, with the ledger's state at that time."""

    ledger: Ledger
    meanwhile: Callable[[], None] = lambda: None

    def __post_init__(self) -> None:
        self.written: list[tuple[str, str, int, str, list[str]]] = []
        self.kept: list[set[PartitionKey]] = []

    def pin(self, tables: object, snapshot: LedgerSnapshot | None = None) -> PinnedTables:
        return PinnedTables(self, dict.fromkeys(tables, 5))

    def write(
        self,
        write: Write,
        claim: Claim,
        known: Iterable[PartitionKey] | None = None,
    ) -> None:
        self.kept.append(set(known or ()))
        self.meanwhile()
        entries = sorted(self.ledger.snapshot().items())
        text = [f"{entry.status} by {entry.run_id}" for _, entry in entries]
        self.written.append((write.table.name, claim.stage, claim.token, claim.run_id, text))


@pytest.fixture
def shelf(tmp_path: Path) -> RecordingTables:
    return RecordingTables(Ledger(str(tmp_path)))


def claims(shelf: RecordingTables) -> int:
    return DeltaTable(f"{shelf.ledger.root}/ledger").version()


def test_hours_are_claimed_then_written_then_called_fresh(shelf: RecordingTables) -> None:
    ledger, entries = (
        shelf.ledger,
        {node(0): published_state("a"), node(0, "files"): published_state("a", "1:3")},
    )
    before = claims(shelf)
    publish_partitions(
        shelf,
        ledger,
        "ingest",
        "a",
        [write(EVENTS, 0), write(FILES, 0)],
        entries,
        LedgerSnapshot({}),
        [CHECK],
    )
    text = ["writing by a"] * 2
    assert shelf.written == [(name, "ingest", before + 1, "a", text) for name in ("events", "files")]
    assert shelf.kept == [set(), set()]
    assert claims(shelf) == before + 2
    assert ledger.snapshot() == entries
    assert ledger.checks(ledger.snapshot(), "ingest", {DAY}) == [CHECK]


def test_write_keeps_the_partitions_that_have_rows(shelf: RecordingTables) -> None:
    """Those of other blocks, and what this run replaces; an hour that is new or empty has none."""
    new, *known = (PartitionKey("ingest", block, "events", DAY) for block in "abcde")
    rows, empty, other_rows, _ = known
    digests = dict(zip(known, ("2:7", EMPTY_DIGEST) * 2, strict=True))
    shelf.ledger.claim("ingest", known, "before")
    before = {key: published_state("before", digest) for key, digest in digests.items()}
    shelf.ledger.publish("ingest", before, "before")
    observed = shelf.ledger.snapshot()
    states = {key: published_state("a") for key in (new, rows, empty)}
    publish_partitions(shelf, shelf.ledger, "ingest", "a", [write(EVENTS, 0)], states, observed)
    assert shelf.kept == [{rows, other_rows}]


def test_run_without_results_makes_no_commit(shelf: RecordingTables) -> None:
    def commits() -> list[Path]:
        return sorted(Path(shelf.ledger.root).glob("*/_delta_log/*.json"))

    before = commits()
    publish_partitions(shelf, shelf.ledger, "ingest", "a", [], {}, LedgerSnapshot({}), [CHECK])
    assert (commits(), shelf.written) == (before, [])


def test_run_that_claims_in_between_owns_the_hours(shelf: RecordingTables) -> None:
    ledger, observed = shelf.ledger, shelf.ledger.snapshot()
    ledger.claim("ingest", [node(0)], "b")
    with pytest.raises(RunSuperseded, match="run b was recorded meanwhile; run a wrote nothing"):
        publish_partitions(
            shelf, ledger, "ingest", "a", [write(EVENTS, 0)], {node(0): published_state("a")}, observed
        )
    assert shelf.written == []
    shelf.meanwhile = lambda: ledger.claim("ingest", [node(0)], "c") and None
    with pytest.raises(RunSuperseded, match=r"run a was superseded by run c \(writing\)"):
        publish_partitions(
            shelf,
            ledger,
            "ingest",
            "a",
            [write(EVENTS, 0)],
            {node(0): published_state("a")},
            ledger.snapshot(),
        )
    assert ledger.snapshot()[node(0)].status == "writing"


def test_inputs_of_a_run_are_compared_again_with_the_current_ledger(shelf: RecordingTables) -> None:
    ledger, observed = shelf.ledger, shelf.ledger.snapshot()
    ledger.claim("ingest", [node(1)], "b")
    with pytest.raises(RunSuperseded, match="another run of other hours"):
        publish_partitions(
            shelf, ledger, "ingest", "a", [write(EVENTS, 0)], {node(0): published_state("a")}, observed,
            still_valid=lambda snapshot: node(1) not in snapshot,
        )  # fmt: skip
    assert (shelf.written, set(ledger.snapshot())) == ([], {node(1)})


def test_claim_records_version_of_rows_and_requested_hours(shelf: RecordingTables) -> None:
    """So that the next run finds them if this one is killed."""
    ledger = shelf.ledger
    ledger.claim("ingest", [node(0)], "a", unrequested=[node(0)])
    ledger.publish("ingest", {node(0): published_state("a", queried=False)}, "a")
    entries = {node(0): None, node(1): published_state("b", queried=False), node(2): published_state("b")}

    def killed() -> None:
        raise KeyboardInterrupt

    shelf.meanwhile = killed
    with pytest.raises(KeyboardInterrupt):
        publish_partitions(shelf, ledger, "ingest", "b", [write(EVENTS, 0)], entries, ledger.snapshot())
    remaining = ledger.snapshot()
    assert [(remaining[node(n)].requested, remaining[node(n)].previous_version,
        remaining[node(n)].previous_run) for n in range(3)] == [
        (False, 5, "a"), (False, 5, "b"), (True, 5, "b")
    ]  # fmt: skip
    shelf.meanwhile = lambda: None
    publish_partitions(
        shelf,
        ledger,
        "ingest",
        "c",
        [],
        entries | {node(1): published_state("c"), node(2): published_state("c")},
        remaining,
    )
    assert ledger.snapshot() == {node(1): published_state("c"), node(2): published_state("c")}


@pytest.mark.parametrize(
    ("stored", "digest", "expected"),
    [
        (None, EMPTY_DIGEST, True),
        (None, "2:7", False),
        (published_state("a"), "2:7", True),
        (published_state("a"), "2:8", False),
        # Rows that a killed run may have replaced, and quarantined rows, have no known version.
        (PartitionState("writing", "a", digest="2:7"), "2:7", False),
        (PartitionState("quarantined", "a", digest="2:7"), "2:7", False),
    ],
)
def test_fresh_rows_are_at_the_version_in_the_ledger(
    stored: PartitionState | None, digest: str, expected: bool
) -> None:
    observed = LedgerSnapshot({} if stored is None else {node(0): stored})
    assert is_published(observed, node(0), digest) is expected
