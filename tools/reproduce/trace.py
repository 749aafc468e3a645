"""Generate a trace of system calls, one per unit of time, with episodes that indicate a remote shell.

    accept fd=x => y; dup fd=y => 0, dup fd=y => 1, dup fd=y => 2 in any order; execve exe=z

Between the calls of an episode, the machine makes other calls: it also accepts, duplicates and executes, but
never like an episode. The parser of the format `syscalls` reads the lines.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from transom.core.exact_sums import Int64s
from transom.features.patterns.algorithm.pattern import NULL
from transom.formats.pairs import Syscalls
from transom.formats.record_format import CALL, RETURN, EventTime, Field, RecordFormat, TimeByLineNumber
from transom.formats.rejections import Rejections

SEED = 17
# Other calls of the machine, with their shares. None of its dups returns 0.
DOES = {
    "read fd={fd} count=4096 => {size}": 0.27,
    "write fd={fd} count={size} => {size}": 0.2,
    "poll nfds={few} timeout=100 => {few}": 0.12,
    "futex op=FUTEX_WAKE => 1": 0.12,
    "close fd={fd} => 0": 0.07,
    "stat path=/etc/hosts => 0": 0.07,
    "open path=/var/log/messages flags=O_APPEND => {fd}": 0.06,
    "mmap length={size} prot=PROT_READ => 0x7f{size}": 0.055,
    "accept fd=3 => {fd}": 0.015,
    "dup fd={fd} => {to}": 0.01,
    "dup fd={fd} => {few}": 0.006,
    "execve exe=/usr/bin/logrotate": 0.004,
}
EXECUTES = 11
"""The index of `execve` in `DOES`."""
OWN = 64
"""The first descriptor of episodes, one each; other calls use lower ones."""
ACCEPT, IN, OUT, ERR, EXECUTE = range(5)
"""Bit numbers of the steps of an episode."""


@dataclass(frozen=True)
class Episode:
    """The times of the first and the last call of an episode, in units."""

    first: int
    last: int


def drawn(durations: Sequence[int]) -> tuple[list[str], list[Episode]]:
    """Generate the lines of a trace and its consecutive episodes: the same for the same durations.

    Args:
        durations: the time from the first to the last call of each episode, in units; at least 4.
    """
    rng = np.random.default_rng([SEED, len(durations)])
    episodes, at = [], 0
    for duration in durations:
        # An episode may begin anywhere in a batch of its own length.
        first = at + int(rng.integers(4, 4 + 2 * duration))
        episodes.append(Episode(first, first + duration))
        at = first + duration + 1
    units = at + max(durations)
    does = rng.choice(len(DOES), units, p=list(DOES.values()))
    for one in episodes:
        last_dup = _times(one)[3]
        does[last_dup : one.last] = np.where(
            does[last_dup : one.last] == EXECUTES, 0, does[last_dup : one.last]
        )
    columns = {
        "fd": rng.integers(4, OWN, units),
        "to": rng.integers(4, OWN, units),
        "size": rng.integers(100, 4000, units),
        "few": rng.integers(1, 3, units),
    }
    forms = [*DOES]
    values = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    lines = [forms[number].format(**of) for number, of in zip(does.tolist(), values, strict=True)]
    for number, one in enumerate(episodes):
        own = OWN + number
        dups = [f"dup fd={own} => {to}" for to in rng.permutation(3)]
        calls = [f"accept fd=3 => {own}", *dups, "execve exe=/bin/sh"]
        for unit, call in zip(_times(one), calls, strict=True):
            lines[unit] = call
    return lines, episodes


def _times(of: Episode) -> list[int]:
    """Return the times of the five calls, with equal delays."""
    return [of.first + (of.last - of.first) * number // 4 for number in range(5)]


@dataclass(frozen=True)
class Calls:
    """Calls in order.

    Attributes:
        time: the time of each call, in units.
        bits: a mask of the steps that each call matches.
        fd: the code of each descriptor; equal for equal values.
        returned: the code of each returned value; equal for equal values.
    """

    time: Int64s
    bits: Int64s
    fd: Int64s
    returned: Int64s

    def taken(self, rows: npt.NDArray[np.generic]) -> "Calls":
        """Return the selected calls."""
        return Calls(self.time[rows], self.bits[rows], self.fd[rows], self.returned[rows])


def parsed(lines: Sequence[str]) -> Calls:
    """Parse lines as calls, the first at time 0.

    Raises:
        ValueError: a line is not a call.
    """
    columns = tuple(Field(name, (name,)) for name in (CALL, "fd", RETURN))
    parser = Syscalls(RecordFormat("syscalls", columns, EventTime((), by_lines=TimeByLineNumber(1, 0))))
    refused = Rejections.none(len(lines))
    fields = parser.parse(pa.array(lines), refused).fields
    if refused.any.any():
        raise ValueError(f"line {int(np.argmax(refused.any)) + 1} is no call")
    values = pa.concat_arrays([fields["fd"], fields[RETURN]]).dictionary_encode().indices
    codes = values.fill_null(NULL).to_numpy().astype(np.int64)
    call, returned = (fields[name].to_numpy(zero_copy_only=False) for name in (CALL, RETURN))
    bits = ((call == "accept") << ACCEPT) | ((call == "execve") << EXECUTE)
    for bit, value in ((IN, "0"), (OUT, "1"), (ERR, "2")):
        bits |= ((call == "dup") & (returned == value)) << bit
    time = np.arange(len(lines), dtype=np.int64)
    return Calls(time, bits.astype(np.int64), codes[: len(lines)], codes[len(lines) :])
