"""The columns of events that a block reads on the driver."""

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from transom.engine.hours import read_events
from transom.storage import driver_io as small
from transom.storage.fencing import Claim
from transom.storage.store import PinnedTables, Store
from transom.storage.tables import Table
from transom.storage.write import Write

HOUR = datetime(2015, 5, 17, tzinfo=UTC)
KINDS = {"hour": "timestamp", "client": "string", "Bytes": "bigint", "path": "string"}
EVENTS = Table("events", KINDS, ("hour",), frozenset())


@pytest.fixture
def pins(spark: SparkSession, tmp_path: Path) -> PinnedTables:
    store = Store(spark, str(tmp_path))
    store.create(EVENTS)
    row = {"hour": HOUR, "client": "a", "Bytes": 7, "path": "/"}
    rows = pa.Table.from_pylist([row], EVENTS.arrow_schema())
    store.write(Write(EVENTS, rows, {None: [HOUR]}), Claim("ingest", "run", 1))
    return store.pin(["events"])


@pytest.mark.parametrize(
    ("condition", "mentioned"),
    [
        (None, set()),
        ("path = '/'", {"path"}),
        ("BYTES > 5 AND `path` IS NOT NULL", {"Bytes", "path"}),
        ("bytes * 2 > 5", {"Bytes", "path"}),
        # Too many columns are no fault.
        ("'a path' != ''", {"path"}),
    ],
)
def test_few_events_have_the_columns_that_a_block_may_mention(
    pins: PinnedTables, condition: str | None, mentioned: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = read_events(pins, [HOUR], ["client"], None, condition)
    assert set(rows.columns) == {"hour", "client"} | mentioned
    assert rows.where(F.expr(condition or "TRUE")).count() == 1
    monkeypatch.setattr(small, "MAX_DRIVER_BYTES", 0)
    assert set(read_events(pins, [HOUR], ["client"], condition).columns) == set(KINDS)
