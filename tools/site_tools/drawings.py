"""Draw the pictures of the pages: one key's time line for each algorithm, and two diagrams.

    python -m site_tools.drawings docs/drawings

The paper's listings compute what is drawn. The same code gives the same bytes, and a test compares them with
the files in the repository.
"""

import sys
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

from site_tools.diagrams import dag, publish
from site_tools.svg import WIDTH, Picture
from transom.features.frames.algorithm.params import FrameSpec, Threshold
from transom.features.frames.algorithm.reference import Reading, framed
from transom.features.frequency.algorithm.params import Shape
from transom.features.frequency.algorithm.reference import Cell, Perfect, cells_of
from transom.features.patterns.algorithm.reference import widen
from transom.features.patterns.algorithm.widening import Widening
from transom.features.persistence.algorithm.item_slot_hash import item_slot_hash
from transom.features.persistence.algorithm.params import PersistenceParams
from transom.features.persistence.algorithm.reference import SlidingWindow

EDGE, LABEL, ROW = 4, 24, 32
"""Pixels left and right of the time axis, of the line of a label, and from row to row."""


class Canvas(Picture):
    """A picture with a time axis from left to right, and rows with a label above.

    Args:
        end: the time at the right edge; 0 is at the left one.
    """

    def __init__(self, end: float) -> None:
        super().__init__()
        self.end = end

    def x(self, time: float) -> float:
        """Return the place of a time."""
        return EDGE + time / self.end * (WIDTH - 2 * EDGE)

    def row(self, label: str = "", height: float = ROW) -> float:
        """Begin a row and return the height of its middle."""
        if label:
            self.text(EDGE, self.height + 17, label, "start")
            self.height += LABEL
        self.height += height
        return self.height - height / 2

    def box(self, start: float, end: float, y: float, label: str = "", style: str = "box") -> None:
        """Draw a time span."""
        self.rectangle(self.x(start) + 1, y, self.x(end) - self.x(start) - 2, style)
        if label:
            self.text((self.x(start) + self.x(end)) / 2, y + 5, label)

    def dot(self, time: float, y: float, style: str = "dot") -> None:
        """Draw an event."""
        self.circle(self.x(time), y, style)

    def line(self, points: list[tuple[float, float]], style: str = "line") -> None:
        """Draw a line through places in time and height."""
        self.polyline([(self.x(time), y) for time, y in points], style)


def windows() -> Canvas:
    """Granules of one hour, and windows of two levels that consist of them."""
    canvas = Canvas(6)
    events = (0.2, 0.5, 0.7, 1.3, 1.6, 2.1, 2.2, 2.4, 2.8, 3.5, 4.2, 4.3, 4.9, 5.4)
    y = canvas.row("events")
    for time in events:
        canvas.dot(time, y)
    counts = [sum(hour <= time < hour + 1 for time in events) for hour in range(6)]
    y = canvas.row("granules, 1 h")
    for hour, count in enumerate(counts):
        canvas.box(hour, hour + 1, y, str(count), "soft")
    for label, length, slide in (("2 h every 1 h", 2, 1), ("4 h every 2 h", 4, 2)):
        for start in range(0, 7 - length, slide):
            y = canvas.row(label if start == 0 else "")
            canvas.box(start, start + length, y, str(sum(counts[start : start + length])))
    return canvas


class _Record(NamedTuple):
    time: int


def widening() -> Canvas:
    """Batches of three levels, and the first window that shows an episode of two records."""
    plan = Widening(batch=1, max_length=4, max_records=10)
    canvas = Canvas(8)
    records = [_Record(3), _Record(5)]
    y = canvas.row("records")
    for record in records:
        canvas.dot(record.time + 0.5, y)
    (match,) = widen(records, plan, lambda seen: [(0, 1)] if len(seen) == 2 else [])
    for level in range(plan.levels):
        length = plan.length(level)
        y = canvas.row(f"batches of {5 * length} min")
        for start in range(0, 8, length):
            seen = level == match.level and match.end - 2 * length <= start < match.end
            canvas.box(start, start + length, y, "", "full" if seen else "soft")
    y = canvas.row("reported")
    canvas.line([(match.end, LABEL), (match.end, y + 8)], "mark")
    canvas.text(canvas.x(match.end) - 6, y + 5, "two neighbouring batches hold both records", "end", "strong")
    return canvas


