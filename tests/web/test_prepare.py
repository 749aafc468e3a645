"""What a server prepares when it starts: the first reader waits for none of it."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
import vl_convert
from jinja2 import Environment

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
    drawn, compiled = list[str](), list[str]()
    drawing, compiling = vl_convert.vegalite_to_svg, Environment.compile

    def draw(spec: str, **options: Any) -> str:
        drawn.append(spec)
        return drawing(spec, **options)

    def compile_and_note(environment: Environment, *of: Any, **options: Any) -> Any:
        compiled.append(threading.current_thread().name)
        return compiling(environment, *of, **options)

    monkeypatch.setattr(vl_convert, "vegalite_to_svg", draw)
    monkeypatch.setattr(Environment, "compile", compile_and_note)
    for cached in (render._environment, charts.environment, charts._svg):
        cached.cache_clear()
    pages.lake.refresh()
    start(pages.app, wait)
    assert drawn
    assert {*compiled} == {prepare.THREAD}
    compiled.clear()

    def forbidden(*of: object, **options: object) -> None:
        raise AssertionError("not prepared")

    monkeypatch.setattr(open_streams, "OpenStream", forbidden)
    monkeypatch.setattr(open_stream, "freshness_of", forbidden)
    list_of_streams = request(pages.app, "/")
    assert (list_of_streams.status_code, "are published and fresh" in list_of_streams.text) == (200, True)
    pages.get("/hours")
    assert compiled == []


def test_what_fails_is_reported_and_the_rest_is_prepared(
    pages: Pages, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    prepared: list[str] = []

    def fail() -> None:
        raise RuntimeError("no library of charts")

    def summary(streams: object, name: str, patience: float | None) -> None:
        if name == "one":
            raise OSError("no host of the lake")
        prepared.append(name)

    monkeypatch.setattr(render, "prepare", fail)
    monkeypatch.setattr(open_streams.OpenStreams, "names", lambda self: ["one", "two"])
    monkeypatch.setattr(prepare, "summary_of", summary)
    start(pages.app, wait)
    assert [record.message for record in caplog.records if record.name == prepare.__name__] == [
        "preparing the pages: charts and templates failed",
        "preparing the pages: stream one failed",
    ]
    assert "no host of the lake" in caplog.text
    assert prepared == ["two"]


@pytest.mark.parametrize("error", [None, RuntimeError("another application cannot start")])
def test_server_that_stops_prepares_no_further_stream(
    pages: Pages, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: Exception | None
) -> None:
    begun, proceed = threading.Event(), threading.Event()
    calls: list[tuple[str, float | None]] = []

    def summary(streams: object, name: str, patience: float | None) -> None:
        calls.append((name, patience))
        begun.set()
        proceed.wait(60)
        raise RuntimeError("a process that exits accepts no work")

    def until() -> None:
        begun.wait(60)
        if error is not None:
            raise error

    monkeypatch.setattr(open_streams.OpenStreams, "names", lambda self: ["one", "two"])
    monkeypatch.setattr(prepare, "summary_of", summary)
    with nullcontext() if error is None else pytest.raises(RuntimeError, match="another"):
        start(pages.app, until)
    proceed.set()
    wait()
    assert calls == [("one", None)]
    assert "preparing" not in caplog.text
