"""Install Delta's jars, five in addition to Spark's own, and compare them with committed checksums.

Ivy, which is part of Spark, finds the artifacts. TRANSOM_IVY_SETTINGS names a settings file, such as for a
mirror. Default: Ivy's usual file.
"""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from transom.installation import trust
from transom.installation.java import SetupError

ORGANISATION = "io.delta"


def listed(checksums: Path) -> dict[str, str]:
    """Return the SHA-256 of each jar, by file name."""
    lines = checksums.read_text().splitlines()
    return {name: digest for digest, name in (line.split() for line in lines if line)}


def wrong(folder: Path, checksums: dict[str, str]) -> list[str]:
    """Return which jars of a folder are missing or differ from their checksums, as texts."""
    problems = []
    for name, expected in checksums.items():
        jar = folder / name
        if not jar.is_file():
            problems.append(f"{name} is missing")
        elif (seen := hashlib.sha256(jar.read_bytes()).hexdigest()) != expected:
            problems.append(f"{name} has SHA-256 {seen}, expected {expected}")
    return problems


def module(checksums: dict[str, str]) -> str:
    """Return the Ivy module that depends on the jars, but not on their dependencies."""
    dependencies = "".join(
        f'<dependency org="{ORGANISATION}" name="{artifact}" rev="{revision}" transitive="false"'
        ' conf="default->master"/>'
        for artifact, _, revision in (name.removesuffix(".jar").rpartition("-") for name in checksums)
    )
    return (
        '<ivy-module version="2.0"><info organisation="transom" module="transom"/>'
        f"<dependencies>{dependencies}</dependencies></ivy-module>"
    )


def settings() -> list[str]:
    """Return Ivy's option for the user's settings file; empty if there is none."""
    named = os.environ.get("TRANSOM_IVY_SETTINGS")
    file = Path(named) if named else Path.home() / ".ivy2" / "ivysettings.xml"
    return ["-settings", str(file)] if named or file.is_file() else []


def fetch(folder: Path, checksums: dict[str, str], java: Path, ivy: Path) -> None:
    """Download the jars into a folder.

    Args:
        folder: the folder, which is replaced.
        checksums: the SHA-256 of each jar, by file name.
        java: the Java home.
        ivy: the jar of Ivy.

    Raises:
        SetupError: a jar cannot be downloaded, or differs from its checksum.
    """
    work = folder.with_name(folder.name + ".part")
    shutil.rmtree(work, ignore_errors=True)
    got = work / "jars"
    got.mkdir(parents=True)
    (work / "ivy.xml").write_text(module(checksums))
    log = folder.parent / "jars.log"
    log.write_text("")
    # First with this Java's own network settings, which may be the right ones.
    for as_it_is in (True, False):
        network = [] if as_it_is else trust.options(work / "trust.jks")
        done = subprocess.run(
            [
                java / "bin" / "java", *network, "-cp", ivy, "org.apache.ivy.Main", *settings(),
                "-ivy", work / "ivy.xml", "-types", "jar",
                "-cache", work / "cache", "-retrieve", f"{got}/[artifact]-[revision].[ext]",
            ],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        with log.open("a") as file:
            file.write(done.stdout + done.stderr)
        problems = wrong(got, checksums)
        if all((got / name).is_file() for name in checksums):
            break
    if problems:
        raise SetupError(f"Delta's jars: {'; '.join(problems)} (network? proxy? see {log})")
    shutil.rmtree(folder, ignore_errors=True)
    got.rename(folder)
    shutil.rmtree(work)
