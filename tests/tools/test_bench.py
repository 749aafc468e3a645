"""The benchmarks' tables, and the validity of a measurement and a cache."""

import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from bench import __main__ as command
from bench import aims, between, framing, published, scans, stages, table, updates, version
from bench.aggregate import FLOOR, OURS, STAGE, WINDOW, WRITTEN
from bench.flat import AGGREGATES as STEADY
from bench.hour import JOBS, SERVER, _stream, phases_of
from bench.ingest import in_turn
from bench.levels import FRAMES, levels_of
from bench.measure import Failed, run
from transom.features.registry import STAGES
from transom.stream import load, parse

INGEST = {"bench": "ingest", "log": "zeek", "layout": "plain", "lines": 10, "cpu_s": 9.5, "peak_mib": 700}
AGGREGATE = {"bench": "aggregate", "log": "zeek", "events": 10, "cold": 9.0, "peak_mib": 800}
HOUR = {"bench": "hour", "log": "apache", "lines": 300, "cpu_s": 7.0, "peak_mib": 900, "airflow_mib": 500}


LEVELS = {"bench": "levels", "log": "drawn", "events": 10, "keys": 1000, "reports": 70, "cold": 9.0}
FLAT = {
    "bench": "flat",
    "log": "steady",
    "stage_s": 9.0,
    "seconds": 20.0,
    "cpu_s": 15.0,
    "peak_mib": 700,
    "other_rows": 5,
}


def at_levels(who: str, seconds: float, levels: int) -> dict[str, Any]:
    return {**LEVELS, "levels": levels, "who": who, "seconds": seconds, "peak_mib": 800, "all": [[9.0]]}


def on_day(who: str, day: int, rows: int, ratio: float) -> dict[str, Any]:
    values = {"data_rows": rows, "to_first_day": ratio, "ledger_rows": 8 * day, "ledger_ms": 3}
    return {**FLAT, "who": who, "day": day, **values}


def joined(who: str, seconds: float, case: str, compared: int | None = None) -> dict[str, Any]:
    values = {"produced": 50, "cold": 9.0, "seconds": seconds, "compared": compared, "peak_mib": 800}
    return {"bench": "between", "case": case, "events": 10, "who": who, **values}


def framed(who: str, seconds: float) -> dict[str, Any]:
    values = {"found": 4, "cold": 9.0, "seconds": seconds, "per_second": 7000, "peak_mib": 800}
    return {"bench": "frames", "case": "threshold", "events": 10, "who": who, **values}


def updated(who: str, columns: int, seconds: float, to_fewest: float) -> dict[str, Any]:
    values = {"events": 10, "seconds": seconds, "a_second": 7, "to_fewest": to_fewest}
    return {"bench": "updates", "who": who, "columns": columns, **values}


def ingest_result(who: str, seconds: float, layout: str = "plain") -> dict[str, Any]:
    return {**INGEST, "layout": layout, "who": who, "seconds": seconds, "all": [{"seconds": seconds}]}


def aggregated(who: str, seconds: float) -> dict[str, Any]:
    return {**AGGREGATE, "who": who, "seconds": seconds, "all": [[9.0, seconds]]}


