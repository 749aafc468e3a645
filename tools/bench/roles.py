"""Memory and CPU time of a Spark application over time, for the driver, Java and Python workers."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import psutil

from bench.measure import MIB, Watch, family

DRIVER, JAVA, WORKERS = ROLES = ("driver", "java", "workers")


@dataclass(frozen=True)
class Sample:
    """The processes at one moment.

    Attributes:
        moment: the Unix time, in seconds.
        memory: bytes by role; a page that n processes share counts 1/n for each.
        cpu_s: the CPU time since the start by role, in seconds.
    """

    moment: float
    memory: dict[str, int]
    cpu_s: dict[str, float]


@dataclass(frozen=True)
class Cost:
    """The cost of a part of a run by role: CPU time in seconds, and the maximum memory in MiB."""

    cpu_s: dict[str, float]
    peak_mib: dict[str, int]


class RoleWatch(Watch):
    """Sample processes by role.

    Args:
        samples: the list to which samples are appended.
    """

    def __init__(self, samples: list[Sample], leaders: Callable[[], Iterable[int]]) -> None:
        super().__init__(leaders)
        self._samples = samples
        self._spent: dict[tuple[int, float, str], float] = {}

    def look(self) -> None:
        """Sample the processes, each time with their memory."""
        memory = dict.fromkeys(ROLES, 0)
        for process in (process for leader in self._leaders() for process in family(leader)):
            try:
                role, spent = role_of(process.cmdline()), process.cpu_times()
                # A process can change its role: the script spark-submit becomes Java.
                self._computed[process.pid, process.create_time()] = spent.user + spent.system
                self._spent[process.pid, process.create_time(), role] = spent.user + spent.system
                memory[role] += process.memory_full_info().pss
            except (psutil.NoSuchProcess, psutil.ZombieProcess, psutil.AccessDenied):
                continue
        cpu_s = dict.fromkeys(ROLES, 0.0)
        for (_, _, role), seconds in self._spent.items():
            cpu_s[role] += seconds
        self._samples.append(Sample(time.time(), memory, cpu_s))
        self.peak = max(self.peak, sum(memory.values()))


def role_of(command: Sequence[str]) -> str:
    """Return the role of a process of a Spark application by its command line."""
    if command and command[0].rpartition("/")[2] == "java":
        return JAVA
    return WORKERS if any(part.startswith("pyspark.") for part in command) else DRIVER


def cost(samples: Sequence[Sample], began: float, ended: float) -> Cost:
    """Return the cost between two moments; the CPU time is that between the samples next to these."""
    before = _last(samples, began)
    after = _last(samples, ended)
    within = [sample for sample in samples if began <= sample.moment <= ended] or [after]
    return Cost(
        {role: round(after.cpu_s[role] - before.cpu_s[role], 1) for role in ROLES},
        {role: max(sample.memory[role] for sample in within) // MIB for role in ROLES},
    )


def _last(samples: Sequence[Sample], moment: float) -> Sample:
    """Return the last sample until a moment; the first one if there is none."""
    until: Iterator[Sample] = (sample for sample in reversed(samples) if sample.moment <= moment)
    return next(until, samples[0])
