"""What a server prepares when it starts: the first reader waits for none of it."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
import vl_convert

from tests.support.asgi import request
from tests.web.conftest import Pages
from transom.views import open_stream
from transom.views import render as charts
from transom.web import open_streams, prepare, render


def threads() -> list[threading.Thread]:
    """Return the running threads that prepare a server."""
    return [thread for thread in threading.enumerate() if thread.name == prepare.THREAD]


def start(app: Any, until: Callable[[], object]) -> None:
    """Start an application, and stop it when a function returns."""

    async def run() -> None:
        async with app.router.lifespan_context(app):
            await asyncio.to_thread(until)

    asyncio.run(run())


def wait() -> None:
    """Wait until all is prepared."""
    for thread in threads():
        thread.join(60)
    assert threads() == []


def test_first_page_opens_no_stream_and_compiles_no_template(
    pages: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[str] = []
    monkeypatch.setattr(vl_convert, "vegalite_to_svg", lambda spec, **options: drawn.append(spec) or "<svg/>")
    render._environment.cache_clear()
    charts._svg.cache_clear()
    pages.lake.refresh()
    start(pages.app, wait)
    assert len(drawn) >= 1

    def forbidden(*of: object, **options: object) -> None:
        raise AssertionError("not prepared")

    monkeypatch.setattr(open_streams, "OpenStream", forbidden)
    monkeypatch.setattr(open_stream, "freshness_of", forbidden)
    monkeypatch.setattr(render._environment().__class__, "compile", forbidden)
    list_of_streams = request(pages.app, "/")
    assert (list_of_streams.status_code, "are published and fresh" in list_of_streams.text) == (200, True)
    pages.get("/hours")


def test_page_is_shown_if_the_preparation_fails(
    pages: Pages, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        raise RuntimeError("no library of charts")

    monkeypatch.setattr(render, "prepare", fail)
    start(pages.app, wait)
    assert "preparing the pages failed" in caplog.text
    assert "no library of charts" in caplog.text
    assert request(pages.app, "/").status_code == 200


def test_server_that_stops_prepares_no_further_stream(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, proceed = threading.Event(), threading.Event()
    asked: list[tuple[str, float | None]] = []

    def summary(streams: object, name: str, patience: float | None) -> None:
        asked.append((name, patience))
        begun.set()
        proceed.wait(60)

    monkeypatch.setattr(open_streams.OpenStreams, "names", lambda self: ["one", "two"])
    monkeypatch.setattr(prepare, "summary_of", summary)
    start(pages.app, lambda: begun.wait(60))
    (thread,) = threads()
    proceed.set()
    thread.join(60)
    assert asked == [("one", None)]
