"""The code in README and documentation runs as printed."""

import gzip
import io
import os
import re
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import sample_logs
from sample_logs import HOUR
from site_tools.diagrams import edges
from tests.support import sample_streams
from tests.support.stream_harness import StreamHarness
from transom.app.run_stage import run_chunk
from transom.core.intervals import Interval
from transom.core.partitions import CheckResult, PartitionKey, PartitionState
from transom.findings.text import as_text
from transom.formats.read_file import Chunk, read_file
from transom.ledger.ledger import Ledger
from transom.stream import load, parse

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
TEXT = "\n".join(page.read_text() for page in PAGES)


FENCE = re.compile(r"^```(?P<kind>\w+)(?: title=\"(?P<title>\w+)\")?\n(?P<text>.*?)^```$", re.M | re.S)
"""A block of code, with its name if it has one."""


def block(title: str) -> str:
    """Return the block of code with a name."""
    (text,) = (result["text"] for result in FENCE.finditer(TEXT) if result["title"] == title)
    return text


def stream_file(name: str) -> str:
    """Return a shown stream file, by the stream's name."""
    (text,) = (text for text in stream_files() if yaml.safe_load(text)["name"] == name)
    return text


def of_kind(kind: str) -> list[str]:
    return [result["text"] for result in FENCE.finditer(TEXT) if result["kind"] == kind]


def stream_files() -> list[str]:
    """Return the complete stream files; other YAML is a part of one."""
    return [text for text in of_kind("yaml") if "name" in yaml.safe_load(text)]


def test_shown_stream_files_are_valid_and_have_these_blocks() -> None:
    streams = [parse(yaml.safe_load(text)) for text in stream_files()]
    kinds = ("aggregates", "patterns", "frames", "fills", "persistence", "frequency")
    blocks = {stream.name: [name for kind in kinds for name in getattr(stream, kind)] for stream in streams}
    assert len(blocks) == len(streams)
    assert blocks == {
        "web": ["traffic", "errors"],
        "sensors": ["warmth"],
        "doors": ["guessed"],
        "roads": ["flow", "jam", "hundred", "silent", "unusual", "week_before", "upstream", "rain", "works"],
        "calls": ["beacons", "regulars"],
        "batch": ["results"],
        "flows": ["sources", "pairs"],
    }


def test_blocks_of_the_tutorial_fit_the_example_log() -> None:
    page = (ROOT / "docs/tutorial/first-findings.md").read_text()
    (shown,) = (result["text"] for result in FENCE.finditer(page) if result["kind"] == "yaml")
    drafted = yaml.safe_load((ROOT / "tests/data/examples/nginx.yaml").read_text())
    stream = parse(drafted | yaml.safe_load(shown))
    assert ([*stream.aggregates], [*stream.persistence]) == (["bursts", "growth"], ["regulars"])


def test_every_block_of_code_has_a_name_of_its_own() -> None:
    titles = [result["title"] for result in FENCE.finditer(TEXT) if result["kind"] in ("python", "sh")]
    assert None not in titles
    assert len({*titles}) == len(titles)


@pytest.mark.full
def test_second_stream_reads_its_log(spark: SparkSession, tmp_path: Path) -> None:
    """Slow where it is the first (20 seconds): Java starts, and all stages run."""
    harness = StreamHarness(spark, tmp_path, stream_file("sensors").replace('"landing/', f'"{tmp_path}/'))
    log = tmp_path / "sensors/roof/2015-05-17.csv.gz"
    log.parent.mkdir(parents=True)
    # By the local clock, in a file of the local day.
    times = ["17.05.2015 00:30:00", "17.05.2015 00:40:00", "17.05.2015 00:41:00"]
    rows = [f"a;{celsius};{time}" for celsius, time in zip(["20.5", "-999", "21.5"], times, strict=True)]
    log.write_bytes(gzip.compress("\n".join(["device_id;temp;measured_at", *rows]).encode()))
    start = datetime(2015, 5, 16, 22, tzinfo=UTC)
    for stage in harness.stream.stages:
        run_chunk(stage, harness.context_of(Interval(start, start + HOUR)))
    result = harness.table("aggregates").where(F.col("level") == 1).collect()
    at_its_end = [row for row in result if row.window_end.astimezone(UTC) == start + HOUR]
    assert [(row.site, row.device, row.n, row.mean, row.highest) for row in at_its_end] == [
        ("roof", "a", 2, 21.0, 21.5)
    ]


def test_pattern_reads_its_log_as_shown() -> None:
    stream = parse(yaml.safe_load(stream_file("batch")))
    match = stream.source.pattern.match("landing/batch/2024-05-06/jobs.07.log")
    assert match is not None
    lines = io.BytesIO(block("batch_log").encode())
    parts = read_file(lines, "a", stream.layout(), stream.span(match), start=match.start)
    (chunk,) = (part for part in parts if isinstance(part, Chunk))
    head, *shown = (re.split(" {2,}", line) for line in block("batch_events").splitlines())
    rows = chunk.events.select(head).to_pylist()
    assert [[as_text(value).removesuffix("Z") for value in row.values()] for row in rows] == shown
    assert [row["detail"] for row in chunk.rejected.to_pylist()] == [block("batch_rejected").strip()]


