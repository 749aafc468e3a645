"""Chromium in a real Airflow: the form of the page runs hours, and each page shows what the tables have.

With TRANSOM_SCREENSHOTS, a folder, the test writes the pictures of the documentation into it.
"""

import base64
import os
import re
from collections.abc import Collection, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from deltalake import DeltaTable

import airflow_server
import sample_logs
from airflow_api import Airflow
from sample_logs import land
from tests.support.browser import chromium, needs_browser
from transom.core.intervals import format_hour
from transom.findings.store import findings
from transom.ledger.ledger import Ledger
from transom.storage.tables import read_rows
from transom.stream import load

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, FrameLocator, Page

pytestmark = [needs_browser, pytest.mark.full, pytest.mark.xdist_group("airflow")]
PATH = "landing/web/%Y-%m-%d/access.%H.log.gz"
HOUR = timedelta(hours=1)
FIRST = datetime(2015, 5, 17, 10, tzinfo=UTC)
END = FIRST + 6 * HOUR
THIRD = FIRST + 2 * HOUR
JUNK = FIRST + 4 * HOUR
STREAM = f"""
name: web
title: Requests of a web server
preset: apache/combined
source: {{path: "{PATH}"}}
key: [client]
submit: single
aggregates:
  traffic:
    measures: {{n: count, sent: sum(bytes)}}
    levels: RANGES 3 HOURS, 1 HOUR SLIDES 1 HOUR, 1 HOUR
patterns:
  lost: {{within: 3 hours, steps: [{{id: seen, where: status = 200}}, {{id: gone, where: status = 404}}]}}
frames:
  served: {{kind: threshold, where: status = 200, on_duplicate_time: max, min_records: 20, idle: 2 hours}}
fills:
  sent: {{frame: served, join_on: [], lead: 10 minutes, measures: {{sent: sum(bytes)}}}}
persistence:
  regulars: {{item: [client], slot: 1 hour, window: 8 hours, alpha: 0.5, epsilon: 0.3}}
frequency:
  pages: {{item: [path], window: 3 hours, tick: 10 minutes, epsilon: 0.01, delta: 0.01, top: 5}}
start: 2015-05-17T10:00
schedule: false
"""
BLOCKS = (
    "patterns/lost",
    "aggregates/traffic",
    "frames/served",
    "fills/sent",
    "persistence/regulars",
    "frequency/pages",
)
PAGES = ("", "/hours", *(f"/results/{block}" for block in BLOCKS), "/quality", "/key?key=66.249.73.135")
SIZES = {"desktop": (1280, 900), "phone": (390, 844)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("page")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Airflow]:
    (folder / "streams").mkdir()
    (folder / "streams/web.yaml").write_text(STREAM)
    hours = sample_logs.apache()
    for number in range(6):
        hour = FIRST + number * HOUR
        land(folder, PATH, hour, ["no log line\n"] * 5 if hour == JUNK else hours[hour])
    places = {
        "TRANSOM_LAKE": str(folder / "lake"),
        "TRANSOM_LANDING": str(folder),
        "TRANSOM_STREAMS": str(folder / "streams"),
    }
    with airflow_server.running(folder / "airflow", places) as running:
        running.pause("web", False)
        yield running


class Visitor:
    """A person who is logged in, and what their browser complained about."""

    def __init__(self, context: "BrowserContext", server: Airflow) -> None:
        self.server, self.page = server, context.new_page()
        self.complaints: list[str] = []
        self.hosts: set[str] = set()
        self.page.on("request", lambda request: self.hosts.add(request.url.split("/")[2]))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", self._console)

    def _console(self, message: Any) -> None:
        # Of Airflow's own pages, only what this page does counts.
        of_airflow = "An iframe which has both allow-scripts and allow-same-origin" in message.text
        if (
            message.type in ("error", "warning")
            and not of_airflow
            and "/transom/" in message.location.get("url", "")
        ):
            self.complaints.append(f"{message.location['url']}: {message.text}")

    def log_in(self) -> None:
        """Log in by Airflow's own form."""
        self.page.goto(f"{self.server.url}/auth/login")
        self.page.locator("input[name=username]").fill(self.server.login["username"])
        self.page.locator("input[name=password]").fill(self.server.login["password"])
        self.page.locator("button[type=submit]").click()
        self.page.wait_for_url(lambda url: "/login" not in url)

    def open(self, address: str) -> str:
        """Open a page outside of Airflow's frame, and return its text."""
        self.page.goto(f"{self.server.url}/transom{address}")
        return self.page.locator("main.transom").inner_text()

    def frame(self) -> "FrameLocator":
        """Return Airflow's frame of the pages."""
        return self.page.frame_locator("iframe")


