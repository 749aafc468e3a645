"""`transom try` on each of the examples, in one session: what is kept of them runs as it stands."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable

from transom.cli.trying import try_in
from transom.lake.tables import read_rows
from unit.cli.examples import DATA, EXAMPLES, logs, stream_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EVENTS = {
    "apache": (9999, 1), "conn_json": (1785, 0), "conn_tsv": (250, 0), "nginx": (260, 1),
    "readings": (126, 0), "audit": (180, 0), "firewall": (240, 0), "trace": (300, 0),
}  # fmt: skip
"""Events and refused lines of each example."""


@pytest.fixture(autouse=True)
def _home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRANSOM_HOME", str(DATA.parents[1]))
    monkeypatch.delenv("TRANSOM_LANDING", raising=False)


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_is_found_something_in(
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
    assert "none: every check passed" in shown
    assert "activity: 1 hour every" in shown
    assert "seconds an hour of log" in shown
