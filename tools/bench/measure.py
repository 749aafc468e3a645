"""Run a command in its own process; measure its time, and memory and CPU time with its children."""

import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

MIB = 2**20
EVERY = 0.25
"""Seconds between two samples of the processes."""
MEMORY_EVERY = 4
"""The number of samples from one that reads memory to the next: Java waits while its pages are counted."""
LONG = 120
"""Seconds after which a pass is not repeated in its process."""


class Failed(RuntimeError):
    """A measured command fails; the message names its log."""


@dataclass(frozen=True)
class Measured:
    """The cost of a command.

    Attributes:
        seconds: the time from start to end, in seconds.
        cpu_s: the CPU time of all its processes, with Java and Python workers, in seconds.
        peak_mib: the maximum total memory of the processes in one sample, in MiB; shared pages count once.
        said: the time from start until the expected text is in its output, in seconds; None without a text.
    """

    seconds: float
    cpu_s: float
    peak_mib: int
    said: float | None = None


class Watch:
    """Sample processes and their descendants periodically, in a thread.

    Attributes:
        peak: the maximum total memory in one sample, in bytes; a page that n processes share counts 1/n for
            each.
    """

    def __init__(self, leaders: Callable[[], Iterable[int]]) -> None:
        self._leaders = leaders
        self._computed: dict[tuple[int, float], float] = {}
        self._before, self._looks = 0.0, 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look_on, daemon=True)
        self.peak = 0

    def __enter__(self) -> "Watch":
        self.look()
        self._before = sum(self._computed.values())
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()

    @property
    def cpu_s(self) -> float:
        """The CPU time of all processes since the first sample, in seconds."""
        return sum(self._computed.values()) - self._before

    def look(self) -> None:
        """Sample the processes: their CPU time, and every `MEMORY_EVERY` times their memory."""
        memory, is_read = 0, self._looks % MEMORY_EVERY == 0
        self._looks += 1
        for process in (process for leader in self._leaders() for process in family(leader)):
            try:
                spent = process.cpu_times()
                self._computed[process.pid, process.create_time()] = spent.user + spent.system
                if is_read:
                    memory += process.memory_full_info().pss
            except (psutil.NoSuchProcess, psutil.ZombieProcess, psutil.AccessDenied):
                continue
        self.peak = max(self.peak, memory)

    def _look_on(self) -> None:
        while not self._over.wait(EVERY):
            self.look()


def run(
    command: Sequence[object],
    log: Path,
    environment: Mapping[str, str] | None = None,
    says: str = "",
    watching: Callable[[Callable[[], Iterable[int]]], Watch] = Watch,
) -> Measured:
    """Run a command to its end.

    Args:
        says: a text of the output whose time to measure; empty means none.
        watching: returns what samples the processes, which it calls a function for.

    Raises:
        Failed: the command fails, or never prints the text.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    said_at = None
    with log.open("w") as output:
        began = time.monotonic()
        process = subprocess.Popen(
            [str(part) for part in command], env={**os.environ, **(environment or {})},
            stdout=output, stderr=output,
        )  # fmt: skip
        try:
            with watching(lambda: [process.pid]) as watch:
                while said_at is None and says and process.poll() is None:
                    time.sleep(EVERY)
                    if says in log.read_text(errors="replace"):
                        said_at = round(time.monotonic() - began, 2)
                process.wait()
                seconds = time.monotonic() - began
                if said_at is None and says and says in log.read_text(errors="replace"):
                    said_at = round(seconds, 2)
        finally:
            _end(process.pid)
    if process.returncode or (says and said_at is None):
        lines = log.read_text(errors="replace").strip().splitlines() or ["no output"]
        raise Failed(f"{command[0]} ended with {process.returncode}: {lines[-1]} (see {log})")
    return Measured(round(seconds, 2), round(watch.cpu_s, 1), watch.peak // MIB, said_at)


def family(pid: int) -> list[psutil.Process]:
    """Return a process and its descendants; none if it has ended."""
    try:
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def _end(pid: int) -> None:
    """End the process and its descendants, as the benchmark may be interrupted."""
    for process in family(pid):
        try:
            process.kill()
        except psutil.NoSuchProcess:
            continue


def spark_submit(
    *arguments: object, memory: str = "2g", partitions: int | None = None, full_compiler: bool = True
) -> list[object]:
    """Return a spark-submit command with the settings of set-up.

    Args:
        memory: the maximum heap memory of Java.
        partitions: the maximum number of partitions of a shuffle. Default: as in the settings of set-up.
        full_compiler: use Java's full compiler, which long computations in Java need. The settings of set-up
            do without it.
    """
    properties = Path(os.environ["TRANSOM_SPARK_PROPERTIES"])
    options = properties.read_text().partition("extraJavaOptions ")[2].splitlines()[0]
    if full_compiler:
        options = options.replace("-XX:TieredStopAtLevel=1 ", "")
    settings = ["--driver-java-options", options, "--driver-memory", memory]
    if partitions is not None:
        settings += ["--conf", f"spark.sql.shuffle.partitions={partitions}"]
    return ["spark-submit", "--properties-file", properties, *settings, *arguments]


def machine() -> str:
    """Describe the machine by cores and memory, without its name."""
    memory = psutil.virtual_memory().total / 2**30
    return f"{os.cpu_count()} cores, {memory:.0f} GiB of memory"
