"""Reading request bodies within bounds, and the query parameters of the hot calls."""

from __future__ import annotations

import asyncio
from urllib.parse import parse_qs

from starlette.types import Message, Receive, Scope

from hinged_service.errors import (
    Detail,
    Malformed,
    TooLarge,
    TooSlow,
    Unprocessable,
    WrongMediaType,
)
from hinged_service.server.admission import HELD, RequestLease
from hinged_service.wire.encodings import other_encoding, without_marks
from hinged_service.wire.position import POSITION_PATTERN, Position
from hinged_service.wire.proba import parse_proba

__all__ = [
    "LINE_TYPES",
    "POSITION_PATTERN",
    "are_lines",
    "asked_position",
    "asked_proba",
    "parse_position",
    "read_json_body",
]

LINE_TYPES = (
    "application/x-ndjson",
    "application/ndjson",
    "application/jsonl",
    "application/x-jsonl",
    "application/jsonlines",
)
"""The media types of bodies of lines, each a JSON document."""

_LEAST_BYTES_PER_S = 2**16
_OPENING = frozenset({b"{", b"["})
_UTF8 = ("", "charset=utf-8", "charset=utf8")


def are_lines(scope: Scope) -> bool:
    """Return whether the body is one JSON document per line.

    Raises
    ------
    WrongMediaType
        If it is, but not in plain UTF-8.

    """
    for name, value in scope["headers"]:
        if name == b"content-type":
            if value == b"application/json":
                return False
            essence, parameters = _parts(value)
            if essence in LINE_TYPES:
                _check_lines(parameters, scope)
                return True
    return False


def _check_lines(parameters: str, scope: Scope) -> None:
    encodings = [v.lower() for k, v in scope["headers"] if k == b"content-encoding"]
    if parameters not in _UTF8 or any(v != b"identity" for v in encodings):
        raise WrongMediaType("Send lines in UTF-8, without content-encoding.")


async def read_json_body(
    scope: Scope, receive: Receive, max_bytes: int, counted: bool = True
) -> bytes:
    """Return the body of a JSON request, without byte order marks in front.

    If `counted`, it counts among the bytes that the worker's requests may hold.

    Raises
    ------
    WrongMediaType
        If it has a type that is not JSON.
    TooLarge
        As soon as more than `max_bytes` are announced or have come.
    Busy
        As soon as the worker's requests hold too much.
    TooSlow
        It does not come in time.
    Malformed
        If the client hung up before the end, or the body is UTF-16 or UTF-32.

    """
    for name, value in scope["headers"]:
        if name == b"content-type":
            if value != b"application/json":
                _check_type(value)
        elif name == b"content-encoding" and value.lower() != b"identity":
            raise WrongMediaType("Send the body without content-encoding.")
        elif name == b"content-length" and int(value) > max_bytes:
            raise _too_large(max_bytes)
    held: RequestLease = scope[HELD]
    message = await receive()
    if message["type"] == "http.request" and not message.get("more_body", False):
        held.whole = True
        body: bytes = message.get("body", b"")
        if len(body) > max_bytes:
            raise _too_large(max_bytes)
        if counted:
            held.add(len(body))
        # Nearly all begin so: JSON in UTF-8 without a mark in front.
        return body if body[:1] in _OPENING and b"\0" not in body[:2] else _utf8(body)
    try:
        return _utf8(await _gathered(message, receive, max_bytes, held, counted))
    except TimeoutError:
        raise TooSlow("The body did not come in time; nothing of it was taken.") from None


async def _gathered(
    message: Message, receive: Receive, max_bytes: int, held: RequestLease, counted: bool
) -> bytes:
    """Return a body that comes in parts; `message` is the first.

    Raises
    ------
    TimeoutError
        It does not come in time, which grows with what has come.

    """
    parts: list[bytes] = []
    size = 0
    due_s = asyncio.get_running_loop().time() + held.control.body_timeout_s
    async with asyncio.timeout_at(due_s) as timeout:
        while message["type"] == "http.request":
            held.whole = not message.get("more_body", False)
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > max_bytes:
                raise _too_large(max_bytes)
            if counted:
                held.add(len(parts[-1]))
            if held.whole:
                return b"".join(parts)
            timeout.reschedule(due_s + size / _LEAST_BYTES_PER_S)
            message = await receive()
    raise Malformed("The connection closed in the middle of the body.")


def _utf8(body: bytes) -> bytes:
    if (encoding := other_encoding(body)) is not None:
        raise Malformed(f"The body is {encoding}: send UTF-8.")
    return without_marks(body)


def _check_type(value: bytes) -> None:
    essence, parameters = _parts(value)
    json = essence == "application/json" or (
        essence.startswith("application/") and essence.endswith("+json")
    )
    if not json or parameters not in _UTF8:
        raise WrongMediaType("Send JSON in UTF-8, with content-type application/json.")


def _parts(content_type: bytes) -> tuple[str, str]:
    essence, _, parameters = content_type.decode("latin-1").lower().partition(";")
    return essence.strip(), parameters.replace(" ", "").replace('"', "")


def _too_large(max_bytes: int) -> TooLarge:
    return TooLarge(f"The body is larger than {max_bytes} bytes; send it in parts.")


def asked_position(scope: Scope) -> Position | None:
    """Return the position that the query asks to wait for, if any.

    Raises
    ------
    Unprocessable
        If it is not a position.

    """
    query: bytes = scope["query_string"]
    if not query:
        return None
    values = parse_qs(query.decode("latin-1"), keep_blank_values=True).get("at_least")
    return parse_position(values[-1]) if values else None


def asked_proba(scope: Scope) -> int:
    """Return how many probabilities the query allows at most.

    Raises
    ------
    Unprocessable
        If that has no valid form.

    """
    values = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    try:
        return parse_proba(values.get("proba", [None])[-1])
    except ValueError as error:
        raise Unprocessable(
            "Nothing was predicted: see errors.", [Detail("proba", str(error))]
        ) from None


def parse_position(text: str, field: str = "at_least") -> Position:
    """Read a position sent by a client in a field.

    Raises
    ------
    Unprocessable
        If it is not one.

    """
    try:
        return Position.parse(text)
    except ValueError:
        raise Unprocessable(
            f"{field} must be a position as an earlier answer gave it.",
            [Detail(field, "must be a position")],
        ) from None
