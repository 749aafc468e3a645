"""A limited number of pages is made at once; further requests wait, and are refused with a clear text."""

import asyncio
import threading
from collections.abc import Iterator

import httpx
import pytest

from tests.web.conftest import Pages
from transom.web import limit, routes
from transom.web.limit import AT_ONCE, RETRY_AFTER


class Slow:
    """Pages of keys that are not finished before `go`."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.go, self.begun = threading.Event(), 0
        self._lock = threading.Lock()
        self._key_of = routes.key_of
        patch.setattr(routes, "key_of", self._wait)

    def _wait(self, *arguments: object) -> object:
        with self._lock:
            self.begun += 1
        assert self.go.wait(60)
        return self._key_of(*arguments)  # type: ignore[arg-type]


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[Slow]:
    made = Slow(monkeypatch)
    yield made
    made.go.set()


async def open_slow_pages(client: httpx.AsyncClient, slow: Slow) -> list[asyncio.Task[httpx.Response]]:
    pages = [asyncio.create_task(client.get("/streams/six/key?key=c")) for _ in range(AT_ONCE)]
    async with asyncio.timeout(60):
        while slow.begun < AT_ONCE:
            await asyncio.sleep(0.02)
    return pages


def client_of(pages: Pages) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(pages.app), base_url="http://localhost")


def test_page_above_the_limit_is_refused_with_a_time_to_retry(
    pages: Pages, slow: Slow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limit, "PATIENCE", 0.1)

    async def visit() -> None:
        async with client_of(pages) as client:
            made = await open_slow_pages(client, slow)
            for address in ("/", "/streams/six", "/streams/six/findings.csv"):
                refused = await client.get(address)
                assert (refused.status_code, refused.headers["Retry-After"]) == (503, str(RETRY_AFTER))
                assert "Too many pages at once" in refused.text
                assert f"Open this one again in {RETRY_AFTER} seconds" in refused.text
            assert (await client.get("/static/page.js")).status_code == 200
            slow.go.set()
            assert {(await page).status_code for page in made} == {200}
            assert (await client.get("/streams/six")).status_code == 200

    asyncio.run(visit())


def test_page_above_the_limit_waits_for_another_one_to_end(pages: Pages, slow: Slow) -> None:
    async def visit() -> None:
        async with client_of(pages) as client:
            made = await open_slow_pages(client, slow)
            waiting = asyncio.create_task(client.get("/streams/six"))
            await asyncio.sleep(0.2)
            assert not waiting.done()
            slow.go.set()
            assert (await waiting).status_code == 200
            assert {(await page).status_code for page in made} == {200}

    asyncio.run(visit())


def test_page_that_fails_gives_its_place_back(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limit, "PATIENCE", 0.1)

    async def visit() -> None:
        async with client_of(pages) as client:
            for _ in range(AT_ONCE + 1):
                assert (await client.get("/streams/six?page=0")).status_code == 422
                assert (await client.get("/streams/six/nothing")).status_code == 404
            assert (await client.get("/streams/six")).status_code == 200

    asyncio.run(visit())
