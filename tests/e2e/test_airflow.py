"""A real Airflow runs the real DAG on hours of the real log: green, red on bad data, green when fixed."""

import os
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest
from deltalake import DeltaTable

import airflow_server
import sample_logs
from airflow_api import Airflow
from sample_logs import WEB, Hours, land
from transom.core.intervals import format_hour
from transom.features.patterns.algorithm.widening import Widening
from transom.features.registry import STAGES
from transom.findings.store import findings
from transom.ledger.ledger import Ledger
from transom.ledger.snapshot import LedgerSnapshot
from transom.storage.tables import instant, read_rows

# One Airflow serves all tests: they stay on one worker.
pytestmark = pytest.mark.xdist_group("airflow")
ROOT = Path(__file__).resolve().parents[2]
HOUR = timedelta(hours=1)
SECOND = 1_000_000
FIRST = datetime(2015, 5, 17, 10, tzinfo=UTC)
HOURS = [FIRST + number * HOUR for number in range(8)]
JUNK = FIRST + 4 * HOUR
CROWDED = FIRST + 6 * HOUR
STREAM = """
name: web
preset: apache/combined
source: {path: "landing/web/%Y-%m-%d/access.%H*.log.gz", on_conflict: replace}
key: [client]
aggregates:
  traffic:
    measures: {n: count, sent: sum(bytes)}
    levels: RANGES 24 HOURS, 6 HOURS, 1 HOUR SLIDES 6 HOURS, 3 HOURS, 1 HOUR
patterns:
  lost: {within: 3 hours, steps: [{id: seen, where: status = 200}, {id: gone, where: status = 404}]}
frames:
  served: {kind: threshold, where: status = 200, on_duplicate_time: max, min_records: 20, idle: 2 hours}
fills:
  sent: {frame: served, join_on: [], lead: 10 minutes, measures: {sent: sum(bytes)}}
persistence:
  regulars: {item: [client], slot: 1 hour, window: 8 hours, alpha: 0.7, epsilon: 0.3}
frequency:
  pages: {item: [path], window: 6 hours, tick: 10 minutes, epsilon: 0.01, delta: 0.01, top: 5}
  answers: {item: [client, status], window: 4 hours, tick: 1 hour, epsilon: 0.1, delta: 0.1,
            variant: splitter}
checks:
  nobody_alone: {stage: aggregates, every: "n < 200 or level > 0"}
start: 2015-05-17T10:00
schedule: false
"""
OLD = """
name: old
submit: single
preset: apache/combined
source: {path: "landing/old/%Y-%m-%d/access.%H.log.gz"}
key: [client]
aggregates:
  traffic: {measures: {n: count}, levels: RANGES 1 HOUR SLIDES 1 HOUR, alert: n > 1}
notify:
  ops:
    notifier: tests.support.file_notifier.FileNotifier
    arguments: {text: "{{ transom.state }} {{ transom.number }}", path: PATH}
start: 2015-05-17T10:00
until: 2015-05-27T10:00
catchup: false
"""
"""A stream whose recipient is a file; an hour's client with two records is an alert."""
RESULTS = ("episode", "frame", "persistent_item", "heavy_hitter")
"""Kinds of findings about the log, not about a run."""
TOGETHER = ("green", "together")
"""Streams whose stages run in one application: one with good files alone, one with a crowd at first."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("airflow")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Airflow]:
    streams = folder / "streams"
    streams.mkdir()
    (streams / "web.yaml").write_text(STREAM)
    for name in TOGETHER:
        together = STREAM.replace("name: web", f"name: {name}\nsubmit: single")
        (streams / f"{name}.yaml").write_text(together)
    (streams / "old.yaml").write_text(OLD.replace("PATH", str(folder / "messages")))
    places = {
        "TRANSOM_LAKE": str(folder / "lake"),
        "TRANSOM_LANDING": str(folder),
        "TRANSOM_STREAMS": str(streams),
        # It has the notifier.
        "PYTHONPATH": f"{os.environ['PYTHONPATH']}:{ROOT}",
    }
    with airflow_server.running(folder / "airflow", places) as running:
        for dag in ("web", "old", *TOGETHER):
            running.pause(dag, False)
        yield running


def ledger(folder: Path, stream: str = "web") -> Ledger:
    return Ledger(str(folder / "lake" / stream))


def rows_of(folder: Path, table: str, where: str = "TRUE", stream: str = "web") -> list[dict[str, Any]]:
    return read_rows(DeltaTable(str(folder / "lake" / stream / table)), where)


def total_aggregates(folder: Path, level: int, end: datetime, stream: str = "web") -> dict[str, int]:
    rows = rows_of(folder, "aggregates", f"level = {level} AND window_end = {instant(end)}", stream)
    return {row["client"]: row["n"] for row in rows}


def assert_recounted(folder: Path, stream: str, hours: Hours) -> None:
    """Assert that every result table of a stream equals the results recomputed from the log's lines."""
    end = HOURS[-1] + HOUR
    for until in (FIRST + 5 * HOUR, end):
        expected = sample_logs.requests(hours, until - 6 * HOUR, until)
        assert total_aggregates(folder, 1, until, stream) == expected
    matches = rows_of(folder, "matches", stream=stream)
    observed = sorted((row["client"], row["first_time"], row["last_time"]) for row in matches)
    assert observed == lost(hours) != []
    frames = rows_of(folder, "frames", "state = 'final'", stream)
    seen_frames = sorted(
        (row["client"], row["start_time"], row["last_time"], row["records"]) for row in frames
    )
    assert seen_frames == served(hours) != []
    fills = rows_of(folder, "fills", "state = 'final'", stream)
    assert {row["frame_id"] for row in fills} == {row["frame_id"] for row in frames}
    assert all(row["rows_matched"] >= 20 for row in fills)
    assert_items_recounted(folder, stream, hours)


