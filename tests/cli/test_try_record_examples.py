"""`transom try` on the examples of nested records: container logs, OTLP, orders, audit and error logs."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable

from tests.cli.examples import DATA, stream_file
from tests.cli.record_examples import RECORD_EXAMPLES, log_of
from transom.cli.try_command import try_in
from transom.findings.store import findings
from transom.storage.tables import read_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VALUES = {
    "container": {"stream": "stdout", "level_": "info", "msg": "request done"},
    "web_error": {"level_": "error", "server": "shop.example", "request": "GET /cart HTTP/2.0"},
    "otlp": {
        "scope_name": "pay.http",
        "severity_text": "Error",
        "attributes": '[{"key":"http.status","value":{"intValue":"502"}}]',
    },
    "orders": {"order": 1000, "customer": "c5", "total": 55.47, "items": '[{"sku":"a6","qty":2}]'},
    "auditd": {"serial": 3902, "msg": "audit(1681160312.959:3902):"},
}
"""Values that some event of each example has."""
QUICK = "container"
NAMES = [pytest.param(name, marks=() if name == QUICK else pytest.mark.full) for name in RECORD_EXAMPLES]


@pytest.mark.parametrize("name", NAMES)
def test_example_is_tried_unchanged(
    spark: "SparkSession",
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
) -> None:
    """Each takes some seconds: the quick tier runs one, the full tier the others."""
    monkeypatch.setenv("TRANSOM_HOME", str(DATA.parents[1]))
    monkeypatch.delenv("TRANSOM_LANDING", raising=False)
    lake = f"{tmp_path}/lake"
    assert try_in(tmp_path, lake, stream_file(name), [log_of(name)], spark)
    assert "activity: 1 hour every" in capsys.readouterr().out
    _, events, refused = RECORD_EXAMPLES[name]
    (file,) = read_rows(DeltaTable(f"{lake}/{name}/files"))
    assert (file["accepted"], file["rejected"]) == (events, refused)
    rows = read_rows(DeltaTable(f"{lake}/{name}/events"))
    assert len(rows) == events
    assert any(row | VALUES[name] == row for row in rows)
    assert findings(f"{lake}/{name}") == []
    assert read_rows(DeltaTable(f"{lake}/{name}/aggregates"))
