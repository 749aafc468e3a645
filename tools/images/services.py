"""The services of a compose file, each in namespaces of its own.

Command, environment, volumes, order, health and restarts are read from the compose file, as podman-compose
resolves it, and from the configuration of the images. A service has its own network, processes, mounts and
host name, which disappear with its first process.
"""

import os
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from processes import ServerError

NETWORK = "10.231.0"
UNSHARE = ("unshare", "--mount", "--pid", "--fork", "--kill-child")
RESTARTS = ("always", "unless-stopped", "on-failure")


@dataclass(frozen=True)
class Image:
    """An image and a container's root.

    Attributes:
        root: the folder in which the root of a new container is mounted.
        configuration: the image's own, in the words of the OCI image format.
    """

    root: Path
    configuration: Mapping[str, Any]

    @property
    def command(self) -> list[str]:
        """The entry point, before a service's command."""
        return self.configuration.get("Entrypoint") or []

    def environment(self) -> dict[str, str]:
        """Return the variables of the image, and the home of its user."""
        values = dict(pair.split("=", 1) for pair in self.configuration["Env"])
        return {"HOME": self._account()[5], **values}

    def user(self) -> str:
        """Return user and group by number."""
        _, _, uid, gid, *_ = self._account()
        return f"{uid}:{gid}"

    def _account(self) -> list[str]:
        user = self.configuration.get("User") or "0"
        lines = (line.split(":") for line in (self.root / "etc/passwd").read_text().splitlines())
        return next(line for line in lines if user in (line[0], line[2]))


def resolve(compose: Path, environment: Mapping[str, str]) -> dict[str, Any]:
    """Return a compose file with its variables replaced.

    Args:
        environment: variables in addition to those of this process.

    Raises:
        ServerError: the compose file is invalid, or a variable that it needs is not set.
    """
    # It requests the version of an engine, which `config` does not use.
    command = [
        "podman-compose",
        "--podman-path",
        shutil.which("echo") or "echo",
        "--file",
        str(compose),
        "config",
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )
    if done.returncode:
        raise ServerError(f"{compose}: {done.stderr.strip()[-500:]}")
    resolved: dict[str, Any] = yaml.safe_load(done.stdout)
    return resolved


def replicas(name: str, service: Mapping[str, Any]) -> list[str]:
    """Return the names of a service's containers."""
    count = service.get("deploy", {}).get("replicas", 1)
    return [name] if count == 1 else [f"{name}-{number}" for number in range(1, count + 1)]


def children(process: int) -> list[int]:
    """Return the child processes of a process."""
    return [int(child) for child in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


@dataclass
class Container:
    """A container of a service.

    Attributes:
        number: the last part of its address.
        definition: of the service, from the compose file.
        mounts: sources of this machine, targets in the container, and whether they are read-only.
        log: what it prints.
        process: the parent of its first process.
    """

    name: str
    number: int
    definition: Mapping[str, Any]
    image: Image
    mounts: Sequence[tuple[Path, str, bool]]
    log: Path
    process: "subprocess.Popen[str] | None" = None

    @property
    def address(self) -> str:
        """Its address in the network of the services."""
        return f"{NETWORK}.{self.number}"

    @property
    def restarts(self) -> bool:
        """Whether the compose file wants it to be started again."""
        return self.definition.get("restart") in RESTARTS

    def first(self) -> int:
        """Return the number of its first process.

        Raises:
            ProcessLookupError: it has ended, or was never started.
        """
        while self.process is not None and self.process.poll() is None:
            if found := children(self.process.pid):
                return found[0]
            time.sleep(0.01)
        raise ProcessLookupError(f"{self.name} does not run")

    def _inside(self, command: Sequence[str]) -> list[str]:
        """Return the command line of a command in the container's root, with its user and environment."""
        values = self.image.environment() | {"HOSTNAME": self.name}
        values |= {key: str(value) for key, value in self.definition.get("environment", {}).items()}
        folder = self.image.configuration.get("WorkingDir") or "/"
        return [
            "chroot", f"--userspec={self.image.user()}", str(self.image.root),
            "env", "-i", *(f"{name}={value}" for name, value in values.items()),
            "sh", "-c", 'cd "$0" && exec "$@"', folder, *command,
        ]  # fmt: skip

    def start(self, hosts: Path, link: str) -> None:
        """Start the service's command.

        Args:
            hosts: the file with the addresses of all containers.
            link: a name for its end of the network in this process's namespace.
        """
        root = self.image.root
        mounts = [("/dev", f"{root}/dev", "--rbind"), (str(hosts), f"{root}/etc/hosts", "--bind")]
        for source, target, is_read_only in self.mounts:
            mounts.append((str(source), f"{root}{target}", "--bind" + (" -o ro" if is_read_only else "")))
        lines = [
            "set -e; read -r _",  # until the network is there
            f"hostname {self.name}",
            f"mount -t proc proc {root}/proc",
            *(f"mount {how} {shlex.quote(source)} {shlex.quote(target)}" for source, target, how in mounts),
            # The shell stays as the first process, and collects processes without a parent.
            f"set +e; {shlex.join(self._inside([*self.image.command, *self.definition.get('command', [])]))}",
            "exit $?",
        ]
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                [*UNSHARE, "--net", "--uts", "--ipc", "bash", "-c", "\n".join(lines)],
                stdin=subprocess.PIPE, stdout=log, stderr=log, text=True, start_new_session=True,
            )  # fmt: skip
        first = str(self.first())
        # The same address has the same hardware address after a restart, as others remember it.
        mac = f"02:00:00:00:00:{self.number:02x}"
        for command in (
            f"ip link add {link} type veth peer name eth0 address {mac} netns {first}",
            f"ip link set {link} master br0 up",
            f"nsenter -t {first} -n ip link set lo up",
            f"nsenter -t {first} -n ip address add {self.address}/24 dev eth0",
            f"nsenter -t {first} -n ip link set eth0 up",
        ):
            subprocess.run(command.split(), check=True)
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.close()

    def run(self, *command: str) -> "subprocess.CompletedProcess[str]":
        """Run a command in the running container, as `exec` of an engine does."""
        spaces = ["nsenter", "-t", str(self.first()), "-n", "-m", "-u", "-i", "-p"]
        return subprocess.run([*spaces, *self._inside(command)], capture_output=True, text=True, check=False)

    def is_healthy(self) -> bool:
        """Run the check of the compose file; a service without one is healthy while it runs."""
        kind, *words = self.definition.get("healthcheck", {}).get("test", ["CMD", "true"])
        try:
            return self.run(*(["sh", "-c", *words] if kind == "CMD-SHELL" else words)).returncode == 0
        except ProcessLookupError:
            return False

    def kill(self) -> None:
        """Kill all its processes at once, and wait until they are gone."""
        assert self.process is not None
        # The others of a process namespace end with the first, before its parent sees that.
        os.kill(self.first(), signal.SIGKILL)
        self.process.wait()

    def hang(self) -> None:
        """Stop the first process of its command, which `watch.py` has started, without ending it."""
        # Orphans become later children of the first process.
        watch, *_ = children(self.first())
        command, *_ = children(watch)
        os.kill(command, signal.SIGSTOP)

    def memory(self) -> tuple[int, int]:
        """Return the bytes that its processes use, shared ones in parts, and their number.

        Raises:
            OSError: it has ended.
        """
        space, size, count = Path(f"/proc/{self.first()}/ns/pid").readlink(), 0, 0
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if (folder / "ns/pid").readlink() == space:
                    text = (folder / "smaps_rollup").read_text()
                    size += int(text.split("\nPss:")[1].split()[0]) * 1024
                    count += 1
            except (OSError, IndexError):  # it has ended
                continue
        return size, count


