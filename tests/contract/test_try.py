"""`transom try` on each of the examples, in one session: what is kept of them runs as it stands."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable

from transom.cli.trying import try_in
from transom.lake.findings import findings
from transom.lake.tables import read_rows
from unit.cli.examples import DATA, EXAMPLES, logs, stream_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EVENTS = {
    "apache": (9999, 1), "conn_json": (1785, 0), "conn_tsv": (250, 0), "nginx": (260, 1),
    "readings": (126, 0), "audit": (180, 0), "firewall": (240, 0), "trace": (300, 0),
}  # fmt: skip
"""Events and refused lines of each example."""
TOLD = {
    "conn_json": ["fields_known"] * 2,
    "conn_tsv": ["fields_known"],
}
"""The checks that an example fails, of two days that are apart one each."""
FIELDS = {
    "conn_json": ["@proc", "@stream", "@system", "orig_l2_addr", "resp_l2_addr"],
    "conn_tsv": ["tunnel_parents"],
}
"""The fields that are shown for that."""


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
    told = [
        str(finding).partition("check ")[2].partition(" saw")[0] for finding in findings(f"{lake}/{name}")
    ]
    assert told == TOLD.get(name, [])
    assert ("none: every check passed" in shown) == (not told)
    assert [field for field in FIELDS.get(name, []) if f"    {field}\n" not in shown] == []
    assert "activity: 1 hour every" in shown
    assert "One hour on its own: " in shown
