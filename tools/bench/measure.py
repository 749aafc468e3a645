"""A command in a process of its own: how long it takes, and what it and its children hold and compute."""

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
"""Seconds between two looks at the processes."""
LONG = 120
"""Seconds after which a pass is not repeated in its process."""


class Failed(RuntimeError):
    """What was to be measured did not work; the text names its log."""


@dataclass(frozen=True)
class Measured:
    """What a command took.

    Attributes:
        seconds: from its start to its end.
        cpu_s: seconds that its processes computed, Java's and Python's workers' among them.
        peak_mib: the most that the processes held together at one look; what they share is counted once.
        said: seconds from its start to the look at which its output held what was waited for.
    """

    seconds: float
    cpu_s: float
    peak_mib: int
    said: float | None = None


class Watch:
    """Looks at processes and all below them, every now and then, in a thread of its own.

    Attributes:
        peak: the most memory that they held together at one look, in bytes; each page shared by n of them
            counts n-th.
    """

    def __init__(self, leaders: Callable[[], Iterable[int]]) -> None:
        self._leaders = leaders
        self._computed: dict[tuple[int, float], float] = {}
        self._before = 0.0
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
        """Seconds that all of them computed since the first look; of one that has ended, as far as it was
        seen."""
        return sum(self._computed.values()) - self._before

    def look(self) -> int:
        """The memory that they hold now, in bytes."""
        held = 0
        for process in (process for leader in self._leaders() for process in family(leader)):
            try:
                spent = process.cpu_times()
                self._computed[process.pid, process.create_time()] = spent.user + spent.system
                held += process.memory_full_info().pss
            except (psutil.NoSuchProcess, psutil.ZombieProcess, psutil.AccessDenied):
                continue
        self.peak = max(self.peak, held)
        return held

    def _look_on(self) -> None:
        while not self._over.wait(EVERY):
            self.look()


def run(
    command: Sequence[object], log: Path, environment: Mapping[str, str] | None = None, says: str = ""
) -> Measured:
    """Runs a command to its end.

    Args:
        says: a text of its output whose time is wanted.

    Raises:
        Failed: it ended with an error, or never said it.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    said = None
    with log.open("w") as output:
        began = time.monotonic()
        process = subprocess.Popen(
            [str(part) for part in command], env={**os.environ, **(environment or {})},
            stdout=output, stderr=output,
        )  # fmt: skip
        try:
            with Watch(lambda: [process.pid]) as watch:
                while said is None and says and process.poll() is None:
                    time.sleep(EVERY)
                    if says in log.read_text(errors="replace"):
                        said = round(time.monotonic() - began, 2)
                process.wait()
                seconds = time.monotonic() - began
                if said is None and says and says in log.read_text(errors="replace"):
                    said = round(seconds, 2)
        finally:
            _end(process.pid)
    if process.returncode or (says and said is None):
        lines = log.read_text(errors="replace").strip().splitlines() or ["no output"]
        raise Failed(f"{command[0]} ended with {process.returncode}: {lines[-1]} (see {log})")
    return Measured(round(seconds, 2), round(watch.cpu_s, 1), watch.peak // MIB, said)


def family(pid: int) -> list[psutil.Process]:
    """A process and all below it; none where it has ended."""
    try:
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def _end(pid: int) -> None:
    """Ends what was started, where the benchmark itself is interrupted."""
    for process in family(pid):
        try:
            process.kill()
        except psutil.NoSuchProcess:
            continue


def spark_submit(*arguments: object, memory: str = "2g", partitions: int | None = None) -> list[object]:
    """A spark-submit with the settings of set-up, but for Java's full compiler, as long runs want it.

    Args:
        partitions: into how many a shuffle cuts, at most; as set-up has it where nothing is said.
    """
    properties = Path(os.environ["TRANSOM_SPARK_PROPERTIES"])
    options = properties.read_text().partition("extraJavaOptions ")[2].splitlines()[0]
    options = options.replace("-XX:TieredStopAtLevel=1 ", "")
    settings = ["--driver-java-options", options, "--driver-memory", memory]
    if partitions is not None:
        settings += ["--conf", f"spark.sql.shuffle.partitions={partitions}"]
    return ["spark-submit", "--properties-file", properties, *settings, *arguments]


def machine() -> str:
    """The machine by what matters here, and by nothing that names it."""
    memory = psutil.virtual_memory().total / 2**30
    return f"{os.cpu_count()} cores, {memory:.0f} GiB of memory"