@dataclass
class Services:
    """All services of a compose file.

    Attributes:
        work: a folder for volumes and logs.
    """

    resolved: Mapping[str, Any]
    images: Mapping[str, Image]
    compose: Path
    work: Path
    containers: dict[str, Container] = field(default_factory=dict)
    _links: int = 0

    def __post_init__(self) -> None:
        for name, definition in sorted(self.resolved["services"].items()):
            for replica in replicas(name, definition):
                image = self.images[replica]
                (image.root / "etc/hosts").touch()
                mounts = [self._mount(image, text) for text in definition.get("volumes", [])]
                log = self.work / f"{replica}.log"
                number = len(self.containers) + 10
                self.containers[replica] = Container(replica, number, definition, image, mounts, log)
        lines = [f"{container.address} {name}\n" for name, container in self.containers.items()]
        self.hosts.write_text("127.0.0.1 localhost\n" + "".join(lines))
        subprocess.run(["ip", "link", "add", "br0", "type", "bridge"], check=True)
        subprocess.run(f"ip address add {NETWORK}.1/24 dev br0".split(), check=True)
        for link in ("lo", "br0"):
            subprocess.run(["ip", "link", "set", link, "up"], check=True)

    @property
    def hosts(self) -> Path:
        """The file with the addresses of all containers."""
        return self.work / "hosts"

    def _mount(self, image: Image, text: str) -> tuple[Path, str, bool]:
        """Return source, target and whether it is read-only; a new volume begins as the image's folder."""
        source, target, *mode = text.split(":")
        place = image.root / target.lstrip("/")
        place.mkdir(parents=True, exist_ok=True)
        if source not in self.resolved["volumes"]:
            return (self.compose.parent / source).resolve(), target, "ro" in mode
        volume = self.work / "volumes" / source
        if not volume.exists():
            shutil.copytree(place, volume)
            os.chown(volume, place.stat().st_uid, place.stat().st_gid)
        return volume, target, "ro" in mode

    def of(self, service: str) -> Iterator[Container]:
        """Yield the containers of a service."""
        for name in replicas(service, self.resolved["services"][service]):
            yield self.containers[name]

    def start(self, container: Container) -> None:
        """Start a container."""
        self._links += 1
        container.start(self.hosts, f"v{self._links}")

    def up(self, service: str, seconds: float = 600) -> None:
        """Start a service once the conditions of those that it depends on are met.

        Raises:
            ServerError: one of them does not come up.
        """
        if any(container.process for container in self.of(service)):
            return
        needed = self.resolved["services"][service].get("depends_on", {})
        for name in needed:
            self.up(name, seconds)
            condition = needed[name]["condition"] if isinstance(needed, dict) else "service_started"
            for container in self.of(name):
                assert container.process is not None
                if condition == "service_healthy":
                    self.wait(container, seconds)
                elif condition == "service_completed_successfully" and container.process.wait(seconds):
                    raise ServerError(
                        f"{name}: ended with {container.process.returncode}, see {container.log}"
                    )
        for container in self.of(service):
            self.start(container)

    def wait(self, container: Container, seconds: float) -> float:
        """Wait until a container is healthy, and return the seconds that it took.

        Raises:
            ServerError: it takes longer.
        """
        began = time.monotonic()
        while not container.is_healthy():
            self.tend()
            if time.monotonic() - began > seconds:
                raise ServerError(f"{container.name}: not healthy after {seconds:.0f} s, see {container.log}")
            time.sleep(2)
        return time.monotonic() - began

    def tend(self) -> list[str]:
        """Start again what has ended and is to be restarted, and return its names."""
        ended = [
            container
            for container in self.containers.values()
            if container.restarts and container.process is not None and container.process.poll() is not None
        ]
        for container in ended:
            self.start(container)
        return [container.name for container in ended]
