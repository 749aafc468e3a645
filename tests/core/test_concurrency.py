"""Jobs on several threads return results in order, and few start before they are requested."""

from collections.abc import Callable, Iterator
from functools import partial
from threading import Barrier, BrokenBarrierError, current_thread

import pytest

from transom.core.concurrency import ordered_map


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_results_come_in_the_order_of_the_jobs(threads: int) -> None:
    assert list(ordered_map((partial(divmod, number, 7) for number in range(40)), threads)) == [
        divmod(number, 7) for number in range(40)
    ]


def test_number_of_concurrent_jobs_equals_that_of_threads() -> None:
    barrier = Barrier(3, timeout=20)
    assert sorted(ordered_map([barrier.wait] * 6, 3)) == [0, 0, 1, 1, 2, 2]


def test_single_thread_is_the_callers_own() -> None:
    barrier = Barrier(2, timeout=0.01)
    with pytest.raises(BrokenBarrierError):
        list(ordered_map([barrier.wait] * 2, 1))
    assert list(ordered_map([current_thread], 1)) == [current_thread()]


def counted(begun: list[int]) -> Iterator[Callable[[], int]]:
    for number in range(100):
        begun.append(number)
        yield partial(int, number)


@pytest.mark.parametrize(("threads", "ahead"), [(1, 0), (2, 2), (4, 4)])
def test_few_jobs_are_requested_ahead(threads: int, ahead: int) -> None:
    begun: list[int] = []
    results = ordered_map(counted(begun), threads)
    for number in range(10):
        assert next(results) == number
        assert len(begun) == number + 1 + ahead


@pytest.mark.parametrize("threads", [1, 3])
def test_exception_of_a_job_is_raised_in_its_turn(threads: int) -> None:
    jobs: list[Callable[[], int]] = [partial(int, text) for text in ("1", "2", "x", "3")]
    results = ordered_map(jobs, threads)
    assert [next(results), next(results)] == [1, 2]
    with pytest.raises(ValueError, match="'x'"):
        next(results)
    assert list(results) == []
