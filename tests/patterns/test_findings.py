"""Episodes as findings without Spark: they follow the table and the stream's texts."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import product
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError

from tests.support.ledger_factories import at
from tests.support.pattern_factories import small
from transom.core.intervals import Interval
from transom.core.partitions import PartitionKey, PartitionState
from transom.features.aggregates import findings as alerts
from transom.features.patterns.findings import SOURCE
from transom.features.registry import FINDING_ORDER
from transom.findings import summaries, sync
from transom.findings.from_ledger import Finding
from transom.findings.store import findings, sync_ledger_findings, to_arrow
from transom.ledger.ledger import Ledger
from transom.ledger.run_details import FindingChanges
from transom.storage.tables import ATTEMPTS, Table
from transom.stream import Stream, parse

MINUTE = timedelta(minutes=1)
STEPS = [{"id": "look", "where": "status = 1"}, {"id": "probe", "where": "ok", "times": 5}]
ALIKE = {"any_order": [{"id": "one", "where": "ok"}, {"id": "other", "where": "ok"}]}


def stream_of(suppress: Sequence[Any] = (), **changes: Any) -> Stream:
    title = "it's {user}, {matches} times from {start_time} to {last_time}"
    spec = {
        "key": ["user"],
        "title": title,
        "severity": "high",
        "within": "1 hour",
        "steps": STEPS,
        **changes,
    }
    return parse(small(**spec) | {"suppress": [*suppress]})


def row(number: int, name: str, state: str = "partial", **more: Any) -> dict[str, Any]:
    """Return the row of an hour on an episode."""
    return {
        "hour": at(number), "block": "x", "episode_id": name, "user": "o'brien", "status": None,
        "start_time": at(1) + MINUTE / 60, "last_time": at(1) + 20 * MINUTE, "matches": 1, "new_matches": 1,
        "detected_at": at(2), "level": 1, "state": state, "joined": None, **more,
    }  # fmt: skip


SCHEMA = Table.load("episodes").declare(key={"user": "string", "status": "bigint"}).arrow_schema()


def publish_rows(
    ledger: Ledger, rows: list[dict[str, Any]], hours: range = range(1, 9), killed: bool = False
) -> None:
    """Run with these published rows of some hours, or with a kill before the commit."""
    uri = f"{ledger.root}/episodes"
    if not DeltaTable.is_deltatable(uri):
        DeltaTable.create(uri, SCHEMA)
    entries = {
        PartitionKey("patterns", "x", "episodes", at(n)): PartitionState("published", "run") for n in hours
    }
    ledger.claim("patterns", entries, "run", versions={"episodes": DeltaTable(uri).version()})
    write_deltalake(uri, pa.Table.from_pylist(rows, SCHEMA), mode="overwrite")
    if not killed:
        ledger.publish("patterns", entries, "run")


@pytest.fixture(params=[summaries.MAX_ROWS, 0], ids=["few rows", "rows in parts"])
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Ledger:
    monkeypatch.setattr(summaries, "MAX_ROWS", request.param)
    return Ledger(str(tmp_path))


def publish(ledger: Ledger, stream: Stream) -> bool:
    return sync.sync_table_findings(ledger, stream, SOURCE)


def version(ledger: Ledger) -> int:
    return DeltaTable(f"{ledger.root}/findings").version()


@pytest.mark.parametrize("title", ["{user}", None])
def test_title_is_one_line_for_any_values(ledger: Ledger, title: str | None) -> None:
    publish_rows(ledger, [row(2, "a", user="o'\n\tbrien\x1b[2J")], range(1, 3))
    publish(ledger, stream_of(title=title))
    (result,) = findings(ledger.root, order=FINDING_ORDER)
    assert "o' brien [2J" in result.title
    assert result.title.isprintable()
    assert result.key == "o'\n\tbrien\x1b[2J"


def test_finding_is_the_last_row_of_an_episode(ledger: Ledger) -> None:
    stream = stream_of()
    grown = row(3, "a", matches=3, new_matches=2, last_time=at(2) + 30 * MINUTE)
    rows = [
        row(2, "a"),
        grown,
        row(3, "b", "joined", new_matches=0, joined="a"),
        row(2, "b"),
        row(2, "c", user=None, start_time=at(0)),
    ]
    publish_rows(ledger, rows, range(1, 5))
    assert publish(ledger, stream)
    first, second = findings(ledger.root, order=FINDING_ORDER)
    assert first == Finding(
        stage="patterns",
        hour=at(3),
        finding_id=first.finding_id,
        kind="episode",
        block="x",
        severity="high",
        title="app: it's o'brien, 3 times from 2015-05-17T01:00:01 to 2015-05-17T02:30:00",
        start_time=at(1) + MINUTE / 60,
        end_time=at(2) + 30 * MINUTE + timedelta(microseconds=1),
        ongoing=True,
        evidence=(
            "the pattern: look, then 5 times probe, within 1 hour",
            "3 matches so far; their records are in the table matches, of block x and this key",
            "first detected at 2015-05-17T02:00:00 in windows of 20 minutes (level 1), 0 h 59 min 59 s after "
            "the first record",
        ),
        key="o'brien",
        source_hash=first.source_hash,
        first_hour=at(2),
    )
    assert (second.key, second.hour, second.title[:20]) == ("null", at(2), "app: it's null, 1 ti")
    previous = version(ledger)
    assert not publish(Ledger(ledger.root), stream)
    sync_ledger_findings(ledger, stream.name, "patterns", {})
    assert version(ledger) == previous

    # An hour that only reports the end is no news: it belongs to the hour of the last match.
    publish_rows(ledger, [*rows, grown | {"hour": at(7), "state": "final", "new_matches": 0}])
    assert publish(ledger, stream)
    assert version(ledger) == previous + 1
    over = [
        replace(
            finding,
            ongoing=False,
            evidence=tuple(texts.replace(" so far", "") for texts in finding.evidence),
            source_hash=now.source_hash,
        )
        for finding, now in zip((first, second), findings(ledger.root, order=FINDING_ORDER), strict=True)
    ]
    assert findings(ledger.root, order=FINDING_ORDER) == over


def test_only_changed_findings_are_written(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[list[Any]] = []
    replaced = sync._replace

    def noted(state: Any, source: Any, hours: Any, *more: Any) -> None:
        written.append([hour for _, hour in hours])
        replaced(state, source, hours, *more)

    monkeypatch.setattr(sync, "_replace", noted)
    stream = stream_of()
    rows = [row(number, f"e{number}") for number in range(1, 6)]
    publish_rows(ledger, rows)
    publish(ledger, stream)
    before = findings(ledger.root, order=FINDING_ORDER)
    # One has grown, one has disappeared, and one is new.
    changed = [*rows[:1], *rows[2:], row(4, "e3", matches=2), row(7, "e7")]
    publish_rows(ledger, changed)
    publish(ledger, stream)
    assert written == [[at(n) for n in range(1, 6)], [at(2), at(3), at(4), at(7)]]
    after = findings(ledger.root, order=FINDING_ORDER)
    assert {f.finding_id for f in before} - {f.finding_id for f in after} == {
        f.finding_id for f in before if f.hour == at(2)
    }
    assert sorted((f.hour, f.title[:24]) for f in after) == [
        (at(1), "app: it's o'brien, 1 tim"),
        (at(4), "app: it's o'brien, 1 tim"),
        (at(4), "app: it's o'brien, 2 tim"),
        (at(5), "app: it's o'brien, 1 tim"),
        (at(7), "app: it's o'brien, 1 tim"),
    ]
    recomputed = Ledger(f"{ledger.root}/anew")
    publish_rows(recomputed, changed)
    publish(recomputed, stream)
    assert findings(recomputed.root, order=FINDING_ORDER) == after


def test_rows_of_a_killed_run_are_not_reported(ledger: Ledger) -> None:
    stream = stream_of()
    publish(ledger, stream)
    publish_rows(ledger, [row(2, "a"), row(3, "a", matches=2), row(4, "b")])
    publish(ledger, stream)
    previous = findings(ledger.root, order=FINDING_ORDER)
    assert len(previous) == 2
    publish_rows(ledger, [row(3, "a", matches=9), row(4, "b")], range(2, 4), killed=True)
    assert not publish(ledger, stream)
    # Nor does the claim of the next run make them published.
    publish_rows(ledger, [row(4, "b", user="eve")], range(3, 4), killed=True)
    assert publish(ledger, stream)
    assert {(f.key, f.hour) for f in findings(ledger.root, order=FINDING_ORDER)} == {
        ("o'brien", at(3)),
        ("eve", at(4)),
    }
    publish_rows(ledger, [row(2, "a", matches=9)], range(2, 4))
    publish(ledger, stream)
    assert [f.title[:24] for f in findings(ledger.root, order=FINDING_ORDER)] == ["app: it's o'brien, 9 tim"]


def test_changed_text_is_written_again_and_removed_pattern_has_no_findings(ledger: Ledger) -> None:
    publish_rows(ledger, [row(2, "a")])
    publish(ledger, stream_of())
    (before,) = findings(ledger.root, order=FINDING_ORDER)
    other = stream_of(title="{{{user}}}", severity="low", steps=[*STEPS[:1], ALIKE])
    publish(ledger, other)
    (after,) = findings(ledger.root, order=FINDING_ORDER)
    values = ("the pattern: look, then one and other in any order, within 1 hour", *before.evidence[1:])
    assert after == replace(
        before, severity="low", title="app: {o'brien}", evidence=values, source_hash=after.source_hash
    )
    assert before.source_hash != after.source_hash
    publish(ledger, stream_of(steps=..., detector="math.floor", title=None))
    (own,) = findings(ledger.root, order=FINDING_ORDER)
    assert own.evidence[0] == "the pattern: what math.floor finds, within 1 hour"
    assert own.title == "app: x of o'brien, 2015-05-17T01:00:01 to 2015-05-17T01:20:00"
    removed = stream_of().model_copy(update={"patterns": {}})
    assert publish(ledger, removed)
    assert (findings(ledger.root, order=FINDING_ORDER), publish(ledger, removed)) == ([], False)


def test_findings_have_keys_of_several_columns_or_none(ledger: Ledger) -> None:
    rows = [row(2, "a", status=404), row(2, "b"), row(2, "c", user="null", level=9)]
    publish_rows(ledger, rows)
    publish(ledger, stream_of(key=["user", "status"]))
    assert sorted(f.key or "" for f in findings(ledger.root, order=FINDING_ORDER)) == [
        "user=null, status=null", "user=o'brien, status=404", "user=o'brien, status=null"
    ]  # fmt: skip
    publish_rows(ledger, rows[:1])
    publish(ledger, stream_of(key=[], title=None))
    (result,) = findings(ledger.root, order=FINDING_ORDER)
    assert (result.key, result.title) == (None, "app: x, 2015-05-17T01:00:01 to 2015-05-17T01:20:00")
    assert result.evidence[1] == "1 match; its records are in the table matches, of block x"


def test_episode_that_no_hour_can_close_is_not_ongoing(ledger: Ledger) -> None:
    """An hour further than top and within after a row that calls it open does not look for it."""
    for last, ongoing in ((3, True), (4, True), (5, False)):
        publish_rows(ledger, [row(2, "a")], range(last, last + 1))
        publish(ledger, stream_of(batch="1 hour"))
        assert [f.ongoing for f in findings(ledger.root, order=FINDING_ORDER)] == [ongoing]
        # Blocked hours have not looked.
        waits = {
            PartitionKey("patterns", "x", "episodes", at(20)): PartitionState(
                "blocked", "run", reason="of another"
            )
        }
        ledger.claim("patterns", waits, "run")
        ledger.publish("patterns", waits, "run")
        assert not publish(ledger, stream_of(batch="1 hour"))


def test_findings_of_several_hours_are_one_commit_and_conflicts_are_retried(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish_rows(ledger, [row(number, f"{number}{name}") for number in (1, 2) for name in "ab"])
    publish(ledger, stream_of())
    assert sorted(f.hour for f in findings(ledger.root, order=FINDING_ORDER)) == [at(1), at(1), at(2), at(2)]
    assert version(ledger) == 1

    refused = Mock(side_effect=CommitFailedError("another commit came first"))
    monkeypatch.setattr(sync, "replace", refused)
    publish_rows(ledger, [])
    changes = FindingChanges()
    with pytest.raises(CommitFailedError, match="patterns: findings were written by others at every one of"):
        sync.sync_table_findings(ledger, stream_of(), SOURCE, changes)
    assert refused.call_count == ATTEMPTS
    assert changes.counts == {}


def test_worst_findings_are_first_and_an_interval_has_those_of_its_hours(ledger: Ledger) -> None:
    later = row(5, "b", start_time=at(3), last_time=at(3)), row(5, "c", start_time=at(3), state="final")
    publish_rows(ledger, [row(2, "a"), *later])
    publish(ledger, stream_of())
    result = findings(ledger.root, order=FINDING_ORDER)
    # Of the ongoing ones, the latest.
    assert [(f.start_time, f.ongoing) for f in result] == [
        (at(3), True),
        (at(3), False),
        (at(1) + MINUTE / 60, False),
    ]
    shown = [len(findings(ledger.root, Interval(at(n), at(n + 1)), order=FINDING_ORDER)) for n in range(7)]
    # An hour has the findings that it reports, and none that a later one reports.
    assert shown == [0, 0, 1, 0, 0, 2, 0]
    kinds = [
        replace(
            result[0],
            finding_id=f"{number:02}",
            kind=kind,
            severity=severity,
            ongoing=ongoing,
            start_time=start,
        )
        for number, (kind, severity, ongoing, start) in enumerate(
            product(
                ("episode", "check_failed", "alert"), ("high", "low"), (True, False), (at(1), at(2), None)
            )
        )
    ]
    write_deltalake(f"{ledger.root}/findings", to_arrow(kinds), mode="overwrite")
    ranked = findings(ledger.root, order=FINDING_ORDER)
    order = [(f.severity, f.kind, f.ongoing) for f in ranked]
    assert list(dict.fromkeys((s, k, o if k == "episode" else None) for s, k, o in order)) == [
        ("high", "episode", True),
        ("high", "check_failed", None),
        ("high", "episode", False),
        ("high", "alert", None),
        ("low", "check_failed", None),
        ("low", "episode", True),
        ("low", "episode", False),
        ("low", "alert", None),
    ]
    for kind, starts in (
        ("episode", [at(2), at(1), None]),
        ("check_failed", [None, None, at(1), at(1), at(2), at(2)]),
    ):
        assert [f.start_time for f in ranked if f.kind == kind][: len(starts)] == starts


def test_empty_table_gives_no_findings(ledger: Ledger) -> None:
    assert not publish(ledger, stream_of())
    assert not sync.sync_table_findings(ledger, stream_of(), alerts.SOURCE)
    publish_rows(ledger, [])
    assert (publish(ledger, stream_of()), version(ledger)) == (False, 0)


def suppressing(**entry: Any) -> Stream:
    """Return the stream, of which a scanner's episodes are no findings."""
    scanner = {"stage": "patterns", "block": "x", "who": "ops", "why": "a scanner", **entry}
    return stream_of(suppress=[scanner])


