"""HTML of the pages: templates of this package, with the macros and the style sheet of `transom.views`."""

import hashlib
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Any

from fastapi import Request, Response
from fastapi.responses import HTMLResponse

from transom.charts.specs import panels
from transom.views import render
from transom.web.links import Links, address, hours_of, key_parameters

ASSETS = {"page.css": "text/css", "page.js": "text/javascript"}
"""The files of the pages, with their types."""
KEPT = "private, max-age=31536000, immutable"
"""How long a browser keeps a file: its address changes with its content."""


@cache
def asset(name: str) -> str:
    """Return the content of a file of the pages; the style sheet begins with that of `transom.views`."""
    own = files(__package__).joinpath("templates", name).read_text()
    return f"{render.style()}\n{own}" if name.endswith(".css") else own


def links_of(request: Request, stream: str = "", **hours: str | None) -> Links:
    """Return the addresses of a stream's pages; they keep the hours that were given."""
    scope = request.scope
    given = {name: text for name, text in hours.items() if text}
    return Links(scope.get("root_path", ""), scope.get("app_root_path", ""), stream, given)


def log_in(request: Request) -> str:
    """Return the address of Airflow's login, which leads back to the page of the request."""
    here = f"{request.url.path}?{request.url.query}" if request.url.query else request.url.path
    return address(request.scope.get("app_root_path", ""), "api", "v2", "auth", "login", next=here)


def page(request: Request, template: str, status: int = 200, **values: Any) -> Response:
    """Return a page."""
    links = values.pop("links", None) or links_of(request)
    html = _environment().get_template(template).render(
        root=links.root, asset=_address(links.root), links=links, read_at=datetime.now(UTC), **values
    )  # fmt: skip
    # A text from a file's name may have surrogates.
    return HTMLResponse(html.encode("utf-8", "replace"), status)


def _address(root: str) -> Any:
    def of(name: str) -> str:
        return address(root, "static", name, v=hashlib.sha256(asset(name).encode()).hexdigest()[:12])

    return of


@cache
def _environment() -> Any:
    built = render.environment("transom.web", "transom.views")
    built.globals |= {"address": address, "hours_of": hours_of, "key_of": key_parameters}
    return built


def prepare() -> None:
    """Compile the templates and start the library of charts, which takes half a second."""
    environment = _environment()
    for name in environment.list_templates(extensions=["html"]):
        environment.get_template(name)
    points = [{"time": hour * 3_600_000, "value": hour, "series": "", "panel": ""} for hour in range(2)]
    render.svg(panels(points, [""]))
