"""The view of persistent items: a row of slots for each."""

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from transom.charts.section import Section
from transom.charts.specs import labels, millis, slots
from transom.core.durations import format_duration
from transom.core.terminal import counted
from transom.engine.reader import sql_name
from transom.engine.selection import Row, Selection
from transom.features.persistence.spec import Persistence
from transom.findings.text import key_text

ITEMS, CELLS = 25, 100
"""The maximum number of items in a chart, and of slots that are drawn one by one."""
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
    watched = ", or watched" if block.watch else ""
    named = labels({place: key_text(block.item, row) or "" for place, row in enumerate(rows[:ITEMS])})
    cells = [cell for place, text in named.items() for cell in _cells(block, rows[place], text)]
    return Section(
        f"{name}: items that come again and again",
        f"{counted(total, 'item')} of {', '.join(block.item)} in most of the slots of "
        f"{format_duration(block.slot)} of {format_duration(block.window)}{watched}, each as last reported"
        f"{query.drawn(rows[:ITEMS], total)}. {_exactness(block)}{query.limit_note}"
        if total
        else "No item in most of the slots in these hours.",
        query.data_table(rows, total),
        slots(cells, [*STATES.values()]) if cells else None,
        name,
    )


def _exactness(block: Persistence) -> str:
    """Return the guarantees of a report."""
    params, watched = block.params, ", unless it is watched" if block.watch else ""
    return (
        f"The number of slots, of {block.slots}, is certainly between low and high. An item in "
        f"{params.min_certain} or more is reported with a probability of at least {1 - block.delta:g}; one "
        f"in fewer than {params.min_reported} never{watched}."
    )


def _cells(block: Persistence, row: Row, label: str) -> Iterator[dict[str, Any]]:
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
