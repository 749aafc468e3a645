"""The benchmark of scale: its log, its processes by role, Spark's metrics, and growth."""

import gzip
import re
import sys
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as F

from bench import scale, scale_log, table
from bench.measure import Failed, run
from bench.roles import DRIVER, JAVA, ROLES, WORKERS, RoleWatch, Sample, cost, role_of
from bench.stage_record import SparkMetrics
from transom.features.registry import STAGES
from transom.stream import load

LINE = re.compile(
    r"10\.(\d+)\.(\d+)\.(\d+) - - \[\d+/Mar/2024:(\d+:\d+:\d+) \+0000\] .* (\d+) \"-\" \"agent\""
)


def test_one_key_has_half_of_the_lines_and_each_hour_is_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scale_log, "PIECE", 1_000)
    scale_log.land(tmp_path, 7_001, 1_000, 3)
    files = sorted(tmp_path.rglob("*.gz"))
    assert [str(file.relative_to(tmp_path)) for file in files] == [
        hour.strftime(scale_log.HOURLY) for hour in scale_log.interval(3).hours()
    ]
    keys: Counter[str] = Counter()
    contents = []
    for number, file in enumerate(files):
        contents.append(file.read_bytes())
        matches = [LINE.fullmatch(line) for line in gzip.decompress(contents[-1]).decode().splitlines()]
        found = [match.groups() for match in matches if match is not None]
        assert len(found) == len(matches)
        times = [moment for *_, moment, _ in found]
        assert times == sorted(times)
        assert {moment[:2] for moment in times} == {f"{number:02}"}
        keys.update(".".join(parts) for *parts, _, _ in found)
    assert keys.total() == 7_001
    (_, most), (_, second), *_ = keys.most_common()
    assert 0.48 < most / 7_001 < 0.52
    assert second < 0.05 * 7_001
    assert 700 < len(keys) <= 1_000
    # The same log is generated again.
    scale_log.land(tmp_path, 7_001, 1_000, 3)
    assert [file.read_bytes() for file in files] == contents


def test_stream_has_all_stages(tmp_path: Path) -> None:
    assert load(scale.stream_of(tmp_path)).stages == STAGES


def test_role_of_a_process_is_known_by_its_command() -> None:
    assert role_of(["/opt/java/bin/java", "-cp", "pyspark.jar"]) == JAVA
    assert role_of(["python", "-m", "pyspark.daemon", "pyspark.worker"]) == WORKERS
    assert role_of(["python", "stage_record.py"]) == DRIVER
    assert role_of([]) == DRIVER


CHILD = """
import subprocess, sys, time
held = bytearray(int(sys.argv[1]) * 2**20)
if len(sys.argv) == 2:
    subprocess.run([sys.executable, __file__, "200", "pyspark.daemon"], check=True)
end = time.process_time() + 1
while time.process_time() < end:
    pass
"""


def test_processes_are_measured_by_role(tmp_path: Path) -> None:
    script = tmp_path / "child.py"
    script.write_text(CHILD)
    samples: list[Sample] = []
    measured = run([sys.executable, script, "50"], tmp_path / "log", watching=partial(RoleWatch, samples))
    spent = cost(samples, samples[0].moment, samples[-1].moment)
    assert 50 <= spent.peak_mib[DRIVER] < 150
    assert 200 <= spent.peak_mib[WORKERS] < 300
    assert spent.peak_mib[JAVA] == 0
    assert spent.cpu_s[DRIVER] > 0.5
    assert spent.cpu_s[WORKERS] > 0.5
    assert 250 <= measured.peak_mib < 400
    assert measured.cpu_s == pytest.approx(sum(spent.cpu_s.values()), abs=0.5)


def sample(moment: float, driver: int, cpu_s: float) -> Sample:
    memory = {DRIVER: driver * 2**20, JAVA: 0, WORKERS: 0}
    return Sample(moment, memory, {DRIVER: cpu_s, JAVA: 2 * cpu_s, WORKERS: 0.0})


