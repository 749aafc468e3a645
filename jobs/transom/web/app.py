"""The application: login for every route, headers, and errors as pages."""

import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from deltalake.exceptions import DeltaError
from fastapi import Depends, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from transom.spec.errors import SpecificationError
from transom.storage.tables import LakeError, one_line_message
from transom.views.open_stream import NothingToView
from transom.web.limit import RETRY_AFTER, Limit, TooBusy
from transom.web.open_streams import OpenStreams, UnknownStream
from transom.web.parameters import BadInput
from transom.web.prepare import preparing
from transom.web.render import links_of, log_in, page
from transom.web.routes import common_routes, stream_routes

LOG = logging.getLogger(__name__)
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self' 'unsafe-inline'; script-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'self'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "private, no-store",
}
"""The headers of every response."""
TITLES = {
    401: "Not logged in",
    403: "No permission",
    404: "No such page",
    405: "No such page",
    422: "Not a valid address",
    500: "This page failed",
    503: "The lake cannot be read",
}
TITLES_OF_ERRORS: Mapping[type[Exception], str] = {
    SpecificationError: "The stream file is wrong",
    TooBusy: "Too many pages at once",
}


@dataclass(frozen=True)
class Access:
    """The rights of users. The first two are dependencies of FastAPI and raise its `HTTPException`.

    Attributes:
        user: returns the user of a request; 401 without login.
        may_read: passes if the user may read the stream in the path parameter `dag_id`, else 403.
        readable: of the result of `user` and names of streams, those that the user may read.
    """

    user: Callable[..., Any]
    may_read: Callable[..., Any]
    readable: Callable[[Any, Collection[str]], Collection[str]]


def application(access: Access) -> FastAPI:
    """Return the application, to be mounted at the path of the pages.

    It has no generated documentation: FastAPI would show that without a login.
    """
    streams, place = OpenStreams(), Depends(Limit())
    app = FastAPI(
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        dependencies=[Depends(access.user)],
        lifespan=preparing(streams),
    )
    app.include_router(common_routes(streams, access.user, access.readable, place))
    # A user without the right takes no place.
    app.include_router(stream_routes(streams), dependencies=[Depends(access.may_read), place])
    app.middleware("http")(_with_headers)
    for kind, status in (
        (UnknownStream, 404),
        (NothingToView, 200),
        (BadInput, 422),
        (SpecificationError, 503),
        (LakeError, 503),
        (DeltaError, 503),
        (TooBusy, 503),
    ):
        app.add_exception_handler(kind, _handler(status))
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    return app


async def _with_headers(request: Request, proceed: Callable[[Request], Awaitable[Response]]) -> Response:
    try:
        response = await proceed(request)
    except Exception:
        # No page shows a stack trace.
        LOG.exception("%s failed", request.url.path)
        response = _error(request, 500, "The log of Airflow's API server has the cause.")
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    return response


def _handler(status: int) -> Callable[[Request, Exception], Response]:
    def handle(request: Request, error: Exception) -> Response:
        if isinstance(error, UnknownStream):
            return _error(request, status, f"No stream file declares the stream {error}.")
        if isinstance(error, NothingToView):
            links = links_of(request, str(request.path_params["dag_id"]))
            return page(request, "nothing.html", status, text=f"{error}.", links=links)
        if isinstance(error, DeltaError):
            return _error(request, status, one_line_message(error))
        response = _error(request, status, str(error), TITLES_OF_ERRORS.get(type(error)))
        if isinstance(error, TooBusy):
            response.headers["Retry-After"] = str(RETRY_AFTER)
        return response

    return handle


def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 401:
        text = "The pages need Airflow's login."
        return page(request, "error.html", 401, title=TITLES[401], text=text, log_in=log_in(request))
    details = {403: "You may not read this stream.", 405: "Pages are read only."}
    return _error(request, error.status_code, details.get(error.status_code) or str(error.detail))


def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    rules = (f"{broken['loc'][-1]}: {broken['msg']}; got {broken['input']!r}" for broken in error.errors())
    return _error(request, 422, "\n".join(rules))


def _error(request: Request, status: int, text: str, title: str | None = None) -> Response:
    return page(request, "error.html", status, title=title or TITLES.get(status, "Error"), text=text)
