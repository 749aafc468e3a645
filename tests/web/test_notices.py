"""What pages say about their data: its time, stale hours, runs that write, cut hours, silences."""

import re
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.support.asgi import request
from tests.support.elements import Elements
from tests.support.viewed_lake import SIX, ViewedLake, at, finding, window
from tests.views.test_exactness import EPISODE
from tests.web.conftest import Pages
from transom.core.intervals import UNKNOWN_HOUR
from transom.core.partitions import CheckResult, PartitionKey
from transom.features.ingest.expected_inputs import partition_of
from transom.ledger.ledger import Ledger

RESULTS = ("/results/aggregates/traffic", "/results/patterns/back", "/quality", "/key?key=c")
SILENCE = """
silence:
  - {key: quiet, who: ann, why: "our <own> scanner", until: 2999-01-01}
  - {kind: alert, block: traffic, who: bob, why: known, until: 2998-01-01}
  - {key: loud, who: cy, why: over, until: 2015-01-01}
"""


def notices(pages: Pages, address: str) -> list[str]:
    """Return the notices of a page."""
    html = pages.get(address).text
    return [
        " ".join(Elements(text).text.split()) for text in re.findall(r'<p class="notice">(.*?)</p>', html)
    ]


@pytest.mark.parametrize("address", RESULTS)
def test_stale_hours_are_shown_beside_results(pages: Pages, address: str) -> None:
    pages.get("/hours.csv")  # waits for the stale hours
    stale = [text for text in notices(pages, address) if text.startswith("Stale, so a run")]
    assert len(stale) == 1
    assert "6 hours of patterns" in stale[0]
    assert "ingest" not in stale[0]
    if address.startswith("/results"):
        assert "6 of them are stale." in pages.get(address).text
    sign = "&" if "?" in address else "?"
    before = f"{address}{sign}from=2015-05-16T01:00&to=2015-05-16T03:00"
    assert not [text for text in notices(pages, before) if text.startswith("Stale")]


@pytest.mark.parametrize("address", RESULTS)
def test_a_run_that_writes_is_shown_beside_results(pages: Pages, address: str) -> None:
    assert not [text for text in notices(pages, address) if "is writing" in text]
    keys = [PartitionKey("patterns", "back", "episodes", at(number)) for number in (2, 3)]
    pages.lake.ledger.claim("patterns", keys, "running")
    found = notices(pages, address)
    writing = (
        "A run is writing 2 hours of patterns, or was killed. Results omit these hours until they are "
        "published."
    )
    assert found.count(writing) == 1
    assert len(found) == len(set(found))


@pytest.mark.parametrize("address", ["", "/hours", "/hours/2015-05-17T02:00", *RESULTS])
def test_pages_show_when_they_were_read_and_how_new_the_ledger_is(pages: Pages, address: str) -> None:
    newest = datetime.fromtimestamp(
        Ledger(pages.lake.root).open("ledger").history(1)[0]["timestamp"] / 1000, UTC
    )
    text = pages.get(address).text
    assert f"Last processed {newest:%Y-%m-%d %H:%M:%S} UTC." in text
    (read,) = re.findall(r"Read ([\d-]+ [\d:]+) UTC\.", text)
    assert abs(datetime.fromisoformat(f"{read}+00:00") - datetime.now(UTC)) < timedelta(minutes=5)


def test_time_of_the_ledger_is_that_of_the_last_commit(pages: Pages) -> None:
    pages.get("")
    log = Path(pages.lake.root, "ledger", "_delta_log")
    pages.lake.publish([7], run="b")
    last = max(log.glob("*.json"))
    last.write_text(re.sub(r'"timestamp":\d+', '"timestamp":1431900000000', last.read_text()))
    assert "Last processed 2015-05-17 22:00:00 UTC." in pages.get("").text