def test_cost_is_that_between_two_moments() -> None:
    samples = [sample(0, 10, 1), sample(1, 90, 2), sample(2, 30, 4), sample(3, 20, 8), sample(4, 70, 16)]
    spent = cost(samples, 1.5, 3.5)
    assert spent.peak_mib == {DRIVER: 30, JAVA: 0, WORKERS: 0}
    assert spent.cpu_s == {DRIVER: 6, JAVA: 12, WORKERS: 0}
    # A stage between two samples has the memory of the sample before it.
    assert cost(samples, 1.2, 1.4).peak_mib[DRIVER] == 90
    assert cost(samples, -1, 0.5).cpu_s[DRIVER] == 0


def row(events: int, cpu_s: float, driver_mib: int) -> dict[str, Any]:
    costs = {f"{role}_cpu_s": 1.0 for role in ROLES} | {f"{role}_mib": 300 for role in ROLES}
    values = {"events": events, "keys": 10, "rows": 7000, "seconds": 9.5, "cpu_s": cpu_s}
    return {"bench": "scale", "who": "frames", **costs, **values, "driver_mib": driver_mib}


def test_growth_is_that_of_cpu_to_that_of_events() -> None:
    small, medium, large = row(10, 10.0, 300), row(100, 110.0, 320), row(400, 550.0, 340)
    assert scale.growth(small, None, None) == {}
    linear, flat = "CPU at most 1.2 times linear", "driver's memory at most 1.1 times"
    assert scale.growth(medium, small, small) == {
        "growth": 1.1, "driver_growth": 1.07, "aims": {linear: True, flat: True},
    }  # fmt: skip
    # CPU time is compared with the size before, memory with the first size.
    grown = scale.growth(large, medium, small)
    assert grown == {"growth": 1.25, "driver_growth": 1.13, "aims": {linear: False, flat: False}}
    text = table.scale([small, {**large, **grown, "memory_spilled_mib": 5.0, "disk_spilled_mib": 2.0}])
    assert text.splitlines()[2:] == [
        "| frames | 10 | 10 | 7,000 | 9.5 | 10.0 | 1.0 | 1.0 | 1.0 | 300 | 300 | 300 |  |  |  |  |  |",
        "| frames | 400 | 10 | 7,000 | 9.5 | 550.0 | 1.0 | 1.0 | 1.0 | 340 | 300 | 300 | 5.0 | 2.0 | 1.25 | "
        f"1.13 | {linear}; {flat} |",
    ]


def test_too_small_disk_is_noticed_before_the_run(tmp_path: Path) -> None:
    with pytest.raises(Failed, match=r"need [\d,]+ MiB of disk"):
        next(scale.bench(tmp_path / "scale", [10**15]))


def test_spilled_bytes_are_those_since_the_last_call(spark: SparkSession) -> None:
    metrics = SparkMetrics()
    metrics.since(spark)
    rows = spark.range(20_000).withColumn("n", F.count("*").over(Window.partitionBy(F.col("id") % 2)))
    few = "spark.sql.windowExec.buffer.in.memory.threshold", "spark.sql.windowExec.buffer.spill.threshold"
    for name in few:
        spark.conf.set(name, "100")
    try:
        rows.write.format("noop").mode("overwrite").save()
    finally:
        for name in few:
            spark.conf.unset(name)
    spilled = metrics.since(spark)
    assert spilled["memoryBytesSpilled"] > 0
    assert spilled["diskBytesSpilled"] > 0
    assert spilled["shuffleWriteBytes"] > 0
    assert set(metrics.since(spark).values()) == {0}


@pytest.mark.full
def test_all_stages_are_measured(tmp_path: Path) -> None:
    """Slow: an application with all stages."""
    rows = list(scale.bench(tmp_path / "scale", [400], 20, 3))
    assert [one["who"] for one in rows] == [scale.START, *STAGES, scale.ALL]
    by_stage = {one["who"]: one for one in rows}
    assert by_stage["ingest"]["rows"] == 400
    assert all(one["cpu_s"] > 0 and one["driver_mib"] > 50 and one["java_mib"] > 100 for one in rows)
    parts = sum(one["cpu_s"] for one in rows[:-1])
    assert parts == pytest.approx(by_stage[scale.ALL]["cpu_s"], rel=0.2)
    assert not (tmp_path / "scale" / "lake").exists()
