"""Alerts as findings without Spark: they follow the table `alerts` and the stream's texts."""

from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from tests.support.ledger_factories import at
from tests.support.stream_factories import changed
from transom.core.intervals import Interval
from transom.core.partitions import PartitionKey, PartitionState
from transom.engine import compaction as tidying
from transom.features.aggregates.findings import SOURCE
from transom.findings import summaries, sync
from transom.findings.from_ledger import Finding
from transom.findings.store import count_findings, findings, sync_ledger_findings, to_arrow
from transom.ledger.input_hashes import fingerprint
from transom.ledger.ledger import Ledger
from transom.ledger.run_details import FindingChanges
from transom.stream import Stream, parse

MINUTES = timedelta(minutes=1)
GROWING = {
    "when": "slope_n > 0 and n > 2", "level": 0, "severity": "high", "title": "it's {user}, {n} times"
}  # fmt: skip


def stream_of(text: Any = None, key: tuple[str, ...] = ("user",)) -> Stream:
    declared = {"growing": GROWING, "many": "n >= 7"} if text is None else text
    return parse(
        changed(
            key=list(key),
            aggregates__load__alert=declared,
            aggregates__load__levels="RANGES 2 HOURS, 1 HOUR SLIDES 30 MINUTES, 10 MINUTES",
            aggregates__load__fit="10 minutes",
        )
    )


def row(number: int, alert: str, end: int, **more: Any) -> dict[str, Any]:
    """Return a report of level 0 that ends some minutes into an hour."""
    until = at(number) + end * MINUTES
    given = {"user": "o'brien", "status": None, "n": 5, "slope_n": 0.1 + 0.2, "count": 5, "complete": True}
    return {
        "hour": at(number), "block": "load", "alert": alert, "level": 0, "window_end": until,
        "window_start": until - 60 * MINUTES, **given, **more,
    }  # fmt: skip


