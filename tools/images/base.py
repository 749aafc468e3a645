"""Stand-ins for the images that docker/ builds on, from Debian's packages.

A real image that buildah has pulled before is used instead. A stand-in reaches package registries by this
machine's configuration of apt, pip and certificates.
"""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

SUITE = "bookworm"
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
REAL, STAND_IN = "docker.io/library/", "localhost/stand-in/"

ENTRY_POINT = Path(__file__).with_name("postgres_entry_point.sh").read_text()


def buildah(*arguments: str | Path) -> str:
    """Run buildah and return what it prints.

    Raises:
        CalledProcessError: it failed.
    """
    command = ["buildah", *map(str, arguments)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def exists(name: str) -> bool:
    """Return whether buildah has an image."""
    command = ["buildah", "inspect", "--type", "image", name]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def available(name: str, make: Callable[[str], None]) -> str:
    """Return the full name of an image that buildah has: the real one, or else a stand-in.

    Args:
        name: as docker/ gives it.
        make: makes the stand-in of a full name.
    """
    if exists(REAL + name):
        return REAL + name
    if not exists(STAND_IN + name):
        make(STAND_IN + name)
    return STAND_IN + name


def make_python(folder: Path, name: str) -> None:
    """Make a stand-in for a slim image of Python, from Debian's Python of the same minor version.

    Args:
        folder: where the file system is made first, 0.3 GB.
        name: of the image.
    """
    packages = "--include=ca-certificates,python3,python3-venv,python3-pip"
    if not (folder / "etc" / "debian_version").is_file() or (folder / "debootstrap").is_dir():
        subprocess.run(["debootstrap", "--variant=minbase", packages, SUITE, folder], check=True)
    for program in ("python", "python3"):
        link = folder / "usr/local/bin" / program
        link.unlink(missing_ok=True)
        link.symlink_to("/usr/bin/python3")
    for files in ("/etc/apt/apt.conf.d", "/etc/apt/sources.list.d", "/usr/local/share/ca-certificates"):
        if Path(files).is_dir():
            shutil.copytree(files, f"{folder}{files}", dirs_exist_ok=True)
    for file in ("/etc/pip.conf", "/etc/apt/sources.list", CERTIFICATES):
        if Path(file).is_file():
            shutil.copyfile(file, f"{folder}{file}")
    if not Path("/etc/apt/sources.list").is_file():
        (folder / "etc/apt/sources.list").unlink(missing_ok=True)
    for archive in (folder / "var/cache/apt/archives").glob("*.deb"):
        archive.unlink()
    container = buildah("from", "scratch")
    buildah("copy", "-q", container, folder, "/")
    settings = {"SSL_CERT_FILE": CERTIFICATES, "PIP_CERT": CERTIFICATES}
    settings["PATH"] = "/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"
    buildah("config", *(f"--env={name}={value}" for name, value in settings.items()), container)
    buildah("commit", "-q", "--rm", container, name)


def make_postgres(folder: Path, name: str, python: str) -> None:
    """Make a stand-in for Postgres' image, from Python's image and Debian's Postgres."""
    entry_point = folder / "entry-point.sh"
    entry_point.write_text(ENTRY_POINT)
    entry_point.chmod(0o755)
    container = buildah("from", "--pull=never", python)
    install = (
        "mkdir -p /etc/postgresql-common"
        " && echo create_main_cluster=false > /etc/postgresql-common/createcluster.conf"
        " && apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq"
        " --no-install-recommends postgresql > /dev/null"
        " && install -d -o postgres -g postgres -m 700 /var/lib/postgresql/data"
    )
    buildah("run", "--isolation", "chroot", "--network", "host", container, "--", "sh", "-c", install)
    buildah("copy", "-q", container, entry_point, "/entry-point.sh")
    buildah("config", "--user", "postgres", "--entrypoint", '["/entry-point.sh"]', "--cmd", "", container)
    buildah("commit", "-q", "--rm", container, name)
