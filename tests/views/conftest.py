"""A lake with six published hours of every stage, built once and copied."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.viewed_lake import ViewedLake


@pytest.fixture(scope="session")
def make_lake(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], ViewedLake]:
    """Return a function that makes a lake in a folder."""
    template = ViewedLake(tmp_path_factory.mktemp("template"))
    template.publish(range(6))

    def made(folder: Path) -> ViewedLake:
        shutil.copytree(template.uri, folder / "lake")
        return ViewedLake(folder)

    return made


@pytest.fixture
def lake(make_lake: Callable[[Path], ViewedLake], tmp_path: Path) -> ViewedLake:
    return make_lake(tmp_path)