def publish_rows(
    ledger: Ledger,
    stream: Stream,
    rows: list[dict[str, Any]],
    status: str = "published",
    without: str | None = None,
) -> None:
    """Run with these published rows, of hours 1 and 2 and their other hours; the table may lack a column."""
    schema = pa.schema(
        [
            *((name, pa.timestamp("us", "UTC")) for name in ("hour", "window_start", "window_end")),
            *((name, pa.string()) for name in ("block", "alert", "user")),
            *((name, pa.int64()) for name in ("level", "count", "n", "status")),
            *[("slope_n", pa.float64()), ("complete", pa.bool_())],
        ]
    )
    uri = f"{ledger.root}/alerts"
    before = {"alerts": DeltaTable(uri).version()} if DeltaTable.is_deltatable(uri) else {}
    schema = pa.schema([field for field in schema if field.name != without])
    write_deltalake(uri, pa.Table.from_pylist(rows, schema), mode="overwrite", schema_mode="overwrite")
    entries = {}
    for number in sorted({1, 2, *(1 + (r["hour"] - at(1)) // (60 * MINUTES) for r in rows)}):
        own = [r for r in rows if r["hour"] == at(number)]
        inputs = {"specification": fingerprint(stream.fingerprint("alerts", "load"))}
        entry = PartitionState(
            "published", "run", digest=f"{len(own)}:{hash(str(own))}", input_hashes=inputs, rows=len(own)
        )
        entries[PartitionKey("aggregates", "load", "alerts", at(number))] = entry
    ledger.claim("aggregates", entries, "run", versions=before)
    if status == "published":
        ledger.publish("aggregates", entries, "run")


@pytest.fixture(params=[summaries.MAX_ROWS, 0], ids=["few rows", "rows in parts"])
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Ledger:
    monkeypatch.setattr(summaries, "MAX_ROWS", request.param)
    return Ledger(str(tmp_path))


def publish(ledger: Ledger, stream: Stream) -> bool:
    return sync.sync_table_findings(ledger, stream, SOURCE)


def version(ledger: Ledger) -> int:
    return DeltaTable(f"{ledger.root}/findings").version()


def stored_spells(ledger: Ledger) -> list[tuple[str | None, str, datetime | None, datetime | None]]:
    return [(f.key, f.title, f.start_time, f.end_time) for f in findings(ledger.root)]


def test_finding_covers_consecutive_hours_of_an_alert_and_key(ledger: Ledger) -> None:
    stream = stream_of()
    rows = [
        row(1, "growing", 20, n=3, count=3),
        row(1, "growing", 10),
        row(1, "many", 60, user=None, n=7, slope_n=None, complete=False, level=1),
        row(2, "growing", 30, n=9, slope_n=0.0101),
        row(2, "growing", 30, user="other"),
    ]
    publish_rows(ledger, stream, rows)
    assert publish(ledger, stream)
    first, other, number_of = findings(ledger.root)
    assert first == Finding(
        stage="aggregates",
        hour=at(2),
        finding_id=first.finding_id,
        kind="alert",
        block="load",
        severity="high",
        title="app: it's o'brien, 9 times",
        start_time=at(1),
        end_time=at(2) + 30 * MINUTES,
        ongoing=True,
        evidence=(
            "the rule: slope_n > 0 and n > 2",
            "level 0, 1 hour every 10 minutes: 3 reports met it in 2 hours",
            "n 3 to 9, slope_n 0.0101 to 0.3",
            "the last one, to 2015-05-17T02:30:00: n 9, slope_n 0.0101, count 5",
        ),
        key="o'brien",
        source_hash=first.source_hash,
        first_hour=at(1),
    )
    assert str(first) == ("high alert: app: it's o'brien, 9 times (2015-05-17T01:00 to 2015-05-17T02:30)")
    assert (other.key, other.start_time, other.hour, other.title) == (
        "other", at(2), at(2), "app: it's other, 5 times"
    )  # fmt: skip
    assert (number_of.key, number_of.severity, number_of.ongoing, number_of.title) == (
        "null", "medium", False,
        "app: many of load, null, 2015-05-17T01:00 to 2015-05-17T02:00, 2 hours every 30 minutes, n 7",
    )  # fmt: skip
    assert number_of.evidence == (
        "the rule: n >= 7",
        "level 1, 2 hours every 30 minutes: 1 report met it in 1 hour",
        "n 7",
        "the last one, to 2015-05-17T02:00:00: n 7, count 5",
        "some of the reports are of hours that are incomplete",
    )
    assert len({f.finding_id for f in (first, other, number_of)}) == 3
    # An interval has the findings that its hours report.
    assert findings(ledger.root, kinds=["stale"]) == []
    own = [findings(ledger.root, Interval(at(n), at(n + 1))) for n in range(4)]
    assert own == [[], [first, number_of], [first, other], []]
    assert [count_findings(ledger.root, Interval(at(0), at(n))) for n in (1, 2, 3)] == [0, 2, 3]
    # No needless write; findings of the ledger and of alerts do not affect each other.
    previous = version(ledger)
    assert not publish(Ledger(ledger.root), stream)
    sync_ledger_findings(ledger, stream.name, "aggregates", {})
    assert version(ledger) == previous


@pytest.mark.parametrize(
    ("slides", "level", "hours", "spells"),
    [
        # With a slide of at most an hour each hour reports; with one of three hours every third.
        ("30 MINUTES, 10 MINUTES", 0, (1, 2, 4), [(1, 2), (4, 4)]),
        ("3 HOURS, 1 HOUR", 0, (1, 3), [(1, 1), (3, 3)]),
        ("3 HOURS, 1 HOUR", 1, (2, 5, 11), [(2, 5), (11, 11)]),
    ],
)
def test_hours_one_slide_apart_are_consecutive(
    ledger: Ledger, slides: str, level: int, hours: tuple[int, ...], spells: list[tuple[int, int]]
) -> None:
    declared = changed(
        key=["user"],
        aggregates__load__alert={"many": "n >= 7"},
        aggregates__load__levels=f"RANGES 6 HOURS, 3 HOURS SLIDES {slides}",
    )
    stream = parse(declared)
    publish_rows(ledger, stream, [row(number, "many", 60, level=level) for number in hours])
    publish(ledger, stream)
    result = sorted(findings(ledger.root), key=lambda finding: finding.hour)
    assert [(f.start_time, f.hour) for f in result] == [(at(first), at(last)) for first, last in spells]


def test_growing_spell_keeps_its_id_and_one_without_its_middle_is_two(ledger: Ledger) -> None:
    stream = stream_of()
    publish_rows(ledger, stream, [row(1, "growing", 20)])
    publish(ledger, stream)
    (begun,) = findings(ledger.root)
    publish_rows(ledger, stream, [row(number, "growing", 20) for number in (1, 2, 3)])
    publish(ledger, stream)
    (grown,) = findings(ledger.root)
    assert (grown.finding_id, grown.start_time, grown.hour) == (begun.finding_id, at(1), at(3))
    publish_rows(ledger, stream, [row(number, "growing", 20) for number in (1, 3)])
    publish(ledger, stream)
    assert sorted((f.start_time, f.hour) for f in findings(ledger.root)) == [(at(1), at(1)), (at(3), at(3))]
    # Rows that a run has begun to replace are unchanged.
    before = findings(ledger.root)
    publish_rows(ledger, stream, [row(1, "growing", 20, n=8), row(3, "growing", 20)], status="writing")
    assert not publish(ledger, stream)
    assert findings(ledger.root) == before


def test_changed_text_is_written_again_and_rows_of_another_condition_are_marked(ledger: Ledger) -> None:
    publish_rows(ledger, stream_of(), [row(1, "growing", 20)])
    publish(ledger, stream_of())
    (before,) = findings(ledger.root)
    worse = stream_of({"growing": {**GROWING, "severity": "low", "title": "{{{user}}}"}, "many": "n >= 7"})
    publish(ledger, worse)
    (after,) = findings(ledger.root)
    assert after == replace(before, severity="low", title="app: {o'brien}", source_hash=after.source_hash)
    # The rows belong to the old condition until a run recomputes them.
    publish(ledger, stream_of({"growing": "n > 3"}))
    (marked,) = findings(ledger.root)
    assert marked.evidence[-1] == (
        "some of the reports were made by an earlier form of the stream file; their hours are stale"
    )
    # A block that has no alerts any more has no findings.
    publish(ledger, stream_of({}))
    assert stored_spells(ledger) == []


def test_findings_have_keys_of_several_columns_or_none(ledger: Ledger) -> None:
    spec = {"many": "n >= 7"}
    of_two = stream_of(spec, ("user", "status"))
    publish_rows(
        ledger, of_two, [row(1, "many", 20, status=404), row(1, "many", 20), row(1, "many", 20, user="null")]
    )
    publish(ledger, of_two)
    result = findings(ledger.root)
    assert sorted(f.key or "" for f in result) == [
        "user=null, status=null", "user=o'brien, status=404", "user=o'brien, status=null"
    ]  # fmt: skip
    of_none = stream_of(spec, ())
    publish_rows(ledger, of_none, [row(1, "many", 20)])
    publish(ledger, of_none)
    title = "app: many of load, 2015-05-17T01:00 to 2015-05-17T01:20, 1 hour every 10 minutes, n 5"
    assert stored_spells(ledger) == [(None, title, at(1), at(1) + 20 * MINUTES)]


def test_spell_with_rows_of_an_older_version_without_a_column_is_one_finding(ledger: Ledger) -> None:
    stream = stream_of({"many": "n >= 7"}, ("user", "status"))
    rows = [row(number, "many", 20) for number in (1, 2)]
    publish_rows(ledger, stream, rows, without="status")
    publish_rows(ledger, stream, rows)
    again = PartitionKey("aggregates", "load", "alerts", at(1))
    ledger.claim(
        "aggregates", {again: PartitionState("published", "killed")}, "killed", versions={"alerts": 0}
    )
    publish(ledger, stream)
    (result,) = findings(ledger.root)
    assert (result.key, result.first_hour, result.hour) == ("user=o'brien, status=null", at(1), at(2))


def test_findings_of_several_hours_are_one_commit(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = stream_of()
    publish_rows(ledger, stream, [row(number, "growing", end) for number in (1, 3, 5) for end in (10, 20)])
    compared = count_calls(monkeypatch, "_changed")
    publish(ledger, stream)
    assert sorted(f.hour for f in findings(ledger.root)) == [at(1), at(3), at(5)]
    assert version(ledger) == 1
    # Before the commit and after it.
    assert len(compared) == 2


def test_rows_and_commits_of_another_run_after_the_commit_of_this_run_are_seen(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = stream_of()
    publish_rows(ledger, stream, [row(number, "growing", 20) for number in (1, 3, 5)])
    replace_, foreign = sync._replace, list[Finding]()

    def interrupted(table: DeltaTable, *arguments: Any) -> None:
        replace_(table, *arguments)
        if not foreign:
            foreign.append(replace(findings(ledger.root)[0], finding_id="other", hour=at(7)))
            write_deltalake(f"{ledger.root}/findings", to_arrow(foreign), mode="append")
            publish_rows(ledger, stream, [row(number, "growing", 20) for number in (1, 3, 6)])

    compared = count_calls(monkeypatch, "_changed")
    monkeypatch.setattr(sync, "_replace", interrupted)
    publish(ledger, stream)
    assert sorted(f.hour for f in findings(ledger.root)) == [at(1), at(3), at(6)]
    assert len(compared) == 3


def test_changed_findings_are_recorded_and_those_that_stay_are_not(ledger: Ledger) -> None:
    stream = stream_of()

    def changes(*rows: dict[str, Any]) -> dict[str, str]:
        publish_rows(ledger, stream, [*rows])
        recorded = FindingChanges()
        sync.sync_table_findings(ledger, stream, SOURCE, recorded)
        assert sum(recorded.counts.values()) == len(recorded.rows)
        return {str(of["title"]): str(of["change"]) for of in recorded.rows}

    first, other = row(1, "growing", 20), row(3, "growing", 20, user="other")
    assert changes(first, other) == {"app: it's o'brien, 5 times": "new", "app: it's other, 5 times": "new"}
    # Its last hour is another one, so it moves to that hour.
    moved = changes(first, row(2, "growing", 20, n=6, count=6), other)
    assert moved == {"app: it's o'brien, 6 times": "updated"}
    assert changes(row(1, "growing", 20, user="o'neill"), other) == {
        "app: it's o'brien, 6 times": "withdrawn", "app: it's o'neill, 5 times": "new"
    }  # fmt: skip
    assert changes(row(1, "growing", 20, user="o'neill"), other) == {}


def count_calls(monkeypatch: pytest.MonkeyPatch, name: str) -> list[str]:
    """Return a list that grows by each call of a function of `sync`."""
    calls, function = list[str](), getattr(sync, name)
    monkeypatch.setattr(sync, name, lambda *arguments: calls.append(name) or function(*arguments))
    return calls


def test_findings_read_the_same_after_compaction(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    def files() -> int:
        return len(DeltaTable(f"{ledger.root}/findings").file_uris())

    monkeypatch.setattr(tidying, "SCATTERED", 1)
    stream = stream_of()
    # Before the first finding there is no table.
    tidying.compact(ledger, "aggregates")
    for hours in ((1,), (1, 3)):
        publish_rows(ledger, stream, [row(number, "growing", 20) for number in hours])
        publish(ledger, stream)
    result = findings(ledger.root)
    assert (len(result), files()) == (2, 2)
    tidying.compact(ledger, "aggregates")
    assert (findings(ledger.root), files()) == (result, 1)
    assert not publish(ledger, stream)