@pytest.fixture(scope="module")
def visitor(server: Airflow) -> Iterator[Visitor]:
    with chromium() as browser:
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        visitor = Visitor(context, server)
        visitor.log_in()
        yield visitor


def rows_of(folder: Path, table: str, where: str = "TRUE") -> list[dict[str, Any]]:
    return read_rows(DeltaTable(str(folder / "lake/web" / table)), where)


def run_by_the_form(visitor: Visitor, first: datetime, end: datetime) -> str:
    """Fill in the form of the page in Airflow's frame, and return how the run ended."""
    frame = visitor.frame()
    frame.locator("form.run [name=from]").fill(format_hour(first))
    frame.locator("form.run [name=to]").fill(format_hour(end))
    frame.locator("form.run button").click()
    status = frame.locator("form.run [role=status]")
    status.get_by_text("The run has ended").wait_for(timeout=900_000)
    return status.inner_text()


def test_hours_are_run_by_the_form_and_seen(visitor: Visitor, folder: Path) -> None:
    visitor.page.goto(visitor.server.url)
    visitor.page.locator("a[href$='plugin/transom']").first.click()
    visitor.frame().get_by_text("no run of web is in this lake").wait_for(timeout=60_000)
    visitor.frame().get_by_role("link", name="web", exact=True).click()
    visitor.frame().get_by_text("Nothing to see yet").wait_for()
    # The junk file fails the gate of its hour.
    assert "failed" in run_by_the_form(visitor, FIRST, END)
    visitor.frame().get_by_role("link", name="Show the result").click()
    visitor.frame().get_by_role("heading", name="Findings", exact=True).wait_for()
    found = findings(str(folder / "lake/web"))
    assert found
    visitor.frame().get_by_text(re.compile(f"^{len(found)} findings?, the worst first")).wait_for()
    # The address of the browser is one that can be sent to somebody.
    assert visitor.page.url == f"{visitor.server.url}/plugin/transom/transom/streams/web"
    visitor.page.reload()
    visitor.frame().get_by_role("heading", name="Findings", exact=True).wait_for()
    # The file is replaced, and the hour is run by its own page.
    land(folder, PATH, JUNK, sample_logs.apache()[JUNK])
    visitor.page.goto(f"{visitor.server.url}/plugin/transom/transom/streams/web/hours/{format_hour(JUNK)}")
    visitor.frame().get_by_text("quarantined", exact=False).first.wait_for()
    assert "success" in run_by_the_form(visitor, FIRST, END)
    visitor.frame().get_by_role("link", name="Show the result").click()
    # The page is loaded again: the form has not run anything yet.
    visitor.frame().locator("form.run [role=status]:empty").wait_for(state="attached")
    assert f"Hour {format_hour(JUNK)}" in visitor.frame().locator("main").inner_text()
    assert "quarantined" not in visitor.frame().locator("dl.states").last.inner_text()
    history = visitor.frame().locator("#history").inner_text()
    assert re.search(
        r"Quarantined by run manual__.*\n+Solved by run manual__.* as the new content of", history
    )
    visitor.frame().get_by_role("link", name="DAG in Airflow").click()
    visitor.page.wait_for_url("**/dags/web")


def withdrawn(folder: Path, current: Collection[str]) -> dict[str, str]:
    """Return the severities of the findings that runs have withdrawn, by id, without those of `current`."""
    changes = [
        of for run in Ledger(str(folder / "lake/web")).runs(details=True) for of in run["findings"] or ()
    ]
    ids = {of["finding_id"]: of["severity"] for of in changes if of["change"] == "withdrawn"}
    return {name: severity for name, severity in ids.items() if name not in current}


