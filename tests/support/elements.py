"""The elements of a page, for tests."""

from dataclasses import dataclass, field
from html.parser import HTMLParser


@dataclass
class Part:
    """A section of a page: its text, and the cells of its table, the names of the columns first."""

    text: str = ""
    rows: list[list[str]] = field(default_factory=list)

    @property
    def table(self) -> list[dict[str, str]]:
        """The rows of the table by the names of the columns."""
        return [dict(zip(self.rows[0], row, strict=True)) for row in self.rows[1:]]


class Elements(HTMLParser):
    """The tags, attributes, links, cells, sections and text of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str]] = []
        self.cells: list[str] = []
        self.text = ""
        self.sections: dict[str, Part] = {}
        self._in_cell = False
        self._cell = ""
        self._part = Part()
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag == "section":
            self._part = self.sections[dict(attrs).get("id") or ""] = Part()
        elif tag in ("td", "th", "summary"):
            self._cell = ""
        elif tag == "tr":
            self._part.rows.append([])
        if tag == "td":
            self._in_cell = True
            self.cells.append("")

    def handle_endtag(self, tag: str) -> None:
        self._in_cell = self._in_cell and tag != "td"
        if tag == "section":
            self._part = Part()
        elif tag in ("td", "th"):
            self._part.rows[-1].append(self._cell)

    def handle_data(self, data: str) -> None:
        self.text += data
        self._part.text += data
        self._cell += data
        if self._in_cell:
            self.cells[-1] += data

    @property
    def links(self) -> list[str]:
        """The addresses of all links."""
        return [value for name, value in self.attributes if name == "href"]