def test_every_link_of_a_long_finding_leads_to_a_page(pages: Pages) -> None:
    years = timedelta(days=1_000)
    old = {
        "start_time": at(0) - years,
        "first_hour": at(0) - years,
        "stage": "aggregates",
        "block": "traffic",
    }
    pages.lake.find(finding(5, "old", finding_id="old", key="a", kind="alert", **old))
    links = Elements(pages.get("/findings/old").text).links
    of_stream = [link.removeprefix("/streams/six") for link in links if link.startswith("/streams/six/")]
    assert any("from=2012-08-20T00%3A00&to=2015-05-17T06%3A00" in link for link in of_stream)
    for link in of_stream:
        pages.get(link)


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("from=2010-01-01T00:00&to=2015-05-17T06:00", "2014-05-16T06:00 to 2015-05-17T06:00"),
        ("from=2010-01-01T00:00", "2010-01-01T00:00 to 2011-01-02T00:00"),
        ("from=2010-01-01T00:00&to=2011-01-02T00:00", None),
    ],
)
def test_hours_above_the_limit_are_cut_with_a_notice(pages: Pages, query: str, shown: str | None) -> None:
    pages.lake.add("aggregates", [window(2, "c", 1, level=1)])
    for address in ("", *RESULTS):
        sign = "&" if "?" in address else "?"
        text = pages.get(f"{address}{sign}{query}").text
        assert ("This page shows at most 366 days" in text) == (shown is not None)
        if shown is not None:
            assert f"<p>{shown} (UTC, 8784 hours)</p>" in text
            for link in Elements(text).links:
                if link.startswith("/streams/six/"):
                    pages.get(link.removeprefix("/streams/six"))
    if shown is not None:
        assert "must be at most 366 days apart" in pages.get(f"/findings.csv?{query}", 422).text
    assert "at most 366" not in pages.get(f"/hours?{query}").text


def test_form_shows_how_many_hours_it_runs(pages: Pages) -> None:
    def button(address: str, status: int = 200) -> str:
        (text,) = re.findall(r"<button>(Run.*?)</button>", pages.get(address, status).text)
        return str(text)

    assert button("/hours") == "Run 6 hours"
    assert button("/hours?from=2013-01-01T00:00&to=2016-01-01T00:00") == "Run 26280 hours"
    assert button("/hours/2030-01-01T00:00", 404) == "Run 1 hour"


def test_note_of_a_block_is_shown_to_its_end(pages: Pages) -> None:
    pages.lake.add("episodes", [EPISODE])
    text = Elements(pages.get("/results/patterns/back").text).text
    assert "1 episode" in text
    assert "All 6 requested hours are published." in text
    assert "characters)" not in text


def test_list_of_streams_shows_the_notices_of_a_stream_to_their_end(pages: Pages, tmp_path: Path) -> None:
    missing = f"{tmp_path}/{'prices/' * 50}end"
    source = (
        f"frame: busy, source: {{table: {missing}, time: at, columns: {{client: string, bytes: integer}}}}"
    )
    pages.lake.file.write_text(SIX.replace("{frame: busy, ", f"{{{source}, "))
    (waits,) = [text for text in notices(pages, "") if text.startswith("Waits: ")]
    assert missing in waits
    assert waits in Elements(request(pages.app, "/").text).text


def silence(pages: Pages) -> None:
    pages.lake.file.write_text(SIX + SILENCE)
    of_alert = {"kind": "alert", "block": "traffic", "stage": "aggregates"}
    pages.lake.find(
        finding(1, "a", finding_id="quiet", key="quiet", **of_alert),
        finding(2, "b", finding_id="item", item="quiet"),
        finding(3, "c", finding_id="alert", key="x", **of_alert),
        finding(4, "d", finding_id="other", key="quieter", kind="alert"),
        finding(5, "e", finding_id="loud", key="loud", severity="high"),
        finding(5, "f", finding_id="none", block=None, hour=UNKNOWN_HOUR, first_hour=None, start_time=None),
    )


