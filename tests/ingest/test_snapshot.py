"""The input of a run of ingest, and the hours and files that it selects. No Spark."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from tests.support.file_factories import RULES, at, listed, one
from tests.support.stream_factories import changed
from transom.core.intervals import HOUR, UNKNOWN_HOUR, Interval
from transom.core.partitions import PartitionKey, PartitionState
from transom.features.ingest.checks import hour_checks
from transom.features.ingest.expected_inputs import STAGE, ExpectedInputs, partition_of, scheduled
from transom.features.ingest.file_decisions import late_files
from transom.features.ingest.file_records import FileRecord, ListedFile
from transom.features.ingest.file_selection import FilePolicy
from transom.features.ingest.hour_plan import step_by_files
from transom.features.ingest.hour_states import HourState
from transom.features.ingest.snapshot import IngestSnapshot, take_snapshot
from transom.features.ingest.tables import Tables
from transom.ledger.ledger import Ledger
from transom.ledger.scope import Scope
from transom.ledger.snapshot import LedgerSnapshot
from transom.storage.store import PinnedTables, Store
from transom.stream import parse

EXPECTED = {"specification": "now"}
OLD = {"specification": "then"}


def entry(
    status: Any = "published", inputs: Mapping[str, str] | None = EXPECTED, requested_states: bool = True
) -> PartitionState:
    return PartitionState(status, "a", input_hashes=inputs, requested=requested_states)


def scene(
    entries: Mapping[PartitionKey, PartitionState] | None = None,
    known: Mapping[str, FileRecord] | None = None,
    there: Mapping[str, ListedFile] | None = None,
    *,
    hours: tuple[int, int] = (10, 11),
    period: tuple[int, int] | None = None,
    rules: FilePolicy = RULES,
) -> IngestSnapshot:
    """Return the snapshot of a run of some hours; `repair_window` is two hours."""
    snapshot = LedgerSnapshot(entries or {})
    chunk, whole = (Interval(*map(at, bounds)) for bounds in (hours, period or hours))
    scope = Scope.of(chunk, whole, 2 * HOUR, snapshot.hours(STAGE))
    pins = PinnedTables(Store(None, ""), {})
    return IngestSnapshot(snapshot, pins, scope, known or {}, there or {}, rules, lambda _: EXPECTED)


def requested_states(*hours: int) -> dict[PartitionKey, PartitionState]:
    return {partition_of("events", at(hour)): entry() for hour in hours}


def test_run_examines_files_of_its_hours_and_of_known_hours_near_them() -> None:
    result = scene(requested_states(6, 7, 12, 13))
    looked = [hour for hour in range(5, 16) if result.in_scope(at(hour), None)]
    # The hour between is a gap that it fills.
    assert looked == [10, 11, 12]
    # Known files of hours that are not requested.
    assert [hour for hour in range(5, 16) if result.in_scope(at(hour), "ingested")] == [8, 9, 10, 11, 12]
    for status in (None, "ingested", "waiting"):
        assert result.in_scope(UNKNOWN_HOUR, status)


def test_waiting_file_is_examined_by_every_chunk_that_may_publish_its_hour() -> None:
    first, last = (scene(hours=hours, period=(10, 14)) for hours in ((10, 12), (12, 14)))
    assert [hour for hour in range(6, 16) if first.in_scope(at(hour), "waiting")] == [8, 9, 10, 11, 14, 15]
    assert [hour for hour in range(6, 16) if last.in_scope(at(hour), "waiting")] == [8, 9, *range(10, 16)]
    assert [hour for hour in range(6, 16) if last.in_scope(at(hour), "ingested")] == [12, 13, 14, 15]


def test_hours_are_stale_after_a_kill_and_under_another_specification() -> None:
    result = scene(
        {
            partition_of("events", at(1)): entry(),
            partition_of("events", at(2)): entry(inputs=OLD),
            partition_of("files", at(3)): entry(inputs=OLD),
            partition_of("files", at(4)): entry("writing"),
            partition_of("events", at(5)): entry("quarantined", None),
        }
    )
    assert result.stale() == [at(2), at(4), at(5)]


@pytest.mark.parametrize(
    ("status", "stale"),
    [("ingested", True), ("duplicate", True), ("missing", True),
     ("conflict", False), ("quarantined", False), ("waiting", False)],
)  # fmt: skip
def test_hour_is_stale_if_its_file_may_differ_from_published_rows(status: Any, stale: bool) -> None:
    known = {"f": replace(one()["f"], status=status)}
    # The conflict is already reported as such.
    there = {"f": listed("f", touched=2)}
    assert scene(known=known, there=there).stale() == [at(0)] * stale
    assert scene(known=known).stale() == []
    # Its name means another hour now.
    moved = scene(known=known, there={"f": replace(listed("f", 1), modified=known["f"].modified)})
    assert moved.stale() == [at(0)]


def test_every_hour_with_rows_of_a_changed_file_is_stale() -> None:
    """These are the hours of its rows, for any hour in its name."""
    known = {"f": replace(one()["f"], hours=(at(0), at(2)), pending_hours=(at(3),))}
    assert scene(known=known, there={"f": listed("f", touched=2)}).stale() == [at(0), at(2), at(3)]


def test_hour_has_the_inputs_of_the_run_that_selects_it() -> None:
    entries = {
        partition_of("events", at(1)): entry(inputs=OLD),
        partition_of("events", at(2)): entry("writing", OLD),
        partition_of("events", at(10)): entry(inputs=OLD),
        partition_of("events", at(12)): entry("writing", OLD),
        partition_of("events", UNKNOWN_HOUR): entry(inputs=OLD),
    }
    result = scene(entries)
    assert {hour: result.inputs(at(hour)) for hour in (1, 2, 3, 10, 12)} == {
        1: None, 2: None, 3: EXPECTED, 10: EXPECTED, 12: EXPECTED
    }  # fmt: skip
    assert result.inputs(UNKNOWN_HOUR) == EXPECTED


def test_late_files_outside_the_repair_window_wait_and_others_are_not_selected() -> None:
    names = {"late": 3, "near": 9, "unasked": 4, "known": 3, "seen to": 3}
    there = {name: listed(name, hour) for name, hour in names.items()} | {"nowhere": listed("nowhere", None)}
    known = {"known": replace(one(path="known")["known"], hour=at(3))}
    rules = replace(RULES, spec_hash=lambda hour: f"shape of {hour:%H}")
    result = late_files(known, there, {"seen to"}, rules, scene(requested_states(3, 9)).is_too_late)
    (late,) = result.values()
    assert result.keys() == {"late"}
    # It is not known yet, so that the run that selects it reads it.
    expected = replace(
        one(path="late")["late"], hour=at(3), status="waiting", source_id=None,
        last_read_source_id=None, content_sha256=None, spec_hash="shape of 03", bytes=0, lines=0,
        accepted=0, hours=(), size=-1, modified=at(1),
        status_reason="came later than `repair_window`; run 2015-05-17T03:00 again to take it",
    )  # fmt: skip
    assert late == expected


def test_inputs_of_an_hour_are_its_files_and_specification() -> None:
    def inputs(**changes: Any) -> tuple[str, Mapping[str, str]]:
        stream = parse(changed(**changes))
        return ExpectedInputs(stream).spec_hash(at(1)), ExpectedInputs(stream).expected(at(1))

    shape, plain = inputs()
    assert plain.keys() == {"specification", "version", "completeness"}
    assert plain["specification"] == shape
    assert inputs(title="t") == (shape, plain)
    other, reshaped = inputs(extra_fields="keep")
    assert other != shape
    assert {**reshaped, "specification": shape} == plain
    # The number of an hour's files decides whether it is complete, not how a file is read.
    expecting, counted = inputs(source__expected_files=2)
    assert expecting == shape
    assert counted["completeness"] != plain["completeness"]
    readable, of_files = inputs(checks={"file_readable": {"severity": "error"}})
    assert readable != shape
    assert of_files["specification"] == readable


@pytest.mark.parametrize(
    ("expect", "names"),
    [
        (..., ["files_unchanged", "files_distinct"]),
        (2, ["files_expected", "files_unchanged", "files_distinct"]),
    ],
)
def test_checks_of_an_hour_follow_its_specification(expect: Any, names: list[str]) -> None:
    checks = hour_checks(parse(changed(source__expected_files=expect) if expect is not ... else changed()))
    assert [check.name for check in checks] == names
    off = {name: {"off": True} for name in names}
    assert (
        hour_checks(
            parse(changed(checks=off) if expect is ... else changed(source__expected_files=2, checks=off))
        )
        == ()
    )


def test_hour_that_no_name_can_express_expects_no_file() -> None:
    names: dict[str, Any] = {"source__path": "in/%Y-%m-%d_%H.log", "source__zone": "Europe/Berlin"}
    stream = parse(changed(source__expected_files=1, **names))
    twice = datetime(2015, 10, 25, tzinfo=UTC)
    assert [scheduled(stream, twice + n * HOUR) for n in range(3)] == [True, False, True]


def test_hour_without_a_possible_name_never_requires_a_file() -> None:
    """The hash of the specification includes what decides the possible names."""
    path, hours = "in/%Y-%m-%d_%H.log", [datetime(2015, 10, 25, hour, tzinfo=UTC) for hour in range(3)]
    zones = [
        ExpectedInputs(parse(changed(source__expected_files=1, source__path=path, source__zone=zone)))
        for zone in ("UTC", "Europe/Berlin")
    ]
    for recorded in zones:
        ledger = LedgerSnapshot(
            {
                partition_of("events", hour): PartitionState(
                    "published", "a", input_hashes=recorded.expected(hour)
                )
                for hour in hours
            }
        )
        for now in zones:
            unchanged = now.unchanged_hours(ledger)
            assert ledger.unlike(STAGE, "events", "events", now.expected, unchanged) == (
                [] if now is recorded else hours
            )
        assert list(recorded.unchanged_hours(ledger)) == (hours if recorded is zones[0] else hours[::2])


def test_hours_outside_the_schedule_may_have_no_file() -> None:
    """This changes the inputs of an hour if files are expected, and nothing else does."""
    bare, expecting = parse(changed()), parse(changed(source__expected_files=1))
    bounds = {"start": "2015-05-17T10:00", "until": "2015-05-17T12:00"}
    bound = parse(changed(source__expected_files=1, **bounds))
    hours = [at(9), at(10), at(11), at(12), UNKNOWN_HOUR]
    inside = [False, True, True, False, True]
    assert [scheduled(bound, hour) for hour in hours] == inside
    assert [scheduled(expecting, hour) for hour in hours] == [True] * 5
    assert [
        ExpectedInputs(bound).expected(hour) == ExpectedInputs(expecting).expected(hour) for hour in hours
    ] == inside
    assert [
        ExpectedInputs(parse(changed(**bounds))).expected(hour) == ExpectedInputs(bare).expected(hour)
        for hour in hours
    ] == [True] * 5


@pytest.mark.parametrize(("files", "noticed"), [(0, None), (1, 1)])
def test_only_an_hour_without_any_file_is_exempt(files: int, noticed: int | None) -> None:
    stream = parse(changed(source__expected_files=2, until="2015-05-17T10:00"))
    of_scope = Mock(requested={at(9), at(10)})
    scene = Mock(scope=of_scope, inputs=lambda hour, mixed: {}, ledger_state=LedgerSnapshot({}))
    states = {at(9): HourState(files=files), at(10): HourState(files=files)}
    _, entries, verdicts = step_by_files(stream, Tables.of(stream), scene, states, "a").resolve()
    assert [(v.partition.hour, v.observed) for v in verdicts] == [
        (hour, observed) for hour, observed in ((at(9), files), (at(10), noticed)) if observed is not None
    ]
    assert [entry and entry.complete for entry in entries.values()] == [False, noticed is None]


def test_tables_are_pinned_at_the_ledger_version_that_was_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that publishes between the two reads is seen completely, or not at all."""
    (tmp_path / "in").mkdir()
    monkeypatch.setenv("TRANSOM_LANDING", str(tmp_path))
    stream = parse(changed())
    store, ledger = Store(None, str(tmp_path / "lake")), Ledger(str(tmp_path / "lake"))
    tables = Tables.of(stream)
    store.create(*tables)
    interval = Interval(at(10), at(11))
    node = partition_of("events", at(10))
    pin, times = store.pin, []

    def overtaking(names: Any, previous: Any) -> PinnedTables:
        times.append(len(ledger.snapshot([STAGE])))
        if len(times) == 1:
            ledger.claim(STAGE, [node], "other")
            ledger.publish(STAGE, {node: PartitionState("published", "other")}, "other")
        return pin(names, previous)

    monkeypatch.setattr(store, "pin", overtaking)
    result = take_snapshot(store, ledger, stream, tables, interval, interval)
    assert times == [0, 1]
    assert result.ledger_state == {node: PartitionState("published", "other")}
    assert result.scope.requested == {at(10)}


