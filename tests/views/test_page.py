"""The page as HTML: hostile texts are text, nothing comes from another host, one file is enough."""

import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest
from typer.testing import Result

from tests.support.viewed_lake import SIX, ViewedLake, at, finding, window
from transom.charts.section import MAX_TEXT
from transom.views.render import as_text
from transom.views.view import view_of

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
    *(
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "main",
        "header",
        "nav",
        "section",
        "div",
        "h1",
        "h2",
    ),
    *(
        "p",
        "a",
        "span",
        "small",
        "strong",
        "bdi",
        "i",
        "ol",
        "ul",
        "li",
        "dl",
        "dt",
        "dd",
        "details",
        "summary",
    ),
    *("table", "thead", "tbody", "tr", "th", "td", "svg", "g", "path", "line", "text", "rect", "defs"),
    "clippath",
}
ATTRIBUTES_WITH_ADDRESSES = {"src", "href", "srcset", "action", "data", "xlink:href", "style"}


class Elements(HTMLParser):
    """The elements of a page, and its text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        self.text += data


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


@pytest.fixture(scope="module")
def hostile(make_lake: Callable[[Path], ViewedLake], tmp_path_factory: pytest.TempPathFactory) -> ViewedLake:
    """Return a lake that no test of the module changes."""
    lake = make_lake(tmp_path_factory.mktemp("hostile"))
    fill(lake)
    return lake


def test_hostile_texts_are_shown_as_text(hostile: ViewedLake) -> None:
    html = view_of(hostile.uri, hostile.stream).page()
    elements = Elements(html)
    assert elements.tags <= TAGS
    assert not [name for name, _ in elements.attributes if name.startswith("on")]
    for text in HOSTILE[:6]:
        assert text in elements.text
    assert "49" not in elements.text.partition("{% raw %}")[0][-40:]
    assert not re.search("[\x00-\x08\x0b-\x1f\u202e\ud800-\udfff]", html)
    assert "x" * (MAX_TEXT + 1) not in html
    assert "(100,000 characters)" in elements.text


def test_page_of_a_hostile_key(hostile: ViewedLake) -> None:
    html = view_of(hostile.uri, hostile.stream, key={"client": HOSTILE[1]}).page()
    assert Elements(html).tags <= TAGS
    assert HOSTILE[1] in Elements(html).text


def test_page_needs_no_other_file_and_no_script(hostile: ViewedLake) -> None:
    html = view_of(hostile.uri, hostile.stream).page()
    addresses = {value for name, value in Elements(html).attributes if name in ATTRIBUTES_WITH_ADDRESSES}
    assert all(value.startswith("#") for value in addresses)
    assert "script" not in Elements(html).tags
    assert "url(http" not in html.replace(" ", "")
    assert "@import" not in html


def test_links_lead_to_parts_of_the_page(hostile: ViewedLake) -> None:
    attributes = Elements(view_of(hostile.uri, hostile.stream).page()).attributes
    ids = [value for name, value in attributes if name == "id"]
    assert len(ids) == len(set(ids))
    assert {value[1:] for name, value in attributes if name == "href"} <= {*ids}


def test_parts_of_blocks_with_equal_names_have_their_own_ids(lake: ViewedLake) -> None:
    lake.find(
        finding(1, "of a file", stage="ingest", block="events"),
        finding(2, "of a block that is gone", block="gone"),
        finding(3, "of a block", block="checks"),
    )
    text = (
        SIX.replace("  back:", "  checks:").replace("  busy:", "  checks:").replace("  often:", "  rejected:")
    )
    lake.file.write_text(text.replace("frame: busy", "frame: checks"))
    attributes = Elements(view_of(lake.uri, lake.file).page()).attributes
    ids = [value for name, value in attributes if name == "id"]
    links = [value[1:] for name, value in attributes if name == "href"]
    assert len(ids) == len(set(ids))
    assert {*links} <= {*ids}
    assert {"part-patterns-checks", "part-quality-checks"} <= {*links}


def test_figures_of_the_table_are_on_the_page(hostile: ViewedLake) -> None:
    text = Elements(view_of(hostile.uri, hostile.stream).page()).text
    lake_rows = [10 + n for n in range(len(HOSTILE))]
    assert f"{10 * lake_rows[-1]:,}" in text


def test_notebook_shows_the_parts_of_the_page(hostile: ViewedLake) -> None:
    view = view_of(hostile.uri, hostile.stream)
    html = view._repr_html_()
    assert html in view.page()
    assert "<svg" in html
    assert not Elements(html).tags & {"html", "body"}


def test_values_are_shown_in_short() -> None:
    shorts = [as_text(value) for value in (None, True, 1234567, 0.1 + 0.2, at(1), "a\tb\udc80")]
    assert shorts == ["", "yes", "1234567", "0.3", "2015-05-17T01:00", "a\\tb\\udc80"]


@pytest.fixture
def streams(hostile: ViewedLake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRANSOM_HOME", str(tmp_path))
    monkeypatch.setenv("TRANSOM_STREAMS", str(hostile.file.parent))
    monkeypatch.setenv("TRANSOM_LAKE", hostile.uri)


@pytest.mark.usefixtures("streams")
def test_report_writes_the_page(
    run: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run("report", "six")
    assert (result.exit_code, result.stdout) == (0, "written: six.html\n")
    assert Path("six.html").read_text().startswith("<!doctype html>")
    result = run(
        "report", "six", "--html", "k.html", "--from", "2015-05-17T01:00", "--to", "2015-05-17T03:00",
        "--key", HOSTILE[0],
    )  # fmt: skip
    assert result.exit_code == 0
    assert "2 hours" in Elements(Path("k.html").read_text()).text


@pytest.mark.usefixtures("streams")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--from", "2015-05-17T03:00", "--to", "2015-05-17T01:00"], "from: must be before to"),
        (["--from", "2015-05-17T03:00"], "--from and --to: must be given together"),
        (["--from", "2015-05-17T03:30", "--to", "2015-05-17T05:00"], "from: must be on the hour"),
        (["--key", "clint=a"], "nearest: client"),
        (["--html", "/nowhere/x.html"], "--html: cannot write /nowhere/x.html: No such file or directory"),
    ],
)
def test_wrong_argument_of_report(run: Callable[..., Result], arguments: list[str], message: str) -> None:
    result = run("report", "six", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr


def test_report_of_a_lake_without_a_run(
    run: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, streams: None
) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("TRANSOM_LAKE", str(tmp_path / "empty"))
    result = run("report", "six")
    assert (result.exit_code, result.stderr[:30]) == (1, "transom: no run of six is in t")
