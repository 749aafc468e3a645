"""The between-join by its definition, row by row (Grossniklaus, Maier, Moorthy and Tufte, definition 6)."""

from collections.abc import Iterator, Sequence


def nested_loop(
    intervals: Sequence[tuple[object, int, int]], rows: Sequence[tuple[object, int]]
) -> Iterator[tuple[int, int]]:
    """Yield the numbers of the interval and of the row of each match, in `O(n m)`.

    A row matches an interval with its key if `start <= time < end`.

    Args:
        intervals: the key, start and end of each, `[start, end)`.
        rows: the key and time of each.

    >>> list(nested_loop([("a", 0, 5), ("b", 0, 5)], [("a", 4), ("a", 5)]))
    [(0, 0)]
    """
    for number, (key, start, end) in enumerate(intervals):
        for place, (key_of_row, time) in enumerate(rows):
            if key == key_of_row and start <= time < end:
                yield number, place
