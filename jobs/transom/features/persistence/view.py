"""The view of persistent items: a row of slots for each."""

from collections.abc import Iterator
from datetime import datetime
from itertools import groupby
from typing import Any

from transom.charts.section import Section
from transom.charts.specs import label, labels, millis, slots
from transom.core.durations import format_duration
from transom.core.terminal import counted
from transom.core.terminal_tables import plain
from transom.engine.reader import sql_name
from transom.engine.selection import Row, Selection
from transom.features.persistence.describe import slots_text
from transom.features.persistence.spec import Persistence
from transom.findings.text import bounds_text, key_text
from transom.spec.stream import Stream

ITEMS, CELLS, FIRST = 25, 100, 3
"""The maximum number of items in a chart, of slots that are drawn one by one, and of items in the text."""
STATES = {"1": "seen", "0": "not seen", "?": "not remembered"}


def section(selection: Selection, name: str) -> Section:
    """Return the section of a block."""
    block = selection.stream.blocks(Persistence)[name]
    item = ", ".join(map(sql_name, block.item))
    columns = [
        *block.item, "window_end", "low", "high", "estimate", "is_certain", "change", "since", "records",
        "gap_mean_s", "gap_cv", "slots",
    ]  # fmt: skip
    query = selection.query(
        "persistence", name, "persistent_items", columns, each=item,
        keep="low IS NOT NULL AND (spell_id IS NOT NULL OR watched)",
        order=f"low DESC, high DESC, {item}",
    )  # fmt: skip
    rows, total = query.page()
    watched = ", or are watched" if block.watch else ""
    most = ", ".join(
        f"{label(key_text(block.item, row) or '')} ({bounds_text(row['low'], row['high'])})"
        for row in rows[:FIRST]
    )
    found = "; Findings has it" if block.finding else ""
    left = f" An item that has left by the end of these hours is not listed{found}."
    params = block.params
    named = labels({place: key_text(block.item, row) or "" for place, row in enumerate(rows[:ITEMS])})
    cells = [cell for place, text in named.items() for cell in cells_of(block, rows[place], text)]
    return Section(
        f"{name}: items that come again and again",
        f"{counted(total, 'item')} of {', '.join(block.item)} that were in {params.min_certain} or more of "
        f"{slots_text(block.slots, block.slot)}, or close to it (in {params.min_reported} at "
        f"least){watched}, each as last reported{query.drawn(rows[:ITEMS], total)}"
        f"{f'. The first: {most}' if selection.page == 1 and rows else ''}.{left}"
        f"{query.limit_note}"
        if total
        else f"No item in enough slots at the end of these hours.{left}",
        query.data_table(rows, total),
        slots(cells, [*STATES.values()]) if cells else None,
        name,
        guarantee=_exactness(block) if total else "",
    )


def _exactness(block: Persistence) -> str:
    """Return the guarantees of a report."""
    params, watched = block.params, ", unless it is watched" if block.watch else ""
    return (
        f"The number of slots, of {block.slots}, is certainly between low and high. The gaps are those from "
        "the first contact of a slot to that of the next slot with one, not between all contacts. An item in "
        f"{params.min_certain} or more is reported with a probability of at least {1 - block.delta:g}; one "
        f"in fewer than {params.min_reported} never{watched}."
    )


def picture(stream: Stream, name: str, line: str, end: datetime) -> Section | None:
    """Return the chart of a line of evidence; None if the line is not that of the slots."""
    block = stream.blocks(Persistence)[name]
    if len(line) != block.slots or not {*line} <= {*STATES}:
        return None
    note = f"Each slot of {format_duration(block.slot)} of the window up to {plain(end)}. Times between "
    note += "contacts are from the first of a slot to that of the next slot with one."
    if "1" in line:
        last = end - (len(line) - line.rindex("1")) * block.slot
        note += f" Last seen in the slot that begins at {plain(last)}."
    cells = cells_of(block, {"slots": line, "window_end": end}, label(name))
    return Section("Slots", note, None, slots(cells, [*STATES.values()]), "slots")


def cells_of(block: Persistence, row: Row, label: str) -> Iterator[dict[str, Any]]:
    """Yield the slots of an item; equal neighbours together, if there are many."""
    text = row["slots"] or ""
    place = 0
    apart = len(text) <= CELLS
    for state, of_state in groupby(enumerate(text), key=lambda slot: (slot[1], slot[0] if apart else None)):
        count = sum(1 for _ in of_state)
        start = row["window_end"] - (len(text) - place) * block.slot
        end = start + count * block.slot
        yield {"label": label, "start": millis(start), "end": millis(end), "state": STATES[state[0]]}
        place += count