BEFORE = row(3, "before", last_time=at(3) - timedelta(microseconds=1))
AT_THE_END = row(3, "at the end", last_time=at(3))
AFTER = row(6, "after", start_time=at(5), last_time=at(5) + MINUTE)
ANOTHER = row(2, "another", user="else")


@pytest.mark.parametrize(
    ("entry", "found"),
    [
        ({"until": "2015-05-17T03:00"}, ["at the end", "after"]),
        ({"until": "2015-05-17T03:00", "key": {"user": "o'brien"}}, ["another", "at the end", "after"]),
        ({"until": "2015-05-17T03:00", "key": {"user": "else"}}, ["before", "at the end", "after"]),
        ({"key": {"user": "o'brien"}}, ["another"]),
        ({}, []),
        ({"until": "2015-05-17T00:00"}, ["another", "before", "at the end", "after"]),
    ],
)
def test_suppressed_findings_are_those_of_a_key_that_end_by_a_time(
    ledger: Ledger, entry: dict[str, Any], found: list[str]
) -> None:
    rows = [BEFORE, AT_THE_END, AFTER, ANOTHER]
    publish_rows(ledger, rows)
    publish(ledger, stream_of())
    every = {finding.finding_id: finding for finding in findings(ledger.root)}
    assert publish(ledger, suppressing(**entry)) == (len(found) < len(every))
    remaining = findings(ledger.root)
    # They are the same findings, under the same ids.
    assert all(every[finding.finding_id] == finding for finding in remaining)
    ends = {row["last_time"] + timedelta(microseconds=1): row["episode_id"] for row in rows}
    assert sorted(ends[finding.end_time] for finding in remaining) == sorted(found)
    # Rows and ends have not changed since.
    assert not publish(ledger, suppressing(**entry))


def test_episode_is_raised_when_it_goes_on_after_the_end_of_its_suppression(ledger: Ledger) -> None:
    stream = suppressing(until="2015-05-17T04:00")
    grown = row(5, "a", matches=2, last_time=at(4) + MINUTE)
    publish_rows(ledger, [row(2, "a"), BEFORE], range(1, 4))
    publish(ledger, stream)
    assert findings(ledger.root) == []
    publish_rows(ledger, [row(2, "a"), BEFORE, grown], range(1, 6))
    publish(ledger, stream)
    (raised,) = findings(ledger.root)
    assert (raised.start_time, raised.end_time) == (
        at(1) + MINUTE / 60,
        at(4) + MINUTE + timedelta(microseconds=1),
    )
    # A late file that takes the later part away takes the finding away.
    publish_rows(ledger, [row(2, "a"), BEFORE], range(1, 6))
    publish(ledger, stream)
    assert findings(ledger.root) == []
