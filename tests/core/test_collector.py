"""Cycles are collected rarely, and not at the end of a process."""

import subprocess
import sys


def test_end_of_a_process_examines_no_objects() -> None:
    program = (
        "import atexit, gc\n"
        "import transom.app\n"
        "threshold = gc.get_threshold()[0]\n"
        "tracked = len(gc.get_objects())\n"
        "atexit._run_exitfuncs()\n"
        "print(threshold > 10_000, gc.get_freeze_count() >= tracked, len(gc.get_objects()) < 100)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout == "True True True\n"
