"""The page of the service. It needs no key; the data that it requests do."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter, Request
from starlette.responses import Response

from hinged_service.errors import NotFound
from hinged_service.web import POLICY, Asset, assets

__all__ = ["router"]

_HEADERS: Final = {
    "content-security-policy": POLICY,
    "cache-control": "no-cache",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
}


def router() -> APIRouter:
    """Return the routes."""
    routes = APIRouter(include_in_schema=False)
    files = assets()
    start = files["index.html"]

    @routes.get("/")
    async def index(request: Request) -> Response:
        """Return the page."""
        return _answer(request, start)

    @routes.get("/page/{path:path}")
    async def file(request: Request, path: str) -> Response:
        """Return a file that the page is made of."""
        found = files.get(path)
        if found is None:
            raise NotFound(f"The page has no file {path!r}.")
        return _answer(request, found)

    return routes


def _answer(request: Request, asset: Asset) -> Response:
    headers = {**_HEADERS, "etag": asset.etag}
    if asset.etag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(asset.body, media_type=asset.media_type, headers=headers)
