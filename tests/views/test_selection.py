"""The rows of a selection, of a table written by hand."""

from pathlib import Path
from unittest.mock import Mock

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from tests.support.viewed_lake import at, between
from transom.engine.selection import Selection
from transom.storage.open_tables import OpenTables


def test_every_part_of_a_condition_is_about_the_own_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hours = pa.array([at(0)] * 3, pa.timestamp("us", "UTC"))
    rows = pa.table({"hour": hours, "block": ["back", "other", "back"], "client": ["a", "b", "c"]})
    write_deltalake(f"{tmp_path}/matches", rows)
    monkeypatch.setattr(Selection, "hours", lambda *_: [at(0)])
    selection = Selection(OpenTables(str(tmp_path)), Mock(), Mock(), between(0, 6))
    query = selection.query("patterns", "back", "matches", ["client"], where="client = 'a' OR client = 'b'")
    assert (query.rows(9), query.count()) == ([{"client": "a"}], 1)
