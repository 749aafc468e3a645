"""Set up the checkout: the locked Python environment, and what `transom setup` installs for Spark.

Runs with the system's Python, changes nothing outside of the checkout, and can run again at any time.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import MutableMapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "jobs"))

from transom.installation import java  # noqa: E402
from transom.installation.install import hash_of, progress, run  # noqa: E402
from transom.installation.java import SetupError  # noqa: E402

FOLDER = ROOT / ".transom"
VENV = ROOT / ".venv"
LOCK = ROOT / "tools" / "requirements.txt"
PYTHONS = ((3, 11), (3, 13))
NEEDED_BYTES = 4 * 2**30


def check_python(version: tuple[int, int]) -> None:
    """Raise SetupError if the lock file does not support the Python version."""
    if not PYTHONS[0] <= version <= PYTHONS[1]:
        raise SetupError(f"Python: needs 3.11 to 3.13; this is {version[0]}.{version[1]} ({sys.executable})")


def leave_other_checkout(environment: MutableMapping[str, str]) -> None:
    """Remove the settings of another checkout, if its `.transom/env` was loaded before in this shell."""
    other = environment.get("TRANSOM_HOME")
    if other is None or Path(other) == ROOT:
        return
    for name, value in list(environment.items()):
        parts = value.split(os.pathsep)
        own = [part for part in parts if f"{other}/" not in f"{part}/"]
        if own == parts:
            continue
        if own:
            environment[name] = os.pathsep.join(own)
        else:
            del environment[name]


def check_disk(free: int) -> None:
    """Raise SetupError if the disk has too little free space."""
    if free < NEEDED_BYTES:
        raise SetupError(
            f"disk: needs {NEEDED_BYTES / 2**30:.0f} GiB free at {ROOT}; there are {free / 2**30:.1f} GiB"
        )


def uv_requirement(lock: str) -> str:
    """Return the part of the lock that pins uv, with its hashes."""
    lines = lock.splitlines()
    start = next(index for index, line in enumerate(lines) if line.startswith("uv=="))
    end = next((i for i in range(start + 1, len(lines)) if not lines[i].startswith(" ")), len(lines))
    return "\n".join(line for line in lines[start:end] if not line.strip().startswith("#")) + "\n"


def install_packages() -> None:
    """Install the locked Python packages, and this checkout as an editable package."""
    python = VENV / "bin" / "python"
    if not python.exists():
        progress("Python environment")
        run(FOLDER / "python-environment.log", sys.executable, "-m", "venv", VENV)
    only_uv = FOLDER / "uv.txt"
    FOLDER.mkdir(exist_ok=True)
    only_uv.write_text(uv_requirement(LOCK.read_text()))
    progress("Python packages, about 180 (half a minute to a few)")
    run(FOLDER / "uv.log", python, "-m", "pip", "install", "-q", "--require-hashes", "-r", only_uv)
    pip = (python, "-m", "uv", "pip")
    # As in `compile_checkout`.
    options = ("-q", "--require-hashes", "--compile-bytecode")
    run(FOLDER / "python-packages.log", *pip, "sync", *options, LOCK, VIRTUAL_ENV=str(VENV))
    editable = ("-q", "--no-deps", "--no-build-isolation", "--editable", ROOT)
    run(FOLDER / "transom-package.log", *pip, "install", *editable, VIRTUAL_ENV=str(VENV))


def compile_checkout() -> None:
    """Compile this checkout's modules: with PYTHONDONTWRITEBYTECODE, each process would compile them again.

    Modules with an error are left for the process that imports them.
    """
    folders = (ROOT / name for name in ("jobs", "dags", "plugins"))
    subprocess.run(
        [VENV / "bin" / "python", "-m", "compileall", "-q", *folders], capture_output=True, check=False
    )


def main() -> None:
    """Bring the checkout up to date; takes seconds if it already is."""
    began = time.monotonic()
    leave_other_checkout(os.environ)
    check_python(sys.version_info[:2])
    installation = sorted((ROOT / "jobs/transom/installation").glob("*"))
    sources = [LOCK, ROOT / "pyproject.toml", Path(__file__), *filter(Path.is_file, installation)]
    machine = f"{java.candidates(FOLDER / 'java')} {ROOT} {sys.version_info[:2]}"
    stamp = FOLDER / f"ready-{hash_of(*sources, also=machine)}"
    if stamp.exists() and (VENV / "bin" / "transom").exists():
        compile_checkout()
        return
    if not VENV.exists():
        check_disk(shutil.disk_usage(ROOT).free)
    install_packages()
    done = subprocess.run([VENV / "bin" / "transom", "setup"], check=False)
    if done.returncode:
        raise SetupError("`transom setup` failed")
    compile_checkout()
    for old in FOLDER.glob("ready-*"):
        old.unlink()
    stamp.touch()
    progress(f"done in {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    try:
        main()
    except SetupError as error:
        sys.exit(f"set-up: {error}")
    except KeyboardInterrupt:
        sys.exit("set-up: interrupted; run it again to go on")
