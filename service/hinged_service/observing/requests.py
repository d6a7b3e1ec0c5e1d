"""Which request the present code runs for, and by what id its client and the log know it."""

from __future__ import annotations

import re
import secrets
from contextvars import ContextVar

from starlette.types import Scope

__all__ = ["current", "request_id"]

current: ContextVar[Scope | None] = ContextVar("hinged_request", default=None)
"""The scope of the request, `None` outside of any."""

_ID = re.compile(rb"[\x21-\x7e]{1,128}")
_KEPT = "hinged.request_id"


def request_id(scope: Scope) -> str:
    """Return the id that the client gave its request, or one made for it.

    Parameters
    ----------
    scope
        The request's. An `x-request-id` counts if it is 1 to 128 printable characters.

    """
    known: str | None = scope.get(_KEPT)
    if known is None:
        given = next((v for name, v in scope["headers"] if name == b"x-request-id"), b"")
        known = given.decode("ascii") if _ID.fullmatch(given) else secrets.token_hex(8)
        scope[_KEPT] = known
    return known
