"""Pages in Chromium as wide as a phone, and the question before a run of many hours."""

import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
import uvicorn

from tests.support.browser import chromium, needs_browser
from tests.support.viewed_lake import at, window
from tests.web.conftest import Pages, made

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [needs_browser, pytest.mark.full]
PHONE, DESKTOP = {"width": 390, "height": 844}, {"width": 1280, "height": 900}
LATEST = "2015-05-19T23:00"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the address of pages over three days, the last of them without events."""
    with pytest.MonkeyPatch.context() as patch:
        pages: Pages = made(tmp_path_factory.mktemp("phone"), patch)
        pages.lake.publish(range(72))
        pages.lake.publish(range(48, 72), rows=0)
        pages.lake.add("aggregates", [window(n, f"client-{n % 3}", 1000 * n) for n in range(60)])
        item = {"hour": at(50), "block": "regulars", "window_end": at(51), "high": 9, "spell_id": "s"}
        pages.lake.add(
            "persistent_items",
            [item | {"client": "w" * n, "low": n, "slots": "10?1"} for n in (3, 40, 200)],
        )
        pages.get("/hours.csv")
        server = uvicorn.Server(uvicorn.Config(pages.app, port=0, log_level="warning"))
        thread = threading.Thread(target=server.run)
        thread.start()
        while not server.started:
            time.sleep(0.02)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
        server.should_exit = True
        thread.join()


@pytest.fixture(scope="module")
def browser(served: str) -> "Iterator[Browser]":
    """Return the browser; the pages are made before, as its event loop allows no other."""
    with chromium() as started:
        yield started


def opened(browser: "Browser", address: str, size: dict[str, int]) -> "Page":
    tab = browser.new_page(viewport=size)  # type: ignore[arg-type]
    tab.goto(address)
    return tab


def test_grid_begins_with_its_newest_hours_and_fades_where_there_are_more(
    browser: "Browser", served: str
) -> None:
    tab = opened(browser, f"{served}/streams/six/hours", PHONE)
    newest = tab.locator(f"[data-grid] a[title*='{LATEST}']").first
    box = newest.bounding_box()
    assert box is not None
    assert box["x"] + box["width"] <= PHONE["width"]
    grid = tab.locator(".scroll.newest")
    assert grid.get_attribute("class") == "scroll newest before"
    grid.evaluate("box => { box.scrollLeft = -10_000 }")
    tab.locator(".scroll.newest.after").wait_for()
    assert grid.get_attribute("class") == "scroll newest after"
    tab.close()


def test_grid_that_fits_has_no_fade_and_begins_at_the_left(browser: "Browser", served: str) -> None:
    tab = opened(browser, f"{served}/streams/six/hours?from=2015-05-17T00:00&to=2015-05-17T06:00", DESKTOP)
    assert tab.locator(".scroll.newest").get_attribute("class") == "scroll newest"
    (stage, edge) = (tab.locator(selector).first.bounding_box() for selector in (".grid th", "h1"))
    assert stage is not None
    assert edge is not None
    assert stage["x"] == edge["x"]
    tab.close()


def test_charts_of_a_phone_are_not_cut(browser: "Browser", served: str) -> None:
    tab = opened(browser, f"{served}/streams/six/results/aggregates/traffic?key=client-1", PHONE)
    assert tab.locator(".chart .narrow").first.is_visible()
    assert not tab.locator(".chart .wide").first.is_visible()
    assert tab.evaluate(
        "[...document.querySelectorAll('.chart')].every(box => box.scrollWidth <= box.clientWidth)"
    )
    assert tab.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    tab.set_viewport_size(DESKTOP)  # type: ignore[arg-type]
    assert tab.locator(".chart .wide").first.is_visible()
    assert not tab.locator(".chart .narrow").first.is_visible()
    tab.close()


def test_texts_of_charts_are_inside_of_them_in_the_font_of_the_reader(
    browser: "Browser", served: str
) -> None:
    for size in (PHONE, DESKTOP):
        tab = opened(browser, f"{served}/streams/six/results/persistence/regulars", size)
        cut = tab.evaluate(
            "[...document.querySelectorAll('.chart text')].filter(text => {"
            " const own = text.getBoundingClientRect();"
            " return own.width && own.left < text.closest('.chart').getBoundingClientRect().left }).length"
        )
        assert cut == 0
        assert tab.locator(".chart text:visible").count() > 6
        tab.close()


def test_run_of_many_hours_is_asked_about_first(browser: "Browser", served: str) -> None:
    tab = opened(browser, f"{served}/streams/six/hours", DESKTOP)
    posted: list[str] = []
    tab.route(
        "**/dagRuns", lambda route: (posted.append(route.request.url), route.fulfill(status=403, json={}))
    )
    button, status = tab.locator("form.run button"), tab.locator("form.run [role=status]")
    assert status.inner_text() == ""
    button.click()
    assert button.inner_text() == "Yes, run 72 hours"
    assert "about 3 days: press the button again" in status.inner_text()
    # Other hours are another question.
    tab.locator("form.run [name=from]").fill("2015-05-17T01:00")
    assert (button.inner_text(), status.inner_text()) == ("Run 71 hours", "")
    button.click()
    assert posted == []
    button.click()
    tab.get_by_text("Not run: you lack the permission in Airflow").wait_for()
    assert len(posted) == 1
    # Few hours run at once.
    tab.locator("form.run [name=from]").fill("2015-05-18T00:00")
    button.click()
    tab.wait_for_function("document.querySelector('form.run button').disabled === false")
    assert len(posted) == 2
    tab.close()


def test_cells_of_the_start_page_are_all_visible_on_a_phone(browser: "Browser", served: str) -> None:
    tab = opened(browser, f"{served}/", {"width": 320, "height": 568})
    last = tab.locator(".cells i").last
    box = last.bounding_box()
    assert last.get_attribute("title") == f"{LATEST}: stale"
    assert box is not None
    assert box["x"] + box["width"] <= 320
    tab.close()