def assert_items_recounted(folder: Path, stream: str, hours: Hours) -> None:
    """Assert that the items of both sketches are within the bounds of their rows."""
    end = HOURS[-1] + HOUR
    at_end = f"window_end = {instant(end)} AND low IS NOT NULL"
    slots = Counter(client for hour in HOURS for client in {request_of(line)[0] for line in hours[hour]})
    persistent = {row["client"]: row for row in rows_of(folder, "persistent_items", at_end, stream)}
    assert all(row["low"] <= slots[client] <= row["high"] for client, row in persistent.items())
    assert {client for client, times in slots.items() if times == len(HOURS)} <= persistent.keys() != set()
    window = [line for hour in HOURS[-6:] for line in hours[hour]]
    pages = Counter(line.split('"')[1].split()[1] for line in window)
    answers = Counter((of[0], int(of[2])) for hour in HOURS[-4:] for of in map(request_of, hours[hour]))
    rows = rows_of(folder, "frequencies", at_end, stream)
    by_block: dict[str, dict[Any, dict[str, Any]]] = {"pages": {}, "answers": {}}
    for row in rows:
        item = row["path"] if row["block"] == "pages" else (row["client"], row["status"])
        by_block[row["block"]][item] = row
    for block, counts in (("pages", pages), ("answers", answers)):
        result = by_block[block]
        assert all(row["low"] <= counts[item] <= row["high"] for item, row in result.items())
        assert counts.most_common(1)[0][0] in result
        assert {row["window_records"] for row in result.values()} == {counts.total()}


def lost(hours: Hours) -> list[tuple[str, datetime, datetime]]:
    """Return each page that existed, followed by one that did not, of a client within three hours, if seen by
    the end of the last hour.
    """
    before: dict[str, datetime] = {}
    pairs = []
    lines = [line for hour in HOURS for line in hours[hour]]
    # Within one second in the order of their lines.
    for client, time, status in sorted(map(request_of, lines), key=itemgetter(0, 1)):
        if status == "200":
            before[client] = time
        elif status == "404" and client in before:
            pairs.append((client, before.pop(client), time))
    widening = Widening(300 * SECOND, 3 * 3600 * SECOND, 100)
    short = [(client, one, other) for client, one, other in pairs if other - one <= 3 * HOUR]
    at = [(pair, int(pair[1].timestamp()) * SECOND, int(pair[2].timestamp()) * SECOND) for pair in short]
    end = int((HOURS[-1] + HOUR).timestamp()) * SECOND
    return [pair for pair, a, b in at if widening.end_of(widening.level_of(a, b), b) <= end]


