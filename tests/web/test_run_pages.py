"""The pages of an hour and of a run: history, links to pages of the same hour, and what a run changed."""

from datetime import UTC, datetime
from urllib.parse import quote

import numpy as np
import pytest

from tests.support.asgi import request
from tests.support.elements import Elements
from tests.support.viewed_lake import at
from tests.web.conftest import Pages
from transom import __version__
from transom.core.intervals import HOUR, format_hour, number_of
from transom.core.partitions import CheckResult
from transom.features.ingest.expected_inputs import partition_of
from transom.ledger.ledger import Run
from transom.ledger.run_details import FileRead, Written
from transom.views.hour import neighbours

NAME = "manual__2015-05-17T04:00:00+00:00/<b>"
FILE = "landing/<i>late</i>.log"
EMPTY, AGAIN, BROKEN = "landing/empty.log", "landing/it's again.log", "landing/broken.log"
NO_LINES = ((EMPTY, "ingested"), (AGAIN, "duplicate"), (BROKEN, "quarantined"))
"""Files of hour 4."""


@pytest.fixture(scope="module")
def story(shared: Pages) -> Pages:
    """Return pages of a lake in which a run for hour 4 has read a late file of hour 1."""
    written = [Written("events", "events", "published", True, at(hour), at(hour + 1), 3) for hour in (1, 4)]
    files = [
        FileRead(FILE, at(1), at(1), at(2), "ingested", False, 4, 3, 1, True),
        *(FileRead(path, at(4), None, None, status, False, 0, 0, 0, False) for path, status in NO_LINES),
    ]
    before = FileRead(EMPTY, at(4), at(4), at(5), "ingested", False, 4, 4, 0, False)
    shared.lake.ledger.record_run(
        Run(
            f"first ingest 1 {'c' * 12}", "manual", "ingest", at(4), at(5), 1, None, 4, 6, {"total": 2.0}, 1,
            __version__, datetime(2015, 5, 19, tzinfo=UTC), written=written[1:], files=[before],
        )
    )  # fmt: skip
    same = f"the same as {EMPTY}"
    shared.lake.add("files", [{"path": AGAIN, "hour": at(4), "status": "duplicate", "status_reason": same}])
    changed = [
        {"finding_id": f"f{name}", "change": name, "severity": "high", "title": f"<u>{name}"}
        for name in ("new", "withdrawn")
    ]
    run_id = f"{NAME} ingest 1 aaaabbbbcccc"
    shared.lake.ledger.record_run(
        Run(
            run_id, "manual", "ingest", at(4), at(5), 1, None, 4, 6, {"total": 2.0}, 1, __version__,
            datetime(2015, 5, 20, tzinfo=UTC), written=written, files=files, findings=changed,
            finding_counts={"new": 1, "withdrawn": 1},
        )
    )  # fmt: skip
    failed = CheckResult(partition_of("events", at(1)), "c<p>", "warning", 2.0, "0", False, file=FILE)
    shared.lake.ledger.record_checks("ingest", [failed], run_id)
    return shared


def test_page_of_an_hour_has_its_history(story: Pages) -> None:
    page = Elements(story.get(f"/hours/{format_hour(at(1))}").text)
    text = page.sections["history"].text
    assert f"read: {FILE} (4 lines, 3 events, 1 rejected): came late" in text
    assert f"warning: c<p> of {FILE}: observed 2, expected 0" in text
    assert "requested 2015-05-17T04:00 to 2015-05-17T05:00" in text
    assert "00:00:00 ingest: published" in text
    assert any(link.endswith(f"/dags/six/runs/{quote(NAME, safe='')}") for link in page.links)
    assert not page.tags & {"b", "i", "u"} - {"i"}


def test_file_without_lines_is_empty_before_it_is_a_duplicate(story: Pages) -> None:
    page = Elements(story.get(f"/hours/{format_hour(at(4))}").text)
    text = page.sections["history"].text
    no_lines = "(0 lines, 0 events, 0 rejected)"
    assert f"read: {EMPTY} {no_lines}: empty" in text
    # Before, the same file had lines.
    assert f"read: {EMPTY} (4 lines, 4 events, 0 rejected)" in text
    assert f"read: {EMPTY} (4 lines, 4 events, 0 rejected):" not in text
    assert f"read: {AGAIN} {no_lines}: empty, duplicate: the same as {EMPTY}" in text
    assert f"read: {BROKEN} {no_lines}: quarantined" in text
    run = Elements(story.get(f"/runs/{quote(NAME, safe='')}").text)
    remarks = {row[0]: row[-1] for row in run.sections["files"].rows[1:]}
    assert remarks == {
        FILE: "late", EMPTY: "empty", AGAIN: f"empty, duplicate: the same as {EMPTY}", BROKEN: "in time",
    }  # fmt: skip


