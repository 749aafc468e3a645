"""Run a service's command, and end when it ends or hangs: watch.py SECONDS URL COMMAND [ARGUMENT...].

The command hangs if its health URL gives no answer, or an error, for SECONDS. It is then killed, with its
process group, and the exit code is 1. An engine starts an ended service again, but not an unhealthy one:
Airflow's scheduler can wait forever for its own processes after it loses its database
(https://github.com/apache/airflow/issues/67870).
"""

import os
import signal
import subprocess
import sys
import time
from http.client import HTTPException
from urllib.request import urlopen

PAUSE = 15.0
"""Seconds between two checks, at most."""
ANSWER = 10.0
"""Seconds that an answer may take, at most."""


def is_healthy(url: str, seconds: float) -> bool:
    """Return whether a URL answers in time and without an error."""
    try:
        with urlopen(url, timeout=seconds):
            return True
    except (OSError, HTTPException):
        return False


def main() -> int:
    """Run the command and return the exit code."""
    limit, url, *command = sys.argv[1:]
    seconds = float(limit)
    process = subprocess.Popen(command, start_new_session=True)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda received, _: process.send_signal(received))
    healthy = time.monotonic()
    while True:
        try:
            code = process.wait(min(PAUSE, seconds / 4))
        except subprocess.TimeoutExpired:
            pass
        else:
            return code if code >= 0 else 128 - code
        if is_healthy(url, min(ANSWER, seconds / 2)):
            healthy = time.monotonic()
        elif time.monotonic() - healthy > seconds:
            message = f"{url} was unhealthy for {limit} s: {' '.join(command)} is killed"
            print(message, file=sys.stderr, flush=True)
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return 1


if __name__ == "__main__":
    sys.exit(main())
