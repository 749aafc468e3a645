"""Programs of transom collect cycles rarely, and not at their end; the library changes nothing."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("program", "is_relaxed"),
    [("from transom.core.collector import relax; relax()", True), ("import transom.app.main", False)],
)
def test_end_of_a_program_examines_no_objects(program: str, is_relaxed: bool) -> None:
    shown = (
        "import atexit, gc\n"
        "threshold, tracked = gc.get_threshold()[0], len(gc.get_objects())\n"
        "atexit._run_exitfuncs()\n"
        "print(threshold > 10_000, gc.get_freeze_count() >= tracked)\n"
    )
    command = [sys.executable, "-c", f"{program}\n{shown}"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert done.stdout == f"{is_relaxed} {is_relaxed}\n"
