"""Servers on loopback, each in a session of its own, ended with every process that it started."""

import fcntl
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO


class ServerError(RuntimeError):
    """A server could not be started or asked; the text is one line for a person."""


def taken(port: int) -> bool:
    """Whether somebody listens on a port of the loopback address."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def free_port() -> int:
    """A port of the loopback address that nobody uses."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def alone(folder: Path, what: str) -> Iterator[IO[str]]:
    """Holds a folder against every other server of a kind. What inherits the lock, which lies beside the
    folder, holds it as well.

    Args:
        what: it is that runs there, for a person.

    Raises:
        ServerError: it is held.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_name(f"{folder.name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ServerError(f"another {what} runs in {folder}; end it first") from None
        yield lock


def end(processes: "Sequence[subprocess.Popen[bytes]]") -> None:
    """Ends every process of the session of each, which it leads."""
    leaders = {process.pid for process in processes}
    for sign in (signal.SIGTERM, signal.SIGKILL):
        for member in members(leaders):
            try:
                os.kill(member, sign)
            except ProcessLookupError:
                continue
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline and members(leaders):
            for process in processes:
                process.poll()
            time.sleep(0.2)
    for process in processes:
        process.wait()


def members(leaders: Collection[int]) -> list[int]:
    """Every living process of some sessions; components make process groups of their own."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[3]) in leaders and fields[0] != "Z":
                found.append(int(entry.name))
    return found


def until_interrupted(name: str, main: Callable[[], None]) -> None:
    """Runs a tool that Ctrl-C or an end from outside ends well, with all that it has started."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        main()
    except KeyboardInterrupt:
        print(f"{name}: ended, with every process that it started")
    except ServerError as error:
        sys.exit(f"{name}: {error}")
