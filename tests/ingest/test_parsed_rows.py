"""The results of the job that parses files. No Spark."""

from datetime import UTC, datetime
from unittest.mock import Mock

import pytest

from transom.features.ingest.file_records import ListedFile
from transom.features.ingest.parsed_rows import ParsedRows
from transom.features.ingest.read_files import FileReadTask
from transom.storage.tables import LakeError


def test_lost_result_of_a_file_is_an_error() -> None:
    """It must not be taken for a file that vanished."""
    file = ListedFile("landing/a.log", 9, datetime(2015, 5, 17, tzinfo=UTC), {}, None)
    aggregated = Mock()
    aggregated.toArrow().to_pylist.return_value = []
    with pytest.raises(LakeError, match=r"^landing/a\.log: the result of reading it was lost"):
        ParsedRows(Mock(), Mock())._run([FileReadTask(file, "/landing/a.log")], aggregated)
