"""`docker/watch.py` runs real processes that hang, end or recover."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from processes import free_port

WATCH = Path(__file__).resolve().parents[2] / "docker" / "watch.py"
SERVICE = Path(__file__).with_name("unhealthy_service.py")
LIMIT = 2.0
LONGEST = 30.0


def is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LONGEST
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


class Watched:
    """A service under `watch.py`, healthy while the file `healthy` exists."""

    def __init__(self, folder: Path) -> None:
        port = free_port()
        self.healthy = folder / "healthy"
        self.healthy.touch()
        ids = folder / "ids"
        watch = [sys.executable, WATCH, str(LIMIT), f"http://127.0.0.1:{port}/"]
        self.watch = subprocess.Popen(
            [*watch, sys.executable, SERVICE, folder, str(port)], stderr=subprocess.PIPE, text=True
        )
        wait_for(ids.exists)
        self.command, self.child = map(int, ids.read_text().split())

    def ended(self) -> tuple[int, str]:
        _, printed = self.watch.communicate(timeout=LONGEST)
        return self.watch.returncode, printed


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    running = Watched(tmp_path)
    try:
        yield running
    finally:
        for process in (running.command, running.child):
            if is_running(process):
                os.kill(process, signal.SIGKILL)
        running.watch.kill()
        running.watch.communicate()


def test_unhealthy_service_is_killed_with_its_processes(watched: Watched) -> None:
    # It goes on and ignores SIGTERM, as a scheduler that waits for its own processes.
    watched.healthy.unlink()
    began = time.monotonic()
    code, printed = watched.ended()
    assert code == 1
    assert "was unhealthy for 2.0 s" in printed
    assert time.monotonic() - began > LIMIT / 2
    wait_for(lambda: not is_running(watched.command) and not is_running(watched.child))


def test_stopped_service_that_gives_no_answer_is_killed(watched: Watched) -> None:
    os.kill(watched.command, signal.SIGSTOP)
    assert watched.ended()[0] == 1
    wait_for(lambda: not is_running(watched.command) and not is_running(watched.child))


def test_service_that_recovers_is_left_alone(watched: Watched) -> None:
    # Unhealthy for longer than the limit in all, but not at once.
    for _ in range(4):
        watched.healthy.unlink()
        time.sleep(0.7)
        watched.healthy.touch()
        time.sleep(1.3)
    assert watched.watch.poll() is None
    assert is_running(watched.command)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_reaches_the_service(watched: Watched, tmp_path: Path, number: signal.Signals) -> None:
    watched.watch.send_signal(number)
    wait_for((tmp_path / number.name).exists)
    assert watched.watch.poll() is None


@pytest.mark.parametrize(("command", "code"), [("exit 0", 0), ("exit 7", 7), ("kill -KILL $$", 137)])
def test_exit_code_is_that_of_the_service(command: str, code: int) -> None:
    done = subprocess.run(
        [sys.executable, WATCH, "60", "http://127.0.0.1:1/", "sh", "-c", command],
        check=False,
        timeout=LONGEST,
    )
    assert done.returncode == code
