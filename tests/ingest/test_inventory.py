"""A run that selects its files from the inventory decides as one that looks at every file."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, cast
from unittest.mock import Mock, patch

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.file_factories import at
from transom.core.durations import microseconds
from transom.core.hour_sets import HourSet
from transom.core.intervals import HOUR, UNKNOWN_HOUR, Interval
from transom.core.partitions import PartitionState
from transom.core.path_pattern import PathPattern
from transom.features.ingest import stage as ingest
from transom.features.ingest.equal_files import equal_files
from transom.features.ingest.expected_inputs import partition_of
from transom.features.ingest.file_records import FileContent, FileName, FileRecord, source_id
from transom.features.ingest.file_selection import FilePolicy
from transom.features.ingest.hour_plan import changed_hours, stale_after
from transom.features.ingest.hour_states import hour_states
from transom.features.ingest.inventory import Inventory, with_names
from transom.features.ingest.landing import FileNames, Landing
from transom.features.ingest.snapshot import IngestSnapshot
from transom.features.ingest.tables import file_rows
from transom.ledger.scope import Scope
from transom.ledger.snapshot import LedgerSnapshot
from transom.storage.store import PinnedTables, Store
from transom.storage.tables import Table

HOURS = st.sampled_from([-20, 8, 10, 30])
"""Some are near each other, and others are not."""
HEAL = 3 * HOUR
PATTERNS = ["in/%Y-%m-%d/%H/*.log", "in/%Y-%m-%d/%H/{host}*.log", "in/%Y-%m-%d/*.log", "in/{host}/*.log"]
EXPECTED = {"specification": "now"}
TEXTS = st.sampled_from(["", "a", "a", "ab", "!"])


@dataclass(frozen=True)
class Drop:
    """A file in the landing folder.

    Attributes:
        more: the other hours in which it has events.
        touched: its modification time.
    """

    text: str
    more: frozenset[int] = frozenset()
    touched: int = 0


PATHS = st.builds(
    lambda hour, name: at(hour).strftime(name),
    HOURS,
    st.sampled_from(["in/%Y-%m-%d/%H/a.log", "in/%Y-%m-%d/%H/b.log", "in/%Y-%m-%d/c.log", "in/d/%H.log"]),
)
DROPS = st.builds(Drop, TEXTS, st.frozensets(HOURS, max_size=2), st.integers(0, 1))
DISKS = st.dictionaries(PATHS, DROPS, max_size=4)


@dataclass(frozen=True)
class Turn:
    """A run of an hour, with the changes of the landing folder before it.

    Attributes:
        gone: indices of the previous files that are removed.
        renamed: paths of these that have others now.
    """

    disk: dict[str, Drop]
    gone: frozenset[int]
    hour: int
    pattern: str = PATTERNS[0]
    shape: str = "shape"
    renamed: dict[str, str] = field(default_factory=dict)


def turns_of(pattern: str) -> st.SearchStrategy[list[Turn]]:
    """Draw runs of a stream whose pattern or specification changes now and then."""
    turn = st.builds(
        Turn,
        DISKS,
        st.frozensets(st.integers(0, 5), max_size=2),
        HOURS,
        st.sampled_from([pattern] * 9 + PATTERNS),
        st.sampled_from(["shape"] * 6 + ["other"]),
        st.dictionaries(PATHS, PATHS, max_size=1),
    )
    return st.lists(turn, min_size=2, max_size=5)


def disk_after(before: Mapping[str, Drop], turn: Turn) -> dict[str, Drop]:
    """Return the landing folder of a turn: some files are unchanged, some are renamed, some are others."""
    retained = {
        path: drop for number, (path, drop) in enumerate(sorted(before.items())) if number not in turn.gone
    }
    moved = {turn.renamed.get(path, path): drop for path, drop in retained.items()}
    return {**moved, **turn.disk}


def read_of(path: str, drop: Drop, names: FileNames) -> FileContent:
    data = drop.text.encode()
    found = names.read(path)
    assert found is not None
    digest = hashlib.sha256(data).hexdigest()
    hours = {*map(at, drop.more)} | ({found.hour} if found.hour and drop.text else set())
    prefixes = {n: hashlib.sha256(data[:n]).hexdigest() for n in range(len(data) + 1)}
    content = FileContent(
        source_id(digest, **found.identity), digest, len(data), 1, 0, int(bool(data)), 0, None, None, (),
        tuple(sorted(hours)), prefixes,
    )  # fmt: skip
    return replace(content, source_id="", digest="", failed="cannot be read") if drop.text == "!" else content


class Lake:
    """The rows of `files` after some runs, each of which looks at all files."""

    def __init__(self) -> None:
        self.files: dict[str, FileRecord] = {}
        self.disk: dict[str, Drop] = {}
        self.requested: set[datetime] = set()

    def scene(self, turn: Turn, inventory: Inventory | None = None) -> IngestSnapshot:
        chunk = Interval.of_hour(at(turn.hour))
        scope = Scope.of(chunk, chunk, HEAL, self.requested)
        names = FileNames(PathPattern(turn.pattern))
        rules = FilePolicy(
            lambda hour: turn.shape,
            turn.shape == "other",
            lambda hour: hour == UNKNOWN_HOUR or scope.may_publish(hour, hour in self.requested),
            lambda path: FileName((), path),
        )
        snapshot = LedgerSnapshot(
            {
                partition_of("events", hour): PartitionState("published", "a", input_hashes=EXPECTED)
                for hour in self.requested
            }
        )
        pins = PinnedTables(Store(cast(Any, None), ""), {})
        if inventory is None:
            found = landing(self.disk, names)
            there = {path: file for path in found.files if (file := found.listed(path)) is not None}
            return IngestSnapshot(snapshot, pins, scope, dict(self.files), there, rules, lambda _: EXPECTED)
        inventory = inventory.select_near(scope.around)
        known, there = inventory.recorded, inventory.present
        return IngestSnapshot(
            snapshot, pins, scope, known, there, rules, lambda _: EXPECTED, inventory=inventory
        )

    def found(self, scene: IngestSnapshot, names: FileNames) -> Any:
        def contents(stream: object, paths: list[str], *others: object) -> Any:
            return {path: read_of(path, self.disk[path], names) for path in paths}, []

        with (
            patch.object(ingest, "_read_task", lambda stream, scene, path: path),
            patch.object(ingest, "check_files", contents),
            patch.object(ingest, "conditions_of", lambda stream: None),
        ):
            rows = Mock(parse_files=dict.fromkeys)
            return ingest.decide_files(cast(Any, None), scene, rows)


def landing(disk: Mapping[str, Drop], names: FileNames) -> Landing:
    return Landing(names, {path: (len(drop.text), 10**6 * drop.touched) for path, drop in disk.items()})


def rows_of(files: Mapping[str, FileRecord], names: FileNames, fresh: frozenset[int]) -> pa.Table:
    """Return the rows of `files`; the names of some have been parsed."""
    ordered = [files[path] for path in sorted(files)]
    some = ([f for n, f in enumerate(ordered) if (n in fresh) == required] for required in (False, True))
    retained, others = (file_rows(Table.load("files"), part) for part in some)
    return pa.concat_tables(
        [with_names(retained, names, names.pattern.text), others], promote_options="default"
    )


@settings(max_examples=150)
@given(st.sampled_from(PATTERNS).flatmap(turns_of), st.frozensets(st.integers(0, 9), max_size=1))
def test_run_with_inventory_decides_as_one_that_looks_at_every_file(
    turns: list[Turn], fresh: frozenset[int]
) -> None:
    lake = Lake()
    names = FileNames(PathPattern(turns[0].pattern))
    for turn in turns:
        rows = rows_of(lake.files, names, fresh)
        lake.disk = disk_after(lake.disk, turn)
        names = FileNames(PathPattern(turn.pattern))
        inventory = Inventory(rows, landing(lake.disk, names), turn.shape, turn.pattern)
        whole, part = lake.scene(turn), lake.scene(turn, inventory)
        (whole, expected), (part, found) = (lake.found(scene, names) for scene in (whole, part))
        assert part.inventory is not None
        inventory = part.inventory
        assert found.decisions == expected.decisions
        assert (inventory.listed, len(whole.listed)) == (len(whole.listed), inventory.listed)
        waiting = sum(file.status == "waiting" for file in expected.files.values())
        assert sum(f.status == "waiting" for f in found.files.values()) + inventory.waiting == waiting
        changed = changed_hours(whole, expected.files, expected.decisions)
        assert changed_hours(part, found.files, found.decisions) == changed
        states = [
            hour_states(
                of.files.values(), changed, scene.rules.spec_hash, scene.listed,
                equal_files(of.files.values(), scene.rules.name_of),
            )
            for of, scene in ((found, part), (expected, whole))
        ]  # fmt: skip
        assert states[0] == states[1]
        # Written are all files of the hours to which some of them belong.
        written = changed | {file.hour for file in found.files.values()}
        part = part.select(Inventory.select_files_of_hours, written)
        files = {**part.recorded, **found.files}
        for path in found.decisions.dropped:
            files.pop(path, None)
        assert {p: f for p, f in files.items() if f.hour in written} == {
            p: f for p, f in expected.files.items() if f.hour in written
        }
        remaining = [stale_after(scene, of, {}) for scene, of in ((part, files), (whole, expected.files))]
        assert remaining[0] == remaining[1]
        lake.files = expected.files
        lake.requested |= whole.scope.requested


FAR = at(-100)
NAMED = "in/%Y-%m-%d/%H/{host}.log"


def file(hour: datetime = FAR, name: str = "a", **more: Any) -> FileRecord:
    """Return the record of a file in the folder of its hour."""
    path = f"in/{hour:%Y-%m-%d/%H}/{name}.log"
    digest = hashlib.sha256(path.encode()).hexdigest()
    known = source_id(digest, {"host": name})
    return FileRecord(
        **{
            **dict.fromkeys(FileRecord.__dataclass_fields__),
            "path": path, "hour": hour, "status": "ingested", "source_id": known,
            "last_read_source_id": known, "content_sha256": digest, "spec_hash": "shape", "columns": (),
            "hours": (hour,), "pending_hours": (), "size": 1, "modified": at(0), "accepted": 1,
            "duplicates": 0, "bytes": 1, "lines": 1, "header_lines": 0, "rejected": 0, **more,
        }
    )  # fmt: skip


def inventory_of(
    files: list[FileRecord],
    there: Mapping[str, tuple[int, int]],
    looked: str = NAMED,
    of: str = NAMED,
    **more: Any,
) -> Inventory:
    """Return an inventory of files whose names were parsed with a pattern."""
    rows = with_names(file_rows(Table.load("files"), files), FileNames(PathPattern(looked)), looked)
    found = Inventory(rows, Landing(FileNames(PathPattern(of)), there), "shape", of, **more)
    return found.select_near(HourSet.of([at(9), at(10)]))


def lying(*files: FileRecord) -> dict[str, tuple[int, int]]:
    return {one.path: (1, microseconds(at(0) - UNKNOWN_HOUR)) for one in files}


QUIET, NEAR = file(), file(at(10))
OTHER_SIZE = {QUIET.path: (2, microseconds(at(0) - UNKNOWN_HOUR))}
OTHER_TIME = {QUIET.path: (1, 5)}


@pytest.mark.parametrize(
    ("known", "there", "selected"),
    [
        pytest.param(QUIET, lying(QUIET), False, id="as it is known, far away"),
        pytest.param(QUIET, {}, False, id="gone, far away"),
        pytest.param(QUIET, OTHER_SIZE, True, id="of another size"),
        pytest.param(QUIET, OTHER_TIME, True, id="of another time"),
        pytest.param(replace(QUIET, spec_hash="other"), lying(QUIET), True, id="read otherwise"),
        pytest.param(replace(QUIET, status="waiting"), lying(QUIET), True, id="waiting"),
        pytest.param(replace(QUIET, status="missing"), lying(QUIET), True, id="back"),
        pytest.param(replace(QUIET, status="missing"), {}, False, id="gone and known as that"),
        pytest.param(replace(QUIET, content_sha256="c"), lying(QUIET), True, id="its name says other bytes"),
        pytest.param(replace(QUIET, hour=at(-99)), lying(QUIET), True, id="its name says another hour"),
        pytest.param(replace(QUIET, hour=at(9)), {}, True, id="of an hour near the run"),
        pytest.param(replace(QUIET, hours=(FAR, at(9))), {}, True, id="with events near the run"),
        pytest.param(replace(QUIET, pending_hours=(at(9),)), {}, True, id="lacked near the run"),
        pytest.param(replace(QUIET, hour=UNKNOWN_HOUR), {}, True, id="without an hour"),
        pytest.param(replace(QUIET, path="in/o.log"), {"in/o.log": (3, 3)}, False, id="not the stream's"),
    ],
)  # fmt: skip
def test_run_selects_files_near_its_hours_and_unparsed_ones(
    known: FileRecord, there: dict[str, tuple[int, int]], selected: bool
) -> None:
    found = inventory_of([known, NEAR], {**there, **lying(NEAR)})
    assert found.recorded.keys() == {NEAR.path} | ({known.path} if selected else set())
    assert (found.listed, found.waiting) == (1 + (bool(there) and known.path != "in/o.log"), 0)
    # A file whose name was not parsed with the current pattern is parsed again.
    again = inventory_of([known, NEAR], {**there, **lying(NEAR)}, looked="in/%Y.log")
    assert again.recorded.keys() == {NEAR.path} | ({known.path} if selected or there else set())


def test_file_is_selected_by_the_period_in_its_name() -> None:
    # A day's file, whose first hour is far from those of the run.
    daily = "in/%Y-%m-%d/%H/{host}.log"
    known = replace(file(at(0)), path=f"in/{at(0):%Y-%m-%d}.log")
    for pattern, selected in (("in/%Y-%m-%d.log", True), (daily, False)):
        known = replace(known, source_id=source_id(str(known.content_sha256), {}))
        found = inventory_of([known], lying(known), looked=pattern, of=pattern)
        assert (known.path in found.recorded) == selected


def test_files_of_one_content_are_selected_together() -> None:
    copy, equal = file(name="a", hour=at(-50)), file(name="b", hour=at(-60))
    copy = replace(copy, source_id=NEAR.source_id, content_sha256=None)
    equal = replace(equal, content_sha256=NEAR.content_sha256)
    found = inventory_of([QUIET, NEAR, copy, equal], {})
    assert found.recorded.keys() == {NEAR.path, copy.path, equal.path}
    found = found.select_same_content(
        [
            replace(
                read_of("in/a/x.log", Drop("a"), FileNames(PathPattern("in/{host}/*.log"))),
                digest=str(QUIET.content_sha256),
            )
        ]
    )
    assert QUIET.path in found.recorded


def test_removed_file_is_selected_if_every_run_examines_an_equal_one() -> None:
    for pattern, folder, selected in (
        ("in/{host}.log*", "in", True),
        (f"{NAMED}*", f"in/{FAR:%Y-%m-%d/%H}", False),
    ):
        gone = replace(QUIET, path=f"{folder}/a.log")
        packed = replace(gone, path=f"{folder}/a.log.gz", status="duplicate")
        found = inventory_of([gone, packed], lying(packed), looked=pattern, of=pattern)
        assert found.recorded.keys() == ({gone.path, packed.path} if selected else set())
        assert inventory_of([gone, packed], lying(gone, packed), looked=pattern, of=pattern).recorded == {}


def test_files_of_hours_with_waivers_are_selected() -> None:
    assert QUIET.path in inventory_of([QUIET], lying(QUIET), waived_hours={FAR}).recorded
    assert QUIET.path not in inventory_of([QUIET], lying(QUIET), waived_hours={at(-99)}).recorded


def test_files_are_selected_by_requested_hours() -> None:
    other = replace(file(at(-90)), hours=(at(-80),))
    found = inventory_of([QUIET, other], {})
    assert found.recorded == {}
    touching = found.select_touching([at(-80)])
    assert touching.recorded.keys() == {other.path}
    more = touching.select_files_of_hours([FAR])
    assert more.recorded.keys() == {other.path, QUIET.path}
    assert (found.recorded, touching.recorded.keys()) == ({}, {other.path}), "a selection changes no other"
    waits = inventory_of([replace(QUIET, status="waiting")], {})
    assert (waits.recorded, waits.waiting) == ({}, 1)
