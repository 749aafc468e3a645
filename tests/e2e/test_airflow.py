"""A real Airflow runs the real DAG on hours of the real log: green, red on bad data, green when mended."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import airflow_server
import pytest
import sample_logs
from deltalake import DeltaTable
from sample_logs import WEB, land

from transom.lake.ledger import Ledger

HOUR = timedelta(hours=1)
FIRST = datetime(2015, 5, 17, 10, tzinfo=UTC)
BAD = FIRST + 4 * HOUR


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("airflow")


def figures(folder: Path, end: datetime) -> dict[str, int]:
    rows = DeltaTable(str(folder / "lake/web/aggregates")).to_pyarrow_table(
        filters=[("block", "=", "traffic"), ("level", "=", 1), ("window_end", "=", end)]
    )
    return {row["client"]: row["n"] for row in rows.to_pylist()}


def test_green_then_red_on_bad_data_then_green_when_mended(folder: Path) -> None:
    hours = sample_logs.apache()
    some = [FIRST + number * HOUR for number in range(8)]
    for hour in some:
        land(folder, WEB, hour, hours[hour])
    land(folder, WEB, BAD, ["no log line\n"] * 5)
    ledger = Ledger(str(folder / "lake/web"))
    environment = {"TRANSOM_LAKE": str(folder / "lake"), "TRANSOM_LANDING": str(folder)}
    with airflow_server.running(folder / "airflow", **environment) as server:
        server.unpause("web")

        server.trigger("web", "bad", **{"from": "2015-05-17T10:00", "to": "2015-05-17T18:00"})
        states = server.wait("web", "bad", 300)
        assert states == {
            "settle": "success",
            "ingest": "success",
            "ingest_gate": "failed",
            "aggregate": "upstream_failed",
            "aggregate_gate": "upstream_failed",
            "report": "upstream_failed",
        }
        said = json.dumps(server.task_log("web", "bad", "ingest_gate"))
        for words in ("2015-05-17T14:00", "rejected_share", "observed 1, expected at most 0.05", "no_match"):
            assert words in said
        status = {node.hour: e.status for node, e in ledger.book().items() if node.table == "events"}
        assert [hour for hour, state in status.items() if state != "published"] == [BAD]

        land(folder, WEB, BAD, hours[BAD])
        server.clear("web", "bad", "ingest")
        assert set(server.wait("web", "bad", 300).values()) == {"success"}

    for end in (FIRST + 5 * HOUR, FIRST + 8 * HOUR):
        assert figures(folder, end) == sample_logs.requests(hours, end - 6 * HOUR, end)
