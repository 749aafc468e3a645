"""The page as HTML: hostile texts are text, nothing comes from another host, one file is enough."""

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from tests.support.elements import Elements
from tests.support.hostile import HOSTILE, assert_harmless, fill
from tests.support.viewed_lake import SIX, ViewedLake, at, finding
from transom.charts.section import MAX_TEXT
from transom.views.render import as_text
from transom.views.view import view_of

ATTRIBUTES_WITH_ADDRESSES = {"src", "href", "srcset", "action", "data", "xlink:href", "style"}


@pytest.fixture(scope="module")
def hostile(make_lake: Callable[[Path], ViewedLake], tmp_path_factory: pytest.TempPathFactory) -> ViewedLake:
    """Return a lake that no test of the module changes."""
    lake = make_lake(tmp_path_factory.mktemp("hostile"))
    fill(lake)
    return lake


def test_hostile_texts_are_shown_as_text(hostile: ViewedLake) -> None:
    html = view_of(hostile.uri, hostile.stream).page()
    assert_harmless(html)
    elements = Elements(html)
    for text in HOSTILE[:6]:
        assert text in elements.text
    assert "49" not in elements.text.partition("{% raw %}")[0][-40:]
    assert "x" * (MAX_TEXT + 1) not in html
    assert "(100,000 characters)" in elements.text


def test_page_of_a_hostile_key(hostile: ViewedLake) -> None:
    html = view_of(hostile.uri, hostile.stream, key={"client": HOSTILE[1]}).page()
    assert_harmless(html)
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


def test_silenced_findings_are_marked(lake: ViewedLake) -> None:
    silence = "silence: [{key: quiet, who: ann, why: our own scanner, until: 2999-01-01}]"
    lake.file.write_text(f"{SIX}{silence}\n")
    lake.find(finding(1, "silenced", item="quiet"), finding(2, "other", key="loud"))
    text = Elements(view_of(lake.uri, lake.file).page()).text
    assert text.count("silenced until 2999-01-01 by ann") == 1


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