def request_of(line: str) -> tuple[str, datetime, str]:
    time = datetime.strptime(line.split("[")[1].split("]")[0], "%d/%b/%Y:%H:%M:%S %z").astimezone(UTC)
    return line.split()[0], time, line.split('"')[2].split()[0]


def served(hours: Hours) -> list[tuple[str, datetime, datetime, int]]:
    """Return each client's runs of at least twenty responses of status 200, with no other between them and
    less than two hours apart, if closed by the end of the last hour.
    """
    # Within one second the largest status counts.
    largest: dict[tuple[str, datetime], str] = {}
    for client, time, status in map(request_of, (line for hour in HOURS for line in hours[hour])):
        largest[client, time] = max(status, largest.get((client, time), ""))
    result = []
    end = HOURS[-1] + HOUR
    for client, some in groupby(sorted(largest.items()), key=lambda one: one[0][0]):
        frame: list[datetime] = []
        for (_, time), status in [*some, ((client, end), "")]:
            silent = frame and time - frame[-1] >= 2 * HOUR
            if frame and (silent or (status not in ("200", ""))):
                result.append((client, frame[0], frame[-1], len(frame)))
            frame = [*([] if silent else frame), time] if status == "200" else []
    return [one for one in result if one[3] >= 20]


def later_tasks(*stages: str) -> list[str]:
    return [task for stage in stages for task in (stage, f"{stage}_gate")]


def not_published(snapshot: LedgerSnapshot) -> set[tuple[str, datetime]]:
    return {(node.table, node.hour) for node, entry in snapshot.items() if entry.status != "published"}


def reported_findings(folder: Path, stream: str) -> list[tuple[str, str, datetime | None, datetime | None]]:
    of_lake = findings(str(folder / "lake" / stream))
    return [(f.stage, f.kind, f.start_time, f.end_time) for f in of_lake if f.kind not in RESULTS]


def note(server: Airflow, dag: str, run: str) -> str | None:
    """Return the note of a run, which the grid marks."""
    text: str | None = server.ask("GET", f"/dags/{dag}/dagRuns/{run}")["note"]
    return text


def whole(run: str) -> tuple[str, dict[str, str]]:
    return run, {"from": format_hour(HOURS[0]), "to": format_hour(HOURS[-1] + HOUR)}


def test_green_run_passes_every_stage_and_publishes_the_results_of_the_log(
    folder: Path, server: Airflow
) -> None:
    """Slow (a minute or two): Airflow starts, and a real submit runs every stage over eight hours."""
    hours = sample_logs.apache()
    for hour in HOURS:
        land(folder, WEB, hour, hours[hour])
    run, interval = whole("green")
    server.trigger("green", run, **interval)
    gates = {f"{stage}_gate" for stage in STAGES}
    tasks = ["settle", "run", *gates, "report", "notify"]
    assert server.wait("green", run, 600) == dict.fromkeys(tasks, "success")
    snapshot = ledger(folder, "green").snapshot()
    assert {node.stage for node in snapshot} == {*STAGES}
    assert not_published(snapshot) == set()
    assert_recounted(folder, "green", hours)


@pytest.mark.full
def test_run_stops_at_the_gate_of_ingest_until_the_file_is_replaced(folder: Path, server: Airflow) -> None:
    """Slow (minutes): two runs, a submit for each stage."""
    hours = sample_logs.apache()
    for hour in HOURS:
        land(folder, WEB, hour, ["no log line\n"] * 5 if hour == JUNK else hours[hour])
    run, interval = whole("junk")
    server.trigger("web", run, **interval)
    assert server.wait("web", run, 900) == {
        "settle": "success",
        "ingest": "success",
        "ingest_gate": "failed",
        **dict.fromkeys(later_tasks(*STAGES[1:]), "upstream_failed"),
        "report": "upstream_failed",
        "notify": "success",
    }
    text = server.task_log("web", run, "ingest_gate")
    for texts in (format_hour(JUNK), "rejected_share", "observed 1, expected at most 0.05", "no_match"):
        assert texts in text
    snapshot = ledger(folder).snapshot()
    assert {hour for _, hour in not_published(snapshot)} == {JUNK}
    assert {node.stage for node in snapshot} == {"ingest"}
    assert reported_findings(folder, "web") == [("ingest", "check_failed", JUNK, JUNK + HOUR)]
    assert note(server, "web", run) == "transom: 1 high finding: 1 check_failed of events"

    land(folder, WEB, JUNK, hours[JUNK])
    server.clear("web", run, "ingest")
    assert set(server.wait("web", run, 900).values()) == {"success"}
    assert not_published(ledger(folder).snapshot()) == set()
    assert reported_findings(folder, "web") == []
    assert note(server, "web", run) is None
    assert_recounted(folder, "web", hours)
    episodes = [f for f in findings(str(folder / "lake/web")) if f.kind == "episode"]
    assert {(f.key, f.start_time) for f in episodes} <= {(client, start) for client, start, _ in lost(hours)}


