"""The documentation is complete, current and plain."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from site_tools.drawings import DRAWINGS

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
MAX_WORDS = 40
"""Maximum of words in a sentence; PROSE asks for 20 on average."""


def test_mkdocs_builds_without_a_warning(tmp_path: Path) -> None:
    """Slow with the site's tools installed (20 seconds): a site of forty pages."""
    finished = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", tmp_path],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert finished.returncode == 0, finished.stderr
    assert "aged_mean" in (tmp_path / "reference/tables/index.html").read_text()


@pytest.mark.parametrize("name", DRAWINGS)
def test_drawing_matches_its_script(name: str) -> None:
    assert (ROOT / f"docs/drawings/{name}.svg").read_text() == DRAWINGS[name]().svg()


def sentences(text: str) -> list[str]:
    """Return the sentences of a page's prose: no code, no tables, no headings."""
    prose = re.sub(r"^```.*?^```$", "\n\n", text, flags=re.M | re.S)
    prose = "\n".join("" if re.match(r"(    |#|\||!\[|:::)", line) else line for line in prose.splitlines())
    # A list's items are sentences of their own.
    paragraphs = re.split(r"\n\s*\n|\n(?=- |\d+\. )", prose)
    joined = (re.sub(r"`[^`]*`", "code", " ".join(paragraph.split())) for paragraph in paragraphs)
    return [one for paragraph in joined for one in re.split(r"(?<=[.:!?])\s+", paragraph) if one]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_sentence_is_long(page: Path) -> None:
    texts = {one: len(one.split()) for one in sentences(page.read_text())}
    assert [one for one, count in texts.items() if count > MAX_WORDS] == []
    assert not texts or sum(texts.values()) / len(texts) < 20


def test_readme_is_short() -> None:
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) <= 200
    assert len(text.encode()) <= 12_000