ROWS: list[dict[str, Any]] = [
    ingest_result("transom", 20.0),
    ingest_result("spark, shuffled by hour", 30.0),
    ingest_result("spark", 19.0),
    # Another layout is other work.
    ingest_result("transom", 10.0, "hourly"),
    ingest_result("spark", 10.0, "hourly"),
    aggregated(OURS, 4.0),
    aggregated(STAGE, 8.0),
    aggregated(WINDOW, 48.0),
    aggregated(WRITTEN, 60.0),
    aggregated(FLOOR, 1.9),
    # The values of one or two levels are reported without a target.
    at_levels(OURS, 4.0, 2),
    at_levels(WINDOW, 20.0, 2),
    at_levels(OURS, 5.0, 3),
    at_levels(WINDOW, 45.0, 3),
    # Not repeated: cold compared with cold.
    {**at_levels(FRAMES, 99.0, 3), "cold": 99.0, "warm": False},
    on_day(STEADY, 2, 1000, 1.0),
    on_day(STEADY, 60, 1060, 1.06),
    on_day("patterns, all read by Spark", 60, 960, 0.96),
    on_day("ingest", 60, 2000, 2.0),
    {**HOUR, "who": f"per_stage, {SERVER}", "seconds": 34.9, "all": [34.9], "phases": {"ingest": 5.0}},
    {**HOUR, "who": "single", "seconds": 25.0, "all": [25.0], "phases": {"run": 6.0}},
    {"bench": "try", "log": "zeek", "lines": 100_000, "who": "transom try", "seconds": 25.0, "whole_s": 27.0,
     "init_s": 2.0, "cpu_s": 30.0, "peak_mib": 1000, "all": []},
    joined(OURS, 6.0, "short", 100),
    joined(between.FLOOR, 4.1, "short"),
    # A target speed exists for a range join with skew alone.
    joined(between.RANGE, 7.5, "short", 10_000),
    joined(OURS, 6.0, between.SKEW, 100),
    joined(between.FLOOR, 3.9, between.SKEW),
    joined(between.RANGE, 42.6, between.SKEW, 90_000),
    framed(OURS, 3.0),
    framed(framing.FLOOR, 2.5),
    framed(framing.ISLANDS, 6.0),
    updated(updates.LISTED, 28, 4.0, 1.0),
    updated(updates.LAZY, 28, 1.0, 1.0),
    updated(updates.LISTED, 2800, 40.0, 10.0),
    updated(updates.LAZY, 2800, 1.6, 1.6),
]  # fmt: skip
STEADIER = "at most 1.5 times the time of 28 columns"
AS_TABLES = f"at most 2 times as long as {OURS}"
JUDGED = [
    (None, None, None), (1.5, "at least 1", True), (0.95, "at least 1", False),
    (None, None, None), (1.0, "at least 1", True),
    (None, None, None), (None, AS_TABLES, True), (12.0, "at least 10", True), (7.5, None, None),
    (0.47, "at least 0.5", False),
    (None, None, None), (5.0, None, None), (None, None, None), (9.0, "at least 10", False),
    (11.0, None, None),
    (None, "within 5%", True), (None, "within 5%", False), (None, "within 5%", True), (None, None, None),
    (None, "under 35 s", True), (None, "under 25 s", False), (None, "under 60 s", True),
    (None, None, None), (0.68, "at least 0.667", True), (1.25, None, None),
    (None, None, None), (0.65, "at least 0.667", False), (7.1, "at least 7", True),
    (None, None, None), (0.83, "at least 0.769", True), (2.0, None, None),
    (4.0, None, None), (None, STEADIER, True), (25.0, None, None), (None, STEADIER, False),
]  # fmt: skip


def test_each_value_is_next_to_its_peers_and_its_target() -> None:
    evaluated = aims.judged(ROWS)
    assert [(row["times_as_fast"], row["aim"], row["met"]) for row in evaluated] == JUDGED
    slow = aims.judged([aggregated(OURS, 4.0), aggregated(STAGE, 8.1)])
    assert [row["met"] for row in slow] == [None, False]
    # Missing values are not mentioned.
    assert aims.judged([ingest_result("spark", 19.0)])[0]["times_as_fast"] is None


def test_markdown_and_json_have_the_same_values(tmp_path: Path) -> None:
    text = table.written(ROWS, tmp_path)
    assert (tmp_path / "results.md").read_text() == text
    computed = json.loads((tmp_path / "results.json").read_text())
    assert computed["rows"] == aims.judged(ROWS)
    assert computed["code"] == version.version(version.WRITING)
    lines = text.splitlines()
    assert "| zeek | plain | 10 | spark | 19.0 | 0.95 | at least 1 | no | 9.5 | 700 | 19.0 |" in lines
    window = f"| zeek | 10 | {WINDOW} | 9.0 | 48.0 | 12.0 | at least 10 | yes | 800 | 9.0 48.0 |"
    assert window in lines
    of_levels = f"| 1,000 | 3 | 10 | 70 | {WINDOW} | 9.0 | 45.0 | 9.0 | at least 10 | no | 800 | 9.0 |"
    assert of_levels in lines
    of_a_day = f"| {STEADY} | 60 | 1,060 | 1.06 | within 5% | no | 9.0 | 20.0 | 15.0 | 700 | 5 | 480 | 3 |"
    assert of_a_day in lines
    assert "| `single` | 300 | 25.0 | under 25 s | no | 7.0 | 900 | 500 | 25.0 |" in lines
    assert "| zeek | 100,000 | 25.0 | under 60 s | yes | 27.0 | 2.0 | 30.0 | 1000 |" in lines
    skewed = f"{between.SKEW} | 10 | {between.RANGE} | 9.0 | 42.6 | 7.1 | at least 7 | yes | 50 | 1,800.0"
    assert f"| {skewed} | 800 |" in lines
    assert f"| threshold | 10 | 4 | {framing.ISLANDS} | 9.0 | 6.0 | 7,000 | 2.0 |  |  | 800 |" in lines
    assert f"| 2800 | {updates.LAZY} | 10 | 1.6 | 7 | 1.6 |  | {STEADIER} | no |" in lines
    assert [line for line in lines if line.startswith("## ")] == [
        "## Ingest", "## Aggregate", "## Levels", "## Flat", "## Hour", "## Try",
        "## Between", "## Updates", "## Frames",
    ]  # fmt: skip