@pytest.mark.full
def test_application_of_all_stages_stops_at_the_failed_gate_and_leaves_equal_tables(
    folder: Path, server: Airflow
) -> None:
    """Slow (minutes): two runs of one application with every stage."""
    hours = sample_logs.apache()
    loud = hours[CROWDED][0].split()[0]
    land(folder, WEB, CROWDED, [*hours[CROWDED], *hours[CROWDED][:1] * 300])
    run, interval = whole("crowd")
    server.trigger("together", run, **interval)
    assert server.wait("together", run, 900) == {
        **dict.fromkeys(
            ["settle", "run", "ingest_gate", "patterns_gate", "persistence_gate", "frequency_gate", "notify"],
            "success",
        ),
        "aggregates_gate": "failed",
        **dict.fromkeys(["frames_gate", "fills_gate", "report"], "upstream_failed"),
    }
    text = server.task_log("together", run, "aggregates_gate")
    for texts in (
        format_hour(CROWDED), "nobody_alone", "expected at least 1", f"client {loud}, count 30", "jobs/run.py"
    ):  # fmt: skip
        assert texts in text, text
    assert not_published(ledger(folder, "together").snapshot()) == {("aggregates", CROWDED)}
    assert reported_findings(folder, "together") == [("aggregates", "check_failed", CROWDED, CROWDED + HOUR)]
    assert total_aggregates(folder, 0, CROWDED + HOUR, "together") == {}
    # The next hour's reports include the crowd in their wider windows, and are published.
    assert total_aggregates(folder, 1, FIRST + 8 * HOUR, "together")[loud] > 300

    land(folder, WEB, CROWDED, hours[CROWDED])
    server.clear("together", run, "run")
    assert set(server.wait("together", run, 900).values()) == {"success"}
    own = ledger(folder, "together")
    runs = [row["run_id"].rpartition(" ")[0] for row in own.runs()]
    first = ["ingest", "patterns", "aggregates", "persistence", "frequency"]
    assert sorted(runs) == sorted(
        [*(f"crowd run 1 {stage}" for stage in first), *(f"crowd run 2 {stage}" for stage in STAGES)]
    )
    assert reported_findings(folder, "together") == []
    promised, is_published = (
        {node: (entry.status, entry.digest, entry.input_hashes) for node, entry in snapshot.items()}
        for snapshot in (ledger(folder).snapshot(), own.snapshot())
    )
    assert is_published == promised


@pytest.mark.full
def test_backfill_of_old_hours_sends_one_summary(folder: Path, server: Airflow) -> None:
    """Slow (minutes): a run of the newest hour, and three of a backfill, one application each."""
    newest = FIRST + 90 * HOUR
    for number, hour in enumerate([*HOURS[:3], newest]):
        time = hour.strftime("%d/%b/%Y:%H:00:00 +0000")
        text = f'10.0.0.{number} - - [{time}] "GET / HTTP/1.1" 200 1 "-" "agent"\n'
        land(folder, "landing/old/%Y-%m-%d/access.%H.log.gz", hour, [text] * (1 if hour == newest else 2))
    server.trigger("old", "newest", **{"from": format_hour(newest), "to": format_hour(newest + HOUR)})
    server.wait("old", "newest", 600)
    messages = folder / "messages"
    assert not messages.exists()
    server.backfill("old", HOURS[0], HOURS[2])
    end = monotonic() + 900
    while set(server.runs("old").values()) != {"success"} or len(server.runs("old")) < 4:
        assert monotonic() < end, server.runs("old")
        sleep(2)
    assert len(findings(str(folder / "lake/old"), kinds=["alert"])) == 3
    assert messages.read_text().splitlines() == ['"summary 3"']
