"""Lists of ignored items with an end: which hours' rows lack an item, and which hours become stale."""

import json
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from deltalake import write_deltalake

from tests.support import item_histories as sketched
from tests.support.memory_pipeline import EVERY_FEATURE, Pipeline, initial
from tests.support.stream_factories import base
from tests.support.stream_harness import StreamHarness, hour, line
from transom.app.freshness import snapshot_of
from transom.core.intervals import format_hour
from transom.core.partitions import PartitionKey, PartitionState
from transom.features.persistence.stage import definition
from transom.ledger.freshness import EVENTS
from transom.ledger.ledger import Ledger
from transom.storage.tables import LakeError
from transom.stream import Stream, parse

Make = Callable[..., StreamHarness]
DAY = datetime(2015, 5, 17, tzinfo=UTC)
SIGNED = {"who": "ops", "why": "a migration"}
SPEC = {"item": ["user"], "slot": "1 hour", "window": "3 days", "alpha": 0.7, "epsilon": 0.2}
A = {"items": ["a"]}


def until(number: int) -> dict[str, str]:
    return {"until": format_hour(hour(number)), **SIGNED}


def shapes(ignore: Any, **more: Any) -> list[str]:
    """Return what determines the persistent items of each hour from 0 to 11."""
    block = SPEC | more | {"ignore": ignore}
    _, step = definition(parse(base() | {"persistence": {"x": block}})).steps
    return [step.outputs["x"].fingerprint_of(hour(number)) for number in range(12)]


def differing(one: list[str], other: list[str]) -> list[int]:
    return [number for number, pair in enumerate(zip(one, other, strict=True)) if pair[0] != pair[1]]


@pytest.mark.parametrize(
    ("slot", "first_after", "moved"),
    [("1 hour", 5, [4, 5, 6]), ("15 minutes", 5, [4, 5, 6]), ("3 hours", 7, [4, 5, 7, 8])],
)
def test_only_hours_before_an_end_are_shaped_by_a_list(slot: str, first_after: int, moved: list[int]) -> None:
    """The first report after an end has items that have left, of which the one before has no row."""
    dated, endless, none = (shapes(ignore, slot=slot) for ignore in (A | until(4), A, []))
    assert differing(dated, endless) == [*range(4, 12)]
    assert differing(dated, none) == [*range(first_after)]
    later = shapes(A | until(6), slot=slot)
    assert differing(dated, later) == moved
    assert differing(shapes(A | until(-5), slot=slot), none) == []


def test_form_and_signature_of_a_list_shape_no_hour() -> None:
    dated = shapes(A | until(4))
    assert dated == shapes([A | until(4)]) == shapes(A | until(4) | {"who": "dev", "why": "?"})
    assert shapes(A) == shapes(A | SIGNED) == shapes([A, {}])
    both = {"items": ["a", "b"], "networks": {"user": ["10.0.0.0/8", "::/64"]}}
    apart = [{"items": ["b"], "networks": {"user": ["::/64"]}}, A | {"networks": {"user": ["10.0.0.0/8"]}}]
    assert shapes(both) == shapes(apart)


def test_list_without_an_end_has_the_fingerprint_of_before() -> None:
    table = {"path": "/known"}
    texts = [json.loads(shapes(ignore)[0]) for ignore in ({}, A, {"table": table}, [A, {"table": table}])]
    assert [text["ignore"] for text in texts] == [
        [[], {}, None],
        [[["a"]], {}, None],
        [[], {}, ["/known", {"user": "user"}]],
        [[["a"]], {}, ["/known", {"user": "user"}]],
    ]
    assert "ignore_left" not in texts[1]


def every_stage(*lists: dict[str, Any]) -> Stream:
    text = yaml.safe_load(EVERY_FEATURE)
    block = text["persistence"]["regulars"]
    block["ignore"] = [block["ignore"], *lists]
    return parse(text)


def fill(lake: Pipeline) -> None:
    initial(lake)
    for number in range(12):
        lake.set_events(number, [number])


def test_moved_end_makes_only_the_hours_between_stale() -> None:
    first, moved = {"items": ["10.0.0.1"]} | until(4), {"items": ["10.0.0.1"]} | until(7)
    lake = Pipeline(every_stage(first))
    fill(lake)
    lake.run(0, 12)
    computed = {}
    for name, lists in (("moved", [moved]), ("same", [moved | {"who": "dev"}]), ("gone", [])):
        lake.specify(every_stage(*lists))
        lake.run(0, 12)
        computed[name] = [of.hour for _, _, of in lake.computed()]
        lake.assert_same(lake.recomputed())
    assert computed == {
        "moved": [4, 5, 6, 7],
        "same": [],
        "gone": [*range(8)],
    }


@pytest.mark.parametrize("end", [4, 7])
def test_ends_leave_no_trace_of_the_order_of_runs(end: int) -> None:
    lake = Pipeline(every_stage({"items": ["10.0.0.1"]} | until(end)))
    fill(lake)
    for first, last in ((6, 12), (0, 3), (3, 6)):
        lake.run(first, last, repair_window=12)
    lake.assert_same(lake.recomputed())


