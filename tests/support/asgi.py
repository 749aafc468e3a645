"""Requests to an application without a server."""

import asyncio
from typing import Any

import httpx


def request(
    app: Any, address: str, method: str = "GET", cookies: dict[str, str] | None = None, root: str = ""
) -> httpx.Response:
    """Return the response of an ASGI application.

    Args:
        app: the application.
        address: path and query.
        method: the method.
        cookies: the cookies.
        root: the path that a proxy has in front of the application.
    """

    async def send() -> httpx.Response:
        transport = httpx.ASGITransport(app, raise_app_exceptions=False, root_path=root)
        async with httpx.AsyncClient(
            transport=transport, base_url="http://localhost", cookies=cookies
        ) as client:
            return await client.request(method, address)

    return asyncio.run(send())
