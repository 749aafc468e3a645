"""The image and the compose file refer to existing things. Neither is built here."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from transom.installation import install
from transom.storage.session import REQUIRED

ROOT = Path(__file__).resolve().parents[2]
DOCKER = ROOT / "docker"
IMAGE_PROPERTIES = Path("/opt/transom/docker/spark.properties")
OF_ONE_MACHINE = ("SPARK_LOCAL_IP", "PYSPARK_SUBMIT_ARGS", "AIRFLOW_HOME")


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((DOCKER / "compose.yaml").read_text())
    return loaded


def test_image_copies_existing_files() -> None:
    text = (DOCKER / "Dockerfile").read_text()
    sources = [word for line in re.findall(r"^COPY (.+) \S+$", text, re.MULTILINE) for word in line.split()]
    assert sources
    assert [source for source in sources if not (ROOT / source).exists()] == []


def test_every_variable_of_transom_is_read_by_the_code(compose: dict[str, Any]) -> None:
    files = [*ROOT.glob("jobs/transom/**/*.py"), *ROOT.glob("dags/*.py"), *ROOT.glob("plugins/*.py")]
    code = "".join(file.read_text() for file in files)
    names = [name for name in compose["x-transom"]["environment"] if name.startswith("TRANSOM_")]
    assert names
    assert [name for name in names if f'"{name}"' not in code] == []


def test_image_has_the_environment_of_set_up_without_machine_settings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = (DOCKER / "Dockerfile").read_text()
    home = Path("/opt/transom")
    venv = home / ".venv"
    assert f"WORKDIR {home}\n" in text
    (version,) = re.findall(r"^FROM python:(\d+\.\d+)", text, re.MULTILINE)
    (block,) = re.findall(r"^ENV ((?:.+\\\n)*.+)$", text, re.MULTILINE)
    image = dict(pair.split("=", 1) for pair in block.replace("\\\n", " ").split())

    monkeypatch.setattr("transom.core.locations.checkout", lambda: home)
    monkeypatch.setattr(install, "spark_home", lambda: venv / f"lib/python{version}/site-packages/pyspark")
    monkeypatch.setattr("sys.executable", f"{venv}/bin/python")
    local = {
        name: value
        for name, value in install.variables(home / ".transom").items()
        if name not in OF_ONE_MACHINE
    }
    local["TRANSOM_SPARK_PROPERTIES"] = str(IMAGE_PROPERTIES)
    # The image's Airflow is on Postgres.
    local["PYTHONPATH"] = local["PYTHONPATH"].removesuffix(f":{home}/tools/sqlite")
    path = image.pop("PATH").split(":")
    assert image == local
    assert path == [f"{venv}/bin", f"{home}/.transom/java/bin", "$PATH"]


def test_machine_settings_do_not_reach_the_cluster(compose: dict[str, Any]) -> None:
    image = (DOCKER / "Dockerfile").read_text()
    commands = re.sub(r"^#.*$", "", image, flags=re.MULTILINE)
    settings = (DOCKER / "spark.properties").read_text()
    assert ".transom/env" not in commands
    assert "ENTRYPOINT" not in commands
    for name in ("SPARK_LOCAL_IP", "PYSPARK_SUBMIT_ARGS", "SPARK_LOCAL_HOSTNAME"):
        assert name not in commands
        assert name not in yaml.safe_dump(compose)
    assert "127.0.0.1" not in commands + settings
    assert "spark.driver.host" not in settings
    # The services' own home of Airflow is on the volume that they share.
    shared = compose["x-transom"]["environment"]["AIRFLOW_HOME"]
    assert f"airflow:{shared}" in compose["x-transom"]["volumes"]


def test_services_wait_for_existing_services(compose: dict[str, Any]) -> None:
    services = compose["services"]
    waited = {name for service in services.values() for name in service.get("depends_on", ())}
    assert waited <= services.keys()
    assert {"scheduler", "dag-processor", "api-server", "spark-master", "spark-worker"} <= services.keys()


def test_cluster_has_no_setting_of_a_small_machine() -> None:
    lines = (DOCKER / "spark.properties").read_text().splitlines()
    settings = dict(line.split(None, 1) for line in lines if line and not line.startswith("#"))
    assert not [name for name in settings if "snapshotPartitions" in name or "shuffle.partitions" in name]
    assert "SerialGC" not in settings["spark.driver.extraJavaOptions"]
    for name in ("spark.sql.extensions", "spark.sql.catalog.spark_catalog"):
        assert settings[name] == REQUIRED[name]
