"""`transom try` on each of the examples, in one session: the stored files run unchanged."""

import gzip
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable

from tests.cli.examples import DATA, EXAMPLES, logs, stream_file
from tests.support.stream_harness import line
from transom.cli.arguments import UsageError
from transom.cli.try_command import try_in
from transom.core.intervals import Interval
from transom.findings.store import findings
from transom.storage.tables import read_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EVENTS = {
    "apache": (9999, 1), "conn_json": (1785, 0), "conn_tsv": (250, 0), "nginx": (260, 1),
    "readings": (126, 0), "audit": (180, 0), "firewall": (240, 0), "trace": (300, 0),
    "balancer": (60, 0), "flow": (60, 0), "gateway": (60, 0), "station": (48, 0), "conn_iso": (60, 0),
}  # fmt: skip
"""Events and rejected lines of each example."""
TOLD = {
    "conn_json": ["fields_known"] * 2,
}
"""The checks that an example fails; two with days far apart fail one each."""
FIELDS = {
    "conn_json": ["@proc", "@stream", "@system", "orig_l2_addr", "resp_l2_addr"],
}
"""The fields that are shown for them."""


@pytest.fixture(autouse=True)
def _home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRANSOM_HOME", str(DATA.parents[1]))
    monkeypatch.delenv("TRANSOM_LANDING", raising=False)


# Reading each example is tested without a lake. One with rejected lines and one with a failed check run here.
QUICK = ("nginx", "conn_json")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.full] * (name not in QUICK)) for name in EXAMPLES]
)
def test_every_example_has_findings(
    spark: "SparkSession", tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    lake = f"{tmp_path}/lake"
    assert try_in(tmp_path, lake, stream_file(name), logs(name), spark)
    shown = capsys.readouterr().out
    events, refused = EVENTS[name]
    rows = read_rows(DeltaTable(f"{lake}/{name}/files"))
    assert (sum(row["accepted"] for row in rows), sum(row["rejected"] for row in rows)) == EVENTS[name]
    assert len(read_rows(DeltaTable(f"{lake}/{name}/events"))) == events
    assert ("no_match" in shown) == bool(refused)
    reported = [
        str(finding).partition("check ")[2].partition(" saw")[0] for finding in findings(f"{lake}/{name}")
    ]
    assert reported == TOLD.get(name, [])
    assert ("none: every check passed" in shown) == (not reported)
    assert [field for field in FIELDS.get(name, []) if f"    {field}\n" not in shown] == []
    assert "activity: 1 hour every" in shown
    assert "One hour on its own: " in shown


def test_equal_files_are_reported_and_count_as_in_a_job(
    spark: "SparkSession",
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    caplog.set_level("INFO", "transom")
    # Short names are shown on one line.
    monkeypatch.chdir(tmp_path)
    stream = tmp_path / "web.yaml"
    stream.write_text(
        'name: web\npreset: apache/combined\nkey: [client]\nsource: {path: "landing/%Y-%m-%d/web*.%H.log*"}\n'
    )
    folder = Path("2015-05-17")
    folder.mkdir()
    lines = "".join(f"{line(3600 + 60 * number)}\n" for number in range(60)).encode()
    files = [folder / name for name in ("web1.01.log", "web2.01.log", "web2.01.log.gz")]
    for file in files:
        file.write_bytes(gzip.compress(lines) if file.suffix == ".gz" else lines)
    (tmp_path / "try").mkdir()
    lake = f"{tmp_path}/lake"
    assert try_in(tmp_path / "try", lake, stream, [*files, files[0]], spark, html=Path("web.html"))
    assert "2015-05-17T01:00 to 2015-05-17T02:00 (UTC, 1 hour)" in Path("web.html").read_text()
    assert len(read_rows(DeltaTable(f"{lake}/web/events"))) == 120
    output = capsys.readouterr()
    _, _, shown = output.out.partition("files of the same bytes")
    (both,) = [row for row in shown.splitlines() if row.rstrip().endswith("both count")]
    (packed,) = [row for row in shown.splitlines() if row.rstrip().endswith("one file, packed or rotated")]
    assert {*both.split()} >= {str(files[0]), str(files[1])}
    assert {*packed.split()} >= {str(files[1]), str(files[2])}
    assert f"{files[0]} is given twice, and counts once" in caplog.messages


def test_advice_of_try_for_an_outlying_time_works(
    spark: "SparkSession", tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """One line of 2011 among those of 2015: the advised hours are run without it."""
    caplog.set_level("INFO", "transom")
    stream = tmp_path / "web.yaml"
    stream.write_text('name: web\npreset: apache/combined\nkey: [client]\nsource: {path: "web/*.log"}\n')
    file = tmp_path / "odd.log"
    odd = line(0).replace("/2015:", "/2011:")
    file.write_text("".join(f"{text}\n" for text in [odd, *(line(60 * number) for number in range(8))]))
    with pytest.raises(UsageError) as refused:
        try_in(tmp_path, f"{tmp_path}/lake", stream, [file], spark)
    start, end = str(refused.value).rpartition(" --from ")[2].split(" --to ")
    hours = Interval.parse(start, end)
    assert try_in(tmp_path, f"{tmp_path}/lake", stream, [file], spark, hours)
    rows = read_rows(DeltaTable(f"{tmp_path}/lake/web/events"))
    assert sorted(row["source_line"] for row in rows) == list(range(2, 10))
    assert f"1 of 9 events are outside of {hours} and omitted: line 1 of 2011" in caplog.text


def test_bad_file_leaves_the_results_of_the_others(
    spark: "SparkSession", tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One hour is quarantined. The aggregates of all hours that do not depend on it are shown."""
    stream = tmp_path / "web.yaml"
    stream.write_text(
        "name: web\npreset: apache/combined\nkey: [client]\n"
        'source: {path: "landing/%Y-%m-%d/web.%H.log"}\n'
        "aggregates: {traffic: {measures: {n: count}, levels: RANGES 1 HOUR SLIDES 1 HOUR}}\n"
    )
    folder = tmp_path / "landing" / "2015-05-17"
    folder.mkdir(parents=True)
    files = [folder / f"web.{number:02}.log" for number in range(3)]
    for number, file in enumerate(files):
        lines = [line(3600 * number + 60 * n) if n % 2 or number != 1 else "junk" for n in range(40)]
        file.write_text("".join(f"{text}\n" for text in lines))
    (tmp_path / "try").mkdir()
    assert not try_in(tmp_path / "try", f"{tmp_path}/lake", stream, files, spark)
    output = capsys.readouterr()
    rows = read_rows(DeltaTable(f"{tmp_path}/lake/web/aggregates"))
    assert sorted(row["window_end"].hour for row in rows) == [1, 3]
    assert "traffic: 1 hour every 1 hour" in output.out
    assert f"quarantined: ingest events, 2015-05-17T01:00: {files[1]}: rejected_share:" in output.err
    assert "blocked: aggregates traffic, 2015-05-17T01:00" in output.err
    assert "- {hour: 2015-05-17T01:00, stage: ingest, check: rejected_share, observed: 0.5," in output.err
    assert "not run" not in output.out
