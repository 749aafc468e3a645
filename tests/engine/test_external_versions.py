"""The versions of external tables change with every commit, and those of streams with their ledger."""

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from transom.core.partitions import PartitionKey
from transom.engine.external import ExternalSources, NeverRun
from transom.ledger.freshness import EVENTS
from transom.ledger.ledger import Ledger
from transom.storage.external_source import ExternalSource


def versions(sources: ExternalSources) -> list[int]:
    return [revision.version for revision in sources.revisions()]


def test_versions_are_those_of_the_latest_commits(tmp_path: Path) -> None:
    hosts, root = str(tmp_path / "hosts"), tmp_path / "lake" / "other"
    write_deltalake(hosts, pa.table({"host": ["a"]}))
    sources = ExternalSources(
        f"{tmp_path}/lake/web",
        [
            ExternalSource("fills.a", "hosts", hosts, None, ()),
            ExternalSource("fills.b", "other", None, None, ()),
        ],
    )
    with pytest.raises(NeverRun):
        sources.revisions()
    write_deltalake(root / "events", pa.table({"hour": pa.array([], pa.timestamp("us", "UTC"))}))
    ledger = Ledger(str(root))
    assert versions(sources) == [0, ledger.open("ledger").version()]
    write_deltalake(hosts, pa.table({"host": ["b"]}), mode="append")
    ledger.claim("ingest", [PartitionKey(*EVENTS, datetime(2015, 5, 17, tzinfo=UTC))], "run")
    assert versions(sources) == [1, DeltaTable(root / "ledger").version()]
