"""Checks of the environment that Spark needs, before the work begins."""

import os
import re
import shlex
import shutil
import subprocess
from itertools import pairwise
from pathlib import Path

from transom.cli.arguments import UsageError
from transom.core.locations import runtime, spark_server

MIN_JAVA = 17


def require_spark() -> None:
    """Check Spark's settings, Java, and the Python of the workers; nothing if a server has them.

    Raises:
        UsageError: one of them is missing, or Java is too old.
    """
    if spark_server():
        return
    remedy = f". `transom setup` brings what is missing into {runtime()}, and `. {runtime()}/env` names it"
    text = os.environ.get("PYSPARK_SUBMIT_ARGS")
    if text is None:
        raise UsageError(f"PYSPARK_SUBMIT_ARGS: must hold Spark's settings; it is not set{remedy}")
    try:
        words = shlex.split(text)
    except ValueError:
        words = []
    if words[-1:] != ["pyspark-shell"]:
        raise UsageError(f"PYSPARK_SUBMIT_ARGS: must end with pyspark-shell; got {text!r}{remedy}")
    _require_java(remedy)
    python = os.environ.get("PYSPARK_PYTHON")
    if python and shutil.which(python) is None:
        raise UsageError(f"PYSPARK_PYTHON: must be a Python that can be run; got {python}{remedy}")
    for option, file in pairwise(words):
        if option == "--properties-file" and not Path(file).is_file():
            raise UsageError(f"PYSPARK_SUBMIT_ARGS: there is no {file}{remedy}")


def _require_java(remedy: str) -> None:
    home = os.environ.get("JAVA_HOME")
    place = f"JAVA_HOME: {home}/bin" if home else "PATH"
    java = shutil.which("java", path=f"{home}/bin" if home else None)
    if java is None:
        raise UsageError(f"{place}: must hold java, by which Spark runs; there is none{remedy}")
    try:
        command = [java, "-version"]
        output = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stderr
    except (OSError, subprocess.SubprocessError):
        raise UsageError(f"{place}: {java} does not run{remedy}") from None
    version = re.search(r'version "(?:1\.)?(\d+)', output)
    if version is not None and int(version[1]) < MIN_JAVA:
        raise UsageError(f"{place}: Spark needs Java {MIN_JAVA} or 21; {java} is {version[1]}{remedy}")