def test_pages_show_what_the_tables_have(visitor: Visitor, folder: Path) -> None:
    found = findings(str(folder / "lake/web"))
    gone = withdrawn(folder, {finding.finding_id for finding in found})
    assert f"{len(found) + len(gone)} finding" in visitor.open("/streams/web")
    assert f"{len(gone)} withdrawn finding" in visitor.open("/streams/web?state=withdrawn")
    visitor.open("/streams/web")
    links = set(visitor.page.locator("main a").evaluate_all("all => all.map(a => a.pathname)"))
    for finding in found[:50]:
        # Some are in closed lists of the same item.
        assert any(link.endswith(f"/findings/{finding.finding_id}") for link in links), finding.title
    for severity in ("high", "medium", "low"):
        count = sum(of == severity for of in [*(finding.severity for finding in found), *gone.values()])
        noun = "finding" if any(of.severity == severity for of in found) or not count else "withdrawn finding"
        assert f"{count} {noun}" in visitor.open(f"/streams/web?severity={severity}")
    for block in BLOCKS:
        text = visitor.open(f"/streams/web/results/{block}")
        assert "published" in text, text
        assert visitor.page.locator("table tbody tr").count() > 0, block
    frames = {row["frame_id"] for row in rows_of(folder, "frames")}
    assert f"{len(frames)} frame" in visitor.open("/streams/web/results/frames/served")
    visitor.open("/streams/web/hours")
    assert visitor.page.locator(".grid tbody td").count() == 6 * len(load(folder / "streams/web.yaml").stages)
    rejected = rows_of(folder, "rejected")
    assert f"{len(rejected)} line" in visitor.open("/streams/web/quality") or not rejected
    client = max(rows_of(folder, "aggregates", "level = 1"), key=lambda row: row["n"])["client"]
    events = rows_of(folder, "events", f"client = '{client}'")
    assert f"{len(events)} events" in visitor.open(f"/streams/web/key?key={client}")


def test_a_finding_leads_to_its_lines_and_its_key(visitor: Visitor, folder: Path) -> None:
    visitor.open("/streams/web?kind=episode")
    visitor.page.locator(".findings a").first.click()
    text = visitor.page.locator("main").inner_text()
    assert "Evidence" in text
    assert "HTTP/1" in text
    visitor.page.locator("dt:text-is('key') + dd a").click()
    assert "Events of the key" in visitor.page.locator("main").inner_text()


def test_downloads(visitor: Visitor, folder: Path) -> None:
    visitor.open("/streams/web")
    with visitor.page.expect_download() as download:
        visitor.page.get_by_role("link", name="All as CSV").click()
    text = Path(download.value.path()).read_text()
    assert all(finding.finding_id in text for finding in findings(str(folder / "lake/web")))


def test_airflow_leads_to_the_pages(visitor: Visitor) -> None:
    server, page = visitor.server, visitor.page
    runs = server.runs("web")
    failed = next(run for run, state in runs.items() if state == "failed")
    links = server.ask("GET", f"/dags/web/dagRuns/{failed}/taskInstances/ingest_gate/links")["extra_links"]
    page.goto(f"{server.url}{links['What changed']}")
    visitor.frame().get_by_role("heading", name=f"Run {failed}").wait_for()
    address = links["Findings and hours"]
    page.goto(f"{server.url}{address}")
    visitor.frame().get_by_role("heading", name="Hours", exact=True).wait_for()
    assert f"{format_hour(FIRST)} to {format_hour(END)}" in visitor.frame().locator("main").inner_text()
    page.goto(f"{server.url}/dags/web/plugin/findings")
    visitor.frame().get_by_role("heading", name="Findings", exact=True).wait_for()
    page.goto(f"{server.url}/dags/web/runs/{quote(failed)}/tasks/ingest_gate/details")
    page.get_by_role("link", name="Findings and hours").click()
    visitor.frame().get_by_role("heading", name="Hours", exact=True).wait_for()


