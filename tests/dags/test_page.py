"""The pages inside Airflow's own application: login, permission, headers, and what the plugin registers."""

import asyncio
import html
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.dags.dag_runs import ROOT
from tests.support.asgi import request
from tests.support.viewed_lake import SIX, ViewedLake

PREFIX = "/transom"
VALUES = {
    "dag_id": "six",
    "finding_id": "none",
    "hour": "2015-05-17T01:00",
    "feature": "aggregates",
    "block": "traffic",
    "name": "page.js",
}


class Server:
    """Airflow's application with the plugin, and users of its simple auth manager."""

    def __init__(self) -> None:
        from airflow.api_fastapi.app import create_app

        self.app = create_app(apps="core")
        (mount,) = (route for route in self.app.routes if getattr(route, "path", None) == PREFIX)
        self.pages: Any = mount
        self.hidden: set[str] = set()

    def addresses(self) -> dict[str, str]:
        """Return the address of every route of the pages, by its path."""
        paths = [str(route.path) for route in self.pages.routes]
        return {path: PREFIX + re.sub(r"\{(\w+)[^}]*\}", lambda of: VALUES[of[1]], path) for path in paths}

    def status(self, address: str, login: bool = True, method: str = "GET") -> int:
        """Return the status of a response."""
        return self.get(address, login, method).status_code

    def get(self, address: str, login: bool = True, method: str = "GET", root: str = "") -> Any:
        """Return a response; with the cookie of a user, or without."""
        return request(self.app, address, method, {"_token": self.token()} if login else None, root)

    def token(self) -> str:
        """Return the cookie of a user who may read every DAG."""
        from airflow.api_fastapi.app import get_auth_manager
        from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser

        return get_auth_manager().generate_jwt(SimpleAuthManagerUser(username="reader", role="VIEWER"))


@pytest.fixture(scope="module")
def patch() -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as patch:
        yield patch


