"""Pages that stay open in Chromium: they show what is there now, and keep what a person has done."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import uvicorn

from tests.support.browser import chromium, needs_browser
from tests.support.viewed_lake import finding
from tests.web.conftest import Pages

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [needs_browser, pytest.mark.full]
MINUTE = 61_000


@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    with chromium() as started:
        yield started


@pytest.fixture
def tab(browser: "Browser", pages: Pages) -> "Iterator[Page]":
    """Return a tab whose clock the test moves; its base address is that of a server of the pages."""
    server = uvicorn.Server(uvicorn.Config(pages.app, port=0, log_level="warning"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    port = server.servers[0].sockets[0].getsockname()[1]
    context = browser.new_context(base_url=f"http://127.0.0.1:{port}")
    tab = context.new_page()
    tab.clock.install()
    complaints: list[str] = []
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    yield tab
    context.close()
    server.should_exit = True
    thread.join()
    assert complaints == []


def test_new_findings_appear_and_a_typed_filter_stays(tab: "Page", pages: Pages) -> None:
    pages.lake.find(finding(1, "first"))
    tab.goto("/streams/six?from=2015-05-17T00:00&to=2015-05-17T06:00")
    tab.locator("input[name=key]").fill("10.0.0")
    pages.lake.find(finding(2, "second"))
    assert tab.get_by_text("second").count() == 0
    tab.clock.run_for(MINUTE)
    tab.get_by_text("second").wait_for()
    # The earlier finding of the block is in the group of the later one.
    assert tab.locator(".findings li").count() == 2
    assert tab.locator("input[name=key]").input_value() == "10.0.0"
    assert tab.get_by_role("status").inner_text() == ""


def test_grid_keeps_focus_opened_parts_and_typed_hours(tab: "Page", pages: Pages) -> None:
    tab.goto("/streams/six/hours")
    assert tab.locator(".grid tbody tr").first.locator("td").count() == 6
    tab.get_by_text("Hours by state").click()
    tab.locator("form.run [name=from]").fill("2015-05-17T01:00")
    cell = tab.locator("[data-grid] a").first
    cell.focus()
    title = cell.get_attribute("title")
    pages.lake.publish([6, 7], run="b")
    tab.clock.run_for(MINUTE)
    tab.get_by_text("2015-05-17T00:00 to 2015-05-17T08:00").wait_for()
    assert tab.locator(".grid tbody tr").first.locator("td").count() == 8
    assert tab.evaluate("document.activeElement.title") == title
    assert tab.locator("[data-grid] a[tabindex='-1']").count() == tab.locator("[data-grid] a").count() - 1
    assert tab.locator("details", has_text="Hours by state").first.get_attribute("open") is not None
    # The changed field stays, the others follow the page, and the button counts their hours.
    assert tab.locator("form.run [name=from]").input_value() == "2015-05-17T01:00"
    assert tab.locator("form.run [name=to]").input_value() == "2015-05-17T08:00"
    assert tab.locator("form.hours [name=to]").input_value() == "2015-05-17T08:00"
    assert tab.locator("form.run button").inner_text() == "Run 7 hours"


def test_refresh_can_be_switched_off_and_stays_off(tab: "Page", pages: Pages) -> None:
    tab.goto("/streams/six")
    tab.get_by_label("refresh every minute").uncheck()
    tab.reload()
    assert not tab.get_by_label("refresh every minute").is_checked()
    requests: list[str] = []
    tab.on("request", lambda request: requests.append(request.url))
    tab.clock.run_for(5 * MINUTE)
    assert requests == []
    tab.get_by_label("refresh every minute").check()
    pages.lake.find(finding(1, "new"))
    tab.clock.run_for(2_000)
    tab.get_by_text("new", exact=True).first.wait_for()


def test_failed_refresh_shows_the_reason_and_keeps_the_page(tab: "Page", pages: Pages) -> None:
    pages.lake.find(finding(1, "kept"))
    tab.goto("/streams/six")
    log = Path(pages.lake.root, "ledger", "_delta_log")
    texts = {file: file.read_text() for file in log.glob("*.json")}
    for file in texts:
        file.write_text("{")
    tab.clock.run_for(MINUTE)
    tab.get_by_text("Not refreshed: The lake cannot be read. The page is as before.").wait_for()
    assert tab.get_by_text("kept").count() == 1
    for file, text in texts.items():
        file.write_text(text)
    tab.clock.run_for(MINUTE)
    tab.locator("[data-refresh] [role=status]:empty").wait_for(state="attached")


def test_button_counts_the_hours_that_are_typed(tab: "Page") -> None:
    tab.goto("/streams/six/hours")
    button = tab.locator("form.run button")
    for first, last, text in (
        ("2015-05-17T00:00", "2015-05-17T06:00", "Run 6 hours"),
        ("2015-05-17T05:00", "2015-05-17T06:00", "Run 1 hour"),
        ("2013-01-01T00:00", "2016-01-01T00:00", "Run 26280 hours"),
        ("2015-05-17T06:00", "2015-05-17T05:00", "Run"),
        ("2015-05-17T00:30", "2015-05-17T06:00", "Run"),
        ("", "2015-05-17T06:00", "Run"),
    ):
        tab.locator("form.run [name=from]").fill(first)
        tab.locator("form.run [name=to]").fill(last)
        assert button.inner_text() == text
