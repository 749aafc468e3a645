"""The parent of Spark's Python workers: what its children inherit."""

import subprocess
import sys

ARRAYS = """
import resource
import numpy as np

def make():
    return [np.ones(2**20) for _ in range(8)]

def page_faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

for _ in range(2):
    make()
before = page_faults()
for _ in range(10):
    make()
print(page_faults() - before)
"""


def child(program: str, *environment: str) -> str:
    """Return the output of a program with the settings of a worker."""
    command = ["env", *environment, sys.executable, "-c", f"import transom.app.worker_daemon\n{program}"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_workers_are_in_utc() -> None:
    """They inherit the time zone of their parent, which is that of the machine."""
    assert child("import time; print(*time.tzname)", "TZ=Asia/Kolkata") == "UTC UTC\n"


def test_workers_keep_freed_memory() -> None:
    """Arrays of 64 MiB in total: mapped again each time, they would fault 16,384 pages of 4 KiB."""
    assert int(child(ARRAYS)) < 16_384
