"""Equal files, names with the end of a period, and the end of summer time, from files to aggregates."""

import gzip
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from tests.support.failing_checks import failed, makes_fail, noted
from tests.support.stream_harness import WEB, StreamHarness, hour, line
from transom.app.run_stage import run_chunk
from transom.core.intervals import Interval
from transom.engine.gate import evaluate_gate
from transom.features.ingest.expected_inputs import partition_of

Make = Callable[..., StreamHarness]
SITE = """
aggregates:
  site: {key: [], measures: {n: count}, levels: RANGES 1 HOUR SLIDES 1 HOUR}
"""
HOSTS = (
    WEB.partition("aggregates:")[0].replace("access.%H*.log.gz", "web*.%H.log*").replace("1}", "2}") + SITE
)
PERIODS = (
    WEB.partition("aggregates:")[0]
    .replace("access.%H*", "lb_%H%M")
    .replace("expected_files: 1", "covers: 20 minutes")
    + SITE
)


def land(harness: StreamHarness, name: str, lines: list[str]) -> None:
    path = harness.folder / f"landing/web/2015-05-17/{name}"
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(f"{one}\n" for one in lines).encode()
    path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)


def counts(harness: StreamHarness) -> dict[int, int]:
    """Return the number of events in the windows of each hour."""
    return {row["window_end"].hour - 1: row["n"] for row in harness.rows_of("aggregates")}


@makes_fail("files_distinct")
def test_equal_files_of_two_hosts_both_count_and_a_compressed_copy_does_not(make_stream: Make) -> None:
    day = make_stream(HOSTS)
    health = [line(3600 + 60 * number) for number in range(60)]
    for name in ("web1.01.log", "web2.01.log", "web2.01.log.gz", "web1.01.log.1"):
        land(day, name, health)
    for name in ("web1.02.log", "web2.02.log"):
        land(day, name, [line(7200 + 60 * number, sent=int(name[3])) for number in range(60)])
    day.run(1, 3)
    assert counts(day) == {1: 120, 2: 120}
    verdict = evaluate_gate(day.ledger, "ingest", "web", Interval(hour(1), hour(3)), "")
    (warning,) = verdict.warnings
    assert {check: observed.observed for check, observed in failed(day, "ingest").items()} == {
        "files_distinct": 1
    }
    assert "files_distinct" in warning
    folder = "landing/web/2015-05-17"
    assert f"{folder}/web2.01.log holds the same bytes as {folder}/web1.01.log; both count" in warning
    day.assert_ledger_true()
    # Two runs in sequence equal one run.
    late = make_stream(HOSTS, "late")
    (day.folder / folder / "web1.01.log").rename(day.folder / "away")
    late.run(1, 3)
    (day.folder / "away").rename(day.folder / folder / "web1.01.log")
    late.run(1, 3)
    late.assert_same(day)


@makes_fail("periods_covered")
def test_hour_is_incomplete_until_the_files_named_after_its_end_exist(make_stream: Make) -> None:
    day = make_stream(PERIODS.replace("20 minutes", "20 minutes, name_time: end"))
    for period in range(6):
        end = 20 * (period + 1)
        lines = [line(60 * (end - 20) + 60 * number) for number in range(1, 20)]
        if end != 60:
            land(day, f"lb_{end // 60:02}{end % 60:02}.log.gz", lines)
        else:
            last = lines
    day.run(0, 2)
    assert counts(day) == {0: 38, 1: 57}
    entries = {number: day.snapshot()[partition_of("events", hour(number))] for number in (0, 1)}
    assert [entries[0].complete, entries[1].complete] == [False, True]
    assert (
        entries[0].reason
        == "periods_covered: observed 1, expected at most 0 (the periods without a file are in the sample)"
    )
    verdicts = day.ledger.checks(day.snapshot(), "ingest", {hour(0)})
    (verdict,) = noted(verdicts, "ingest")
    sample = "no file of 2015-05-17T00:40:00 to 01:00:00: landing/web/2015-05-17/lb_0100.log.gz"
    assert tuple(verdict.failing_rows) == (sample,)
    land(day, "lb_0100.log.gz", last)
    day.run(1, 2)
    assert counts(day) == {0: 57, 1: 57}
    assert day.snapshot()[partition_of("events", hour(0))].complete


METER = """
name: web
source: {path: "landing/web/meter*.csv", format: csv}
columns: {device: {}, kwh: {type: integer}}
time: {column: at, zone: Europe/Berlin, interval: 10 minutes, on_duplicate_time: last}
key: [device]
"""


@makes_fail("times_unambiguous")
def test_repeated_local_hour_has_six_readings_each_time(make_stream: Make) -> None:
    night = make_stream(METER)
    folder = night.folder / "landing/web"
    folder.mkdir(parents=True)
    clock = [f"{at:02}:{minute:02}" for at in (1, 2, 2, 3) for minute in range(0, 60, 10)]
    head = "at,device,kwh\n"
    (folder / "meter1.csv").write_text(head + "".join(f"2024-10-27 {time}:00,m1,1\n" for time in clock))
    # Of this device one of the two hours is missing, and which one is unknown.
    (folder / "meter2.csv").write_text(
        head + "".join(f"2024-10-27 {time}:00,m2,1\n" for time in [*clock[:12], *clock[18:]])
    )
    start = datetime(2024, 10, 26, 23, tzinfo=UTC)
    run_chunk("ingest", night.context_of(Interval(start, start + timedelta(hours=4))))
    read = Counter((row["device"], row["event_time"].astimezone(UTC).hour) for row in night.rows_of("events"))
    assert {at: read["m1", at] for at in (23, 0, 1, 2)} == {23: 6, 0: 6, 1: 6, 2: 6}
    assert {at: read["m2", at] for at in (23, 0, 1, 2)} == {23: 6, 0: 6, 1: 0, 2: 6}
    (verdict,) = failed(night, "ingest").values()
    assert (verdict.check, verdict.observed, verdict.file) == (
        "times_unambiguous",
        6,
        "landing/web/meter2.csv",
    )
    assert verdict.failing_rows == ("line 8 is the first of them",)