@pytest.mark.full
def test_join_works_as_shown(spark: SparkSession) -> None:
    """Slow where it is the first (20 seconds): Java starts."""
    noon = datetime(2024, 5, 1, 12, tzinfo=UTC)
    outages = [(1, "a", noon, noon + HOUR), (2, "b", noon, noon + HOUR)]
    flows = [
        ("a", noon - HOUR / 20, 7),
        ("a", noon + HOUR / 2, 5),
        ("a", noon + HOUR, 99),
        ("b", noon - 24 * HOUR, 3),
    ]
    names: dict[str, Any] = {
        "outages": spark.createDataFrame(outages, "id int, router string, start timestamp, end timestamp"),
        "flows": spark.createDataFrame(flows, "router string, at timestamp, bytes int"),
    }
    exec(compile(block("between_join"), "documentation", "exec"), names)
    reported = names["sums"].select("id", "flows", "sent", "largest").collect()
    assert list(map(tuple, reported)) == [(1, 2, 12, 7), (2, 0, None, None)]
    assert list(map(tuple, names["pairs"].select("id", "router", "bytes").collect())) == [(2, "b", 3)]


def test_errors_are_reported_as_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ledger = Ledger(str(tmp_path / "web"))
    node = PartitionKey("ingest", "events", "events", datetime(2015, 5, 17, 10, tzinfo=UTC))
    ledger.claim("ingest", [node], "a")
    observed = [
        CheckResult(
            node, "rejected_share", "error", 0.5, "at most 0.05", False, failing_rows=("junk", "more")
        ),
        CheckResult(node, "lines_accounted", "error", 0.0, "0", True),
    ]
    ledger.record_checks("ingest", observed, "a")
    ledger.record_checks("ingest", observed, "an earlier run")
    ledger.publish("ingest", {node: PartitionState("quarantined", "a")}, "a")
    exec(compile(block("failed_checks").replace(".transom/lake", str(tmp_path)), "documentation", "exec"), {})
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split() == ["hour", "stage", "check", "severity", "observed", "expected", "file", "first"]
    (row,) = rows
    assert row.split()[3:6] == ["ingest", "rejected_share", "error"]
    assert row.endswith("junk")


def test_picture_matches_the_dag() -> None:
    from stream_dag import build

    draws = reachable(set(edges()))
    observed = set()
    for file in sample_streams.FILES:
        dag = build(load(file), file)
        waits = {(task.task_id, after) for task in dag.tasks for after in task.downstream_task_ids}
        # A stage that the stream does not have has no task.
        assert reachable(waits) == {(one, other) for one, other in draws if {one, other} <= set(dag.task_ids)}
        observed |= reachable(waits)
    assert observed == draws


def reachable(edges: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """Return which task waits for which, directly or not."""
    while more := {(a, d) for a, b in edges for c, d in edges if b == c} - edges:
        edges = edges | more
    return edges


@pytest.mark.full
def test_jobs_and_notebook_work_without_airflow_as_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Slow (a minute): it submits real jobs."""
    text = block("without_airflow").replace(".transom/try", str(tmp_path)).replace("$PWD/", "")
    finished = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", text],
        cwd=ROOT, env=dict(os.environ), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert finished.returncode == 0, finished.stderr
    lines = [line.split() for line in finished.stdout.splitlines() if "+00:00" in line]
    assert len(lines) == 5, finished.stdout
    _, day, time, client, count, _ = lines[0]
    end = datetime.fromisoformat(f"{day}T{time}")
    assert sample_logs.requests(sample_logs.apache(), end - 24 * HOUR, end)[client] == int(count)
    output = []
    for title in ("persistent_items", "frequency", "results", "notebook"):
        text = block(title).replace(".transom/lake", f"{tmp_path}/lake")
        exec(compile(text.replace("schemas/", f"{ROOT}/schemas/"), "documentation", "exec"), {})
        output.append(capsys.readouterr().out)
    # A day is too short for any item to be present in most hours of three.
    assert output[0].startswith("Empty DataFrame")
    end, log = datetime(2015, 5, 18, 9, tzinfo=UTC), sample_logs.apache()
    requested = sum(" /robots.txt " in line for hour, lines in log.items() if hour < end for line in lines)
    _, low, high, _, records = map(float, output[1].split())
    assert low <= requested <= high
    assert records == sample_logs.requests(log, end - 24 * HOUR, end).total()
    requests = sample_logs.requests(log, end - 9 * HOUR, end)["66.249.73.135"]
    assert all(
        f"'client': '66.249.73.135', 'count': {requests}, 'n': {requests}," in text for text in output[2:]
    )


def test_make_lists_every_target_of_the_readme() -> None:
    shown = subprocess.run(["make", "-C", ROOT], capture_output=True, text=True, check=True).stdout
    named = set(re.findall(r"^make ([a-z-]+)", TEXT, re.MULTILINE))
    assert {"demo", "test"} <= named
    assert [name for name in named if not re.search(rf"^{name}\s", shown, re.MULTILINE)] == []
