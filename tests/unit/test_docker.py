"""The image and the compose file name things that are there. Neither is built here."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from transom.lake.session import REQUIRED

ROOT = Path(__file__).resolve().parents[2]
DOCKER = ROOT / "docker"


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((DOCKER / "compose.yaml").read_text())
    return loaded


def test_the_image_copies_what_is_there() -> None:
    text = (DOCKER / "Dockerfile").read_text()
    sources = [word for line in re.findall(r"^COPY (.+) \S+$", text, re.MULTILINE) for word in line.split()]
    assert sources
    assert [source for source in sources if not (ROOT / source).exists()] == []


def test_every_variable_of_transom_is_one_that_the_code_reads(compose: dict[str, Any]) -> None:
    files = [*ROOT.glob("jobs/transom/**/*.py"), *ROOT.glob("dags/*.py"), *ROOT.glob("plugins/*.py")]
    code = "".join(file.read_text() for file in files)
    names = [name for name in compose["x-transom"]["environment"] if name.startswith("TRANSOM_")]
    assert names
    assert [name for name in names if f'"{name}"' not in code] == []


def test_services_wait_for_services_that_are_there(compose: dict[str, Any]) -> None:
    services = compose["services"]
    waited = {name for service in services.values() for name in service.get("depends_on", ())}
    assert waited <= services.keys()
    assert {"scheduler", "dag-processor", "api-server", "spark-master", "spark-worker"} <= services.keys()


def test_the_cluster_is_given_no_setting_of_a_small_machine() -> None:
    lines = (DOCKER / "spark.properties").read_text().splitlines()
    settings = dict(line.split(None, 1) for line in lines if line and not line.startswith("#"))
    assert not [name for name in settings if "snapshotPartitions" in name or "shuffle.partitions" in name]
    assert "SerialGC" not in settings["spark.driver.extraJavaOptions"]
    for name in ("spark.sql.extensions", "spark.sql.catalog.spark_catalog"):
        assert settings[name] == REQUIRED[name]
