"""`docker/watch.py` watches a real process, which ignores every signal that can be ignored."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

WATCH = Path(__file__).resolve().parents[2] / "docker" / "watch.py"
RETRIES = 4
LONGEST = 60.0
SERVICE = """
import os, signal, subprocess, sys
from pathlib import Path

folder = Path(sys.argv[1])
for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, lambda received, _: (folder / signal.Signals(received).name).touch())
child = subprocess.Popen(["sleep", "600"], stderr=subprocess.DEVNULL)
(folder / "part").write_text(f"{os.getpid()} {child.pid}")
(folder / "part").rename(folder / "ids")
while True:
    signal.pause()
"""


class Health(ThreadingHTTPServer):
    """A health URL.

    Attributes:
        answers: status codes of the next answers; later ones repeat the last. 0 closes the connection.
        count: answers so far.
    """

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.answers = [200]
        self.count = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/"

    def next(self) -> int:
        self.count += 1
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


class Answer(BaseHTTPRequestHandler):
    server: Health

    def do_GET(self) -> None:
        if status := self.server.next():
            self.send_response(status)
            self.end_headers()

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture
def health() -> Iterator[Health]:
    with Health() as server:
        thread = threading.Thread(target=server.serve_forever, args=[0.05])
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LONGEST
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture
def watch(tmp_path: Path, health: Health) -> "Iterator[subprocess.Popen[str]]":
    command = [sys.executable, WATCH, "0.1", str(RETRIES), health.url]
    with subprocess.Popen(
        [*command, sys.executable, "-c", SERVICE, tmp_path], stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            wait_for((tmp_path / "ids").exists)
            yield process
        finally:
            process.kill()
            for left in ids(tmp_path):
                if is_running(left):
                    os.kill(left, signal.SIGKILL)


def ids(folder: Path) -> list[int]:
    file = folder / "ids"
    return [int(text) for text in file.read_text().split()] if file.exists() else []


@pytest.mark.parametrize("failure", [503, 0])
def test_hanging_service_is_killed_with_its_processes(
    tmp_path: Path, health: Health, watch: "subprocess.Popen[str]", failure: int
) -> None:
    health.answers = [200, failure]
    _, printed = watch.communicate(timeout=LONGEST)
    assert watch.returncode == 1
    assert f"{health.url} failed 4 times" in printed
    wait_for(lambda: not any(map(is_running, ids(tmp_path))))


def test_stopped_service_is_killed(tmp_path: Path, health: Health, watch: "subprocess.Popen[str]") -> None:
    os.kill(ids(tmp_path)[0], signal.SIGSTOP)
    health.answers = [503]
    assert watch.wait(LONGEST) == 1
    wait_for(lambda: not any(map(is_running, ids(tmp_path))))


def test_service_that_recovers_is_not_killed(
    tmp_path: Path, health: Health, watch: "subprocess.Popen[str]"
) -> None:
    answers = [*[503] * (RETRIES - 1), 200] * 3
    health.answers = list(answers)
    began = health.count
    wait_for(lambda: health.count > began + len(answers) + RETRIES)
    assert watch.poll() is None
    assert all(map(is_running, ids(tmp_path)))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_reaches_the_service(
    tmp_path: Path, watch: "subprocess.Popen[str]", number: signal.Signals
) -> None:
    watch.send_signal(number)
    wait_for((tmp_path / number.name).exists)
    assert watch.poll() is None


@pytest.mark.parametrize(("command", "code"), [("exit 0", 0), ("exit 7", 7), ("kill -KILL $$", 137)])
def test_exit_code_is_that_of_the_service(command: str, code: int) -> None:
    watch = [sys.executable, WATCH, "60", "1", "http://127.0.0.1:1/", "sh", "-c", command]
    assert subprocess.run(watch, check=False, timeout=LONGEST).returncode == code
