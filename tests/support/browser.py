"""Chromium of the system, for tests of the pages."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
REQUIRED = os.environ.get("TRANSOM_BROWSER") == "required"
"""Whether a missing browser is a failure; `.ci/run` sets it."""
needs_browser = pytest.mark.skipif(
    CHROMIUM is None and not REQUIRED,
    reason="LEFT OUT: the pages in a browser, as there is none; `apt-get install chromium` installs one",
)


@contextmanager
def chromium() -> "Iterator[Browser]":
    """Start the browser, without a window."""
    from playwright.sync_api import sync_playwright

    assert CHROMIUM is not None, "there is no browser: apt-get install chromium"
    with sync_playwright() as playwright:
        # Chromium's sandbox refuses root, who runs the tests in a container.
        options = ["--no-sandbox"] if os.getuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=options)
        yield browser
        browser.close()
