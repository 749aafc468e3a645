"""What Spark needs of the shell in which a command runs: looked for before the work begins."""

import os
import re
import shlex
import shutil
import subprocess
from itertools import pairwise
from pathlib import Path

from transom.app.command_lines import checkout
from transom.cli.arguments import UsageError

OLDEST = 17


def require_spark() -> None:
    """Looks for Spark's settings, for Java, and for the Python of its workers.

    Raises:
        Refusal: one of them is not there, or Java is too old.
    """
    words = _settings()
    _java()
    python = os.environ.get("PYSPARK_PYTHON")
    if python and shutil.which(python) is None:
        raise UsageError(f"PYSPARK_PYTHON: must be a Python that can be run; got {python}{_remedy()}")
    for option, file in pairwise(words):
        if option == "--properties-file" and not Path(file).is_file():
            raise UsageError(f"PYSPARK_SUBMIT_ARGS: there is no {file}{_remedy()}")


def _settings() -> list[str]:
    text = os.environ.get("PYSPARK_SUBMIT_ARGS")
    if text is None:
        raise UsageError(f"PYSPARK_SUBMIT_ARGS: must say Spark's settings; it is not set{_remedy()}")
    try:
        words = shlex.split(text)
    except ValueError:
        words = []
    if words[-1:] != ["pyspark-shell"]:
        raise UsageError(f"PYSPARK_SUBMIT_ARGS: must end with pyspark-shell; got {text!r}{_remedy()}")
    return words


def _java() -> None:
    named = os.environ.get("JAVA_HOME")
    place = f"JAVA_HOME: {named}/bin" if named else "PATH"
    java = shutil.which("java", path=f"{named}/bin" if named else None)
    if java is None:
        raise UsageError(f"{place}: must hold java, by which Spark runs; there is none{_remedy()}")
    try:
        command = [java, "-version"]
        shown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stderr
    except (OSError, subprocess.SubprocessError):
        raise UsageError(f"{place}: {java} does not run{_remedy()}") from None
    version = re.search(r'version "(?:1\.)?(\d+)', shown)
    if version is not None and int(version[1]) < OLDEST:
        raise UsageError(f"{place}: Spark needs Java {OLDEST} or 21; {java} is {version[1]}{_remedy()}")


def _remedy() -> str:
    return (
        f". `make setup` in {checkout()} brings what is missing, and `. {checkout()}/.transom/env` names it"
    )