def test_checked_in_results_are_those_of_benchmarks_that_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "publish", lambda *results: published.publish(*results, tmp_path))
    found = {bench: [row for row in ROWS if row["bench"] == bench] for bench in ("ingest", "hour", "frames")}

    def failing() -> Iterator[dict[str, Any]]:
        yield found["hour"][0]
        raise Failed("a task fails")

    by_name = {
        "ingest": lambda: iter(found["ingest"]),
        "hour": failing,
        "frames": lambda: iter(found["frames"]),
    }
    assert [*command.measured(["frames"], by_name, whole=False)] == found["frames"]
    assert [*tmp_path.iterdir()] == []
    with pytest.raises(Failed):
        [*command.measured(["ingest", "hour", "frames"], by_name, whole=True)]
    assert [path.name for path in tmp_path.iterdir()] == ["ingest.json"]
    text = (tmp_path / "ingest.json").read_text()
    # A line for each row makes a readable diff.
    assert text.count('\n  {"log"') == len(found["ingest"]) == text.count("who")
    computed = json.loads(text)
    assert [*computed] == ["date", "commit", "cores", "aim", "rows"]
    assert computed["rows"][1] == {
        "log": "zeek", "layout": "plain", "lines": 10, "cpu_s": 9.5, "peak_mib": 700,
        "who": "spark, shuffled by hour", "seconds": 30.0, "times_as_fast": 1.5,
        "aim": "at least 1", "met": True,
    }  # fmt: skip
    (widened,) = published.facts([{"who": "transom", "aims": {"less": True, "sooner": False}}])
    assert widened == {"who": "transom", "aim": "less; sooner", "met": False}


def test_results_of_other_code_are_not_used(tmp_path: Path) -> None:
    code, form = tmp_path / "code", tmp_path / "form.yaml"
    code.mkdir()
    (code / "a.py").write_text("1")
    (code / "notes.txt").write_text("1")
    form.write_text("1")
    retained, other = tmp_path / "cache" / "lake", tmp_path / "cache" / "lake-plain"
    other.mkdir(parents=True)
    computed = version.folder(retained, [code, form])
    computed.mkdir()
    (code / "notes.txt").write_text("2")
    assert version.folder(retained, [code, form]) == computed
    for file in (code / "a.py", form, code / "b.py"):
        file.write_text(f"{file.name} is new")
        changed = version.folder(retained, [code, form])
        assert changed != computed
        assert sorted(retained.parent.iterdir()) == [other]
        computed = changed
        computed.mkdir()


CHILD = """
import subprocess, sys, time
held = bytearray(150 * 2**20)
if len(sys.argv) < 2:
    subprocess.run([sys.executable, __file__, "below"], check=True)
    print("both are done", flush=True)
end = time.process_time() + 1
while time.process_time() < end:
    pass
"""


def test_memory_and_cpu_time_of_all_processes_are_counted(tmp_path: Path) -> None:
    script = tmp_path / "child.py"
    script.write_text(CHILD)
    measured = run([sys.executable, script], tmp_path / "log", says="both are done")
    assert 2 * 150 < measured.peak_mib < 3 * 150
    assert 1.2 < measured.cpu_s < 3.5
    assert measured.said is not None
    assert measured.said < measured.seconds


def test_failed_or_incomplete_process_is_no_measurement(tmp_path: Path) -> None:
    with pytest.raises(Failed, match="ended with 3: no"):
        run([sys.executable, "-c", "print('no'); raise SystemExit(3)"], tmp_path / "log")
    with pytest.raises(Failed, match="ended with 0: no"):
        run([sys.executable, "-c", "print('no')"], tmp_path / "log", says="yes")


def test_each_variant_is_first_in_turn() -> None:
    assert [in_turn("abc", number) for number in range(4)] == [
        list("abc"),
        list("bca"),
        list("cab"),
        list("abc"),
    ]


@pytest.mark.parametrize("way", JOBS)
def test_stream_of_an_hour_is_valid(way: str, tmp_path: Path) -> None:
    assert load(_stream(way, tmp_path)).submit == way


def test_stream_of_all_stages_has_every_stage() -> None:
    assert parse(stages.spec()).stages == STAGES


