"""Hostile texts of logs in every table that pages show, and the check that they are shown as text."""

import re
from collections.abc import Collection

from tests.support.elements import Elements
from tests.support.viewed_lake import ViewedLake, at, finding, window

HOSTILE = [
    "<script>alert(1)</script>",
    "\"'><img src=x onerror=alert(1)>",
    "</style></svg><b onclick=x>",
    "{{ 7 * 7 }}{% raw %}",
    "&lt;i&gt; &amp;",
    "javascript:alert(1)",
    "\u202eevil \u0000\u001b[31m\ud800",
    "\u05d0\u05d1\u05d2 \u0627\u0644",
    "x" * 100_000,
    "=cmd|' /C calc'!A0",
    "http://example.com/a.js",
]
TAGS = {
    "html", "head", "meta", "title", "style", "body", "main", "header", "nav", "section", "div", "h1", "h2",
    "p", "a", "span", "small", "strong", "bdi", "i", "ol", "ul", "li", "dl", "dt", "dd", "details", "summary",
    "table", "thead", "tbody", "tfoot", "tr", "th", "td", "svg", "g", "path", "line", "text", "rect", "defs",
    "clippath", "tspan",
}  # fmt: skip
"""The elements of a page without scripts and forms."""
LINKS = re.compile(r"/(?!/)|#|\?")
"""The start of an address of the same host."""
UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\u202e\ud800-\udfff]")
"""Characters that no page shows."""


def fill(lake: ViewedLake) -> None:
    """Add the hostile texts to every table that the page shows."""
    # Tables of Delta have no unpaired surrogates: file names have.
    texts = [text.replace("\ud800", "") for text in HOSTILE]
    lake.add("aggregates", [window(3, text, 10 + n, level=1) for n, text in enumerate(texts)])
    row = {"hour": at(4), "block": "regulars", "window_end": at(5), "low": 2, "high": 3, "slots": "?011"}
    row["spell_id"] = "s"
    lake.add("persistent_items", [{**row, "client": text} for text in texts])
    often = {"hour": at(4), "block": "often", "window_end": at(5), "window_records": 9, "max_unreported": 1}
    counts = {"estimate": 2, "low": 1, "high": 3}
    lake.add("frequencies", [{**often, **counts, "path": text, "rank": n} for n, text in enumerate(texts)])
    rejected = {"hour": at(1), "source_id": "s", "source_line": 1}
    lake.add("rejected", [{**rejected, "raw": text, "reason": text[:50], "detail": text} for text in texts])
    lake.find(*(finding(n % 6, text, key=text, item=text, evidence=(text,)) for n, text in enumerate(texts)))


def assert_harmless(html: str, others: Collection[str] = ()) -> None:
    """Check that a page has only elements, attributes and addresses of its templates.

    Args:
        html: the page.
        others: its elements besides `TAGS`.
    """
    page = Elements(html)
    assert page.tags <= TAGS | {*others}
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    assert all(LINKS.match(value) for name, value in page.attributes if name in ("href", "src", "action"))
    # A field of a form has the value as it is.
    texts = [page.text, *(value for name, value in page.attributes if name != "value")]
    assert not [text for text in texts if UNSEEN.search(text)]
