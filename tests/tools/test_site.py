"""The documentation is complete and current; `prose_lint` checks its prose."""

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from bench import aggregate, between
from bench.__main__ import BENCHES
from bench.published import DATA
from site_tools.drawings import DRAWINGS
from site_tools.result_pages import LINK, section

ROOT = Path(__file__).resolve().parents[2]


def test_mkdocs_builds_without_a_warning(tmp_path: Path) -> None:
    """Slow with the site's tools installed (20 seconds): a site of forty pages."""
    finished = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", tmp_path],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert finished.returncode == 0, finished.stderr
    assert "aged_mean" in (tmp_path / "reference/tables.html").read_text()
    assert "<td>one heavy key</td>" in (tmp_path / "benchmarks/results.html").read_text()
    pages = [path for path in tmp_path.rglob("*") if path.suffix in (".html", ".css", ".svg")]
    assert len(pages) > 50
    assert [(path.name, found) for path in pages if (found := loaded_from_elsewhere(path.read_text()))] == []


TAG = re.compile(r"<(?!a\b|/)[\w-]+\b[^>]*>")
"""The start of an element that is not a link to follow."""
FOREIGN = r"(?:https?:)?//[^\s\"')>]+"


def loaded_from_elsewhere(text: str) -> list[str]:
    """Return what a page, a style or a picture loads from another host, without a click of the reader.

    The theme's script loads Mermaid from another host for a page with an element of this class.
    """
    found = [
        url for tag in TAG.findall(text) for url in re.findall(rf"\b(?:src|href)=[\"']?({FOREIGN})", tag)
    ]
    found += re.findall(rf"(?:\burl\(|@import\s)[\"'\s]*({FOREIGN})", text)
    return [*found, *re.findall(r"class=\"mermaid\"", text)]


@pytest.mark.parametrize(
    "text",
    [
        '<script src="https://unpkg.com/mermaid.js">',
        '<link rel="stylesheet" href="//fonts.googleapis.com/css?family=Roboto">',
        "<img alt=a src=http://a.org/b.png>",
        '@import "https://a.org/b.css";',
        "a { background: url('https://a.org/b.woff') }",
        '<pre class="mermaid"><code>',
    ],
)
def test_page_that_loads_from_another_host_is_found(text: str) -> None:
    assert loaded_from_elsewhere(text)
    assert not loaded_from_elsewhere('<a href="https://a.org"><script src="../a.js"></a> url(../a.woff)')


@pytest.mark.parametrize("name", DRAWINGS)
def test_drawing_matches_its_script(name: str) -> None:
    assert (ROOT / f"docs/drawings/{name}.svg").read_text() == DRAWINGS[name]().svg()


def test_readme_is_short() -> None:
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) <= 200
    assert len(text.encode()) <= 12_000


def test_every_measured_table_is_on_a_page() -> None:
    pages = [path.read_text() for path in DATA.parent.glob("*.md")]
    links = sorted(link.removeprefix("data/") for page in pages for link in LINK.findall(page))
    reproductions = re.findall(r"^(reproduce-\w+):", (ROOT / "Makefile").read_text(), re.M)
    assert links == sorted(f"{name}.json" for name in [*BENCHES, *reproductions])
    assert links == sorted(path.name for path in DATA.iterdir())


def test_measured_table_has_a_line_for_each_way_or_case() -> None:
    origin = {"date": "2026-11-25", "commit": "bde338e4", "cores": 2}
    ours = {"keys": 1000, "who": "ours", "seconds": 2.04, "kept_bytes": 3 * 2**20}
    other = {
        "keys": 1000,
        "who": "other",
        "seconds": 1.0,
        "times_as_fast": 0.49,
        "aim": "at least 1",
        "met": False,
    }
    one_case = section({**origin, "aim": "fast", "rows": [ours, other]}, "data/a.json").split("\n\n")
    assert one_case == [
        "Aim: fast.",
        "Keys 1,000.",
        "| way | s | state, MiB | transom is times as fast | aim | aim met |\n"
        "| --- | --- | --- | --- | --- | --- |\n"
        "| ours | 2.04 | 3 |  |  |  |\n"
        "| other | 1 |  | 0.49 | at least 1 | **no** |",
        "**Aim missed.** transom is 0.49 times as fast as: other. The aim is at least 1.",
        "Measured on 2 cores, 2026-11-25, commit `bde338e4`: [data](data/a.json).",
    ]
    # Not every way has every case.
    cases = section({**origin, "rows": [ours, other, {**ours, "keys": 10, "seconds": 104}]}, "data/a.json")
    assert "| keys | ours | other |\n" in cases
    assert "| 1,000 | 2.04 | 1 (0.49x, aim missed) |\n| 10 | 104 |  |" in cases
    assert "**Aim missed.** transom is 0.49 times as fast as: other, keys 1,000." in cases
    claims = {**origin, "claims": [{"claim": "a | b", "met": True}]}
    assert "| result | as in the paper |\n| --- | --- |\n| a \\| b | yes |" in section(claims, "data/a.json")
    assert "Not measured yet" in section({"aim": "fast", "rows": []}, "data/a.json")


def measured(bench: str, who: str, column: str = "seconds", **case: object) -> str:
    """Return one checked-in number with two digits, or all before the point."""
    rows: list[Mapping[str, Any]] = json.loads((DATA / f"{bench}.json").read_text())["rows"]
    (row,) = (row for row in rows if {**case, "who": who}.items() <= row.items())
    return f"{row[column]:.0f}" if row[column] >= 10 else f"{row[column]:.1f}"


def test_readme_has_the_measured_seconds() -> None:
    """One hour of DuckDB is the only number without data."""
    text = (ROOT / "README.md").read_text()
    table = text.partition("## How fast")[2].partition("## When")[0]
    lines = [line.split("|")[2:-1] for line in table.splitlines() if line.startswith("| ")][1:]
    numbers = [[re.findall(r"[\d.]+", cell) for cell in line] for line in lines]
    zeek, apache = ({"log": log, "layout": "hourly"} for log in ("zeek", "apache"))
    computed, duck = aggregate.OURS, "duckdb, from "
    short = {"case": "short"}
    assert numbers == [
        [[measured("ingest", "transom", **zeek)], [measured("ingest", "spark", **zeek)], []],
        [[measured("ingest", "transom", **apache)], [measured("ingest", "spark", **apache)], []],
        [
            [measured("aggregate", computed)],
            [measured("aggregate", aggregate.WINDOW)],
            [measured("aggregate", f"{duck}events"), measured("aggregate", f"{duck}granules")],
        ],
        [[measured("aggregate", aggregate.STAGE)], [measured("aggregate", aggregate.WRITTEN)], []],
        [
            [measured("between", computed, **short)],
            [measured("between", way, **short) for way in (between.RANGE, between.BUCKETS)],
            [measured("between", way, **short) for way in (between.DUCK, between.ASOF)],
        ],
        [[measured("hour", way) for way in ("per_stage", "single")], [], []],
    ]
    windows = {row["who"]: row for row in json.loads((DATA / "aggregate.json").read_text())["rows"]}
    ratio = windows[aggregate.WINDOW]["times_as_fast"]
    assert (f"{ratio:.1f} times as fast as by `window()`. The aim is 10 times, so it is missed" in text) == (
        ratio < 10
    )
    cold = [measured("aggregate", way, "cold") for way in (f"{duck}events", computed, aggregate.STAGE)]
    assert re.findall(r"(\d+)\s+s\b", text.partition("## When not")[2])[:3] == cold
