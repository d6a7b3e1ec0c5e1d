"""HEAD requests: answered as GET, without the body."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from starlette.types import Message, Receive, Scope, Send

__all__ = ["answer_as_get"]


async def answer_as_get(
    app: Callable[[Scope, Receive, Send], Awaitable[None]], scope: Scope, send: Send
) -> None:
    """Let `app` answer a HEAD request as a GET of the same path.

    As soon as the app begins its answer, the client seems to hang up to it, so that a live feed
    ends and gives back its place; the head is sent after that. The scope keeps its method, by
    which the server frames the answer, and gets the entries that routing adds.
    """
    head: list[Message] = []
    begun = asyncio.Event()

    coming: list[Message] = [{"type": "http.request", "body": b"", "more_body": False}]

    async def hanging_up() -> Message:
        if coming:
            return coming.pop()
        await begun.wait()
        return {"type": "http.disconnect"}

    async def keeping_the_head(message: Message) -> None:
        if message["type"] == "http.response.start":
            head.append(message)
            begun.set()

    routed = {**scope, "method": "GET"}
    try:
        await app(routed, hanging_up, keeping_the_head)
    finally:
        scope.update({**routed, "method": "HEAD"})
        for message in head:
            await send(message)
            await send({"type": "http.response.body", "body": b""})
