"""The verdict on a file with doubtful times, by its content. No Spark."""

from datetime import UTC, datetime, timedelta
from unittest.mock import Mock

import numpy as np
import pytest

from transom.core.intervals import UNKNOWN_HOUR
from transom.core.partitions import CheckResult
from transom.features.ingest import file_checks as module
from transom.features.ingest.file_checks import check_files
from transom.features.ingest.file_records import FileContent, ListedFile
from transom.features.ingest.read_files import FileReadResult, FileReadTask
from transom.formats.read_file import FileSummary
from transom.stream import parse

DAY = datetime(2015, 5, 17, tzinfo=UTC)
PATH = "landing/a.log"
ACCEPTED = {"hour": "1970-01-01T00:00", "stage": "ingest", "check": "hours_bounded", "observed": 4}
EXPECTED = (
    "at most 3 (are its times what the stream takes them for? A longer log comes in several files, or with "
    "`checks: {hours_bounded: {hours: ...}}`)"
)


def at(number: int) -> datetime:
    return DAY + number * timedelta(hours=1)


def check_file(
    monkeypatch: pytest.MonkeyPatch, checks: dict[str, object], accept: object, named: datetime | None = None
) -> tuple[FileContent, CheckResult]:
    """Return the verdict on a file whose events fall in hours 1, 2, 4 and 8, and on their number."""
    stream = parse(
        {
            "name": "web",
            "preset": "apache/combined",
            "source": {"path": "landing/*.log"},
            "checks": {"hours_bounded": {"hours": 3, **checks}},
            "waivers": accept,
        }
    )
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    hours = np.array([(at(number) - epoch) // timedelta(hours=1) for number in (1, 2, 4, 8)])
    read = FileReadResult(FileSummary("5ha", 9, 0, 0, 0, 0, (), None, {}), None, hours, at(1), at(8))
    listed = {PATH: ListedFile(PATH, 9, DAY, {}, named)}
    monkeypatch.setattr(module, "sample_failing_rows", lambda *_, **__: [])
    readings = [FileReadTask(listed[PATH], f"/{PATH}")]
    result, verdicts = check_files(stream, readings, {PATH: read}, Mock(aggregates={}))
    return result[PATH], next(verdict for verdict in verdicts if verdict.check == "hours_bounded")


@pytest.mark.parametrize("named", [None, at(3)])
def test_file_of_too_many_hours_is_quarantined_in_the_hour_of_its_name(
    monkeypatch: pytest.MonkeyPatch, named: datetime | None
) -> None:
    content, verdict = check_file(monkeypatch, {}, [], named)
    assert (content.hours, content.first_event, content.last_event) == ((), None, None)
    assert content.failed == f"hours_bounded: observed 4, expected {EXPECTED}"
    assert (verdict.partition.hour, verdict.observed, verdict.success) == (named or UNKNOWN_HOUR, 4, False)


@pytest.mark.parametrize(
    ("checks", "accept", "named", "success"),
    [
        ({"severity": "warning"}, [], None, False),
        ({}, [{**ACCEPTED, "who": "a", "why": "b"}], None, True),
        ({}, [{**ACCEPTED, "hour": "2015-05-17T01:00", "who": "a", "why": "b"}], at(1), True),
        ({"hours": 4}, [], None, True),
    ],
)
def test_file_of_many_hours_is_read_if_the_check_is_no_error(
    monkeypatch: pytest.MonkeyPatch,
    checks: dict[str, object],
    accept: object,
    named: datetime | None,
    success: bool,
) -> None:
    content, verdict = check_file(monkeypatch, checks, accept, named)
    assert content.hours == (at(1), at(2), at(4), at(8))
    assert (content.first_event, content.last_event, content.failed) == (at(1), at(8), None)
    # Reported in the first hour in which the file has events.
    assert (verdict.partition.hour, verdict.observed, verdict.success) == (at(1), 4, success)
