"""Frames compared with periods before them, as text. Only rows that are covered completely are compared."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from transom.core.terminal import counted
from transom.core.terminal_tables import plain
from transom.engine.selection import Row


def texts(rows: Sequence[Row], measure: str) -> Iterator[tuple[Row, str]]:
    """Yield each row with the text of its bar: value, coverage, and what the frame has more or less."""
    for row, own in _with_frame(rows):
        text = "not known" if row[measure] is None else plain(row[measure])
        if row["shift_s"] is not None and row["coverage"] != 1 and row[measure] is not None:
            text += f" in {_percent(row['coverage'] or 0.0)} of the time"
        change = _change(row, own, measure)
        yield row, text if change is None else f"{text}, the frame {_percent(change, '+')}"


def answer(rows: Sequence[Row], measure: str, shift: Callable[[Row], str]) -> str:
    """Return in how many frames the value is larger than in each period before; empty without such periods.

    Args:
        rows: the rows of some frames.
        measure: the column.
        shift: returns the text for the period of a row.
    """
    more, compared = Counter[str](), Counter[str]()
    for row, own in _with_frame(rows):
        change = _change(row, own, measure)
        if change is not None:
            compared[shift(row)] += 1
            more[shift(row)] += change > 0
    parts = [
        f"{more[period]} of {counted(number, 'frame')} than {period}" for period, number in compared.items()
    ]
    end = ", of those that can be compared. "
    return f"{measure} is larger in {', and in '.join(parts)}{end}" if parts else ""


def unknown(rows: Iterable[Row], named: Callable[[Row], str]) -> str:
    """Return a sentence with the periods of which nothing is published; empty if there are none."""
    periods = [named(row) for row in rows if row["rows_matched"] is None and row["shift_s"] is not None]
    return f" Not known, as nothing of it is published: {'; '.join(periods)}." if periods else ""


def _with_frame(rows: Iterable[Row]) -> Iterator[tuple[Row, Row | None]]:
    """Yield each row with the one of the frame itself; None if there is none."""
    rows = [*rows]
    own = {row["frame_id"]: row for row in rows if row["shift_s"] == 0}
    yield from ((row, own.get(row["frame_id"])) for row in rows)


def _change(row: Row, own: Row | None, measure: str) -> float | None:
    """Return by what share of an earlier value the frame's value is larger; None if this is not known."""
    if own is None or not row["shift_s"] or row["coverage"] != 1 or own["coverage"] != 1:
        return None
    before, value = row[measure], own[measure]
    return (value - before) / abs(before) if before and value is not None else None


def _percent(share: float, sign: str = "") -> str:
    return f"{100 * share:{sign}.1f} %"
