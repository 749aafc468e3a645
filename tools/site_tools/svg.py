"""Write SVG pictures of boxes, lines, dots and texts.

A picture is as wide as a column of text, with letters that a telephone still shows. Its colours suit a light
and a dark page.
"""

from collections.abc import Sequence

WIDTH = 480
STYLE = """
text{font:15px sans-serif;fill:#767b88}
.strong{font-weight:bold;fill:#00897b}
.box{fill:#00897b22;stroke:#00897b}
.full{fill:#00897b;stroke:#00897b}
.soft{fill:#8884;stroke:#888}
.none{fill:none;stroke:#888}
.line{stroke:#888;fill:none}
.arrow{stroke:#888;fill:none;marker-end:url(#head)}
.mark{stroke:#e65100;stroke-width:2;fill:none}
.dot{fill:#e65100}
"""
HEAD = (
    '<marker id="head" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
    '<path d="M0,0L8,4L0,8z" fill="#888"/></marker>'
)
"""The head of an arrow."""

Place = tuple[float, float]


class Picture:
    """An SVG picture; places are in pixels, from the upper left corner.

    Attributes:
        height: the height in pixels, known at the end.
    """

    def __init__(self) -> None:
        self.height = 0.0
        self._parts: list[str] = []

    def text(self, x: float, y: float, text: str, anchor: str = "middle", style: str = "") -> None:
        """Write a text on the line `y`."""
        self._parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" class="{style}">{text}</text>'
        )

    def rectangle(self, x: float, y: float, width: float, style: str = "box", height: float = 24) -> None:
        """Draw a box around the height `y`."""
        place = f'x="{x:.1f}" y="{y - height / 2:.1f}" width="{width:.1f}" height="{height:.0f}" rx="3"'
        self._parts.append(f'<rect {place} class="{style}"/>')

    def circle(self, x: float, y: float, style: str = "dot") -> None:
        """Draw a dot."""
        self._parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" class="{style}"/>')

    def polyline(self, points: Sequence[Place], style: str = "line") -> None:
        """Draw a line through places."""
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self._parts.append(f'<polyline points="{path}" class="{style}"/>')

    def svg(self) -> str:
        """Return the file."""
        size = f'viewBox="0 0 {WIDTH} {self.height:.0f}" width="{WIDTH}"'
        head = f'<svg xmlns="http://www.w3.org/2000/svg" {size}>'
        return "\n".join([head, f"<style>{STYLE}</style>", f"<defs>{HEAD}</defs>", *self._parts, "</svg>\n"])