IGNORING = f"""{sketched.STREAM}persistence:
  known: {{item: [client], slot: 1 hour, window: 4 hours, alpha: 1, epsilon: 0.9, ignore: IGNORED}}
"""


def land(day: StreamHarness) -> None:
    """Let one client be there in every hour, and others only in the first four."""
    for number in range(7):
        clients = ["10.0.0.1", *(["10.0.0.2", "::7"] if number < 4 else [])]
        day.land(number, [line(3600 * number, client) for client in clients])


def rows(day: StreamHarness) -> list[dict[str, Any]]:
    return sorted(day.rows_of("persistent_items"), key=lambda row: (row["hour"], row["client"]))


def shown(all_rows: list[dict[str, Any]], known: set[str], end: int) -> list[dict[str, Any]]:
    """Return the rows that a list with an end leaves: those of its items are of reports from the end on."""
    last = {"left": timedelta(hours=1)}
    return [
        row
        for row in all_rows
        if row["client"] not in known or row["hour"] - last.get(row["change"], timedelta(0)) >= hour(end)
    ]


def ignoring(known: str, end: int) -> str:
    return IGNORING.replace("IGNORED", f"{{{known}, until: {format_hour(hour(end))}, who: ops, why: known}}")


@pytest.mark.full
def test_reports_up_to_an_end_lack_the_items_of_every_form(make_stream: Make, tmp_path: Path) -> None:
    """Slow (20 seconds): several runs of the sketches."""
    path = tmp_path / "known"
    write_deltalake(path, pa.table({"ip": ["10.0.0.2"]}))
    day = make_stream(IGNORING.replace("IGNORED", "[]"))
    land(day)
    day.run(0, 7)
    all_rows, everyone = rows(day), {"10.0.0.1", "10.0.0.2", "::7"}
    assert {(row["client"], row["hour"]) for row in all_rows if row["change"] == "left"} == {
        (client, hour(4)) for client in everyone - {"10.0.0.1"}
    }
    for known, items, end in (
        ("items: [10.0.0.1, 10.0.0.2]", {"10.0.0.1", "10.0.0.2"}, 4),
        ("items: [10.0.0.1, 10.0.0.2]", {"10.0.0.1", "10.0.0.2"}, 3),
        ("networks: {client: [10.0.0.0/8, '::/64']}", everyone, 4),
        (f"table: {{path: {path}, columns: {{client: ip}}}}", {"10.0.0.2"}, 4),
        (f"table: {{path: {path}, columns: {{client: ip}}}}", {"10.0.0.2"}, 3),
    ):
        day = make_stream(ignoring(known, end))
        day.stage("persistence", 0, 7)
        assert rows(day) == shown(all_rows, items, end), (known, end)
        assert len(shown(all_rows, items, end)) < len(all_rows)


def test_table_of_a_list_that_has_ended_must_still_exist(tmp_path: Path) -> None:
    """A late file may make an hour before the end stale, and its rows depend on the table."""
    path, ledger = tmp_path / "known", Ledger(str(tmp_path / "lake/web"))
    write_deltalake(path, pa.table({"client": ["10.0.0.2"]}))
    stream = parse(yaml.safe_load(ignoring(f"table: {{path: {path}}}", 4)))
    events = [PartitionKey(*EVENTS, hour(number)) for number in range(6)]
    ledger.claim("ingest", events, "run")
    ledger.publish("ingest", dict.fromkeys(events, PartitionState("published", "run")), "run")
    _, step = definition(stream).steps
    (known,) = [reads for reads in step.outputs["known"].reads if reads.stage == "filler"]
    assert snapshot_of(stream, ledger, "persistence").series(*known.series).keys() == {
        of.hour for of in events
    }
    assert [known.span(hour(number))[0] <= hour(number) for number in (3, 4, 5)] == [True, True, False]
    shutil.rmtree(path)
    with pytest.raises(LakeError, match=r"^persistence\.known\.ignore\.table: \S+/known cannot be read"):
        snapshot_of(stream, ledger, "persistence")
    # Earlier stages do not need it.
    assert snapshot_of(stream, ledger, "ingest").required_hours.last == hour(5)


def test_item_that_goes_on_after_an_end_is_found_and_one_that_had_gone_is_not(make_stream: Make) -> None:
    once, apart = (make_stream(ignoring("items: [10.0.0.1, 10.0.0.2]", 4), lake) for lake in ("one", "two"))
    land(once)
    once.run(0, 7)
    for first, last in ((5, 7), (0, 3), (3, 5)):
        apart.run(first, last)
    apart.run(0, 7)
    apart.assert_same(once)
    found = {finding.item: finding for finding in once.findings() if finding.kind == "persistent_item"}
    assert found.keys() == {"10.0.0.1", "::7"}
    assert (found["10.0.0.1"].first_hour, found["10.0.0.1"].ongoing) == (hour(4), True)
    assert found["10.0.0.1"].start_time is not None
    assert found["10.0.0.1"].start_time < hour(4)