def test_links_of_an_hour_lead_to_pages_of_this_hour(story: Pages) -> None:
    page = Elements(story.get(f"/hours/{format_hour(at(1))}").text)
    hour = "from=2015-05-17T01%3A00&to=2015-05-17T02%3A00"
    for name in ("", "/hours", "/quality", "/key"):
        assert any(link.endswith(f"/streams/six{name}?{hour}") for link in page.links), name
    around = [link.rpartition("/")[2] for link in page.links if "/hours/2015" in link and "from" not in link]
    assert around == [quote(format_hour(at(1) + step * HOUR)) for step in (-1, 1)]
    (rejected,) = [link for link in page.links if link.endswith("#part-quality-rejected")]
    assert "part-quality-rejected" in Elements(request(story.app, rejected.partition("#")[0]).text).sections


def test_neighbours_of_an_hour_are_requested_hours(story: Pages) -> None:
    first = datetime.min.replace(tzinfo=UTC)
    last = first.replace(year=9999, month=12, day=31, hour=23)
    requested = np.array([number_of(at(1)), number_of(at(4))])
    assert neighbours(first, requested) == (None, at(1))
    assert neighbours(last, requested) == (at(4), None)
    assert neighbours(at(1), requested) == (None, at(4))
    assert neighbours(at(2), requested) == (at(1), at(4))
    assert neighbours(first, requested[:0]) == (None, None)
    story.get("/hours/0001-01-01T00:00", 404)


def test_quality_leads_to_the_page_of_a_run_and_this_to_its_changes(story: Pages) -> None:
    quality = Elements(story.get("/quality?from=2015-05-17T01:00&to=2015-05-17T02:00").text)
    (link,) = {link.partition("?")[0] for link in quality.links if "/runs/" in link and "/dags/" not in link}
    assert link == f"/streams/six/runs/{quote(NAME, safe='')}"
    page = Elements(request(story.app, link).text)
    assert "4 files read, of which 1 late." in page.text
    assert f"Late, of 2015-05-17T01:00: {FILE} (4 lines, 3 events, 1 rejected)." in page.text
    assert "Written beyond the request, changed: events (1 hour)." in page.text
    assert page.sections["files"].rows[1] == [FILE, "2015-05-17T01:00", "4", "3", "1", "ingested", "late"]
    assert page.sections["beyond"].rows[1:] == [["ingest", "events", "events", "changed", "2015-05-17T01:00"]]
    assert f"As {FILE} came late:" in page.sections["beyond"].text
    findings = [link for link in page.links if "/findings/" in link]
    assert [link.partition("?")[0].rpartition("/")[2] for link in findings] == ["fwithdrawn", "fnew"]
    assert "withdrawn: high <u>withdrawn" in " ".join(page.text.split())
    # No message about it was sent, so its page has what the run has.
    gone = " ".join(Elements(request(story.app, findings[0]).text).text.split())
    assert f"Withdrawn 2015-05-20T00:00: by run {NAME}" in gone
    listed = Elements(story.get("?state=withdrawn").text)
    assert "withdrawn (1)" in listed.text
    assert [link for link in listed.links if "/findings/" in link] == ["/streams/six/findings/fwithdrawn"]


def test_solved_check_leads_to_the_history_of_its_hour_and_to_its_run(story: Pages) -> None:
    quality = Elements(story.get("/quality?from=2015-05-17T01:00&to=2015-05-17T02:00").text)
    assert [row["check"] for row in quality.sections["part-quality-solved"].table] == ["c<p>"]
    (link,) = [link for link in quality.links if link.endswith("#history")]
    assert link.partition("?")[0] == "/streams/six/hours/2015-05-17T01%3A00"
    assert "c<p>" in Elements(request(story.app, link.partition("#")[0]).text).sections["history"].text


def test_unknown_run_has_no_page(story: Pages) -> None:
    assert "no run of this name" in story.get("/runs/nothing%27%20OR%201=1", 404).text


@pytest.mark.parametrize(
    "path", ["/hours/2015-05-17T01:00", "/hours?from=2015-05-17T00:00&to=2015-05-17T06:00"]
)
def test_no_page_promises_a_cause_for_a_published_hour(story: Pages, path: str) -> None:
    assert "its cause" not in story.get(path).text
