"""Delta's jars: five are enough beside Spark's own, resolved once and held to committed checksums.

Ivy comes with Spark and knows where the artifacts are; an Ivy setting of the user's own is honoured.
"""

import hashlib
import shutil
import subprocess
from pathlib import Path

from java import SetupError

ORGANISATION = "io.delta"


def listed(checksums: Path) -> dict[str, str]:
    """The SHA-256 of each jar, by file name."""
    lines = checksums.read_text().splitlines()
    return {name: digest for digest, name in (line.split() for line in lines if line)}


def wrong(folder: Path, checksums: dict[str, str]) -> list[str]:
    """What is missing from a folder or differs from its checksum, in words."""
    problems = []
    for name, expected in checksums.items():
        jar = folder / name
        if not jar.is_file():
            problems.append(f"{name} is missing")
        elif (seen := hashlib.sha256(jar.read_bytes()).hexdigest()) != expected:
            problems.append(f"{name} has SHA-256 {seen}, expected {expected}")
    return problems


def fetch(folder: Path, checksums: dict[str, str], java: Path, ivy: Path) -> None:
    """Brings the jars into a folder.

    Raises:
        SetupError: they cannot be had, or differ from their checksums.
    """
    if not wrong(folder, checksums):
        return
    unfinished = folder.with_name(folder.name + ".part")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    wanted = unfinished / "ivy.xml"
    dependencies = "".join(
        f'<dependency org="{ORGANISATION}" name="{artifact}" rev="{revision}" transitive="false"'
        ' conf="default->master"/>'
        for artifact, _, revision in (name.removesuffix(".jar").rpartition("-") for name in checksums)
    )
    wanted.write_text(
        '<ivy-module version="2.0"><info organisation="transom" module="transom"/>'
        f"<dependencies>{dependencies}</dependencies></ivy-module>"
    )
    pattern = f"{unfinished}/[artifact]-[revision].[ext]"
    command: list[str | Path] = [
        java / "bin" / "java",
        "-cp",
        ivy,
        "org.apache.ivy.Main",
        "-ivy",
        wanted,
        "-types",
        "jar",
    ]
    command += ["-cache", unfinished / "cache", "-retrieve", pattern]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    (folder.parent / "jars.log").write_text(done.stdout + done.stderr)
    problems = wrong(unfinished, checksums)
    if problems:
        raise SetupError(f"Delta's jars: {'; '.join(problems)}; see {folder.parent / 'jars.log'}")
    shutil.rmtree(unfinished / "cache", ignore_errors=True)
    shutil.rmtree(folder, ignore_errors=True)
    unfinished.rename(folder)
