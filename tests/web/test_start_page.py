"""The list of streams: health in a sentence, cells with a legend, hours without events, and severities."""

import re

from tests.support.asgi import request
from tests.support.elements import Elements
from tests.support.viewed_lake import at, finding
from tests.web.conftest import Pages
from transom.views.findings import FindingFilter, findings_of
from transom.views.open_stream import OpenStream


def start(pages: Pages) -> str:
    """Return the page, after the stale hours are known."""
    pages.get("/hours.csv")
    return request(pages.app, "/").text


def test_health_is_one_sentence_with_the_newest_events(pages: Pages) -> None:
    pages.lake.refresh()
    page = Elements(start(pages))
    newest = "the newest events are of 2015-05-17T05:00"
    assert f"All 6 hours up to 2015-05-17T06:00 are published and fresh; {newest}" in page.text
    assert "no findings" in page.text


def test_hours_without_events_are_counted_and_have_cells_of_their_own(pages: Pages) -> None:
    pages.lake.publish([0, 4, 5], rows=0)
    pages.lake.refresh()
    html = start(pages)
    text = Elements(html).text
    assert "are published and fresh, 3 of them without events; the newest events are of" in text
    assert "2015-05-17T03:00;" in text
    assert "6 hours: 3 published, 3 without events" in text
    cells = re.findall(r'<i class="(\w+)" title="(\S+): ([\w ]+)"', html)
    assert [state for state, *_ in cells] == ["empty", *["published"] * 3, "empty", "empty"]
    assert cells[0][1:] == ("2015-05-17T00:00", "without events")
    # The legend has the states of the page, and no others.
    assert "empty: computed and checked, without an event" in text
    assert "quarantined:" not in text


def test_severities_are_from_high_to_low_in_any_order_of_rows(pages: Pages) -> None:
    order = ["low", "low", "medium", "high", "medium", "low"]
    pages.lake.find(*(finding(n, f"f{n}", finding_id=f"f{n}", severity=of) for n, of in enumerate(order)))
    found = re.findall(r"(\d) (high|medium|low) finding", Elements(start(pages)).text)
    assert found == [("1", "high"), ("2", "medium"), ("3", "low")]
    opened = OpenStream(pages.lake.uri, pages.lake.stream)
    interval, _ = opened.interval_of(None, None)
    for _ in range(5):
        assert [*findings_of(opened, FindingFilter(interval)).severities] == ["high", "medium", "low"]


def test_page_of_an_hour_has_its_events_and_files(pages: Pages) -> None:
    pages.lake.publish([4], rows=0)
    pages.lake.refresh()
    pages.lake.add("files", [{"hour": at(3), "path": "p", "status": "ingested"}])
    assert "10 events" in Elements(pages.get("/hours/2015-05-17T03:00").text).text
    text = Elements(pages.get("/hours/2015-05-17T04:00").text).text
    assert "no event" in text
    assert "no file came; no file is expected of this stream" in text
    # Nothing is wrong with the hour, so nothing is listed as a cause.
    assert "empty: computed and checked, without an event" in text
    assert "by run" not in text
