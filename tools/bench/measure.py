"""A command in a process of its own: how long it takes, and how much memory it and its children hold."""

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

MIB = 2**20
EVERY = 0.5
"""Seconds between two looks at the memory."""


class Failed(RuntimeError):
    """What was to be measured did not work; the text names its log."""


@dataclass(frozen=True)
class Measured:
    """What a command took.

    Attributes:
        seconds: from its start to its end.
        peak_mib: the most that the processes held together at one look; what they share is counted once.
    """

    seconds: float
    peak_mib: int


def run(command: Sequence[object], log: Path, environment: Mapping[str, str] | None = None) -> Measured:
    """Runs a command to its end.

    Raises:
        Failed: it ended with an error.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w") as output:
        began = time.monotonic()
        process = subprocess.Popen(
            [str(part) for part in command], env={**os.environ, **(environment or {})},
            stdout=output, stderr=output,
        )  # fmt: skip
        peak = 0
        try:
            while True:
                try:
                    process.wait(EVERY)
                    break
                except subprocess.TimeoutExpired:
                    peak = max(peak, _held(process.pid))
            seconds = time.monotonic() - began
        finally:
            _end(process.pid)
    if process.returncode:
        lines = log.read_text().strip().splitlines() or ["no output"]
        raise Failed(f"{command[0]} ended with {process.returncode}: {lines[-1]} (see {log})")
    return Measured(round(seconds, 2), peak // MIB)


def _family(pid: int) -> list[psutil.Process]:
    try:
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def _held(pid: int) -> int:
    """The memory of a process and all below it, in bytes; each page shared by n of them counts n-th."""
    held = 0
    for process in _family(pid):
        try:
            held += process.memory_full_info().pss
        except (psutil.NoSuchProcess, psutil.ZombieProcess, psutil.AccessDenied):
            continue
    return held


def _end(pid: int) -> None:
    """Ends what was started, where the benchmark itself is interrupted."""
    for process in _family(pid):
        try:
            process.kill()
        except psutil.NoSuchProcess:
            continue


def spark_submit(*arguments: object, memory: str = "2g") -> list[object]:
    """A spark-submit with the settings of set-up, but for Java's full compiler, as long runs want it."""
    properties = Path(os.environ["TRANSOM_SPARK_PROPERTIES"])
    options = properties.read_text().partition("extraJavaOptions ")[2].splitlines()[0]
    options = options.replace("-XX:TieredStopAtLevel=1 ", "")
    settings = ["--driver-java-options", options, "--driver-memory", memory]
    return ["spark-submit", "--properties-file", properties, *settings, *arguments]


def machine() -> str:
    """The machine by what matters here, and by nothing that names it."""
    memory = psutil.virtual_memory().total / 2**30
    return f"{os.cpu_count()} cores, {memory:.0f} GiB of memory"
