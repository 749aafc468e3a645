"""Findings in plain words: whether they continue, their times, and how exact they are."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from tests.support.viewed_lake import SIX, ViewedLake, at, finding
from transom.findings.from_ledger import Finding
from transom.views.block_titles import short_title
from transom.views.finding import finding_of
from transom.views.finding_groups import grouped
from transom.views.finding_text import FindingText
from transom.views.open_stream import OpenStream
from transom.views.view import view_of

MERGED = SIX.replace("    within: 3 hours\n", "    within: 3 hours\n    merge_gap: 1 hour\n")
SECOND = timedelta(seconds=1)


@pytest.fixture(scope="module")
def text(make_lake: Callable[[Path], ViewedLake], tmp_path_factory: pytest.TempPathFactory) -> FindingText:
    """Return the texts of a stream with hours 0 to 5; a match joins an episode within an hour of its end."""
    lake = make_lake(tmp_path_factory.mktemp("texts"))
    lake.file.write_text(MERGED)
    opened = OpenStream(lake.uri, lake.file)
    return FindingText(opened.stream, opened.snapshot())


def item(
    start: int,
    end: int,
    stage: str = "persistence",
    block: str = "regulars",
    title: str = "x",
    **more: object,
) -> Finding:
    times = {"start_time": at(start), "end_time": at(end)}
    return finding(start, title, **{"stage": stage, "block": block, "item": "a", **times, **more})


@pytest.mark.parametrize(
    ("found", "words"),
    [
        # The last requested hour is hour 5.
        (finding(5, "x", ongoing=True, end_time=at(5) + SECOND), "ongoing"),
        # Its last record is in hour 1: a match may begin up to an hour later, and takes 3 hours.
        (
            finding(1, "x", ongoing=True, end_time=at(1) + SECOND),
            "open: records until 2015-05-17T05:00:01 may join it",
        ),
        (finding(1, "x", ongoing=False), ""),
        (finding(5, "x", ongoing=False, end_time=at(6)), ""),
        (finding(1, "x", ongoing=True, stage="frames", block="busy", kind="frame"), "open: it may go on"),
        (finding(1, "x", ongoing=True, stage="patterns", block="gone"), "open: it may go on"),
        (finding(1, "x", ongoing=True, stage="ingest", kind="incomplete"), "ongoing"),
        (finding(1, "x", ongoing=True, start_time=None, end_time=None, kind="stale"), "ongoing"),
        (item(3, 6, ongoing=True), "ongoing"),
    ],
)
def test_only_what_reaches_the_last_hour_is_ongoing(text: FindingText, found: Finding, words: str) -> None:
    assert text.continues(found) == words


@pytest.mark.parametrize(
    ("found", "has_ended"),
    [
        (finding(1, "x", ongoing=False), True),
        (finding(1, "x", ongoing=True), False),
        (item(3, 5, ongoing=False), True),
        # It is there until its cause is gone.
        (finding(1, "x", stage="ingest", kind="incomplete", ongoing=False), False),
        (finding(1, "x", start_time=None, end_time=None), False),
    ],
)
def test_finding_that_does_not_continue_has_ended(text: FindingText, found: Finding, has_ended: bool) -> None:
    assert text.has_ended(found) == has_ended


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (finding(1, "x"), "2015-05-17T01:00 to 2015-05-17T02:00"),
        (item(5, 5), "the 4 hours up to 2015-05-17T05:00"),
        (item(3, 5), "windows of 4 hours that end from 2015-05-17T03:00 to 2015-05-17T05:00"),
        (
            item(3, 5, "frequency", "often"),
            "windows of 2 hours that end from 2015-05-17T03:00 to 2015-05-17T05:00",
        ),
        (item(3, 5, block="gone"), "2015-05-17T03:00 to 2015-05-17T05:00"),
        (
            item(3, 5, exactness="guaranteed"),
            "windows of 4 hours that end from 2015-05-17T03:00 to 2015-05-17T05:00; not in the last of them",
        ),
        (finding(1, "x", start_time=None, end_time=None), ""),
    ],
)  # fmt: skip
def test_times_of_items_are_ends_of_windows(text: FindingText, found: Finding, words: str) -> None:
    assert text.time(found) == words


def test_frame_ends_with_what_its_last_reading_covers(lake: ViewedLake) -> None:
    hourly = "source: traffic, kind: threshold, where: n > 0}"
    lake.file.write_text(
        SIX.replace(
            "kind: threshold, where: status = 200, value: bytes, on_duplicate_time: sum, idle: 2 hours}",
            hourly,
        )
    )
    lake.add(
        "events",
        [{"hour": at(n), "event_time": at(n + 0.5), "source_id": "s", "source_line": n} for n in range(4)],
    )
    of = {"stage": "frames", "block": "busy", "kind": "frame", "start_time": at(1), "finding_id": "f"}
    found = finding(2, "x", end_time=at(2) + timedelta(microseconds=1), **of)
    lake.find(found)
    for extent, end, lines in (("", "03", 2), (", extent: liberal", "02", 1)):
        lake.file.write_text(lake.file.read_text().replace("n > 0", f"n > 0{extent}"))
        opened = OpenStream(lake.uri, lake.file)
        text = FindingText(opened.stream, opened.snapshot())
        assert text.time(found) == f"2015-05-17T01:00 to 2015-05-17T{end}:00"
        detail = finding_of(opened, "f")
        assert detail is not None
        assert detail.raw.table is not None
        assert len(detail.raw.table.rows) == lines


@pytest.mark.parametrize(
    ("found", "words", "meaning"),
    [
        (finding(1, "x"), "exact", "the values are those of all events"),
        (item(3, 5, exactness="2..3"), "2 to 3 of 4 hours", "the number is certainly in this range"),
        (
            item(3, 5, "frequency", "often", exactness="29..32"), "29 to 32 records",
            "the number is certainly in this range",
        ),
        (
            item(3, 5, exactness="guaranteed"), "guaranteed",
            "it is certain that the item no longer qualifies; it has no number",
        ),
        (
            item(3, 5, "frequency", "often", exactness="estimated"), "estimated",
            "that the item no longer qualifies may be wrong",
        ),
        (
            item(3, 5, exactness="guaranteed", block="gone"), "guaranteed",
            "the statement is certainly true; it has no number",
        ),
    ],
)  # fmt: skip
def test_exactness_has_a_unit_and_a_meaning(
    text: FindingText, found: Finding, words: str, meaning: str
) -> None:
    assert (text.exactness(found), text.meaning(found)) == (words, meaning)


@pytest.mark.parametrize(
    ("found", "line", "words"),
    [
        (
            item(3, 5), "in 3 to 3 of 4 slots of 1 hour, about 3.0; 9 records",
            "in 3 of 4 slots of 1 hour; 9 records from the first remembered slot on",
        ),
        (
            item(3, 5, exactness="2..3"), "in 2 to 3 of 4 slots of 1 hour, about 2.5; 9 records",
            "in 2 to 3 of 4 slots of 1 hour, about 2.5; 9 records from the first remembered slot on",
        ),
        (item(3, 5, "frequency", "often"), "about 235 of 2578 records, 9.1 %", "235 of 2578 records, 9.1 %"),
        (item(3, 5, "frequency", "often", exactness="9..235"), "about 235 of 2578 records, 9.1 %", None),
    ],
)  # fmt: skip
def test_exact_count_is_not_about_a_number(
    text: FindingText, found: Finding, line: str, words: str | None
) -> None:
    assert text.evidence(replace(found, evidence=(line,))) == [words or line]


def test_title_lacks_the_name_of_the_stream_and_evidence_the_slots(text: FindingText) -> None:
    found = item(3, 5, title="six: six: a is here", evidence=("in 2 to 3", "?011", "101"))
    assert text.title(found) == "six: a is here"
    assert text.evidence(found) == ["in 2 to 3", "101"]
    picture = text.picture(found)
    assert picture is not None
    assert picture.note.startswith("Each slot of 1 hour of the window up to 2015-05-17T05:00.")
    assert picture.note.endswith(" Last seen in the slot that begins at 2015-05-17T04:00.")
    gone = text.picture(item(3, 5, evidence=("1100",)))
    assert gone is not None
    assert gone.note.endswith(" Last seen in the slot that begins at 2015-05-17T02:00.")
    assert text.picture(finding(3, "x", evidence=("?011",))) is None


def test_findings_of_an_item_are_one_group_with_the_latest_first() -> None:
    rows = [
        item(1, 2, finding_id="a1"), item(2, 3, finding_id="b1", item="b"),
        item(3, 5, finding_id="a2", ongoing=True), item(4, 6, finding_id="a3"),
        item(1, 2, finding_id="a4", severity="low"), item(1, 9, finding_id="k1", kind="stale", item=None),
        item(2, 9, finding_id="k2", kind="stale", item=None),
        finding(2, "gone", finding_id="a5"), finding(3, "gone", finding_id="a6"),
    ]  # fmt: skip
    groups = grouped(rows, lambda row: row, lambda row: row.title == "gone")
    assert [[group.first, *group.others] for group in groups] == [
        [rows[2], rows[3], rows[0]], [rows[1]], [rows[4]], [rows[5]], [rows[6]], [rows[8], rows[7]],
    ]  # fmt: skip


def test_report_has_each_finding_of_a_group(lake: ViewedLake) -> None:
    lake.find(*(item(n, n + 1, title=f"six: title {n}", finding_id=f"f{n}") for n in (1, 2, 4)))
    view = view_of(lake.uri, lake.stream)
    page = view.page()
    assert [len(group.others) for group in view.groups] == [2]
    assert "2 more findings of the same item" in page
    assert all(f"<bdi>title {n}</bdi>" in page for n in (1, 2, 4))
    assert page.count('<span class="badge ended">ended</span>') == 3


@pytest.mark.parametrize(
    ("title", "short"),
    [
        (None, ""),
        ("Requests to the whole site", "Requests to the whole site"),
        ("{client} looked, and came back", "client looked, and came back"),
        ("The site was busy from {start_time}, for {records} hours", "The site was busy"),
        ("{path} has a twentieth of all, since {since}", "path has a twentieth of all"),
        ("{start_time}", ""),
        ("x" * 60, f"{'x' * 45}..."),
        ("many words " * 9, "many words many words many words many words..."),
    ],
)
def test_short_title_has_what_is_true_of_a_block(title: str | None, short: str) -> None:
    assert short_title(title, ("client", "path")) == short
    assert len(short) <= 48
