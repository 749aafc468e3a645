"""Run a service's command, and kill it if it hangs: watch.py INTERVAL RETRIES URL COMMAND [ARGUMENT...].

The health URL is read every INTERVAL seconds. After RETRIES failures without a success between them, the
command is killed with its process group, and the exit code is 1. A failure is an error, or no answer in 10 s.

An engine starts an ended service again, but not an unhealthy one: Airflow's scheduler can wait forever for
its own processes after it loses its database (https://github.com/apache/airflow/issues/67870).
"""

import os
import signal
import subprocess
import sys
from http.client import HTTPException
from urllib.request import urlopen

TIMEOUT = 10.0


def is_healthy(url: str) -> bool:
    """Return whether a URL answers in time and without an error."""
    try:
        with urlopen(url, timeout=TIMEOUT):
            return True
    except (OSError, HTTPException):
        return False


def main() -> int:
    """Run the command and return the exit code."""
    interval, retries, url, *command = sys.argv[1:]
    process = subprocess.Popen(command, start_new_session=True)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda received, _: process.send_signal(received))
    failures = 0
    while failures < int(retries):
        try:
            code = process.wait(float(interval))
        except subprocess.TimeoutExpired:
            failures = 0 if is_healthy(url) else failures + 1
        else:
            return code if code >= 0 else 128 - code
    print(f"{url} failed {retries} times: {' '.join(command)} is killed", file=sys.stderr, flush=True)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return 1


if __name__ == "__main__":
    sys.exit(main())
