"""Files of few bytes are read on the driver, others in tasks of Spark, with the same result."""

from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import pytest

from tests.support.stream_harness import PLAIN, WEB, StreamHarness, hour, line
from transom.storage import driver_io as small
from transom.storage.session_on_demand import SessionOnDemand
from transom.storage.store import Store

Make = Callable[..., StreamHarness]


def test_ingest_of_few_lines_creates_no_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRANSOM_HOME", str(tmp_path))
    create = Mock(side_effect=AssertionError)
    day = StreamHarness(create, tmp_path, PLAIN)
    day.store = Store(SessionOnDemand(create), day.root)
    day.land(0, [line(10), line(20)])
    day.land(1, [line(3600), line(3600)])
    outcome = day.stage("ingest", 0, 2)
    assert not create.called
    assert (outcome.published, outcome.rows_out) == (2, 4)
    files = {row["path"][-16:]: row["accepted"] for row in day.rows_of("files")}
    assert files == {"access.00.log.gz": 2, "access.01.log.gz": 2}
    assert {row["hour"] for row in day.rows_of("events")} == {hour(0), hour(1)}


@pytest.mark.parametrize(
    "text", [PLAIN, f"{WEB}unique: [client, event_time]\n"], ids=["all lines", "unique lines"]
)
def test_files_read_on_the_driver_and_in_tasks_give_the_same_lake(
    make_stream: Make, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    few, many = make_stream(text, "few"), make_stream(text, "many")
    few.land(0, [line(10), line(20), "not a line of this log"])
    few.land(1, [line(3600), line(3600), line(7000, sent="-")])
    few.land(2, ["nothing", "to", "read"])
    for harness, limit in ((few, small.MAX_DRIVER_BYTES), (many, 0)):
        monkeypatch.setattr(small, "MAX_DRIVER_BYTES", limit)
        harness.stage("ingest", 0, 3)
    few.land(0, [line(30)], ".late")
    for harness, limit in ((few, 2**20), (many, 0)):
        monkeypatch.setattr(small, "MAX_DRIVER_BYTES", limit)
        harness.stage("ingest", 0, 3)
    few.assert_same(many)
    few.assert_ledger_true()
    many.assert_ledger_true()
