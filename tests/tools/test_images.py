"""What `make images` reads of an image, without a container."""

from pathlib import Path

import pytest

from images.base import available
from images.services import Container, Image, replicas

PASSWD = "root:x:0:0:root:/root:/bin/sh\ntransom:x:10001:10002::/home/transom:/bin/sh\n"


def image(root: Path, **configuration: object) -> Image:
    (root / "etc").mkdir()
    (root / "etc/passwd").write_text(PASSWD)
    return Image(root, {"Env": ["PATH=/bin", "A=b=c"], **configuration})


@pytest.mark.parametrize("name", ["transom", "10001"])
def test_user_is_found_by_name_or_number(tmp_path: Path, name: str) -> None:
    found = image(tmp_path, User=name)
    assert found.user() == "10001:10002"
    assert found.environment() == {"HOME": "/home/transom", "PATH": "/bin", "A": "b=c"}


def test_image_without_a_user_runs_as_root(tmp_path: Path) -> None:
    assert image(tmp_path).user() == "0:0"


def test_container_that_does_not_run_is_not_healthy(tmp_path: Path) -> None:
    container = Container("one", 10, {}, image(tmp_path), [], tmp_path / "log")
    assert not container.is_healthy()
    with pytest.raises(ProcessLookupError, match="one does not run"):
        container.memory()


def test_replicas_have_numbered_containers() -> None:
    assert replicas("worker", {"deploy": {"replicas": 2}}) == ["worker-1", "worker-2"]
    assert replicas("master", {}) == ["master"]


@pytest.mark.parametrize(
    ("known", "used", "made"),
    [
        ({"docker.io/library/python:1", "localhost/stand-in/python:1"}, "docker.io/library/python:1", []),
        ({"localhost/stand-in/python:1"}, "localhost/stand-in/python:1", []),
        (set(), "localhost/stand-in/python:1", ["localhost/stand-in/python:1"]),
    ],
)
def test_real_image_is_preferred_to_a_stand_in(
    monkeypatch: pytest.MonkeyPatch, known: set[str], used: str, made: list[str]
) -> None:
    monkeypatch.setattr("images.base.exists", known.__contains__)
    seen: list[str] = []
    assert available("python:1", seen.append) == used
    assert seen == made
