"""The between-join by its definition (Grossniklaus, Maier, Moorthy and Tufte, definition 6)."""

from collections.abc import Iterator, Sequence


def nested_loop(
    intervals: Sequence[tuple[object, int, int]], rows: Sequence[tuple[object, int]]
) -> Iterator[tuple[int, int]]:
    """Compare every interval with every row, and yield the numbers of matching pairs.

    Args:
        intervals: key, start and end, `[start, end)`.
        rows: key and time.
    """
    for number, (key, start, end) in enumerate(intervals):
        for place, (key_of_row, time) in enumerate(rows):
            if key == key_of_row and start <= time < end:
                yield number, place