def frames() -> Canvas:
    """Readings, a threshold, and the frames above it."""
    values = (2, 3, 6, 7, 8, 6, 3, 2, 4, 7, 6, 3, 2, 6, 8, 9, 8, 7)
    limit = 5
    canvas = Canvas(len(values))
    zero = canvas.row("value", 100) + 50

    def height(value: float) -> float:
        return zero - value * 10

    canvas.line([(i + 0.5, height(value)) for i, value in enumerate(values)])
    for i, value in enumerate(values):
        canvas.dot(i + 0.5, height(value), "dot" if value > limit else "none")
    canvas.line([(0, height(limit)), (len(values), height(limit))], "mark")
    canvas.text(canvas.x(0), height(limit) - 6, f"> {limit}", "start", "strong")
    spec = FrameSpec(Threshold(), every=1, scheduled=True, missing="breaks")
    readings = [Reading(i, value, holds=value > limit) for i, value in enumerate(values)]
    y = canvas.row("frames")
    for frame in framed(spec, readings, len(values)):
        canvas.box(frame.first, frame.latest + 1, y, f"peak {max(frame.values)}")
    canvas.text(canvas.x(len(values)), y - 16, "open", "end", "strong")
    y = canvas.row("hours")
    for start in range(0, len(values), 6):
        canvas.box(start, start + 6, y, f"hour {start // 6 + 1}", "soft")
    return canvas


def between_joins() -> Canvas:
    """Rows of another table, two frames, and the range of rows that fills each."""
    times, amounts = (1, 2, 4, 5, 6, 8, 9, 11, 12, 14), (3, 1, 4, 1, 5, 9, 2, 6, 5, 3)
    canvas = Canvas(16)
    y = canvas.row("rows", 48) + 8
    for time, amount in zip(times, amounts, strict=True):
        canvas.dot(time, y)
        canvas.text(canvas.x(time), y - 10, str(amount))
    y = canvas.row("running sum")
    for place, time in enumerate(times):
        canvas.text(canvas.x(time), y + 4, str(sum(amounts[: place + 1])))
    for label, start, end in (("frame a", 3.5, 9.5), ("frame b", 7.5, 12.5)):
        y = canvas.row(label)
        before = sum(amount for time, amount in zip(times, amounts, strict=True) if time < start)
        upto = sum(amount for time, amount in zip(times, amounts, strict=True) if time < end)
        canvas.box(start, end, y, f"{upto} - {before} = {upto - before}")
    return canvas


def persistent_items() -> Canvas:
    """Slots of two items: one passes the hash early and is counted, the other never does."""
    params = PersistenceParams(slots=16, alpha=Fraction(6, 10), epsilon=Fraction(4, 10))
    sketch = SlidingWindow(params, lambda item, slot: item_slot_hash(item, slot, 0))
    canvas = Canvas(params.slots)
    slots = {"beacon": range(0, 16), "visitor": (2, 7, 11)}
    for name, of_item in slots.items():
        y = canvas.row(name)
        start = None
        for slot in range(params.slots):
            passes = item_slot_hash(name.encode(), slot, 0) < params.hash_threshold
            if slot in of_item:
                sketch.take(name.encode(), slot)
                start = slot if start is None and passes else start
            style = "none" if slot not in of_item else "soft" if start is None else "full"
            canvas.box(slot, slot + 1, y, "", style)
        counted = {item: count for item, _, count in sketch.oldest(params.slots - 1)}.get(name.encode())
        reported = name.encode() in sketch.reported(params.slots - 1)
        text = "its hash never passes: not remembered"
        if start is not None:
            text = (
                f"remembered from slot {start + 1}: {counted} counted, {'' if reported else 'not '}reported"
            )
        canvas.text(canvas.x(0), canvas.row() + 2, text, "start", "strong")
    return canvas


def count_min() -> Canvas:
    """A matrix of three rows, and the cells of one item."""
    shape = Shape(rows=3, columns=14)
    sketch = Perfect(shape, steps=100)
    items = [b"a"] * 9 + [b"b"] * 4 + [bytes([i]) for i in range(40)]
    for item in items:
        sketch.update(item)
    canvas = Canvas(shape.columns)
    of_item = cells_of(shape, b"a")
    for row in range(shape.rows):
        y = canvas.row(f"hash {row + 1}")
        for column in range(shape.columns):
            cell = Cell(row, column)
            canvas.box(column, column + 1, y, str(sketch.value(cell)), "box" if cell in of_item else "soft")
    text = f"item a: smallest of its cells is {sketch.estimate(b'a')}, its true count {items.count(b'a')}"
    canvas.text(canvas.x(0), canvas.row() + 4, text, "start", "strong")
    return canvas


DRAWINGS: Mapping[str, Callable[[], Picture]] = {
    "dag": dag,
    "publish": publish,
    "windows": windows,
    "widening": widening,
    "frames": frames,
    "between-joins": between_joins,
    "persistent-items": persistent_items,
    "count-min": count_min,
}


def main(folder: Path) -> None:
    """Write every picture into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, draw in DRAWINGS.items():
        (folder / f"{name}.svg").write_text(draw().svg(), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
