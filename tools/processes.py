"""Start servers on loopback, each in its own session, and end them with all their processes."""

import fcntl
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

PORTS = range(20_000, 32_768)
"""The ports to choose from: below those that systems give to connections."""


class ServerError(RuntimeError):
    """A server does not start, or does not respond as expected. The message is one line."""


def taken(port: int) -> bool:
    """Return whether a process listens on a loopback port."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def free_port() -> int:
    """Return a free loopback port that no other process gets unless it names it.

    A server may take half a minute until it binds the port. Meanwhile the system gives the ports above
    `PORTS` to connections, and to servers that name none.

    Raises:
        ServerError: there is none.
    """
    for port in random.sample(PORTS, len(PORTS)):
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise ServerError(f"all ports from {PORTS[0]} to {PORTS[-1]} are in use")


@contextmanager
def alone(folder: Path, what: str) -> Iterator[IO[str]]:
    """Lock a folder against other servers of the same kind.

    The lock is a file next to the folder. Child processes that inherit it keep the folder locked.

    Args:
        what: the kind of server, for the message.

    Raises:
        ServerError: another process has the lock.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_name(f"{folder.name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ServerError(f"another {what} runs in {folder}; end it first") from None
        yield lock


def end(processes: "Sequence[subprocess.Popen[bytes]]") -> None:
    """End all processes of the sessions that some processes lead: SIGTERM, then SIGKILL."""
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
    """Return all living processes of some sessions: components create further process groups."""
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
    """Run a tool; on Ctrl-C or SIGTERM, end it with all processes that it started."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        main()
    except KeyboardInterrupt:
        print(f"{name}: ended, with every process that it started")
    except ServerError as error:
        sys.exit(f"{name}: {error}")