def test_run_may_publish_its_hours_repair_window_and_requested_hours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in").mkdir()
    monkeypatch.setenv("TRANSOM_LANDING", str(tmp_path))
    stream = parse(changed(repair_window="2 hours", source__on_conflict="replace"))
    store, ledger = Store(None, str(tmp_path / "lake")), Ledger(str(tmp_path / "lake"))
    tables = Tables.of(stream)
    store.create(*tables)
    nodes = [partition_of("events", at(hour)) for hour in (6, 11)]
    ledger.claim(STAGE, nodes, "a")
    ledger.publish(STAGE, {node: PartitionState("published", "a") for node in nodes}, "a")
    interval = Interval(at(10), at(11))
    rules = take_snapshot(store, ledger, stream, tables, interval, interval).rules
    # Before its hours up to the repair window; after them the requested hours.
    assert [hour for hour in range(5, 16) if rules.permitted(at(hour))] == [8, 9, 10, 11]
    assert rules.permitted(UNKNOWN_HOUR)
    assert rules.replace_changed
    assert rules.spec_hash(at(1)) == ExpectedInputs(stream).spec_hash(at(1))


def test_inputs_of_an_hour_are_recorded_only_if_known() -> None:
    chunk, period = Interval(at(10), at(12)), Interval(at(8), at(14))
    scope = Scope.of(chunk, period, HOUR, ())
    pins = PinnedTables(Store(None, ""), {})
    computed = {n: {"specification": "now" if n % 2 else "then"} for n in range(5, 16)}
    snapshot = LedgerSnapshot(
        {
            partition_of("events", at(n)): PartitionState("published", "a", input_hashes=computed[n])
            for n in computed
        }
    )
    scene = IngestSnapshot(snapshot, pins, scope, {}, {}, RULES, lambda _: {"specification": "now"})
    # Earlier chunks have done 7 to 9, this one does 10 and 11; 6 is too far, 12 belongs to a later chunk.
    unknown = {n for n in computed if scene.inputs(at(n), mixed=False) is None}
    assert unknown == {6, 12, 14}
    assert {n for n in computed if scene.inputs(at(n), mixed=True) is None} == computed.keys()
    assert scene.inputs(at(20), mixed=False) == scene.inputs(at(7), mixed=False) == {"specification": "now"}


def test_specification_is_compiled_once_for_all_hours(monkeypatch: pytest.MonkeyPatch) -> None:
    accepted = {
        "hour": "2015-05-17T03:00", "stage": "ingest", "check": "files_expected", "observed": 0, "who": "a",
        "why": "b",
    }  # fmt: skip
    stream = parse(changed(source__expected_files=1, until="2015-05-17T10:00", waivers=[accepted]))
    hours = [at(number) for number in range(12)]
    each = [(ExpectedInputs(stream).expected(hour), ExpectedInputs(stream).spec_hash(hour)) for hour in hours]
    inputs = ExpectedInputs(stream)
    monkeypatch.setattr(type(stream), "ingest_shape", Mock(side_effect=AssertionError))
    assert [(inputs.expected(hour), inputs.spec_hash(hour)) for hour in hours] == each
    assert inputs.expected(at(1)) is inputs.expected(at(9))
