"""Which errors of a stage are attributed to damage, and of which tables."""

from pathlib import Path

import pyarrow as pa
import pytest
import yaml
from deltalake.exceptions import CommitFailedError, TableNotFoundError
from py4j.protocol import Py4JError

from tests.cli.ledger_by_hand import WEB, Lake, at, file_row
from tests.support import damage as damaging
from tests.support.memory_pipeline import STREAM
from transom.app import pipeline as together
from transom.app.verify import DamagedInputsError, explain_failure, of_reading, read_by
from transom.features.ingest.landing import LandingError
from transom.features.ingest.tables import Tables
from transom.storage.fencing import RunSuperseded
from transom.storage.file_faults import DamagedFile
from transom.storage.tables import LakeError, create
from transom.stream import parse

DAY = at(0)


def wrapped(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (OSError("Couldn't deserialize thrift: TProtocolException"), True),
        (FileNotFoundError(2, "No such file", "part-0"), True),
        (OSError(5, "Input/output error"), True),
        (OSError(28, "No space left on device"), False),
        (pa.ArrowInvalid("Parquet file size is 0 bytes"), True),
        (DamagedFile("cannot be decoded"), True),
        (TableNotFoundError("no log"), True),
        (CommitFailedError("another"), False),
        (Py4JError("[FAILED_READ_FILE.NO_HINT] part-0"), True),
        (Py4JError("OverflowError: int too large, in a table of parquet files"), False),
        (LakeError("lake: it has never run"), False),
        (wrapped(LakeError("lake: cannot be read"), TableNotFoundError("no log")), True),
        (wrapped(LandingError("source.path: cannot be listed"), FileNotFoundError(2, "no")), False),
        (wrapped(RunSuperseded("another run"), CommitFailedError("another")), False),
        (OverflowError("int too large"), False),
        (ValueError("parquet"), False),
    ],
)
def test_read_errors_are_recognised(error: Exception, expected: bool) -> None:
    assert of_reading(error) == expected


def test_tables_read_by_a_stage_are_known() -> None:
    assert read_by(STREAM, "ingest") == {"events", "duplicates", "rejected", "files"}
    assert read_by(STREAM, "aggregates") == {
        "events", "granules", "aggregates", "item_granules", "recurring", "alerts",
    }  # fmt: skip
    assert "frames" in read_by(STREAM, "fills")


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """Return a lake whose table `files` lacks a data file."""
    computed = Lake(tmp_path)
    computed.ingest(range(2))
    for table in Tables.of(computed.stream):
        create(computed.ledger.root, table)
    computed.files([file_row(computed, "f", DAY, DAY, status="ingested")])
    damaging.missing(computed.ledger.root, "files")
    return computed


def test_damage_of_a_table_that_a_stage_does_not_read_is_no_cause(lake: Lake) -> None:
    error = FileNotFoundError(2, "No such file", "part-0")
    stream, root = parse(yaml.safe_load(WEB)), lake.ledger.root
    result = explain_failure(stream, root, "ingest", error)
    assert result is not None
    assert {damage.table for damage in result.damages} == {"files"}
    assert explain_failure(stream, root, "aggregates", error) is None
    assert explain_failure(stream, root, "ingest", OverflowError("int too large")) is None


def test_error_is_reported_with_the_damage(lake: Lake, caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> None:
        raise FileNotFoundError(2, "No such file", "part-0")

    marks = together._DamageMarks(lake.ledger.root)
    with pytest.raises(DamagedInputsError, match=r"failed with FileNotFoundError: .*part-0"):
        together._retry_damaged(fail, "ingest", lake.stream, marks)  # type: ignore[arg-type]
    assert "failed with FileNotFoundError" in caplog.messages[0], "before it runs again, too"
