"""Findings that end or disappear: when a recipient hears of it, and why."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from deltalake import write_deltalake

from tests.support.alert_lake import (
    EVERYTHING,
    PATTERN,
    AlertLake,
    Receiver,
    alert_stream,
)
from tests.support.ledger_factories import at
from transom.alerts.comparison import THE_PAGE
from transom.core.partitions import PartitionKey, PartitionState
from transom.core.reasons import Reason
from transom.findings.store import findings, sync_ledger_findings, to_arrow
from transom.findings.sync import sync_table_findings


def test_late_file_that_invalidates_an_episode_is_named_in_its_withdrawal(lake: AlertLake) -> None:
    receiver = Receiver()
    lake.deliver(receiver, "one")
    # Other files of other hours are no reason.
    lake.landing |= {"b": (1, 2), "c-late": (2, -14), "far": (40, 1)}
    lake.run([1, 2, 40])
    lake.deliver(receiver, "two")
    lake.deliver(receiver, "three")
    raised, withdrawn = receiver.messages
    assert withdrawn["state"] == "withdrawn"
    assert withdrawn["finding_id"] == raised["finding_id"]
    assert withdrawn["findings"][0]["reason"] == "because of the new content of b, late file c-late"
    lake.landing["b"] = (1, 12)
    lake.run([1])
    lake.deliver(receiver, "four")
    assert [message["state"] for message in receiver.messages] == ["raised", "withdrawn", "raised"]
    assert len({message["message"] for message in receiver.messages}) == 3


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        (("x", 1, -11), ("x", 1, -12), "the new content of x"),
        (("x", 1, -11), ("x", 1, -11), "now published file x"),
        (("y", 1, 0), ("x", 1, -11), "late file x"),
    ],
)
def test_quarantined_file_that_is_published_is_not_late(
    lake: AlertLake, before: tuple[str, int, int], after: tuple[str, int, int], reason: str
) -> None:
    receiver = Receiver()
    lake.quarantined = {before[0]: before[1:]}
    lake.landing["c"] = (2, 1)
    lake.run([1, 2])
    lake.deliver(receiver, "one")
    lake.quarantined = {}
    lake.landing[after[0]] = after[1:]
    lake.run([1])
    lake.deliver(receiver, "two")
    assert receiver.messages[-1]["findings"][0]["reason"] == f"because of {reason}"


def test_withdrawal_distinguishes_quarantined_and_removed_files(lake: AlertLake) -> None:
    receiver = Receiver()
    lake.deliver(receiver, "one")
    lake.quarantined["b"] = lake.landing.pop("b")
    del lake.landing["c"]
    lake.run([1, 2])
    lake.deliver(receiver, "two")
    reason = receiver.messages[-1]["findings"][0]["reason"]
    assert reason == "because of quarantined file b, removed file c"


def test_each_withdrawal_of_a_run_names_the_files_of_its_own_hours(lake: AlertLake) -> None:
    receiver = Receiver()
    lake.landing |= {"x": (40, 12), "y": (41, 0)}
    lake.run([40, 41])
    lake.deliver(receiver, "one")
    lake.landing |= {"b": (1, 0), "c": (2, 0)}
    del lake.landing["x"]
    lake.run([1, 2, 40])
    lake.deliver(receiver, "two")
    reasons = {row["reason"] for message in receiver.messages[1:] for row in message["findings"]}
    assert reasons == {
        "because of the new content of b, the new content of c",
        "because of removed file x",
    }


def test_long_reasons_are_cut_and_escaped(lake: AlertLake) -> None:
    receiver = Receiver()
    lake.deliver(receiver, "one")
    lake.landing |= {f"\x1b[31m{number}" * 100: (1, -5) for number in range(5)}
    lake.run([1, 2])
    lake.landing["c"] = (2, 0)
    lake.run([2])
    lake.deliver(receiver, "two")
    reason = receiver.messages[-1]["findings"][0]["reason"]
    assert reason.endswith(" and 3 more")
    assert "\x1b" not in reason
    assert len(reason) < 1100


@pytest.mark.parametrize("status", ["writing", "quarantined", "blocked", "damaged"])
def test_hours_that_are_not_published_withdraw_nothing(lake: AlertLake, status: str) -> None:
    receiver = Receiver()
    lake.deliver(receiver, "one")
    lake.set_states([2], status)
    lake.sync(absent=lambda finding: True)
    lake.deliver(receiver, "two")
    assert len(receiver.messages) == 1
    lake.set_states([2], "published")
    lake.deliver(receiver, "three")
    assert [message["state"] for message in receiver.messages] == ["raised", "withdrawn"]


def test_hours_without_any_rows_in_the_ledger_withdraw_nothing(lake: AlertLake) -> None:
    receiver = Receiver()
    lake.deliver(receiver, "one")
    lake.ledger.open("ledger").delete()
    lake.sync(absent=lambda finding: True)
    lake.deliver(receiver, "two")
    assert len(receiver.messages) == 1


def test_findings_that_a_killed_run_left_out_are_brought_up_to_date_first(lake: AlertLake) -> None:
    """A run was killed after it had published the rows, and before it wrote their findings."""
    receiver = Receiver()
    lake.deliver(receiver, "one")
    lake.sync(absent=lambda finding: True)
    synced: list[str] = []

    def sync(ledger: Any, stream: Any, source: Any) -> bool:
        synced.append(source.kind)
        if len(synced) == 1:
            lake.sync()
        return len(synced) == 1

    lake.courier("two", sync=sync).deliver(EVERYTHING, receiver)
    assert len(receiver.messages) == 1
    assert synced == ["episode"]


def test_findings_follow_from_the_rows_of_their_table(lake: AlertLake) -> None:
    """Without rows of episodes, their findings are removed, and then withdrawn."""
    receiver = Receiver()
    lake.landing |= {"x": (10, 12), "y": (11, 0)}
    lake.run([10, 11])
    lake.deliver(receiver, "one")
    lake.sync(absent=lambda finding: finding.hour < at(5))
    lake.courier("two", sync=sync_table_findings).deliver(EVERYTHING, receiver)
    assert sorted(state for state, _ in receiver.rows) == ["raised", "raised", "withdrawn", "withdrawn"]


def ingested(lake: AlertLake, hours: Iterable[int], is_complete: bool = False, to_sync: bool = True) -> None:
    """Publish hours of events, some of which lack a file; write the findings of the ledger."""
    keys = [PartitionKey("ingest", "events", "events", at(hour)) for hour in hours]
    reasons = () if is_complete else (Reason("file", "one is missing"),)
    state = PartitionState("published", "ingests", complete=is_complete, reasons=reasons)
    lake.ledger.claim("ingest", keys, "ingests")
    lake.ledger.publish("ingest", dict.fromkeys(keys, state), "ingests")
    if to_sync:
        sync_ledger_findings(lake.ledger, "web", "ingest", {})


def test_finding_of_hours_of_which_some_are_complete_ends_although_others_are_not(lake: AlertLake) -> None:
    receiver = Receiver()
    lake.deliver(receiver, "before")
    ingested(lake, [1, 2, 3])
    lake.deliver(receiver, "one")
    ingested(lake, [1], is_complete=True)
    lake.deliver(receiver, "two")
    _, first, *others = (row for message in receiver.messages for row in message["findings"])
    second, ended = sorted(others, key=lambda row: row["state"] == "ended")
    assert [row["state"] for row in (first, second, ended)] == ["raised", "raised", "ended"]
    assert ended["finding_id"] == first["finding_id"]
    assert ended["reason"] == f"it is now part of finding {second['finding_id']}"


def test_finding_that_is_missing_while_its_hours_are_written_does_not_end(lake: AlertLake) -> None:
    receiver = Receiver()
    ingested(lake, [1, 2])
    lake.deliver(receiver, "one")
    number = len(receiver.messages)
    # One run claims the hours, and another one writes the findings meanwhile.
    lake.ledger.claim("ingest", [PartitionKey("ingest", "events", "events", at(2))], "other")
    lake.ledger.claim("ingest", [PartitionKey("ingest", "events", "events", at(1))], "other")
    sync_ledger_findings(lake.ledger, "web", "ingest", {})
    assert not [finding for finding in findings(lake.root) if finding.kind == "incomplete"]
    lake.deliver(receiver, "two")
    # It is killed after it has published the same.
    ingested(lake, [1, 2], to_sync=False)
    lake.deliver(receiver, "three")
    assert len(receiver.messages) == number
    ingested(lake, [1, 2], is_complete=True)
    lake.deliver(receiver, "four")
    assert [message["state"] for message in receiver.messages[number:]] == ["ended"]


@pytest.mark.parametrize("patterns", [{}, {"renamed": PATTERN}])
def test_findings_of_a_removed_block_are_withdrawn(lake: AlertLake, patterns: Any) -> None:
    receiver = Receiver()
    lake.deliver(receiver, "one")
    lake.stream = alert_stream(patterns=patterns)
    keys = [key for key in lake.ledger.snapshot() if key.stage == "patterns"]
    lake.ledger.claim("patterns", keys, "removal")
    lake.ledger.publish("patterns", dict.fromkeys(keys), "removal")
    lake.sync(absent=lambda finding: True)
    lake.deliver(receiver, "two")
    assert [message["state"] for message in receiver.messages] == ["raised", "withdrawn"]


def test_finding_that_overlapped_another_one_before_does_not_become_part_of_it(lake: AlertLake) -> None:
    """Such as alerts of two levels for the same key."""
    receiver = Receiver()
    first, other = lake.findings()[0], replace(lake.findings()[0], finding_id="of another level")
    write_deltalake(lake.ledger.open("findings"), to_arrow([first, other]), mode="overwrite")
    lake.courier("one").deliver(THE_PAGE)
    lake.deliver(receiver, "one")
    write_deltalake(lake.ledger.open("findings"), to_arrow([other]), mode="overwrite")
    lake.landing["b"] = (1, 0)
    lake.run([1])
    write_deltalake(lake.ledger.open("findings"), to_arrow([other]), mode="overwrite")
    lake.deliver(receiver, "two")
    (row,) = receiver.messages[-1]["findings"]
    assert (row["state"], row["reason"]) == ("withdrawn", "because of the new content of b")