def test_silenced_findings_have_a_badge(pages: Pages) -> None:
    silence(pages)
    for address in ("/findings/quiet", "/findings/item"):
        text = " ".join(Elements(pages.get(address).text).text.split())
        assert "silenced until 2999-01-01 by ann" in text
    assert "silenced until 2998-01-01 by bob" in Elements(pages.get("/findings/alert").text).text
    for address in ("/findings/other", "/findings/loud", "/findings/none"):
        assert "silenced until" not in pages.get(address).text
    listed = pages.get("").text
    assert listed.count("silenced until") == 3
    assert 'title="our &lt;own&gt; scanner"' in listed
    assert "6 findings" in listed
    assert pages.get("/key?key=quiet").text.count("silenced until") == 2


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("yes", {"quiet", "item", "alert"}),
        ("no", {"other", "loud", "none"}),
        ("", {"quiet", "item", "alert", "other", "loud", "none"}),
    ],
)
def test_findings_are_filtered_by_silence(pages: Pages, answer: str, expected: set[str]) -> None:
    silence(pages)
    page = Elements(pages.get(f"?silenced={answer}").text)
    shown = {link.rpartition("/")[2].partition("?")[0] for link in page.links if "/findings/" in link}
    assert shown == expected
    assert "yes (3)" in page.text
    assert "no (3)" in page.text
    rows = pages.get(f"/findings.csv?silenced={answer}").text.splitlines()[1:]
    assert len(rows) == len(expected)
    assert sum("until 2999-01-01 by ann: our <own> scanner" in row for row in rows) == 2 * (answer != "no")
    assert "must be one of yes, no" in pages.get("?silenced=maybe", 422).text


def test_filter_of_silences_needs_a_silence(pages: Pages) -> None:
    assert 'name="silenced"' not in pages.get("").text


def test_recreated_lake_is_the_one_of_the_pages(pages: Pages) -> None:
    pages.lake.find(finding(1, "of the old lake"))
    for address in ("", "/hours", "/hours/2015-05-17T05:00", *RESULTS):
        pages.get(address)
    shutil.rmtree(pages.lake.uri)
    assert "no run of six is in this lake" in pages.get("").text
    assert "no run of six is in this lake" in pages.get("/hours").text
    again = ViewedLake(pages.lake.file.parent)
    again.publish(range(4), run="new")
    again.find(finding(1, "of the new lake"))
    assert "of the new lake" in pages.get("").text
    assert "of the old lake" not in pages.get("").text
    assert "2015-05-17T00:00 to 2015-05-17T04:00" in pages.get("/hours").text
    assert "No run has requested this hour" in pages.get("/hours/2015-05-17T05:00", 404).text
    assert "by run new" in pages.get("/hours/2015-05-17T02:00").text


def test_page_of_an_hour_uses_the_open_tables(pages: Pages) -> None:
    address = f"/hours/{at(2):%Y-%m-%dT%H:%M}"
    pages.lake.ran("aggregates", 0, 6)
    failed = CheckResult(partition_of("events", at(2)), "rows", "warning", 1.0, "0", False)
    pages.lake.ledger.record_checks("ingest", [failed], "a")
    before = pages.get(address).text
    for table in ("ledger", "checks", "runs"):
        # Only a table that is opened again reads its first commits again.
        Path(pages.lake.root, table, "_delta_log", f"{0:020}.json").write_text("{")
    after = pages.get(address).text
    assert re.sub(r"Read .*? UTC", "", after) == re.sub(r"Read .*? UTC", "", before)


def test_accepted_check_is_on_the_pages_of_its_hour_and_of_quality(pages: Pages) -> None:
    result = CheckResult(
        partition_of("events", at(2)), "rows", "error", 1.0, "0", True, accepted="ann: <fine>"
    )
    pages.lake.ledger.record_checks("ingest", [result], "a")
    line = "accepted: ingest events, 2015-05-17T02:00: rows: observed 1, expected 0, by ann: <fine>"
    assert line in Elements(pages.get("/hours/2015-05-17T02:00").text).text
    assert "accepted:" not in Elements(pages.get("/hours/2015-05-17T03:00").text).text
    assert "ann: <fine>" in Elements(pages.get("/quality").text).text
