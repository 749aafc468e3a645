"""Work of which much is done outside Python's lock, on several cores, its results in order."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def ordered_map(jobs: Iterable[Callable[[], T]], threads: int) -> Iterator[T]:
    """What jobs return, each in its turn; what one raises is raised in its turn.

    Args:
        jobs: asked for one by one, at most `threads` more than have been given back: what they hold is
            bounded by that.
        threads: at least 1; a single one is the caller's own.
    """
    if threads == 1:
        yield from (job() for job in jobs)
        return
    waiting: deque[Future[T]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        try:
            for job in jobs:
                waiting.append(pool.submit(job))
                if len(waiting) > threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
