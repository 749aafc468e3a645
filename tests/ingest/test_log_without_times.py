"""A log without times: its lines count from the start in the file's name, which is part of the file's
identity.
"""

from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tests.support.stream_harness import StreamHarness

TRACE = """
name: trace
preset: syscalls/trace
extra_fields: keep
source: {path: "landing/%Y-%m-%d.%H.log"}
time: {lines: 20 minutes, from: name}
aggregates:
  calls: {key: [call], measures: {n: count}, levels: RANGES 1 HOUR SLIDES 1 HOUR}
"""


def test_equal_files_of_two_hours_both_count(spark: SparkSession, tmp_path: Path) -> None:
    harness = StreamHarness(spark, tmp_path, TRACE.replace('"landing/', f'"{tmp_path}/'))
    for number in (5, 6):
        # The last line is outside the hour, and within the file's time range.
        text = "open path=/a flags=0 => 3\nread fd=3\nclose fd=3 => 0\nexit\n"
        (tmp_path / f"2015-05-17.{number:02}.log").write_text(text)
    harness.stage("ingest", 0, 24)
    time = F.date_format("event_time", "HH:mm")
    rows = harness.table("events").select(time, "source_line", "call", "returned", "fd", "path", "rest")
    one = [(1, "open", "3", None, "/a", '{"flags":"0"}'), (2, "read", None, "3", None, None),
           (3, "close", "0", "3", None, None), (4, "exit", None, None, None, None)]  # fmt: skip
    times = ["05:00", "05:20", "05:40", "06:00", "06:00", "06:20", "06:40", "07:00"]
    expected = [(time, *row) for time, row in zip(times, one * 2, strict=True)]
    assert sorted(map(tuple, rows.collect()), key=str) == sorted(expected, key=str)
    files = harness.table("files").select("status", "lines", "accepted", "rejected").collect()
    assert [tuple(file) for file in files] == [("ingested", 4, 4, 0)] * 2
    # Under another name it has other times, though no byte has changed.
    (tmp_path / "2015-05-17.06.log").rename(tmp_path / "2015-05-17.08.log")
    harness.stage("ingest", 0, 24)
    standing = harness.table("files").select("path", "status").collect()
    assert {Path(path).name[11:13]: status for path, status in standing} == {
        "05": "ingested",
        "06": "missing",
        "08": "ingested",
    }
    assert harness.table("events").count() == 12
