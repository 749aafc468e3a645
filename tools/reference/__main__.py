"""`make reference`: the lakes of an earlier commit beside those of this checkout, row by row.

Usage: python -m reference [COMMIT]
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from reference.compare import compared

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".transom" / "reference"
BEFORE = "ac1667a961eebd1bbf089a49dc0f603cbe79beb0"
"""The last commit before anything was moved."""


def main(commit: str = BEFORE) -> None:
    """Makes the lakes that are not there, and compares."""
    old = FOLDER / "code"
    if not (FOLDER / "old" / "done").exists():
        shutil.rmtree(FOLDER, ignore_errors=True)
        FOLDER.mkdir(parents=True)
        archive = subprocess.run(["git", "archive", commit], cwd=ROOT, check=True, capture_output=True).stdout
        old.mkdir()
        subprocess.run(["tar", "x"], cwd=old, input=archive, check=True)
        _make(old, FOLDER / "old")
    _make(ROOT, FOLDER / "new")
    lines, equal = compared(FOLDER / "old", FOLDER / "new")
    print("\n".join([*lines, f"reference: {equal} tables equal, {len(lines)} lines of differences"]))
    sys.exit(bool(lines))


def _make(code: Path, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    places = {
        "PYTHONPATH": os.pathsep.join(map(str, (code / "jobs", ROOT / "tools"))),
        "TRANSOM_HOME": str(code),
    }
    # What a checkout carries: descriptions of tables, presets, examples.
    kept = {
        name: value for name, value in os.environ.items() if name not in ("TRANSOM_LAKE", "TRANSOM_STREAMS")
    }
    script = Path(__file__).with_name("make.py")
    properties = os.environ["TRANSOM_SPARK_PROPERTIES"]
    command = ["spark-submit", "--properties-file", properties, "--driver-memory", "3g", script, code, folder]
    with (folder / "log").open("w") as log:
        subprocess.run([*map(str, command)], env={**kept, **places}, check=True, stdout=log, stderr=log)
    (folder / "done").touch()


if __name__ == "__main__":
    main(*sys.argv[1:])
