"""The elements of a page, for tests."""

from html.parser import HTMLParser


class Elements(HTMLParser):
    """The tags, attributes, links, cells and text of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str]] = []
        self.cells: list[str] = []
        self.text = ""
        self._in_cell = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag == "td":
            self._in_cell = True
            self.cells.append("")

    def handle_endtag(self, tag: str) -> None:
        self._in_cell = self._in_cell and tag != "td"

    def handle_data(self, data: str) -> None:
        self.text += data
        if self._in_cell:
            self.cells[-1] += data

    @property
    def links(self) -> list[str]:
        """The addresses of all links."""
        return [value for name, value in self.attributes if name == "href"]
