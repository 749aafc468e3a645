"""Run jobs in threads and yield their results in order. Useful for jobs that release Python's lock."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def ordered_map(jobs: Iterable[Callable[[], T]], threads: int) -> Iterator[T]:
    """Yield the results of jobs, in the order of the jobs; an exception is raised in its job's turn.

    Args:
        jobs: functions; at most `threads + 1` results wait at a time, which bounds the memory.
        threads: the number of threads, at least 1; with 1 the jobs run in the caller's thread.

    >>> list(ordered_map([lambda: "a", lambda: "b"], threads=2))
    ['a', 'b']
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
            pool.shutdown(cancel_futures=True)