@pytest.fixture(scope="module")
def server(patch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Server:
    """Return Airflow with the streams `six` and `other`; only `six` has a lake."""
    from airflow import plugins_manager, settings
    from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager
    from airflow.models.base import Base
    from airflow.models.dag import DagModel
    from airflow.models.dagbundle import DagBundleModel

    folder = tmp_path_factory.mktemp("page")
    lake = ViewedLake(folder)
    lake.publish(range(3))
    (folder / "other.yaml").write_text(SIX.replace("name: six", "name: other"))
    patch.setenv("AIRFLOW__API_AUTH__JWT_SECRET", "secret of the tests " * 4)
    patch.setenv("TRANSOM_STREAMS", str(folder))
    patch.setenv("TRANSOM_LAKE", lake.uri)
    patch.setattr(settings, "PLUGINS_FOLDER", str(ROOT / "plugins"))
    for name in ("_get_plugins", "get_fastapi_plugins", "_get_ui_plugins"):
        getattr(plugins_manager, name).cache_clear()
    made = Server()
    patch.setattr(
        SimpleAuthManager,
        "is_authorized_dag",
        lambda self, *, method, user, access_entity=None, details=None: details.id not in made.hidden,
    )
    Base.metadata.create_all(settings.engine)
    with settings.Session() as session:
        session.add(DagBundleModel(name="bundle"))
        session.flush()
        for name in ("six", "other"):
            session.add(DagModel(dag_id=name, bundle_name="bundle", fileloc=""))
        session.commit()
    return made


@pytest.fixture
def hidden(server: Server) -> Iterator[set[str]]:
    """Return the streams that the user may not read; the test changes them."""
    server.hidden.clear()
    yield server.hidden
    server.hidden.clear()


def test_routes_need_a_login(server: Server) -> None:
    addresses = server.addresses()
    assert len(addresses) >= 12
    assert {address: server.status(address, login=False) for address in addresses.values()} == dict.fromkeys(
        addresses.values(), 401
    )
    assert server.status(f"{PREFIX}/", login=True) == 200


def test_page_without_a_login_links_to_it_and_back(server: Server) -> None:
    page = request(server.app, f"{PREFIX}/streams/six?severity=high").text
    (login,) = re.findall(r'<a data-airflow href="([^"]*)">Log in to Airflow</a>', page)
    response = request(server.app, html.unescape(login))
    assert response.status_code == 307
    assert parse_qs(urlsplit(response.headers["location"]).query)["next"] == [
        f"{PREFIX}/streams/six?severity=high"
    ]


@pytest.mark.parametrize("token", ["", "x", "x.y.z"])
def test_a_wrong_token_is_no_login(server: Server, token: str) -> None:
    for address in server.addresses().values():
        assert request(server.app, address, cookies={"_token": token}).status_code in (401, 403)


def test_routes_of_a_stream_need_its_permission(server: Server, hidden: set[str]) -> None:
    of_stream = {path: address for path, address in server.addresses().items() if "{dag_id}" in path}
    assert len(of_stream) == len(server.addresses()) - 2
    hidden.add("six")
    assert {server.status(address) for address in of_stream.values()} == {403}
    # Neither the existence of a stream nor a rule of its parameters shows.
    for address in ("/streams/nobody", "/streams/six/hours?from=x", "/streams/six?page=x"):
        hidden.add("nobody")
        assert server.status(PREFIX + address) == 403
    hidden.clear()
    assert not {server.status(address) for address in of_stream.values()} & {401, 403, 422, 500}


def test_list_has_only_readable_streams(server: Server, hidden: set[str]) -> None:
    assert "streams/six" in server.get(f"{PREFIX}/").text
    assert "streams/other" in server.get(f"{PREFIX}/").text
    hidden.add("other")
    assert "streams/other" not in server.get(f"{PREFIX}/").text
    assert "streams/six" in server.get(f"{PREFIX}/").text


@pytest.mark.parametrize("path", ["docs", "redoc", "openapi.json", "docs/oauth2-redirect", "x/../app.py"])
@pytest.mark.parametrize("login", [False, True])
def test_nothing_describes_the_application(server: Server, path: str, login: bool) -> None:
    assert server.status(f"{PREFIX}/{path}", login) == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_pages_change_nothing(server: Server, method: str) -> None:
    assert {server.status(address, method=method) for address in server.addresses().values()} == {405}


@pytest.mark.parametrize("login", [False, True])
def test_every_response_has_the_headers(server: Server, login: bool) -> None:
    for address in [*server.addresses().values(), f"{PREFIX}/nothing"]:
        headers = server.get(address, login).headers
        assert "default-src 'none'" in headers["Content-Security-Policy"], address
        assert "frame-ancestors 'self'" in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Cache-Control"].startswith("private")


def test_addresses_have_the_path_of_airflow(server: Server) -> None:
    text = server.get(f"/data{PREFIX}/", root="/data").text
    assert 'href="/data/transom/streams/six"' in text
    assert 'src="/data/transom/static/page.js' in text


def test_views_are_in_the_navigation_and_on_each_dag(server: Server) -> None:
    from airflow import plugins_manager

    views = [view for view in plugins_manager._get_ui_plugins()[0] if view["href"].startswith("transom/")]
    assert {(view["destination"], view["href"], view["url_route"]) for view in views} == {
        ("nav", "transom/", "transom"),
        ("dag", "transom/streams/{DAG_ID}", "findings"),
    }
    assert plugins_manager.get_import_errors() == {}


def test_server_that_starts_prepares_the_pages(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    from transom.web import prepare

    prepared = threading.Event()
    monkeypatch.setattr(prepare.render, "prepare", prepared.set)

    async def start() -> bool:
        async with server.app.router.lifespan_context(server.app):
            return await asyncio.to_thread(prepared.wait, 60)

    assert asyncio.run(start())
    for thread in threading.enumerate():
        if thread.name == prepare.THREAD:
            thread.join(60)


def test_other_processes_do_not_make_the_application(tmp_path: Path) -> None:
    from tests.dags.test_stream_files import printed, python

    code = (
        "import json, sys; sys.path.insert(0, sys.argv[1] if len(sys.argv) > 1 else '');"
        f"sys.path.insert(0, {str(ROOT / 'plugins')!r}); import transom_page;"
        "print(json.dumps(sorted({'fastapi', 'transom.web.app', 'numpy'} & set(sys.modules))))"
    )
    assert printed(python(code, folder=tmp_path)) == []
