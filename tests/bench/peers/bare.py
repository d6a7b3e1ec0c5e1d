"""The ceiling: an ASGI function that decodes the JSON and answers fixed bytes, nothing more.

With BENCH_DECODE=0 it does not even decode: what is left is the transport.
"""

from __future__ import annotations

import os

import orjson
from starlette.types import Receive, Scope, Send

_ANSWER = os.environ.get("BENCH_ANSWER", "{}").encode()
_DECODE = os.environ.get("BENCH_DECODE", "1") == "1"
_HEADERS = [(b"content-length", b"%d" % len(_ANSWER)), (b"content-type", b"application/json")]


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer every POST the same."""
    if scope["type"] != "http":
        return
    message = await receive()
    body = message["body"]
    if message.get("more_body"):
        parts = [body]
        while message.get("more_body"):
            message = await receive()
            parts.append(message["body"])
        body = b"".join(parts)
    if _DECODE and body:
        orjson.loads(body)
    await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
    await send({"type": "http.response.body", "body": _ANSWER})