def test_airflows_switch_changes_the_page(visitor: Visitor) -> None:
    page = visitor.page
    page.goto(f"{visitor.server.url}/plugin/transom/transom/streams/web")
    main = visitor.frame().locator("main")
    main.wait_for()
    colours = {}
    for theme in ("dark", "light"):
        page.evaluate("theme => localStorage.setItem('theme', theme)", theme)
        visitor.frame().locator(f"html[data-theme={theme}]").wait_for()
        colours[theme] = main.evaluate("main => getComputedStyle(main).backgroundColor")
    assert colours["dark"] != colours["light"] == "rgb(255, 255, 255)"


def test_the_keyboard_is_enough(visitor: Visitor, folder: Path) -> None:
    visitor.open("/streams/web/hours")
    keyboard = visitor.page.keyboard
    for _ in range(60):
        keyboard.press("Tab")
        if visitor.page.evaluate("document.activeElement.closest('[data-grid]') !== null"):
            break
    for key in ("ArrowRight", "ArrowRight", "ArrowDown"):
        keyboard.press(key)
    title = visitor.page.evaluate("document.activeElement.title")
    stages = load(folder / "streams/web.yaml").stages
    assert title.startswith(f"{stages[1]} {format_hour(THIRD)}")
    keyboard.press("Enter")
    visitor.page.get_by_role("heading", name=f"Hour {format_hour(THIRD)}").wait_for()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_are_accessible_and_fit(visitor: Visitor, size: str, scheme: Any) -> None:
    from axe_playwright_python.sync_playwright import Axe

    page, (width, height) = visitor.page, SIZES[size]
    page.set_viewport_size({"width": width, "height": height})
    visitor.open("/")
    page.evaluate("theme => localStorage.setItem('theme', theme)", scheme)
    visitor.open("/streams/web?kind=episode")
    of_finding = page.locator(".findings a").first.get_attribute("href") or ""
    visitor.open(f"/streams/web/hours/{format_hour(JUNK)}")
    of_run = page.locator("a[href*='/streams/web/runs/']").last.get_attribute("href") or ""
    addresses = [
        "/", *(f"/streams/web{of}" for of in PAGES), of_finding.removeprefix("/transom"),
        of_run.removeprefix("/transom"),
        f"/streams/web/hours/{format_hour(THIRD)}", "/streams/web?page=0",
    ]  # fmt: skip
    for address in addresses:
        visitor.open(address)
        result = Axe().run(page, options={"resultTypes": ["violations"]})
        serious = [
            (violation["id"], [node["html"][:200] for node in violation["nodes"]][:3])
            for violation in result.response["violations"]
            if violation["impact"] in ("serious", "critical")
        ]
        assert serious == [], address
        assert page.evaluate("document.documentElement.scrollWidth") <= width, address
        take(page, address, size, scheme)
    page.set_viewport_size({"width": 1280, "height": 900})


def take(page: "Page", address: str, size: str, scheme: str) -> None:
    """Write a picture of a page for the documentation, if a folder is given."""
    target = os.environ.get("TRANSOM_SCREENSHOTS")
    if not target or "page=0" in address:
        return
    name = "streams"
    if address.startswith("/streams"):
        names = address.partition("?")[0].removeprefix("/streams/web").strip("/").split("/")
        one = {
            "hours": "hour",
            "findings": "finding",
            "runs": "run",
            "results": names[1] if names[1:] else "",
        }
        name = one[names[0]] if names[1:] else names[0] or "findings"
    # Playwright writes no WebP, which is a quarter of the size.
    chrome = page.context.new_cdp_session(page)
    picture = chrome.send("Page.captureScreenshot", {"format": "webp", "quality": 80})
    (Path(target) / f"{name}-{size}-{scheme}.webp").write_bytes(base64.b64decode(picture["data"]))
    chrome.detach()


def test_the_browser_complained_of_nothing(visitor: Visitor) -> None:
    # The page with a wrong number is one of those that the tests opened.
    unexpected = [text for text in visitor.complaints if "page=0" not in text]
    assert unexpected == []
    assert visitor.hosts == {f"127.0.0.1:{visitor.server.port}"}
