"""Problem documents (RFC 9457): the one form of every error answer."""

from __future__ import annotations

import json
import logging
from http import HTTPStatus
from typing import Any

import msgspec
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import Message, Send

from hinged_service.engine.damage import set_aside_for
from hinged_service.errors import Detail, Malformed, ServiceError, Unprocessable
from hinged_service.telemetry import request_context
from hinged_service.telemetry.request_context import template
from hinged_service.telemetry.state_log import StateChangeLog
from hinged_service.wire.codec import DamagedState
from hinged_service.wire.faults import MAX_DETAILS, abbreviated
from hinged_service.wire.responses import Fault, Problem
from hinged_service.wire.strict_model import reason_of

__all__ = ["GUARDS", "details_of", "guarded", "install", "problem", "refused", "send_problem"]

logger = logging.getLogger(__name__)

_NO_BODY = object()
MEDIA_TYPE = "application/problem+json"
GUARDS = [(b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store")]
"""Headers of every answer: its type is not guessed, and no cache may keep it."""
_DETAIL_CHARS = 1_000
_LOG_EVERY_S = 60.0
_PART_CHARS = 40


_faults = StateChangeLog()


class _Internal(ServiceError):
    pass


def problem(error: ServiceError) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
    """Return status, headers and body of the answer for an error."""
    headers = [(b"content-type", MEDIA_TYPE.encode())]
    scope, request_id = request_context.current.get(), None
    if scope is not None:
        request_id = request_context.request_id(scope)
        headers.append((b"x-request-id", request_id.encode()))
    if error.retry_after_s is not None:
        headers.append((b"retry-after", b"%d" % error.retry_after_s))
    if error.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    document = Problem(
        type="about:blank",
        title=error.title,
        status=error.status,
        detail=_shortened(error.detail, _DETAIL_CHARS),
        errors=tuple(Fault(d.field, d.reason) for d in error.errors),
        logged=error.logged,
        request_id=request_id,
    )
    return error.status, [*headers, *GUARDS], msgspec.json.encode(document) + b"\n"


async def send_problem(error: ServiceError, send: Send) -> None:
    """Answer a request with an error."""
    status, headers, body = problem(error)
    length = (b"content-length", b"%d" % len(body))
    await send({"type": "http.response.start", "status": status, "headers": [length, *headers]})
    await send({"type": "http.response.body", "body": body})


def guarded(send: Send) -> Send:
    """Return a `send` that adds the headers of every answer, unless it has its guards already."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            present = {name.lower() for name, _ in message["headers"]}
            more = [pair for pair in GUARDS if pair[0] not in present]
            scope = request_context.current.get()
            if more and scope is not None and b"x-request-id" not in present:
                more.append((b"x-request-id", request_context.request_id(scope).encode()))
            message = {**message, "headers": [*message["headers"], *more]}
        await send(message)

    return sending


def as_service_error(error: BaseException, route: str) -> ServiceError:
    """Return the error that a client gets for any other; log it if it was not expected.

    The `route` is a template: nothing in it comes from the caller.
    """
    if isinstance(error, ServiceError):
        return error
    if isinstance(error, DamagedState):
        return set_aside_for(error)
    _faults.enter(
        (route, type(error)),
        logger,
        "unexpected error at %s: %s",
        route,
        type(error).__name__,
        level=logging.ERROR,
        exc_info=error,
        every_s=_LOG_EVERY_S,
    )
    return _Internal("The service failed. Its log has the reason.")


def refused(error: ValidationError | RequestValidationError, body: bytes = b"") -> ServiceError:
    """Return pydantic's findings as a service error, values shortened.

    Fields are named as they stand in `body`, the JSON that was read.
    """
    if any(e["type"] in ("json_invalid", "json_type") for e in error.errors()):
        return Malformed("The body is not valid JSON.")
    details = details_of(error, json.loads(body) if body else _NO_BODY)
    some = "" if len(details) <= MAX_DETAILS else f" ({MAX_DETAILS} of {len(details)} shown)"
    return Unprocessable(f"Nothing was done: see errors{some}.", details[:MAX_DETAILS])


def details_of(error: ValidationError | RequestValidationError, value: Any) -> list[Detail]:
    """Return the faults that pydantic found in `value`, those of one field as one."""
    reasons: dict[str, list[str]] = {}
    for found in error.errors():
        reasons.setdefault(_field(found, value), []).append(_reason(found))
    return [Detail(field, " or ".join(dict.fromkeys(why))) for field, why in reasons.items()]


def _field(found: Any, value: Any) -> str:
    """Return the place of a fault, without pydantic's names for the variants it tried."""
    parts: list[str] = []
    for part in found["loc"]:
        parts_of = range(len(value)) if isinstance(value, list) else value
        if isinstance(parts_of, (dict, range)) and part in parts_of:
            value = value[part]
        elif value is not _NO_BODY and not (
            found["type"] == "missing" and part == found["loc"][-1]
        ):
            continue
        parts.append(_shortened(str(part), _PART_CHARS))
    if found["type"].startswith("union_tag"):
        parts.append("type")
    return ".".join(parts) or "body"


def _shortened(text: str, chars: int) -> str:
    return text if len(text) <= chars else text[: chars - 3] + "..."


def _reason(found: Any) -> str:
    value = found.get("input")
    unnamed = isinstance(value, (dict, list)) or value is None or found["type"] == "extra_forbidden"
    refused_value = "" if unnamed else f" (not {abbreviated(value)})"
    return f"{reason_of(found)}{refused_value}"


def _response(error: ServiceError) -> Response:
    status, headers, body = problem(error)
    response = Response(body, status)
    response.raw_headers = [(b"content-length", b"%d" % len(body)), *headers]
    return response


def _methods(request: Request) -> list[str]:
    """Return the methods that some route takes at the request's path."""
    routes = request.app.routes
    methods = [
        method
        for method in ("DELETE", "GET", "POST", "PUT")
        if any(r.matches({**request.scope, "method": method})[0] is Match.FULL for r in routes)
    ]
    return [*methods, "HEAD"] if "GET" in methods else methods


def _http_answer(request: Request, error: HTTPException) -> Response:
    status, headers, detail = error.status_code, dict(error.headers or {}), str(error.detail)
    if status == 404:
        detail = "There is no call at this path. /docs lists all calls."
    elif status == 405:
        headers["allow"] = ", ".join(_methods(request))
        detail = f"This path takes {headers['allow']}. /docs lists all calls."
    made = ServiceError(detail)
    made.__dict__.update(status=status, title=HTTPStatus(status).phrase.capitalize())
    response = _response(made)
    response.headers.update(headers)
    return response


def install(app: FastAPI) -> None:
    """Make every error of the app a problem document."""

    async def answer(request: Request, error: Exception) -> Response:
        match error:
            case HTTPException():
                return _http_answer(request, error)
            case RequestValidationError() | ValidationError():
                return _response(refused(error))
        return _response(as_service_error(error, template(request.scope)))

    kinds = (ServiceError, DamagedState, RequestValidationError, ValidationError, HTTPException)
    for kind in (*kinds, Exception):
        app.add_exception_handler(kind, answer)