def test_hours_of_all_stages_are_judged_and_shown_with_their_counts(tmp_path: Path) -> None:
    counts = {"jobs": 23, "executions": 19, "opened": 30, "java_cpu_s": 7.5, "driver_cpu_s": 6.5}
    both = [
        {"bench": "stages", "who": "first hour of 120, transom", "seconds": 13.0, **counts},
        {"bench": "stages", "who": f"{stages.application(120)}, transom", "seconds": 13.0},
        {"bench": "stages", "who": f"{stages.on_server(120)}, transom", "seconds": 4.5},
        {"bench": "idle", "who": f"{stages.COLD}, transom", "seconds": 6.0, "cpu_s": 8.0},
    ]
    lines = table.written(both, tmp_path).splitlines()
    assert "| first hour of 120, transom | 13.0 |  |  | 23 | 19 | 30 | 7.5 | 6.5 |  |  |" in lines
    application = f"| {stages.application(120)}, transom | 13.0 | under 12 s | no |  |  |  |  |  |  |  |"
    on_server = f"| {stages.on_server(120)}, transom | 4.5 | under 5 s | yes |  |  |  |  |  |  |  |"
    assert {application, on_server} <= {*lines}
    assert f"| {stages.COLD}, transom | 6.0 | under 7 s | yes |  |  |  |  |  |  | 8.0 |" in lines


def test_levels_are_added_to_existing_ones() -> None:
    assert levels_of(1) == "RANGES 1 HOUR SLIDES 5 MINUTES"
    assert levels_of(4) == (
        "RANGES 24 HOURS, 6 HOURS, 2 HOURS, 1 HOUR SLIDES 1 HOUR, 30 MINUTES, 10 MINUTES, 5 MINUTES"
    )


def leaf(metric: int, location: str | None, name: str = "Scan parquet ") -> dict[str, Any]:
    named = {} if location is None else {"Location": location}
    counted = [{"name": "size", "accumulatorId": 99}, {"name": scans.ROWS, "accumulatorId": metric}]
    return {"children": [], "nodeName": name, "metadata": named, "metrics": counted}


def plan(kind: str, *leaves: dict[str, Any]) -> dict[str, Any]:
    # Nodes above a leaf have rows of their own, which belong to no input.
    above = {"children": list(leaves), "metadata": {}, "metrics": leaf(50, None)["metrics"]}
    return {"Event": f"org.apache.spark.sql.{kind}", "sparkPlanInfo": above}


def task(records: int | None, **updates: object) -> dict[str, Any]:
    metrics = None if records is None else {"Input Metrics": {"Records Read": records}}
    counted = [{"ID": int(name[1:]), "Update": update} for name, update in updates.items()]
    # Some have no update, or one that is no number.
    reported = {"Accumulables": [*counted, {"ID": 1}, {"ID": 2, "Update": [1]}]}
    return {"Event": "SparkListenerTaskEnd", "Task Metrics": metrics, "Task Info": reported}


def test_rows_are_distinguished_by_their_source() -> None:
    start, again = "SparkListenerSQLExecutionStart", "SparkListenerSQLAdaptiveExecutionUpdate"
    events = [
        {"Event": "SparkListenerApplicationStart"},
        plan(f"execution.ui.{start}", leaf(1, "PreparedDeltaFileIndex(1 paths)[file:/lake/web/events]")),
        task(30, _1="30", _50="7"),
        task(12, _1=12, _99=5),
        # The same leaf, in a plan built again.
        plan(
            f"execution.ui.{again}",
            leaf(1, "PreparedDeltaFileIndex(1 paths)[file:/lake/web/events]"),
            leaf(2, "InMemoryFileIndex(1 paths)[file:/lake/web/granules/made-1]"),
            leaf(3, "DeltaLogFileIndex(1 paths)[file:/lake/web/events/_delta_log]"),
            leaf(4, None, "LocalTableScan"),
            leaf(5, "elsewhere"),
            leaf(6, None, "Scan ExistingRDD Delta Table State #1 - file:/lake/web/events/_delta_log"),
        ),
        task(None, _2=3, _3=400, _4=5, _6=20),
        {"Event": f"org.apache.spark.sql.execution.ui.{scans.DRIVER}", "accumUpdates": [[4, 6], [5, 1]]},
    ]
    rows, records = scans.rows_read(events, "/lake/web")
    assert rows == {"events": 42, scans.NEW: 3, scans.LOG: 420, scans.HANDED: 11, "elsewhere": 1}
    assert records == 42


def test_phases_of_an_hour_add_up_to_its_time_where_tasks_run_at_once() -> None:
    tasks = {
        "ingest": (12.0, 15.0),
        "frames": (15.5, 30.0),
        "fills": (16.0, 40.0),
        "frames_gate": (30.5, 31.0),
    }
    finished = datetime.fromtimestamp(14.0, UTC)
    ingest = {"stage": "ingest", "finished_at": finished, "phase_seconds": {"total": 1.5, "session": 0.5}}
    phases = phases_of(tasks, {"ingest": ingest}, triggered=10.0)
    assert sum(phases.values()) == 30.0
    assert (phases["frames"], phases["fills"], phases["frames_gate"]) == (14.5, 10.0, 0.0)
    assert (phases["ingest: Spark's session"], phases["ingest: work of ingest"]) == (0.5, 1.0)
