"""Routes that answer with the structs of `wire.responses`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable
from typing import Any, get_type_hints

import msgspec
from fastapi import Response
from fastapi.routing import APIRoute
from starlette.types import Receive, Scope, Send

from hinged_service.api.progress_lines import answer_with_progress, takes_progress
from hinged_service.api.schemas import described

__all__ = ["StructRoute"]


class StructRoute(APIRoute):
    """A route whose endpoint may return a struct, or a list of one: sent and described as such.

    An endpoint whose work takes long reports its progress with `on_progress_of`.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        kind = get_type_hints(endpoint).get("return")
        item = getattr(kind, "__args__", (kind,))[0]
        if isinstance(item, type) and issubclass(item, msgspec.Struct):
            status = options.get("status_code") or 200
            options["responses"] = {status: described(kind), **(options.get("responses") or {})}
            options["response_model"] = None
            endpoint = _encoding(endpoint, status)
        super().__init__(path, endpoint, **options)

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, with lines of progress if the caller accepts them."""
        if takes_progress(scope):
            await answer_with_progress(super().handle, scope, receive, send)
        else:
            await super().handle(scope, receive, send)


def _encoding(
    endpoint: Callable[..., Awaitable[Any]], status: int
) -> Callable[..., Awaitable[Response]]:
    """Return an endpoint that encodes the answer; an injected `response` may set the status."""

    @functools.wraps(endpoint)
    async def encoding(**values: Any) -> Response:
        body = msgspec.json.encode(await endpoint(**values)) + b"\n"
        chosen = getattr(values.get("response"), "status_code", None)
        return Response(body, chosen or status, media_type="application/json")

    encoding.__signature__ = inspect.signature(endpoint).replace(  # type: ignore[attr-defined]
        return_annotation=Response
    )
    encoding.__annotations__ = {**endpoint.__annotations__, "return": Response}
    return encoding
