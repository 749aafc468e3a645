"""Compute the same answers in several ways; only full windows are timed."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from reproduce.connections import Connections
from reproduce.operations import Answers, Operation
from transom.features.aggregates.algorithm.granules import WindowLevel
from transom.features.aggregates.algorithm.reference import Chain

WORD = 8


@dataclass(frozen=True)
class Found:
    """The cost and the answers of one way.

    Attributes:
        unit_ms: the mean CPU time per unit once the widest window is full, in milliseconds.
        state_kb: the maximum state between two units, in KiB, with integers as in the tables.
        answers: the answers.
    """

    unit_ms: float
    state_kb: float
    answers: Answers


def stairwise(of: Operation[Any], stream: Sequence[Connections], levels: Sequence[WindowLevel]) -> Found:
    """Read each unit once, and use one chain for all levels."""
    chain: Chain[Any] = Chain(levels, 0)
    answers: dict[tuple[int, int], Any] = {}
    most = 0

    def step(unit: int) -> None:
        nonlocal most
        for report in [*chain.receive(unit, of.granule(unit, stream[unit])), *chain.advance(unit + 1)]:
            answers[report.level, report.end] = of.answer(report)
        most = max(most, chain.granules)

    unit_ms = _timed(step, len(stream), levels)
    return Found(unit_ms, most * of.words * WORD * _items(of, stream) / 1024, answers)


def separate(of: Operation[Any], stream: Sequence[Connections], levels: Sequence[WindowLevel]) -> Found:
    """Use an independent window query per level; each reads all connections."""
    chains: list[Chain[Any]] = [Chain([level], 0) for level in levels]
    windows: dict[tuple[int, int], Any] = {}
    most = 0

    def step(unit: int) -> None:
        nonlocal most
        for number, chain in enumerate(chains):
            reports = [*chain.receive(unit, of.granule(unit, stream[unit])), *chain.advance(unit + 1)]
            windows.update({(number, report.end): report.window for report in reports if report.window})
        most = max(most, sum(chain.granules for chain in chains))

    unit_ms = _timed(step, len(stream), levels)
    state = most * of.words * WORD * _items(of, stream) / 1024
    return Found(unit_ms, state, of.combined(windows, levels))


def from_tuples(of: Operation[Any], stream: Sequence[Connections], levels: Sequence[WindowLevel]) -> Found:
    """Store connections for the widest window, and compute each report from them."""
    answers: dict[tuple[int, int], Any] = {}

    def step(unit: int) -> None:
        for number, level in enumerate(levels):
            if (unit + 1) % level.slide == 0:
                answers[number, unit + 1] = of.from_tuples(stream, levels, number, unit + 1)

    unit_ms = _timed(step, len(stream), levels)
    widest = levels[-1].range
    stored = max(
        sum(len(some.duration) + len(some.protocol) for some in stream[max(unit - widest, 0) : unit])
        for unit in range(1, len(stream) + 1)
    )
    return Found(unit_ms, stored * WORD / 1024, answers)


def _timed(step: Callable[[int], None], units: int, levels: Sequence[WindowLevel]) -> float:
    """Return the CPU time per unit once the widest window is full, in milliseconds."""
    full = levels[-1].range
    for unit in range(full):
        step(unit)
    began = time.thread_time()
    for unit in range(full, units):
        step(unit)
    return (time.thread_time() - began) * 1000 / (units - full)


def _items(of: Operation[Any], stream: Sequence[Connections]) -> int:
    """Return the maximum number of items in a granule: 1 except for recurrence."""
    return 1 if of.name != "recurrence" else 1 + max(int(some.protocol.max()) for some in stream)
