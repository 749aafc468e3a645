"""The pages over a lake that is written by hand, without Airflow: every user may read every stream."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.support.asgi import request
from tests.support.viewed_lake import ViewedLake
from transom.web.app import Access, application


class Pages:
    """The pages over a lake with the stream `six`."""

    def __init__(self, lake: ViewedLake) -> None:
        self.lake = lake
        self.app = application(Access(lambda: "reader", lambda: None, lambda user, names: names))

    def get(self, address: str, status: int = 200) -> httpx.Response:
        """Return the page at an address below `/streams/six`; it has this status."""
        response = request(self.app, f"/streams/six{address}")
        assert response.status_code == status, (address, response.status_code, response.text[-500:])
        assert "Traceback" not in response.text
        return response


def made(folder: Path, patch: pytest.MonkeyPatch) -> Pages:
    """Return the pages over a new lake with six published hours."""
    lake = ViewedLake(folder)
    lake.publish(range(6))
    patch.setenv("TRANSOM_STREAMS", str(folder))
    patch.setenv("TRANSOM_LAKE", lake.uri)
    return Pages(lake)


@pytest.fixture
def pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pages:
    return made(tmp_path, monkeypatch)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pages]:
    """Return pages that no test of the module changes, after the first that fills them."""
    with pytest.MonkeyPatch.context() as patch:
        yield made(tmp_path_factory.mktemp("shared"), patch)
